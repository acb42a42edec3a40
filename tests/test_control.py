"""Control from any node, at the owner's side: what is asked in the journal reaches the run."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, RunResultStreaming, function_tool
from staging import (
    Log,
    Prebuilt,
    call_item,
    item_done,
    log_of,
    reach,
    response_completed,
    response_created,
    scripted,
    soon,
    started,
    stored,
)

from agents_progress import control, progress
from agents_progress.errors import JournalUnavailable
from agents_progress.journal import MemoryJournal
from agents_progress.journal.base import Request
from agents_progress.options import shared_journal
from agents_progress.run import Run
from agents_progress.testing import Turn, call, text, turn, wait

ROOT = Path(__file__).parent.parent


def cancel(run_id: str, mode: str = "immediate", actor: str | None = "ann") -> Request:
    return Request(run_id, f"cancel.{mode}", {"mode": mode, "actor": actor})


def answer(run_id: str, name: str, decision: str = "approved", **more: Any) -> Request:
    return Request(run_id, f"answer.{name}", {"decision": decision, "actor": "ann", **more})


def open_turn() -> Turn:
    return turn(text("hel", wait(asyncio.Event())))


class Danger:
    """A tool that must be approved, and what became of it."""

    def __init__(self) -> None:
        self.bodies: list[str] = []
        self.go_on = asyncio.Event()
        self.go_on.set()

        @function_tool(needs_approval=True)
        async def danger(what: str) -> str:
            self.bodies.append(what)
            await self.go_on.wait()
            return f"did {what}"

        self.tool = danger

    def agent(self, *turns: Turn) -> Agent[Any]:
        return scripted(*turns, tools=[self.tool])


def asks(*names: str) -> Turn:
    return turn(*(call("danger", {"what": name}, call_id=name) for name in names))


@pytest.fixture
async def danger() -> Danger:
    return Danger()


async def begun(journal: MemoryJournal, run_id: str) -> str:
    """Wait for a run to begin, and to end; how it did."""
    async with asyncio.timeout(5):
        while (row := await journal.run(run_id)) is None or not row.sealed:
            await asyncio.sleep(0)
    return str(row.standing.outcome or row.standing.lost)


def watchers() -> list[asyncio.Task[Any]]:
    return [task for task in asyncio.all_tasks() if task.get_name() == "agents-progress requests"]


# Cancels.


@pytest.mark.parametrize("actor", ["ann", None])
async def test_a_cancel_that_was_asked_elsewhere_reaches_the_run(journal: MemoryJournal, actor: str | None) -> None:
    run = started(scripted(open_turn()), journal=journal)
    await reach(run, "text.delta")
    await journal.ask(cancel(run.id, actor=actor))
    outcome = await run
    assert (outcome.kind, outcome.requested_by) == ("cancelled", actor)
    (asked,) = (await stored(journal, run.id)).of("cancel.requested")
    assert asked == {"mode": "immediate"} | ({} if actor is None else {"actor": actor})


async def test_a_cancel_after_the_turn_lets_the_tool_finish(journal: MemoryJournal) -> None:
    at_work, go_on = asyncio.Event(), asyncio.Event()

    @function_tool
    async def tool() -> str:
        at_work.set()
        await go_on.wait()
        return "ok"

    run = started(scripted(turn(call("tool")), turn(text("never")), tools=[tool]), journal=journal)
    await at_work.wait()
    await reach(run, "tool.started")
    await journal.ask(cancel(run.id, "after_turn"))
    await reach(run, "cancel.requested")
    go_on.set()
    assert (await run).kind == "cancelled" and list(run.view.tools.values()) == ["returned"]


async def test_what_is_asked_twice_is_done_once_and_a_firmer_cancel_still_counts(journal: MemoryJournal) -> None:
    run = started(scripted(open_turn()), journal=journal)
    await reach(run, "text.delta")
    first = await journal.ask(cancel(run.id, "after_turn"))
    assert await journal.ask(cancel(run.id, "after_turn", "bob")) == first
    await reach(run, "cancel.requested")
    await journal.ask(cancel(run.id, "immediate", "cid"))
    await journal.ask(cancel(run.id, "immediate", "dan"))
    assert (await run).requested_by == "ann"
    log = await stored(journal, run.id)
    assert [asked["actor"] for asked in log.of("cancel.requested")] == ["ann", "cid"] and len(log.endings) == 1


async def test_a_cancel_is_heard_within_tens_of_milliseconds(journal: MemoryJournal) -> None:
    waited = []
    for _ in range(5):
        run = started(scripted(open_turn()), journal=journal)
        await reach(run, "text.delta")
        asked_at = time.perf_counter()
        await journal.ask(cancel(run.id))
        await reach(run, "cancel.requested")
        waited.append(time.perf_counter() - asked_at)
        await run
    assert sorted(waited)[2] < 0.05


async def test_a_cancel_of_a_reserved_run_reaches_the_plain_call_too(journal: MemoryJournal) -> None:
    other = started(scripted(open_turn()), journal=journal)  # so that somebody watches already
    await reach(other, "text.delta")
    await journal.reserve("r", 60)
    await journal.ask(cancel("r"))
    run = started(scripted(open_turn()), journal=journal, run_id="r")
    assert (await run).kind == "cancelled"
    other.cancel()
    await other


async def test_a_cancel_after_the_end_changes_nothing(journal: MemoryJournal) -> None:
    other = started(scripted(open_turn()), journal=journal)
    await reach(other, "text.delta")
    run = started(scripted(turn(text("hello"))), journal=journal)
    assert (await run).kind == "succeeded"
    before = await stored(journal, run.id)
    await journal.ask(cancel(run.id))
    await journal.ask(cancel(other.id))
    assert (await other).kind == "cancelled" and await stored(journal, run.id) == before


async def test_a_cancel_of_a_paused_run_cancels_the_pause(journal: MemoryJournal, danger: Danger) -> None:
    run = started(danger.agent(asks("a")), journal=journal, run_id="r")
    await run
    await journal.ask(cancel("r"))
    assert await begun(journal, "r.2") == "cancelled" and danger.bodies == []
    assert (await stored(journal, "r.2")).of("approval.resolved")[0]["decision"] == "cancelled"


# Answers.


@pytest.mark.parametrize(("decision", "bodies"), [("approved", ["a"]), ("rejected", [])])
async def test_an_answer_continues_the_paused_run(
    journal: MemoryJournal, danger: Danger, decision: str, bodies: list[str]
) -> None:
    run = started(danger.agent(asks("a"), turn(text("done"))), journal=journal, run_id="r")
    assert (await run).kind == "paused"
    digest = run.view.interactions["ask-1"].digest
    await journal.ask(answer("r", "ask-1", decision, digest=digest))
    assert await begun(journal, "r.2") == "succeeded" and danger.bodies == bodies
    resolved = {"interaction_id": "ask-1", "decision": decision, "actor": "ann"}
    assert (await stored(journal, "r.2")).of("approval.resolved") == [resolved]
    assert run.continued is not None and run.continued.id == "r.2"


async def test_of_many_answers_one_counts(journal: MemoryJournal, danger: Danger) -> None:
    run = started(danger.agent(asks("a"), turn(text("done"))), journal=journal, run_id="r")
    await run
    requests = [answer("r", "ask-1", "approved" if number % 2 else "rejected") for number in range(20)]
    kept = await asyncio.gather(*(journal.ask(request) for request in requests))
    assert len({request.request_id for request in kept}) == 1
    await begun(journal, "r.2")
    (resolved,) = (await stored(journal, "r.2")).of("approval.resolved")
    assert resolved["decision"] == kept[0].body["decision"]
    assert danger.bodies == (["a"] if resolved["decision"] == "approved" else [])


async def test_answers_to_two_questions_of_one_pause_are_both_used(journal: MemoryJournal, danger: Danger) -> None:
    run = started(danger.agent(asks("a", "b"), turn(text("done"))), journal=journal, run_id="r")
    await run
    await journal.ask(answer("r", "ask-1"))
    await journal.ask(answer("r", "ask-2"))  # while the first is being executed
    assert await begun(journal, "r.3") == "succeeded" and danger.bodies == ["a", "b"]


async def test_an_answer_to_a_question_that_a_running_continuation_repeats_waits_for_its_pause(
    journal: MemoryJournal, danger: Danger
) -> None:
    run = started(danger.agent(asks("a", "b"), turn(text("done"))), journal=journal, run_id="r")
    await run
    danger.go_on.clear()
    await journal.ask(answer("r", "ask-1"))
    await soon(lambda: danger.bodies == ["a"])
    await journal.ask(answer("r.2", "ask-2", "rejected"))
    await journal.ask(Request("r.2", "unheard", {}))
    await asyncio.sleep(0.01)
    danger.go_on.set()
    assert await begun(journal, "r.3") == "succeeded" and danger.bodies == ["a"]
    assert (await stored(journal, "r.3")).of("approval.resolved")[0]["decision"] == "rejected"


async def test_a_continuation_can_be_cancelled_under_its_own_id_and_under_the_first(
    journal: MemoryJournal, danger: Danger
) -> None:
    for number, target in enumerate(["{}.2", "{}"]):
        run_id = f"r-{number}"
        run = started(danger.agent(asks("a"), open_turn()), journal=journal, run_id=run_id)
        await run
        again = run.resume(approve="all")
        await reach(again, "text.delta")
        await journal.ask(cancel(target.format(run_id)))
        assert (await again).kind == "cancelled"


DROPPED: dict[str, Callable[[str], Request]] = {
    "a question that nobody asked": lambda run_id: answer(run_id, "ask-7"),
    "another thing than is asked": lambda run_id: answer(run_id, "ask-1", digest="0" * 64),
    "a decision that is none": lambda run_id: answer(run_id, "ask-1", "perhaps"),
    "no decision": lambda run_id: Request(run_id, "answer.ask-1", {}),
    "a way to cancel that is none": lambda run_id: cancel(run_id, "softly"),
    "an unknown verb": lambda run_id: Request(run_id, "explode", {}),
}


@pytest.mark.parametrize("what", DROPPED)
async def test_what_makes_no_sense_is_logged_and_dropped_and_the_next_is_heard(
    journal: MemoryJournal, danger: Danger, caplog: pytest.LogCaptureFixture, what: str
) -> None:
    run = started(danger.agent(asks("a"), turn(text("done"))), journal=journal, run_id="r")
    await run
    other = started(scripted(open_turn()), journal=journal)
    await reach(other, "text.delta")
    await journal.ask(DROPPED[what]("r"))
    await journal.ask(cancel(other.id))
    assert (await other).kind == "cancelled"
    assert run.continued is None and danger.bodies == []
    (record,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "run r: " in record.getMessage()
    assert run.resume(approve="all").id == "r.2"
    assert run.continued is not None and (await run.continued).kind == "succeeded"


async def test_an_answer_that_came_too_late_is_logged_and_dropped(
    journal: MemoryJournal, danger: Danger, caplog: pytest.LogCaptureFixture
) -> None:
    run = started(danger.agent(asks("a"), turn(text("done"))), journal=journal, run_id="r")
    await run
    again = run.resume(reject="all")
    await again
    other = started(scripted(open_turn()), journal=journal)
    await reach(other, "text.delta")
    await journal.ask(answer("r", "ask-1"))
    await journal.ask(cancel(other.id))
    await other
    assert danger.bodies == [] and "run r: 'answer.ask-1' was dropped: NotPaused" in caplog.text


async def test_an_actor_that_is_no_text_is_nobody(journal: MemoryJournal) -> None:
    run = started(scripted(open_turn()), journal=journal)
    await reach(run, "text.delta")
    await journal.ask(Request(run.id, "cancel.immediate", {"actor": {"a": 1}}))
    assert (await run).requested_by is None and run.view.issues == []


# From another process.

ASKING = """
import asyncio, json, sys
from agents_progress.journal import open_journal
from agents_progress.journal.base import Request

