"""A view as rows of text, for every display that shows text: pure, and clean.

Every foreign text passes :func:`~agents_progress.plaintext.clean` here, whole rows at once, so that none can be
forgotten. The rows are cut or wrapped to a width in cells, and name a style that a display may give them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from agents_progress.glance import cost_text
from agents_progress.labels import ANSWER_LABELS, DECISION_LABELS, NOTE_LABELS, Label, in_words, label
from agents_progress.messages import Language
from agents_progress.plaintext import POINTS_PER_CELL, clean, cut, from_right, wrap
from agents_progress.rows import Activity, Interaction
from agents_progress.view import RunView

__all__ = [
    "COUNTABLE",
    "DEEPEST",
    "DID_SOMETHING",
    "KEPT",
    "TO_BE_CHECKED",
    "Answer",
    "Line",
    "activity_line",
    "activity_text",
    "answer_lines",
    "answer_of",
    "ending_texts",
    "found_texts",
    "laid_out",
    "lines",
    "open_questions",
    "question_lines",
    "question_text",
    "reason_texts",
    "render",
    "row_text",
    "title_text",
    "usage_texts",
    "wrapped",
]

_piece: Final = re.compile(r'"(?:[^"\\]|\\.)*"|[{}\[\],:]|[^\s{}\[\],:"]+')
"""A string, a sign or a word of JSON."""
_line_end: Final = re.compile(r"\r\n|\r|\n")
LEAST_WIDTH: Final = 4
_INDENT: Final = "  "
"""Stands before every row that foreign text begins, so that no answer can pass for a status."""
_JOIN: Final = " · "
_OPEN_SHOWN: Final = 8
_ENDED_SHOWN: Final = 3
_WRAPPED_ROWS: Final = 4
_LEAST_WITH_ANSWER: Final = 6
"""On a lower screen the status needs all the room."""
_MARKS: Final = {
    "running": ("open", ">"),
    "requested": ("open", ">"),
    "failed": ("failed", "!"),
    "rejected": ("failed", "!"),
}
"""Style and mark of a row; no mark says that something worked."""
KEPT: Final = frozenset({"failed", "rejected"})
"""States of rows that are never folded away."""
DID_SOMETHING: Final[dict[str, Label]] = {
    "running": "running",
    "returned": "returned",
    "failed": "failed",
    "requested": "start_not_seen",
}
"""States of a tool that may have had an effect. Without hooks no start is ever seen, so `requested` proves
nothing."""
COUNTABLE: Final = 10**15
"""From here on a number is not written out."""
TO_BE_CHECKED: Final = frozenset({"cancelled", "failed", "incomplete", "unknown"})


DEEPEST: Final = 3
"""Rows that are nested deeper are indented no further."""


class Line(NamedTuple):
    """One row of a display: a name for its style, and its text, which is clean and no wider than was asked for."""

    style: str
    text: str


def lines(view: RunView, width: int = 80, height: int | None = None) -> list[Line]:
    """What may be shown of a run, as rows of at most ``width`` cells (at least 4), in the view's language.

    The status comes first, then what a person is asked, how it ended, the current work, and the newest answer. Work
    that returned is folded to its newest rows; work that failed or was refused stays. Counts appear only where the tool
    counted itself. With ``height`` long texts are cut, and the end of the answer is shown as far as that many rows hold
    it.
    """
    width = max(width, LEAST_WIDTH)
    most = None if height is None else _WRAPPED_ROWS
    edited = [question_text(row, view.language) for row in view.interactions.values() if row.edited]
    rows = [
        *(Line("title", row) for row in wrapped(_in_a_row(_title_parts(view), width), width, most)),
        *(Line(f"status.{view.status}", row) for row in wrapped(view.message, width)),
        *(line for row in open_questions(view) for line in question_lines(row, view.language, width, most)),
        *(Line("detail", row) for text in (*ending_texts(view), *edited) for row in wrapped(text, width, most)),
        *_work(view, width),
        *(
            Line("detail", row)
            for text in (*found_texts(view), *usage_texts(view))
            for row in wrapped(text, width, most)
        ),
    ]
    if height is None:
        return [*rows, *answer_lines(view, width, None)]
    answer = answer_lines(view, width, max(height - len(rows), height // 3)) if height >= _LEAST_WITH_ANSWER else []
    return [*rows[: height - len(answer)], *answer]


def render(view: RunView, width: int = 80) -> str:
    """The lines of a view as one text, each closed by a line feed."""
    return "".join(f"{row.text}\n" for row in lines(view, width))


def wrapped(text: str, width: int, most: int | None = None, lead: str = "") -> list[str]:
    """One foreign sentence as rows, at most so many; half of a sentence may say the opposite of the whole.

    ``lead`` is ours: it begins the first row, and the others are indented as far, by two cells at least.
    """
    indent = " " * max(len(lead), len(_INDENT))
    room = width - len(indent)
    if most is None:
        first, *others = wrap(clean(text), room)
    else:
        first, *others = wrap(clean(text[: room * most * POINTS_PER_CELL + 1]), room)
        if len(others) >= most:
            others = [*others[: most - 2], cut(others[most - 2] + " " * room, room)]
    return [lead + first, *(indent + row for row in others)]


def row_text(text: str, width: int) -> str:
    """One foreign text as one row; what cannot fit is not even looked at, for it may be megabytes."""
    return cut(clean(text[: width * POINTS_PER_CELL + 1]), width)


def _in_a_row(parts: Iterable[str], width: int) -> str:
    """Texts side by side, as much of each as could be shown. What is written from right to left comes last."""
    most = width * _WRAPPED_ROWS * POINTS_PER_CELL + 1
    return _JOIN.join(sorted((part[:most] for part in parts), key=from_right))


def title_text(view: RunView) -> str:
    """What the run is called, and the agent that works now. Not cleaned."""
    return _JOIN.join(_title_parts(view))


def _title_parts(view: RunView) -> list[str]:
    name = view.title or view.run_id
    return [name] if view.agent is None else [name, view.agent]


def ending_texts(view: RunView) -> list[str]:
    """What is known about how the run ended, beside the sentence of its status. Not cleaned."""
    found, names = reason_texts(view), _effects(view)
    if view.issues:
        found.append(label("issues", view.language, codes=", ".join(view.issues)))
    if names:
        found.append(label("effects", view.language, names=", ".join(names)))
    return found


def reason_texts(view: RunView) -> list[str]:
    """Why the run ended as it did, as far as it says so itself. Not cleaned."""
    language, terminal, verdict = view.language, view.terminal or {}, view.verdict or {}
    found: list[str] = []
    if "error" in terminal:
        found.append(label("error", language, **{name: terminal["error"][name] for name in ("code", "message")}))
    if "reason" in terminal:
        found.append(label("reason", language, reason=terminal["reason"]))
    if terminal.get("outcome") == "cancelled":
        who = terminal.get("requested_by")
        found.append(label("cancel_by", language, name=who) if who else label("cancel_by_nobody", language))
    if terminal.get("completed_anyway"):
        found.append(label("completed_anyway", language))
    if view.status in ("done", "rejected") and "check" in verdict:
        found.append(label("check", language, name=verdict["check"]))
    if view.status in ("done", "rejected") and "reason" in verdict:
        found.append(label("check_reason", language, reason=verdict["reason"]))
    found.extend(label("guardrail", language, name=item["name"], stage=item["stage"]) for item in view.guardrails)
    return found


def acted_text(state: str, note: str | None, language: Language) -> str:
    """How a tool that may have had an effect stands."""
    return label(NOTE_LABELS.get(note or "") or DID_SOMETHING[state], language)


def _effects(view: RunView) -> list[str]:
    """Tools that may have changed something in a run whose task is not finished."""
    if view.status not in TO_BE_CHECKED or not (view.standing.ended or view.standing.closed):
        return []
    return [
        f"{row.title} ({acted_text(row.state, row.note, view.language)})"
        for row in view.activities
        if row.kind not in ("handoff", "stage") and row.state in DID_SOMETHING
    ]


def open_questions(view: RunView) -> list[Interaction]:
    """Questions that can be answered: those of a run that waits, and never those of a run that is over."""
    return [row for row in view.interactions.values() if row.decision is None and view.status == "waiting"]


def question_lines(row: Interaction, language: Language, width: int, most: int | None = None) -> Iterator[Line]:
    """An open question with what is asked, exactly, where the application discloses that."""
    yield from (Line("question", text) for text in wrapped(question_text(row, language), width, most, "? "))
    details = row.details or ""
    for text in laid_out(details) if from_right(details) else [details] if details else []:
        yield from (Line("asked", _INDENT + part) for part in wrapped(text, width - len(_INDENT), most))


def laid_out(details: str) -> list[str]:
    """JSON with a row for each field; any other text line by line. Not cleaned.

    Nothing is left out, rounded or put in another order, and nothing follows what is written from right to left.
    """
    try:
        json.loads(details)
    except (ValueError, RecursionError):
        return details.splitlines() or [""]
    rows, depth, before = [""], 0, "."
    for piece in _piece.findall(details):
        closing = piece in "}]"
        depth -= closing
        if (before in ("{", "[", ",") and not closing) or (closing and before not in "{["):
            rows.append("  " * depth)
        text = json.dumps(json.loads(piece), ensure_ascii=False) if piece.startswith('"') else piece
        rows[-1] += f"{text} " if piece == ":" else text
        if piece == ":" and from_right(rows[-1]):
            rows.append("  " * (depth + 1))
        depth += piece in "{["
        before = piece
    return rows


def question_text(row: Interaction, language: Language) -> str:
    """A question to a person, or what became of it. Not cleaned."""
    name = "question" if row.decision is None else DECISION_LABELS[row.decision]
    text = label(name, language, title=row.title, tool=row.tool)
    if row.decision is None:
        return text if row.expires_at is None else text + _JOIN + label("expires", language, when=row.expires_at)
    if row.edited:
        text += _JOIN + label("edited" if row.actor is None else "edited_by", language, name=row.actor)
    return text


def _work(view: RunView, width: int) -> list[Line]:
    """Open rows first, then those that failed or were refused, then the newest of the others, and how many more."""
    activities = view.activities
    current = [row for row in activities if row.open]
    ended = [row for row in activities if not row.open]
    quiet = [row for row in ended if row.state not in KEPT]
    folded = len(quiet[:-_ENDED_SHOWN])
    shown = [line for row in current[:_OPEN_SHOWN] for line in _activity_lines(row, view.language, width)]
    if len(current) > _OPEN_SHOWN:
        more = label("more_open", view.language, count=len(current) - _OPEN_SHOWN)
        shown.extend(Line("open", row) for row in wrapped(more, width, lead="> "))
    for row in (*(row for row in ended if row.state in KEPT), *quiet[-_ENDED_SHOWN:]):
        shown.extend(_activity_lines(row, view.language, width))
    if folded:
        name: Label = "earlier_step" if folded == 1 else "earlier_steps"
        shown.extend(Line("ended", row) for row in wrapped(label(name, view.language, count=folded), width, lead="- "))
    return shown


def activity_text(row: Activity, language: Language) -> str:
    """One row of visible work: its state in words, so that no long title can push it out, then what it says itself.

    Not cleaned.
    """
    return f"{label(row.state, language)}: {_JOIN.join(_activity_parts(row, language))}"


def _activity_parts(row: Activity, language: Language) -> list[str]:
    parts = [row.title]
    if row.reused:
        parts.append(label("reused", language))
    if row.open:
        parts.extend(part for part in (_counts(row), row.message) if part)
    else:
        parts.extend(part for part in (_duration(row.duration_ms), in_words(row.note, language), row.summary) if part)
    return parts


def activity_line(row: Activity, language: Language, width: int) -> Line:
    """One row of visible work, indented by how deep it is nested; what does not fit is cut."""
    style, lead, text = _activity(row, language, width)
    return Line(style, row_text(lead + text, width))


def _activity_lines(row: Activity, language: Language, width: int) -> list[Line]:
    style, lead, text = _activity(row, language, width)
    return [Line(style, shown) for shown in wrapped(text, width, _WRAPPED_ROWS, lead)]


def _activity(row: Activity, language: Language, width: int) -> tuple[str, str, str]:
    """Its style, what stands before it, and its words."""
    depth = min(row.activity_id.count("/"), DEEPEST, width // (4 * len(_INDENT)))
    style, mark = _MARKS.get(row.state, ("ended", "-"))
    words = f"{label(row.state, language)}: {_in_a_row(_activity_parts(row, language), width)}"
    return style, f"{_INDENT * depth}{mark} ", words


def _counts(row: Activity) -> str:
    if row.current is None:
        return ""
    return _number(row.current) if row.total is None else f"{_number(row.current)}/{_number(row.total)}"


def _number(value: float) -> str:
    """A foreign number, which may have more digits than Python turns into text."""
    if not abs(value) < COUNTABLE:
        return "…"
    return str(int(value)) if value == int(value) else f"{value:.2f}"


def _duration(milliseconds: int | None) -> str:
    if milliseconds is None:
        return ""
    return f"{milliseconds} ms" if milliseconds < 1000 else f"{_number(min(milliseconds, 10**18) / 1000)} s"


def found_texts(view: RunView) -> Iterable[str]:
    """Files and sources, by name. Not cleaned."""
    for item in view.artifacts:
        names = {"name": item["name"], "media_type": item["media_type"], "size": _number(item["bytes"])}
        yield label("artifact", view.language, **names)
    for item in view.sources:
        title = " ".join(item[name] for name in ("title", "url") if item.get(name))
        yield label("source", view.language, title=title or item["kind"])


def usage_texts(view: RunView) -> Iterator[str]:
    """The tokens that the run took so far, and what they cost, as far as either is known. Not cleaned."""
    tokens = None if view.usage is None else view.usage["total_tokens"]
    if view.usage is not None and tokens is not None:
        amount = f"{tokens:,}" if tokens < COUNTABLE else "…"
        if view.usage["status"] != "reported":
            amount = label("at_least", view.language, amount=amount)
        yield label("tokens_used", view.language, amount=amount)
    if view.cost is not None:
        yield label("costs", view.language, amount=cost_text(view.cost, view.language))


class Answer(NamedTuple):
    """The newest answer under a name that says how much it is worth. The text is not cleaned."""

    name: Label
    text: str
    missing_start: bool


def answer_of(view: RunView) -> Answer | None:
    """What the run answered, whole or as far as it came; None where there is nothing of it."""
    newest = next((message for message in reversed(view.messages) if message.channel == "answer"), None)
    output = (view.terminal or {}).get("final_output")
    text = view.text if output is None else output
    if not text and output is None:
        return None
    name = ANSWER_LABELS[view.status]
    cut_off = output is None and newest is not None and not newest.complete
    if name == "answer_unconfirmed" and (cut_off or (view.terminal or {}).get("partial")):
        name = "answer_partial"
    missing_start = output is None and newest is not None and newest.missing_start
    return Answer(name, text or label("answer_empty", view.language), missing_start)


def answer_lines(view: RunView, width: int, room: int | None) -> list[Line]:
    """The newest answer as rows, the last of them where there is not room for all."""
    answer = answer_of(view)
    if answer is None:
        return []
    text = answer.text if room is None else _tail(answer.text, width * room)
    parts = _line_end.split(text.removesuffix("\n"))
    room_in_row = width - len(_INDENT)
    rows = [(_INDENT + row).rstrip() for part in parts for row in wrap(clean(part.expandtabs(4)), room_in_row)]
    if answer.missing_start:
        rows.insert(0, cut(_INDENT + label("beginning_missing", view.language), width))
    rows = rows if room is None else rows[-(room - 1) :]
    return [Line("label", cut(label(answer.name, view.language), width)), *(Line("text", row) for row in rows)]


def _tail(text: str, screen: int) -> str:
    """The end of a text, at least a screen of it: a redraw costs what the screen holds, not what the run wrote.

    It begins at a multiple of the screen, so that rows do not break elsewhere with every new character.
    """
    return text[max(len(text) // screen - 1, 0) * screen :]
