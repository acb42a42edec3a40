"""Pauses whose owner is gone: any node that has their function goes on with them, once; others leave them alone."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from agents import Agent, Runner, RunResultStreaming, function_tool
from serving import by_token, caller, feed, living, runs_app
from staging import stored
from starlette.applications import Starlette

from agents_progress import progress
from agents_progress.clock import Clock
from agents_progress.decorate import Decorated
from agents_progress.journal import Journal, open_journal
from agents_progress.journal.base import Request
from agents_progress.server import Limits
from agents_progress.server.abandoned import Abandoned
from agents_progress.server.offered import offered
from agents_progress.testing import ScriptedAPI, call, text, turn

DONE: list[str] = []


@function_tool(needs_approval=True)
def danger(what: str) -> str:
    DONE.append(what)
    return f"did {what}"


@pytest.fixture(autouse=True)
def nothing_done_yet() -> None:
    DONE.clear()


def ship_of(*turns: Any, name: str = "danger") -> Decorated[...]:
    @progress(keep_pauses=True)
    def ship(question: str = "go") -> RunResultStreaming:
        tool = function_tool(danger.on_invoke_tool, name_override=name) if name != "danger" else danger
        return Runner.run_streamed(Agent(name="A", model=ScriptedAPI(turns).model(), tools=[tool]), question)

    return ship


def asks(*names: str) -> Any:
    return turn(*(call("danger", {"what": name}, call_id=name) for name in names))


@pytest.fixture
async def opening(tmp_path: Path) -> AsyncIterator[Callable[[], Journal]]:
    made: list[Journal] = []

    def make() -> Journal:
        made.append(open_journal(f"sqlite:///{tmp_path}/runs.db"))
        return made[-1]

    yield make
    for journal in made:
        await journal.close()


async def paused(journal: Journal, *names: str) -> tuple[str, dict[str, str]]:
    """A run of Ada's that paused in a process that is gone, and the digest of each question."""
    run = ship_of(asks(*names)).using(journal=journal, owner="ada", tenant="north", labels={"a": "b"})()
    await run
    await run.closed()
    run_id = run.id
    questions = {name: row.digest or "" for name, row in run.view.interactions.items()}
    del run
    gc.collect()  # a handle that is there could be answered
    return run_id, questions


@asynccontextmanager
async def node(journal: Journal, *functions: Decorated[...]) -> AsyncIterator[tuple[Starlette, httpx.AsyncClient]]:
    app = runs_app(journal, by_token, functions=functions, limits=Limits(answer_s=0.05), drain_s=0.1)
    async with living(app), caller(app) as ada:
        yield app, ada


async def test_an_answer_whose_owner_is_gone_goes_on_at_the_node_that_was_asked(opening: Any) -> None:
    run_id, digests = await paused(opening(), "x")
    async with node(opening(), ship_of(turn(text("shipped")))) as (_, ada):
        body = {"decision": "approve", "digest": digests["ask-1"]}
        answer = await ada.post(f"/runs/{run_id}/interactions/ask-1", json=body)
        assert (answer.status_code, answer.json()) == (202, {"answer": "accepted", "continued_as": f"{run_id}.2"})
        await feed(ada, f"/runs/{run_id}.2/events")
        log = await stored(opening(), f"{run_id}.2")
        assert (log.ending["final_output"], DONE) == ("shipped", ["x"])
        assert log.of("approval.resolved") == [{"interaction_id": "ask-1", "decision": "approved", "actor": "ada"}]
        row = await opening().run(f"{run_id}.2")
        assert row is not None
        assert (row.origin.owner, row.origin.tenant, row.labels) == ("ada", "north", {"a": "b"})
        again = await ada.post(f"/runs/{run_id}/interactions/ask-1", json=body)
        assert (again.status_code, again.json()["error"]["code"]) == (409, "already_answered")


