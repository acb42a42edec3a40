"""The way out on a signal: first what is under way is brought to its end, then the server may stop.

A server such as uvicorn tells an app that it stops only after every connection was closed, and a feed is a connection
that stays open; so the signal has to be heard by the app itself.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

SIGNALS: Final = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def drained_on_signals(drain: Callable[[], Awaitable[object]]) -> Iterator[None]:
    """On the first SIGINT or SIGTERM drain, then let the signal have the effect it had before; on the second at once.

    For the lifespan of an app, in the main thread and in the event loop of the app. Elsewhere it changes nothing.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    loop, before = asyncio.get_running_loop(), {each: signal.getsignal(each) for each in SIGNALS}
    leaving: list[asyncio.Task[None]] = []

    async def leave(number: int) -> None:
        try:
            await drain()
        finally:
            _repeat(before[signal.Signals(number)], number, None)

    def begin(number: int) -> None:
        leaving.append(loop.create_task(leave(number)))

    def heard(number: int, frame: FrameType | None) -> None:
        if leaving_began.is_set():
            _repeat(before[signal.Signals(number)], number, frame)
        else:
            leaving_began.set()
            loop.call_soon_threadsafe(begin, number)

    leaving_began = threading.Event()
    for each in SIGNALS:
        signal.signal(each, heard)
    try:
        yield
    finally:
        for each, effect in before.items():
            signal.signal(each, effect)


def _repeat(effect: Any, number: int, frame: FrameType | None) -> None:
    """What a signal did before we listened."""
    if callable(effect):
        effect(number, frame)
    elif effect is signal.SIG_DFL:
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
