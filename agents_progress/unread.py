"""Runs that nobody reads: who reads one, here or on another node, and for how long nobody has."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Final

from agents_progress.events import Envelope
from agents_progress.journal.base import Journal

LOOKS: Final = 4
"""How often the readers are looked for within the time for which a run may go unread."""


class Audience:
    """The readers of one run. Those of this process are seen here, those elsewhere :meth:`Journal.touch` the run."""

    def __init__(self, journal: Journal, run_id: str) -> None:
        self._journal = journal
        self._run_id = run_id
        self._now = asyncio.get_running_loop().time
        self._readers = 0
        self._left_at = self._now()

    async def reading(self, envelopes: AsyncIterator[Envelope]) -> AsyncIterator[Envelope]:
        """What a reader of this process gets; it counts until it leaves."""
        self._readers += 1
        try:
            async for envelope in envelopes:
                yield envelope
        finally:
            self._readers -= 1
            self._left_at = self._now()

    async def gone(self, limit: float, then: Callable[[], object]) -> None:
        """Do something once nobody has read for ``limit`` seconds. A run that was never read counts from its start."""
        while True:
            await asyncio.sleep(limit / LOOKS)
            if self._unread_here(limit) and await self._unread_elsewhere(limit):
                then()
                return

    def _unread_here(self, limit: float) -> bool:
        return not self._readers and self._now() - self._left_at >= limit

    async def _unread_elsewhere(self, limit: float) -> bool:
        try:
            row = await self._journal.run(self._run_id)
        except Exception:  # noqa: BLE001 - who cannot be asked for may be there
            return False
        return row is None or row.unread_s is None or row.unread_s >= limit
