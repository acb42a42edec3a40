"""The end of a pause that nobody will answer: from its log alone, so that whoever looks can write it, once."""

from __future__ import annotations

from collections.abc import Iterator
from contextvars import copy_context
from typing import Final

from agents_progress.claim import follower
from agents_progress.disclosure import Disclosure, Draft
from agents_progress.errors import AlreadyResumed, AnswerNotUsed
from agents_progress.journal.base import EVERYTHING, Journal, Origin, RunRow
from agents_progress.pausing import expired, used
from agents_progress.payloads import Decision
from agents_progress.plan import Beginning, Plan
from agents_progress.run import Run
from agents_progress.source import CancelledPause, Source
from agents_progress.stored import view_of
from agents_progress.view import RunView

_AS_STORED = Disclosure(arguments="all", approval_details="all", max_chars=2**20)
"""What the log holds has passed the application's own screen already."""


async def end_pause(journal: Journal, row: RunRow, decision: Decision, actor: str | None = None) -> str | None:
    """Resolve every open question of a paused run as `cancelled` or `expired`, in a run that ends at once; its id.

    None when another run went on from it first.
    """
    later_id, later = await follower(journal, row.run_id)
    if later is not None:
        return None
    view, whose = await view_of(journal, row.run_id, EVERYTHING), row.origin
    drafts = tuple(restated(view))
    open_ones = [question.interaction_id for question in view.interactions.values() if question.decision is None]
    source = CancelledPause(view.agent or "", drafts)

    async def start() -> Source:
        return source

    plan = Plan(
        run_id=row.run_id,
        task_id=row.task_id,
        title=row.title or "",
        journal=journal,
        origin=Origin(owner=whose.owner, tenant=whose.tenant, labels=whose.labels),
        disclosure=_AS_STORED,
    )
    beginning = Beginning(row.run_id, source.agent, drafts, dict.fromkeys(open_ones, decision), actor)
    run = Run(plan.continued(later_id), start, copy_context(), beginning)
    if decision == "cancelled":
        run.cancel(actor=actor)
    try:
        await run
    except AlreadyResumed:
        return None
    finally:
        await used(journal, row.run_id, run.logger)
    await run.closed()
    return run.id


async def refuse_expired(journal: Journal, row: RunRow, view: RunView, wall: float) -> None:
    """End a pause of which a question can be answered no more, and raise :exc:`AnswerNotUsed`, which says so."""
    open_ones = [question for question in view.interactions.values() if question.decision is None]
    if any(expired(question.expires_at, wall) for question in open_ones):
        await end_pause(journal, row, "expired")
        raise AnswerNotUsed("expired")


_MORE: Final = ("approve_blind", "takes", "options_in", "edited_from")
"""What a question says in its ``x``."""


def restated(view: RunView) -> Iterator[Draft]:
    """The calls and questions that wait, as the log of a paused run has them."""
    for row in view.activities:
        if row.open and row.activity_id in view.tools:
            payload = {
                "call_id": row.activity_id,
                "name": row.name,
                "kind": row.kind,
                "title": row.title,
                "arguments": row.arguments,
            }
            yield "tool.requested", {name: value for name, value in payload.items() if value is not None}
    for question in view.interactions.values():
        if question.decision is None:
            asked = ("interaction_id", "tool", "title", "kind", "digest", "details", "expires_at")
            known = {name: value for name in asked if (value := getattr(question, name)) is not None}
            more = {name: value for name in _MORE if (value := getattr(question, name))}
            yield "approval.wait", {**known, "call_id": question.call_id, **({"x": more} if more else {})}
