"""The handle of a run: what the call does, who may wait and read, and what cancel answers."""

from __future__ import annotations

import asyncio
import gc
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest
from agents import Agent, Runner, RunResultStreaming, function_tool
from staging import Log, log_of, reach, scripted, soon, started, stored

from agents_progress import RunView, follow, progress
from agents_progress.errors import NoEventLoop, NotAStreamedResult, NotDecoratable, WrongLoop
from agents_progress.journal import MemoryJournal
from agents_progress.testing import ScriptedAPI, call, http_error, text, turn, wait


def never() -> Any:
    return wait(asyncio.Event())


# The call.


async def test_the_call_starts_the_run_and_its_id_exists_at_once() -> None:
    api = ScriptedAPI([turn(text("hello"))])
    run = started(Agent(name="A", model=api.model()))
    assert re.fullmatch(r"[0-9a-f]{32}", run.id) and run.task_id == run.id
    assert (run.outcome, run.error, run.view.status) == (None, None, "running")
    await soon(lambda: api.requests)
    assert (await run).kind == "succeeded"


async def test_a_run_whose_handle_was_dropped_goes_on_to_its_ending(journal: MemoryJournal) -> None:
    gate = asyncio.Event()
    run_id = started(scripted(turn(text("hel", wait(gate), "lo"))), journal=journal).id
    gc.collect()
    gate.set()
    log = Log([])
    async with asyncio.timeout(5):
        while not log.endings:
            await asyncio.sleep(0)
            log = await stored(journal, run_id)
    assert log.ending["outcome"] == "succeeded" and log.ending["final_output"] == "hello"


async def test_a_synchronous_body_raises_where_it_is_called() -> None:
    @progress
    def work() -> RunResultStreaming:
        raise KeyError("no such customer")

    with pytest.raises(KeyError, match="no such customer") as caught:
        work()
    assert caught.traceback[-1].name == "work"


async def test_an_asynchronous_body_raises_where_it_is_awaited_and_readers_end() -> None:
    @progress
    async def work() -> RunResultStreaming:
        await asyncio.sleep(0)
        raise KeyError("no such customer")

    run = work()
    assert await log_of(run) == Log([])
    with pytest.raises(KeyError, match="no such customer") as caught:
        await run
    assert caught.traceback[-1].name == "work"
    assert isinstance(run.error, KeyError) and run.view.status == "unknown" and run.outcome is None


async def test_a_wrong_return_value_names_the_function() -> None:
    @progress
    def forgets() -> Any:
        return "an answer"

    @progress
    async def forgets_later() -> Any:
        return None

    with pytest.raises(NotAStreamedResult, match="forgets returned str"):
        forgets()
    with pytest.raises(NotAStreamedResult, match="forgets_later returned NoneType"):
        await forgets_later()
    with pytest.raises(NotAStreamedResult, match="follow returned dict"):
        follow({})  # type: ignore[arg-type]


def test_generators_are_refused_where_they_are_decorated() -> None:
    async def reads() -> Any:
        yield 1

    def reads_too() -> Any:
        yield 1

    for function in (reads, reads_too):
        with pytest.raises(NotDecoratable, match=rf"{function.__name__} is a generator.*@progress\.inside"):
            progress(function)  # type: ignore[arg-type]


def test_a_call_outside_a_loop_says_what_to_do_and_does_not_run_the_body() -> None:
    ran: list[bool] = []

    @progress
    def work() -> Any:
        ran.append(True)

    with pytest.raises(NoEventLoop, match=r"work\.run_sync"):
        work()
    assert ran == []


@pytest.mark.parametrize("name", ["RealtimeSession", "VoicePipeline"])
async def test_realtime_and_voice_are_refused_by_name(name: str) -> None:
    @progress
    def talk() -> Any:
        return type(name, (), {})()

    with pytest.raises(NotDecoratable, match=f"talk returned a {name}"):
        talk()


# Waiting and reading.


