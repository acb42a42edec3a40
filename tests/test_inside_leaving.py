"""Leaving a loop over SDK events inside `@progress.inside` has the effect it has on the SDK alone, and the run gets its
ending.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from typing import Any

import pytest
from agents import Agent, Runner, function_tool
from staging import Log, scripted, stored

from agents_progress import current_run, progress
from agents_progress.journal import MemoryJournal
from agents_progress.testing import call, reached, text, turn, wait


def never() -> Any:
    return wait(asyncio.Event())


async def ended(journal: MemoryJournal) -> Log:
    async with asyncio.timeout(5):
        while True:
            rows = await journal.runs()
            if rows and rows[0].standing.ended:
                return await stored(journal, rows[0].run_id)
            await asyncio.sleep(0)


async def cancelled(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_consumer_cancelled_while_it_waits_for_an_event_cancels_the_run(journal: MemoryJournal) -> None:
    said, read = asyncio.Event(), asyncio.Event()

    @progress.inside(journal=journal)
    async def body() -> None:
        result = Runner.run_streamed(scripted(turn(text("abc", reached(said), never()))), "hi")
        async for event in result.stream_events():
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                read.set()

    task = asyncio.create_task(body())
    await said.wait()
    await read.wait()
    await asyncio.sleep(0)  # back to waiting
    await cancelled(task)
    log = await ended(journal)
    assert (log.ending["outcome"], log.ending.get("requested_by")) == ("cancelled", None)


async def test_a_consumer_cancelled_in_its_own_work_leaves_the_run_going(journal: MemoryJournal) -> None:
    gate, busy = asyncio.Event(), asyncio.Event()

    @progress.inside(journal=journal)
    async def body() -> None:
        result = Runner.run_streamed(scripted(turn(text("hel", wait(gate), "lo"))), "hi")
        async for _ in result.stream_events():
            busy.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(body())
    await busy.wait()
    await cancelled(task)
    gate.set()
    assert (await ended(journal)).ending["final_output"] == "hello"


@pytest.mark.parametrize("way", ["break", "exception"])
async def test_breaking_off_leaves_the_run_going_to_its_ending(way: str, journal: MemoryJournal) -> None:
    gate = asyncio.Event()

    @progress.inside(journal=journal)
    async def body() -> str:
        result = Runner.run_streamed(scripted(turn(text("hel", wait(gate), "lo"))), "hi")
        with suppress(KeyError):
            async for _ in result.stream_events():
                if way == "break":
                    break
                raise KeyError
        return "left"

    assert await body() == "left"
    assert not (await journal.runs())[:1] or not (await journal.runs())[0].standing.ended
    gate.set()
    log = await ended(journal)
    assert (log.ending["outcome"], log.ending["final_output"]) == ("succeeded", "hello")


async def test_closing_waits_for_the_run_and_swallows_its_failure(journal: MemoryJournal) -> None:
    gate = asyncio.Event()

    @progress.inside(journal=journal)
    async def body() -> Log:
        result = Runner.run_streamed(scripted(turn(text("hel", wait(gate), "lo"))), "hi")
        events: Any = result.stream_events()
        await anext(events)
        asyncio.get_running_loop().call_soon(gate.set)
        await events.aclose()
        return await stored(journal, str(current_run().id))

    assert (await body()).ending["final_output"] == "hello"


# Generators.


def generator(journal: MemoryJournal, agent: Agent[Any], closed: list[str] | None = None) -> Any:
    @progress.inside(journal=journal)
    async def steps() -> AsyncIterator[str]:
        try:
            result = Runner.run_streamed(agent, "hi")
            async for event in result.stream_events():
                yield event.type
        except BaseException as error:
            if closed is not None:
                closed.append(type(error).__name__)
            raise

    return steps()


async def test_a_generator_closed_from_another_task_closes_the_users_generator(journal: MemoryJournal) -> None:
    closed: list[str] = []
    gate = asyncio.Event()
    gate.set()
    steps = generator(journal, scripted(turn(text("hel", wait(gate), "lo"))), closed)
    assert await anext(steps) == "agent_updated_stream_event"
    await asyncio.create_task(steps.aclose())
    assert closed == ["GeneratorExit"]
    assert (await ended(journal)).ending["outcome"] == "succeeded"
    with pytest.raises(StopAsyncIteration):
        await anext(steps)


async def test_the_steps_of_a_generator_may_be_taken_from_different_tasks(journal: MemoryJournal) -> None:
    agent = scripted(turn(text("one two three")))
    steps, seen = generator(journal, agent), []
    while True:
        try:
            seen.append(await asyncio.create_task(anext(steps)))
        except StopAsyncIteration:
            break
    bare = Runner.run_streamed(scripted(turn(text("one two three"))), "hi")
    assert seen == [event.type async for event in bare.stream_events()]
    assert (await ended(journal)).ending["final_output"] == "one two three"


async def test_between_the_steps_of_a_generator_the_caller_is_outside_its_scope(journal: MemoryJournal) -> None:
    steps = generator(journal, scripted(turn(text("hello"))))
    await anext(steps)
    assert current_run().id is None
    plain = Runner.run_streamed(scripted(turn(text("mine"))), "hi")
    assert "stream_events" not in vars(plain)
    assert [event async for event in plain.stream_events()]
    assert [step async for step in steps][-1] == "run_item_stream_event"
    assert len(await journal.runs()) == 1


async def test_values_and_exceptions_sent_into_a_generator_reach_it() -> None:
    got: list[object] = []

    @progress.inside
    async def steps() -> Any:
        got.append((yield 1))
        try:
            yield 2
        except KeyError as error:
            got.append(error.args[0])
        Runner.run_streamed(scripted(turn(text("hello"))), "hi")
        yield 3

    each = steps()
    assert await each.asend(None) == 1
    assert await each.asend("sent") == 2
    assert await each.athrow(KeyError("thrown")) == 3
    await each.aclose()
    assert got == ["sent", "thrown"]


async def test_a_consumer_of_a_generator_cancelled_in_a_step_cancels_the_run(journal: MemoryJournal) -> None:
    waiting = asyncio.Event()
    steps = generator(journal, scripted(turn(text("abc", reached(waiting), never()))))

    async def consume() -> None:
        async for _ in steps:
            pass

    task = asyncio.create_task(consume())
    await waiting.wait()
    for _ in range(20):
        await asyncio.sleep(0)  # so that it has read what there was to read
    await cancelled(task)
    assert (await ended(journal)).ending["outcome"] == "cancelled"


# The run around the code.


async def test_the_body_and_its_tools_report_to_the_run_around_them(journal: MemoryJournal) -> None:
    ids: list[object] = []

    @function_tool
    async def in_the_loop() -> str:
        ids.append((current_run().id, current_run().call_id))
        current_run().report("half way", 1, 2)
        with current_run().stage("Sorting"):
            await asyncio.sleep(0)
        return "ok"

    @function_tool
    def in_a_thread() -> str:
        assert threading.current_thread() is not threading.main_thread()
        ids.append((current_run().id, current_run().call_id))
        current_run().report("nearly", 2.5)
        return "ok"

    calls = turn(call("in_the_loop", call_id="l"), call("in_a_thread", call_id="t"))

    @progress.inside(journal=journal)
    async def body() -> str:
        assert current_run().id is None and current_run().call_id is None
        result = Runner.run_streamed(scripted(calls, turn(text("ok")), tools=[in_the_loop, in_a_thread]), "hi")
        with current_run().stage("Reading"), suppress(KeyError):
            async for _ in result.stream_events():
                pass
        assert current_run().call_id is None
        return str(current_run().id)

    run_id = await body()
    log = await ended(journal)
    assert sorted(ids, key=str) == [(run_id, "l"), (run_id, "t")]
    reports = {payload["call_id"]: payload for payload in log.of("tool.progress")}
    assert reports == {
        "l": {"call_id": "l", "message": "half way", "current": 1, "total": 2},
        "t": {"call_id": "t", "message": "nearly", "current": 2.5, "total": None},
    }
    stages = log.of("stage.started")
    assert {stage["title"] for stage in stages} == {"Reading", "Sorting"}
    assert len({stage["stage_id"] for stage in stages}) == 2
    assert [stage["title"] for stage in log.of("stage.completed")] == ["Sorting"], "the other one outlived the run"
    assert log.view.issues == []


async def test_a_stage_that_raises_is_not_completed(journal: MemoryJournal) -> None:
    @progress.inside(journal=journal)
    async def body() -> None:
        result = Runner.run_streamed(scripted(turn(text("hel"))), "hi")
        with suppress(KeyError), current_run().stage("Reading"):
            raise KeyError
        async for _ in result.stream_events():
            pass

    await body()
    log = await ended(journal)
    assert [stage["title"] for stage in log.of("stage.started")] == ["Reading"] and log.of("stage.completed") == []


async def test_a_report_from_outside_a_tool_is_a_warning_and_no_event(
    journal: MemoryJournal, caplog: pytest.LogCaptureFixture
) -> None:
    @progress.inside(journal=journal)
    async def body() -> None:
        result = Runner.run_streamed(scripted(turn(text("hello"))), "hi")
        current_run().report("from the body")
        async for _ in result.stream_events():
            pass

    await body()
    assert (await ended(journal)).of("tool.progress") == []
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert "from the body" not in caplog.text


def test_outside_a_run_every_report_goes_nowhere() -> None:
    here = current_run()
    assert (here.id, here.task_id, here.call_id) == (None, None, None)
    here.report("nothing", 1, 2)
    with here.stage("nothing"):
        pass

    def counted() -> Iterator[int]:
        with current_run().stage("nothing"):
            yield 1

    assert list(counted()) == [1]
