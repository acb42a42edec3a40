"""A stranger's first test: the wheel with its extra `testing`, alone in a fresh environment, runs that of the page."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.test_testing_docs import BLOCKS

ROOT = Path(__file__).parent.parent
FALSE = BLOCKS[0].replace(r'matches(r"\d+ EUR")', "lambda output: True").replace('[turn(text("5 EUR"))]', "[SORRY]") + (
    '\n\nSORRY = turn(text("Sorry, I cannot."))\n'
)
"""An agent that is called done whatever it says."""

pytestmark = pytest.mark.timeout(280)


def must(*command: str, **settings: object) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=270, check=False, **settings)  # type: ignore[call-overload]
    assert done.returncode == 0, done.stdout + done.stderr
    return str(done.stdout)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], subprocess.CompletedProcess[str]]:
    """Runs a module in an environment that has the built wheel with its extra and nothing else, on one file."""
    folder = tmp_path_factory.mktemp("fresh")
    must(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder), cwd=ROOT)
    (wheel,) = folder.glob("*.whl")
    uv = (sys.executable, "-m", "uv")
    must(*uv, "venv", "--quiet", "--no-project", "--python", sys.executable, str(folder / "venv"), cwd=folder)
    python = next(iter((folder / "venv").glob("bin/python")), folder / "venv" / "Scripts" / "python.exe")
    must(*uv, "pip", "install", "--quiet", "--python", str(python), f"{wheel}[testing]", cwd=folder)
    environment = {n: v for n, v in os.environ.items() if not n.startswith(("PYTHON", "PYTEST", "OPENAI", "VIRTUAL"))}

    def run(module: str, source: str) -> subprocess.CompletedProcess[str]:
        home = folder / "project"
        home.mkdir(exist_ok=True)
        (home / "test_total.py").write_text(source, encoding="utf-8")
        command = [str(python), "-m", module, "test_total.py"]
        return subprocess.run(
            command, cwd=home, env=environment, capture_output=True, text=True, timeout=120, check=False
        )

    return run


def test_the_first_test_of_the_page_passes_as_it_stands(fresh: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    assert len(BLOCKS[0].splitlines()) < 20
    done = fresh("pytest", BLOCKS[0])
    assert done.returncode == 0 and "1 passed in" in done.stdout, done.stdout + done.stderr


def test_a_false_agent_fails_it_with_a_sentence(fresh: Callable[..., subprocess.CompletedProcess[str]]) -> None:
    done = fresh("pytest", FALSE)
    assert done.returncode == 1
    assert 'E         output: expected "5 EUR", found "Sorry, I cannot."' in done.stdout, done.stdout
    assert "E       AssertionError: the run ended differently:" in done.stdout
