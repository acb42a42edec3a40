"""The snapshots that an owner stores beside a long log, so that readers on other nodes need not begin at its start."""

from __future__ import annotations

import asyncio
from typing import Final

from agents_progress.journal.base import Journal
from agents_progress.telemetry import RunLogger
from agents_progress.view import RunView

EVERY: Final = 10_000
PART: Final = 10
"""Envelopes from one snapshot to the next: so many, or so small a part of the log, so that what all of them cost grows
as the log does.
"""
WORTH_IT: Final = 1_000
"""A log that ends with fewer since the last one is read as fast without another."""


class Snapshots:
    """Keeps snapshots of a view as it grows. Nothing waits for one, and none that fails harms the run.

    A journal that ends with this process needs none. ``usable`` is false once the view does not show the stored log.
    """

    def __init__(self, journal: Journal, view: RunView, logger: RunLogger) -> None:
        self.usable = journal.lease_s is not None
        self._journal = journal
        self._view = view
        self._logger = logger
        self._upto = 0
        self._storing: asyncio.Task[None] | None = None

    def grown(self, seq: int, by: int | None = None) -> None:
        """Keep a snapshot when the log, stored up to ``seq``, has grown enough since the last one."""
        enough = max(EVERY, self._upto // PART) if by is None else by
        if seq - self._upto >= enough and self.usable and self._storing is None:
            self._upto = seq
            self._storing = asyncio.get_running_loop().create_task(self._store())

    async def last(self, seq: int) -> None:
        """Keep one of a long log that has ended, and wait for it."""
        while self._storing is not None or (self.usable and seq - self._upto >= WORTH_IT):
            self.grown(seq, WORTH_IT)
            if self._storing is not None:
                await asyncio.wait({self._storing})

    async def _store(self) -> None:
        try:
            if self.usable:
                await self._journal.keep_snapshot(self._view.run_id, self._view.snapshot())
        except Exception as error:  # noqa: BLE001 - readers begin further back, that is all
            self._logger.warning("a snapshot was not kept: %s", type(error).__name__)
        finally:
            self._storing = None
