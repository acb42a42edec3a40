"""Who may answer a question, and until when: the same at every door, checked where the answer is used."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, RunResultStreaming, function_tool
from staging import log_of, stored

from agents_progress import asking, progress
from agents_progress.clock import Clock
from agents_progress.decorate import Decorated
from agents_progress.errors import AlreadyResumed, AnswerNotUsed, UsageError
from agents_progress.journal import Journal, MemoryJournal, open_journal
from agents_progress.journal.base import Request
from agents_progress.testing import ScriptedAPI, call, text, turn

LONG_AGO = Clock(wall=lambda: 1000.0)
DONE: list[str] = []


@function_tool(needs_approval=True)
def danger(what: str) -> str:
    DONE.append(what)
    return "ok"


@function_tool(needs_approval=True)
def minor(what: str) -> str:
    DONE.append(what)
    return "ok"


@pytest.fixture(autouse=True)
def nothing_done_yet() -> None:
    DONE.clear()


@pytest.fixture
async def journal(tmp_path: Path) -> AsyncIterator[Journal]:
    journal = open_journal(f"sqlite:///{tmp_path}/runs.db")
    yield journal
    await journal.close()


def work_of(*turns: Any, **options: Any) -> Decorated[...]:
    @progress(**options)
    def work() -> RunResultStreaming:
        return Runner.run_streamed(Agent(name="A", model=ScriptedAPI(turns).model(), tools=[danger, minor]), "go")

    return work


def asks(*tools: str) -> Any:
    return turn(*(call(name, {"what": name}, call_id=name) for name in tools))


async def answered(journal: Journal, run_id: str, name: str = "ask-1", actor: str = "mei") -> str | None:
    row, view = await journal.run(run_id), (await stored(journal, run_id)).view
    assert row is not None
    given = asking.Answer(name, "approved", actor, digest=view.interactions[name].digest)
    return await asking.answer(journal, row, given, within=5)


# Until when.


@pytest.mark.parametrize("keep_pauses", [True, False])
@pytest.mark.parametrize("door", ["run", "function", "journal"])
async def test_an_answer_that_comes_too_late_is_refused_and_the_pause_is_resolved_as_expired_once(
    journal: Journal, door: str, keep_pauses: bool
) -> None:
    work = work_of(asks("danger", "minor"), turn(text("ok")), journal=journal, approval_ttl=60, keep_pauses=keep_pauses)
    run = work.using(clock=LONG_AGO)()
    assert (await run).kind == "paused"
    await run.closed()
    (first, second) = (await log_of(run)).of("approval.wait")
    assert first["expires_at"] == second["expires_at"] == "1970-01-01T00:17:40.000Z"
    run_id = run.id
    if door == "run":
        run._owner.plan = replace(run.plan, clock=Clock())
        with pytest.raises(AnswerNotUsed, match="expired"):
            run.resume(approve="all")
        assert run.continued is not None
        await run.continued
        await run.continued.closed()
        with pytest.raises(AlreadyResumed):
            run.resume(approve="all")
    else:
        del run
        for _ in range(2):
            with pytest.raises((AnswerNotUsed, AlreadyResumed)) as refused:
                if door == "journal":
                    await answered(journal, run_id)
                else:
                    await work.resume(run_id, approve="all")
            if isinstance(refused.value, AnswerNotUsed):
                assert refused.value.code in ("expired", "already_answered")
    log = await stored(journal, f"{run_id}.2")
    assert log.types[0] == "run.started" and log.of("run.started")[0]["resumed_from"] == run_id
    assert log.of("approval.resolved") == [
        {"interaction_id": name, "decision": "expired"} for name in ("ask-1", "ask-2")
    ]
    assert (log.ending["outcome"], log.ending["requested_by"]) == ("cancelled", None)
    assert log.view.issues == [] and set(log.view.tools.values()) == {"skipped"}
    assert DONE == [] and await journal.pauses() == [] and await journal.run(f"{run_id}.3") is None


async def test_a_question_that_is_in_time_is_answered_and_keeps_its_end_when_it_is_asked_again(
    journal: Journal,
) -> None:
    work = work_of(asks("danger", "minor"), journal=journal, approval_ttl=3600, keep_pauses=True)
    run = work()
    await run
    await run.closed()
    run_id, asked = run.id, {row.interaction_id: row.expires_at for row in run.view.interactions.values()}
    del run
    second = await work_of(journal=journal, approval_ttl=7200, keep_pauses=True).resume(run_id, approve="ask-1")
    assert (await second).kind == "paused" and DONE == ["danger"]
    assert {row.interaction_id: row.expires_at for row in second.view.interactions.values()} == asked
    pause = await journal.pause(second.id)
    assert pause is not None and pause.expires_at == asked["ask-2"]


async def test_of_many_who_look_at_an_expired_pause_one_resolves_it(journal: Journal, tmp_path: Path) -> None:
    from agents_progress.unanswered import end_pause

    run = work_of(asks("danger"), journal=journal, approval_ttl=60, clock=LONG_AGO)()
    await run
    await run.closed()
    row = await journal.run(run.id)
    assert row is not None
    others = [open_journal(f"sqlite:///{tmp_path}/runs.db") for _ in range(4)]
    ended = await asyncio.gather(*(end_pause(each, row, "expired") for each in others))
    assert sorted(ended, key=str) == sorted([f"{run.id}.2", None, None, None], key=str)
    log = await stored(journal, f"{run.id}.2")
    assert len(log.of("run.ended")) == 1
    for each in others:
        await each.close()


def test_a_time_that_is_none_is_refused_where_it_is_written() -> None:
    for ttl in (0, -1):
        with pytest.raises(UsageError, match="approval_ttl is a time in seconds"):
            progress(approval_ttl=ttl)
    with pytest.raises(UsageError, match="answerers names actors"):
        progress(answerers="mei")


# Who.


@pytest.mark.parametrize("kind", ["sqlite", "memory"])
@pytest.mark.parametrize("keep_pauses", [True, False])
async def test_only_those_who_are_named_may_answer_at_any_door(journal: Journal, kind: str, keep_pauses: bool) -> None:
    journal = journal if kind == "sqlite" else MemoryJournal()
    by_tool: dict[str, list[str]] = {"danger": ["mei", "bo"]}
    options: dict[str, Any] = {"journal": journal, "answerers": by_tool.get, "keep_pauses": keep_pauses}
    work = work_of(asks("danger", "minor"), turn(text("ok")), run_id=secrets.token_hex(8), **options)
    run = work()
    await run
    await run.closed()
    for actor in ("eve", None):
        with pytest.raises(AnswerNotUsed, match="not_allowed"):
            run.resume(approve="ask-1", actor=actor)
        if keep_pauses:
            with pytest.raises(AnswerNotUsed, match="not_allowed"):
                await work.resume(run.id, approve="all", actor=actor)
    with pytest.raises(AnswerNotUsed, match="not_allowed"):
        await answered(journal, run.id, actor="eve")
    assert await journal.requests([run.id]) == [], "a refused answer is in nobody's way"
    assert run.continued is None and DONE == []
    assert await answered(journal, run.id, actor="bo") == f"{run.id}.2"
    second: Any = run.continued
    assert (await second).kind == "paused" and DONE == ["danger"]
    await second.closed()
    assert await answered(journal, second.id, "ask-2", actor="anybody") == f"{run.id}.3"
    assert (await second.continued).kind == "succeeded" and DONE == ["danger", "minor"]


async def test_names_hold_for_every_tool(journal: Journal) -> None:
    run = work_of(asks("danger", "minor"), turn(text("ok")), journal=journal, answerers=["mei"])()
    await run
    with pytest.raises(AnswerNotUsed, match="not_allowed"):
        run.resume(approve="all", actor="eve")
    assert (await run.resume(approve="all", actor="mei")).kind == "succeeded"


# What for.


async def test_a_question_says_what_it_is_for_and_still_does_when_it_is_asked_again(journal: Journal) -> None:
    options: dict[str, Any] = {
        "journal": journal,
        "keep_pauses": True,
        "approval_kinds": {"danger": "recovery", "unused": "handoff"},
    }
    run = work_of(asks("danger", "minor"), **options)()
    await run
    await run.closed()
    assert [wait["kind"] for wait in (await log_of(run)).of("approval.wait")] == ["recovery", "approval"]
    second = await work_of(journal=journal, keep_pauses=True).resume(run.id, approve="ask-2")
    assert (await second).kind == "paused"
    assert [row.kind for row in second.view.interactions.values()] == ["recovery", "approval"]


def test_a_kind_that_there_is_not_is_refused_where_it_is_written() -> None:
    with pytest.raises(UsageError, match="'question' is no kind of question; there are approval, clarification"):
        progress(approval_kinds={"danger": "question"})  # type: ignore[dict-item]


# Together.


def given_to(run: Any, name: str, decision: Any = "approved", actor: str = "mei") -> asking.Answer:
    return asking.Answer(name, decision, actor, digest=run.view.interactions[name].digest)


async def pause_of(journal: Journal, *tools: str) -> Any:
    run = work_of(asks(*tools), turn(text("ok")), journal=journal)()
    assert (await run).kind == "paused"
    await run.closed()
    return run, await journal.run(run.id)


async def test_answers_that_are_given_together_go_on_in_one_run(journal: Journal) -> None:
    run, row = await pause_of(journal, "danger", "minor")
    given = [given_to(run, "ask-1"), given_to(run, "ask-2", "rejected")]
    assert await asking.answer_all(journal, row, given, within=5) == f"{run.id}.2"
    assert run.continued is not None and (await run.continued).kind == "succeeded"
    log = await stored(journal, f"{run.id}.2")
    assert {each["interaction_id"]: (each["decision"], each["actor"]) for each in log.of("approval.resolved")} == {
        "ask-1": ("approved", "mei"),
        "ask-2": ("rejected", "mei"),
    }
    assert DONE == ["danger"]


async def test_what_waits_for_others_is_used_with_that_of_somebody_else_and_keeps_its_actor(journal: Journal) -> None:
    run, row = await pause_of(journal, "danger", "minor")
    half = given_to(run, "ask-1")
    await journal.ask(Request(run.id, "answer.ask-1", half.body(["ask-1", "ask-2"])))  # and then its node was killed
    await asyncio.sleep(0.1)
    assert run.continued is None, "it waits for the other one"
    assert await asking.answer(journal, row, given_to(run, "ask-2", actor="bo"), within=5) == f"{run.id}.2"
    assert run.continued is not None and (await run.continued).kind == "succeeded"
    log = await stored(journal, f"{run.id}.2")
    assert {each["interaction_id"]: each["actor"] for each in log.of("approval.resolved")} == {
        "ask-1": "mei",
        "ask-2": "bo",
    }


async def test_the_same_answers_again_are_refused_unless_that_is_what_is_asked_for(journal: Journal) -> None:
    run, row = await pause_of(journal, "danger", "minor")
    given = [given_to(run, "ask-1"), given_to(run, "ask-2")]
    await journal.ask(Request(run.id, "answer.ask-1", given[0].body(["ask-1", "ask-2"])))
    with pytest.raises(AnswerNotUsed, match="already_answered"):
        await asking.answer_all(journal, row, given, within=5)
    for _ in range(2):  # what was left undone is done, and what was done is found
        assert await asking.answer_all(journal, row, given, within=5, again=True) == f"{run.id}.2"
    for other in (given_to(run, "ask-2", "rejected"), given_to(run, "ask-2", actor="bo")):
        with pytest.raises(AnswerNotUsed, match="already_answered"):
            await asking.answer_all(journal, row, [given[0], other], within=5, again=True)
    await run.continued
    assert DONE == ["danger", "minor"]


async def test_who_may_answer_now_counts_besides_who_might_when_it_was_asked(journal: Journal) -> None:
    options: dict[str, Any] = {"journal": journal, "keep_pauses": True}
    run = work_of(asks("danger"), answerers=["mei", "eve"], **options)()
    await run
    await run.closed()
    for now, actor in ((["mei"], "eve"), (["mei", "bo"], "bo")):
        with pytest.raises(AnswerNotUsed, match="not_allowed"):
            await work_of(turn(text("ok")), answerers=now, **options).resume(run.id, approve="all", actor=actor)
    later = await work_of(turn(text("ok")), answerers=["mei"], **options).resume(run.id, approve="all", actor="mei")
    assert (await later).kind == "succeeded"
    assert DONE == ["danger"]


@pytest.mark.parametrize("actor", ["Jos\udce9", "x" * 600], ids=["what a terminal made of it", "too long"])
@pytest.mark.parametrize("decision", ["approved", "cancelled"])
async def test_an_actor_whose_name_no_event_can_hold_uses_nothing_up(
    journal: Journal, actor: str, decision: str
) -> None:
    run = work_of(asks("danger"), turn(text("ok")), journal=journal)()
    await run
    await run.closed()
    if decision == "approved":
        later = run.resume(approve="all", actor=actor)
    else:
        assert run.cancel(actor=actor) == "accepted"
        assert run.continued is not None
        later = run.continued
    assert (await later).kind == ("succeeded" if decision == "approved" else "cancelled")
    await later.closed()
    (said,) = (await log_of(later)).of("approval.resolved")
    assert said["actor"] == ("Jos\ufffd" if len(actor) < 512 else "x" * 512)
    assert not (await stored(journal, later.id)).view.issues
