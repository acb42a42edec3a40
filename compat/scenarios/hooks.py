"""Hooks of the application's own: they are in the run's critical path, so that one that raises fails the run."""

from __future__ import annotations

import asyncio
from typing import Any

from agents import Agent, AgentHooks, RunHooks, Runner

from agents_progress.testing import call, text, turn

from ..registry import scenario
from ..stage import Stage
from .cast import drain, look


class FailingHooks(RunHooks[Any]):
    """Hooks that work, but for one."""

    def __init__(self, failing: str) -> None:
        async def fail(*_: Any, **__: Any) -> None:
            raise RuntimeError(f"{failing} is broken")

        setattr(self, failing, fail)


async def run_with(stage: Stage, hooks: RunHooks[Any]) -> None:
    agent = stage.agent(turn(call("look")), turn(text("done")), tools=[look])
    await drain(stage.keep(Runner.run_streamed(agent, "hi", hooks=hooks)))


@scenario("failed")
async def hook_raises_on_agent_start(stage: Stage) -> None:
    await run_with(stage, FailingHooks("on_agent_start"))


@scenario("failed")
async def hook_raises_on_llm_start(stage: Stage) -> None:
    await run_with(stage, FailingHooks("on_llm_start"))


@scenario("failed")
async def hook_raises_on_llm_end(stage: Stage) -> None:
    await run_with(stage, FailingHooks("on_llm_end"))


@scenario("failed")
async def hook_raises_on_agent_end(stage: Stage) -> None:
    await run_with(stage, FailingHooks("on_agent_end"))


@scenario("failed")
async def hook_raises_on_tool_start(stage: Stage) -> None:
    await run_with(stage, FailingHooks("on_tool_start"))


@scenario("failed")
async def hook_raises_on_tool_end(stage: Stage) -> None:
    await run_with(stage, FailingHooks("on_tool_end"))


@scenario("succeeded")
async def slow_hook_delays_events(stage: Stage) -> None:
    class Slow(RunHooks[Any]):
        async def on_tool_start(self, *_: Any) -> None:
            await asyncio.sleep(0.1)

    await run_with(stage, Slow())


@scenario("succeeded")
async def agent_hooks_and_run_hooks_order(stage: Stage) -> None:
    order: list[str] = []
    before = stage.agent(turn(call("look")), turn(text("done")), tools=[look])

    class Run(RunHooks[Any]):
        async def on_agent_end(self, *_: Any) -> None:
            order.append("run")

    class Own(AgentHooks[Any]):
        async def on_end(self, context: Any, agent: Agent[Any], output: Any) -> None:
            order.append("agent")
            assert before.hooks is not None
            await before.hooks.on_end(context, agent, output)

    agent = before.clone(hooks=Own())
    await drain(stage.keep(Runner.run_streamed(agent, "hi", hooks=Run())))
    assert order == ["run", "agent"]
