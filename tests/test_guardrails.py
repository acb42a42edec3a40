"""Guardrails that trip are named, whatever stage they stand at and however the run is read."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrail,
    OutputGuardrail,
    Runner,
    ToolGuardrailFunctionOutput,
    function_tool,
    tool_input_guardrail,
    tool_output_guardrail,
)
from staging import scripted, stored

from agents_progress import progress
from agents_progress.journal import MemoryJournal
from agents_progress.sdk.base import TRIPWIRES
from agents_progress.testing import call, text, turn


async def trips(*_: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(None, True)


def stops(_: Any) -> ToolGuardrailFunctionOutput:
    return ToolGuardrailFunctionOutput.raise_exception("stopped")


def with_tool(**guardrails: Any) -> Agent[Any]:
    async def work() -> str:
        return "ok"

    tool = function_tool(work)
    for name, guardrail in guardrails.items():
        setattr(tool, name, [guardrail])
    return scripted(turn(call("work", call_id="c1")), turn(text("done")), tools=[tool])


STAGES: dict[str, tuple[Callable[[], Agent[Any]], str, dict[str, str]]] = {
    "input": (
        lambda: scripted(turn(text("x")), input_guardrails=[InputGuardrail(trips, name="gate")]),
        "input_guardrail",
        {},
    ),
    "output": (
        lambda: scripted(turn(text("x")), output_guardrails=[OutputGuardrail(trips, name="gate")]),
        "output_guardrail",
        {},
    ),
    "tool_input": (
        lambda: with_tool(tool_input_guardrails=tool_input_guardrail(name="gate")(stops)),
        "tool_guardrail",
        {"c1": "skipped"},
    ),
    "tool_output": (
        lambda: with_tool(tool_output_guardrails=tool_output_guardrail(name="gate")(stops)),
        "tool_guardrail",
        {"c1": "failed"},
    ),
}


async def streamed(agent: Agent[Any]) -> None:
    async for _ in Runner.run_streamed(agent, "hi").stream_events():
        pass


async def awaited(agent: Agent[Any]) -> None:
    await Runner.run(agent, "hi")


@pytest.mark.parametrize("read", [streamed, awaited])
@pytest.mark.parametrize("stage", STAGES)
async def test_a_guardrail_that_trips_is_named_once(stage: str, read: Any, journal: MemoryJournal) -> None:
    make, code, tools = STAGES[stage]

    @progress.inside(journal=journal, run_id="r")
    async def body() -> None:
        with suppress(Exception):
            await read(make())

    await body()
    log = await stored(journal, "r")
    assert log.of("guardrail.tripped") == [{"stage": stage, "name": "gate"}]
    assert (log.ending["outcome"], log.ending["error"]["code"]) == ("failed", code)
    assert log.view.tools == tools and log.view.issues == []


def test_every_stage_is_tried() -> None:
    assert list(STAGES) == list(TRIPWIRES.values())


async def test_the_turn_limit_of_a_run_inside_a_guardrail_is_not_the_runs_own(journal: MemoryJournal) -> None:
    @function_tool
    async def look() -> str:
        return "ok"

    async def check(*_: Any) -> GuardrailFunctionOutput:
        await Runner.run(scripted(turn(call("look")), tools=[look]), "hi", max_turns=1)
        raise AssertionError("the run before has more to say than it may")

    agent = scripted(turn(text("x")), input_guardrails=[InputGuardrail(check, run_in_parallel=False)])

    @progress.inside(journal=journal, run_id="r")
    async def body() -> None:
        with suppress(Exception):
            await streamed(agent)

    await body()
    log = await stored(journal, "r")
    assert (log.ending["outcome"], log.ending["error"]["code"]) == ("failed", "guardrail_error")
