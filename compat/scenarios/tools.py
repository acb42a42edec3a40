"""Runs with function tools: that work, fail, are unknown, time out, run side by side, or end the run."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import (
    Runner,
    ToolGuardrailFunctionOutput,
    ToolInputGuardrailData,
    function_tool,
    tool_input_guardrail,
)

from agents_progress.testing import call, completed, pause, text, turn

from ..registry import scenario
from ..stage import Stage
from .cast import broken, drain, fatal, look, slow


@scenario("succeeded")
async def tool(stage: Stage) -> None:
    agent = stage.agent(turn(call("look")), turn(text("done")), tools=[look])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def text_and_tool_same_turn(stage: Stage) -> None:
    agent = stage.agent(turn(text("Let me look."), call("look")), turn(text("done")), tools=[look])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def parallel_tools(stage: Stage) -> None:
    agent = stage.agent(turn(call("slow"), call("look")), turn(text("done")), tools=[look, slow])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def parallel_same_tool(stage: Stage) -> None:
    agent = stage.agent(turn(call("look"), call("look")), turn(text("done")), tools=[look])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def tool_raises_default(stage: Stage) -> None:
    agent = stage.agent(turn(call("broken")), turn(text("sorry")), tools=[broken])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def tool_raises_none_handler(stage: Stage) -> None:
    agent = stage.agent(turn(call("fatal")), tools=[fatal])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def parallel_one_raises_none_handler(stage: Stage) -> None:
    @function_tool(failure_error_function=None)
    async def late() -> str:
        await asyncio.sleep(0.05)
        raise ValueError("kaput")

    agent = stage.agent(turn(call("late"), call("look")), tools=[late, look])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def tool_raises_cancelled_itself(stage: Stage) -> None:
    @function_tool
    async def gives_up() -> str:
        raise asyncio.CancelledError

    agent = stage.agent(turn(call("gives_up")), turn(text("sorry")), tools=[gives_up])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def unknown_tool_called(stage: Stage) -> None:
    agent = stage.agent(turn(call("nowhere")), tools=[look])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def tool_bad_json_args(stage: Stage) -> None:
    agent = stage.agent(turn(call("look", "{oops")), turn(text("sorry")), tools=[look])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def tool_timeout_default(stage: Stage) -> None:
    @function_tool(timeout=0.05)
    async def endless() -> str:
        await asyncio.sleep(5)
        return "never"

    agent = stage.agent(turn(call("endless")), turn(text("done")), tools=[endless])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def stop_on_first_tool(stage: Stage) -> None:
    agent = stage.agent(turn(call("look")), tools=[look], tool_use_behavior="stop_on_first_tool")
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded", note="the SDK promotes the error text: shows succeeded")
async def stop_on_first_tool_tool_raised(stage: Stage) -> None:
    agent = stage.agent(turn(call("broken")), tools=[broken], tool_use_behavior="stop_on_first_tool")
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def stop_on_first_tool_two_tools(stage: Stage) -> None:
    both = turn(call("slow"), call("look"))
    agent = stage.agent(both, tools=[look, slow], tool_use_behavior="stop_on_first_tool")
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@tool_input_guardrail
def rejects(_: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
    return ToolGuardrailFunctionOutput.reject_content("not with these arguments")


@tool_input_guardrail
def forbids(_: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
    return ToolGuardrailFunctionOutput.raise_exception()


@scenario("succeeded")
async def tool_input_guardrail_reject(stage: Stage) -> None:
    @function_tool(tool_input_guardrails=[rejects])
    async def guarded() -> str:
        return "never"

    agent = stage.agent(turn(call("guarded")), turn(text("done")), tools=[guarded])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def tool_input_guardrail_raise(stage: Stage) -> None:
    @function_tool(tool_input_guardrails=[forbids])
    async def guarded() -> str:
        return "never"

    agent = stage.agent(turn(call("guarded")), tools=[guarded])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def tool_called_before_tool_runs(stage: Stage) -> None:
    seen: list[str] = []

    @function_tool
    async def work() -> str:
        await asyncio.sleep(0.02)
        seen.append("ran")
        return "ok"

    agent = stage.agent(turn(call("work")), turn(text("done")), tools=[work])
    result = stage.keep(Runner.run_streamed(agent, "hi"))
    async for event in result.stream_events():
        if event.type == "run_item_stream_event":
            seen.append(event.name)
    assert seen == ["tool_called", "ran", "tool_output", "message_output_created"], seen


@scenario("succeeded")
async def item_events_before_completed(stage: Stage) -> None:
    # Whether `tool_called` comes in the middle of the response or after it depends on the SDK's version.
    slowly = turn(call("look"), pause(0.05), completed())
    agent = stage.agent(slowly, turn(text("done")), tools=[look])
    result = stage.keep(Runner.run_streamed(agent, "hi"))
    order: list[Any] = [event.type async for event in result.stream_events()]
    assert "run_item_stream_event" in order
