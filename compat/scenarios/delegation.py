"""Runs with several agents: handoffs, and agents used as tools."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import Agent, HandoffInputData, RunHooks, Runner, Tool
from agents import handoff as to

from agents_progress.testing import call, http_error, text, turn, wait

from ..registry import scenario
from ..stage import Stage
from .cast import drain, look


@scenario("succeeded")
async def handoff(stage: Stage) -> None:
    b = stage.agent(turn(text("from B")), name="B")
    a = stage.agent(turn(call("transfer_to_b")), handoffs=[b])
    await drain(stage.keep(Runner.run_streamed(a, "hi")))


@scenario("succeeded")
async def handoff_filter(stage: Stage) -> None:
    def forget(_: HandoffInputData) -> HandoffInputData:
        return HandoffInputData(input_history="hi", pre_handoff_items=(), new_items=())

    b = stage.agent(turn(text("from B")), name="B")
    a = stage.agent(turn(call("transfer_to_b")), handoffs=[to(b, input_filter=forget)])
    await drain(stage.keep(Runner.run_streamed(a, "hi")))


@scenario("failed")
async def handoff_then_model_error(stage: Stage) -> None:
    b = stage.agent(http_error(400), name="B")
    a = stage.agent(turn(call("transfer_to_b")), handoffs=[b])
    await drain(stage.keep(Runner.run_streamed(a, "hi")))


@scenario("succeeded")
async def handoff_plus_tool_same_turn(stage: Stage) -> None:
    b = stage.agent(turn(text("from B")), name="B")
    a = stage.agent(turn(call("look"), call("transfer_to_b")), handoffs=[b], tools=[look])
    await drain(stage.keep(Runner.run_streamed(a, "hi")))


@scenario("succeeded")
async def two_handoffs_same_turn(stage: Stage) -> None:
    b = stage.agent(turn(text("from B")), name="B")
    c = stage.agent(turn(text("from C")), name="C")
    a = stage.agent(turn(call("transfer_to_b"), call("transfer_to_c")), handoffs=[b, c])
    await drain(stage.keep(Runner.run_streamed(a, "hi")))


def outer(stage: Stage, ask: Tool) -> Agent[Any]:
    """An agent that asks another one once, and then answers."""
    return stage.agent(turn(call("ask", {"input": "x"})), turn(text("outer answer")), tools=[ask])


@scenario("succeeded")
async def as_tool(stage: Stage) -> None:
    inner = stage.agent(turn(text("inner answer")), name="inner")
    await drain(stage.keep(Runner.run_streamed(outer(stage, inner.as_tool("ask", "Ask.")), "hi")))


@scenario("succeeded")
async def as_tool_on_stream(stage: Stage) -> None:
    seen: list[Any] = []
    inner = stage.agent(turn(text("inner answer")), name="inner")
    ask = inner.as_tool("ask", "Ask.", on_stream=seen.append)
    await drain(stage.keep(Runner.run_streamed(outer(stage, ask), "hi")))
    assert seen


@scenario("succeeded")
async def as_tool_on_stream_cb_raises(stage: Stage) -> None:
    def fail(_: Any) -> None:
        raise RuntimeError("in the callback")

    inner = stage.agent(turn(text("inner answer")), name="inner")
    ask = inner.as_tool("ask", "Ask.", on_stream=fail)
    await drain(stage.keep(Runner.run_streamed(outer(stage, ask), "hi")))


@scenario("succeeded")
async def as_tool_inner_fails(stage: Stage) -> None:
    inner = stage.agent(http_error(500), name="inner")
    await drain(stage.keep(Runner.run_streamed(outer(stage, inner.as_tool("ask", "Ask.")), "hi")))


@scenario("succeeded")
async def as_tool_inner_max_turns(stage: Stage) -> None:
    inner = stage.agent(turn(call("look")), name="inner", tools=[look])
    ask = inner.as_tool("ask", "Ask.", max_turns=1)
    await drain(stage.keep(Runner.run_streamed(outer(stage, ask), "hi")))


@scenario("succeeded")
async def as_tool_hooks_param(stage: Stage) -> None:
    inner = stage.agent(turn(text("inner answer")), name="inner")
    hooks: RunHooks[Any] = RunHooks()
    ask = inner.as_tool("ask", "Ask.", hooks=hooks)
    await drain(stage.keep(Runner.run_streamed(outer(stage, ask), "hi", hooks=hooks)))


@scenario("succeeded")
async def as_tool_two_parallel_on_stream(stage: Stage) -> None:
    seen: list[Any] = []
    inner = stage.agent(turn(text("one")), turn(text("two")), name="inner")
    ask = inner.as_tool("ask", "Ask.", on_stream=seen.append)
    both = turn(call("ask", {"input": "x"}), call("ask", {"input": "y"}))
    agent = stage.agent(both, turn(text("outer answer")), tools=[ask])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))
    assert len({event["tool_call"].call_id for event in seen}) == 2


@scenario("cancelled")
async def as_tool_cancel_inner_midtext(stage: Stage) -> None:
    speaking = asyncio.Event()
    inner = stage.agent(turn(text("in", wait(asyncio.Event()))), name="inner")
    ask = inner.as_tool("ask", "Ask.", on_stream=lambda event: speaking.set())
    result = stage.keep(Runner.run_streamed(outer(stage, ask), "hi"))
    reader = asyncio.create_task(drain(result))
    await speaking.wait()
    result.cancel()
    await reader
