"""Foreign text on a screen: what is escaped, and how wide what is left may be."""

from __future__ import annotations

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from wcwidth import wcswidth, wcwidth

from agents_progress import plaintext
from agents_progress.plaintext import cell_count, clean, cut, printable, standard_cells, wrap

SHOWN_FORMATS = {
    "\u200c",
    "\u200d",
    *map(chr, range(0x600, 0x606)),
    *"\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd",
}
"""Characters of the format category that have a glyph, and the two joiners."""


def test_no_control_format_separator_or_surrogate_survives_cleaning() -> None:
    unseen = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    left = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code)) in unseen
        and clean(chr(code)) == chr(code)
        and chr(code) not in SHOWN_FORMATS
    ]
    assert left == []


def test_everything_with_a_glyph_survives_cleaning() -> None:
    seen = {"L", "N", "P", "S", "M"}
    lost = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if unicodedata.category(chr(code))[0] in seen and clean(chr(code)) != chr(code)
    ]
    assert lost == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\x9b2J", r"\x9b2J"),
        ("a\r\nb\tc\0", r"a\r\nb\tc\x00"),
        ("\u202egpj.exe", r"\u202egpj.exe"),
        ("\ud800", r"\ud800"),
        ("\U000e0041", r"\U000e0041"),
        ("[/red] [1, 2] C:\\new", "[/red] [1, 2] C:\\new"),
        ("می\u200cخواهم 👨\u200d👩", "می\u200cخواهم 👨\u200d👩"),
    ],
)
def test_cleaning_shows_what_was_there(text: str, shown: str) -> None:
    assert clean(text) == shown
    assert clean(shown) == shown


def test_what_is_written_from_right_to_left_is_known_by_every_character_of_it() -> None:
    turned = [
        chr(code) for code in range(sys.maxunicode + 1) if unicodedata.bidirectional(chr(code)) in ("R", "AL", "AN")
    ]
    assert [hex(ord(one)) for one in turned if clean(one) == one and not plaintext.from_right(one)] == []
    assert not any(map(plaintext.from_right, ("", "plain", "流", "é", "नमस्ते", "สวัสดี", "ｶﾅ", "👨\u200d👩", "🇩🇪")))


@pytest.mark.parametrize(
    ("text", "least"),
    [
        ("e\u0301", 1),
        ("👨\u200d👩\u200d👧", 2),
        ("🇩🇪", 2),
        ("🇩", 2),
        ("ｶﾞ", 2),
        ("👍🏽", 2),
        ("❤\ufe0f", 2),
        ("1\ufe0f\u20e3", 2),
        ("한", 2),
        ("ก็", 1),
    ],
)
def test_no_text_is_taken_for_narrower_than_any_terminal_shows_it(text: str, least: int) -> None:
    assert cell_count(text) >= max(least, wcswidth(text))


def test_no_character_is_taken_for_narrower_than_the_tables_of_terminals_have_it() -> None:
    known = (chr(code) for code in range(sys.maxunicode + 1) if clean(chr(code)) == chr(code))
    assert [hex(ord(one)) for one in known if cell_count(one) < wcwidth(one)] == []


@pytest.mark.parametrize(
    ("text", "width", "shown"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("流流流", 6, "流流流"),
        ("流流流", 5, "流流…"),
        ("流流流", 4, "流…"),
        ("流", 1, "…"),
        ("ab  cd", 5, "ab…"),
        ("abc", 0, ""),
        ("", 0, ""),
        ("❤\ufe0f❤\ufe0f", 3, "❤\ufe0f…"),
    ],
)
def test_a_row_is_cut_to_its_cells(text: str, width: int, shown: str) -> None:
    assert cut(text, width) == shown


def test_joiners_hide_no_width() -> None:
    """Measured as one picture, a text with a joiner after every letter would be a row without an end."""
    assert cell_count("a\u200d" * 50) == 50
    assert cut("a\u200d" * 50, 20) == "a\u200d" * 18 + "a…"


def test_a_pile_of_marks_does_not_grow_out_of_its_row() -> None:
    assert len(cut("a" + "\u0301" * 10_000, 20)) <= 20 * plaintext.POINTS_PER_CELL + 1


@given(st.text(), st.integers(1, 30))
def test_a_cut_row_is_never_wider_than_asked_and_keeps_its_beginning(text: str, width: int) -> None:
    row = cut(clean(text), width)
    assert cell_len(row) <= cell_count(row) <= width
    assert clean(text).startswith(row.removesuffix("…"))


@given(st.text(st.sampled_from("ab 流🙂\u0301\u200d\ufe0f")), st.integers(2, 9))
def test_wrapped_rows_fit_and_lose_nothing_but_the_spaces_they_were_broken_at(text: str, width: int) -> None:
    rows = wrap(text, width)
    assert all(cell_count(row) <= width for row in rows)
    assert "".join(rows).replace(" ", "") == text.replace(" ", "")


def test_words_are_broken_only_when_they_are_wider_than_a_row() -> None:
    assert wrap("one two three fourfivesix", 8) == ["one two", "three", "fourfive", "six"]


def test_wrapping_a_long_line_takes_time_in_proportion_to_it() -> None:
    assert len(wrap("流" * 400_000, 80)) == 10_000


def test_a_stream_gets_question_marks_for_what_its_encoding_lacks() -> None:
    assert printable("巡检✓ café", "cp1252") == "??? café"
    assert printable("巡检✓ café", "ascii") == "??? caf?"
    assert printable("巡检✓", "utf-8") == printable("巡检✓", None) == "巡检✓"


def test_the_measure_without_rich_agrees_on_common_text(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = "Monthly report 流量：ｆｕｌｌ한글 naïve e\u0301 🙂 — «ok» Ж"
    assert sum(map(standard_cells, sample)) == cell_len(sample)
    monkeypatch.setitem(sys.modules, "rich.cells", None)
    assert plaintext._measure.__wrapped__() is standard_cells
