"""How a worker moves one reaction on, one step at a time.

Every step is written down in the store first, and told in a run after that: a worker that dies in between leaves a
reaction that is due, and the next one says what is missing. Before a submission `uncertain` is stored; from then on
only the receipt says what happened.
"""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Final, TypeAlias, TypeVar

from agents_progress.claim import next_run_id, run_ids_before
from agents_progress.effects.entry import Hold
from agents_progress.effects.flow import Asking
from agents_progress.effects.reactions import entry as rules
from agents_progress.effects.reactions.entry import Entry
from agents_progress.effects.reactions.erasing import erase_task
from agents_progress.effects.reactions.heard import cancelled_by
from agents_progress.effects.reactions.preparing import prepare, result_of
from agents_progress.effects.reactions.reading import AGAIN_AT_MOST_S, AGAIN_S, given, objection, read, theirs
from agents_progress.effects.reactions.runs import (
    QUESTION,
    SUBMIT,
    UNCERTAIN,
    Silent,
    Steps,
    StepSource,
    Told,
    question,
    told,
)
from agents_progress.effects.reactions.store import ReactionStore, Rule, Writing
from agents_progress.effects.reactions.terms import Case, Decorated, Reaction, Receipt, Record, same
from agents_progress.errors import (
    AlreadyEnded,
    AlreadyResumed,
    JournalError,
    LeaseHeld,
    RunErased,
)
from agents_progress.journal.base import Journal, RunRow
from agents_progress.journal.threads import outcome_of
from agents_progress.keeper import expire, keeper_of
from agents_progress.options import Options
from agents_progress.plan import Beginning, Plan
from agents_progress.run import Run
from agents_progress.sdk.intercept import outside
from agents_progress.source import Source
from agents_progress.verify import Verdict

logger = logging.getLogger("agents_progress")

T = TypeVar("T")
Act: TypeAlias = Callable[[Entry, Silent], Awaitable[Entry]]

LOOK_S: Final = 0.5
LOOK_AT_MOST_S: Final = 60.0
"""Pauses between two looks for a receipt; each is twice as long as the one before."""

AT_ONCE: Final = 128
"""Names of what is due that a worker asks for at once, and takes one of: many, so that few workers want the same."""

RECEIPT_DIFFERS: Final = "receipt_differs"

_SAID: Final[Mapping[str, frozenset[str]]] = {
    "ready": frozenset({"waiting"}),
    "stopped": frozenset({"failed", "cancelled"}),
    "done": frozenset({"done"}),
}
"""The status of a run that says all there is to say of a reaction in this state."""


class _Taken(Exception):
    """Somebody else has the reaction, or a person moved it on."""


