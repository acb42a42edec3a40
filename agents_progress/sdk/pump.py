"""Takes the events off the SDK's stream, in bursts: whatever arrives within one turn of the loop is taken together.

A task of its own, because the SDK's iterator may wait for a run task that swallows its cancellation, and then so would
whoever iterates it.

Source: `RunResultStreaming.stream_events`, openai-agents 0.18 to 0.24.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from agents_progress.sdk.tee import Tee
from agents_progress.source import Take

BURST: Final = 1024
"""Events taken at once, at most, and in one go before the loop's other tasks get their turn: the SDK's queue never
yields while it is full.
"""


class Pump:
    """Drains one stream to its end, and passes every event on to the tee. Belongs to the running event loop."""

    def __init__(self, stream: Callable[[], AsyncIterator[Any]], tee: Tee) -> None:
        self._stream = stream
        self._tee = tee
        self._loop = asyncio.get_running_loop()
        self._take: Take = lambda events: None
        self._breathe: Callable[[], None] = lambda: None
        self._burst: list[Any] = []
        self._task: asyncio.Task[None] | None = None
        self._given_up: asyncio.Future[None] = self._loop.create_future()
        self._timer: asyncio.TimerHandle | None = None
        self._bound = 0.0
        self._stopping = False

    @property
    def at_work(self) -> bool:
        """Whether the code that asks runs in the pump's own task."""
        return self._task is not None and asyncio.current_task() is self._task

    async def drain(self, take: Take, breathe: Callable[[], None], bound: float) -> bool:
        """Give every event to ``take``; whether the end was reached. See :meth:`Source.drain`."""
        self._take, self._breathe, self._bound = take, breathe, bound
        if self._stopping:
            self._give_up_later()
        for _ in range(2):
            if self._task is None or self._task.cancelled():
                self._task = self._loop.create_task(self._drain())
            await asyncio.wait({self._task, self._given_up}, return_when=asyncio.FIRST_COMPLETED)
            if not self._task.done():
                self._task.add_done_callback(lambda task: task.cancelled() or task.exception())
                return False
            if not self._task.cancelled():
                await self._task
                break
            # A loop that shuts down cancels every task; what is left is read by another one.
        return True  # to its end, even when that end is a cancellation from inside the run

    def flush(self) -> None:
        """Have taken what has arrived."""
        burst, self._burst = self._burst, []
        if burst:
            self._take(burst)
            self._breathe()

    def stop(self) -> None:
        """The run was told to stop at once: it is given up when it does not end within the bound."""
        self._stopping = True
        if self._task is not None:
            self._give_up_later()

    def release(self) -> None:
        """Let go of the timer."""
        if self._timer is not None:
            self._timer.cancel()

    async def _drain(self) -> None:
        tee = self._tee
        try:
            async for event in self._stream():
                if tee.active:
                    tee.publish(event)
                burst = self._burst
                if not burst:
                    self._loop.call_soon(self.flush)
                burst.append(event)
                if len(burst) == BURST:
                    self.flush()
                    await asyncio.sleep(0)
        finally:
            self.flush()

    def _give_up_later(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(self._bound, self._give_up)

    def _give_up(self) -> None:
        if not self._given_up.done():
            self._given_up.set_result(None)
