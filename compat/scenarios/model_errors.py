"""Connections that fail, streams that stop, and the retries that hide it."""

from __future__ import annotations

from agents import ModelRetrySettings, ModelSettings, Runner, retry_policies

from agents_progress.testing import (
    call,
    completed,
    connection_error,
    cut,
    hang_up,
    http_error,
    raw_turn,
    text,
    turn,
)

from ..registry import scenario
from ..stage import Stage
from .cast import drain, look


@scenario("failed")
async def http_400_first(stage: Stage) -> None:
    agent = stage.agent(http_error(400))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def http_500_first(stage: Stage) -> None:
    agent = stage.agent(http_error(500))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def conn_error_first(stage: Stage) -> None:
    agent = stage.agent(connection_error())
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def model_error_mid(stage: Stage) -> None:
    agent = stage.agent(turn(text("hel", cut(), "lo")))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def model_error_turn2(stage: Stage) -> None:
    agent = stage.agent(turn(call("look")), http_error(500), tools=[look])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def no_completed(stage: Stage) -> None:
    agent = stage.agent(turn(text("hello"), hang_up()))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def no_completed_mid_tool_args(stage: Stage) -> None:
    agent = stage.agent(turn(call("look", ['{"a": ', hang_up(), "1}"])), tools=[look])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def zero_events(stage: Stage) -> None:
    agent = stage.agent(raw_turn())
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def completed_then_conn_error(stage: Stage) -> None:
    agent = stage.agent(turn(text("hello"), completed(), cut()))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def client_retry_invisible(stage: Stage) -> None:
    api = stage.script(http_error(500), turn(text("hello")))
    agent = stage.agent(model=api.model(max_retries=2))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


def retrying() -> ModelSettings:
    policy = retry_policies.any(retry_policies.network_error(), retry_policies.http_status([500]))
    return ModelSettings(retry=ModelRetrySettings(max_retries=2, backoff={"initial_delay": 0.01}, policy=policy))


@scenario("succeeded")
async def sdk_retry_before_events(stage: Stage) -> None:
    agent = stage.agent(http_error(500), turn(text("hello")), model_settings=retrying())
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def sdk_retry_mid_stream(stage: Stage) -> None:
    agent = stage.agent(turn(text("hel", cut())), turn(text("hello")), model_settings=retrying())
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))
