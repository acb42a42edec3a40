"""Logs that the contract is tested with, written step by step by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing
from typing import Any

from agents_progress.events import Envelope
from agents_progress.journal import Journal
from agents_progress.verify import digest
from agents_progress.view import RunView

RUN = "run-A"
OUTPUT = "Inspection ready: 2 items 巡检✓"


def envelope(seq: int, type_: str, payload: dict[str, Any] | None = None, run_id: str = RUN) -> Envelope:
    moment = f"2026-10-07T08:{seq // 60 % 60:02d}:{seq % 60:02d}Z"
    return Envelope(f"{run_id}:{seq}", run_id, seq, type_, moment, payload or {})


class Log:
    """A log written step by step: ``Log().say("agent.changed", agent="A")``."""

    def __init__(self, run_id: str = RUN) -> None:
        self.run_id = run_id
        self.envelopes: list[Envelope] = []

    def say(self, type_: str, /, **payload: Any) -> Log:
        self.envelopes.append(envelope(len(self.envelopes) + 1, type_, payload, self.run_id))
        return self

    def start(self, agent: str = "Clerk", resumed_from: str | None = None, task_id: str = "task-1") -> Log:
        return self.say("run.started", agent=agent, task_id=task_id, parent=None, resumed_from=resumed_from)

    def request(self, call_id: str = "c1", name: str = "look", kind: str = "function", **more: Any) -> Log:
        return self.say("tool.requested", call_id=call_id, name=name, kind=kind, **more)

    def ask(self, interaction_id: str = "ask-1", call_id: str | None = "c1", tool: str = "look") -> Log:
        return self.say("approval.wait", interaction_id=interaction_id, call_id=call_id, tool=tool, title="May I?")

    def end(self, outcome: str = "succeeded", final_output: str | None = None, **more: Any) -> Log:
        if outcome == "succeeded" and final_output is None:
            final_output = OUTPUT
        return self.say("run.ended", outcome=outcome, final_output=final_output, **more)

    def check(self, ok: bool = True, output: str = OUTPUT) -> Log:
        return self.say("app.checked", digest=digest(output), ok=ok, check="equals")


def ticks(run_id: str, first: int, last: int, **payload: Any) -> list[Envelope]:
    return [envelope(seq, "note.tick", {"n": seq, **payload}, run_id) for seq in range(first, last + 1)]


def started(run_id: str, task_id: str = "task-1", title: str | None = None) -> Envelope:
    payload: dict[str, Any] = {"agent": "A", "task_id": task_id, "parent": None, "resumed_from": None}
    return envelope(1, "run.started", payload if title is None else {**payload, "title": title}, run_id)


def story(run_id: str, task_id: str = "task-1") -> list[Envelope]:
    """A run in which something of every kind happens, with its ending and its verdict."""
    log = Log(run_id).start(task_id=task_id).say("text.delta", item_id="m1", index=0, text="巡检 ")
    log.say("text.delta", item_id="m1", index=1, text="ready").say("note.mood", good=True).request()
    log.ask().say("approval.resolved", interaction_id="ask-1", decision="approved")
    log.say("tool.started", call_id="c1").say("tool.finished", call_id="c1", output="2 items")
    log.say("text.completed", item_id="m1", text=OUTPUT)
    return log.end().check().envelopes


async def whole(journal: Journal, run_id: str) -> list[Envelope]:
    return await journal.read(run_id, limit=100_000)


async def followed(tail: AsyncIterator[Envelope], count: int | None = None) -> list[Envelope]:
    """What a tail gives until it ends, or the first ``count`` of it; a tail that gives less in 20 seconds fails."""
    given: list[Envelope] = []
    async with asyncio.timeout(20), aclosing(tail) as steps:  # type: ignore[type-var]
        while count is None or len(given) < count:
            try:
                given.append(await anext(steps))
            except StopAsyncIteration:
                break
    return given


def viewed(run_id: str, envelopes: Sequence[Envelope], snapshot: dict[str, Any] | None = None) -> dict[str, Any]:
    """The snapshot of the view that a snapshot and envelopes after it give."""
    view = RunView(run_id) if snapshot is None else RunView.from_snapshot(snapshot)
    for step in envelopes:
        view.feed(step)
    return view.snapshot()
