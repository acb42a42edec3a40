"""Readers that leave: by break, by an exception, by closing, by being cancelled, by a timeout; or that come twice."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from agents import Runner, function_tool
from openai import BadRequestError

from agents_progress.testing import call, cut, http_error, reached, text, turn, wait

from ..registry import scenario
from ..stage import Stage
from .cast import drain, first, is_item, is_text, look


@scenario("succeeded")
async def break_at_tool_called(stage: Stage) -> None:
    agent = stage.agent(turn(call("look")), turn(text("done")), tools=[look])
    result = stage.keep(Runner.run_streamed(agent, "hi"))
    async for event in result.stream_events():
        if is_item(event, "tool_called"):
            break


@scenario("none", note="still running: no ending; run.lost once given up")
async def break_midtext_hang(stage: Stage) -> None:
    agent = stage.agent(turn(text("abc", wait(asyncio.Event()))))
    result = stage.keep(Runner.run_streamed(agent, "hi"))
    async for event in result.stream_events():
        if is_text(event):
            break


@scenario("succeeded")
async def break_then_reiterate(stage: Stage) -> None:
    result = stage.keep(Runner.run_streamed(stage.agent(turn(text("abc", chunk=1))), "hi"))
    async for event in result.stream_events():
        if is_text(event):
            break
    await drain(result)


@scenario("failed")
async def break_then_run_fails(stage: Stage) -> None:
    left = asyncio.Event()
    result = stage.keep(Runner.run_streamed(stage.agent(turn(text("abc", wait(left), cut()))), "hi"))
    async for event in result.stream_events():
        if is_text(event):
            break
    left.set()


@scenario("succeeded")
async def body_raises(stage: Stage) -> None:
    agent = stage.agent(turn(text("Let me look."), call("look")), turn(text("done")), tools=[look])
    result = stage.keep(Runner.run_streamed(agent, "hi"))
    async for event in result.stream_events():
        if is_text(event):
            raise RuntimeError("a fault in the application")


@scenario("succeeded")
async def aclose_midtext(stage: Stage) -> None:
    result = stage.keep(Runner.run_streamed(stage.agent(turn(text("abc", chunk=1))), "hi"))
    events = result.stream_events()
    await first(events, is_text)
    await events.aclose()  # type: ignore[attr-defined]  # declared as an iterator, it is a generator


@scenario("failed")
async def aclose_then_run_fails(stage: Stage) -> None:
    left = asyncio.Event()
    result = stage.keep(Runner.run_streamed(stage.agent(turn(text("abc", wait(left), cut()))), "hi"))
    events = result.stream_events()
    await first(events, is_text)
    asyncio.get_running_loop().call_soon(left.set)
    await events.aclose()  # type: ignore[attr-defined]  # declared as an iterator, it is a generator


@scenario("cancelled")
async def consumer_cancelled_in_wait(stage: Stage) -> None:
    # The reader waits for an event: the SDK cancels its own run.
    said = asyncio.Event()
    agent = stage.agent(turn(text("abc", reached(said), wait(asyncio.Event()))))
    reader = asyncio.create_task(drain(stage.keep(Runner.run_streamed(agent, "hi"))))
    await said.wait()
    await asyncio.sleep(0.01)  # so that it has read what there was to read
    reader.cancel()
    with suppress(asyncio.CancelledError):
        await reader


@scenario("succeeded")
async def consumer_cancelled_in_body(stage: Stage) -> None:
    # The reader is busy with an event: nobody cancels the run.
    agent = stage.agent(turn(text("Let me look."), call("look")), turn(text("done")), tools=[look])
    result = stage.keep(Runner.run_streamed(agent, "hi"))
    busy = asyncio.Event()

    async def read() -> None:
        async for event in result.stream_events():
            if is_text(event):
                busy.set()
                await asyncio.sleep(5)

    reader = asyncio.create_task(read())
    await busy.wait()
    reader.cancel()
    with suppress(asyncio.CancelledError):
        await reader


@scenario("cancelled")
async def asyncio_timeout(stage: Stage) -> None:
    result = stage.keep(Runner.run_streamed(stage.agent(turn(text("abc", wait(asyncio.Event())))), "hi"))
    async with asyncio.timeout(5) as limit:
        async for event in result.stream_events():
            if is_text(event):  # from here on patience is short
                limit.reschedule(asyncio.get_running_loop().time() + 0.05)


@scenario("cancelled")
async def asyncio_timeout_in_tool_body_wait(stage: Stage) -> None:
    @function_tool
    async def endless() -> str:
        limit.reschedule(asyncio.get_running_loop().time())  # the time is up while the tool is at work
        await asyncio.sleep(5)
        return "never"

    agent = stage.agent(turn(call("endless")), turn(text("done")), tools=[endless])
    result = stage.keep(Runner.run_streamed(agent, "hi"))
    async with asyncio.timeout(5) as limit:
        await drain(result)


@scenario("succeeded")
async def iterate_twice_after_success(stage: Stage) -> None:
    result = stage.keep(Runner.run_streamed(stage.agent(turn(text("hello"))), "hi"))
    await drain(result)
    await drain(result)


@scenario("failed")
async def iterate_twice_after_failure(stage: Stage) -> None:
    result = stage.keep(Runner.run_streamed(stage.agent(http_error(400)), "hi"))
    with suppress(BadRequestError):
        await drain(result)
    await drain(result)  # raises again


@scenario("cancelled")
async def iterate_twice_after_cancel(stage: Stage) -> None:
    result = stage.keep(Runner.run_streamed(stage.agent(turn(text("abc", wait(asyncio.Event())))), "hi"))
    async for event in result.stream_events():
        if is_text(event):
            result.cancel()
    await drain(result)


@scenario("succeeded", note="with the owner in between, both readers see everything")
async def two_consumers_concurrent(stage: Stage) -> None:
    # On the bare SDK they share the events between them, and one of them waits for ever.
    result = stage.keep(Runner.run_streamed(stage.agent(turn(text("abcdef", chunk=1))), "hi"))
    readers = {asyncio.create_task(drain(result)), asyncio.create_task(drain(result))}
    await asyncio.wait(readers, timeout=5, return_when=asyncio.FIRST_COMPLETED)
    _, waiting = await asyncio.wait(readers, timeout=0.1)
    for reader in waiting:
        reader.cancel()
        with suppress(asyncio.CancelledError):
            await reader
