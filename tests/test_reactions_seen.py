"""What is seen of a reaction: its runs, an agent's among them, and what a worker says of the one before it."""

from __future__ import annotations

import asyncio
from typing import Any, get_args

import pytest
from agents import Agent, Runner, RunResultStreaming, function_tool

from agents_progress import Disclosure, RunView, progress
from agents_progress.effects.entry import Hold
from agents_progress.effects.reactions import Case, Entry
from agents_progress.effects.reactions import entry as rules
from agents_progress.effects.reactions.entry import MOVES, State
from agents_progress.errors import ReactionRefused
from agents_progress.messages import LANGUAGES
from agents_progress.render import activity_line
from agents_progress.testing import ScriptedAPI, call, text, turn
from agents_progress.testing.reactions_contract import put
from agents_progress.verify import Verdict, matches
from tests.reacting import World


async def view_of(world: World, run_id: str, language: Any = "en") -> RunView:
    view = RunView(run_id, language=language)
    for envelope in await world.journal.read(run_id, limit=1000):
        view.feed(envelope.to_json())
    assert view.issues == []
    return view


def agent(*turns: Any, **fields: Any) -> Agent[Any]:
    return Agent(name="Editor", model=ScriptedAPI(turns).model(), **fields)


async def test_the_run_of_an_agent_that_prepares_is_a_part_of_the_task() -> None:
    @progress(verify=matches("b.*"))
    def mend(case: Case) -> RunResultStreaming:
        assert (case.content, case.text) == ({"comment": "please rename it"}, "at once")
        return Runner.run_streamed(agent(turn(text("better"))), "mend")

    world = World(prepare=mend)
    entry = await world.ready(text="at once")
    assert entry.result == '"better"'
    rows = list(reversed(await world.journal.runs(task_id=entry.task_id)))
    assert [(row.title, row.status) for row in rows] == [("Mend", "done"), ("Review", "waiting")]
    assert {row.origin.owner for row in rows} == {"ada"}
    assert rows[1].run_id == entry.task_id
    assert (await world.journal.newest({entry.task_id})) == {entry.task_id: entry.task_id}


def _asks() -> Agent[Any]:
    @function_tool(needs_approval=True)
    def look() -> str:
        return "x"

    return agent(turn(call("look", {})), tools=[look])


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (lambda: agent(turn(text("no"))), "prepare_rejected"),
        (_asks, "prepare_paused"),
        (lambda: Agent("Editor", model="none"), "prepare_failed"),
    ],
    ids=["rejected", "paused", "failed"],
)
async def test_an_agent_that_is_refused_waits_or_fails_prepares_nothing(made: Any, reason: str) -> None:
    class Away(Exception):
        pass

    @progress(verify=lambda output: Verdict(False))
    def mend(case: Case) -> RunResultStreaming:
        if reason == "prepare_failed":
            raise Away
        return Runner.run_streamed(made(), "mend")

    world = World(prepare=mend)
    entry = await world.moved(await world.received())
    assert (entry.state, entry.reason) == ("stopped", reason)
    assert (await world.statuses(entry.task_id))[-1] == "failed"


async def test_what_is_to_be_approved_is_shown_where_the_application_opens_it() -> None:
    closed, opened = World(), World(disclosure=Disclosure(approval_details={"submit"}))
    for world, details in ((closed, None), (opened, '{"rename":"b"}')):
        entry = await world.ready()
        (question,) = (await view_of(world, entry.task_id)).interactions.values()
        assert (question.digest, question.details) == (entry.asked, details)
        assert question.approvable is (details is not None)


@pytest.mark.parametrize("language", LANGUAGES)
async def test_uncertain_has_a_sentence_of_its_own_and_no_claim(language: Any) -> None:
    world = World(language=language, resubmit_after=None)
    world.target.loses = world.target.denies = True
    task_id = await world.approved()
    await world.moved(task_id)
    view = await view_of(world, f"{task_id}.2", language)
    assert view.status == "unknown"
    lines = " ".join(activity_line(row, language, 80).text for row in view.activities)
    assert {"en": "may have happened; being checked", "zh": "可能已经发生，正在核对"}[language] in lines


async def test_every_step_is_a_row_and_the_ending_names_the_check() -> None:
    world = World()
    entry = await world.moved(await world.approved())
    first, second = await view_of(world, entry.task_id), await view_of(world, f"{entry.task_id}.2")
    assert [(row.name, row.state) for row in first.activities] == [
        ("read", "returned"),
        ("prepare", "returned"),
        ("submit", "requested"),
    ]
    assert [(row.name, row.state) for row in second.activities] == [
        ("submit", "returned"),
        ("read", "returned"),
        ("receipt", "returned"),
    ]
    assert (second.status, second.verdict and second.verdict["check"]) == ("done", "receipt")
    assert [row.actor for row in second.interactions.values()] == ["ann"]


async def test_a_run_that_was_erased_has_its_reaction_erased_too() -> None:
    world = World()
    entry = await world.ready()
    await world.journal.erase(task_id=entry.task_id)
    await world.engine.approve(entry.task_id, entry.asked or "", "ann")
    entry = await world.moved(entry.task_id)
    assert (entry.state, entry.erased, entry.result) == ("stopped", True, None)
    assert world.target.taken == []


