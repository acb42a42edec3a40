"""``POST /runs``: what may be asked for, and the one run that comes of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal

import httpx
import pytest
from agents import Agent, Runner, RunResultStreaming
from pydantic import AfterValidator
from serving import JSON, by_token, caller, code, done, feed, living, scripted, service_of, write
from staging import soon
from starlette.applications import Starlette

from agents_progress import progress
from agents_progress.decorate import Decorated
from agents_progress.errors import UsageError
from agents_progress.journal import MemoryJournal
from agents_progress.server import Limits, Principal, runs_app
from agents_progress.server.starts import keyed_run_id
from agents_progress.testing import text, turn, wait


@progress(labels={"app": "billing"})
def total(question: str, fee: float = 0.0) -> RunResultStreaming:
    ASKED.append((question, fee))
    return Runner.run_streamed(scripted(turn(text("5 EUR"))), question)


ASKED: list[tuple[str, float]] = []


@pytest.fixture(autouse=True)
def nothing_asked_yet() -> None:
    ASKED.clear()


@pytest.fixture
async def app(journal: MemoryJournal) -> AsyncIterator[Starlette]:
    async with living(runs_app(journal, by_token, functions=[total])) as app:
        yield app


@pytest.fixture
async def ada(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    async with caller(app) as client:
        yield client


async def test_a_run_is_started_and_can_be_read_at_once(ada: httpx.AsyncClient, journal: MemoryJournal) -> None:
    answer = await ada.post("/runs", json={"arguments": {"question": "2+3?", "fee": 1}, "labels": {"chat": "c9"}})
    assert answer.status_code == 201
    run = answer.json()
    assert answer.headers["location"] == f"/runs/{run['run_id']}"
    assert (len(run["run_id"]), run["task_id"], run["title"]) == (32, run["run_id"], "Total")
    assert run["labels"] == {"chat": "c9", "app": "billing"}
    types = [json.loads(frame.data)["type"] for frame in await feed(ada, f"{answer.headers['location']}/events")]
    assert (types[0], types[-1]) == ("run.accepted", "run.ended")
    row = await journal.run(run["run_id"])
    assert row is not None
    assert (row.origin.owner, row.origin.tenant) == ("ada", "north")
    assert ASKED == [("2+3?", 1.0)]


async def test_a_title_and_a_task_are_the_callers_to_give(ada: httpx.AsyncClient, journal: MemoryJournal) -> None:
    body = {"arguments": {"question": "?"}, "title": "Bill for 巡检", "task_id": "task-7"}
    run = (await ada.post("/runs", json=body)).json()
    assert (run["title"], run["task_id"]) == ("Bill for 巡检", "task-7")
    found = await feed(ada, f"/runs/{run['run_id']}/events")
    assert {json.loads(frame.data)["payload"].get("title") for frame in found[:2]} == {"Bill for 巡检"}


BAD_BODIES: list[tuple[Any, int, str, str]] = [
    ([], 400, "bad_json", ""),
    ("x", 400, "bad_json", ""),
    (None, 400, "bad_json", ""),
    ({}, 422, "bad_fields", "arguments.question: missing"),
    ({"run_id": "mine", "arguments": {"question": "?"}}, 422, "bad_fields", "run_id"),
    ({"function": "nothing", "arguments": {"question": "?"}}, 422, "bad_fields", "function: one of total"),
    ({"function": 3, "arguments": {"question": "?"}}, 422, "bad_fields", "function: string_type"),
    ({"arguments": ["?"]}, 422, "bad_fields", "arguments: dict_type"),
    ({"arguments": {"question": 5}}, 422, "bad_fields", "arguments.question: string_type"),
    ({"arguments": {"question": "?", "fee": "1"}}, 422, "bad_fields", "arguments.fee: float_type"),
    ({"arguments": {"question": "?", "fee": None}}, 422, "bad_fields", "arguments.fee: float_type"),
    ({"arguments": {"question": "?", "extra": 1}}, 422, "bad_fields", "arguments.extra: extra_forbidden"),
    ({"arguments": {"question": "?"}, "more": 1}, 422, "bad_fields", "more: extra_forbidden"),
    ({"arguments": {"question": "?"}, "task_id": "a b"}, 422, "bad_fields", "task_id: string_pattern_mismatch"),
    ({"arguments": {"question": "?"}, "task_id": "a\n"}, 422, "bad_fields", "task_id: string_pattern_mismatch"),
    ({"arguments": {"question": "?"}, "labels": {"a": 1}}, 422, "bad_fields", "labels.a: string_type"),
    ({"arguments": {"question": "?"}, "labels": {"a": "\0"}}, 422, "bad_fields", "labels.a: string_pattern_mismatch"),
    ({"arguments": {"question": "?"}, "labels": {"a": "x" * 257}}, 422, "bad_fields", "labels.a: string_too_long"),
    ({"arguments": {"question": "?"}, "labels": {"a b": "1"}}, 422, "bad_fields", "labels"),
    ({"arguments": {"question": "?"}, "labels": {f"n{n}": "" for n in range(33)}}, 422, "bad_fields", "labels"),
    ({"arguments": {"question": "?"}, "labels": {"agents-progress.start": "x"}}, 422, "bad_fields", "labels"),
    ({"arguments": {"question": "?"}, "title": "\x1b[2J"}, 422, "bad_fields", "title: string_pattern_mismatch"),
    ({"arguments": {"question": "?"}, "title": ""}, 422, "bad_fields", "title: string_too_short"),
    ({"arguments": {"question": "?"}, "owner": "bob"}, 422, "bad_fields", "owner: extra_forbidden"),
]


@pytest.mark.parametrize(("body", "status", "why", "named"), BAD_BODIES)
async def test_a_body_that_does_not_fit_starts_nothing_and_names_the_field(
    ada: httpx.AsyncClient, journal: MemoryJournal, body: Any, status: int, why: str, named: str
) -> None:
    answer = await ada.post("/runs", content=json.dumps(body), headers=JSON)
    assert (answer.status_code, code(answer)) == (status, why)
    assert named in answer.json()["error"]["message"]
    assert await journal.runs() == []
    assert ASKED == []


async def test_a_refusal_never_repeats_a_value(ada: httpx.AsyncClient) -> None:
    for body in (
        {"arguments": {"question": ["hunter2"]}},
        {"arguments": {"question": "?", "fee": "hunter2"}},
        {"arguments": {"question": "?"}, "task_id": "hunter2 "},
        {"function": "hunter2"},
    ):
        assert "hunter2" not in (await ada.post("/runs", json=body)).text


async def test_sec_2_an_existing_run_id_is_not_taken_and_its_log_stays_as_it_is(
    app: Starlette, journal: MemoryJournal
) -> None:
    await write(journal, done("r1"))
    before = await journal.read("r1")
    async with caller(app, "bob") as bob:
        answer = await bob.post("/runs", json={"run_id": "r1", "arguments": {"question": "?"}})
    assert (answer.status_code, code(answer)) == (422, "bad_fields")
    assert await journal.read("r1") == before
    assert len(await journal.runs()) == 1


# Functions.


@dataclass
class Order:
    number: int
    day: date


def offering(*functions: Any, **more: Any) -> Callable[[MemoryJournal], Starlette]:
    return lambda journal: runs_app(journal, by_token, functions=list(functions), **more)


async def test_arguments_are_converted_as_the_signature_says(journal: MemoryJournal) -> None:
    given: list[Any] = []

    @progress
    async def ship(order: Order, /, *, how: Literal["air", "sea"] = "sea", _now: Any = None) -> RunResultStreaming:
        given.append((order, how, _now))
        return Runner.run_streamed(scripted(turn(text("ok"))), "go")

    async with living(offering(ship)(journal)) as app, caller(app) as ada:
        body: dict[str, Any] = {"order": {"number": 7, "day": "2026-10-07"}}
        assert (await ada.post("/runs", json={"function": "ship", "arguments": body})).status_code == 201
        assert (await ada.post("/runs", json={"arguments": {**body, "how": "air"}})).status_code == 201
        for wrong in ({**body, "how": "rail"}, {**body, "_now": 1}, {"order": {"number": "7", "day": "2026-10-07"}}):
            assert (await ada.post("/runs", json={"arguments": wrong})).status_code == 422
    assert given == [(Order(7, date(2026, 10, 7)), "sea", None), (Order(7, date(2026, 10, 7)), "air", None)]


async def test_one_of_several_functions_is_chosen_by_name(journal: MemoryJournal) -> None:
    app = runs_app(journal, by_token, functions={"sum": total, "total": total})
    async with living(app), caller(app) as ada:
        assert code(await ada.post("/runs", json={"arguments": {"question": "?"}})) == "bad_fields"
        chosen = await ada.post("/runs", json={"function": "sum", "arguments": {"question": "?"}})
        assert chosen.status_code == 201


async def test_a_node_that_offers_nothing_starts_nothing(journal: MemoryJournal) -> None:
    async with caller(runs_app(journal, by_token)) as ada:
        assert code(await ada.post("/runs", json={"arguments": {}})) == "bad_fields"


def names_nothing(value: Nothing) -> RunResultStreaming: ...  # type: ignore[name-defined] # noqa: F821


def takes_what_json_cannot_carry(model: type[Agent[Any]], reply: Callable[..., Any]) -> Any: ...


def test_what_cannot_be_offered_is_refused_where_the_app_is_made(
    journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    for functions, why in (
        ([takes_what_json_cannot_carry], "under @progress"),
        ([progress(takes_what_json_cannot_carry)], "give it a default"),
        ([total, total], "two functions are called total"),
        ([progress(names_nothing)], "an annotation of names_nothing cannot be found: Nothing"),
        ([progress(lambda _secret: None)], "_secret"),
    ):
        with pytest.raises(UsageError, match=why):
            runs_app(journal, by_token, functions=functions)  # type: ignore[arg-type]
    monkeypatch.setenv("AGENTS_PROGRESS", "off")
    with pytest.raises(UsageError, match="AGENTS_PROGRESS=off"):
        runs_app(journal, by_token, functions=[total])


# Idempotency.

BODY = {"arguments": {"question": "2+3?"}}


async def test_the_same_key_and_body_give_the_same_run_and_start_it_once(ada: httpx.AsyncClient) -> None:
    first = await ada.post("/runs", json=BODY, headers={"idempotency-key": "k1"})
    again = await ada.post("/runs", json={"function": "total", **BODY}, headers={"idempotency-key": "k1"})
    assert (first.status_code, again.status_code) == (201, 200)
    assert (
        first.json()["run_id"] == again.json()["run_id"] == keyed_run_id(Principal("x", "ada", "north"), "total", "k1")
    )
    assert again.headers["location"] == first.headers["location"]
    assert len(ASKED) == 1


async def test_the_same_key_with_another_body_is_refused(ada: httpx.AsyncClient) -> None:
    headers = {"idempotency-key": "k1"}
    await ada.post("/runs", json=BODY, headers=headers)
    for body in ({"arguments": {"question": "3+3?"}}, {**BODY, "title": "T"}, {**BODY, "labels": {"a": "b"}}):
        answer = await ada.post("/runs", json=body, headers=headers)
        assert (answer.status_code, code(answer)) == (409, "key_reused")
    assert len(ASKED) == 1


async def test_of_twenty_requests_at_once_with_one_key_one_starts_the_run(
    ada: httpx.AsyncClient, journal: MemoryJournal
) -> None:
    answers = await asyncio.gather(
        *(ada.post("/runs", json=BODY, headers={"idempotency-key": "k1"}) for _ in range(20))
    )
    assert sorted(answer.status_code for answer in answers) == [200] * 19 + [201]
    assert len({answer.json()["run_id"] for answer in answers}) == 1
    assert len(ASKED) == len(await journal.runs()) == 1


async def test_two_callers_with_one_key_have_two_runs(app: Starlette) -> None:
    async with caller(app, "ada") as ada, caller(app, "bob") as bob:
        ids = {
            (await client.post("/runs", json=BODY, headers={"idempotency-key": "k1"})).json()["run_id"]
            for client in (ada, bob)
        }
    assert len(ids) == 2


@pytest.mark.parametrize("key", ["", " ", "a b", "x" * 256, "é", "\x7f"])
async def test_a_key_is_visible_ascii_of_some_length(ada: httpx.AsyncClient, key: str) -> None:
    answer = await ada.post("/runs", json=BODY, headers={b"idempotency-key": key.encode()})
    assert (answer.status_code, code(answer)) == (400, "bad_key")


async def test_two_keys_are_none(ada: httpx.AsyncClient) -> None:
    headers = httpx.Headers([("idempotency-key", "a"), ("idempotency-key", "b")])
    assert code(await ada.post("/runs", json=BODY, headers=headers)) == "bad_key"


async def test_a_key_whose_run_was_erased_is_used_up(ada: httpx.AsyncClient, journal: MemoryJournal) -> None:
    headers = {"idempotency-key": "k1"}
    run_id = (await ada.post("/runs", json=BODY, headers=headers)).json()["run_id"]
    await soon(lambda: journal._logs[run_id].sealed)
    await journal.erase(run_id=run_id)
    answer = await ada.post("/runs", json=BODY, headers=headers)
    assert (answer.status_code, code(answer)) == (409, "key_reused")


# Runs that cannot start.


async def test_a_function_that_raises_is_told_by_a_code_alone_and_leaves_no_run_to_wait_for(
    journal: MemoryJournal, caplog: pytest.LogCaptureFixture
) -> None:
    @progress
    def at_once(question: str) -> RunResultStreaming:
        raise ValueError(f"hunter2 {question}")

    @progress
    async def later(question: str) -> RunResultStreaming:
        await asyncio.sleep(0)
        raise ValueError(f"hunter2 {question}")

    @progress
    def nothing(question: str) -> RunResultStreaming:
        return None  # type: ignore[return-value]

    async with living(offering(at_once, later, nothing)(journal)) as app, caller(app) as ada:
        for function in ("at_once", "later", "nothing"):
            answer = await ada.post("/runs", json={"function": function, "arguments": {"question": "swordfish"}})
            assert (answer.status_code, code(answer)) == (502, "start_failed")
            run = (await ada.get(f"/runs/{answer.json()['error']['run_id']}")).json()
            assert (run["status"], run["sealed"]) == ("unknown", True)
            assert "hunter2" not in answer.text + caplog.text
        assert service_of(app)._in_flight == {}


async def test_a_function_that_takes_its_time_does_not_keep_its_caller(
    journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agents_progress.server.starts.STARTING_S", 0.02)
    ready = asyncio.Event()

    @progress
    async def slow() -> RunResultStreaming:
        await ready.wait()
        return Runner.run_streamed(scripted(turn(text("ok"))), "go")

    async with living(offering(slow)(journal)) as app, caller(app) as ada:
        answer = await ada.post("/runs", json={})
        assert (answer.status_code, answer.json()["status"]) == (201, "accepted")
        ready.set()
        await feed(ada, f"{answer.headers['location']}/events")
        assert (await ada.get(answer.headers["location"])).json()["status"] == "checking"


# Caps.


def held(release: asyncio.Event) -> Decorated[...]:
    @progress
    async def hold(chat: str = "") -> RunResultStreaming:
        return Runner.run_streamed(scripted(turn(text("so far"), wait(release), text("."))), "go")

    return hold


async def test_an_owner_has_so_many_runs_in_flight_and_no_more(journal: MemoryJournal) -> None:
    release = asyncio.Event()
    app = runs_app(journal, by_token, functions=[held(release)], limits=Limits(runs_per_owner=2))
    async with living(app), caller(app, "ada") as ada, caller(app, "eve") as eve:
        first, second = await ada.post("/runs", json={}), await ada.post("/runs", json={})
        third = await ada.post("/runs", json={})
        assert (third.status_code, code(third)) == (429, "too_many_runs")
        assert int(third.headers["retry-after"]) > 0
        assert (await eve.post("/runs", json={})).status_code == 201  # the same owner's name in another tenant
        release.set()
        for run in (first, second):
            await feed(ada, f"{run.headers['location']}/events")
        await soon(lambda: not service_of(app)._in_flight)
        assert (await ada.post("/runs", json={})).status_code == 201


async def test_twenty_at_once_do_not_pass_the_cap_together(journal: MemoryJournal) -> None:
    release = asyncio.Event()
    app = runs_app(journal, by_token, functions=[held(release)], limits=Limits(runs_per_owner=3))
    async with living(app), caller(app) as ada:
        answers = await asyncio.gather(*(ada.post("/runs", json={}) for _ in range(20)))
        assert sorted(answer.status_code for answer in answers) == [201] * 3 + [429] * 17
        release.set()


async def test_of_one_conversation_one_run_is_live(journal: MemoryJournal) -> None:
    release = asyncio.Event()
    app = runs_app(
        journal,
        by_token,
        functions=[held(release)],
        exclusive=lambda principal, wish: wish.arguments.get("chat"),
    )

    def body(chat: str) -> dict[str, Any]:
        return {"arguments": {"chat": chat}}

    async with living(app), caller(app, "ada") as ada, caller(app, "eve") as eve:
        first = await ada.post("/runs", json=body("c1"))
        assert first.status_code == 201
        second = await ada.post("/runs", json=body("c1"), headers={"idempotency-key": "k"})
        assert (second.status_code, code(second)) == (409, "busy")
        assert (await ada.post("/runs", json=body("c2"))).status_code == 201
        assert (await eve.post("/runs", json=body("c1"))).status_code == 201
        assert len((await ada.get("/runs")).json()["runs"]) == 2  # the refused one left nothing
        assert service_of(app)._in_flight.total() == 3
        release.set()
        await feed(ada, f"{first.headers['location']}/events")
        third = await ada.post("/runs", json=body("c1"), headers={"idempotency-key": "k"})
        assert third.status_code == 201  # the key of a request that was refused is as good as new
        again = await ada.post("/runs", json=body("c1"), headers={"idempotency-key": "k"})
        assert (again.status_code, again.json()["run_id"]) == (200, third.json()["run_id"])


async def test_a_journal_that_is_away_is_said_to_be_and_frees_the_place(app: Starlette, journal: MemoryJournal) -> None:
    await journal.close()
    async with caller(app, "bob") as bob:
        answer = await bob.post("/runs", json=BODY)
    assert (answer.status_code, code(answer)) == (503, "unavailable")
    assert service_of(app)._in_flight == {}


def fails(value: Any) -> Any:
    raise ZeroDivisionError(f"hunter2 {value}")


async def test_a_callback_or_a_validator_of_the_application_that_raises_starts_nothing(
    journal: MemoryJournal, caplog: pytest.LogCaptureFixture
) -> None:
    @progress
    def checked(chat: Annotated[str, AfterValidator(fails)]) -> RunResultStreaming:
        raise AssertionError("it is never called")

    @progress
    def open_to_all(chat: str) -> RunResultStreaming:
        raise AssertionError("it is never called")

    app = offering(checked, open_to_all, exclusive=lambda principal, wish: fails(wish))(journal)
    async with living(app), caller(app) as ada:
        for function in ("checked", "open_to_all"):
            answer = await ada.post("/runs", json={"function": function, "arguments": {"chat": "c1"}})
            assert (answer.status_code, code(answer)) == (502, "start_failed")
            assert "hunter2" not in answer.text + caplog.text
    assert await journal.runs() == []
    assert service_of(app)._in_flight == {}


async def test_an_app_without_its_lifespan_says_so_once(
    journal: MemoryJournal, caplog: pytest.LogCaptureFixture
) -> None:
    async with caller(runs_app(journal, by_token, functions=[total])) as ada:
        for _ in range(2):
            location = (await ada.post("/runs", json=BODY)).headers["location"]
            await feed(ada, f"{location}/events")
    assert caplog.text.count("without its lifespan") == 1
