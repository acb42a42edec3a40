"""The feed of a run, shared by all who read it in one event loop: one tail of the journal, and one encoding of each
envelope.

Readers pull. A reader holds its cursor and no queue of its own; what the feed keeps of the newest frames is there for
everybody, so that a reader costs the same however far it is behind. One that falls behind what is kept reads pages of
the journal until it is near again: nothing is dropped, and neither the run nor the other readers wait for it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from itertools import islice
from typing import Any, Final, TypeVar

from agents_progress import telemetry
from agents_progress.errors import CursorExpired, JournalError, JournalUnavailable, RunErased
from agents_progress.journal.base import EVERYTHING, Journal, Scope
from agents_progress.server.frames import Kept, Page, page_of, snapshot_frame

T = TypeVar("T")

logger = logging.getLogger(__name__)

PACE_S: Final = 40e-6
"""Time between two wake-ups of a feed for each of its readers, in seconds: about what one write costs. What gathers
meanwhile goes out in one write.
"""
LONGEST_PACE_S: Final = 0.1
SLICE: Final = 64
"""Readers that are woken at once, before whatever else the loop has to do."""
PAGE: Final = 128
PAGE_BYTES: Final = 128 * 1024
"""What a reader behind the feed takes from the journal at once: so many envelopes, and fewer when they are large."""
PAGES: Final = 8
SHARE_BYTES: Final = 2**20
SHARE_S: Final = 2.0
"""A feed keeps so many pages, each of at most that many bytes, for so many seconds for other readers."""
RETRY_S: Final = 0.5
"""How long a journal that is away is left alone, in seconds."""


class Ending(Enum):
    """Why a reader gets no more."""

    SEALED = "the log is closed and this reader has all of it"
    ERASED = "the run was erased"
    BYE = "this server cannot go on; another one, or this one later, can"
    CLOSED = "this reader may no longer read"


@dataclass(slots=True)
class Counts:
    """What befell the readers of a hub since it was made."""

    lags: int = 0
    """How often a reader was moved back to the journal."""
    lagged: int = 0
    """By how many envelopes, all of them together."""
    stalled: int = 0
    """Readers that were closed because they took nothing."""


class Reader:
    """One cursor in a feed: ``seq`` is the number of the last envelope it took."""

    __slots__ = ("_ahead", "_away_since", "_feed", "_live", "_own", "_waiter", "seq")

    def __init__(self, feed: Feed, seq: int) -> None:
        self.seq = seq
        self._feed = feed
        self._ahead: Page = ()
        self._live = False
        self._own: Ending | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._away_since = 0.0

    async def take(self) -> bytes:
        """The next frames, as soon as there are any; empty when it was woken for another reason."""
        feed = self._feed
        if self.seq >= feed.kept.head and self.ending is None:
            await self._nap()
        if self.ending is not None:
            return b""
        if self._ahead or self.seq + 1 < feed.kept.first:
            return await self._from_journal()
        self._live = True
        chunk, self.seq = feed.kept.after(self.seq)
        return chunk

    @property
    def behind(self) -> bool:
        """Whether there is more for it already."""
        return self.seq < self._feed.kept.head

    @property
    def ending(self) -> Ending | None:
        """Why there is no more for it, None while there may be."""
        feed = self._feed
        caught_up = self.seq >= feed.kept.head
        if self._own or (feed.ending and (caught_up or feed.ending is not Ending.SEALED)):
            return self._own or feed.ending
        return Ending.BYE if feed.hub.leaving and (caught_up or self.seq + 1 < feed.kept.first) else None

    def end(self, ending: Ending) -> None:
        """Give it no more."""
        self._own = ending
        self.nudge()

    def nudge(self) -> None:
        """Wake it, if it waits, though there may be nothing for it."""
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _nap(self) -> None:
        self._waiter = self._feed.loop.create_future()
        self._feed.waiting[self] = None
        try:
            await self._waiter
        finally:
            self._waiter = None
            self._feed.waiting.pop(self, None)

    async def _from_journal(self) -> bytes:
        feed = self._feed
        if self._live:
            self._live = False
            feed.hub.counts.lags += 1
            feed.hub.counts.lagged += feed.kept.head - self.seq
            telemetry.tell("reader.lag", feed.kept.head - self.seq)
        rings = began = feed.rings
        try:
            if not self._ahead:
                self._ahead, began = await feed.page(self.seq)
        except CursorExpired as expired:
            self.seq = expired.snapshot["seq"]
            return snapshot_frame(expired.snapshot)
        except RunErased:
            feed.end(Ending.ERASED)
            return b""
        except JournalUnavailable:
            await self._outage()
            return b""
        except Exception as error:  # noqa: BLE001 - a reader is told to come back, whatever it was
            feed.fail(error)
            return b""
        self._away_since = 0.0
        if not self._ahead:
            if feed.rings == rings == began:  # else there was news since the journal had none
                await self._nap()
            return b""
        (chunk, self.seq), *ahead = self._ahead
        self._ahead = tuple(ahead)
        return chunk

    async def _outage(self) -> None:
        """Wait before the journal is asked again; give up when it was away for too long."""
        now = self._feed.loop.time()
        self._away_since = self._away_since or now
        if now - self._away_since >= self._feed.hub.patience:
            self._own = Ending.BYE
            return
        again = self._feed.loop.call_later(RETRY_S, self.nudge)
        try:
            await self._nap()
        finally:
            again.cancel()


class Feed:
    """What all readers of a run in one event loop share. Made, and let go, by its :class:`Hub`.

    Until it knows where the run is, its readers begin in the journal.
    """

    def __init__(self, hub: Hub, run_id: str, scope: Scope) -> None:
        self.hub = hub
        self.loop = asyncio.get_running_loop()
        self.readers: set[Reader] = set()
        self.waiting: dict[Reader, None] = {}
        self.ending: Ending | None = None
        self.kept = Kept(hub.kept, hub.kept_bytes)
        self.rings = 0
        """How often it had something to say."""
        self._run_id = run_id
        self._scope = scope
        self._page = PAGE
        self._pages: dict[int, asyncio.Task[tuple[Page, int]]] = {}
        self._waking = False
        self._woken_at = 0.0
        self._tasks: set[asyncio.Task[Any]] = set()
        self.over = asyncio.Event()
        self._spawn(self._follow())

    # For readers.

    async def page(self, seq: int) -> tuple[Page, int]:
        """The next page of the journal after a cursor, and what ``rings`` was when it was asked for.

        Readers at the same place share the reading of it.
        """
        reading = self._pages.get(seq)
        if reading is None:
            reading = self._pages[seq] = self._spawn(self._read(seq))
            if len(self._pages) > PAGES:
                del self._pages[next(iter(self._pages))]
        return await asyncio.shield(reading)

    # For the hub.

    def end(self, ending: Ending) -> None:
        """Give nobody more than what is there."""
        self.ending = self.ending or ending
        self.ring()

    def fail(self, error: Exception) -> None:
        """Send the readers away after an error that is nothing they or the run did."""
        if not isinstance(error, JournalError):
            logger.error(
                "the feed of run %s broke off with %s; its readers come back",
                self._run_id,
                type(error).__name__,
                extra=telemetry.about(self._run_id),
            )
        self.end(Ending.BYE)

    def ring(self) -> None:
        """Wake whoever waits, in time: the next wave begins at its pace after the last one."""
        self.rings += 1
        if not self._waking and self.waiting:
            self._waking = True
            pace = min(len(self.readers) * PACE_S, LONGEST_PACE_S)
            self.loop.call_at(self._woken_at + pace, self._wake)

    def close(self) -> None:
        """Stop the tail and all reading."""
        self.over.set()
        for task in self._tasks:
            task.cancel()

    # Waking.

    def _wake(self) -> None:
        self._woken_at = self.loop.time()
        self._wake_slice(iter(list(self.waiting)), self.rings)

    def _wake_slice(self, wave: Iterator[Reader], rings: int) -> None:
        woken = 0
        for reader in islice(wave, SLICE):
            reader.nudge()
            woken += 1
        if woken == SLICE:
            self.loop.call_soon(self._wake_slice, wave, rings)
            return
        self._waking = False
        if self.rings != rings:  # there was news for those who were woken first
            self.ring()

    # The journal.

    async def _follow(self) -> None:
        """Keep what the tail gives, until it ends; the one task that every feed has."""
        journal, away_since = self.hub.journal, 0.0
        while self.ending is None:
            try:
                row = await journal.run(self._run_id, scope=self._scope)
                away_since = 0.0  # it answers
                if not self.kept.begun:
                    self._begin(row.seq if row else 0)
                async for envelope in journal.tail(self._run_id, self.kept.head, scope=self._scope):
                    self.kept.add(envelope)
                    self.ring()
                self.end(Ending.BYE if journal.closed else Ending.SEALED)
            except CursorExpired as expired:
                self._begin(expired.snapshot["seq"])
            except RunErased:
                self.end(Ending.ERASED)
            except JournalUnavailable as away:
                away_since = away_since or self.loop.time()
                if self.loop.time() - away_since >= self.hub.patience:
                    self.fail(away)
                else:
                    await asyncio.sleep(RETRY_S)
            except Exception as error:  # noqa: BLE001 - whatever it was, the readers are told to come back
                self.fail(error)

    def _begin(self, seq: int) -> None:
        self.kept.begin(seq)
        self.ring()

    async def _read(self, seq: int) -> tuple[Page, int]:
        rings, size = self.rings, 0
        limit = self._page - seq % self._page  # so that readers who began at different places soon are at the same
        try:
            page = page_of(await self.hub.journal.read(self._run_id, seq, limit, scope=self._scope), seq)
            size = sum(len(chunk.frames) for chunk in page)
        finally:  # an empty page will not stay so
            if 0 < size <= SHARE_BYTES:
                self.loop.call_later(SHARE_S, self._pages.pop, seq, None)
            else:
                self._pages.pop(seq, None)
        if size > PAGE_BYTES:
            self._page = max(self._page // 2, 1)
        elif size < PAGE_BYTES // 4:
            self._page = min(self._page * 2, PAGE)
        return page, rings

    def _spawn(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        task = self.loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class Hub:
    """The feeds of a server: one for each run that has readers, in each event loop.

    ``kept`` and ``kept_bytes`` bound the frames of a feed; the older half goes when there are more. ``patience`` is how
    long a reader waits for a journal that is away before it is told to come back, in seconds.
    """

    def __init__(
        self, journal: Journal, *, kept: int = 1024, kept_bytes: int = 4 * 2**20, patience: float = 20.0
    ) -> None:
        self.journal = journal
        self.kept = kept
        self.kept_bytes = kept_bytes
        self.patience = patience
        self.counts = Counts()
        self.leaving = False
        """Whether readers are told to come back."""
        self._feeds: dict[tuple[asyncio.AbstractEventLoop, str, Scope], Feed] = {}

    @contextmanager
    def reading(self, run_id: str, after_seq: int = 0, *, scope: Scope = EVERYTHING) -> Iterator[Reader]:
        """A reader after a cursor. The feed begins with the first reader of its run, and ends with the last one."""
        place = asyncio.get_running_loop(), run_id, scope
        feed = self._feeds.get(place)
        if feed is None or feed.ending is Ending.BYE:  # whoever comes back begins anew
            feed = self._feeds[place] = Feed(self, run_id, scope)
        reader = Reader(feed, after_seq)
        feed.readers.add(reader)
        try:
            yield reader
        finally:
            feed.readers.discard(reader)
            if not feed.readers:
                feed.close()
                if self._feeds.get(place) is feed:
                    del self._feeds[place]

    def readers(self, run_id: str | None = None) -> int:
        """How many read a run now, or all runs."""
        return sum(len(feed.readers) for place, feed in list(self._feeds.items()) if run_id in (None, place[1]))

    @property
    def watched(self) -> frozenset[str]:
        """The runs that somebody reads now."""
        return frozenset(run_id for _, run_id, _ in list(self._feeds))

    def say_bye(self) -> None:
        """Give every reader what is there, and tell it to come back. From any thread; for good."""
        self.leaving = True
        for place, feed in list(self._feeds.items()):
            with suppress(RuntimeError):  # that loop was closed, and its readers with it
                place[0].call_soon_threadsafe(feed.ring)

    async def close(self) -> None:
        """Say bye, and wait until the readers in this event loop have left. Bound it: a slow one is given its time."""
        self.say_bye()
        for place, feed in list(self._feeds.items()):
            if place[0] is asyncio.get_running_loop():
                await feed.over.wait()
