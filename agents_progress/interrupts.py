"""Ctrl-C while a run is waited for: once asks it to stop after its turn, twice at once, and a third time leaves it.

Python's own answer to Ctrl-C cancels the main task the first time and breaks out of the loop the second, wherever that
is. It is held back while there is a run to stop in good order, and has its effect afterwards.
"""

from __future__ import annotations

import asyncio
import functools
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, Self

from agents_progress.labels import Label
from agents_progress.payloads import CancelMode

STEPS: Final[dict[CancelMode, Label]] = {"after_turn": "stop_after_turn", "immediate": "stop_at_once"}
"""How a run is asked to stop, from the first Ctrl-C on, and what the person is told."""


class Interrupts:
    """Holds back Ctrl-C within ``with``, and calls ``pressed`` in the running loop with what to ask the run for.

    Only where Python's own handler would answer, in the main thread: one that the application has set goes first.
    """

    def __init__(self, pressed: Callable[[CancelMode], None]) -> None:
        self.count = 0
        self._pressed = pressed
        self._loop = asyncio.get_running_loop()
        self._before: Any = None

    @property
    def leaving(self) -> bool:
        """Whether Ctrl-C came once more than there are ways to stop a run."""
        return self.count > len(STEPS)

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            before = signal.getsignal(signal.SIGINT)
            if _is_pythons(before):
                self._before = before
                signal.signal(signal.SIGINT, self._interrupted)
        return self

    def __exit__(self, *raised: object) -> None:
        self._restore()

    async def pass_on(self) -> None:
        """Let a Ctrl-C that was held back have the effect it has without us, which is to raise, now that the run is
        over.
        """
        if self._restore() and self.count:
            signal.raise_signal(signal.SIGINT)
            await asyncio.sleep(0)  # where a cancelled task notices

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        self.count += 1
        if self.leaving:
            self._restore()
            signal.raise_signal(number)
        else:
            self._loop.call_soon_threadsafe(self._pressed, tuple(STEPS)[self.count - 1])

    def _restore(self) -> bool:
        before, self._before = self._before, None
        if before is not None and signal.getsignal(signal.SIGINT) == self._interrupted:
            signal.signal(signal.SIGINT, before)
        return before is not None


def _is_pythons(handler: Any) -> bool:
    """Whether this is what Python does by itself, with or without ``asyncio.run``."""
    if isinstance(handler, functools.partial):
        return isinstance(getattr(handler.func, "__self__", None), asyncio.Runner)
    return handler is signal.default_int_handler
