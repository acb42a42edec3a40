"""Isolated environments, one a row of the matrix, built with uv under `compat/.envs/`, and what is run in them."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from .matrix import Row

ROOT = Path(__file__).parent.parent
FOLDER = Path(__file__).parent / ".envs"

BUILD_LIMIT = 300
"""Seconds that an installation may take."""

PLAY_LIMIT = 300
"""Seconds that all scenarios together may take; more is a hang."""


class Missing(Exception):
    """What a row needs is not on this machine."""


class Broken(Exception):
    """An environment cannot be built, or what was run in it failed."""


def require_uv() -> None:
    """Raise `Missing` unless uv is there."""
    if find_spec("uv") is None:
        raise Missing("uv is not installed for this Python; install the extra `dev` of this package")


def interpreter(python: str) -> Path:
    """The interpreter of a Python release, by uv or from PATH. Raises `Missing` when there is none."""
    if sys.version_info[:2] == tuple(int(part) for part in python.split(".")):
        return Path(sys.executable)
    found = _uv("python", "find", "--no-project", "--no-python-downloads", "--system", python, python=python)
    if found.returncode:
        raise Missing(f"Python {python} is not installed here, or not on PATH")
    return Path(found.stdout.strip())


def build(row: Row, *, package: bool = True) -> Path:
    """Bring the environment of a row up to date, and give its interpreter.

    A release below the floor is installed without this package, which does not accept it.
    """
    require_uv()
    home = FOLDER / row.name
    if not (home / "pyvenv.cfg").exists():
        base = interpreter(row.python)
        _must(_uv("venv", "--quiet", "--no-project", "--python", str(base), str(home), python=row.python))
    python = next(iter(home.glob("bin/python")), home / "Scripts" / "python.exe")
    install = ["pip", "install", "--quiet", "--python", str(python), *row.pins]
    _must(_uv(*install, *(["--editable", str(ROOT)] if package else []), python=row.python))
    return python


def run(python: Path, *arguments: str) -> str:
    """What a module of this package prints in an environment. Raises `Broken` when it fails or takes too long."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    command = [str(python), "-X", "utf8", *arguments]
    try:
        done = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=PLAY_LIMIT, check=False
        )
    except subprocess.TimeoutExpired:
        raise Broken(f"{' '.join(arguments)} was not over after {PLAY_LIMIT} s") from None
    if done.returncode:
        raise Broken(f"{' '.join(arguments)} failed: {_last_line(done.stderr)}")
    return done.stdout


def _uv(*arguments: str, python: str) -> subprocess.CompletedProcess[str]:
    # A shim of pyenv on PATH answers only for the release it is told to.
    environment = {**os.environ, "PYENV_VERSION": python}
    command = [sys.executable, "-m", "uv", *arguments]
    return subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=BUILD_LIMIT, check=False
    )


def _must(done: subprocess.CompletedProcess[str]) -> None:
    if done.returncode:
        raise Broken(f"uv failed: {_last_line(done.stderr)}")


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["without a word"])[-1]
