"""Where times and ids come from: one injected source, so that tests can freeze both."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clock:
    """Wall time for people, monotonic time for durations (both in seconds), and new run ids of 128 random bits."""

    wall: Callable[[], float] = time.time
    monotonic: Callable[[], float] = time.monotonic
    new_id: Callable[[], str] = lambda: secrets.token_hex(16)


class Stamp:
    """Formats wall time as RFC 3339 in UTC with milliseconds; what did not change since the last call is kept."""

    def __init__(self, wall: Callable[[], float]) -> None:
        self._wall = wall
        self._from = self._until = 0.0
        self._text = ""

    def now(self) -> str:
        """The present moment, such as ``2026-10-07T08:00:01.250Z``."""
        moment = self._wall()
        if not self._from <= moment < self._until:
            milliseconds = int(moment * 1000)
            self._from, self._until = milliseconds / 1000, (milliseconds + 1) / 1000
            second, rest = divmod(milliseconds, 1000)
            self._text = f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(second))}.{rest:03d}Z"
        return self._text
