"""The page about testing an agent: its tests are run as they stand, and what it says is what the code says."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

from agents_progress import testing
from agents_progress.testing import played
from tests.test_pytest_plugin import Project

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
BLOCKS: list[str] = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
SETTINGS = "".join(re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))


@pytest.mark.timeout(150)
def test_the_tests_on_the_page_pass_as_they_stand_with_warnings_as_errors(tmp_path: Path) -> None:
    project = Project(tmp_path, SETTINGS.replace("[tool.pytest.ini_options]", "[pytest]").replace('"', ""))
    done = project.run("-W", "error", "--strict-markers", "--update-golden-envelopes", test_page="\n".join(BLOCKS))
    passed = re.search(r"^(\d+) passed", done.stdout, re.MULTILINE)
    assert passed and int(passed[1]) > 14 and done.returncode == 0, done.stdout
    assert {file.name for file in tmp_path.iterdir()} >= {"golden", "test_page.py"}
    assert not list(tmp_path.glob("*.db"))


def test_the_first_test_is_short() -> None:
    assert len(BLOCKS[0].splitlines()) < 20


def test_every_name_that_a_test_is_written_with_stands_on_the_page() -> None:
    beside = {"Answer", "DoneTooEarly", "GoldenEnvelopes", "MakeAPI", "ScriptNotPlayed", "ScriptedAPI", "Turn", "Usage"}
    rare = {"completed", "message", "never_done_early_async", "no_network", "reasoning", "stopped"}
    missing = {name for name in testing.__all__ if not re.search(rf"\b{name}\b", PAGE)}
    assert missing <= beside | rare, "each is named on the page, or told in its docstring alone on purpose"


def test_the_contracts_are_where_the_page_says() -> None:
    pairs = re.findall(r"`(\w+Contract)`\s+in `(?:agents_progress\.testing\.)?(\w+)`", PAGE)
    assert len(pairs) == 3
    for name, module in pairs:
        assert hasattr(import_module(f"agents_progress.testing.{module}"), name)


def test_the_numbers_are_those_of_the_code() -> None:
    assert f"within {played.LIMIT:.0f} seconds raises `NotOver`" in PAGE


@pytest.mark.parametrize("name", testing.__all__)
def test_every_name_of_the_module_is_there_and_says_what_it_is(name: str) -> None:
    assert getattr(testing, name).__doc__
