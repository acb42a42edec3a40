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


def rfc3339(milliseconds: int) -> str:
    """A moment of wall time, in milliseconds since 1970, as RFC 3339 in UTC: ``2026-10-07T08:00:01.250Z``."""
    second, rest = divmod(milliseconds, 1000)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(second))}.{rest:03d}Z"


def moment(seconds: float) -> str:
    """The same of seconds since 1970."""
    return rfc3339(int(seconds * 1000))


class Stamp:
    """The moments of one log as text: wall time at the first one, and what has passed since by the monotonic clock.

    So the difference of two stamps is a duration, in whole milliseconds, whatever is done to the wall clock meanwhile;
    time in which the machine sleeps counts as far as its monotonic clock counts it. What did not change since the last
    call is kept.
    """

    def __init__(self, clock: Clock) -> None:
        self._wall, self._monotonic = clock.wall, clock.monotonic
        self._ahead: float | None = None
        self._from = self._until = 0.0
        self._text = ""

    def now(self) -> str:
        """The present moment, see :func:`rfc3339`."""
        passed = self._monotonic()
        if self._ahead is None:
            self._ahead = self._wall() - passed
        if not self._from <= passed < self._until:
            milliseconds = int((self._ahead + passed) * 1000)
            self._from, self._until = milliseconds / 1000 - self._ahead, (milliseconds + 1) / 1000 - self._ahead
            self._text = rfc3339(milliseconds)
        return self._text