async def test_of_50_answers_at_two_nodes_one_is_used_and_the_tool_runs_once(opening: Any) -> None:
    run_id, digests = await paused(opening(), "x")
    async with (
        node(opening(), ship_of(turn(text("a")))) as (_, here),
        node(opening(), ship_of(turn(text("b")))) as (_, there),
    ):
        body = {"decision": "approve", "digest": digests["ask-1"]}
        answers = await asyncio.gather(
            *(each.post(f"/runs/{run_id}/interactions/ask-1", json=body) for each in (here, there) * 25)
        )
        assert sorted(answer.status_code for answer in answers) == [202] + [409] * 49
        assert {answer.json()["error"]["code"] for answer in answers if answer.status_code == 409} == {
            "already_answered"
        }
        await feed(here, f"/runs/{run_id}.2/events")
    assert DONE == ["x"]


async def test_a_node_without_the_function_keeps_the_answer_for_one_that_has_it(
    opening: Any, caplog: pytest.LogCaptureFixture
) -> None:
    run_id, digests = await paused(opening(), "x")
    async with (
        node(opening()) as (_, without),
        node(opening(), ship_of(turn(text("shipped")))) as (app, _),
    ):
        body = {"decision": "approve", "digest": digests["ask-1"]}
        answer = await without.post(f"/runs/{run_id}/interactions/ask-1", json=body)
        assert answer.json() == {"answer": "accepted", "continued_as": None} and DONE == []
        journal = opening()
        assert await journal.pauses() == [run_id] and await journal.run(f"{run_id}.2") is None
        caplog.set_level(logging.WARNING)
        ship = ship_of(turn(text("no")), name="other")
        stranded = Abandoned(app.state.service, offered([ship]).values())
        for _ in range(3):
            await stranded.sweep()
        assert [record.getMessage() for record in caplog.records] == [
            f"agents_progress: paused run {run_id} waits for a node that can go on with it (tool)"
        ]
        assert await journal.pauses() == [run_id] and DONE == []
        abandoned = Abandoned(app.state.service, offered([ship_of(turn(text("shipped")))]).values())
        await abandoned.sweep()
        assert DONE == [], "an owner that is there comes first"
        await abandoned.sweep()
        assert (await stored(journal, f"{run_id}.2")).view.status in ("running", "waiting", "checking")
        await feed(without, f"/runs/{run_id}.2/events")
        assert DONE == ["x"] and await journal.pauses() == []


async def test_an_answer_to_another_question_waits_for_the_run_that_asks_it_again(opening: Any) -> None:
    run_id, digests = await paused(opening(), "x", "y")
    async with node(opening()) as (_, without), node(opening(), ship_of(turn(text("shipped")))) as (app, ada):
        for decision, name in (("approve", "ask-2"), ("reject", "ask-1")):
            body = {"decision": decision, "digest": digests[name]}
            await without.post(f"/runs/{run_id}/interactions/{name}", json=body)
        abandoned = Abandoned(app.state.service, offered([ship_of(turn(text("shipped")))]).values())
        await abandoned.take_up(run_id)
        await feed(ada, f"/runs/{run_id}.2/events")
        log = await stored(opening(), f"{run_id}.2")
        assert {each["interaction_id"]: each["decision"] for each in log.of("approval.resolved")} == {
            "ask-1": "rejected",
            "ask-2": "approved",
        }
        assert DONE == ["y"]


async def test_a_pause_that_was_cancelled_at_a_node_without_its_owner_ends(opening: Any) -> None:
    run_id, _ = await paused(opening(), "x", "y")
    async with node(opening()) as (_, ada):
        assert (await ada.post(f"/runs/{run_id}/cancel", json={})).json() == {"answer": "accepted"}
        log = await stored(opening(), f"{run_id}.2")
        assert (log.ending["outcome"], log.ending["requested_by"]) == ("cancelled", "ada")
        assert log.of("approval.resolved") == [
            {"interaction_id": name, "decision": "cancelled", "actor": "ada"} for name in ("ask-1", "ask-2")
        ]
        assert log.view.tools == {"x": "skipped", "y": "skipped"} and log.view.issues == []
        assert DONE == [] and await opening().pauses() == []


