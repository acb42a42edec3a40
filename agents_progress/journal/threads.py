"""How a caller waits for what a thread of a journal does."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def outcome_of(asked: Future[T]) -> T:
    """What the thread gives. A caller that is cancelled leaves, and what it asked for is done all the same; that it
    failed in the end, nobody misses.
    """
    waiting = asyncio.wrap_future(asked)
    waiting.add_done_callback(lambda over: over.cancelled() or over.exception())
    return await asyncio.shield(waiting)
