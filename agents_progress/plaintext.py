"""Foreign text on a screen: made harmless, measured in cells, cut and wrapped. Pure, and without any dependency.

Texts of models, tools and people may hold escape sequences, bidirectional controls and line ends, with which they
could write anywhere on a screen or read as something else. :func:`clean` is the one door they pass. Widths err on the
wide side: a row that is a cell too short is harmless, one that wraps breaks a redraw.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache
from typing import Final

ESCAPES: Final = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}
"""Escapes that have a name; every other one is the number of its character."""
UNSAFE: Final = (
    (0x00, 0x1F),  # controls, ESC among them
    (0x7F, 0x9F),  # the 8-bit CSI among them
    *((0x61C, 0x61C), (0x200E, 0x200F), (0x202A, 0x202E), (0x2066, 0x2069)),  # bidirectional controls
    (0x2028, 0x2029),  # line and paragraph separators
    *((0xAD, 0xAD), (0x180E, 0x180E), (0x200B, 0x200B), (0x2060, 0x2065)),  # formatting that nobody sees
    *((0x206A, 0x206F), (0xFEFF, 0xFEFF), (0xFFF9, 0xFFFB), (0x13430, 0x1343F), (0x1BCA0, 0x1BCA3)),
    *((0x1D173, 0x1D17A), (0xE0000, 0xE007F)),
    (0xD800, 0xDFFF),  # lone surrogates, which no encoding carries
)
"""What never reaches a screen, from one code point to another.

The two joiners stay: Persian, Indic scripts and emoji are wrong without them.
"""
_unsafe: Final = re.compile("[" + "".join(f"{chr(first)}-{chr(last)}" for first, last in UNSAFE) + "]")

_from_right: Final = re.compile(
    "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufeff\U00010800-\U00010fff\U0001e800-\U0001efff]"  # Hebrew, Arabic, their kin
)
_JOINERS: Final = "\u200c\u200d"
_WIDE_FORM: Final = "\ufe0f"
_AS_THEY_LIKE: Final = frozenset(map(chr, (*range(0x1F1E6, 0x1F200), *range(0x1F3FB, 0x1F400))))
POINTS_PER_CELL: Final = 8
"""More code points than this in a cell are a pile of marks that would grow out of its row; they are cut."""


def clean(text: object) -> str:
    r"""A text as it may be shown in one row: every control, line end, bidirectional or unseen character as an escape.

    ESC becomes the four characters ``\x1b``. Nothing else changes; square brackets and backslashes are what they
    are.
    """
    return _unsafe.sub(_escaped, str(text))


def clean_lines(text: str) -> str:
    """A text as it may be shown in many rows: as :func:`clean`, but line ends (as LF) and tabs stay what they are."""
    rows = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join("\t".join(map(clean, row.split("\t"))) for row in rows)


def _escaped(match: re.Match[str]) -> str:
    character = match.group()
    code = ord(character)
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return ESCAPES.get(character) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def from_right(text: str) -> bool:
    """Whether anything in a text is written from right to left.

    Some terminals turn such a text around, together with the digits, points and spaces that follow it. Marks against
    that are no way out: not every terminal takes them for what they are. So nothing of ours may follow it in a row.
    """
    return not text.isascii() and _from_right.search(text) is not None


def printable(text: str, encoding: str | None) -> str:
    """The text with a question mark for every character that a stream's encoding lacks; None lacks nothing."""
    if encoding is None or text.isascii():
        return text
    return text.encode(encoding, "replace").decode(encoding)


@cache
def _measure() -> Callable[[str], int]:
    """The measure of the live display where that is installed, so that both agree; else of the standard library."""
    try:
        from rich.cells import cell_len
    except ImportError:
        return standard_cells
    return cell_len


def standard_cells(character: str) -> int:
    """Cells of one character by its Unicode properties alone: none for marks and joiners, two for wide ones."""
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


@lru_cache(4096)
def _cells(character: str) -> int:
    """Cells of one character: one of a selector of the wide form, which it may add, and two of what terminals disagree
    about: half a flag, a colour of skin, a character of a later Unicode.
    """
    if character == _WIDE_FORM:
        return 1
    if character in _AS_THEY_LIKE or unicodedata.category(character) == "Cn":
        return 2
    return _measure()(character)


def cell_count(text: str) -> int:
    """Cells that a cleaned text takes at most; wide characters take two.

    Characters are counted one by one, since not every terminal joins what a joiner joins.
    """
    return len(text) if text.isascii() else sum(map(_cells, text))


def _fits(text: str, start: int, room: int) -> int:
    """Where the part of the text ends that begins at ``start`` and takes at most ``room`` cells."""
    if text.isascii():
        return min(start + room, len(text))
    used, place = 0, start
    last = min(len(text), start + room * POINTS_PER_CELL)
    while place < last:
        used += _cells(text[place])
        if used > room:
            break
        place += 1
    return place


def cut(text: str, width: int) -> str:
    """A cleaned text in at most ``width`` cells; an ellipsis says that something is missing."""
    if _fits(text, 0, width) == len(text):
        return text
    return text[: _fits(text, 0, width - 1)].rstrip(_JOINERS + " ") + "…" if width > 0 else ""


def wrap(text: str, width: int) -> list[str]:
    """A cleaned text as rows of at most ``width`` cells (at least 2), broken at spaces where there are any."""
    rows: list[str] = []
    start = 0
    while (end := _fits(text, start, width)) < len(text):
        end = max(end, start + 1)
        space = text.rfind(" ", start + 1, end + 1)
        stop = space if space > 0 else end
        rows.append(text[start:stop])
        start = stop + 1 if space > 0 else stop
    return [*rows, text[start:]]
