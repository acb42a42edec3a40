"""The page about answers that carry something says what the code does."""

from __future__ import annotations

from pathlib import Path

import pytest

from agents_progress.answers import CARRIED, MOST_ARGUMENTS, MOST_TEXT, TEXTS
from agents_progress.reasons import ANSWERS_NOT_USED

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs" / "approvals.md").read_text(encoding="utf-8")
CODES = [code for code in ANSWERS_NOT_USED if code.startswith(("answer", "arguments", "not_an", "not_edit"))]
IN_WORDS = {"option": "required, and one of the options"}


@pytest.mark.parametrize("code", CODES)
def test_every_refusal_of_what_an_answer_carries_is_on_the_page(code: str) -> None:
    assert f"| `{code}` | {ANSWERS_NOT_USED[code]} |" in PAGE


def test_the_kinds_the_names_and_the_caps_are_those_of_the_code() -> None:
    for kind, wanted in TEXTS.items():
        assert f"| `{kind}` | {IN_WORDS.get(wanted, wanted)} |" in PAGE
    assert all(f"`{name}`" in PAGE for name in CARRIED)
    assert f"At most {MOST_ARGUMENTS:,} characters" in PAGE and PAGE.count(f"most {MOST_TEXT:,} characters") == 2


def test_the_page_can_be_found() -> None:
    assert "(docs/approvals.md)" in (ROOT / "README.md").read_text(encoding="utf-8")
    assert "(approvals.md)" in (ROOT / "docs" / "effects.md").read_text(encoding="utf-8")
