"""Paused runs whose owner is gone: this node goes on with those that were answered, and ends those nobody will answer.

Whoever claims the run that goes on does so alone, so every node may try. A pause that cannot go on here is left as it
is, with its answers, for a node that can.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from agents_progress import telemetry
from agents_progress.answers import CARRIED
from agents_progress.claim import follower, run_ids_before
from agents_progress.errors import AlreadyResumed, JournalError, NotPaused, ResumeError
from agents_progress.journal.base import EVERYTHING, Request, RunRow
from agents_progress.journal.pauses import Pause
from agents_progress.pausing import expired
from agents_progress.resuming import kept_as
from agents_progress.run import Run
from agents_progress.server.offered import Offered
from agents_progress.server.refusals import Refusal
from agents_progress.server.service import Service
from agents_progress.stored import view_of
from agents_progress.unanswered import end_pause

logger = logging.getLogger("agents_progress")

_ANSWER: Final = "answer."
SWEEP_S: Final = 5.0
"""How often pauses are looked at, in seconds. An owner that is there has as long to use an answer itself."""
TAKING_S: Final = 5.0
"""How long the claim of the run that goes on is waited for, in seconds."""


class Abandoned:
    """Takes up, on this node, what paused elsewhere. Belongs to the event loop of its service."""

    def __init__(self, service: Service, functions: Iterable[Offered]) -> None:
        self._service = service
        self._journal = service.journal
        self._functions = {kept_as(each.decorated): each for each in functions}
        self._asked_before: frozenset[str] = frozenset()
        self._until: dict[str, str | None] = {}
        self._told: set[tuple[str, str]] = set()

    async def sweep(self) -> None:
        """Take up what was answered for longer than an owner would need."""
        waiting = await self._journal.pauses()
        await self._expire(waiting)
        chains = {run_id: {*run_ids_before(run_id), run_id} for run_id in waiting}
        answered = {each.run_id for each in await self._answers(set().union(*chains.values()))}
        asked = frozenset(run_id for run_id, chain in chains.items() if chain & answered)
        for run_id in sorted(asked & self._asked_before):
            await self.take_up(run_id)
        self._asked_before = asked

    async def _expire(self, waiting: Sequence[str]) -> None:
        """Resolve what nobody answered in time."""
        for run_id in set(waiting) - self._until.keys():
            pause = await self._journal.pause(run_id)
            self._until[run_id] = None if pause is None else pause.expires_at
        self._until = {run_id: self._until[run_id] for run_id in waiting}
        for run_id in [run_id for run_id in waiting if expired(self._until[run_id], time.time())]:
            row = await self._journal.run(run_id)
            if row is not None and row.sealed and row.standing.outcome == "paused":
                await end_pause(self._journal, row, "expired")

    async def take_up(self, run_id: str) -> str | None:
        """Go on with an answered pause; the run that goes on from it, None when it cannot go on here."""
        row, pause = await self._journal.run(run_id), await self._journal.pause(run_id)
        if row is None or pause is None or not row.sealed:  # its owner is about to say that it paused
            return None
        try:
            return await self._go_on(row, pause)
        except (AlreadyResumed, NotPaused):
            later_id, later = await follower(self._journal, run_id)
            if later is None and row.standing.outcome == "paused":
                return None  # somebody is about to go on with it, or was killed before that
            await self._journal.drop_pause(run_id)  # its owner was killed before it did this
            return None if later is None else later_id
        except (ResumeError, Refusal) as error:
            self._tell(run_id, getattr(error, "code", type(error).__name__))
            return None

    async def _answers(self, run_ids: Collection[str]) -> list[Request]:
        requests = await self._journal.requests(run_ids)
        return [request for request in requests if request.key.startswith(_ANSWER)]

    async def _go_on(self, row: RunRow, pause: Pause) -> str | None:
        """Use the answers to what is open; one may have been given to a run before this one."""
        offered = self._functions.get(pause.function)
        view = await view_of(self._journal, row.run_id, EVERYTHING)
        open_ones = {name for name, question in view.interactions.items() if question.decision is None}
        answers = await self._answers([*run_ids_before(row.run_id), row.run_id])
        given = {request.key.removeprefix(_ANSWER): request.body for request in answers}
        used = {name: body for name, body in given.items() if name in open_ones}
        if offered is None or not used:
            return None
        account = row.origin.tenant, row.origin.owner or ""
        self._service.take_place(account)
        try:
            run = await self._resumed(offered, row.run_id, used)
        except BaseException:
            self._service.leave_place(account)
            raise
        self._service.hold(run, account)
        return await self._claimed(run)

    async def _resumed(self, offered: Offered, run_id: str, used: Mapping[str, Mapping[str, Any]]) -> Run:
        return await offered.decorated.using(journal=self._journal).resume(
            run_id,
            [name for name, body in used.items() if body["decision"] == "approved"],
            [name for name, body in used.items() if body["decision"] == "rejected"],
            actor={name: body["actor"] for name, body in used.items() if body.get("actor") is not None},
            digest={name: body.get("digest", "") for name, body in used.items()},
            **{each: {name: body[each] for name, body in used.items() if each in body} for each in CARRIED},
        )

    async def _claimed(self, run: Run) -> str | None:
        """The run that goes on, once it is known; None when that takes too long, as long as somebody has its lease."""
        with suppress(TimeoutError, JournalError):
            async with asyncio.timeout(TAKING_S):
                async for _ in run:
                    return run.id
                await run
        return None

    def _tell(self, run_id: str, code: str) -> None:
        """Say once why a run cannot go on here."""
        if (run_id, code) not in self._told:
            self._told.add((run_id, code))
            logger.warning(
                "agents_progress: paused run %s waits for a node that can go on with it (%s)",
                run_id,
                code,
                extra=telemetry.about(run_id),
            )
