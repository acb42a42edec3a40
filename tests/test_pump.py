"""The pump: which events are taken together, and that none is left behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from agents_progress.sdk.pump import BURST, Pump
from agents_progress.sdk.tee import Tee


class Stream:
    """Yields numbers; None lets the loop turn, an exception is raised."""

    def __init__(self, *script: int | None | Exception) -> None:
        self.script = script
        self.taken: list[list[int]] = []
        self.pump = Pump(self, Tee(retain=False, cancel_quietly=lambda: None))

    async def stream_events(self) -> AsyncIterator[int]:
        for step in self.script:
            if isinstance(step, Exception):
                raise step
            if step is None:
                await asyncio.sleep(0)
                await asyncio.sleep(0)
            else:
                yield step

    async def drain(self) -> bool:
        return await self.pump.drain(lambda burst: self.taken.append(list(burst)), lambda: None, 1.0)


async def test_what_arrives_in_one_turn_of_the_loop_is_taken_together() -> None:
    stream = Stream(1, 2, None, 3, None, 4)
    assert await stream.drain()
    assert stream.taken == [[1, 2], [3], [4]]


async def test_a_full_burst_is_taken_at_once_and_others_get_their_turn() -> None:
    stream = Stream(*range(BURST + 1))
    turns = asyncio.create_task(asyncio.sleep(0, len(stream.taken)))
    assert await stream.drain()
    assert [len(burst) for burst in stream.taken] == [BURST, 1]
    assert turns.done()


async def test_whoever_flushes_has_everything_before_taken_once() -> None:
    stream = Stream(1, 2, None, 3)
    stream.pump.flush()  # nothing has come
    drained = asyncio.create_task(stream.drain())
    while not stream.pump._burst:
        await asyncio.sleep(0)
        if stream.taken:
            break
    stream.pump.flush()
    assert stream.taken == [[1, 2]]
    await drained
    assert stream.taken == [[1, 2], [3]]


async def test_what_came_before_an_error_is_taken_before_it_is_raised() -> None:
    stream = Stream(1, ValueError("broken"), 2)
    with pytest.raises(ValueError, match="broken"):
        await stream.drain()
    assert stream.taken == [[1]]
