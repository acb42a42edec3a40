"""Waiting for a thread of a journal: who leaves early stops nothing, and is told nothing."""

from __future__ import annotations

import asyncio
import gc
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from agents_progress.journal.threads import outcome_of


async def test_what_a_caller_no_longer_waits_for_goes_on_and_its_failure_is_missed_by_nobody() -> None:
    reported: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: reported.append(context))
    asked: Future[None] = Future()
    with suppress(TimeoutError):
        async with asyncio.timeout(0):
            await outcome_of(asked)
    assert not asked.cancelled(), "it goes on"
    asked.set_exception(OSError("too late"))
    for _ in range(3):
        await asyncio.sleep(0)
    del asked
    gc.collect()
    assert reported == []
