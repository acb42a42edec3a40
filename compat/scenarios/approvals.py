"""Runs that pause for a person, and their continuations."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

from agents import Agent, Runner, RunResultStreaming

from agents_progress.testing import Turn, call, text, turn

from ..registry import scenario
from ..stage import Stage
from .cast import delete, drain, look


async def paused(stage: Stage, agent: Agent[Any]) -> RunResultStreaming:
    """Run an agent up to its question."""
    result = stage.keep(Runner.run_streamed(agent, "hi"))
    await drain(result)
    assert result.interruptions
    return result


@scenario("paused")
async def approval_pause(stage: Stage) -> None:
    await paused(stage, stage.agent(turn(call("delete")), tools=[delete]))


@scenario("paused")
async def approval_pause_plus_other_tool(stage: Stage) -> None:
    await paused(stage, stage.agent(turn(call("delete"), call("look")), tools=[delete, look]))


@scenario("paused")
async def approval_with_text_output_type_str(stage: Stage) -> None:
    await paused(stage, stage.agent(turn(text("I will."), call("delete")), tools=[delete], output_type=str))


@scenario("succeeded")
async def approval_resume_approve(stage: Stage) -> None:
    agent = stage.agent(turn(call("delete")), turn(text("done")), tools=[delete])
    result = await paused(stage, agent)
    state = result.to_state()
    state.approve(result.interruptions[0])
    await drain(stage.keep(Runner.run_streamed(agent, state)))


@scenario("succeeded")
async def approval_resume_approve_other_ran(stage: Stage) -> None:
    agent = stage.agent(turn(call("delete"), call("look")), turn(text("done")), tools=[delete, look])
    result = await paused(stage, agent)
    state = result.to_state()
    state.approve(result.interruptions[0])
    await drain(stage.keep(Runner.run_streamed(agent, state)))


@scenario("succeeded")
async def approval_resume_reject(stage: Stage) -> None:
    agent = stage.agent(turn(call("delete")), turn(text("done")), tools=[delete])
    result = await paused(stage, agent)
    state = result.to_state()
    state.reject(result.interruptions[0])
    await drain(stage.keep(Runner.run_streamed(agent, state)))


@scenario("paused")
async def approval_resume_without_deciding(stage: Stage) -> None:
    agent = stage.agent(turn(call("delete")), turn(text("done")), tools=[delete])
    result = await paused(stage, agent)
    await drain(stage.keep(Runner.run_streamed(agent, result.to_state())))


@scenario("paused")
async def cancel_while_paused(stage: Stage) -> None:
    result = await paused(stage, stage.agent(turn(call("delete")), tools=[delete]))
    result.cancel()


def asking() -> Turn:
    """A question to the other agent, with a call id that no other run in this process has ever used."""
    return turn(call("ask", {"input": "x"}, call_id=f"call_{uuid4().hex}"))


@scenario("paused")
async def as_tool_inner_approval(stage: Stage) -> None:
    inner = stage.agent(turn(call("delete")), name="inner", tools=[delete])
    ask = inner.as_tool("ask", "Ask the other agent.")
    await paused(stage, stage.agent(asking(), tools=[ask]))


@scenario("succeeded", note="up to 0.22 the SDK leaks the old approval: shows paused")
async def leak_nested_approval_same_call_id(stage: Stage) -> None:
    question = asking()
    inner = stage.agent(turn(call("delete")), name="inner", tools=[delete])
    await paused(stage, stage.agent(question, tools=[inner.as_tool("ask", "Ask the other agent.")]))

    inner = stage.agent(turn(text("inner answer")), name="inner")
    ask = inner.as_tool("ask", "Ask the other agent.")
    agent = stage.agent(question, turn(text("outer answer")), tools=[ask])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))
