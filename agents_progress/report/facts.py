"""What a report says, as one JSON object. Only what the wire of a run carries, and the versions that it ran with.

Its fields, in this order; times in milliseconds count from the first event of the task, and null is what is not known:

- ``report`` names this form, ``written_at`` says when (RFC 3339), ``language`` in which the sentences are;
- ``run_id``, ``task_id``, ``title``, ``agent``, ``status``, ``message``, ``over``: the newest run, and whether it
  is over;
- ``row`` (``number``, ``sentence``): which row of the ending table decided; ``reasons``: sentences;
- ``effects`` (``run_id``, ``call_id``, ``title``, ``state``, ``note``): tools that may have changed something, where
  that is to be checked; ``issues`` (``run_id``, ``code``);
- ``answer`` (``name``, ``text``, ``missing_start``): the name says how far to trust it;
- ``check`` (``ok``, ``check``, ``reason``, ``digest``): the application's, of exactly this answer;
- ``questions``: to people, with what became of them;
- ``timeline`` (``started_at``, ``duration_ms``, ``pruned``, ``spans``): each span with ``kind``, ``id``,
  ``run_id``, ``depth``, ``name``, ``state``, ``start_ms``, ``begun_ms``, ``end_ms``, ``duration_ms``, ``open`` (no
  end was seen; the duration is until the last event), ``approximate`` (by wall clocks), ``note``, ``summary``,
  ``reused``, ``edited``, ``tokens``;
- ``usage``: counts of all runs together, and their ``status``; ``cost`` (``amount``, ``currency``, ``at_least``);
- ``evidence`` (``about``, ``name``, ``value``, ``decided``): what the ending rests on;
- ``sources``, ``artifacts``, ``runs``, ``older_runs``, ``versions``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any, Final

from agents_progress.clock import rfc3339
from agents_progress.journal.base import RunRow
from agents_progress.labels import label
from agents_progress.messages import ROWS, sentence
from agents_progress.prices import Cost, cost, cost_of, plus
from agents_progress.render import DID_SOMETHING, TO_BE_CHECKED, answer_of, reason_texts
from agents_progress.spans import TOKENS, Span
from agents_progress.timeline import Timeline
from agents_progress.view import RunView
from agents_progress.why import Fact, explain

FORMAT: Final = "agents-progress-report/1"
_SHOWN: Final = ("ending", "evidence")
_ARTIFACT: Final = ("artifact_id", "name", "media_type", "bytes", "sha256", "call_id")
_SOURCE: Final = ("kind", "title", "url")
_QUESTION: Final = ("interaction_id", "title", "tool", "details", "expires_at", "decision", "actor", "edited")


def gather(timeline: Timeline, rows: Sequence[RunRow], *, written_at: str, older_runs: bool = False) -> dict[str, Any]:
    """The facts of a report, in the form above.

    ``rows`` are what the journal knows of the runs that ``timeline`` has read, the oldest first, and at least one;
    ``older_runs`` says that the task has more.
    """
    views = [run.view for run in timeline.runs]
    newest = views[-1]
    spans = [_span(span, depth, timeline) for span, depth in timeline.spans()]
    evidence = [fact for fact in explain(newest, None) if fact.about in _SHOWN]
    return {
        "report": FORMAT,
        "written_at": written_at,
        "language": newest.language,
        **{name: getattr(newest, name) for name in ("run_id", "task_id", "title", "agent", "status", "message")},
        "over": newest.standing.ended and newest.standing.outcome != "paused",
        "row": _row(evidence, newest),
        "reasons": reason_texts(newest),
        "effects": _effects(newest, spans),
        "issues": [{"run_id": view.run_id, "code": code} for view in views for code in view.issues],
        "answer": _answer(newest),
        "check": _check(newest),
        "questions": _questions(timeline),
        "timeline": {
            "started_at": None if timeline.started_at is None else rfc3339(timeline.started_at),
            "duration_ms": timeline.last.ms,
            "pruned": any(run.pruned for run in timeline.runs),
            "spans": spans,
        },
        "usage": _usage(views),
        "cost": _cost(views),
        "evidence": [fact._asdict() for fact in evidence],
        "sources": [_some(item, _SOURCE) for view in views for item in view.sources],
        "artifacts": [_some(item, _ARTIFACT) for view in views for item in view.artifacts],
        "runs": _runs(timeline, rows),
        "older_runs": older_runs,
        "versions": dict(rows[-1].origin.versions),
    }


def _some(item: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    return {name: item.get(name) for name in names}


def _span(span: Span, depth: int, timeline: Timeline) -> dict[str, Any]:
    return {
        "kind": span.kind,
        "id": span.span_id,
        "run_id": span.run_id,
        "depth": depth,
        "name": span.name,
        "state": span.state,
        "start_ms": None if span.start is None else span.start.ms,
        "begun_ms": None if span.begun is None else span.begun.ms,
        "end_ms": None if span.end is None else span.end.ms,
        "duration_ms": span.duration_ms(timeline.last),
        "open": span.open,
        "approximate": span.approximate(timeline.last),
        "note": span.note,
        "summary": span.summary,
        "reused": span.reused,
        "edited": span.edited,
        "tokens": span.tokens,
    }


def _row(evidence: Sequence[Fact], view: RunView) -> dict[str, Any] | None:
    number = next((fact.value for fact in evidence if (fact.about, fact.name) == ("ending", "row")), None)
    return None if number is None else {"number": number, "sentence": ROWS[number][view.language]}


def _effects(newest: RunView, spans: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Tools of every run of the task, by the rule of :mod:`agents_progress.render`."""
    if newest.status not in TO_BE_CHECKED or not newest.standing.ended:
        return []
    return [
        {"run_id": span["run_id"], "call_id": span["id"], "title": span["name"], **_some(span, ("state", "note"))}
        for span in spans
        if span["kind"] == "tool" and span["state"] in DID_SOMETHING
    ]


