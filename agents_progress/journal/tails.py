"""Live tails: one loop for every backend, woken by whatever the backend hears of new envelopes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Final, NamedTuple

from agents_progress.errors import JournalClosed, JournalUnavailable
from agents_progress.events import Envelope
from agents_progress.journal.base import Request
from agents_progress.journal.rules import erased

PAGE: Final = 1000
"""Envelopes that a tail reads at once, at most."""


class Page(NamedTuple):
    """What a backend reads in one moment: the envelopes after a cursor, and whether the run is there and sealed."""

    envelopes: Sequence[Envelope] = ()
    known: bool = False
    sealed: bool = False


class Bell:
    """Wakes those who wait for a run, in whatever event loop and thread of this process they are."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._listeners: dict[str, list[tuple[asyncio.AbstractEventLoop, asyncio.Event]]] = {}

    @contextmanager
    def listening(self, run_id: str) -> Iterator[asyncio.Event]:
        """An event that is set whenever the run changes."""
        listener = asyncio.get_running_loop(), asyncio.Event()
        with self._lock:
            self._listeners.setdefault(run_id, []).append(listener)
        try:
            yield listener[1]
        finally:
            with self._lock:
                self._listeners[run_id].remove(listener)
                if not self._listeners[run_id]:
                    del self._listeners[run_id]

    def ring(self, run_id: str) -> None:
        """Say that a run changed."""
        if run_id not in self._listeners:
            return
        with self._lock:
            listeners = list(self._listeners.get(run_id, ()))
        for loop, heard in listeners:
            try:
                loop.call_soon_threadsafe(heard.set)
            except RuntimeError:  # that loop was closed, and its tails with it
                continue

    def ring_all(self) -> None:
        """Say that everything changed."""
        for run_id in list(self._listeners):
            self.ring(run_id)


ASKED: Final = "?"
"""What the bell rings for a request; no run has this id."""
LOOK_S: Final = 1.0
"""How often those who wait for requests look without being told, in seconds."""


async def asks(
    read: Callable[[Collection[str]], Awaitable[Sequence[Request]]],
    bell: Bell,
    owned: Callable[[], Collection[str]],
    poll: float,
) -> AsyncGenerator[Request, None]:
    """The requests to the runs that ``owned()`` names, each once.

    ``poll`` is how long, in seconds, what rings no bell here may go unseen.
    """
    seen: set[tuple[str, str]] = set()
    with bell.listening(ASKED) as heard:
        while True:
            heard.clear()  # before reading, so that nothing falls between the two
            runs = set(owned())
            seen = {place for place in seen if place[0] in runs}
            try:
                found = await read(runs)
            except JournalUnavailable:
                found = ()
            except JournalClosed:
                return
            for request in found:
                if (place := (request.run_id, request.key)) not in seen:
                    seen.add(place)
                    yield request
            with suppress(TimeoutError):
                await asyncio.wait_for(heard.wait(), poll)


async def follow(
    read: Callable[[int, int], Awaitable[Page]], bell: Bell, run_id: str, after_seq: int, poll: float | None = None
) -> AsyncGenerator[Envelope, None]:
    """A tail made of ``read(after, limit)``: read, then wait for the bell, then read again.

    With ``poll`` it looks every so many seconds for what rings no bell here, and less often, down to a fifth, the
    longer the run is quiet.
    """
    known, pause = False, poll
    with bell.listening(run_id) as heard:
        while True:
            heard.clear()  # before reading, so that nothing falls between the two
            try:
                page = await read(after_seq, PAGE)
            except JournalClosed:
                return
            if known and not page.known:
                raise erased(run_id)
            known = page.known
            for envelope in page.envelopes:
                yield envelope
            if page.envelopes:
                after_seq, pause = page.envelopes[-1].seq, poll
            if len(page.envelopes) < PAGE:
                if page.sealed:
                    return
                with suppress(TimeoutError):
                    await asyncio.wait_for(heard.wait(), pause)
                pause = poll and min((pause or poll) * 1.25, 5 * poll)
