"""The page about tools that act once says what the code does."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agents_progress import cli, errors
from agents_progress.effects import entry, once
from agents_progress.effects.ledger import Ledger
from agents_progress.effects.words import TOLD
from agents_progress.labels import LABELS

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "effects.md").read_text(encoding="utf-8")
HERE = PAGE.partition("## Tools that act once\n")[2].partition("\n## ")[0]


def cells(text: str) -> list[list[str]]:
    """The rows of a table, without their marks."""
    rows = re.findall(r"^\|(.*)\|$", text, re.MULTILINE)
    return [[cell.strip().strip("`") for cell in row.split("|")] for row in rows]


def test_the_states_are_those_of_the_rules() -> None:
    told = [row for row in cells(entry.__doc__ or "") if "---" not in row]
    shown = [[re.sub(", for `wait` seconds.*", "", cell) for cell in row] for row in cells(HERE) if len(row) == 4]
    assert [row for row in shown if "---" not in row] == told


@pytest.mark.parametrize("code", TOLD)
def test_what_the_model_is_told_stands_there_word_for_word(code: str) -> None:
    raised = next(kind for kind in vars(errors).values() if getattr(kind, "code", None) == code)
    assert [code, raised.__name__, TOLD[code]["en"]] in cells(HERE)


def test_the_numbers_and_words_are_those_of_the_code() -> None:
    assert f"its lease ({Ledger.lease_s:.0f} seconds)" in HERE
    assert f"at most ({once.WAIT_S:.0f})" in HERE
    for name in ("effect_uncertain", "reused"):
        assert f'"{LABELS[name]["en"]}"' in HERE  # type: ignore[index]


def test_every_option_of_once_and_of_the_commands_is_named() -> None:
    for option in ("key", "scope", "name", "ledger", "reconcile", "no_effect", "wait"):
        assert option in once.once.__kwdefaults__
        assert f"`{option}" in HERE
    assert set(once.once.__kwdefaults__) == {"key", "scope", "name", "ledger", "reconcile", "no_effect", "wait"}
    commands = {command.name: command for command in cli.COMMANDS}
    for name in ("effects", "resolve"):
        assert f"agents-progress {name}" in HERE
        assert name in commands


def test_the_examples_are_python() -> None:
    blocks = re.findall(r"^```python\n(.*?)^```$", HERE, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    for block in blocks:
        compile(block, "docs/effects.md", "exec", flags=0x2000)  # PyCF_ALLOW_TOP_LEVEL_AWAIT
        for module, names in re.findall(r"^from (agents_progress\S*) import (.*)$", block, re.MULTILINE):
            found = __import__(module, fromlist=["x"])
            assert all(hasattr(found, name.strip()) for name in names.split(","))
