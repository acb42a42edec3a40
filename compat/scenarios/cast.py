"""The tools and the reading loops that many scenarios share."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import RunResultStreaming, StreamEvent, function_tool
from pydantic import BaseModel


class Ans(BaseModel):
    """A structured answer."""

    n: int


@function_tool
async def look() -> str:
    """Return at once."""
    return "t1-ok"


@function_tool
async def slow() -> str:
    """Return after a moment."""
    await asyncio.sleep(0.05)
    return "slow-ok"


@function_tool
async def broken() -> str:
    """Raise."""
    raise ValueError("kaput")


@function_tool(failure_error_function=None)
async def fatal() -> str:
    """Raise, and fail the run."""
    raise ValueError("kaput")


@function_tool(needs_approval=True)
async def delete() -> str:
    """Do something that a person must approve."""
    return "deleted"


async def drain(result: RunResultStreaming) -> None:
    """Read a run to the end of its stream."""
    async for _ in result.stream_events():
        pass


def is_raw(event: StreamEvent, kind: str) -> bool:
    """Whether this is the raw model event of that type."""
    return event.type == "raw_response_event" and event.data.type == kind


def is_text(event: StreamEvent) -> bool:
    """Whether this is a piece of the answer."""
    return is_raw(event, "response.output_text.delta")


def is_item(event: StreamEvent, name: str) -> bool:
    """Whether this is the run item event of that name."""
    return event.type == "run_item_stream_event" and event.name == name


async def first(events: Any, test: Any) -> StreamEvent:
    """Read up to the first event that passes the test."""
    async for event in events:
        if test(event):
            found: StreamEvent = event
            return found
    raise AssertionError("the stream ended without such an event")


async def settled(result: RunResultStreaming) -> None:
    """Wait, without reading, until the run has nothing more to do; within a bound."""
    assert result.run_loop_task is not None
    await asyncio.wait({result.run_loop_task}, timeout=5)
