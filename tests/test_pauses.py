"""Runs that pause for a person: answering them once, the run that continues them, and what is refused."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, RunResultStreaming, function_tool
from staging import Log, log_of, reach, scripted, started, stored

from agents_progress import Disclosure, RunView, current_run, follow, progress
from agents_progress.errors import (
    AlreadyResumed,
    AppendConflict,
    NotPaused,
    NotRepeatable,
    UnknownInteraction,
    UsageError,
)
from agents_progress.events import Envelope
from agents_progress.journal import Journal, MemoryJournal, open_journal
from agents_progress.run import Run
from agents_progress.testing import ScriptedAPI, Turn, call, text, turn, wait


class Danger:
    """A tool that must be approved, and what became of it."""

    def __init__(self) -> None:
        self.bodies: list[str] = []

        @function_tool(needs_approval=True)
        def danger(what: str) -> str:
            self.bodies.append(what)
            return f"did {what}"

        self.tool = danger

    def agent(self, *turns: Turn) -> Agent[Any]:
        return scripted(*turns, tools=[self.tool])


def asks(*names: str) -> Turn:
    return turn(*(call("danger", {"what": name}, call_id=name) for name in names))


@pytest.fixture
def danger() -> Danger:
    return Danger()


async def test_an_approved_call_is_executed_once_and_the_task_goes_on(danger: Danger, journal: MemoryJournal) -> None:
    run = started(danger.agent(asks("a"), turn(text("done"))), journal=journal, task_id="t", run_id="r")
    outcome = await run
    assert outcome.kind == "paused" and danger.bodies == [] and run.view.status == "waiting"
    second = run.resume(approve="ask-1", actor="ann")
    assert (second.id, second.task_id, run.continued) == ("r.2", "t", second)
    outcome = await second
    assert (outcome.kind, outcome.output, danger.bodies) == ("succeeded", "done", ["a"])
    log = await stored(journal, "r.2")
    assert log.shape == [
        "run.started",
        "tool.requested",
        "approval.wait",
        "approval.resolved",
        "tool.started",
        "tool.finished",
        "model.started",
        "model.completed",
        "run.ended",
    ]
    assert (begun := log.of("run.started")[0])["resumed_from"] == "r" and begun["task_id"] == "t"
    assert log.of("approval.resolved") == [{"interaction_id": "ask-1", "decision": "approved", "actor": "ann"}]
    assert log.view.tools == {"a": "returned"} and log.view.status == "checking" and log.view.issues == []
    first = await stored(journal, "r")
    assert first.types[-1] == "run.ended" and first.view.status == "waiting", "a paused run's log is closed"
    assert first.of("approval.wait") == log.of("approval.wait"), "restated with the same id and digest"
    assert [row.run_id for row in await journal.runs(task_id="t")] == ["r.2", "r"]


async def test_a_rejected_call_is_not_executed_and_says_so(danger: Danger) -> None:
    run = started(danger.agent(asks("a"), turn(text("then not"))))
    await run
    log = await log_of(run.resume(reject="all"))
    assert danger.bodies == []
    assert log.of("tool.rejected") == [{"call_id": "a", "reason": "approval_rejected"}]
    assert log.of("approval.resolved") == [{"interaction_id": "ask-1", "decision": "rejected"}]
    assert "tool.started" not in log.types and "tool.finished" not in log.types
    assert log.ending["final_output"] == "then not" and log.view.issues == []


async def test_undecided_questions_stay_open_with_their_ids_and_the_run_pauses_again(danger: Danger) -> None:
    run = started(danger.agent(asks("a", "b", "c"), turn(text("done"))), run_id="r")
    await run
    second = run.resume(approve=["ask-2"], reject=["ask-3"])
    outcome = await second
    assert (second.id, outcome.kind) == ("r.2", "paused")
    log = await log_of(second)
    assert [wait["interaction_id"] for wait in log.of("approval.wait")] == ["ask-1", "ask-2", "ask-3"]
    assert [wait["call_id"] for wait in log.of("approval.wait")] == ["a", "b", "c"]
    assert log.view.tools == {"a": "requested", "b": "returned", "c": "rejected"}
    assert log.view.status == "waiting" and log.view.issues == []
    assert log.view.interactions["ask-1"].decision is None
    third = second.resume(approve="all")
    log = await log_of(third)
    assert third.id == "r.3" and log.ending["outcome"] == "succeeded"
    assert [wait["interaction_id"] for wait in log.of("approval.wait")] == ["ask-1"]
    assert log.view.tools == {"a": "returned"} and log.view.issues == []
    assert danger.bodies == ["b", "a"]


async def test_a_later_question_gets_an_id_of_its_own(danger: Danger) -> None:
    run = started(danger.agent(asks("a"), asks("b"), turn(text("done"))), run_id="r")
    await run
    second = run.resume(approve="all")
    assert (await second).kind == "paused"
    log = await log_of(second)
    assert [wait["interaction_id"] for wait in log.of("approval.wait")] == ["ask-1", "ask-2"]
    assert log.view.tools == {"a": "returned", "b": "requested"} and log.view.issues == []
    third = second.resume(approve="ask-2")
    assert (await third).kind == "succeeded" and third.id == "r.3"
    assert (await log_of(third)).types.count("approval.wait") == 1
    assert danger.bodies == ["a", "b"]


async def test_answers_that_make_no_sense_are_refused_and_use_nothing_up(danger: Danger) -> None:
    run = started(danger.agent(asks("a", "b"), turn(text("done"))))
    with pytest.raises(NotPaused, match="is running"):
        run.resume(approve="all")
    await run
    with pytest.raises(UnknownInteraction, match=r"ask-7 is no open question.*ask-1, ask-2"):
        run.resume(approve="ask-7")
    with pytest.raises(UnknownInteraction):
        run.resume(reject=["ask-1", "danger"])
    with pytest.raises(UsageError, match="both approved and rejected"):
        run.resume(approve="all", reject="ask-1")
    with pytest.raises(UsageError, match="nothing was decided"):
        run.resume()
    assert run.continued is None and danger.bodies == []
    assert (await run.resume(approve="ask-1", reject="ask-2")).kind == "succeeded"
    assert danger.bodies == ["a"]


async def test_a_run_that_ended_otherwise_cannot_be_answered() -> None:
    run = started(scripted(turn(text("hello"))))
    await run
    with pytest.raises(NotPaused, match="is checking"):
        run.resume(approve="all")


async def test_a_second_answer_in_this_process_is_refused(danger: Danger) -> None:
    run = started(danger.agent(asks("a"), turn(text("done"))))
    await run
    second = run.resume(approve="all")
    with pytest.raises(AlreadyResumed, match=second.id):
        run.resume(reject="all")
    assert (await second).kind == "succeeded" and danger.bodies == ["a"]
    with pytest.raises(AlreadyResumed):
        run.resume(approve="all")


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_somebody_else_who_was_first_makes_ours_a_refusal_that_executes_nothing(
    danger: Danger, kind: str, tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    journal: Journal = MemoryJournal() if kind == "memory" else open_journal(url)
    other: Journal = journal if kind == "memory" else open_journal(url)
    api = ScriptedAPI([asks("a"), turn(text("done"))])
    run = started(Agent(name="A", model=api.model(), tools=[danger.tool]), journal=journal, run_id="r")
    await run
    payload = {"agent": "A", "task_id": "r", "parent": None, "resumed_from": "r"}
    claim = Envelope("r.2:1", "r.2", 1, "run.started", "2026-10-07T08:00:01Z", payload)
    await other.append([claim], claim=True)
    second = run.resume(approve="all")
    with pytest.raises(AlreadyResumed, match=r"run r was continued by somebody else as r\.2"):
        await second
    assert isinstance(second.error, AlreadyResumed | AppendConflict) and danger.bodies == [] and len(api.requests) == 1
    assert await stored(journal, "r.2") == Log([claim]), "the winner's log is untouched"
    assert await log_of(second) == Log([])
    for each in {journal, other}:
        await each.close()


async def test_cancelling_a_paused_run_is_accepted_and_recorded_as_a_run_that_ends_at_once(
    danger: Danger, journal: MemoryJournal
) -> None:
    run = started(danger.agent(asks("a", "b")), journal=journal, run_id="r")
    await run
    assert run.cancel(actor="ann") == "accepted"
    second = run.continued
    assert second is not None and second.id == "r.2"
    assert (await second).kind == "cancelled"
    log = await stored(journal, "r.2")
    assert log.types[0] == "run.started" and log.of("run.started")[0]["resumed_from"] == "r"
    assert log.of("approval.resolved") == [
        {"interaction_id": f"ask-{number}", "decision": "cancelled", "actor": "ann"} for number in (1, 2)
    ]
    assert (log.ending["outcome"], log.ending["requested_by"]) == ("cancelled", "ann")
    assert log.view.tools == {"a": "skipped", "b": "skipped"} and log.view.status == "cancelled"
    assert run.cancel() == "already_ended" and danger.bodies == []
    with pytest.raises(AlreadyResumed):
        run.resume(approve="all")


async def test_a_cancel_of_a_run_that_was_continued_goes_to_the_one_that_continues_it(danger: Danger) -> None:
    run = started(danger.agent(asks("a"), turn(text("hel", wait(asyncio.Event())))))
    await run
    second = run.resume(approve="all")
    await reach(second, "model.started")
    assert run.cancel(actor="ann") == "accepted"
    outcome = await second
    assert (outcome.kind, outcome.requested_by) == ("cancelled", "ann")


async def test_a_followed_run_pauses_but_cannot_be_repeated(danger: Danger) -> None:
    run = follow(Runner.run_streamed(danger.agent(asks("a")), "hi"))
    assert (await run).kind == "paused"
    with pytest.raises(NotRepeatable, match="was followed"):
        run.resume(approve="all")
    assert run.cancel() == "accepted"


async def test_details_of_a_question_are_private_unless_they_are_opened(danger: Danger) -> None:
    async def asked(**options: Any) -> dict[str, Any]:
        run = started(danger.agent(asks("a")), **options)
        (wait_,) = (await log_of(run)).of("approval.wait")
        return wait_

    closed = await asked()
    assert "details" not in closed and len(closed["digest"]) == 64
    opened = await asked(disclosure=Disclosure(approval_details=["danger"]), titles={"danger": "Do it"})
    assert opened["details"] == '{"what": "a"}' and opened["title"] == "Do it"
    assert opened["digest"] == closed["digest"]


async def test_a_tool_may_be_marked_as_one_that_is_approved_unseen(danger: Danger) -> None:
    agent = danger.agent(asks("a"), asks("b"))
    run = started(agent, approve_blind=["danger"])
    await run
    (question,) = run.view.interactions.values()
    assert (question.details, question.approve_blind, question.approvable) == (None, True, True)
    second = run.resume(approve="all")
    await second
    assert [row.approve_blind for row in second.view.interactions.values()] == [True, True], "restated, and asked anew"
    assert (await log_of(run)).view.snapshot() == run.view.snapshot()


@pytest.mark.parametrize(
    ("options", "approvable"),
    [
        ({}, False),
        ({"approve_blind": ["another"]}, False),
        ({"disclosure": Disclosure(approval_details=["danger"])}, True),
        ({"disclosure": Disclosure(approval_details=["danger"]), "approve_blind": ["danger"]}, True),
    ],
)
async def test_what_nobody_is_shown_nobody_may_approve(
    danger: Danger, options: dict[str, Any], approvable: bool
) -> None:
    run = started(danger.agent(asks("a")), **options)
    await run
    assert run.view.interactions["ask-1"].approvable is approvable


async def test_a_resume_keeps_the_run_config_and_hooks_of_the_first_call(danger: Danger) -> None:
    from agents import RunHooks

    class Mine(RunHooks[Any]):
        seen: list[str] = []

        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            self.seen.append(tool.name)

    agent = danger.agent(asks("a"), turn(text("done")))
    run = started(agent, hooks=Mine(), max_turns=2)
    await run
    assert (await run.resume(approve="all")).kind == "succeeded" and Mine.seen == ["danger"]


async def test_the_run_that_continues_is_the_current_one_in_its_tools() -> None:
    ids: list[str | None] = []

    @function_tool(needs_approval=True)
    def danger(what: str) -> str:
        ids.append(current_run().id)
        current_run().report("half way", 1, 2)
        return "ok"

    run = started(scripted(asks("a"), turn(text("done")), tools=[danger]), run_id="r")
    await run
    log = await log_of(run.resume(approve="all"))
    assert ids == ["r.2"]
    assert log.of("tool.progress") == [{"call_id": "a", "message": "half way", "current": 1, "total": 2}]


# Inside the application's own code.


async def resumed_inside(danger: Danger, journal: MemoryJournal, agent: Agent[Any], decide: Any) -> list[Run]:
    runs: list[Any] = []

    @progress.inside(journal=journal, run_id="r")
    async def chat() -> None:
        result: RunResultStreaming = Runner.run_streamed(agent, "hi")
        runs.append(current_run().id)
        async for _ in result.stream_events():
            pass
        while result.interruptions:
            state = result.to_state()
            decide(state, result.interruptions)
            result = Runner.run_streamed(agent, state)
            runs.append(current_run().id)
            async for _ in result.stream_events():
                pass

    await chat()
    return runs


async def test_an_applications_own_resume_becomes_the_run_that_continues(
    danger: Danger, journal: MemoryJournal
) -> None:
    agent = danger.agent(asks("a", "b"), turn(text("done")))

    def decide(state: Any, items: Any) -> None:
        state.approve(items[0])
        for item in items[1:]:
            state.reject(item)

    assert await resumed_inside(danger, journal, agent, decide) == ["r", "r.2"]
    log = await stored(journal, "r.2")
    assert log.of("run.started")[0]["resumed_from"] == "r"
    assert log.of("approval.resolved") == [
        {"interaction_id": "ask-1", "decision": "approved"},
        {"interaction_id": "ask-2", "decision": "rejected"},
    ]
    assert log.view.tools == {"a": "returned", "b": "rejected"} and log.view.issues == []
    assert log.ending["final_output"] == "done" and danger.bodies == ["a"]
    assert (await stored(journal, "r")).view.status == "waiting"


async def test_an_application_may_answer_one_question_at_a_time(danger: Danger, journal: MemoryJournal) -> None:
    agent = danger.agent(asks("a", "b"), turn(text("done")))
    decide = lambda state, items: state.approve(items[0])  # noqa: E731
    assert await resumed_inside(danger, journal, agent, decide) == ["r", "r.2", "r.3"]
    statuses = [(await stored(journal, run_id)).view.status for run_id in ("r", "r.2", "r.3")]
    assert statuses == ["waiting", "waiting", "checking"] and danger.bodies == ["a", "b"]


async def test_the_log_of_a_run_that_continues_folds_alone(danger: Danger, journal: MemoryJournal) -> None:
    run = started(danger.agent(asks("a", "b"), turn(text("done"))), journal=journal)
    await run
    await run.resume(approve="ask-1")
    await (second := run.continued).resume(approve="all")  # type: ignore[union-attr]
    for row in await journal.runs(task_id=run.task_id):
        view = RunView(row.run_id)
        for envelope in await journal.read(row.run_id):
            view.feed(envelope.to_json())
            assert view.issues == []
        assert view.terminal is not None and view.status == row.status
    assert second is not None and second.task_id == run.id
