"""What must stand in the element by what Python's view and its pure texts say, part by part."""

from __future__ import annotations

import re
from typing import Any, Final

from agents_progress.labels import label
from agents_progress.plaintext import clean
from agents_progress.render import (
    KEPT,
    activity_text,
    answer_of,
    ending_texts,
    found_texts,
    open_questions,
    title_text,
    usage_texts,
)
from agents_progress.rows import Activity, Interaction
from agents_progress.view import RunView

_line_end: Final = re.compile(r"\r\n|\r|\n")
_tab: Final = "\t"


def expected(view: RunView, *, unfolded: bool = False, readonly: bool = False) -> dict[str, Any]:
    """Part name to what stands in it; shown.js gives the same form."""
    ended = [row for row in view.activities if not row.open]
    kept = [row for row in ended if row.state in KEPT]
    folded = [row for row in ended if row.state not in KEPT]
    found = [clean(text) for text in found_texts(view)]
    return {
        "status": view.status,
        "sentence": clean(view.message),
        "title": clean(title_text(view)),
        "details": [clean(text) for text in ending_texts(view)],
        "questions": [_question(row, readonly) for row in open_questions(view)],
        "work": [_row(row, view) for row in [*(row for row in view.activities if row.open), *kept]],
        "fold": _steps(len(folded), view) if folded else None,
        "folded": [_row(row, view) for row in folded] if unfolded else [],
        "answer": _answer(view),
        "files": found[: len(view.artifacts)],
        "sources": found[len(view.artifacts) :],
        "usage": [clean(text) for text in usage_texts(view)],
    }


def clean_lines(text: str) -> str:
    """A text as it may be shown in many lines: line ends are line feeds, and tabs stay."""
    return "\n".join(_tab.join(map(clean, line.split(_tab))) for line in _line_end.split(text))


def _steps(count: int, view: RunView) -> str:
    return label("step" if count == 1 else "steps", view.language, count=count)


def _row(row: Activity, view: RunView) -> dict[str, Any]:
    return {"id": row.activity_id, "state": row.state, "words": clean(activity_text(row, view.language))}


def _question(row: Interaction, readonly: bool) -> dict[str, Any]:
    """What is asked; it may be approved only where it is shown, or where the application allows it unseen."""
    what = clean(row.tool) + clean_lines(row.details or "")
    return {
        "id": row.interaction_id,
        "what": "".join(what.split()),
        "approve": not readonly and (row.details is not None or row.approve_blind),
        "reject": not readonly,
    }


def _answer(view: RunView) -> list[str] | None:
    answer = answer_of(view)
    return None if answer is None else [clean(label(answer.name, view.language)), clean_lines(answer.text)]
