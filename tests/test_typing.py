"""Typing of the public surface: user code passes the checkers as it stands, and mistakes in it are refused."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
USAGE = [ROOT / "tests" / "typing" / name for name in ("usage.py", "stranger.py")]
WRONG = ROOT / "tests" / "typing" / "wrong.py"

pytestmark = pytest.mark.timeout(300)


def mypy(file: Path) -> dict[int, str]:
    """Line to message of what mypy --strict says of a file."""
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--config-file=",
        "--no-error-summary",
        "--no-pretty",
        str(file),
    ]
    done = subprocess.run(
        command,
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
        env={**os.environ, "MYPYPATH": str(ROOT)},
    )
    assert done.returncode in (0, 1), done.stdout + done.stderr
    found = re.findall(r"^([^:\n]+):(\d+): error: (.*)$", done.stdout, flags=re.MULTILINE)
    assert bool(found) is (done.returncode == 1), done.stdout
    return {int(line) if Path(name).name == file.name else 0: f"{name}: {text}" for name, line, text in found}


def pyright(file: Path, folder: Path) -> dict[int, str]:
    """Line to message of what pyright says of a file, with this interpreter's packages."""
    shutil.copy(file, folder)
    settings = {
        "include": [file.name],
        "extraPaths": [str(ROOT)],
        "pythonVersion": "3.11",
        "reportUnusedExpression": False,
    }
    (folder / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable, "-p", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        pytest.skip(f"pyright cannot run here: {(done.stderr or done.stdout)[-200:]}")
    assert report["summary"]["filesAnalyzed"] == 1
    return {
        item["range"]["start"]["line"] + 1: item["message"]
        for item in report["generalDiagnostics"]
        if item["severity"] == "error"
    }


def planted() -> set[int]:
    lines = WRONG.read_text(encoding="utf-8").splitlines()
    return {number for number, line in enumerate(lines, start=1) if line.endswith("# wrong")}


@pytest.mark.parametrize("file", USAGE, ids=lambda file: file.stem)
def test_user_code_passes_mypy_strict(file: Path) -> None:
    assert mypy(file) == {}


def test_every_planted_mistake_is_refused_by_mypy_and_nothing_else_is() -> None:
    assert len(planted()) >= 15
    found = mypy(WRONG)
    assert set(found) == planted(), found


@pytest.mark.parametrize("file", USAGE, ids=lambda file: file.stem)
def test_user_code_passes_pyright(file: Path, tmp_path: Path) -> None:
    assert pyright(file, tmp_path) == {}


def test_every_planted_mistake_is_refused_by_pyright_and_nothing_else_is(tmp_path: Path) -> None:
    found = pyright(WRONG, tmp_path)
    assert set(found) == planted(), found


def test_the_package_passes_mypy_strict_as_it_is_configured() -> None:
    command = [sys.executable, "-m", "mypy", "-p", "agents_progress"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=280, check=False)
    assert done.returncode == 0, done.stdout
