"""The user's side of a drained run: `stream_events` and `cancel` as the SDK has them, fed by the owner instead of the
queue.

The owner alone iterates the SDK's stream, so that a slow, dead or leaving reader never holds the run back. Whoever
iterates the result still sees the same events in the same order and the same exception. What leaving does to the run is
what it does on the SDK alone: a cancellation that hits the wait for an event cancels the run, one that hits the loop's
body does not; breaking off does nothing; closing waits for the run.

Source: `RunResultStreaming.stream_events` and `cancel`, openai-agents 0.24.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import Any


class Tee:
    """Passes SDK events on to any number of iterators.

    With ``retain`` events wait for an iterator that is still to come, as in the SDK's own queue; one that starts while
    no other is at work continues where the last one stopped. Without it an iterator sees what comes after it started.
    """

    def __init__(self, retain: bool, cancel_quietly: Callable[[], None]) -> None:
        self._retain = retain
        self.active = retain
        """Whether anybody takes or will take events; :meth:`publish` is not worth its call otherwise."""
        self._cancel_quietly = cancel_quietly
        self._events: deque[Any] = deque()
        self._first = 0
        self._readers: dict[int, int] = {}
        self._numbers = 0
        self._waiters: list[asyncio.Future[None]] = []
        self._drained = False
        self._error: BaseException | None = None
        self._concluded: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    # The owner's side.

    def publish(self, event: Any) -> None:
        """One more event, while :attr:`active`."""
        self._events.append(event)
        if self._waiters:
            self._wake()

    def drop_undelivered(self) -> None:
        """Forget what no iterator has taken yet, as an immediate cancel does on the SDK alone."""
        self._first += len(self._events)
        self._events.clear()
        for number in self._readers:
            self._readers[number] = self._first

    def drained(self, error: BaseException | None) -> None:
        """No more events; ``error`` is what the SDK's iterator raised."""
        if not self._drained:
            self._drained, self._error = True, error
            self._wake()

    def concluded(self) -> None:
        """The run's ending is recorded: iterators may end."""
        if not self._concluded.done():
            self._concluded.set_result(None)

    # The user's side.

    async def stream_events(self) -> AsyncIterator[Any]:
        """The SDK's events; ends, or raises what the SDK raises, after the run's ending is recorded."""
        self._numbers += 1
        number = self._numbers
        self._readers[number] = self._first
        self.active = True
        try:
            while True:
                place = self._readers[number] - self._first
                if place < len(self._events):
                    event = self._events[place]
                    self._readers[number] += 1
                    self._trim()
                    try:
                        yield event
                    except GeneratorExit:
                        await asyncio.shield(self._concluded)
                        raise
                elif self._drained:
                    break
                else:
                    await self._next()
        finally:
            del self._readers[number]
            self.active = self._retain or bool(self._readers)
        await asyncio.shield(self._concluded)
        if self._error is not None:
            raise self._error

    async def _next(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append(waiter)
        try:
            await waiter
        except asyncio.CancelledError:
            self._cancel_quietly()
            raise

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def _trim(self) -> None:
        while self._events and min(self._readers.values()) > self._first:
            self._events.popleft()
            self._first += 1
