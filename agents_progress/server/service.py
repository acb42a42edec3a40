"""The life of a serving process: the runs it started, what it does at intervals, and how it goes away."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Final, TypeAlias

from agents_progress.errors import ProgressError
from agents_progress.journal.base import Journal
from agents_progress.keeper import expire
from agents_progress.retention import erase, over
from agents_progress.run import Run
from agents_progress.server.feeds import Hub
from agents_progress.server.limits import Limits
from agents_progress.server.refusals import Refusal
from agents_progress.server.shown import LiveViews

logger = logging.getLogger("agents_progress")

Account: TypeAlias = tuple[str | None, str]
"""Whom a cap counts: a tenant, and an owner or a name in it."""

FOLLOW_S: Final = 1.0
"""How often runs that paused are looked at, in seconds."""
TOUCH_S: Final = 10.0
"""How often the journal is told what is being read here, in seconds."""
EXPIRE_S: Final = 5.0
"""How often a journal without leases is asked for reservations that ran out, in seconds."""
LOOK_S: Final = 0.05
"""How often it is seen whether runs have ended while the service goes away, in seconds."""
CANCELLED_S: Final = 30.0
"""How long runs that were cancelled may take to stop before the service goes without them, in seconds."""
SWEEP_S: Final = 600.0
"""How often runs past their time are looked for, in seconds."""
SWEPT: Final = 100_000
"""Runs of which a sweep looks at the newest, at most."""
READY_S: Final = 1.0
"""Within so many seconds a journal answers, or the service is not ready."""


class Service:
    """What the routes share. Belongs to one event loop.

    ``prune_after`` and ``erase_after`` are for how long the events, and all else, of a closed run are kept after its
    last word, in seconds; None keeps them.
    """

    def __init__(
        self,
        journal: Journal,
        limits: Limits,
        *,
        drain_s: float = 20.0,
        prune_after: float | None = None,
        erase_after: float | None = None,
    ) -> None:
        self.journal = journal
        self.limits = limits
        self.hub = Hub(journal)
        self.views = LiveViews(journal)
        self.draining = False
        self.at_intervals: list[tuple[float, Callable[[], Awaitable[None]]]] = []
        self._drain_s = drain_s
        self._draining: asyncio.Task[None] | None = None
        self._prune_after = prune_after
        self._erase_after = erase_after
        self._alive = False
        self._looked_at: set[str] = set()
        self._in_flight: Counter[Account] = Counter()
        self._reading: Counter[Account] = Counter()
        self._runs: dict[Run, asyncio.Task[None]] = {}
        self._paused: dict[Run, Account] = {}

    # Caps.

    def take_place(self, account: Account) -> None:
        """Count one more run in flight. Raises :class:`Refusal` over the cap, and while the service goes away."""
        if self.draining:
            raise Refusal("draining")
        if self._in_flight[account] >= self.limits.runs_per_owner:
            raise Refusal("too_many_runs")
        self._in_flight[account] += 1

    def leave_place(self, account: Account) -> None:
        """Count one run less."""
        self._in_flight[account] -= 1
        if not self._in_flight[account]:
            del self._in_flight[account]

    @contextmanager
    def reader(self, account: Account) -> Iterator[None]:
        """Count a feed while it is open. Raises :class:`Refusal` over a cap, and while the service goes away."""
        if self.draining:
            raise Refusal("draining")
        if self._reading[account] >= self.limits.readers_per_owner:
            raise Refusal("too_many_readers")
        if self._reading.total() >= self.limits.readers:
            raise Refusal("full")
        self._reading[account] += 1
        try:
            yield
        finally:
            self._reading[account] -= 1
            if not self._reading[account]:
                del self._reading[account]

    # Runs.

    def say_when_lifeless(self) -> None:
        """Warn once when runs are started without the lifespan of the app: nobody would expire, touch or drain them."""
        if not self._alive:
            self._alive = True
            logger.warning("agents_progress: the app of runs was mounted without its lifespan; see runs_app")

    def hold(self, run: Run, account: Account) -> None:
        """Keep a run that has a place: until its owner has let go of everything, or for as long as it is paused."""

        async def until_closed() -> None:
            try:
                await run.closed()
            finally:
                self.leave_place(account)
                del self._runs[run]
            if run.outcome is not None and run.outcome.kind == "paused":
                self._paused[run] = account

        self._runs[run] = asyncio.create_task(until_closed(), name=f"agents-progress hold {run.id}")

    async def _follow(self) -> None:
        """Go on from runs that paused to those that continue them. They were let in with the first one."""
        for run, account in list(self._paused.items()):
            if run.continued is not None:
                del self._paused[run]
                self._in_flight[account] += 1
                self.hold(run.continued, account)

    def looked_at(self, run_id: str) -> None:
        """Note that somebody looked at a run: a page that asks again and again is a reader too."""
        self._looked_at.add(run_id)

    # Life.

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Do what has to be done at intervals; on leaving, drain what was not drained yet."""
        every = (
            ((self.journal.lease_s or 3 * EXPIRE_S) / 3, self._expire),
            (FOLLOW_S, self._follow),
            (TOUCH_S, self._touch),
            (SWEEP_S, self._sweep),
            *self.at_intervals,
        )
        self._alive = True
        loops = [asyncio.create_task(self._repeat(seconds, step)) for seconds, step in every]
        try:
            yield
            await self.drain()  # unless it was cancelled here: whoever does that does not wait
        finally:
            for each in loops:
                each.cancel()
            await asyncio.wait(loops)

    async def live(self) -> bool:
        """Whether the event loop turns: who hears this knows."""
        return True

    async def ready(self) -> bool:
        """Whether new work may come: not while going away, nor while the journal does not answer."""
        if self.draining:
            return False
        try:
            async with asyncio.timeout(READY_S):
                await self.journal.run("ready")
        except (TimeoutError, ProgressError):
            return False
        return True

    @property
    def drained(self) -> bool:
        """Whether everything that was under way here has been brought to its end."""
        return self._draining is not None and self._draining.done()

    async def drain(self) -> None:
        """Go away in good order, once, whoever asks: take nothing new, send readers elsewhere, let the runs end for
        ``drain_s`` seconds, then cancel those that are left and wait for what that does to them.
        """
        if self._draining is None:
            self.draining = True
            self._draining = asyncio.create_task(self._drain(), name="agents-progress drain")
        await asyncio.shield(self._draining)

    async def _drain(self) -> None:
        self.hub.say_bye()
        if await self._all_end(self._drain_s):
            return
        if not await self._all_end(CANCELLED_S, lambda run: run.cancel(actor="shutdown")):
            logger.warning("agents_progress: %d runs did not stop in time; they will count as lost", len(self._runs))

    async def _all_end(self, within: float, hasten: Callable[[Run], object] = lambda run: None) -> bool:
        """Wait for every run here, those that are being started and those that go on; whether all have ended."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within):
                await self._follow()
                while self._in_flight:
                    for run in self._runs:
                        hasten(run)
                    await asyncio.sleep(LOOK_S)
                    await self._follow()
        return not self._in_flight

    # At intervals.

    async def _repeat(self, seconds: float, step: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await step()
            except Exception as error:  # noqa: BLE001 - a journal that is away now is asked again
                logger.warning("agents_progress: what the service does at intervals failed: %s", type(error).__name__)

    async def _expire(self) -> None:
        await expire(self.journal)

    async def _touch(self) -> None:
        looked_at, self._looked_at = self._looked_at, set()
        if read := looked_at | self.hub.watched:
            await self.journal.touch(sorted(read))

    async def _sweep(self) -> None:
        """Prune and erase what is past its time."""
        if self._prune_after is None and self._erase_after is None:
            return
        for row, silent_s in await over(self.journal, SWEPT):
            if self._erase_after is not None and silent_s > self._erase_after:
                await erase(self.journal, run_id=row.run_id)
            elif self._prune_after is not None and silent_s > self._prune_after:
                await self.journal.prune(row.run_id, row.seq)
