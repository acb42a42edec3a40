"""What must stand in the element, by what Python's view and its pure texts say; compared part by part."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from agents_progress.labels import label
from agents_progress.plaintext import clean
from agents_progress.render import (
    KEPT,
    activity_text,
    answer_of,
    ending_texts,
    open_questions,
    title_text,
)
from agents_progress.rows import Activity, Interaction
from agents_progress.view import RunView

SHOWN: Final = (Path(__file__).parent / "shown.js").read_text(encoding="utf-8")
"""A function of a page: what its element shows, in the form of :func:`expected`."""
_line_end: Final = re.compile(r"\r\n|\r|\n")
_tab: Final = "\t"


def expected(view: RunView) -> dict[str, Any]:
    """Part name to what stands in it. Where nothing does, the part is empty."""
    kept, folded = _work(view)
    return {
        "status": view.status,
        "sentence": clean(view.message),
        "title": clean(title_text(view)),
        "details": [clean(text) for text in ending_texts(view)],
        "questions": [_question(row) for row in open_questions(view)],
        "work": [_row(row, view) for row in kept],
        "folded": [_row(row, view) for row in folded],
        "answer": _answer(view),
        "files": len(view.artifacts),
        "sources": [_address(item) for item in view.sources],
    }


def clean_lines(text: str) -> str:
    """A text as it may be shown in many lines: line ends are line feeds, and tabs stay."""
    return "\n".join(_tab.join(map(clean, line.split(_tab))) for line in _line_end.split(text))


def _work(view: RunView) -> tuple[list[Activity], list[Activity]]:
    """Rows that always stand there, the open ones first, and those that are folded away."""
    current = [row for row in view.activities if row.open]
    kept = [row for row in view.activities if row.state in KEPT]
    return [*current, *kept], [row for row in view.activities if not row.open and row.state not in KEPT]


def _row(row: Activity, view: RunView) -> dict[str, Any]:
    return {
        "id": row.activity_id,
        "state": row.state,
        "words": clean(activity_text(row, view.language)),
    }


def _question(row: Interaction) -> dict[str, Any]:
    """What is asked; it may be approved only where it is shown, or where the application said so."""
    may = row.details is not None or row.approve_blind
    return {"id": row.interaction_id, "details": None if row.details is None else clean_lines(row.details), "may": may}


def _answer(view: RunView) -> dict[str, Any] | None:
    answer = answer_of(view)
    if answer is None:
        return None
    return {"name": label(answer.name, view.language), "text": clean_lines(answer.text)}


def _address(item: Mapping[str, Any]) -> str | None:
    """Where a source leads: only addresses of the web lead anywhere."""
    url = item.get("url")
    return url if isinstance(url, str) and re.match(r"https?://", url, re.IGNORECASE) else None