async def test_a_worker_that_was_frozen_after_it_took_a_reaction_writes_no_run_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    world = World()
    task_id = await world.approved()
    worker = world.engine._worker
    taken = worker._take()
    world.clock.ahead += 60  # it is frozen for longer than its lease, and somebody else goes on
    await world.begun().settle()
    known = await world.engine.look(task_id), await world.statuses(task_id)
    assert (known[0].state, known[1]) == ("done", ["waiting", "done"])
    monkeypatch.setattr(worker, "_take", lambda: taken)
    assert await worker.step()
    assert (await world.engine.look(task_id), await world.statuses(task_id)) == known
    assert len(world.target.taken) == 1


async def test_a_long_step_keeps_its_lease_and_is_taken_once() -> None:
    taken: list[str] = []

    async def slow(case: Case) -> Any:
        taken.append(case.task_id)
        await asyncio.sleep(1.0)  # four leases
        return "x"

    world = World(prepare=slow)
    world.store.lease_s = 0.25
    task_id = await world.received()
    work = [asyncio.create_task(world.begun().work(at_once=2)) for _ in range(2)]
    async with asyncio.timeout(20):
        while (await world.engine.look(task_id)).state != "ready":
            await asyncio.sleep(0.02)
    for one in work:
        one.cancel()
    await asyncio.wait(work)
    assert taken == [task_id]


async def test_a_run_that_has_its_owner_still_delays_a_receipt_no_further_than_that() -> None:
    world = World(resubmit_after=None)
    world.target.loses = world.target.denies = True
    task_id = await world.approved()
    await world.moved(task_id)
    lease = await world.journal.lease(f"{task_id}.3", 1e6)
    world.target.denies = False
    for _ in range(12):
        world.clock.ahead += 3
        await world.moved(task_id)
    world.journal.renew([lease], 0.0)
    await world.journal.expire()
    for _ in range(3):
        world.clock.ahead += 3
        entry = await world.moved(task_id)
    assert entry.state == "done"


# The rules, whole.


def _entry(state: State, **fields: Any) -> Entry:
    about = "r", "grant:g", 1, "ada", "doc/1", "v1", "rename", "", 1.0
    return Entry("t", *about, state=state, generation=3, due_at=1.0, **fields)  # type: ignore[misc]


@pytest.mark.parametrize("state", get_args(State))
def test_no_rule_makes_a_move_that_does_not_stand_in_the_table(state: State) -> None:
    entry = _entry(state, asked="d", decided="approved")
    found = [entry.document(), None]
    writings = [
        rules.stopped(found, 3, "x", 5.0)[1],
        rules.prepared(found, 3, "1", 5.0)[1],
        rules.confirmed(found, 3, "x", 5.0)[1],
        rules.approved(found, "d", "ann", 5.0)[1],
        rules.rejected(found, "ann", 5.0)[1],
        rules.cancelled(found, "ann", 5.0)[1],
        rules.withdrawn(found, "x", 5.0),
        *(rules.resolved(found, finding, "ann", 5.0)[1] for finding in get_args(rules.Finding)),
    ]
    if (state, "submit") in MOVES:
        writings.append(rules.submitting(found, 3, 0.0, 5.0)[2])
    else:
        with pytest.raises(LookupError):
            rules.submitting(found, 3, 0.0, 5.0)
    allowed = {to for (begin, _), to in MOVES.items() if begin == state} | {state}
    for writing in writings:
        for document in writing.documents:
            assert document.state in allowed


def test_what_was_let_go_is_not_prolonged_by_a_renewal_that_was_under_way() -> None:
    world = World()
    put(world.store, _entry("uncertain").document())
    world.store.change(["t"], lambda found, now: rules.later(found, 3, now, 60.0))
    hold = Hold("t", 3)
    assert list(world.store.renew([hold], 1000.0)) == [hold]
    found, now = world.store.look("t")
    assert found is not None
    assert 0 < (found.due_at or 0) - now <= 60


@pytest.mark.parametrize("state", get_args(State))
def test_whoever_lost_a_reaction_writes_nothing(state: State) -> None:
    found = [_entry(state).document(), None]
    for writing in (
        rules.stopped(found, 2, "x", 5.0)[1],
        rules.prepared(found, 2, "1", 5.0)[1],
        rules.confirmed(found, 2, "x", 5.0)[1],
        rules.later(found, 2, 5.0, 1.0)[1],
    ):
        assert writing == rules.Writing()
    with pytest.raises(LookupError):
        rules.submitting(found, 2, 0.0, 5.0)


async def test_two_people_who_approve_at_once_are_told_who_was_late() -> None:
    world = World()
    entry = await world.ready()
    calls = [world.engine.approve(entry.task_id, entry.asked or "", f"p{number}") for number in range(8)]
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert answers.count(None) == 1
    refused = [answer for answer in answers if answer is not None]
    assert {answer.code for answer in refused if isinstance(answer, ReactionRefused)} == {"not_waiting"}
    assert len(refused) == 7
    assert (await world.moved(entry.task_id)).submits == 1
