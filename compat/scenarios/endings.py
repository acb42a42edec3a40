"""Responses that end in another way than by completing: limits, failures, refusals, and statuses that say so."""

from __future__ import annotations

from typing import Any

from agents import RunErrorHandlers, Runner

from agents_progress.testing import call, completed, error, message, text, turn
from agents_progress.testing import failed as fails
from agents_progress.testing import incomplete as stops
from agents_progress.testing import refusal as refuses

from ..registry import scenario
from ..stage import Stage
from .cast import Ans, drain, look


@scenario("incomplete")
async def incomplete_max_tokens(stage: Stage) -> None:
    agent = stage.agent(turn(text("hel"), stops("max_output_tokens")))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("incomplete")
async def incomplete_content_filter(stage: Stage) -> None:
    agent = stage.agent(turn(text("hel"), stops("content_filter")))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("incomplete")
async def incomplete_with_tool_call(stage: Stage) -> None:
    agent = stage.agent(turn(call("look"), stops("max_output_tokens")), tools=[look])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("incomplete")
async def completed_event_status_incomplete(stage: Stage) -> None:
    agent = stage.agent(turn(text("hello"), completed(status="incomplete")))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def completed_event_status_failed(stage: Stage) -> None:
    agent = stage.agent(turn(text("hello"), completed(status="failed")))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("incomplete")
async def completed_event_message_status_incomplete(stage: Stage) -> None:
    agent = stage.agent(turn(text("hello", status="incomplete")))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def failed(stage: Stage) -> None:
    agent = stage.agent(turn(text("hel"), fails("server_error", "The model failed.")))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def error_event(stage: Stage) -> None:
    agent = stage.agent(turn(text("hel"), error()))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def error_event_then_completed(stage: Stage) -> None:
    agent = stage.agent(turn(text("hello"), error(), completed()))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def refusal(stage: Stage) -> None:
    agent = stage.agent(turn(refuses("I cannot.")))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def refusal_structured(stage: Stage) -> None:
    agent = stage.agent(turn(refuses("I cannot.")), output_type=Ans)
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def refusal_handler(stage: Stage) -> None:
    agent = stage.agent(turn(refuses("I cannot.")))
    polite: RunErrorHandlers[Any] = {"model_refusal": lambda _: "policy text"}
    await drain(stage.keep(Runner.run_streamed(agent, "hi", error_handlers=polite)))


@scenario("failed")
async def text_plus_refusal(stage: Stage) -> None:
    agent = stage.agent(turn(message(text("Well, "), refuses("I cannot."))))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("incomplete", note="reason max_turns")
async def max_turns(stage: Stage) -> None:
    agent = stage.agent(turn(call("look")), tools=[look])
    await drain(stage.keep(Runner.run_streamed(agent, "hi", max_turns=1)))


@scenario("succeeded")
async def max_turns_handler(stage: Stage) -> None:
    agent = stage.agent(turn(call("look")), tools=[look])
    fallback: RunErrorHandlers[Any] = {"max_turns": lambda _: "fallback answer"}
    await drain(stage.keep(Runner.run_streamed(agent, "hi", max_turns=1, error_handlers=fallback)))


@scenario("succeeded")
async def max_turns_none_loop(stage: Stage) -> None:
    agent = stage.agent(turn(call("look")), turn(text("x")), tools=[look])
    await drain(stage.keep(Runner.run_streamed(agent, "hi", max_turns=None)))
