"""Runs with a session: one that works, and ones that fail at each of their doors."""

from __future__ import annotations

from typing import Any

from agents import Runner, TResponseInputItem
from agents.memory import SessionABC

from agents_progress.testing import call, text, turn

from ..registry import scenario
from ..stage import Stage
from .cast import delete, drain, look
from .slow_readers import read_slowly


class Memory(SessionABC):
    """A session in memory that fails when it is read, or at an item that has this type or role."""

    session_id = "s"

    def __init__(self, *, fail_reading: bool = False, fail_at: str | None = None) -> None:
        self.items: list[Any] = []
        self.fail_reading = fail_reading
        self.fail_at = fail_at

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        if self.fail_reading:
            raise RuntimeError("the session cannot be read")
        return self.items[-limit:] if limit else list(self.items)

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        for item in items:
            if self.fail_at is not None and self.fail_at in (item.get("type"), item.get("role")):
                raise RuntimeError("the session cannot be written")
        self.items.extend(items)

    async def pop_item(self) -> TResponseInputItem | None:
        return self.items.pop() if self.items else None

    async def clear_session(self) -> None:
        self.items.clear()


@scenario("succeeded")
async def session_ok(stage: Stage) -> None:
    agent = stage.agent(turn(text("hello")))
    await drain(stage.keep(Runner.run_streamed(agent, "hi", session=Memory())))


@scenario("failed")
async def session_fail_get(stage: Stage) -> None:
    agent = stage.agent(turn(text("hello")))
    await drain(stage.keep(Runner.run_streamed(agent, "hi", session=Memory(fail_reading=True))))


@scenario("failed")
async def session_fail_input(stage: Stage) -> None:
    agent = stage.agent(turn(text("hello")))
    await drain(stage.keep(Runner.run_streamed(agent, "hi", session=Memory(fail_at="user"))))


@scenario("failed")
async def session_fail_end(stage: Stage) -> None:
    agent = stage.agent(turn(text("hello")))
    await drain(stage.keep(Runner.run_streamed(agent, "hi", session=Memory(fail_at="assistant"))))


@scenario("failed")
async def session_fail_end_slow_consumer(stage: Stage) -> None:
    await read_slowly(stage, stage.agent(turn(text("hello"))), session=Memory(fail_at="assistant"))


@scenario("failed")
async def session_fail_midrun(stage: Stage) -> None:
    agent = stage.agent(turn(call("look")), turn(text("done")), tools=[look])
    session = Memory(fail_at="function_call_output")
    await drain(stage.keep(Runner.run_streamed(agent, "hi", session=session)))


@scenario("failed")
async def session_fail_at_pause(stage: Stage) -> None:
    agent = stage.agent(turn(call("delete")), tools=[delete])
    await drain(stage.keep(Runner.run_streamed(agent, "hi", session=Memory(fail_at="function_call"))))