async def main():
    journal = open_journal(sys.argv[1], create=False)
    request = Request(sys.argv[2], sys.argv[3], json.loads(sys.argv[4]))
    stored = await journal.ask(request)
    await journal.close()
    print(stored.request_id == request.request_id)

asyncio.run(main())
"""


async def asked_elsewhere(url: str, request: Request) -> str:
    """Ask from a process of its own; whether it was the first."""
    arguments = [url, request.run_id, request.key, json.dumps(request.body)]
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", ASKING, *arguments, cwd=ROOT, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    assert process.returncode == 0
    return out.decode().strip()


async def test_another_process_answers_and_cancels_through_the_journal(tmp_path: Path, danger: Danger) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    run = started(danger.agent(asks("a"), open_turn()), journal=url, run_id="r")
    assert (await run).kind == "paused"
    assert await asyncio.gather(
        asked_elsewhere(url, answer("r", "ask-1")), asked_elsewhere(url, answer("r", "ask-1"))
    ) in (["True", "False"], ["False", "True"])
    await soon(lambda: run.continued)
    again = run.continued
    assert again is not None and danger.bodies in ([], ["a"])
    await reach(again, "text.delta")
    assert await asked_elsewhere(url, cancel("r.2")) == "True"
    outcome = await again
    assert (outcome.kind, outcome.requested_by, danger.bodies) == ("cancelled", "ann", ["a"])
    await again.closed()
    journal = shared_journal(url)
    log = await stored(journal, "r.2")
    assert log.view.status == "cancelled" and log.view.issues == []
    await journal.close()


# Who is watched, and for how long.


async def test_a_fault_in_one_request_does_not_keep_the_next_from_being_heard(
    journal: MemoryJournal, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (started(scripted(open_turn()), journal=journal) for _ in range(2))
    await reach(second, "text.delta")
    monkeypatch.setattr(first, "cancel", lambda *args: 1 / 0)
    await journal.ask(cancel(first.id))
    await journal.ask(cancel(second.id))
    assert (await second).kind == "cancelled"
    assert f"run {first.id}: 'cancel.immediate' failed: ZeroDivisionError" in caplog.text
    monkeypatch.undo()
    first.cancel()
    await first


async def test_one_watcher_serves_all_runs_of_a_journal_and_ends_with_the_last(journal: MemoryJournal) -> None:
    runs = [started(scripted(open_turn()), journal=journal) for _ in range(5)]
    private = started(scripted(open_turn()))
    for run in [*runs, private]:
        await reach(run, "text.delta")
    assert len(watchers()) == 1, "and the journal of one run alone needs none"
    for run in runs:
        await journal.ask(cancel(run.id))
    assert {(await run).kind for run in runs} == {"cancelled"}
    await soon(lambda: not watchers())
    assert journal not in {of for of, _ in control._watchers}
    later = started(scripted(open_turn()), journal=journal)
    await reach(later, "text.delta")
    await journal.ask(cancel(later.id))
    assert (await later).kind == "cancelled"
    private.cancel()
    await private


async def test_a_run_whose_handle_was_dropped_is_heard_while_it_is_live(journal: MemoryJournal) -> None:
    run_id = started(scripted(open_turn()), journal=journal).id
    gc.collect()
    async with asyncio.timeout(5):
        while await journal.run(run_id) is None:
            await asyncio.sleep(0)
    await journal.ask(cancel(run_id))
    assert await begun(journal, run_id) == "cancelled"


async def test_a_paused_run_is_not_kept_by_us_and_the_watcher_ends_with_it(
    journal: MemoryJournal, danger: Danger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents_progress.journal.memory.LOOK_S", 0.05)
    item = call_item("danger", '{"what": "a"}', "a")
    model = Prebuilt([response_created(), item_done(item), response_completed(item)])  # which leaves no timers behind
    run: Run | None = started(Agent(name="A", model=model, tools=[danger.tool]), journal=journal, patience=0.1)
    assert run is not None
    assert (await run).kind == "paused"
    await run.closed()
    assert len(watchers()) == 1
    run = None
    async with asyncio.timeout(30):
        while watchers():  # a cancelled timer may hold it for as long as it had to go
            gc.collect()
            await asyncio.sleep(0.1)


class Failing(MemoryJournal):
    """A journal whose first answer to a watcher is a fault."""

    failed = False

    def asks(self, owned: Callable[[], Collection[str]]) -> Any:
        if not self.failed:
            self.failed = True
            raise JournalUnavailable("the journal is away; try again")
        return super().asks(owned)


async def test_a_journal_that_fails_while_it_is_watched_is_watched_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(control, "AGAIN_S", 0.01)
    journal = Failing()
    run = started(scripted(open_turn()), journal=journal)
    await reach(run, "text.delta")
    await journal.ask(cancel(run.id))
    assert (await run).kind == "cancelled"
    assert "what is asked of runs is not heard: JournalUnavailable" in caplog.text


async def test_closing_the_journal_ends_the_watcher_and_not_the_run(journal: MemoryJournal) -> None:
    said = asyncio.Event()
    run = started(scripted(turn(text("hel", wait(said), "lo"))), journal=journal)
    await reach(run, "text.delta")
    await journal.close()
    await soon(lambda: not watchers())
    later = started(scripted(turn(text("hello"))), journal=journal)
    await soon(lambda: not watchers())
    said.set()
    assert (await run).kind == (await later).kind == "unknown" and run.result.final_output == "hello"


async def test_runs_inside_a_body_and_followed_ones_are_heard_too(journal: MemoryJournal) -> None:
    agent = scripted(open_turn())

    @progress.inside(journal=journal, run_id="r")
    async def body() -> None:
        async for _ in Runner.run_streamed(agent, "hi").stream_events():
            pass

    going = asyncio.ensure_future(body())
    async with asyncio.timeout(5):
        while await journal.run("r") is None:
            await asyncio.sleep(0)
    await journal.ask(cancel("r"))
    await going
    assert (await stored(journal, "r")).ending["outcome"] == "cancelled"


async def test_two_loops_of_one_process_each_hear_of_their_own_runs(journal: MemoryJournal) -> None:
    def elsewhere() -> str:
        @progress(journal=journal, run_id="there")
        def job() -> RunResultStreaming:
            return Runner.run_streamed(scripted(open_turn()), "hi")

        async def main() -> str:
            return (await job()).kind

        return asyncio.run(main())

    here = started(scripted(open_turn()), journal=journal, run_id="here")
    there = asyncio.ensure_future(asyncio.to_thread(elsewhere))
    for run_id in ("here", "there"):
        async with asyncio.timeout(5):
            while await journal.run(run_id) is None:
                await asyncio.sleep(0.001)
        await journal.ask(cancel(run_id))
    assert (await here).kind == await there == "cancelled"
    assert await log_of(here) != Log([])
