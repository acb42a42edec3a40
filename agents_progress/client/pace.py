"""When to try again: sooner at first, then ever later, spread so that many readers do not come back as one."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Final

FIRST_WAIT_S: Final = 0.25
LONGEST_WAIT_S: Final = 30.0
"""Of our own choice. A server may ask for more, up to an hour."""
_LONGEST_ASKED_S: Final = 3600.0
_LEAST_WAIT_S: Final = 0.001
_DOUBLINGS: Final = 20


class Pace:
    """Waits between the tries of one thing.

    Each try that fails doubles the wait, from ``first_s`` up to half a minute; up to half of it is added by chance.
    Progress starts all over. ``patience`` bounds the seconds from the first failure after progress to the end of the
    last wait; None bounds nothing.
    """

    def __init__(
        self,
        patience: float | None,
        *,
        clock: Callable[[], float] = time.monotonic,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.first_s = FIRST_WAIT_S
        """The server may ask for another one: the ``retry:`` of a feed."""
        self.failures = 0
        """Since the last progress."""
        self._patience = patience
        self._clock = clock
        self._chance = chance
        self._since = 0.0

    def progress(self) -> None:
        """Something came."""
        self.failures = 0

    def failed(self, least_s: float | None = None) -> float | None:
        """How long to wait before the next try, at least ``least_s``; None when patience would end before that."""
        now = self._clock()
        if not self.failures:
            self._since = now
        wait = max(self.first_s, _LEAST_WAIT_S) * 2.0 ** min(self.failures, _DOUBLINGS)
        asked = min(max(self.first_s, least_s or 0.0), _LONGEST_ASKED_S)
        wait = max(min(wait, LONGEST_WAIT_S), asked) * (1 + self._chance() / 2)
        self.failures += 1
        if self._patience is not None and now + wait - self._since > self._patience:
            return None
        return wait
