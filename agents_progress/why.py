"""Why a run shows what it shows: the evidence behind its ending, row by row, and who owns it. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final, NamedTuple

from agents_progress.journal.base import RunRow
from agents_progress.outcome import RULES, Evidence, Rule
from agents_progress.plaintext import clean
from agents_progress.view import RunView

_STATED: Final = ("outcome", "reason", "error", "partial", "completed_anyway", "requested_by")
_FIELDS: Final = tuple(item.name for item in fields(Evidence))


class Fact(NamedTuple):
    """One fact: what it is about, its name, its value as JSON has it, and whether it decided the ending."""

    about: str
    name: str
    value: Any
    decided: bool = False


def explain(view: RunView, row: RunRow | None, newest: RunRow | None = None) -> list[Fact]:
    """Everything that is known of how a run ended, or why it has not.

    ``row`` is what the journal knows of it, None where there is none; ``newest`` is the newest run of its task, when
    that goes on after a pause.
    """
    found = [*_standing(view), *_ending(view), *_verdict(view), *_open(view), *_edited(view)]
    if newest is not None:
        found += [Fact("continued", "as", newest.run_id), Fact("continued", "status", newest.status)]
    return [*found, *(_owner(row) if row is not None else ())]


def table(facts: Sequence[Fact]) -> list[str]:
    """The facts as rows of a table, each about what its row or the nearest one above says first."""
    width = max(len(clean(fact.name)) for fact in facts)
    rows, about = [], ""
    for fact in facts:
        heading, about = "" if fact.about == about else fact.about, fact.about
        mark = "  <- decided" if fact.decided else ""
        rows.append(f"{heading:<10}{clean(fact.name):<{width}}  {clean(_shown(fact.value))}{mark}")
    return rows


def _shown(value: object) -> str:
    """A text as it is, anything else as JSON; what is not known is a dash."""
    if value is None or value == []:
        return "-"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _standing(view: RunView) -> Iterator[Fact]:
    yield Fact("run", "status", view.status)
    yield Fact("run", "message", view.message)
    yield Fact("run", "run_id", view.run_id)
    yield Fact("run", "task_id", view.task_id)
    yield Fact("run", "title", view.title)
    yield Fact("run", "seq", view.seq)
    yield Fact("run", "issues", list(view.issues))
    yield Fact("run", "unsupported", view.standing.unsupported)
    yield Fact("run", "cancel_requested", view.standing.cancel_requested)


def _ending(view: RunView) -> Iterator[Fact]:
    """What the owner stated, the row of the ending table that its evidence fits first, and the evidence."""
    terminal, standing = view.terminal or {}, view.standing
    if standing.lost is not None:
        yield Fact("ending", "lost", standing.lost)
        yield from _decision(next((rule for rule in RULES if _leads_to(rule, standing.lost)), None))
        return
    if standing.outcome is None:
        yield Fact("ending", "outcome", None)
        return
    for name in _STATED:
        if name in terminal:
            yield Fact("ending", name, terminal[name])
    evidence = terminal.get("evidence") or {}
    if set(evidence) != set(_FIELDS):  # an older or newer release collected it
        yield from _collected(evidence, ())
        return
    rule, read = decision(Evidence(**evidence))
    yield from _decision(rule)
    if rule.kind != standing.outcome:
        yield Fact("ending", "table_says", rule.kind)
    yield from _collected(evidence, read)


def _decision(rule: Rule | None) -> Iterator[Fact]:
    if rule is not None:
        yield Fact("ending", "row", rule.number)


def _collected(evidence: Mapping[str, Any], read: Iterable[str]) -> Iterator[Fact]:
    for name, value in evidence.items():
        yield Fact("evidence", name, value, name in read)


def _leads_to(rule: Rule, reason: str) -> bool:
    return rule.kind == "unknown" and rule.reason(Evidence()) == reason


def decision(evidence: Evidence) -> tuple[Rule, frozenset[str]]:
    """The row of the ending table that decides on this evidence, and the fields that it looked at."""
    for rule in RULES:
        reading = _Reading(evidence)
        if rule.holds(reading):  # type: ignore[arg-type]
            return rule, frozenset(reading.read)
    raise AssertionError("the last row of the table always holds")


class _Reading:
    """Evidence that remembers what was asked of it."""

    def __init__(self, evidence: Evidence) -> None:
        self.read: list[str] = []
        self._evidence = evidence

    def __getattr__(self, name: str) -> Any:
        self.read.append(name)
        return getattr(self._evidence, name)


def _verdict(view: RunView) -> Iterator[Fact]:
    """A verdict that the view took in is bound to the digest of the published output; any other is an issue."""
    if view.verdict is None:
        yield Fact("verdict", "ok", None)
        return
    for name in ("ok", "check", "reason", "digest"):
        if name in view.verdict:
            yield Fact("verdict", name, view.verdict[name])
    yield Fact("verdict", "digest_matches", True)


def _open(view: RunView) -> Iterator[Fact]:
    for activity in view.activities:
        if activity.open:
            yield Fact("open", activity.activity_id, f"{activity.state}: {activity.title}")
    for interaction in view.interactions.values():
        if interaction.decision is None:
            yield Fact("open", interaction.interaction_id, f"waits for an answer: {interaction.title}")


def _edited(view: RunView) -> Iterator[Fact]:
    """Calls that were approved with other arguments than those that were asked about."""
    for question in view.interactions.values():
        if question.edited:
            said = f"arguments edited by {question.actor or 'somebody'}; what was shown: {question.edited_from}"
            yield Fact("edited", question.interaction_id, said)


def _owner(row: RunRow) -> Iterator[Fact]:
    origin = row.origin
    yield from (Fact("silence", "started_at", row.started_at), Fact("silence", "updated_at", row.updated_at))
    yield from (
        Fact("silence", "silent_s", _rounded(row.silent_s)),
        Fact("silence", "unread_s", _rounded(row.unread_s)),
    )
    yield Fact("lease", "generation", row.generation)
    yield Fact("lease", "left_s", _rounded(row.lease_left_s))
    yield Fact("lease", "ran_out", None if row.lease_left_s is None else row.lease_left_s <= 0)
    yield Fact("lease", "sealed", row.sealed)
    for name in ("owner", "tenant", "host", "pid"):
        yield Fact("origin", name, getattr(origin, name))
    yield from (Fact("labels", name, value) for name, value in origin.labels.items())
    yield from (Fact("versions", name, value) for name, value in origin.versions.items())


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
