"""The Chat Completions model, which erases how a stream ended in several of these cases."""

from __future__ import annotations

from agents import Agent, Runner

from agents_progress.testing import Turn, call, hang_up, incomplete, raw_turn, text, turn

from ..registry import scenario
from ..stage import Stage
from .cast import drain, look


async def run(stage: Stage, *turns: Turn) -> None:
    agent: Agent = stage.agent(model=stage.script(*turns).chat_model(), tools=[look])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def chat_plain_stop(stage: Stage) -> None:
    await run(stage, turn(text("hello")))


@scenario("succeeded")
async def chat_tool(stage: Stage) -> None:
    await run(stage, turn(call("look")), turn(text("ok")))


@scenario("succeeded", note="the SDK erases it: shows succeeded")
async def chat_finish_length(stage: Stage) -> None:
    await run(stage, turn(text("hello"), incomplete("max_output_tokens")))


@scenario("succeeded", note="the SDK erases it: shows succeeded")
async def chat_finish_content_filter(stage: Stage) -> None:
    await run(stage, turn(text("hel"), incomplete("content_filter")))


@scenario("failed", note="up to 0.22 erased: shows succeeded")
async def chat_stream_cut_no_finish_reason(stage: Stage) -> None:
    await run(stage, turn(text("hel"), hang_up()))


@scenario("failed", note="up to 0.22 erased: shows succeeded")
async def chat_zero_chunks(stage: Stage) -> None:
    await run(stage, raw_turn())


@scenario("failed", note="up to 0.22 erased: shows succeeded")
async def chat_cut_in_tool_args(stage: Stage) -> None:
    await run(stage, turn(call("look", ['{"a": ', hang_up(), "1}"])), turn(text("sorry")))