async def test_a_pause_that_nobody_answered_in_time_is_resolved_by_any_node(opening: Any) -> None:
    journal = opening()
    clock = Clock(wall=lambda: 1000.0)
    run = ship_of(asks("x")).using(journal=journal, approval_ttl=5, clock=clock, owner="ada", tenant="north")()
    await run
    await run.closed()
    async with node(opening()) as (app, ada):
        await Abandoned(app.state.service, {}).sweep()
        log = await stored(journal, f"{run.id}.2")
        assert log.of("approval.resolved") == [{"interaction_id": "ask-1", "decision": "expired"}]
        body = {"decision": "approve", "digest": run.view.interactions["ask-1"].digest}
        late = await ada.post(f"/runs/{run.id}/interactions/ask-1", json=body)
        assert (late.status_code, late.json()["error"]["code"]) == (409, "already_answered")
    assert DONE == [] and await journal.pauses() == []


async def test_only_those_who_are_named_may_answer_over_http(opening: Any) -> None:
    journal = opening()
    run = ship_of(asks("x")).using(journal=journal, answerers=["mei"], owner="ada", tenant="north")()
    await run
    await run.closed()
    async with node(opening()) as (_, ada):
        body = {"decision": "approve", "digest": run.view.interactions["ask-1"].digest}
        refused = await ada.post(f"/runs/{run.id}/interactions/ask-1", json=body)
        assert (refused.status_code, refused.json()["error"]["code"]) == (403, "not_allowed")
    assert await journal.requests([run.id]) == []


async def test_a_pause_that_its_owner_could_not_drop_is_dropped_by_whoever_looks(opening: Any) -> None:
    run_id, digests = await paused(opening(), "x")
    journal = opening()
    dropped, journal.drop_pause = journal.drop_pause, lambda run_id: asyncio.sleep(0)
    async with node(journal, ship_of(turn(text("shipped")))) as (app, ada):
        body = {"decision": "approve", "digest": digests["ask-1"]}
        await ada.post(f"/runs/{run_id}/interactions/ask-1", json=body)
        await feed(ada, f"/runs/{run_id}.2/events")
        assert await journal.pauses() == [run_id]
        journal.drop_pause = dropped
        abandoned = Abandoned(app.state.service, offered([ship_of()]).values())
        for _ in range(2):
            await abandoned.sweep()
        assert await journal.pauses() == [] and DONE == ["x"]


async def test_a_node_that_finds_the_next_run_claimed_leaves_the_pause_alone(
    opening: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents_progress.server.abandoned.TAKING_S", 0.05)
    run_id, digests = await paused(opening(), "x")
    journal = opening()
    await journal.lease(f"{run_id}.2", 2)  # by a process that said nothing yet
    async with node(journal, ship_of(turn(text("shipped")))) as (app, ada):
        body = {"decision": "approve", "digest": digests["ask-1"]}
        answer = await ada.post(f"/runs/{run_id}/interactions/ask-1", json=body)
        assert answer.json() == {"answer": "accepted", "continued_as": None}
        abandoned = Abandoned(app.state.service, offered([ship_of()]).values())
        for _ in range(2):
            await abandoned.sweep()
        assert await journal.pauses() == [run_id] and DONE == []


async def test_what_was_asked_of_a_run_before_it_paused_ends_no_pause(opening: Any) -> None:
    run_id, _ = await paused(opening(), "x")
    journal = opening()
    await journal.ask(Request(run_id, "cancel.after_turn", {"mode": "after_turn", "actor": "ada"}))
    async with node(journal, ship_of()) as (app, _):
        abandoned = Abandoned(app.state.service, offered([ship_of()]).values())
        for _ in range(3):
            await abandoned.sweep()
    assert await journal.pauses() == [run_id] and await journal.run(f"{run_id}.2") is None


async def test_an_answer_that_was_used_is_not_taken_for_one_to_the_next_pause(opening: Any) -> None:
    run_id, digests = await paused(opening(), "x", "y")
    journal = opening()
    async with node(journal, ship_of()) as (app, ada):
        body = {"decision": "approve", "digest": digests["ask-1"]}
        await ada.post(f"/runs/{run_id}/interactions/ask-1", json=body)
        await feed(ada, f"/runs/{run_id}.2/events")
        abandoned = Abandoned(app.state.service, offered([ship_of()]).values())
        for _ in range(3):
            await abandoned.sweep()
        assert await journal.pauses() == [f"{run_id}.2"] and DONE == ["x"]
