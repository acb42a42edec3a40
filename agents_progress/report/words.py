"""How a report words what its facts hold: durations, kinds and states. Texts, not cleaned."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from agents_progress.headings import HEADINGS, Heading
from agents_progress.labels import LABELS, Label, in_words, label
from agents_progress.messages import Language

Facts: TypeAlias = Mapping[str, Any]
Word: TypeAlias = Label | Heading
_WORDS: Final = {str(name): texts for name, texts in (*LABELS.items(), *HEADINGS.items())}

_KINDS: Final[dict[str, Word]] = {
    "agent": "agent",
    "response": "model_response",
    "tool": "tool",
    "wait": "wait",
    "handoff": "handoff",
    "stage": "stage",
    "check": "verdict",
    "gap": "between_runs",
}
_STATES: Final[dict[str, Word]] = {
    "requested": "requested",
    "running": "running",
    "waiting": "running",
    "returned": "returned",
    "failed": "failed",
    "rejected": "rejected",
    "skipped": "skipped",
    "incomplete": "cut_short",
    "accepted": "accepted",
}
_ANSWERS: Final[dict[str, Word]] = {
    "waiting": "not_ended",
    "approved": "was_approved",
    "rejected": "rejected",
    "expired": "was_expired",
    "cancelled": "was_withdrawn",
}


def word(name: Word, language: Language, /, **values: object) -> str:
    """A label or a word of the report, with its values put in."""
    return _WORDS[name][language].format(**values)


def kind_and_name(span: Facts, language: Language) -> tuple[str, str]:
    """What a span is, in a word, and how it is called; the latter is foreign and may be empty."""
    if span["kind"] == "guardrail":
        return word("guardrail", language, name=span["name"], stage=span["note"]), ""
    return word(_KINDS[span["kind"]], language), span["name"]


def state(span: Facts, language: Language) -> str:
    """How a span stands: nothing for what has no states of its own."""
    if span["kind"] in ("agent", "gap", "guardrail"):
        return ""
    if span["kind"] == "wait":
        return word(_ANSWERS[span["state"]], language)
    return word(_STATES[span["state"]], language)


def note(span: Facts, language: Language) -> str | None:
    """What is known of a span besides; foreign, and None for nothing."""
    if span["kind"] == "guardrail":
        return None
    if span["kind"] == "wait":
        by = word("answered_by", language, name=span["note"]) if span["note"] else None
        return " · ".join(part for part in (by, label("edited", language) if span["edited"] else None) if part) or None
    reused = label("reused", language) if span["reused"] else None
    return " · ".join(part for part in (reused, in_words(span["note"], language), span["summary"]) if part) or None


def duration(milliseconds: int) -> str:
    """A length of time in at most two units, which may be broken between them only."""
    seconds, rest = divmod(milliseconds, 1000)
    if not seconds:
        return f"{rest}\N{NO-BREAK SPACE}ms"
    if seconds < 60:
        return f"{milliseconds / 1000:.2f}\N{NO-BREAK SPACE}s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes}\N{NO-BREAK SPACE}min {seconds:02d}\N{NO-BREAK SPACE}s"
    hours, minutes = divmod(minutes, 60)
    if hours < 48:
        return f"{hours}\N{NO-BREAK SPACE}h {minutes:02d}\N{NO-BREAK SPACE}min"
    return f"{hours // 24}\N{NO-BREAK SPACE}d {hours % 24}\N{NO-BREAK SPACE}h"


def value(found: object) -> str:
    """A text as it is, anything else as JSON; what is not known is a dash."""
    if found is None or found == []:
        return "–"
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)


def moment(stamp: str) -> str:
    """A stamp of an envelope for people: to the second, in UTC."""
    return f"{stamp[:10]} {stamp[11:19]} UTC"


def alone(text: str) -> str:
    """A word that leads on to something, standing alone: without its colon."""
    return text.rstrip(" :：")
