"""Takes the events of a run where the SDK makes them, in bursts, and drains its stream for the SDK's own sake.

The SDK throws away what is still queued when a run fails or is cancelled, so events are taken as they are put into its
queue, in the order in which they happened, hooks included. The stream is drained all the same: the run waits for that
at the end of a turn, and its iterator is where a failure is raised. That is a task of its own, because the iterator may
wait for a run task that swallows its cancellation, and then so would whoever iterates it.

Source: `RunResultStreaming.stream_events`, openai-agents 0.18 to 0.24.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, Final

from agents_progress.sdk import compat
from agents_progress.sdk.tee import Tee
from agents_progress.source import Take

BURST: Final = 1024
"""Events taken at once, at most, and in one go before the loop's other tasks get their turn: the SDK's queue never
yields while it is full.
"""


class Pump:
    """Drains one stream to its end, and passes every event on to the tee. Belongs to the running event loop.

    ``early`` takes what arrives before :meth:`drain` says who does.
    """

    def __init__(self, result: Any, tee: Tee, early: Take | None = None) -> None:
        self._stream: Callable[[], AsyncIterator[Any]] = result.stream_events
        self._tee = tee
        self._loop = asyncio.get_running_loop()
        self._take = early
        self._breathe: Callable[[], None] = lambda: None
        self._burst: list[Any] = []
        self._task: asyncio.Task[None] | None = None
        self._given_up: asyncio.Future[None] = self._loop.create_future()
        self._timer: asyncio.TimerHandle | None = None
        self._bound = 0.0
        self._stopping = False
        self._put_back = record(result, self._arrived)

    @property
    def at_work(self) -> bool:
        """Whether the code that asks runs in the pump's own task."""
        return self._task is not None and asyncio.current_task() is self._task

    async def drain(self, take: Take, breathe: Callable[[], None], bound: float) -> bool:
        """Give every event to ``take``; whether the end was reached. See :meth:`Source.drain`."""
        self._take, self._breathe, self._bound = take, breathe, bound
        self.flush()
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
        """Have taken what has arrived. Nothing is lost before :meth:`drain` says who takes it."""
        if self._take is None:
            return
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
        """Let go of the timer and of the SDK's queue."""
        if self._timer is not None:
            self._timer.cancel()
        if self._put_back is not None:
            self._put_back()

    def _arrived(self, event: Any) -> None:
        burst = self._burst
        if not burst:
            self._loop.call_soon(self.flush)
        burst.append(event)
        if len(burst) >= BURST:
            self.flush()

    async def _drain(self) -> None:
        tee, arrived, drained = self._tee, self._arrived if self._put_back is None else None, 0
        try:
            async for event in self._stream():
                if tee.active:
                    tee.publish(event)
                if arrived is not None:
                    arrived(event)
                drained += 1
                if drained == BURST:
                    drained = 0
                    await asyncio.sleep(0)
        finally:
            self.flush()

    def _give_up_later(self) -> None:
        if self._timer is None:
            self._timer = self._loop.call_later(self._bound, self._give_up)

    def _give_up(self) -> None:
        if not self._given_up.done():
            self._given_up.set_result(None)


def record(result: Any, arrived: Callable[[Any], None]) -> Callable[[], None] | None:
    """Have each event told as it is put into the SDK's queue; gives what ends that, None when it is not possible.

    It is not for a result that is followed late: what came before can only be drained, and the order matters more.
    """
    queue = compat.event_queue(result)
    if queue is None or not queue.empty():
        return None
    put = queue.put_nowait

    def put_and_record(event: Any) -> None:
        put(event)
        if getattr(event, "type", None) is not None:  # the mark of the end has none
            arrived(event)

    queue.put_nowait = put_and_record  # type: ignore[assignment]
    return lambda: setattr(queue, "put_nowait", put)