async def test_any_number_of_readers_see_the_run_from_its_first_envelope() -> None:
    gate = asyncio.Event()
    run = started(scripted(turn(text("one ", wait(gate), "two"))), coalesce=None)
    early = [asyncio.create_task(log_of(run)) for _ in range(3)]
    await reach(run, "text.delta")
    middle = [asyncio.create_task(log_of(run)) for _ in range(3)]
    await asyncio.sleep(0)
    gate.set()
    outcome = await run
    late = [await log_of(run) for _ in range(3)]
    logs = [*await asyncio.gather(*early, *middle), *late]
    assert all(log == logs[0] for log in logs)
    assert logs[0].types[0] == "run.started" and logs[0].types[-1] == "run.ended"
    assert outcome.output == "one two"


async def test_the_handle_tells_the_view_the_outcome_the_result_and_the_real_error() -> None:
    run = started(scripted(http_error(400, "your prompt is bad")))
    outcome = await run
    assert outcome is run.outcome and outcome.kind == "failed" and outcome.error is not None
    assert outcome.error["code"] == "bad_request" and "prompt" not in outcome.error["message"]
    assert type(run.error).__name__ == "BadRequestError" and "your prompt is bad" in str(run.error)
    assert isinstance(run.result, RunResultStreaming) and run.result.is_complete
    assert isinstance(run.view, RunView) and run.view.status == "failed"
    assert repr(run) == f"<Run {run.id} failed>"


async def test_a_cancelled_waiter_leaves_the_run_alone() -> None:
    gate = asyncio.Event()
    run = started(scripted(turn(text("hel", wait(gate), "lo"))))

    async def waits() -> None:
        await run

    waiter = asyncio.create_task(waits())
    await reach(run, "model.started")
    waiter.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiter
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await run
    gate.set()
    outcome = await run
    assert outcome.kind == "succeeded" and "cancel.requested" not in (await log_of(run)).types


async def test_async_with_waits_on_leaving() -> None:
    async with started(scripted(turn(text("hello")))) as run:
        assert run.outcome is None
    assert run.outcome is not None and run.outcome.kind == "succeeded"


async def test_async_with_cancels_on_an_exception_and_passes_it_on() -> None:
    with pytest.raises(KeyError, match="mine"):
        async with started(scripted(turn(text("hel", never())))) as run:
            await reach(run, "model.started")
            raise KeyError("mine")
    assert run.outcome is not None
    assert (run.outcome.kind, run.outcome.requested_by) == ("cancelled", "application")


# Cancelling.


async def test_cancel_says_what_became_of_the_request_and_the_first_actor_counts() -> None:
    gate = asyncio.Event()
    run = started(scripted(turn(text("hel", wait(gate), "lo"))))
    await reach(run, "model.started")
    assert run.cancel("after_turn", "ann") == "accepted"
    assert run.cancel("after_turn", "bob") == "already_cancelling"
    assert run.cancel(actor="cid") == "accepted", "a firmer request than the one before"
    assert run.cancel("after_turn") == run.cancel() == "already_cancelling"
    outcome = await run
    assert run.cancel() == "already_ended"
    log = await log_of(run)
    assert log.of("cancel.requested") == [
        {"mode": "after_turn", "actor": "ann"},
        {"mode": "immediate", "actor": "cid"},
    ]
    assert outcome.kind == "cancelled" and outcome.requested_by == log.ending["requested_by"] == "ann"


async def test_cancel_after_the_turn_lets_the_turn_end() -> None:
    gate, tool_ran = asyncio.Event(), []

    @function_tool
    async def work() -> str:
        await gate.wait()
        tool_ran.append(True)
        return "ok"

    api = ScriptedAPI([turn(call("work")), turn(text("never asked"))])
    run = started(Agent(name="A", model=api.model(), tools=[work]))
    await reach(run, "tool.started")
    run.cancel("after_turn")
    gate.set()
    outcome = await run
    assert outcome.kind == "cancelled" and not outcome.completed_anyway
    assert tool_ran == [True] and len(api.requests) == 1


async def test_a_cancel_that_the_answer_outran_is_cancelled_and_completed_anyway() -> None:
    gate = asyncio.Event()
    run = started(scripted(turn(text("hel", wait(gate), "lo"))))
    await reach(run, "model.started")
    run.cancel("after_turn")
    gate.set()
    outcome = await run
    assert (outcome.kind, outcome.completed_anyway, outcome.output) == ("cancelled", True, "hello")
    assert run.view.status == "cancelled"


