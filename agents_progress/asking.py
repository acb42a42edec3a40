"""Cancels and answers, asked through the journal: one way, whether the run's owner is this process or another one."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, Final, cast

from agents_progress.answers import CARRIED, Reply, refuse
from agents_progress.claim import follower
from agents_progress.errors import AnswerNotUsed, JournalError
from agents_progress.events import Envelope
from agents_progress.journal.base import EVERYTHING, Journal, Request, RunRow, Scope
from agents_progress.pausing import refuse_actor
from agents_progress.payloads import CancelAnswer, CancelMode, Decision
from agents_progress.stored import view_of
from agents_progress.unanswered import end_pause, refuse_expired


@dataclass(frozen=True, slots=True)
class Answer:
    """What somebody decided about a question of a run, and what the answer carries: see :meth:`Run.resume`."""

    interaction_id: str
    decision: Decision
    actor: str
    reason: str | None = field(default=None, repr=False)
    digest: str | None = None
    arguments: Mapping[str, Any] | None = field(default=None, repr=False)
    text: str | None = field(default=None, repr=False)

    def body(self, together: Sequence[str]) -> dict[str, Any]:
        """As it is stored. Where several questions are answered together, the run waits for all of these answers."""
        body = {name: value for name in _STORED if (value := getattr(self, name)) is not None}
        return {**body, "together": list(together)} if len(together) > 1 else body

    def repeats(self, body: Mapping[str, Any]) -> bool:
        """Whether an answer that is stored says the same, from the same actor."""
        return all(body.get(name) == getattr(self, name) for name in ("decision", "actor", *CARRIED))

    @property
    def reply(self) -> Reply:
        """As it is looked at."""
        return Reply(self.decision == "approved", self.actor, self.arguments, self.text, self.reason)


_STORED: Final = ("decision", "actor", "digest", *CARRIED)


async def cancel(
    journal: Journal, row: RunRow, mode: CancelMode, actor: str, scope: Scope, *, within: float = 0.0
) -> CancelAnswer:
    """Ask the owner of a run to stop it, or the run that goes on from it after a pause.

    A pause whose owner does not cancel it ``within`` seconds is cancelled here.
    """
    while later := await _later(journal, row, scope):
        row = later
    paused = row.standing.outcome == "paused"
    if row.standing.ended and not paused:
        return "already_ended"
    asked = {request.key for request in await journal.requests([row.run_id])}
    if "cancel.immediate" in asked and not paused:
        return "already_cancelling"
    request = Request(row.run_id, f"cancel.{mode}", {"mode": mode, "actor": actor})
    stored = await journal.ask(request, scope=scope)
    if paused and not await _begun(journal, row.run_id, scope, within):
        await end_pause(journal, row, "cancelled", actor)
        return "accepted"
    return "accepted" if stored.request_id == request.request_id else "already_cancelling"


async def _begun(journal: Journal, run_id: str, scope: Scope, within: float) -> bool:
    """Wait for the run that goes on from a paused one; whether it has begun."""
    later_id, _ = await follower(journal, run_id, scope)
    later = cast("AsyncGenerator[Envelope, None]", journal.tail(later_id, scope=scope))
    with suppress(TimeoutError, JournalError):
        async with asyncio.timeout(within), aclosing(later):
            async for _ in later:
                return True
    return False


async def answer(
    journal: Journal, row: RunRow, given: Answer, *, scope: Scope = EVERYTHING, within: float
) -> str | None:
    """Answer a question of a run; gives the id of the run that goes on from it, None when none did ``within`` seconds.

    Of many answers one is used. Raises :exc:`AnswerNotUsed` for every other one, and for what is not asked (any more).
    """
    return await answer_all(journal, row, [given], scope=scope, within=within)


async def answer_all(
    journal: Journal,
    row: RunRow,
    given: Sequence[Answer],
    *,
    scope: Scope = EVERYTHING,
    within: float,
    again: bool = False,
) -> str | None:
    """Answer several questions of a run together, so that one run goes on from all of them; as :func:`answer` does.

    With ``again`` what the same actor answered before in the same words counts as answered now.
    """
    run_id, fresh = row.run_id, list[Answer]()
    for each in given:
        if (where := await _where_open(journal, row, each, scope, again)) is not None:
            run_id = where
            fresh.append(each)
    together = [each.interaction_id for each in given]
    for each in fresh:
        request = Request(run_id, f"answer.{each.interaction_id}", each.body(together))
        stored = await journal.ask(request, scope=scope)
        if stored.request_id != request.request_id:
            _refuse_other(each, stored.body, again)
    return await _continued(journal, run_id, given[-1], scope, within)


async def _where_open(journal: Journal, row: RunRow, given: Answer, scope: Scope, again: bool) -> str | None:
    """The run in which a question is open: this one, or one that goes on from it, on answers to other questions. None
    for an answer that was used and is given ``again``.
    """
    asked, key = list[Request](), f"answer.{given.interaction_id}"
    while True:
        view = await view_of(journal, row.run_id, scope)
        question = view.interactions.get(given.interaction_id)
        if question is None:
            raise AnswerNotUsed("not_waiting" if asked else "unknown_interaction")
        if question.decision is not None:
            by: Mapping[str, Any] = {"decision": question.decision, "actor": question.actor}
            used = (each.body for each in asked if each.key == key and by.items() <= each.body.items())
            _refuse_other(given, next(used, by), again)
            return None
        asked += await journal.requests([row.run_id])
        later = await _later(journal, row, scope)
        if later is None:
            break
        row = later
    for request in asked:
        if request.key == key:
            _refuse_other(given, request.body, again)
            return None
    if view.standing.ended and view.standing.outcome != "paused":
        raise AnswerNotUsed("not_waiting")
    await refuse_expired(journal, row, view, time.time())
    if question.digest != given.digest:
        raise AnswerNotUsed("digest_differs")
    refuse(question, given.reply)
    if (pause := await journal.pause(row.run_id, scope=scope)) is not None:
        refuse_actor(pause.answerers.get(given.interaction_id), given.actor)
    return row.run_id


async def _later(journal: Journal, row: RunRow, scope: Scope) -> RunRow | None:
    """The run that goes on from a paused one."""
    return (await follower(journal, row.run_id, scope))[1] if row.standing.outcome == "paused" else None


async def _continued(journal: Journal, run_id: str, given: Answer, scope: Scope, within: float) -> str | None:
    """Wait for the run that goes on, until it says what became of the question. The answer is stored, come what may."""
    (later_id, _), begun = await follower(journal, run_id, scope), False
    later = cast("AsyncGenerator[Envelope, None]", journal.tail(later_id, scope=scope))
    with suppress(TimeoutError, JournalError):
        async with asyncio.timeout(within), aclosing(later):
            async for envelope in later:
                begun, payload = True, envelope.payload
                if envelope.type == "approval.resolved" and payload["interaction_id"] == given.interaction_id:
                    if (payload["decision"], payload.get("actor")) != (given.decision, given.actor):
                        raise _answered(payload)
                    break
    return later_id if begun else None


def _refuse_other(given: Answer, by: Mapping[str, Any], again: bool) -> None:
    """Raise :exc:`AnswerNotUsed` after the answer that was first, unless it is the same ``again``."""
    if not (again and given.repeats(by)):
        raise _answered(by)


def _answered(by: Mapping[str, Any]) -> AnswerNotUsed:
    return AnswerNotUsed("already_answered", decision=by["decision"], actor=by.get("actor"))
