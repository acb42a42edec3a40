"""Streamed text gathers for a moment before it is said: text costs little then, and screens stay calm."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Coalesce:
    """Streamed text goes out when this many characters or seconds have gathered, or before any other event. Text that
    arrives all at once goes out at once, however long.
    """

    chars: int = 64
    seconds: float = 0.03


class Gathering:
    """The text of one item that has gathered. Belongs to the running event loop; ``say`` takes one draft."""

    def __init__(
        self, coalesce: Coalesce, monotonic: Callable[[], float], say: Callable[[str, dict[str, Any]], None]
    ) -> None:
        self._coalesce = coalesce
        self._monotonic = monotonic
        self._say = say
        self._loop = asyncio.get_running_loop()
        self._item: tuple[str, str | None] = "", None
        self._texts: list[str] = []
        self._chars, self._since = 0, 0.0
        self._timer: asyncio.TimerHandle | None = None

    def add(self, item_id: str, channel: str | None, texts: Sequence[str]) -> None:
        """Take in deltas of one item; what gathered of another one goes out."""
        if (item_id, channel) != self._item:
            self.release()
            self._item = item_id, channel
        if not self._texts:
            self._since = self._monotonic()
        self._texts += texts
        self._chars += sum(map(len, texts))
        if self._chars >= self._coalesce.chars:
            self.release()
        elif self._timer is None:
            self._timer = self._loop.call_later(self._coalesce.seconds, self._tick)

    def release(self) -> None:
        """Let out what has gathered."""
        if self._texts:
            item_id, channel = self._item
            payload = {"item_id": item_id, "text": "".join(self._texts)}
            if channel is not None:
                payload["channel"] = channel
            self._texts.clear()
            self._chars = 0
            self._say("text.delta", payload)

    def close(self) -> None:
        """Let nothing out later."""
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self) -> None:
        """Release text that is old enough; look again when younger text is waiting."""
        self._timer = None
        if not self._texts:
            return
        left = self._since + self._coalesce.seconds - self._monotonic()
        if left <= 0:
            self.release()
        else:
            self._timer = self._loop.call_later(left, self._tick)
