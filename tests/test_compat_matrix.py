"""The pins, and the command that runs the scenarios on them."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from agents_progress.sdk import compat
from compat import __main__ as command
from compat import environments, matrix, runner
from compat.environments import Broken, Missing
from compat.matrix import Row

ROOT = Path(__file__).parent.parent
ROWS = matrix.rows()


def test_the_verified_releases_are_those_of_the_matrix() -> None:
    assert matrix.releases() == compat.VERIFIED


def test_there_is_a_release_for_each_minor_from_the_floor_on() -> None:
    minors = [compat.release(release)[:2] for release in matrix.releases()]
    assert minors == [(0, number) for number in range(compat.FLOOR[1], minors[-1][1] + 1)]
    assert compat.release(matrix.below_the_floor().agents) < compat.FLOOR


def test_the_newest_release_is_on_every_python_that_the_package_names() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    named = {line.rpartition(" ")[2] for line in settings["project"]["classifiers"] if "Python :: 3." in line}
    assert {row.python for row in ROWS if row.agents == matrix.newest()} == named


def test_the_lowest_and_the_newest_release_are_with_two_releases_of_pydantic() -> None:
    for release in (matrix.releases()[0], matrix.newest()):
        assert len({row.pydantic for row in ROWS if row.agents == release}) == 2


def test_every_release_goes_with_one_release_of_openai() -> None:
    for release in matrix.releases():
        assert len({row.openai for row in ROWS if row.agents == release}) == 1


def test_the_quick_rows_are_the_lowest_0_23_and_the_newest() -> None:
    quick = [row.agents for row in matrix.chosen(None, False, None)]
    assert quick == [matrix.releases()[0], "0.23.1", matrix.newest()]


def test_a_python_given_stands_for_the_rows_own_and_repeats_no_row() -> None:
    rows = matrix.chosen("0.24", False, "3.13")
    assert {row.python for row in rows} == {"3.13"}
    assert len(rows) == len(set(rows)) == 2


def test_a_misspelt_field_of_a_row_is_refused() -> None:
    with pytest.raises(AssertionError, match="pytohn"):
        matrix._row({"agents": "0.24.0", "pytohn": "3.12"})


def test_a_python_that_is_not_there_is_said_and_the_row_is_skipped() -> None:
    with pytest.raises(Missing, match=r"Python 3\.99 is not installed here"):
        environments.interpreter("3.99")
    result = runner.play(Row("0.24.0", "3.57.0", "3.99", "2.14.4"))
    assert result.verdict == "Python 3.99 is not installed here, or not on PATH"
    assert command._said([result], False, False) == command.SKIPPED


def test_the_interpreter_that_asks_is_taken_for_its_own_release() -> None:
    assert environments.interpreter(f"3.{sys.version_info.minor}") == Path(sys.executable)


def test_what_fails_or_hangs_in_an_environment_is_said_in_a_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Broken, match="failed: ZeroDivisionError"):
        environments.run(Path(sys.executable), "-c", "1/0")
    monkeypatch.setattr(environments, "PLAY_LIMIT", 0.2)
    with pytest.raises(Broken, match=r"was not over after 0\.2 s"):
        environments.run(Path(sys.executable), "-c", "import time; time.sleep(30)")


@pytest.mark.parametrize("arguments", [["--write"], ["--all", "--write", "--only", "0.23"]])
def test_only_everything_can_be_written(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(arguments)
    assert "--write goes with --all alone" in capsys.readouterr().err


def test_a_release_that_is_in_no_row_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert command.main(["--only", "0.17"]) == command.UNEXPLAINED
    assert "there are 0.18.3, " in capsys.readouterr().err


def test_a_release_below_the_floor_is_refused_with_a_sentence() -> None:
    code = (
        "from agents_progress.sdk import compat; compat.installed = lambda: '0.17.8'\n"
        "from compat.below_the_floor import main; raise SystemExit(main())"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=50, check=True)
    assert done.stdout.startswith("openai-agents 0.17.8 hides how a run ends; install openai-agents>=0.18")


def test_no_environment_is_committed() -> None:
    assert "compat/.envs/" in (ROOT / ".gitignore").read_text(encoding="utf-8").split()
