"""Reading the authoritative record back, and what it says against going on."""

from __future__ import annotations

import asyncio
import logging
import time
from typing import Any, Final

from agents_progress.effects.reactions.entry import Entry
from agents_progress.effects.reactions.terms import Record

logger = logging.getLogger("agents_progress")

AGAIN_S: Final = 0.2
AGAIN_AT_MOST_S: Final = 5.0
"""Pauses between two attempts to read a source or to take a run that somebody still has."""


async def read(source: Any, resource: str, patience_s: float) -> Record | None:
    """Read a record, and try again for some seconds what raises."""
    give_up, pause = time.monotonic() + patience_s, AGAIN_S
    while True:
        try:
            found: Record | None = await source.read(resource)
            return found
        except Exception as error:
            left = give_up - time.monotonic()
            if left <= 0:
                raise
            logger.warning("a source is tried again: %s", type(error).__name__)
            await asyncio.sleep(min(pause, left))
            pause = min(1.5 * pause, AGAIN_AT_MOST_S)


def objection(record: Record | None, entry: Entry) -> str | None:
    """Why a record does not let a reaction go on; None when it is what the notification was about."""
    if record is None:
        return "source_closed"
    return None if record.version == entry.version else "source_changed"