class Worker:
    """Takes what is due of some reactions, and moves it on."""

    def __init__(self, store: ReactionStore, journal: Journal, reactions: Mapping[str, Reaction]) -> None:
        self._store = store
        self._journal = journal
        self._reactions = reactions

    async def step(self) -> bool:
        """Move one reaction on, if one is due."""
        entry: Entry | None = (await Asking(self._store, self._take, self._give_back).later()).get()
        if entry is None:
            return False
        try:
            await self._move(entry)
        except _Taken:
            pass
        except asyncio.CancelledError:
            self._store.submit(self._give_back, entry)
            raise
        except (LeaseHeld, AlreadyEnded, AlreadyResumed):  # the run before has its owner still
            await self._let_go(entry, AGAIN_S)
        except RunErased:
            await self._asked(lambda: erase_task(self._store, entry.task_id))
        except JournalError as error:
            logger.warning("reaction %s waits: %s", entry.task_id, type(error).__name__)
            await self._let_go(entry, AGAIN_AT_MOST_S)
        finally:
            self._drop(entry)
        return True

    def _take(self) -> Entry | None:
        """In one thread with the lease's keeping: a blocked loop must not let it run out in between."""
        names = self._store.due(list(self._reactions), AT_ONCE)
        random.shuffle(names)
        for name in names:
            entry = self._store.change([name], lambda found, now: rules.taken(found, now, self._store.lease_s))
            if entry is not None:
                # Whether it is lost, the next move will tell.
                hold = Hold(entry.task_id, entry.generation)
                keeper_of(self._store, self._store.lease_s).hold(hold, lambda: None)
                return entry
        return None

    async def _move(self, entry: Entry) -> None:
        reaction = self._reactions[entry.reaction]
        act: Act | None = None
        if entry.state == "received":
            act = partial(self._prepare, reaction)
            if isinstance(reaction.prepare, Decorated):  # its own run is seen; ours follows, as the newest
                entry, act = await act(entry, Silent()), None
        elif entry.state == "approved":
            act = partial(self._submit, reaction)
        elif entry.state == "uncertain":
            act = await self._what_to_do_about(entry, reaction)
            if act is None:
                looks = entry.looks + 1
                await self._let_go(entry, min(LOOK_S * 2**looks, LOOK_AT_MOST_S), looks)
                return
        after = await self._told(entry, reaction, act)
        if after.state == "uncertain" and after.reason != RECEIPT_DIFFERS:
            await self._let_go(after, LOOK_S)
        else:
            await self._let_go(after, None)

    async def _what_to_do_about(self, entry: Entry, reaction: Reaction) -> Act | None:
        """None while there is no news of an uncertain one; then no run is written either."""
        arrived = await self._arrived(reaction, entry)
        if arrived is not False:
            return partial(self._confirm, reaction) if arrived else None
        (_, now) = await self._asked(lambda: self._store.look(entry.task_id))
        return partial(self._submit, reaction) if rules.may_resubmit(entry, reaction.resubmit_after, now) else None

    async def _arrived(self, reaction: Reaction, entry: Entry) -> bool | None:
        """Whether the target has a receipt. None when it cannot be asked, which says nothing: only one that has none
        lets it be submitted again.
        """
        try:
            return await _receipt(reaction, entry) is not None
        except Exception as error:  # noqa: BLE001 - the application's own
            logger.warning("reaction %s: no receipt: %s", entry.task_id, type(error).__name__)
            return None

    # The steps.

    async def _prepare(self, reaction: Reaction, entry: Entry, steps: Silent) -> Entry:
        record, reason = await self._read(reaction, entry, steps)
        if record is None or reason is not None:
            return await self._stop(entry, reason or "source_closed")
        case = Case(entry.task_id, entry.resource, entry.version, entry.action, record.content, entry.text, entry.label)
        await self._require_mine(entry)
        try:
            work = partial(theirs, lambda: prepare(reaction, entry, case, self._journal))
            output, reason = await steps.row("prepare", work, "tool_error")
        except Exception as error:  # noqa: BLE001 - the application's own
            logger.error("reaction %s: prepare failed: %s", entry.task_id, type(error).__name__)
            output, reason = None, "prepare_failed"
        result, unfit = result_of(output)
        reason = reason or unfit
        if reason is not None:
            return await self._stop(entry, reason)
        return await self._moved(
            entry, lambda found, now: rules.prepared(found, entry.generation, result, now), entry.grant
        )

    async def _submit(self, reaction: Reaction, entry: Entry, steps: Silent) -> Entry:
        """Check everything again, write down that it may happen from now on, submit, and read the receipt back."""
        _, reason = await self._read(reaction, entry, steps)
        if reason is not None:
            return await self._stop(entry, reason)

        def rule(found: rules.Found, now: float) -> tuple[tuple[Entry, bool], Writing]:
            after, may, writing = rules.submitting(found, entry.generation, reaction.resubmit_after, now)
            return (after, may), writing

        asked = time.monotonic()
        try:
            after, may = await self._change([entry.task_id], rule, entry.grant)
        except LookupError:
            raise _Taken from None
        if not may:
            return after
        if time.monotonic() - asked > self._store.lease_s and await self._asked(lambda: self._lost(entry)):
            raise _Taken  # this process was frozen, and somebody else is at it
        if entry.state == "approved" and entry.submits and await self._arrived(reaction, after) is not False:
            return await self._confirm(reaction, after, steps)  # somebody said that it did not arrive
        steps.begun(SUBMIT)
        acknowledged = await self._submitted(reaction, after)
        if acknowledged:
            steps.over(SUBMIT)
        after = await self._confirm(reaction, after, steps)
        if not acknowledged:  # then only the receipt tells
            steps.over(SUBMIT, None if after.state == "done" else UNCERTAIN)
        return after

    async def _submitted(self, reaction: Reaction, entry: Entry) -> bool:
        try:
            await theirs(lambda: reaction.target.submit(entry.key, json.loads(entry.result or "null")))
        except Exception as error:  # noqa: BLE001 - the application's own
            logger.warning("reaction %s: no acknowledgement: %s", entry.task_id, type(error).__name__)
            return False
        return True

    async def _confirm(self, reaction: Reaction, entry: Entry, steps: Silent) -> Entry:
        async def read() -> Receipt:
            receipt = await _receipt(reaction, entry)
            if receipt is None:
                raise LookupError("there is none so far")
            return receipt

        try:
            receipt = await steps.row("receipt", read, UNCERTAIN)
        except Exception as error:  # noqa: BLE001 - the application's own, or there is none
            logger.warning("reaction %s: no receipt: %s", entry.task_id, type(error).__name__)
            return entry
        if not same(receipt, entry.key, entry.result):
            logger.error("reaction %s: the receipt is not that of what was approved", entry.task_id)
            return await self._stop(entry, RECEIPT_DIFFERS)
        reference = str(receipt.reference)[:200]
        return await self._moved(entry, lambda found, now: rules.confirmed(found, entry.generation, reference, now))

    async def _read(self, reaction: Reaction, entry: Entry, steps: Silent) -> tuple[Record | None, str | None]:
        """The record, and why it does not let the reaction go on."""
        try:
            record = await steps.row(
                "read", lambda: read(reaction.source, entry.resource, reaction.patience_s), "tool_error"
            )
        except Exception as error:  # noqa: BLE001 - the application's own
            logger.error("reaction %s: its source cannot be read: %s", entry.task_id, type(error).__name__)
            return None, "source_unreadable"
        return record, objection(record, entry)

    # What is stored.

    async def _stop(self, entry: Entry, reason: str) -> Entry:
        return await self._moved(entry, lambda found, now: rules.stopped(found, entry.generation, reason, now))

    async def _moved(self, entry: Entry, rule: Rule[Entry | None], *beside: str) -> Entry:
        after = await self._change([entry.task_id], rule, *beside)
        if after is None:
            raise _Taken
        return after

    async def _let_go(self, entry: Entry, pause: float | None, looks: int = 0) -> None:
        generation = entry.generation
        await self._change([entry.task_id], lambda found, now: rules.later(found, generation, now, pause, looks))

    async def _require_mine(self, entry: Entry) -> None:
        """Leave what somebody else has moved on: this process was frozen, perhaps."""
        (document, _) = await self._asked(lambda: self._store.look(entry.task_id))
        if rules.mine([document], entry.generation) is None:
            raise _Taken

    def _lost(self, entry: Entry) -> bool:
        return bool(self._store.renew([Hold(entry.task_id, entry.generation)], self._store.lease_s))

    def _give_back(self, entry: Entry | None) -> None:
        """Whoever took it was stopped: another worker need not wait for the lease to run out."""
        if entry is not None:
            self._drop(entry)
            self._store.change([entry.task_id], lambda found, now: rules.later(found, entry.generation, now, 0.0))

    def _drop(self, entry: Entry) -> None:
        keeper_of(self._store, self._store.lease_s).drop(Hold(entry.task_id, entry.generation))

    async def _change(self, names: list[str], rule: Rule[T], *beside: str) -> T:
        return await self._asked(lambda: self._store.change(names, rule, beside))

    async def _asked(self, work: Callable[[], T]) -> T:
        return await outcome_of(self._store.submit(work))

    # What is told.

    async def _told(self, entry: Entry, reaction: Reaction, act: Act | None) -> Entry:
        """Write the run of a step, and of the state that it led to. Where it is still ours once the id of that run is
        known, whoever takes over later means the same run, which one of us gets.
        """
        before, run_id = await self._newest(entry.task_id)
        await self._require_mine(entry)
        if act is not None:
            await self._heed_cancels(entry, run_ids_before(run_id))
        if act is None and before is not None and before.status in _SAID.get(entry.state, ()):
            return entry
        steps, language = Steps(reaction.language), reaction.language
        reached = [entry]

        async def body() -> Told:
            if act is not None:
                reached[0] = await act(entry, steps)
            ending = told(reached[0], json.loads(reached[0].result or "null"), language)
            if ending.evidence.interrupted:
                steps.say(*ending.drafts)
                return Told(ending.evidence)
            return ending

        source = StepSource(reaction.name, steps, body, rejected=entry.decided == "rejected")
        plan = self._plan(entry, reaction, run_id)
        beginning = None
        if before is not None and before.status == "waiting":
            steps.asked.add(SUBMIT)
            beginning = _beginning(before, entry, reaction)
        else:
            plan = await plan.claimed()
        error = await _owned(plan, source, beginning, entry)
        if error is not None:
            raise error
        return reached[0]

    async def _heed_cancels(self, entry: Entry, run_ids: list[str]) -> None:
        """Use a request to stop before anything more is done: whoever hears it for the reaction may be late, and the
        pause was ended where it was made.
        """
        actor = None if entry.decided == "cancelled" else await cancelled_by(self._journal, run_ids)
        if actor is not None:
            await self._change([entry.task_id], lambda found, now: rules.cancelled(found, actor, now))
            await self._let_go(entry, 0.0)  # unless it stops, with which it is not ours any more
            raise _Taken

    async def _newest(self, task_id: str) -> tuple[RunRow | None, str]:
        """The newest run of ours, and the id of the next one. Raises :exc:`LeaseHeld` while it has an owner."""
        run_id, newest = task_id, None
        while (row := await self._journal.run(run_id)) is not None:
            newest, run_id = row, next_run_id(run_id)
        if newest is not None and not newest.standing.ended:
            await expire(self._journal)
            newest = await self._journal.run(newest.run_id)
            if newest is None or not newest.standing.ended:
                raise LeaseHeld(f"run {run_id} has to wait for the end of the one before")
        return newest, run_id

    def _plan(self, entry: Entry, reaction: Reaction, run_id: str) -> Plan:
        options = Options(
            owner=entry.owner,
            tenant=entry.tenant,
            title=entry.label or reaction.title,
            disclosure=reaction.disclosure,
            language=reaction.language,
            verify=lambda output: Verdict(True, check="receipt"),  # asked after success, which only a receipt gives
        )
        return options.plan(reaction.name, run_id=run_id, task_id=entry.task_id, journal=self._journal)


async def _owned(plan: Plan, source: StepSource, beginning: Beginning | None, entry: Entry) -> BaseException | None:
    """Own the run of some steps to its end; what a step or the journal raised, if one did."""

    async def start() -> Source:
        return source

    run = Run(plan, start, outside(), beginning)
    if entry.called_off:
        run.cancel(actor=entry.actor)
    try:
        await run
        await run.closed()
    except asyncio.CancelledError:
        run.cancel()
        await run.closed()
        raise
    return source.error or (run.error if isinstance(run.error, JournalError) else None)


def _beginning(before: RunRow, entry: Entry, reaction: Reaction) -> Beginning:
    decision = entry.decided or "cancelled"
    drafts = question(entry, reaction.language)
    return Beginning(before.run_id, reaction.name, drafts, {QUESTION: decision}, entry.actor)


async def _receipt(reaction: Reaction, entry: Entry) -> Receipt | None:
    return given(await theirs(lambda: reaction.target.receipt(entry.key)), Receipt)