def _answer(view: RunView) -> dict[str, Any] | None:
    answer = answer_of(view)
    return None if answer is None else {**answer._asdict(), "name": label(answer.name, view.language)}


def _check(view: RunView) -> dict[str, Any] | None:
    return None if view.verdict is None else _some(view.verdict, ("ok", "check", "reason", "digest"))


def _questions(timeline: Timeline) -> list[dict[str, Any]]:
    """Each once, as the newest run that asks it has it."""
    asked: dict[int, dict[str, Any]] = {}
    for run in timeline.runs:
        for name, span in run.questions.items():
            question = run.view.interactions[name]
            asked[id(span)] = {"run_id": span.run_id, **{field: getattr(question, field) for field in _QUESTION}}
    return list(asked.values())


def _usage(views: Sequence[RunView]) -> dict[str, Any] | None:
    """What the runs took together; a count that none of them reported is null."""
    every = [view.usage for view in views if view.usage is not None]
    if not every:
        return None
    statuses = {usage["status"] for usage in every}
    found: dict[str, Any] = {"status": statuses.pop() if len(statuses) == 1 else "partial"}
    for name in ("requests", *TOKENS):
        known = [usage[name] for usage in every if usage[name] is not None]
        found[name] = sum(known) if known else None
    return found


def _cost(views: Sequence[RunView]) -> Cost | None:
    """What the runs cost together, where the application gave prices; at least that, where some cost is not known."""
    every = [cost_of(view.usage) for view in views if view.usage is not None]
    known = [each for each in every if each is not None]
    currencies = {each["currency"] for each in known}
    if len(currencies) != 1:
        return None
    amount = reduce(plus, (Decimal(each["amount"]) for each in known))
    at_least = len(known) < len(every) or any(each["at_least"] for each in known)
    return cost(amount, currencies.pop(), at_least=at_least)


def _runs(timeline: Timeline, rows: Sequence[RunRow]) -> list[dict[str, Any]]:
    found = []
    later = {run.resumed_from: run.view.run_id for run in timeline.runs}
    for run, row in zip(timeline.runs, rows, strict=True):
        view, status = run.view, run.view.status
        known = run.base is not None
        found.append(
            {
                "run_id": view.run_id,
                "status": status,
                "message": sentence(status, view.language),
                "resumed_from": run.resumed_from,
                "continued_as": later.get(view.run_id),
                "started_at": row.started_at,
                "updated_at": row.updated_at,
                "start_ms": run.offset if known else None,
                "duration_ms": run.newest - (run.base or 0) if known and not run.pruned else None,
                "events": view.seq,
                "pruned": run.pruned,
            }
        )
    return found
