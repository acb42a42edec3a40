"""Readers that are late, slow, or never come."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import Agent, GuardrailFunctionOutput, OutputGuardrail, Runner

from agents_progress.testing import call, cut, http_error, text, turn

from ..registry import scenario
from ..stage import Stage
from .cast import drain, is_text, look, settled


async def read_slowly(stage: Stage, agent: Agent[Any], **options: Any) -> None:
    """Read a run with a body that is busy for a moment at the first piece of text."""
    result = stage.keep(Runner.run_streamed(agent, "hi", **options))
    rested = False
    async for event in result.stream_events():
        if not rested and (is_text(event) or event.type == "agent_updated_stream_event"):
            rested = True
            await asyncio.sleep(0.15)


@scenario("failed")
async def slow_consumer_failure_events_dropped(stage: Stage) -> None:
    await read_slowly(stage, stage.agent(turn(text("one two three", cut()))))


@scenario("failed")
async def slow_consumer_output_guardrail(stage: Stage) -> None:
    async def trip(*_: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=True)

    guard: OutputGuardrail[Any] = OutputGuardrail(trip)
    await read_slowly(stage, stage.agent(turn(text("hello")), output_guardrails=[guard]))


@scenario("incomplete", note="reason max_turns")
async def slow_consumer_max_turns(stage: Stage) -> None:
    await read_slowly(stage, stage.agent(turn(call("look")), tools=[look]), max_turns=1)


@scenario("succeeded")
async def slow_consumer_tool(stage: Stage) -> None:
    await read_slowly(stage, stage.agent(turn(call("look")), turn(text("abc", chunk=1)), tools=[look]))


@scenario("succeeded")
async def consume_after_completion(stage: Stage) -> None:
    agent = stage.agent(turn(call("look")), turn(text("done")), tools=[look])
    result = stage.keep(Runner.run_streamed(agent, "hi"))
    await settled(result)
    await drain(result)


@scenario("failed")
async def consume_after_failure(stage: Stage) -> None:
    result = stage.keep(Runner.run_streamed(stage.agent(turn(text("hel", cut()))), "hi"))
    await settled(result)
    await drain(result)


@scenario("succeeded")
async def never_consumed_success(stage: Stage) -> None:
    agent = stage.agent(turn(call("look")), turn(text("done")), tools=[look])
    stage.keep(Runner.run_streamed(agent, "hi"))


@scenario("failed")
async def never_consumed_failure(stage: Stage) -> None:
    stage.keep(Runner.run_streamed(stage.agent(http_error(400)), "hi"))


@scenario("incomplete", note="reason max_turns; nothing was raised to anybody")
async def never_consumed_max_turns(stage: Stage) -> None:
    agent = stage.agent(turn(call("look")), tools=[look])
    stage.keep(Runner.run_streamed(agent, "hi", max_turns=1))
