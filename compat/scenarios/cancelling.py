"""Cancelling a run through its result: at once or after the turn, at every moment that matters."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any

from agents import Agent, Runner, RunResultStreaming, Tool, function_tool
from openai import BadRequestError

from agents_progress.testing import call, cut, http_error, reached, text, turn, wait

from ..registry import scenario
from ..stage import Stage
from .cast import delete, drain, is_item, is_raw, is_text, look, settled


def never() -> Any:
    """The server says nothing more."""
    return wait(asyncio.Event())


async def run_and_cancel_on_text(stage: Stage, agent: Agent[Any], **how: Any) -> RunResultStreaming:
    """Read a run to its end; cancel it at the first piece of text."""
    result = stage.keep(Runner.run_streamed(agent, "hi"))
    asked = False
    async for event in result.stream_events():
        if is_text(event) and not asked:
            asked = True
            result.cancel(**how)
    return result


@scenario("cancelled")
async def cancel_before_consume(stage: Stage) -> None:
    result = stage.keep(Runner.run_streamed(stage.agent(turn(text("hello"))), "hi"))
    result.cancel()
    await drain(result)


@scenario("cancelled")
async def cancel_after_first_await_before_consume(stage: Stage) -> None:
    answering = asyncio.Event()
    agent = stage.agent(turn(reached(answering), text("hello", never())))
    result = stage.keep(Runner.run_streamed(agent, "hi"))
    await answering.wait()
    result.cancel()
    await drain(result)


@scenario("cancelled")
async def cancel_midtext(stage: Stage) -> None:
    await run_and_cancel_on_text(stage, stage.agent(turn(text("hel", never(), "lo"))))


@scenario("cancelled")
async def cancel_midtext_more_queued(stage: Stage) -> None:
    queued = asyncio.Event()
    agent = stage.agent(turn(text("one two three four", reached(queued), never())))
    result = stage.keep(Runner.run_streamed(agent, "hi"))
    async for event in result.stream_events():
        if is_text(event):
            await queued.wait()
            result.cancel()


@scenario("cancelled")
async def cancel_on_completed_raw(stage: Stage) -> None:
    result = stage.keep(Runner.run_streamed(stage.agent(turn(text("hello"))), "hi"))
    async for event in result.stream_events():
        if is_raw(event, "response.completed"):
            result.cancel()


@scenario("cancelled")
async def cancel_on_message_output_created(stage: Stage) -> None:
    result = stage.keep(Runner.run_streamed(stage.agent(turn(text("hello"))), "hi"))
    async for event in result.stream_events():
        if is_item(event, "message_output_created"):
            result.cancel()


async def run_and_cancel_when(stage: Stage, tool: Tool, started: asyncio.Event, **how: Any) -> None:
    """Run an agent with one tool and cancel from outside once the tool is at work."""
    agent = stage.agent(turn(call(tool.name)), turn(text("done")), tools=[tool])
    result = stage.keep(Runner.run_streamed(agent, "hi"))
    reader = asyncio.create_task(drain(result))
    await started.wait()
    result.cancel(**how)
    await reader


@scenario("cancelled")
async def cancel_in_tool(stage: Stage) -> None:
    @function_tool
    async def work() -> str:
        await asyncio.sleep(1.0)
        return "ok"

    agent = stage.agent(turn(call("work")), turn(text("done")), tools=[work])
    result = stage.keep(Runner.run_streamed(agent, "hi"))
    async for event in result.stream_events():
        if is_item(event, "tool_called"):
            result.cancel()


@scenario("cancelled")
async def cancel_in_tool_started(stage: Stage) -> None:
    started = asyncio.Event()

    @function_tool
    async def work() -> str:
        started.set()
        await asyncio.sleep(1.0)
        return "ok"

    await run_and_cancel_when(stage, work, started)


@scenario("cancelled")
async def cancel_in_tool_swallows_raises(stage: Stage) -> None:
    started = asyncio.Event()

    @function_tool
    async def work() -> str:
        started.set()
        try:
            await asyncio.sleep(0.2)
        except asyncio.CancelledError:
            raise ValueError("cleaning up went wrong") from None
        return "ok"

    await run_and_cancel_when(stage, work, started)


@scenario("cancelled")
async def cancel_in_tool_swallows_returns(stage: Stage) -> None:
    started = asyncio.Event()

    @function_tool
    async def work() -> str:
        started.set()
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.2)
        return "as far as I got"

    await run_and_cancel_when(stage, work, started)


@scenario("cancelled")
async def cancel_in_sync_tool(stage: Stage) -> None:
    loop, started, ended = asyncio.get_running_loop(), asyncio.Event(), threading.Event()

    @function_tool
    def work() -> str:
        loop.call_soon_threadsafe(started.set)
        ended.wait(5)  # a thread cannot be cancelled: this goes on after the run has ended
        return "ok"

    try:
        await run_and_cancel_when(stage, work, started)
    finally:
        ended.set()


@scenario("succeeded")
async def cancel_after_iterator_ended(stage: Stage) -> None:
    result = stage.keep(Runner.run_streamed(stage.agent(turn(text("hello"))), "hi"))
    await drain(result)
    result.cancel()


@scenario("failed")
async def cancel_after_failure(stage: Stage) -> None:
    result = stage.keep(Runner.run_streamed(stage.agent(http_error(400)), "hi"))
    try:
        await drain(result)
    except BadRequestError:
        result.cancel()
        raise


@scenario("succeeded")
async def cancel_after_run_done_before_consume(stage: Stage) -> None:
    result = stage.keep(Runner.run_streamed(stage.agent(turn(text("hello"))), "hi"))
    await settled(result)
    result.cancel()
    await drain(result)


@scenario("failed")
async def cancel_after_run_failed_before_consume(stage: Stage) -> None:
    result = stage.keep(Runner.run_streamed(stage.agent(http_error(400)), "hi"))
    await settled(result)
    result.cancel()
    await drain(result)


@scenario("cancelled", note="completed_anyway")
async def after_turn_midtext_single(stage: Stage) -> None:
    await run_and_cancel_on_text(stage, stage.agent(turn(text("hello world"))), mode="after_turn")


@scenario("cancelled")
async def after_turn_midtext_tool_turn(stage: Stage) -> None:
    agent = stage.agent(turn(text("Let me look."), call("look")), turn(text("done")), tools=[look])
    await run_and_cancel_on_text(stage, agent, mode="after_turn")


@scenario("cancelled")
async def after_turn_midtool(stage: Stage) -> None:
    started = asyncio.Event()

    @function_tool
    async def work() -> str:
        started.set()
        await asyncio.sleep(0.05)
        return "ok"

    await run_and_cancel_when(stage, work, started, mode="after_turn")


@scenario("cancelled")
async def after_turn_on_tool_output(stage: Stage) -> None:
    agent = stage.agent(turn(call("look")), turn(text("done")), tools=[look])
    result = stage.keep(Runner.run_streamed(agent, "hi"))
    async for event in result.stream_events():
        if is_item(event, "tool_output"):
            result.cancel(mode="after_turn")


@scenario("paused", note="paused wins over the request")
async def after_turn_approval_pending(stage: Stage) -> None:
    agent = stage.agent(turn(text("I will."), call("delete")), tools=[delete])
    await run_and_cancel_on_text(stage, agent, mode="after_turn")


@scenario("failed")
async def after_turn_then_error(stage: Stage) -> None:
    agent = stage.agent(turn(text("hel", cut())))
    await run_and_cancel_on_text(stage, agent, mode="after_turn")


@scenario("cancelled")
async def after_turn_then_immediate(stage: Stage) -> None:
    agent = stage.agent(turn(text("hel", never())))
    result = stage.keep(Runner.run_streamed(agent, "hi"))
    async for event in result.stream_events():
        if is_text(event):
            result.cancel(mode="after_turn")
            result.cancel()


@scenario("cancelled")
async def after_turn_handoff(stage: Stage) -> None:
    b = stage.agent(turn(text("from B")), name="B")
    agent = stage.agent(turn(text("One moment."), call("transfer_to_b")), handoffs=[b])
    await run_and_cancel_on_text(stage, agent, mode="after_turn")


@scenario("cancelled")
async def after_turn_before_consume(stage: Stage) -> None:
    result = stage.keep(Runner.run_streamed(stage.agent(turn(text("hello"))), "hi"))
    result.cancel(mode="after_turn")
    await drain(result)


@scenario("succeeded")
async def after_turn_resume_via_state(stage: Stage) -> None:
    agent = stage.agent(turn(text("Let me look."), call("look")), turn(text("done")), tools=[look])
    stopped = await run_and_cancel_on_text(stage, agent, mode="after_turn")
    await drain(stage.keep(Runner.run_streamed(agent, stopped.to_state())))
