"""Cancels and answers, asked through the journal: one way, whether the run's owner is this process or another one."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import aclosing, suppress
from dataclasses import dataclass
from typing import Any

from agents_progress.claim import next_run_id
from agents_progress.errors import JournalError
from agents_progress.events import is_run_id
from agents_progress.journal.base import Journal, Request, RunRow, Scope
from agents_progress.owner import CancelAnswer
from agents_progress.payloads import ENDINGS, CancelMode, Decision
from agents_progress.server.refusals import Refusal
from agents_progress.server.shown import view_of


@dataclass(frozen=True, slots=True)
class Answer:
    """What somebody decided about a question of a run."""

    interaction_id: str
    decision: Decision
    actor: str
    reason: str | None = None
    digest: str | None = None

    @property
    def body(self) -> dict[str, Any]:
        """As it is stored."""
        said = {"decision": self.decision, "actor": self.actor, "reason": self.reason, "digest": self.digest}
        return {name: value for name, value in said.items() if value is not None}


async def cancel(journal: Journal, row: RunRow, mode: CancelMode, actor: str, scope: Scope) -> CancelAnswer:
    """Ask the owner of a run to stop it, or the run that goes on from it after a pause."""
    while row.standing.outcome == "paused" and (later := await journal.run(next_run_id(row.run_id), scope=scope)):
        row = later
    if row.standing.ended and row.standing.outcome != "paused":
        return "already_ended"
    asked = {request.key for request in await journal.requests([row.run_id])}
    if "cancel.immediate" in asked:
        return "already_cancelling"
    request = Request(row.run_id, f"cancel.{mode}", {"mode": mode, "actor": actor})
    stored = await journal.ask(request, scope=scope)
    return "accepted" if stored.request_id == request.request_id else "already_cancelling"


async def answer(journal: Journal, row: RunRow, given: Answer, scope: Scope, within: float) -> str | None:
    """Answer a question of a run; gives the id of the run that goes on from it, None when none did ``within`` seconds.

    Of many answers one is used. Raises :class:`Refusal` for every other one, and for what is not asked (any more).
    """
    await _refuse_unasked(journal, row, given, scope)
    request = Request(row.run_id, f"answer.{given.interaction_id}", given.body)
    stored = await journal.ask(request, scope=scope)
    if stored.request_id != request.request_id:
        raise _answered(stored.body)
    return await _continued(journal, row.run_id, given, scope, within)


async def _refuse_unasked(journal: Journal, row: RunRow, given: Answer, scope: Scope) -> None:
    interaction = (await view_of(journal, row.run_id, scope)).interactions.get(given.interaction_id)
    if interaction is None:
        raise Refusal("unknown_interaction")
    later_id = next_run_id(row.run_id)
    if interaction.decision is None and await journal.run(later_id, scope=scope):
        interaction = (await view_of(journal, later_id, scope)).interactions.get(given.interaction_id, interaction)
        if interaction.decision is None:
            raise Refusal("not_waiting", f"the run went on; look at {later_id}", continued_as=later_id)
    if interaction.decision is not None:
        raise _answered({"decision": interaction.decision, "actor": interaction.actor})
    if row.standing.ended and row.standing.outcome != "paused":
        raise Refusal("not_waiting")
    if interaction.digest != given.digest:
        raise Refusal("digest_differs")


async def _continued(journal: Journal, run_id: str, given: Answer, scope: Scope, within: float) -> str | None:
    """Wait for the run that goes on, until it says what became of the question. The answer is stored, come what may."""
    later_id, begun = next_run_id(run_id), False
    if not is_run_id(later_id):
        return None
    with suppress(TimeoutError, JournalError):
        async with asyncio.timeout(within), aclosing(journal.tail(later_id, scope=scope)) as later:  # type: ignore[type-var]
            async for envelope in later:
                begun, payload = True, envelope.payload
                if envelope.type == "approval.resolved" and payload["interaction_id"] == given.interaction_id:
                    if (payload["decision"], payload.get("actor")) != (given.decision, given.actor):
                        raise _answered(payload)
                    break
                if envelope.type in ENDINGS:
                    raise Refusal("not_waiting", f"the run went on without this answer; look at {later_id}")
    return later_id if begun else None


def _answered(by: Mapping[str, Any]) -> Refusal:
    return Refusal("already_answered", decision=by["decision"], actor=by.get("actor"))
