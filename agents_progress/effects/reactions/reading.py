"""Reading the authoritative record back, and what it says against going on."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeVar

from agents_progress.effects.reactions.entry import Entry
from agents_progress.effects.reactions.terms import Record

T = TypeVar("T")

logger = logging.getLogger("agents_progress")

AGAIN_S: Final = 0.2
AGAIN_AT_MOST_S: Final = 5.0
"""Pauses between two attempts to read a source or to take a run that somebody still has."""


async def theirs(work: Callable[[], Awaitable[T]]) -> T:
    """Await the application's code. A cancel that nobody asked for is a failure of that code, and must not end who
    awaits it.
    """
    try:
        return await work()
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("it was cancelled by itself") from error


async def read(source: Any, resource: str, patience_s: float) -> Record | None:
    """Read a record, and try again for some seconds what raises."""
    give_up, pause = time.monotonic() + patience_s, AGAIN_S
    while True:
        try:
            return given(await theirs(lambda: source.read(resource)), Record)
        except Exception as error:
            left = give_up - time.monotonic()
            if left <= 0:
                raise
            logger.warning("a source is tried again: %s", type(error).__name__)
            await asyncio.sleep(min(pause, left))
            pause = min(1.5 * pause, AGAIN_AT_MOST_S)


def given(found: Any, kind: type[T]) -> T | None:
    """What the application gave, if it is of this kind or None. Raises :exc:`TypeError`."""
    if found is None or isinstance(found, kind):
        return found
    raise TypeError(f"a {kind.__name__} or None is expected, and not {type(found).__name__}")


def objection(record: Record | None, entry: Entry) -> str | None:
    """Why a record does not let a reaction go on; None when it is what the notification was about."""
    if record is None:
        return "source_closed"
    return None if record.version == entry.version else "source_changed"