async def test_a_cancel_before_the_body_started_its_run_is_carried_out_then() -> None:
    gate, api = asyncio.Event(), ScriptedAPI([turn(text("hel", never()))])

    @progress
    async def work() -> RunResultStreaming:
        await gate.wait()
        return Runner.run_streamed(Agent(name="A", model=api.model()), "hi")

    run = work()
    await asyncio.sleep(0)
    assert [run.cancel(actor="ann"), run.cancel()] == ["accepted", "already_cancelling"]
    gate.set()
    log = await log_of(run)
    assert log.types[:2] == ["run.started", "cancel.requested"]
    assert log.ending["outcome"] == "cancelled" and log.ending["requested_by"] == "ann"


async def test_a_cancel_on_the_sdks_own_result_counts() -> None:
    run = started(scripted(turn(text("hel", never()))))
    await reach(run, "model.started")
    run.result.cancel(mode="after_turn")
    run.result.cancel()
    log = await log_of(run)
    assert [payload["mode"] for payload in log.of("cancel.requested")] == ["after_turn", "immediate"]
    assert (log.ending["outcome"], log.ending["requested_by"]) == ("cancelled", None)


async def test_a_cancel_between_the_end_of_the_runs_task_and_its_ending_comes_too_late() -> None:
    gate, answers = asyncio.Event(), []
    run = started(scripted(turn(text("hel", wait(gate), "lo"))))
    await reach(run, "model.started")
    run.result.run_loop_task.add_done_callback(lambda _: answers.append((run.outcome, run.cancel())))
    gate.set()
    outcome = await run
    assert answers == [(None, "already_ended")]
    assert outcome.kind == "succeeded" and "cancel.requested" not in (await log_of(run)).types


async def test_a_deadline_cancels_and_says_so() -> None:
    outcome = await started(scripted(turn(text("hel", never()))), deadline=0.02)
    assert (outcome.kind, outcome.requested_by) == ("cancelled", "deadline")


async def test_a_deadline_that_is_not_reached_does_nothing() -> None:
    outcome = await started(scripted(turn(text("hello"))), deadline=60)
    assert outcome.kind == "succeeded"


# Loops and threads.


def from_another_loop(touch: Callable[[], Any]) -> BaseException | None:
    """What touching a run raises in a thread with a loop of its own."""
    raised: list[BaseException] = []

    async def main() -> None:
        answer = touch()
        if asyncio.iscoroutine(answer):
            await answer

    def thread() -> None:
        try:
            asyncio.run(main())
        except BaseException as error:
            raised.append(error)

    worker = threading.Thread(target=thread, daemon=True)
    worker.start()
    worker.join(5)
    assert not worker.is_alive(), "it hangs"
    return raised[0] if raised else None


async def test_a_run_touched_from_another_loop_or_thread_refuses_and_does_not_hang() -> None:
    run = started(scripted(turn(text("hel", never()))))
    await reach(run, "model.started")

    async def waits() -> None:
        await run

    async def enters() -> None:
        async with run:
            pass

    touches: list[Callable[[], Any]] = [
        waits,
        enters,
        run.closed,
        lambda: log_of(run),
        run.cancel,
        lambda: run.resume(approve="all"),
    ]
    for touch in touches:
        error = await asyncio.to_thread(from_another_loop, touch)
        assert isinstance(error, WrongLoop) and run.id in str(error)
    for plain in (run.cancel, lambda: aiter(run), lambda: run.resume("all")):
        with pytest.raises(WrongLoop):
            await asyncio.to_thread(plain)
    assert run.cancel() == "accepted" and (await run).kind == "cancelled"


async def test_what_happens_before_the_owner_comes_is_written_in_the_order_in_which_it_happened() -> None:
    at_work = asyncio.Event()

    @function_tool
    async def add() -> str:
        at_work.set()
        return "r1"

    agent = scripted(*2 * [turn(call("add")), turn(text("hello"))], tools=[add])

    @progress
    async def late() -> RunResultStreaming:
        at_work.clear()
        result = Runner.run_streamed(agent, "hi")
        await at_work.wait()  # the run goes on meanwhile
        return result

    ordinary, log = await log_of(started(agent)), await log_of(late())
    assert log.shape == ordinary.shape and log.view.issues == []
