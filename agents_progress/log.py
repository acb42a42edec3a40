"""The log of one run, as its owner writes it: screen, coalesce, stamp, append, and only then deliver.

The pump never waits for the disk: a batch is what gathered while the last one was written. A reader gets an envelope
only after the journal has it. A journal that is away is waited for, within a bound. When it fails, the log is broken:
nothing more is delivered, and readers are left without an ending.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import Any, Final
from weakref import WeakSet

from agents_progress import telemetry
from agents_progress.caps import Caps, Quota
from agents_progress.claim import Claim
from agents_progress.clock import Clock, Stamp
from agents_progress.coalesce import Coalesce, Gathering
from agents_progress.disclosure import TEXTS, Screen
from agents_progress.errors import Fenced, JournalUnavailable
from agents_progress.events import Envelope
from agents_progress.journal.base import Journal, Origin
from agents_progress.keeper import Tenure
from agents_progress.snapshots import WORTH_IT, Snapshots
from agents_progress.telemetry import RunLogger
from agents_progress.view import RunView

KEPT: Final = 1024
"""Envelopes kept in memory for readers that are nearly up to date; the others read from the journal."""

BATCH: Final = 4096
"""Envelopes stored at once, at most: what a batch takes in memory while it is written."""
LAG: Final = 512
"""Envelopes that may wait for the journal before the loop makes room for it."""
RETRY_S: Final = 0.05
RETRY_AT_MOST_S: Final = 1.0
"""Pauses between two attempts to reach a journal that is away; each is twice the one before."""
UNSUPPORTED: Final = frozenset({"adapter.unsupported", "note.unsupported"})
BREATH_S: Final = 0.00005
"""As long as a sleeping thread needs to wake."""
LATE_S: Final = 0.1
RHYTHM_S: Final = 0.001
"""When an append takes longer than the first, the loop breathes at the pace of the second: of many runs each may have
little that waits, and all together starve the journal's thread.
"""

_reached: Final[WeakSet[Journal]] = WeakSet()  # the journals that took something in this process
_breathed = 0.0  # when any loop of this process breathed last


class RunLog:
    """Write with :meth:`write`, wait with :meth:`flush`, end with :meth:`close`. Belongs to one event loop.

    ``on_fault(stage, error)`` is told when the journal or the view fails; nothing here raises into the caller.
    """

    def __init__(
        self,
        run_id: str,
        journal: Journal,
        view: RunView,
        screen: Screen,
        *,
        clock: Clock,
        coalesce: Coalesce | None,
        caps: Caps,
        origin: Origin,
        patience: float,
        logger: RunLogger,
        on_fault: Callable[[str, BaseException], None],
    ) -> None:
        self.run_id = run_id
        self.journal = journal
        self.view = view
        self.screen = screen
        self.seq = 0
        self.closed = self.broken = False
        self._origin, self._patience = origin, patience
        self._logger, self._on_fault = logger, on_fault
        self._quota = Quota(caps)
        self._pending_at_most, self._stored_bytes = caps.pending, 0
        self._monotonic = clock.monotonic
        self._gathering = None if coalesce is None else Gathering(coalesce, clock.monotonic, self._say)
        self._now = Stamp(clock).now
        self._loop = asyncio.get_running_loop()
        self._indexes: dict[str | tuple[str, str], int] = {}
        self._pending: list[Envelope] = []
        self._recent: list[Envelope] = []
        self._waiters: list[asyncio.Future[None]] = []
        self._committing: asyncio.Task[None] | None = None
        self._unclaimed = True
        self._hold(Tenure(journal, run_id))
        self._hurry = asyncio.Event()
        self._appending = self._not_before = 0.0
        self._snapshots = Snapshots(journal, view, logger)
        telemetry.watch(self)

    def adopt(self, claim: Claim) -> None:
        """Go on with a run that was claimed already, after what its log holds."""
        self._hold(claim.tenure)
        self._unclaimed = False
        if claim.said:
            self.seq = claim.said[-1].seq
            self._deliver(claim.said)

    def _hold(self, tenure: Tenure) -> None:
        self.tenure, tenure.lost, tenure.logger = tenure, self._lost, self._logger

    @property
    def held(self) -> bool:
        """Whether the run is ours in the journal."""
        return self.tenure.begun and not self.broken

    # Writing.

    def write(self, type_: str, payload: dict[str, Any]) -> None:
        """Take in one draft."""
        try:
            if type_ == TEXTS:
                self._write_texts(payload["item_id"], payload["texts"])
                return
            for screened_type, screened in self.screen.pass_on(type_, payload):
                if screened_type == "text.delta" and self._gathering is not None:
                    self._gathering.add(screened["item_id"], screened.get("channel"), (screened["text"],))
                else:
                    self._release()
                    self._say(screened_type, screened)
        except Exception as error:  # noqa: BLE001 - what cannot be screened does not leave, and does not fail the run
            self._on_fault("disclose", error)

    def _write_texts(self, item_id: str, texts: Sequence[str]) -> None:
        """Deltas of an answer: most of what most runs say, so what needs no screen takes the shortest way."""
        if not self.screen.transparent:
            for text in texts:
                self.write("text.delta", {"item_id": item_id, "text": text})
        elif self._gathering is not None:
            self._gathering.add(item_id, None, texts)
        elif self._quota.take(item_id, texts):
            self._stamp_texts(item_id, texts)
        else:
            for text in texts:
                self._say("text.delta", {"item_id": item_id, "text": text})

    def write_lost(self, reason: str) -> None:
        """Write that no ending is known. The reason is one of ours, so it passes even when screening is at fault."""
        self._release()
        self._stamp("run.lost", {"reason": reason})

    @property
    def pending_bytes(self) -> int:
        """What was written and is not stored yet, as an estimate."""
        return self._quota.bytes - self._stored_bytes

    @property
    def final_output(self) -> str | None:
        """The final output as the ending carries it: masked, and cut to its cap."""
        return self._quota.final_output

    def breathe(self) -> None:
        """Let the journal's thread have the interpreter for a moment when it lags, longer the further.

        A loop that is never idle starves it: at every turn it gives the interpreter away and takes it back before the
        thread has woken (one commit was seen to take six seconds). At the pace of a real model the loop is mostly idle.
        """
        global _breathed  # noqa: PLW0603 - the interpreter is shared by all loops
        if not self._appending:
            return
        lag, now = len(self._pending) - LAG, time.monotonic()
        if lag > 0:
            time.sleep(BREATH_S * (1 + lag // 128))
        elif now > self._appending + LATE_S and now > _breathed + RHYTHM_S:
            time.sleep(BREATH_S)
            _breathed = now

    async def flush(self) -> None:
        """Wait until everything written so far is stored and delivered, or the log is broken."""
        self._release()
        self._hurry.set()
        while self._pending or self._committing is not None:
            await asyncio.shield(self._commit())
        self._hurry.clear()

    async def close(self) -> None:
        """Store the rest and end every reader."""
        await self.flush()
        self._snapshots.grown(self.seq, WORTH_IT)
        self.closed = True
        if self._gathering is not None:
            self._gathering.close()
        self._wake()

    async def seal(self) -> None:
        """Tell the journal that nothing more comes. A broken log is left to run out."""
        if self.broken:
            self.tenure.leave()
        else:
            await self.tenure.end()
            await self._snapshots.last(self.seq)

    def abandon(self) -> None:
        """End every reader without waiting for the journal; what is not stored yet is not said."""
        self.broken = self.closed = True
        self._snapshots.usable = False
        self.tenure.leave()
        self.view.close_transport()
        if self._gathering is not None:
            self._gathering.close()
        if self._committing is not None:
            self._committing.cancel()
        self._wake()

    def _release(self) -> None:
        if self._gathering is not None:
            self._gathering.release()

    def _say(self, type_: str, payload: dict[str, Any]) -> None:
        """Stamp as much of a draft as the caps let pass."""
        for passed_type, passed in self._quota.pass_on(type_, payload):
            self._stamp(passed_type, self._indexed(passed_type, passed))
        if type_ in UNSUPPORTED:
            telemetry.tell("adapter.unsupported", 1, what=payload["what"], name=payload["name"])

    def _indexed(self, type_: str, payload: dict[str, Any]) -> dict[str, Any]:
        """A delta with its place among the deltas of its item; any other payload as it is."""
        if type_ == "text.delta":
            item = payload["item_id"] if "channel" not in payload else (payload["item_id"], payload["channel"])
        elif type_ == "tool.arguments.delta":
            item = payload["call_id"], "arguments"
        else:
            return payload
        payload["index"] = index = self._indexes.get(item, 0)
        self._indexes[item] = index + 1
        return payload

    def _stamp(self, type_: str, payload: dict[str, Any]) -> None:
        self.seq = seq = self.seq + 1
        fields = (f"{self.run_id}:{seq}", self.run_id, seq, type_, self._now(), payload)
        self._pending.append(tuple.__new__(Envelope, fields))
        self._stamped()

    def _stamp_texts(self, item_id: str, texts: Sequence[str]) -> None:
        run_id, seq, index, moment = self.run_id, self.seq, self._indexes.get(item_id, 0), self._now()
        add, new = self._pending.append, tuple.__new__
        for text in texts:
            seq += 1
            payload = {"item_id": item_id, "text": text, "index": index}
            add(new(Envelope, (f"{run_id}:{seq}", run_id, seq, "text.delta", moment, payload)))
            index += 1
        self.seq, self._indexes[item_id] = seq, index
        self._stamped()

    def _stamped(self) -> None:
        """Have it stored. When too much waits for that, the log is given up at once, the append under way too."""
        if self.pending_bytes > self._pending_at_most and not self.broken:
            waiting = f"{self.pending_bytes / 2**20:.0f} MiB"
            self.fail(JournalUnavailable(f"{waiting} wait for the journal; is it reachable, and fast enough?"))
            if self._appending and not self._bound.expired():
                self._bound.reschedule(self._loop.time())
        if self._committing is None:
            self._commit()

    # Storing and delivering.

    def _commit(self) -> asyncio.Task[None]:
        if self._committing is None:
            self._committing = self._loop.create_task(self._store_pending())
        return self._committing

    async def _store_pending(self) -> None:
        batch: list[Envelope] = []
        try:
            while self._pending:
                await self._gather_more()
                share = self.pending_bytes * min(BATCH, len(self._pending)) // len(self._pending)
                batch, self._pending = self._pending[:BATCH], self._pending[BATCH:]
                if not self.broken:
                    await self._store(batch)
                batch = []
                self._stored_bytes += share
        except asyncio.CancelledError:
            # A loop that shuts down cancels this task too; the owner flushes again, and a repeated append changes
            # nothing.
            self._pending = [*batch, *self._pending]
            raise
        finally:
            self._committing = None

    async def _gather_more(self) -> None:
        """Leave the journal's gap between two batches, unless somebody waits for this one or it is large already."""
        gap = self._not_before - self._monotonic()
        if gap > 0 and not self._hurry.is_set() and len(self._pending) < KEPT:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._hurry.wait(), gap)
        self._not_before = self._monotonic() + self.journal.gap_s

    async def _store(self, batch: list[Envelope]) -> None:
        self._appending = time.monotonic()
        try:
            async with asyncio.timeout(self._patience) as self._bound:
                await self._append(batch)
        except TimeoutError:
            self.fail(JournalUnavailable(f"the journal took nothing for {self._patience:g} s; is it reachable?"))
        except Exception as error:  # noqa: BLE001 - a journal that fails must not fail the run
            self.fail(error)
        else:
            if not self.broken:
                self._deliver(batch)
        finally:
            self._appending = 0.0

    async def _append(self, batch: list[Envelope]) -> None:
        """Append, again and again while the journal is away; a repeat of what it took after all changes nothing.

        One that this process never reached is not waited for: its name is wrong more often than it is away.
        """
        # The first batch claims the run id: of two runs with one id, only one is ever recorded.
        claims, self._unclaimed = self._unclaimed, False
        pause = RETRY_S
        while True:
            try:
                lease = await self.tenure.begin()
                with telemetry.appending(self.journal):
                    await self.journal.append(batch, origin=self._origin, claim=claims, lease=lease)
                _reached.add(self.journal)
                return
            except JournalUnavailable:
                if self.journal not in _reached:
                    raise
                claims = False  # it may have been taken; with our lease, by nobody but us
                if pause == RETRY_S:
                    self._logger.warning("the journal is away")
            await asyncio.sleep(pause)
            pause = min(2 * pause, RETRY_AT_MOST_S)

    def _lost(self) -> None:
        if not self.broken and not self.closed:
            self.fail(Fenced(f"run {self.run_id} has another owner, or counts as lost"))

    def fail(self, error: Exception) -> None:
        """Break the log: nothing more is delivered."""
        self.broken, self._snapshots.usable = True, False
        self.view.close_transport()
        self._on_fault("journal", error)
        self._wake()

    def _deliver(self, batch: Sequence[Envelope]) -> None:
        try:
            self.view.feed_all(batch)
        except Exception as error:  # noqa: BLE001 - a fault of the view must not fail the run
            self._snapshots.usable = False
            self._on_fault("reduce", error)
        else:
            self._snapshots.grown(batch[-1].seq)
        self._recent.extend(batch)
        if len(self._recent) > 2 * KEPT:
            del self._recent[:-KEPT]
        self._wake()

    # Reading.

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def read(self, after_seq: int = 0) -> AsyncIterator[Envelope]:
        """Every stored envelope after a sequence number, then each new one, until the log is closed or broken.

        A reader that the journal does not answer ends there, without an ending; the run and other readers go on.
        """
        behind = True
        while True:
            recent = self._recent
            if not recent or recent[-1].seq <= after_seq:
                if self.closed or self.broken:
                    return
                waiter = self._loop.create_future()
                self._waiters.append(waiter)
                await waiter
                continue
            before, behind = behind, recent[0].seq > after_seq + 1
            if behind and not before:
                telemetry.tell("reader.lag", recent[-1].seq - after_seq)
            batch = await self._stored(after_seq) if behind else recent[after_seq + 1 - recent[0].seq :]
            if not batch:
                return
            for envelope in batch:
                yield envelope
            after_seq = batch[-1].seq

    async def _stored(self, after_seq: int) -> Sequence[Envelope]:
        try:
            return await self.journal.read(self.run_id, after_seq, KEPT)
        except Exception as error:  # noqa: BLE001 - it concerns this reader alone
            self._logger.warning("a reader was not answered: %s", type(error).__name__)
            return ()
