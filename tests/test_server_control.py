"""Cancels and answers over HTTP: asked through the journal, carried out by the owner, once."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from agents import Runner, RunResultStreaming, function_tool
from serving import by_token, caller, code, done, envelopes, feed, live, living, paused, scripted, write
from staging import soon, stored

from agents_progress import progress
from agents_progress.journal import MemoryJournal
from agents_progress.server import Limits, runs_app
from agents_progress.testing import call, text, turn, wait
from agents_progress.testing.contract.logs import Log

DIGEST = "a" * 64


@asynccontextmanager
async def nodes(
    journal: MemoryJournal, *turns: Any, **more: Any
) -> AsyncIterator[tuple[httpx.AsyncClient, httpx.AsyncClient]]:
    """Ada on the node that starts runs, and on another one with the same journal."""

    @progress
    def ship(question: str = "go") -> RunResultStreaming:
        return Runner.run_streamed(scripted(*turns, tools=[danger]), question)

    here = runs_app(journal, by_token, functions=[ship], **more)
    elsewhere = runs_app(journal, by_token)
    async with living(here), living(elsewhere), caller(here) as ada, caller(elsewhere) as ada_elsewhere:
        yield ada, ada_elsewhere


DONE: list[str] = []


@function_tool(needs_approval=True)
def danger(what: str) -> str:
    DONE.append(what)
    return f"did {what}"


@pytest.fixture(autouse=True)
def nothing_done_yet() -> None:
    DONE.clear()


def asks(*names: str) -> Any:
    return turn(*(call("danger", {"what": name}, call_id=name) for name in names))


async def start_and_pause(client: httpx.AsyncClient) -> tuple[str, dict[str, str]]:
    """A run that waits for its answers, and the digest of each question."""
    run_id = (await client.post("/runs", json={})).json()["run_id"]
    found = envelopes(await feed(client, f"/runs/{run_id}/events"))
    payloads = [envelope["payload"] for envelope in found if envelope["type"] == "approval.wait"]
    return run_id, {payload["interaction_id"]: payload["digest"] for payload in payloads}


# Cancels.


async def test_a_run_is_cancelled_from_another_node_with_the_caller_as_actor(journal: MemoryJournal) -> None:
    async with nodes(journal, turn(text("a"), wait(asyncio.Event()), text("b"))) as (ada, elsewhere):
        run_id = (await ada.post("/runs", json={})).json()["run_id"]
        first = await elsewhere.post(f"/runs/{run_id}/cancel", json={})
        assert (first.status_code, first.json()) == (202, {"answer": "accepted"})
        again = await ada.post(f"/runs/{run_id}/cancel", json={"mode": "after_turn"})
        assert (again.status_code, again.json()["answer"]) in ((202, "already_cancelling"), (202, "already_ended"))
        await feed(elsewhere, f"/runs/{run_id}/events")
        assert (await elsewhere.post(f"/runs/{run_id}/cancel", json={})).json() == {"answer": "already_ended"}
    log = await stored(journal, run_id)
    assert log.of("cancel.requested") == [{"mode": "immediate", "actor": "ada"}]
    assert (log.ending["outcome"], log.ending["requested_by"]) == ("cancelled", "ada")


async def test_a_firmer_cancel_follows_a_softer_one_and_not_the_other_way(journal: MemoryJournal) -> None:
    await write(journal, live("r1"), sealed=False)
    async with caller(runs_app(journal, by_token)) as ada:
        modes = ("after_turn", "after_turn", "immediate", "immediate", "after_turn")
        said = [(await ada.post("/runs/r1/cancel", json={"mode": mode})).json()["answer"] for mode in modes]
    assert said == ["accepted", "already_cancelling", "accepted", "already_cancelling", "already_cancelling"]
    assert [request.key for request in await journal.requests(["r1"])] == ["cancel.after_turn", "cancel.immediate"]


async def test_of_twenty_cancels_at_once_one_is_accepted(journal: MemoryJournal) -> None:
    await write(journal, live("r1"), sealed=False)
    async with caller(runs_app(journal, by_token)) as ada:
        answers = await asyncio.gather(*(ada.post("/runs/r1/cancel", json={}) for _ in range(20)))
    assert sorted(answer.json()["answer"] for answer in answers) == ["accepted", *["already_cancelling"] * 19]


async def test_a_pause_is_cancelled_and_so_is_the_run_that_went_on_from_it(journal: MemoryJournal) -> None:
    held = turn(text("a"), wait(asyncio.Event()), text("b"))
    async with nodes(journal, asks("a"), held) as (ada, elsewhere):
        run_id, digests = await start_and_pause(ada)
        body = {"decision": "approve", "digest": digests["ask-1"]}
        later = (await elsewhere.post(f"/runs/{run_id}/interactions/ask-1", json=body)).json()["continued_as"]
        assert (await elsewhere.post(f"/runs/{run_id}/cancel", json={})).json() == {"answer": "accepted"}
        await feed(elsewhere, f"/runs/{later}/events")
        assert (await stored(journal, later)).ending["outcome"] == "cancelled"
    async with nodes(journal, asks("a")) as (ada, elsewhere):
        run_id, _ = await start_and_pause(ada)
        assert (await elsewhere.post(f"/runs/{run_id}/cancel", json={})).json() == {"answer": "accepted"}
        await soon(lambda: f"{run_id}.2" in journal._logs and journal._logs[f"{run_id}.2"].sealed)
        assert (await stored(journal, f"{run_id}.2")).of("approval.resolved")[0]["decision"] == "cancelled"


# Answers.


@pytest.mark.parametrize(("decision", "stored_as", "did"), [("approve", "approved", ["a"]), ("reject", "rejected", [])])
async def test_an_answer_on_another_node_goes_on_at_the_owner_and_names_the_run(
    journal: MemoryJournal, decision: str, stored_as: str, did: list[str]
) -> None:
    async with nodes(journal, asks("a"), turn(text("ok"))) as (ada, elsewhere):
        run_id, digests = await start_and_pause(ada)
        body = {"decision": decision, "digest": digests["ask-1"], "reason": "because"}
        answer = await elsewhere.post(f"/runs/{run_id}/interactions/ask-1", json=body)
        assert (answer.status_code, answer.json()) == (202, {"answer": "accepted", "continued_as": f"{run_id}.2"})
        await feed(elsewhere, f"/runs/{run_id}.2/events")
        second = await ada.post(f"/runs/{run_id}/interactions/ask-1", json={**body, "decision": "reject"})
        assert (second.status_code, code(second)) == (409, "already_answered")
        assert second.json()["error"] | {"message": ""} == {
            "code": "already_answered",
            "message": "",
            "decision": stored_as,
            "actor": "ada",
        }
    log = await stored(journal, f"{run_id}.2")
    assert log.of("approval.resolved") == [{"interaction_id": "ask-1", "decision": stored_as, "actor": "ada"}]
    assert (log.view.status, did) == ("checking", DONE)


async def test_of_twenty_answers_at_once_on_two_nodes_one_is_used_and_the_others_say_whose(
    journal: MemoryJournal,
) -> None:
    async with nodes(journal, asks("a"), turn(text("ok"))) as (ada, elsewhere):
        run_id, digests = await start_and_pause(ada)

        def body(number: int) -> dict[str, str]:
            return {"decision": ("approve", "reject")[number % 2], "digest": digests["ask-1"]}

        answers = await asyncio.gather(
            *(
                (ada, elsewhere)[number % 2].post(f"/runs/{run_id}/interactions/ask-1", json=body(number // 2))
                for number in range(20)
            )
        )
        assert sorted(answer.status_code for answer in answers) == [202] + [409] * 19
        await feed(ada, f"/runs/{run_id}.2/events")
    (resolved,) = (await stored(journal, f"{run_id}.2")).of("approval.resolved")
    winner = next(number for number, answer in enumerate(answers) if answer.status_code == 202)
    assert resolved["decision"] == ("approved", "rejected")[winner // 2 % 2]
    told = {answer.json()["error"]["decision"] for answer in answers if answer.status_code == 409}
    assert told == {resolved["decision"]}
    assert len(DONE) == (resolved["decision"] == "approved")


async def test_questions_are_answered_one_by_one_and_under_the_first_runs_id_too(journal: MemoryJournal) -> None:
    async with nodes(journal, asks("a", "b"), turn(text("ok"))) as (ada, elsewhere):
        run_id, digests = await start_and_pause(ada)
        for interaction_id, later in (("ask-1", f"{run_id}.2"), ("ask-2", f"{run_id}.3")):
            body = {"decision": "approve", "digest": digests[interaction_id]}
            answer = await elsewhere.post(f"/runs/{run_id}/interactions/{interaction_id}", json=body)
            assert (answer.status_code, answer.json()["continued_as"]) == (202, later), answer.text
            await feed(elsewhere, f"/runs/{later}/events")
            assert (
                code(await ada.post(f"/runs/{run_id}/interactions/{interaction_id}", json=body)) == "already_answered"
            )
    assert sorted(DONE) == ["a", "b"]
    assert (await stored(journal, f"{run_id}.3")).view.status == "checking"


async def test_answers_to_two_questions_at_once_are_both_used(journal: MemoryJournal) -> None:
    async with nodes(journal, asks("a", "b"), turn(text("ok"))) as (ada, elsewhere):
        run_id, digests = await start_and_pause(ada)
        bodies = {name: {"decision": "approve", "digest": digests[name]} for name in ("ask-1", "ask-2")}
        first, second = await asyncio.gather(
            ada.post(f"/runs/{run_id}/interactions/ask-1", json=bodies["ask-1"]),
            elsewhere.post(f"/runs/{run_id}/interactions/ask-2", json=bodies["ask-2"]),
        )
        assert (first.status_code, second.status_code) == (202, 202)
        await soon(lambda: len(DONE) == 2)


async def test_an_answer_whose_owner_is_gone_is_stored_and_says_that_nothing_went_on(journal: MemoryJournal) -> None:
    await write(journal, paused("r1", digest=DIGEST))
    async with caller(runs_app(journal, by_token, limits=Limits(answer_s=0.05))) as ada:
        body = {"decision": "approve", "digest": DIGEST, "reason": "seen"}
        answer = await ada.post("/runs/r1/interactions/ask-1", json=body)
        assert (answer.status_code, answer.json()) == (202, {"answer": "accepted", "continued_as": None})
        again = await ada.post("/runs/r1/interactions/ask-1", json=body)
        assert (again.status_code, code(again)) == (409, "already_answered")
    (request,) = await journal.requests(["r1"])
    assert (request.key, request.body) == (
        "answer.ask-1",
        {"decision": "approved", "actor": "ada", "reason": "seen", "digest": DIGEST},
    )


async def test_only_what_was_seen_is_answered(journal: MemoryJournal) -> None:
    await write(journal, paused("r1", digest=DIGEST))
    await write(journal, paused("r2"))
    async with caller(runs_app(journal, by_token, limits=Limits(answer_s=0.05))) as ada:
        for run_id, digest in (("r1", {}), ("r1", {"digest": "b" * 64}), ("r2", {"digest": DIGEST})):
            answer = await ada.post(f"/runs/{run_id}/interactions/ask-1", json={"decision": "approve", **digest})
            assert (answer.status_code, code(answer)) == (409, "digest_differs")
    assert await journal.requests(["r1", "r2"]) == []


async def test_what_is_not_asked_or_not_any_more_is_not_answered(journal: MemoryJournal) -> None:
    open_but_over = Log("r2").start().request().ask().end("cancelled")
    resolved = Log("r3").start().request().ask().say("approval.resolved", interaction_id="ask-1", decision="expired")
    await write(journal, paused("r1"))
    await write(journal, open_but_over)
    await write(journal, resolved, sealed=False)
    await write(journal, done("r4"))
    expected = {
        "r1/interactions/ask-2": (404, "unknown_interaction"),
        "r1/interactions/" + "x" * 65: (404, "unknown_interaction"),
        "r1/interactions/a%00b": (404, "unknown_interaction"),
        "r2/interactions/ask-1": (409, "not_waiting"),
        "r3/interactions/ask-1": (409, "already_answered"),
        "r4/interactions/ask-1": (404, "unknown_interaction"),
    }
    async with caller(runs_app(journal, by_token)) as ada:
        for path, refusal in expected.items():
            answer = await ada.post(f"/runs/{path}", json={"decision": "approve"})
            assert (answer.status_code, code(answer)) == refusal, path
    assert await journal.requests(["r1", "r2", "r3", "r4"]) == []


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"decision": "approved"},
        {"decision": None},
        {"decision": "approve", "actor": "bob"},
        {"decision": "approve", "digest": "A" * 64},
        {"decision": "approve", "digest": DIGEST + "\n"},
        {"decision": "approve", "reason": "\0"},
        {"decision": "approve", "text": "\0"},
        {"decision": "approve", "text": 1},
        {"decision": "approve", "continued_as": "r9"},
    ],
)
async def test_an_answer_has_its_fields_and_no_others(journal: MemoryJournal, body: dict[str, Any]) -> None:
    await write(journal, paused("r1"))
    async with caller(runs_app(journal, by_token)) as ada:
        answer = await ada.post("/runs/r1/interactions/ask-1", json=body)
    assert (answer.status_code, code(answer)) == (422, "bad_fields")
    assert await journal.requests(["r1"]) == []


async def test_an_answer_carries_other_arguments_to_the_owner_and_what_does_not_fit_is_refused(
    journal: MemoryJournal,
) -> None:
    async with nodes(journal, asks("a"), turn(text("ok"))) as (ada, elsewhere):
        run_id, digests = await start_and_pause(ada)
        path, body = f"/runs/{run_id}/interactions/ask-1", {"decision": "approve", "digest": digests["ask-1"]}
        for more, said in {
            '{"arguments": {"what": "b", "x": 1}}': {"code": "arguments_unknown", "names": ["x"]},
            '{"arguments": {}}': {"code": "arguments_missing", "names": ["what"]},
            '{"arguments": ["b"]}': {"code": "arguments_not_object"},
            '{"text": "well"}': {"code": "answer_unexpected"},
            json.dumps({"reason": "x" * 4001}): {"code": "answer_too_long"},
        }.items():
            refused = await elsewhere.post(path, json={**body, **json.loads(more)})
            error = refused.json()["error"]
            assert (refused.status_code, {name: error[name] for name in error if name != "message"}) == (422, said)
        assert await journal.requests([run_id]) == [] and DONE == []
        answer = await elsewhere.post(path, json={**body, "arguments": {"what": "b"}})
        assert (answer.status_code, answer.json()["continued_as"]) == (202, f"{run_id}.2")
        await feed(ada, f"/runs/{run_id}.2/events")
        shown = (await ada.get(f"/runs/{run_id}.2/snapshot")).json()["interactions"]
        assert DONE == ["b"] and [row["edited_from"] for row in shown] == [digests["ask-1"]]


async def test_an_answer_that_lost_against_a_cancel_is_told_so(journal: MemoryJournal) -> None:
    """The request is stored, and the run that goes on says that something else was decided."""
    await write(journal, paused("r1"))
    async with caller(runs_app(journal, by_token)) as ada:
        answering = asyncio.create_task(ada.post("/runs/r1/interactions/ask-1", json={"decision": "approve"}))
        await soon(lambda: journal._logs["r1"].requests)
        later = Log("r1.2").start(resumed_from="r1").request().ask()
        later.say("approval.resolved", interaction_id="ask-1", decision="cancelled", actor="bob").end("cancelled")
        await write(journal, later)
        answer = await answering
    assert (answer.status_code, code(answer)) == (409, "already_answered")
    assert (answer.json()["error"]["decision"], answer.json()["error"]["actor"]) == ("cancelled", "bob")
