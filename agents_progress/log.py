"""The log of one run, as its owner writes it: screen, coalesce, stamp, append, and only then deliver.

The pump never waits for the disk: a batch is what gathered while the last one was written. A reader gets an envelope
only after the journal has it. A journal that is away is waited for, within a bound. When it fails, the log is broken:
nothing more is delivered, and readers are left without an ending.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from agents_progress.claim import Claim
from agents_progress.clock import Clock, Stamp
from agents_progress.disclosure import TEXTS, Screen
from agents_progress.errors import Fenced, JournalUnavailable
from agents_progress.events import Envelope
from agents_progress.journal.base import Journal, Origin
from agents_progress.keeper import Tenure
from agents_progress.snapshots import WORTH_IT, Snapshots
from agents_progress.view import RunView

logger = logging.getLogger("agents_progress")

KEPT: Final = 1024
"""Envelopes kept in memory for readers that are nearly up to date; the others read from the journal."""

BATCH: Final = 4096
"""Envelopes stored at once, at most: what a batch takes in memory while it is written."""
LAG: Final = 512
"""Envelopes that may wait for the journal before the loop makes room for it."""
RETRY_S: Final = 0.05
RETRY_AT_MOST_S: Final = 1.0
"""Pauses between two attempts to reach a journal that is away; each is twice the one before."""
BREATH_S: Final = 0.00005
"""As long as a sleeping thread needs to wake."""


@dataclass(frozen=True, slots=True)
class Coalesce:
    """Streamed text goes out when this many characters or seconds have gathered, or before any other event. Text that
    arrives all at once goes out at once, however long.
    """

    chars: int = 64
    seconds: float = 0.03


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
        origin: Origin,
        patience: float,
        on_fault: Callable[[str, BaseException], None],
    ) -> None:
        self.run_id = run_id
        self.journal = journal
        self.view = view
        self.screen = screen
        self.seq = 0
        self.closed = self.broken = False
        self._origin = origin
        self._patience = patience
        self._on_fault = on_fault
        self._coalesce = coalesce
        self._monotonic = clock.monotonic
        self._now = Stamp(clock.wall).now
        self._loop = asyncio.get_running_loop()
        self._indexes: dict[str | tuple[str, str], int] = {}
        self._open_item: tuple[str, str | None] = "", None
        self._open_texts: list[str] = []
        self._open_chars, self._open_since = 0, 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._pending: list[Envelope] = []
        self._recent: list[Envelope] = []
        self._waiters: list[asyncio.Future[None]] = []
        self._committing: asyncio.Task[None] | None = None
        self._unclaimed = True
        self._hold(Tenure(journal, run_id))
        self._hurry = asyncio.Event()
        self._appending, self._not_before = False, 0.0
        self._snapshots = Snapshots(journal, view)

    def adopt(self, claim: Claim) -> None:
        """Go on with a run that was claimed already, after what its log holds."""
        self._hold(claim.tenure)
        self._unclaimed = False
        if claim.said:
            self.seq = claim.said[-1].seq
            self._deliver(claim.said)

    def _hold(self, tenure: Tenure) -> None:
        self._tenure, tenure.lost = tenure, self._lost

    @property
    def held(self) -> bool:
        """Whether the run is ours in the journal."""
        return self._tenure.begun and not self.broken

    # Writing.

    def write(self, type_: str, payload: dict[str, Any]) -> None:
        """Take in one draft."""
        try:
            if type_ == TEXTS:
                self._write_texts(payload["item_id"], payload["texts"])
                return
            for screened_type, screened in self.screen.pass_on(type_, payload):
                if screened_type == "text.delta" and self._coalesce is not None:
                    self._gather(screened["item_id"], screened.get("channel"), (screened["text"],), self._coalesce)
                else:
                    self._release()
                    self._stamp(screened_type, self._indexed(screened_type, screened))
        except Exception as error:  # noqa: BLE001 - what cannot be screened does not leave, and does not fail the run
            self._on_fault("disclose", error)

    def _write_texts(self, item_id: str, texts: Sequence[str]) -> None:
        """Deltas of an answer: most of what most runs say, so what needs no screen takes the shortest way."""
        if not self.screen.transparent:
            for text in texts:
                self.write("text.delta", {"item_id": item_id, "text": text})
        elif self._coalesce is None:
            self._stamp_texts(item_id, texts)
        else:
            self._gather(item_id, None, texts, self._coalesce)

    def write_lost(self, reason: str) -> None:
        """Write that no ending is known. The reason is one of ours, so it passes even when screening is at fault."""
        self._release()
        self._stamp("run.lost", {"reason": reason})

    def breathe(self) -> None:
        """Let the journal's thread have the interpreter for a moment when it lags, longer the further.

        A loop that is never idle starves it: at every turn it gives the interpreter away and takes it back before the
        thread has woken (one commit was seen to take six seconds). At the pace of a real model the loop is mostly idle.
        """
        lag = len(self._pending) - LAG
        if lag > 0 and self._appending:
            time.sleep(BREATH_S * (1 + lag // 128))

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
        if self._timer is not None:
            self._timer.cancel()
        self._wake()

    async def seal(self) -> None:
        """Tell the journal that nothing more comes. A broken log is left to run out."""
        if self.broken:
            self._tenure.leave()
        else:
            await self._tenure.end()
            await self._snapshots.last(self.seq)

    def abandon(self) -> None:
        """End every reader without waiting for the journal; what is not stored yet is not said."""
        self.broken = self.closed = True
        self._snapshots.usable = False
        self._tenure.leave()
        self.view.close_transport()
        if self._timer is not None:
            self._timer.cancel()
        if self._committing is not None:
            self._committing.cancel()
        self._wake()

    def _gather(self, item_id: str, channel: str | None, texts: Sequence[str], coalesce: Coalesce) -> None:
        if (item_id, channel) != self._open_item:
            self._release()
            self._open_item = item_id, channel
        if not self._open_texts:
            self._open_since = self._monotonic()
        self._open_texts += texts
        self._open_chars += sum(map(len, texts))
        if self._open_chars >= coalesce.chars:
            self._release()
        elif self._timer is None:
            self._timer = self._loop.call_later(coalesce.seconds, self._tick, coalesce.seconds)

    def _tick(self, seconds: float) -> None:
        """Release text that is old enough; look again when younger text is waiting."""
        self._timer = None
        if not self._open_texts:
            return
        left = self._open_since + seconds - self._monotonic()
        if left <= 0:
            self._release()
        else:
            self._timer = self._loop.call_later(left, self._tick, seconds)

    def _release(self) -> None:
        if self._open_texts:
            item_id, channel = self._open_item
            payload = {"item_id": item_id, "text": "".join(self._open_texts)}
            if channel is not None:
                payload["channel"] = channel
            self._open_texts.clear()
            self._open_chars = 0
            self._stamp("text.delta", self._indexed("text.delta", payload))

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
        if self._committing is None:
            self._commit()

    def _stamp_texts(self, item_id: str, texts: Sequence[str]) -> None:
        run_id, seq, index, moment = self.run_id, self.seq, self._indexes.get(item_id, 0), self._now()
        add, new = self._pending.append, tuple.__new__
        for text in texts:
            seq += 1
            payload = {"item_id": item_id, "text": text, "index": index}
            add(new(Envelope, (f"{run_id}:{seq}", run_id, seq, "text.delta", moment, payload)))
            index += 1
        self.seq, self._indexes[item_id] = seq, index
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
                batch, self._pending = self._pending[:BATCH], self._pending[BATCH:]
                if not self.broken:
                    await self._store(batch)
                batch = []
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
        self._appending = True
        try:
            async with asyncio.timeout(self._patience):
                await self._append(batch)
        except TimeoutError:
            self.fail(JournalUnavailable(f"the journal took nothing for {self._patience:g} s; is it reachable?"))
        except Exception as error:  # noqa: BLE001 - a journal that fails must not fail the run
            self.fail(error)
        else:
            self._deliver(batch)
        finally:
            self._appending = False

    async def _append(self, batch: list[Envelope]) -> None:
        """Append, again and again while the journal is away; a repeat of what it took after all changes nothing.

        One that was never reached is not waited for: its name is wrong more often than it is away.
        """
        # The first batch claims the run id: of two runs with one id, only one is ever recorded.
        first, self._unclaimed = self._unclaimed, False
        pause = RETRY_S
        while True:
            try:
                lease = await self._tenure.begin()
                return await self.journal.append(batch, origin=self._origin, claim=first, lease=lease)
            except JournalUnavailable:
                if first:
                    raise
                if pause == RETRY_S:
                    logger.warning("agents_progress: run %s: the journal is away", self.run_id)
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
        while True:
            recent = self._recent
            if not recent or recent[-1].seq <= after_seq:
                if self.closed or self.broken:
                    return
                waiter = self._loop.create_future()
                self._waiters.append(waiter)
                await waiter
                continue
            behind = recent[0].seq > after_seq + 1
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
            logger.warning("agents_progress: run %s: a reader was not answered: %s", self.run_id, type(error).__name__)
            return ()
