"""The table of ``runs``: a row for each, in as many cells as there are.

What others wrote stands at the end of a row, so that a text from right to left turns nothing of ours around. An id and
a number are whole or not there; a text is cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from agents_progress.glance import Glance
from agents_progress.journal import RunRow
from agents_progress.labels import Label, age, label
from agents_progress.messages import Language
from agents_progress.plaintext import cell_count, clean, cut
from agents_progress.prices import amount_text

_COLUMNS: Final[tuple[Label, ...]] = (
    "run_name",
    "status_name",
    "age_name",
    "tokens_name",
    "cost_name",
    "activity_name",
    "title_name",
)
_TEXTS: Final = ("activity_name", "title_name")
_MAY_GO: Final[tuple[Label, ...]] = ("tokens_name", "title_name", "cost_name", "activity_name", "age_name")
"""Columns that are left out where there is no room, the first of them first. Titles are often all the same."""
_LEAST: Final = 10
"""Cells of a text, so that something can be read."""
_UNKNOWN: Final = "-"


def table(rows: Sequence[RunRow], continued: Mapping[str, str], language: Language, width: int | None) -> list[str]:
    """The rows under a heading. With a ``width`` none takes more cells, unless id and status do."""
    cells = {name: [label(name, language)] for name in _COLUMNS}
    for row in rows:
        for name, text in zip(_COLUMNS, _cells(row, continued.get(row.run_id), language), strict=True):
            cells[name].append(clean(text))
    columns = {name: texts for name, texts in cells.items() if name == "run_name" or set(texts[1:]) - {_UNKNOWN, ""}}
    widths = _widths({name: max(map(cell_count, texts)) for name, texts in columns.items()}, width)
    lines = zip(*(columns[name] for name in widths), strict=True)
    return ["  ".join(map(padded, line, widths.values())).rstrip() for line in lines]


def _cells(row: RunRow, continued_as: str | None, language: Language) -> tuple[str, ...]:
    glance = row.glance or Glance()  # where it is not known, nothing is said
    usage = glance.usage or {}
    tokens = usage.get("total_tokens")
    doubt = "+" if usage.get("status") == "partial" else ""
    work = glance.activity or ""
    if continued_as is not None:
        work = label("continued_as", language, run_id=continued_as)
    return (
        row.run_id,
        row.status,
        _UNKNOWN if row.silent_s is None else age(row.silent_s, language),
        _UNKNOWN if tokens is None else f"{tokens}{doubt}",
        _UNKNOWN if glance.cost is None else amount_text(glance.cost),
        work,
        row.title or "",
    )


def _widths(whole: dict[Label, int], width: int | None) -> dict[Label, int]:
    """The cells of each column that is shown."""
    if width is None:
        return whole
    least = {name: min(cells, _LEAST) if name in _TEXTS else cells for name, cells in whole.items()}
    for name in _MAY_GO:
        if _room(least, width) < 0:
            least.pop(name, None)
    wanted = {name: whole[name] - cells for name, cells in least.items()}
    for name in _TEXTS:  # the first one gets half of what is left over, or all that the other one does not want
        if name in least:
            room, others = max(_room(least, width), 0), sum(wanted.values()) - wanted[name]
            least[name] += min(wanted.pop(name), max(room - others, room // 2))
    return least


def _room(widths: Mapping[Label, int], width: int) -> int:
    return width - sum(widths.values()) - 2 * (len(widths) - 1)


def grid(lines: Sequence[Sequence[str]], most: int) -> list[str]:
    """Lines of as many texts each, which are clean already, in columns of at most so many cells."""
    widths = [min(max(map(cell_count, column)), most) for column in zip(*lines, strict=True)]
    return ["  ".join(map(padded, line, widths)).rstrip() for line in lines]


def padded(text: str, width: int) -> str:
    """A cell: cut, or filled up with spaces."""
    shown = cut(text, width)
    return shown + " " * (width - cell_count(shown))
