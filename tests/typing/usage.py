"""User code over the public surface. Never executed: the type checkers read it, and must find nothing to say."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any, assert_type

from agents import Agent, Runner, function_tool
from agents.result import RunResultStreaming
from agents.stream_events import StreamEvent
from pydantic import BaseModel

from agents_progress import (
    Disclosure,
    Envelope,
    Evidence,
    Outcome,
    ProgressError,
    Run,
    RunView,
    Verdict,
    current_run,
    follow,
    open_journal,
    progress,
)
from agents_progress.client import Client, RemoteRun
from agents_progress.disclosure import Screen
from agents_progress.effects.entry import DidNotHappen, Finding, Happened
from agents_progress.effects.ledger import Ledger
from agents_progress.effects.once import effect_key, once, worded
from agents_progress.effects.places import open_ledger
from agents_progress.errors import AlreadyResumed, OutputTypeDiffers
from agents_progress.events import json_schema, parse
from agents_progress.journal import Journal, MemoryJournal, RunRow
from agents_progress.messages import Status
from agents_progress.outcome import owner_finished
from agents_progress.sse import Decoder
from agents_progress.terminal import show, watch
from agents_progress.verify import all_of, digest, equals, has_output, matches, publish, schema


class Total(BaseModel):
    amount: float


agent = Agent(name="Clerk", output_type=Total)


@progress
def bare(question: str, *, turns: int = 3) -> RunResultStreaming:
    return Runner.run_streamed(agent, question, max_turns=turns)


@progress(verify=matches(r"\d+ EUR"), journal="sqlite:///runs.db", titles={"look_up": "Look it up"})
def total(question: str, *, turns: int = 3) -> RunResultStreaming:
    return Runner.run_streamed(agent, question, max_turns=turns)


@progress(verify=all_of(has_output(), schema(Total)), disclosure=Disclosure(outputs={"look_up"}, mask=["secret"]))
async def later(question: str) -> RunResultStreaming:
    await asyncio.sleep(0)
    return Runner.run_streamed(agent, question)


class Desk:
    @progress(verify=schema(Total))
    def settle(self, question: str, *, turns: int = 3) -> RunResultStreaming:
        return Runner.run_streamed(agent, question, max_turns=turns)

    @progress
    async def later(self, question: str) -> RunResultStreaming:
        return Runner.run_streamed(agent, question)


async def methods(desk: Desk) -> None:
    assert_type(desk.settle("x", turns=5), Run)
    assert_type(await desk.settle.using(owner="u-1").start("x"), Run)
    assert_type(await desk.later("x"), Outcome)
    assert_type(desk.later.run_sync("x"), Outcome)


@progress.inside
async def body(question: str, count: int) -> int:
    result = Runner.run_streamed(agent, question)
    async for event in result.stream_events():
        count += event.type == "run_item_stream_event"
    with current_run().stage("Adding up"):
        return count


@progress.inside(journal=MemoryJournal())
async def feed(question: str) -> AsyncIterator[StreamEvent]:
    async for event in Runner.run_streamed(agent, question).stream_events():
        yield event


@function_tool
def look_up(order: int) -> str:
    run = current_run()
    run.report("half", current=1, total=2)
    assert_type(run.id, str | None)
    assert_type(run.task_id, str | None)
    assert_type(run.call_id, str | None)
    return str(order)


async def accept(output: Total) -> Verdict:
    await asyncio.sleep(0)
    return Verdict(output.amount > 0, check="positive", reason="amount")


def plain(output: Total) -> bool:
    return output.amount > 0


checked = total.using(verify=accept, owner="mei", tenant="acme", labels={"team": "a"}, task_id="t-1", deadline=60.0)
again = total.using(verify=plain, run_id="r-1", disclosure=Disclosure(arguments="all"))


async def use() -> None:
    run = total("2 + 3?", turns=2)
    assert_type(run, Run)
    assert_type(bare("x"), Run)
    assert_type(later("x"), Run)
    assert_type(checked("x", turns=1), Run)
    outcome = await run
    assert_type(outcome, Outcome)
    assert_type(outcome.output_as(Total), Total)
    assert_type(outcome.accepted, bool)
    assert_type(outcome.verdict, Verdict | None)
    if outcome.kind == "failed" and outcome.error is not None:
        assert_type(outcome.error["retryable"], bool)
    async for envelope in run:
        assert_type(envelope, Envelope)
        assert_type(envelope.seq, int)
    async with total("x") as other:
        assert_type(other, Run)
        other.cancel("after_turn", actor="mei")
    claimed = await checked.using(run_id="r-2", exclusive="c-1", exclusive_wait=5, unread=60.0).start("x", turns=1)
    assert_type(claimed, Run)
    assert_type(await later.start("x"), Run)
    assert_type(run.view, RunView)
    assert_type(run.outcome, Outcome | None)
    assert_type(run.error, BaseException | None)
    try:
        resumed = run.resume(approve="all", actor="mei")
        resumed = run.resume(approve=["ask-1"], reject=["ask-2"])
        await resumed
    except (AlreadyResumed, OutputTypeDiffers, ProgressError):
        pass
    assert_type(await body("x", 1), int)
    async for event in feed("x"):
        assert_type(event, StreamEvent)
    followed = follow(Runner.run_streamed(agent, "x"), language="zh")
    assert_type(followed, Run)
    await show(followed)


def script() -> Outcome:
    return total.run_sync("2 + 3?", turns=4)


async def read(url: str) -> Status:
    journal = open_journal(url, create=False)
    assert_type(journal, Journal)
    rows = await journal.runs(task_id="t", labels={"team": "a"}, status="done", limit=5)
    assert_type(rows, list[RunRow])
    view = RunView("r", language="zh")
    for envelope in await journal.read("r", after_seq=0, limit=10):
        view.feed(envelope)
    view.feed({"any": "thing"})
    view.feed(b"{}")
    view.close_transport()
    restored = RunView.from_snapshot(view.snapshot())
    assert_type(restored.tools, dict[str, str])
    assert_type(restored.text, str)
    assert_type(restored.message, str)
    assert_type([row.open for row in restored.activities], list[bool])
    await journal.close()
    return restored.status


async def elsewhere(url: str, token: str | None) -> None:
    async with Client(url, token=token, patience=None) as client:
        run = await client.start("total", {"question": "x"}, labels={"team": "a"})
        assert_type(run, RemoteRun)
        assert_type(run["status"], Status)
        assert_type(await client.runs(status="done", limit=5), list[RemoteRun])
        assert_type(await client.answer(run["run_id"], "ask-1", "approve", digest="d"), str | None)
        async for envelope in client.events(run["run_id"], after_seq=3):
            assert_type(envelope, Envelope)
        async for view in client.follow(run["run_id"], language="zh", continued=True):
            assert_type(view, RunView)
        assert_type(await watch(client.follow(run["run_id"])), RunView | None)
        print(await client.cancel(run["run_id"], mode="after_turn") == "accepted")


def small() -> None:
    assert_type(owner_finished(Evidence(has_output=True)), Outcome)
    assert_type(parse(b"{}"), Envelope)
    assert_type(digest(publish({"a": 1})), str)
    assert_type(json_schema(), dict[str, Any])
    total.using(verify=equals(Total(amount=1)))
    for frame in Decoder().feed(b"data: x\n\n"):
        assert_type(frame.data, str)
    Screen(Disclosure())


async def ask_bank(key: str, arguments: Mapping[str, Any]) -> Finding:
    return Happened("paid") if arguments["order"] else DidNotHappen()


@once(key="{order}", scope="shop", reconcile=ask_bank, no_effect=(ValueError, KeyError), ledger="sqlite:///e.db")
async def pay(order: int, eur: int = 5) -> str:
    return effect_key()


@once(key=lambda arguments: arguments["order"], scope=lambda context: str(context), no_effect=ValueError)
def pay_now(order: int) -> Total:
    return Total(amount=order)


paying = [function_tool(pay, failure_error_function=worded), function_tool(pay_now)]


async def effects(ledger: Ledger) -> None:
    assert_type(await pay(1, eur=6), str)
    assert_type(pay_now(1), Total)
    for entry in open_ledger("sqlite:///e.db").entries(state="uncertain"):
        assert_type(ledger.resolve(entry.effect.entry, entry.generation, Happened("x"), "ann"), bool)
