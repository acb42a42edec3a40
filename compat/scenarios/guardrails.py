"""Guardrails on input and output: when they trip, when they break, and who is still there to hear of it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from agents import GuardrailFunctionOutput, InputGuardrail, OutputGuardrail, Runner

from agents_progress.testing import call, reached, text, turn

from ..registry import scenario
from ..stage import Stage
from .cast import drain, is_item, is_text, look


def checks(tripped: bool, after: Callable[[], Awaitable[Any]]) -> Callable[..., Awaitable[GuardrailFunctionOutput]]:
    """A check that reaches its verdict once `after` is over."""

    async def check(*_: Any) -> GuardrailFunctionOutput:
        await after()
        return GuardrailFunctionOutput(output_info=None, tripwire_triggered=tripped)

    return check


async def at_once() -> None:
    """No time at all."""


async def breaks() -> None:
    """The check itself fails."""
    raise RuntimeError("the guardrail broke")


def once_answered(stage: Stage) -> Callable[[], Awaitable[None]]:
    """As late as can be: when the answer has been given and handled, and only the guardrail is still at work."""

    async def wait() -> None:
        while stage.results[-1].final_output is None:
            await asyncio.sleep(0.01)

    return wait


@scenario("failed")
async def input_guardrail_parallel_fast(stage: Stage) -> None:
    # The answer has been given but not yet handled: this is as late as a fast guardrail can be.
    answered = asyncio.Event()
    guard: InputGuardrail[Any] = InputGuardrail(checks(True, answered.wait))
    agent = stage.agent(turn(text("hello", reached(answered))), input_guardrails=[guard])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def input_guardrail_parallel_slow(stage: Stage) -> None:
    guard: InputGuardrail[Any] = InputGuardrail(checks(True, once_answered(stage)))
    agent = stage.agent(turn(text("hello")), input_guardrails=[guard])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def input_guardrail_parallel_slow_with_tool(stage: Stage) -> None:
    guard: InputGuardrail[Any] = InputGuardrail(checks(True, once_answered(stage)))
    agent = stage.agent(turn(call("look")), turn(text("hello")), tools=[look], input_guardrails=[guard])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def input_guardrail_blocking(stage: Stage) -> None:
    guard: InputGuardrail[Any] = InputGuardrail(checks(True, at_once), run_in_parallel=False)
    agent = stage.agent(turn(text("hello")), input_guardrails=[guard])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def input_guardrail_raises(stage: Stage) -> None:
    async def breaks_late() -> None:
        await once_answered(stage)()
        await breaks()

    guard: InputGuardrail[Any] = InputGuardrail(checks(True, breaks_late))
    agent = stage.agent(turn(text("hello")), input_guardrails=[guard])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def input_guardrail_slow_ok(stage: Stage) -> None:
    guard: InputGuardrail[Any] = InputGuardrail(checks(False, once_answered(stage)))
    agent = stage.agent(turn(text("hello")), input_guardrails=[guard])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def output_guardrail(stage: Stage) -> None:
    guard: OutputGuardrail[Any] = OutputGuardrail(checks(True, at_once))
    agent = stage.agent(turn(text("hello")), output_guardrails=[guard])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def output_guardrail_raises(stage: Stage) -> None:
    guard: OutputGuardrail[Any] = OutputGuardrail(checks(True, breaks))
    agent = stage.agent(turn(text("hello")), output_guardrails=[guard])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def break_before_guardrail_trip(stage: Stage) -> None:
    guard: InputGuardrail[Any] = InputGuardrail(checks(True, once_answered(stage)))
    agent = stage.agent(turn(text("hello")), input_guardrails=[guard])
    result = stage.keep(Runner.run_streamed(agent, "hi"))
    async for event in result.stream_events():
        if is_text(event):
            break


@scenario("failed")
async def never_consumed_guardrail_trip(stage: Stage) -> None:
    guard: InputGuardrail[Any] = InputGuardrail(checks(True, once_answered(stage)))
    agent = stage.agent(turn(text("hello")), input_guardrails=[guard])
    stage.keep(Runner.run_streamed(agent, "hi"))


@scenario("cancelled")
async def cancel_with_guardrail_pending(stage: Stage) -> None:
    guard: InputGuardrail[Any] = InputGuardrail(checks(False, asyncio.Event().wait))
    agent = stage.agent(turn(text("hello")), input_guardrails=[guard])
    result = stage.keep(Runner.run_streamed(agent, "hi"))
    async for event in result.stream_events():
        if is_item(event, "message_output_created"):
            await once_answered(stage)()
            result.cancel()
