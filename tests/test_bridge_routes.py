"""The routes of a bridge: who may start, join, answer and cancel what. Conversations of two owners never meet."""

from __future__ import annotations

import asyncio
import gc
import json
import socket
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from agents import Runner, RunResultStreaming, function_tool
from plainbridge import Plain
from serving import ADA, JSON, PEOPLE, by_token, caller, code, listening, live, living, scripted, service_of, write
from staging import soon
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount
from test_bridge_stream import events

from agents_progress import Disclosure, progress
from agents_progress.bridges.ag_ui import AgUI
from agents_progress.bridges.base import Asked, question_id
from agents_progress.decorate import Decorated
from agents_progress.errors import UsageError
from agents_progress.journal import Journal, MemoryJournal, open_journal
from agents_progress.journal.base import RunRow
from agents_progress.server import Limits, Principal, runs_app
from agents_progress.server.bodies import Bounded, transport_of
from agents_progress.server.bridging import MOST_ANSWERS, OWN_PATHS
from agents_progress.server.principal import Action
from agents_progress.sse import Decoder
from agents_progress.testing import call, text, turn, wait
from agents_progress.verify import matches

ASKED: list[str] = []
DID: list[str] = []


@function_tool(needs_approval=True)
def danger(what: str) -> str:
    DID.append(what)
    return f"did {what}"


@pytest.fixture(autouse=True)
def nothing_happened_yet() -> None:
    ASKED.clear()
    DID.clear()


def chat_of(*turns: Any, **options: Any) -> Decorated[...]:
    agent = scripted(*turns, tools=[danger])

    @progress(**{"verify": matches(r"(?s).+"), "approve_blind": ["danger"], **options})
    def chat(message: str, fee: float = 0.0) -> RunResultStreaming:
        ASKED.append(message)
        return Runner.run_streamed(agent, message)

    return chat


def asks(*names: str) -> Any:
    return turn(*(call("danger", {"what": name}, call_id=name) for name in names))


def says(conversation: str = "c1", key: str = "k1", message: str = "hi") -> dict[str, Any]:
    return {"chat": conversation, "id": key, "say": message}


def answers(ids: list[str], ok: bool = True, conversation: str = "c1", key: str = "k2", **more: Any) -> dict[str, Any]:
    return {"chat": conversation, "id": key, "answers": [{"to": each, "ok": ok, **more} for each in ids]}


def app_of(journal: Journal, *turns: Any, **more: Any) -> Starlette:
    return runs_app(journal, by_token, bridges=[Plain(chat_of(*turns))], drain_s=0.1, **more)


@asynccontextmanager
async def node(journal: Journal, *turns: Any, **more: Any) -> AsyncIterator[httpx.AsyncClient]:
    async with living(app_of(journal, *turns, **more)) as app, caller(app) as ada:
        yield ada


def told(answer: httpx.Response) -> list[dict[str, Any]]:
    assert answer.status_code == 200, answer.text
    return events(Decoder().feed(answer.content))


async def post(client: httpx.AsyncClient, body: dict[str, Any]) -> list[dict[str, Any]]:
    return told(await client.post("/api/plain", json=body))


@asynccontextmanager
async def streaming(url: str, name: str = "ada", **body: Any) -> AsyncIterator[Callable[[int], Any]]:
    """A stream over a real socket; call what it gives for so many events."""
    headers = {"authorization": f"Bearer {name}"}
    async with (
        httpx.AsyncClient(base_url=url, headers=headers) as client,
        client.stream("POST", "/api/plain", json=says(**body)) as answer,
    ):
        assert answer.status_code == 200, await answer.aread()
        chunks, decoder, found = answer.aiter_raw(), Decoder(), list[Any]()

        async def take(count: int) -> list[dict[str, Any]]:
            async with asyncio.timeout(10):
                while len(found) < count:
                    found.extend(events(decoder.feed(await anext(chunks))))
            return found

        yield take


# Starting.


async def test_a_message_starts_a_run_and_is_answered_by_its_stream(journal: MemoryJournal) -> None:
    async with node(journal, turn(text("Hello"))) as ada:
        answer = await ada.post("/api/plain", json=says())
    assert told(answer)[0]["e"] == "begun"
    assert told(answer)[-1] == {"e": "done"}
    assert "".join(event.get("text", "") for event in told(answer)) == "Hello"
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert (answer.headers["x-plain"], answer.headers["content-location"]) == ("1", "plain/c1/stream")
    (row,) = await journal.runs()
    assert answer.headers["x-cursor"] == f"{row.run_id}:0+0"
    assert (row.origin.owner, row.origin.tenant, row.labels["plain.conversation"]) == ("ada", "north", "c1")
    assert ASKED == ["hi"]


async def test_the_same_request_twice_starts_one_run_and_joins_it(journal: MemoryJournal) -> None:
    async with node(journal, turn(text("Hello"))) as ada:
        first, second = await asyncio.gather(post(ada, says()), post(ada, says()))
        third = await post(ada, says())
    assert first[-1] == second[-1] == third[-1] == {"e": "done"}
    assert [len([event for event in each if event["e"] == "text"]) for each in (first, third)] == [1, 1]
    assert len(await journal.runs()) == 1
    assert ASKED == ["hi"]


async def test_a_request_without_a_key_is_meant_each_time(journal: MemoryJournal) -> None:
    async with node(journal, turn(text("a")), turn(text("b"))) as ada:
        first, second = await post(ada, says(key="")), await post(ada, says(key=""))
    assert first[0]["run"] != second[0]["run"]
    assert len(ASKED) == 2


async def test_a_request_without_a_key_that_is_sent_again_under_its_header_starts_one_run(
    journal: MemoryJournal,
) -> None:
    async with node(journal, turn(text("a")), turn(text("b"))) as ada:
        runs = []
        for key in ("one", "one", "two"):
            sent = ada.post("/api/plain", json=says(key=""), headers={"idempotency-key": key})
            runs.append(told(await sent)[0]["run"])
        assert code(await ada.post("/api/plain", json=says(key=""), headers={"idempotency-key": ""})) == "bad_key"
        with_own = await ada.post("/api/plain", json=says("c2", "one"), headers={"idempotency-key": "one"})
        again = await ada.post("/api/plain", json=says("c2", "one"), headers={"idempotency-key": "three"})
    assert runs[0] == runs[1] != runs[2]
    assert told(with_own)[0]["run"] == told(again)[0]["run"]
    assert len(ASKED) == 3


async def test_the_same_key_for_another_message_is_refused(journal: MemoryJournal) -> None:
    async with node(journal, turn(text("Hello"))) as ada:
        await post(ada, says())
        assert code(await ada.post("/api/plain", json=says(message="other"))) == "key_reused"
        assert ASKED == ["hi"]


async def test_a_conversation_has_one_live_run_at_a_time(journal: MemoryJournal) -> None:
    held = asyncio.Event()
    app = app_of(journal, turn(text("a"), wait(held), text("b")), turn(text("c")))
    async with listening(app) as url, streaming(url) as take, caller(app) as ada:
        await take(2)
        refused = await ada.post("/api/plain", json=says(key="k2"))
        assert (refused.status_code, code(refused)) == (409, "busy")
        held.set()
        assert (await take(4))[-1] == {"e": "done"}
        assert (await post(ada, says(key="k2")))[-1] == {"e": "done"}
    assert len(await journal.runs(labels={"plain.conversation": "c1"})) == 2


async def test_a_message_that_comes_while_the_log_before_it_is_being_closed_is_let_in(journal: MemoryJournal) -> None:
    log = live("r1").say("tool.finished", call_id="c1").end("failed")
    await write(journal, log, ADA, sealed=False, **{"plain.conversation": "c1"})
    async with node(journal, turn(text("Hello"))) as ada:
        assert (await ada.get("/api/plain/c1/stream")).status_code == 204
        asking = asyncio.create_task(post(ada, says()))
        await asyncio.sleep(0.1)
        assert not asking.done()
        await journal.seal("r1")
        assert (await asking)[-1] == {"e": "done"}


async def test_a_run_that_waits_for_its_check_is_live(journal: MemoryJournal) -> None:
    log = live("r1").say("tool.finished", call_id="c1").end()
    await write(journal, log, ADA, sealed=False, **{"plain.conversation": "c1"})
    async with node(journal) as ada:
        assert code(await ada.post("/api/plain", json=says())) == "busy"
        reading = asyncio.create_task(ada.get("/api/plain/c1/stream"))
        await asyncio.sleep(0.05)
        await journal.append(log.check().envelopes[-1:])
        assert told(await reading)[-1] == {"e": "done"}


async def test_two_messages_at_once_in_one_conversation_start_one_run(journal: MemoryJournal) -> None:
    async with node(journal, turn(text("a")), turn(text("b"))) as ada:
        found = await asyncio.gather(*(ada.post("/api/plain", json=says(key=f"k{n}")) for n in range(5)))
    begun = [answer for answer in found if answer.status_code == 200]
    assert {code(answer) for answer in found if answer.status_code != 200} <= {"busy"}
    assert len(begun) == len(ASKED) < 5


async def test_the_exclusive_key_of_the_application_goes_before_that_of_the_conversation(
    journal: MemoryJournal,
) -> None:
    held, seen = asyncio.Event(), []

    def one_at_a_time(principal: Principal, wish: Any) -> str:
        seen.append((principal.name, wish.labels["plain.conversation"]))
        return "one"

    app = app_of(journal, turn(text("a"), wait(held)), exclusive=one_at_a_time)
    async with listening(app) as url, streaming(url) as take, caller(app) as ada:
        await take(2)
        assert code(await ada.post("/api/plain", json=says("c2", "k2"))) == "busy"
        held.set()
        await take(3)
    assert seen == [("ada", "c1"), ("ada", "c2")]


async def test_a_function_that_raises_at_its_start_is_an_error_without_its_text(journal: MemoryJournal) -> None:
    @progress
    def chat(message: str) -> RunResultStreaming:
        raise ValueError("a secret")

    async with living(runs_app(journal, by_token, bridges=[Plain(chat)])) as app, caller(app) as ada:
        answer = await ada.post("/api/plain", json=says())
    assert (answer.status_code, code(answer)) == (502, "start_failed")
    assert "secret" not in answer.text


# Whose.


async def test_conversations_of_two_owners_with_one_name_never_meet(journal: MemoryJournal) -> None:
    held = asyncio.Event()
    app = app_of(journal, *(turn(text(name), wait(held)) for name in ("a", "b", "c", "d")))
    async with listening(app) as url, streaming(url, "ada") as ada, streaming(url, "bob") as bob:
        async with streaming(url, "eve") as eve, streaming(url, "ops") as ops:
            runs = [(await take(2))[0]["run"] for take in (ada, bob, eve, ops)]
            assert len(set(runs)) == 4
            held.set()
            for name, run_id, take in zip(PEOPLE, runs, (ada, bob, eve, ops), strict=True):
                assert (await take(3))[-1] == {"e": "done"}
                row = await journal.run(run_id)
                assert row is not None
                assert (row.origin.owner, row.origin.tenant) == (PEOPLE[name].owner, PEOPLE[name].tenant)


@pytest.mark.parametrize("name", ["bob", "eve", "ops"])
async def test_a_foreign_conversation_is_one_that_does_not_exist(journal: MemoryJournal, name: str) -> None:
    await write(journal, live("r1"), ADA, sealed=False, **{"plain.conversation": "c1"})
    await write(journal, live("r2"), ADA, sealed=False)
    async with living(app_of(journal)) as app, caller(app, name) as other:
        assert (await other.get("/api/plain/c1/stream")).status_code == 204
        for cursor in ("r1:1.1", "r2:1.1", "r3:1.1"):
            foreign = await other.get("/api/plain/c1/stream", headers={"last-event-id": cursor})
            assert (foreign.status_code, code(foreign)) == (404, "not_found")
        for conversation in ("c1", "c9"):
            foreign = await other.post(f"/api/plain/{conversation}/cancel", json={})
            assert (foreign.status_code, code(foreign)) == (404, "not_found")
        for run_id in ("r1", "r2", "r3"):
            foreign = await other.post("/api/plain", json=answers([f"{run_id}/ask-1/"]))
            assert (foreign.status_code, code(foreign)) == (404, "not_found")
    assert await journal.requests(["r1", "r2"]) == []


async def test_an_own_run_of_another_conversation_is_none_of_this_one(journal: MemoryJournal) -> None:
    await write(journal, live("r1"), ADA, sealed=False, **{"plain.conversation": "c2"})
    async with node(journal) as ada:
        assert code(await ada.get("/api/plain/c1/stream", headers={"last-event-id": "r1:1.1"})) == "not_found"
        assert code(await ada.post("/api/plain", json=answers(["r1/ask-1/"]))) == "not_found"


async def test_an_operator_finds_its_own_conversation_behind_those_of_others(journal: MemoryJournal) -> None:
    await write(journal, live("mine"), PEOPLE["ops"], sealed=False, **{"plain.conversation": "c1"})
    for n in range(120):
        await write(journal, live(f"r{n}"), ADA, sealed=False, **{"plain.conversation": "c1"})
    async with listening(app_of(journal)) as url:
        headers = {"authorization": "Bearer ops"}
        async with (
            httpx.AsyncClient(base_url=url, headers=headers) as ops,
            ops.stream("GET", "/api/plain/c1/stream") as answer,
        ):
            chunk = await anext(answer.aiter_raw())
            assert events(Decoder().feed(chunk))[0]["run"] == "mine"


def careful(request: Request, action: Action, run: RunRow | None) -> Principal | None:
    """Denies what the request says, and what it says of runs where there is one."""
    if action in request.headers.get("x-denied" if run is None else "x-denied-of-run", "").split():
        raise PermissionError
    return by_token(request, action, run)


async def test_whoever_may_not_is_refused_before_anything_is_done(journal: MemoryJournal) -> None:
    await write(journal, live("r1"), ADA, sealed=False, **{"plain.conversation": "c1"})
    app = runs_app(journal, careful, bridges=[Plain(chat_of())])
    async with living(app), caller(app) as ada, caller(app, None) as nobody:
        for method, path, action in (
            ("POST", "/api/plain", "start"),
            ("POST", "/api/plain", "read"),
            ("GET", "/api/plain/c1/stream", "read"),
            ("POST", "/api/plain/c1/cancel", "cancel"),
        ):
            body = {"json": says()} if method == "POST" else {}
            assert code(await nobody.request(method, path, **body)) == "unauthenticated"
            denied = await ada.request(method, path, headers={"x-denied": action}, **body)
            assert (denied.status_code, code(denied)) == (403, "forbidden")
        for action in ("answer", "read"):
            denied = await ada.post("/api/plain", json=answers(["r1/ask-1/"]), headers={"x-denied": action})
            assert code(denied) == "forbidden"
    assert ASKED == []


async def test_whoever_may_start_nothing_may_answer(journal: MemoryJournal) -> None:
    app = runs_app(journal, careful, bridges=[Plain(chat_of(asks("a"), turn(text("shipped"))))])
    async with living(app), caller(app) as ada:
        paused = await post(ada, says())
        ada.headers["x-denied"] = "start"
        assert (await post(ada, answers(paused[-1]["ids"])))[-1] == {"e": "done"}
        assert code(await ada.post("/api/plain", json=says(key="k3"))) == "forbidden"
    assert (DID, ASKED) == (["a"], ["hi"])


async def test_no_run_is_shown_to_whoever_may_not_read_it(journal: MemoryJournal) -> None:
    app = runs_app(journal, careful, bridges=[Plain(chat_of(asks("a"), turn(text("shipped"))))])
    async with living(app), caller(app) as ada:
        paused = await post(ada, says())
        ada.headers["x-denied-of-run"] = "read"
        for body in (says(), says("c2", "k2"), answers(paused[-1]["ids"])):
            denied = await ada.post("/api/plain", json=body)
            assert (denied.status_code, code(denied)) == (403, "forbidden")
    assert DID == []


@pytest.mark.parametrize("path", ["/api/plain", "/api/plain/c1/cancel"])
async def test_a_page_of_another_site_and_a_body_that_is_no_json_change_nothing(
    journal: MemoryJournal, path: str
) -> None:
    async with node(journal) as ada:
        for headers, why in (
            ({"origin": "https://evil.example"}, "cross_origin"),
            ({"sec-fetch-site": "cross-site"}, "cross_origin"),
            ({"content-type": "text/plain"}, "not_json"),
        ):
            answer = await ada.post(path, content=json.dumps(says()), headers={**JSON, **headers})
            assert code(answer) == why
        assert code(await ada.post(f"{path}?token=x", json=says())) == "token_in_url"
        assert code(await ada.post(f"{path}?x=1", json=says())) in ("bad_query", "not_found")
    assert ASKED == []


# Bodies.

BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "chat"),
    ({"chat": 5, "id": "k", "say": "hi"}, "chat"),
    ({"chat": "c1", "say": "hi"}, "id is a text"),
    ({"chat": "", "id": "k", "say": "hi"}, "conversation"),
    ({"chat": "x" * 257, "id": "k", "say": "hi"}, "conversation"),
    ({"chat": "x" * 10_000, "id": "k", "say": "hi"}, "conversation"),
    ({"chat": ".", "id": "k", "say": "hi"}, "conversation"),  # URLs with these lead elsewhere
    ({"chat": "..", "id": "k", "say": "hi"}, "conversation"),
    ({"chat": "a\0b", "id": "k", "say": "hi"}, "conversation"),
    ({"chat": "a\nb", "id": "k", "say": "hi"}, "conversation"),
    ({"chat": "a\x9b", "id": "k", "say": "hi"}, "conversation"),
    ({"chat": "c1", "id": "k"}, "either brings a message or answers"),
    ({"chat": "c1", "id": "k", "say": "hi", "answers": [{"to": "r1/ask-1/", "ok": True}]}, "either brings"),
    ({"chat": "c1", "id": "k", "say": 5}, "arguments.message: string_type"),
    (answers(["r1/ask-1/", "r2/ask-1/"]), "all of one run"),
    (answers([f"r1/ask-{n}/" for n in range(MOST_ANSWERS + 1)]), f"at most {MOST_ANSWERS}"),
    (answers(["r1/ask-1/"], why="\0"), "reason"),
    ({"chat": "c1", "id": "k", "answers": [{"to": "r1/a/", "ok": True}, {"to": "r1/a/", "ok": False}]}, "twice"),
]


@pytest.mark.parametrize(("body", "named"), BAD)
async def test_a_body_that_does_not_fit_starts_nothing_and_names_the_field(
    journal: MemoryJournal, body: dict[str, Any], named: str
) -> None:
    async with node(journal) as ada:
        answer = await ada.post("/api/plain", json=body)
        assert (answer.status_code, code(answer)) == (422, "bad_fields")
        assert named in answer.json()["error"]["message"]
        assert "\0" not in answer.text and "xxxx" not in answer.text
    assert (ASKED, await journal.runs()) == ([], [])


@pytest.mark.parametrize("name", ["", "x", "r1/ask-1", "r 1/ask-1/", "x" * 10_000, "r1/ask\0/"])
async def test_an_answer_to_what_nobody_asked_is_refused(journal: MemoryJournal, name: str) -> None:
    async with node(journal) as ada:
        assert code(await ada.post("/api/plain", json=answers([name]))) == "unknown_interaction"


@pytest.mark.parametrize("conversation", ["巡检 🚢", "a/b/../c", "%2e%2e", "x" * 256, "a?b#c", "stream", "\"'<script>"])
async def test_any_printable_text_names_a_conversation(journal: MemoryJournal, conversation: str) -> None:
    held = asyncio.Event()
    app = app_of(journal, turn(text("a"), wait(held)))
    async with listening(app) as url, streaming(url, conversation=conversation) as take, caller(app) as ada:
        await take(2)
        (row,) = await journal.runs(labels={"plain.conversation": conversation})
        again = await ada.post("/api/plain", json=says(conversation, "k2"))
        assert code(again) == "busy"
        async with httpx.AsyncClient(base_url=url, headers=ada.headers) as client:
            answer = await client.post(f"/api/plain/{quote(conversation, safe='')}/cancel", json={})
        assert answer.json() == {"answer": "accepted"}
        assert (await take(3))[-1] == {"e": "error", "code": "cancelled"}
    assert row.labels["plain.conversation"] == conversation


async def test_a_path_of_what_no_conversation_is_called_is_refused(journal: MemoryJournal) -> None:
    async with node(journal) as ada:
        for name in ("a%00b", "x" * 257, "%C2%9B", "a%0Db"):
            assert code(await ada.get(f"/api/plain/{name}/stream")) == "bad_query"
            assert code(await ada.post(f"/api/plain/{name}/cancel", json={})) == "bad_query"


# Going on.


async def test_a_reader_goes_on_with_what_is_live_and_gets_204_for_what_is_not(journal: MemoryJournal) -> None:
    held = asyncio.Event()
    app = app_of(journal, turn(text("a"), wait(held), text("b")))
    async with listening(app) as url, streaming(url) as take, caller(app) as ada:
        assert (await ada.get("/api/plain/c2/stream")).status_code == 204
        await take(2)
        reading = asyncio.create_task(ada.get("/api/plain/c1/stream"))
        await soon(lambda: service_of(app).hub.readers() == 2)
        held.set()
        answer = await reading
        found = told(answer)
        assert "".join(event.get("text", "") for event in found) == "ab"
        assert (found[0]["key"], found[-1], answer.headers["content-location"]) == ("", {"e": "done"}, "stream")
        assert (await take(4))[-1] == {"e": "done"}
        assert (await ada.get("/api/plain/c1/stream")).status_code == 204


async def test_a_reader_that_was_cut_off_goes_on_after_its_last_event_also_when_the_run_has_ended(
    journal: MemoryJournal,
) -> None:
    async with node(journal, turn(text("Hello"))) as ada:
        whole = Decoder().feed((await ada.post("/api/plain", json=says())).content)
        for place, frame in enumerate(whole[:-1]):
            answer = await ada.get("/api/plain/c1/stream", headers={"last-event-id": frame.id})
            rest = Decoder().feed(answer.content)
            # The first event names the request, which a reader that comes back does not repeat.
            assert [each.data for each in rest] == [each.data for each in whole[place + 1 :]]


async def test_a_reader_that_got_nothing_yet_goes_on_from_where_its_stream_begins(journal: MemoryJournal) -> None:
    async with node(journal, turn(text("Hello"))) as ada:
        for _ in range(2):  # the first starts the run, the second joins it at its end
            answer = await ada.post("/api/plain", json=says())
            cursor = answer.headers["x-cursor"]
            again = await ada.get("/api/plain/c1/stream", headers={"last-event-id": cursor})
            assert again.headers["x-cursor"] == cursor
            assert told(again)[1:] == told(answer)[1:]


async def test_a_reader_that_joins_a_run_late_is_told_of_those_that_it_continues(journal: MemoryJournal) -> None:
    held = asyncio.Event()
    turns = turn(text("May I? "), call("danger", {"what": "a"}, call_id="a")), turn(text("Yes"), wait(held))
    app = app_of(journal, *turns)
    async with listening(app) as url, streaming(url) as take, caller(app) as ada:
        paused = await take(5)
        assert [event["e"] for event in paused] == ["begun", "text", "call", "call", "asks"]
        assert told(await ada.get("/api/plain/c1/stream"))[-1] == paused[-1]  # a page that was loaded again asks, too
        answering = asyncio.create_task(ada.post("/api/plain", json=answers(paused[-1]["ids"])))
        await soon(lambda: service_of(app).hub.readers() == 1)
        late = asyncio.create_task(ada.get("/api/plain/c1/stream"))
        await soon(lambda: service_of(app).hub.readers() == 2)
        held.set()
        texts = [
            "".join(event.get("text", "") for event in told(answer)) for answer in await asyncio.gather(answering, late)
        ]
        assert texts == ["Yes", "May I? Yes"]


async def test_a_run_is_joined_though_the_one_that_it_continues_was_erased(journal: MemoryJournal) -> None:
    held = asyncio.Event()
    app = app_of(journal, asks("a"), turn(text("Yes"), wait(held)))
    async with living(app), caller(app, "ops") as ops:
        paused = await post(ops, says())
        answering = asyncio.create_task(ops.post("/api/plain", json=answers(paused[-1]["ids"])))
        await soon(lambda: service_of(app).hub.readers() == 1)
        await journal.erase(run_id=paused[0]["run"])
        joining = asyncio.create_task(ops.get("/api/plain/c1/stream"))
        await asyncio.sleep(0.05)
        held.set()
        for answer in await asyncio.gather(answering, joining):
            assert told(answer)[-1] == {"e": "done"}


async def test_a_cursor_that_leads_nowhere_is_refused(journal: MemoryJournal) -> None:
    await write(journal, live("r1"), ADA, **{"plain.conversation": "c1"})
    async with node(journal) as ada:
        for cursor, why in (("1", "bad_cursor"), ("", "bad_cursor"), ("r1:9.1", "cursor_ahead")):
            assert code(await ada.get("/api/plain/c1/stream", headers={"last-event-id": cursor})) == why
        await journal.prune("r1", 2)
        assert code(await ada.get("/api/plain/c1/stream", headers={"last-event-id": "r1:1.1"})) == "pruned"
        await journal.erase(run_id="r1")
        assert code(await ada.get("/api/plain/c1/stream", headers={"last-event-id": "r1:1.1"})) == "not_found"
        assert (await ada.get("/api/plain/c1/stream")).status_code == 204


async def test_a_reader_joins_a_run_of_which_the_beginning_was_pruned(journal: MemoryJournal) -> None:
    log = live("r1").say("text.delta", item_id="m1", index=0, text="Hi").say("tool.finished", call_id="c1").end()
    await write(journal, log, ADA, sealed=False, **{"plain.conversation": "c1"})
    await journal.prune("r1", 5)
    async with node(journal) as ada:
        reading = asyncio.create_task(ada.get("/api/plain/c1/stream"))
        await asyncio.sleep(0.05)
        await journal.seal("r1")
        assert [event["e"] for event in told(await reading)] == ["begun", "text", "call", "error"]


async def test_below_a_prefix_a_stream_says_where_it_is_gone_on_with(journal: MemoryJournal) -> None:
    async with living(app_of(journal, turn(text("Hello")))) as runs:
        app = Starlette(routes=[Mount("/agent", runs)])
        async with caller(app) as ada:
            answer = await ada.post("/agent/api/plain", json=says("a/b c"))
            place = answer.url.join(answer.headers["content-location"])
            assert str(place) == "http://runs.test/agent/api/plain/a%2Fb%20c/stream"
            again = await ada.get(place, headers={"last-event-id": answer.headers["x-cursor"]})
            assert told(again)[1:] == told(answer)[1:]
            assert again.url.join(again.headers["content-location"]) == place


# Cancelling, and leaving.


async def test_a_reader_that_leaves_stops_nothing_and_a_cancel_does(journal: MemoryJournal) -> None:
    held = asyncio.Event()
    app = app_of(journal, turn(text("a"), wait(held), text("b")), turn(text("c"), wait(asyncio.Event())))
    async with listening(app) as url, caller(app) as ada:
        async with streaming(url) as take:
            await take(2)
        await soon(lambda: service_of(app).hub.readers() == 0)
        held.set()
        assert (await post(ada, says()))[-1] == {"e": "done"}
        async with streaming(url, key="k2") as take:
            await take(2)
            answer = await ada.post("/api/plain/c1/cancel", json={"mode": "immediate"})
            assert (answer.status_code, answer.json()) == (202, {"answer": "accepted"})
            assert (await take(3))[-1] == {"e": "error", "code": "cancelled"}
        assert (await ada.post("/api/plain/c1/cancel", json={})).json() == {"answer": "already_ended"}
        assert code(await ada.post("/api/plain/c1/cancel", json={"mode": "later"})) == "bad_fields"


async def test_caps_are_held_before_anything_is_started(journal: MemoryJournal) -> None:
    held = asyncio.Event()
    turns = [turn(text("a"), wait(held)) for _ in range(3)]
    app = app_of(journal, *turns, limits=Limits(readers_per_owner=1, runs_per_owner=1))
    async with listening(app) as url, caller(app) as ada:
        async with streaming(url) as take:
            await take(2)
            refused = await ada.post("/api/plain", json=says("c2", "k2"))
            assert (refused.status_code, code(refused)) == (429, "too_many_readers")
            assert "retry-after" in refused.headers
            assert code(await ada.get("/api/plain/c1/stream")) == "too_many_readers"
        await soon(lambda: service_of(app).hub.readers() == 0)
        assert code(await ada.post("/api/plain", json=says("c2", "k2"))) == "too_many_runs"
        held.set()
    assert ASKED == ["hi"]


async def test_a_reader_of_a_post_that_takes_nothing_is_cut_off_as_others_are(journal: MemoryJournal) -> None:
    app = app_of(journal, turn(text(*["x" * 100_000] * 150)), limits=Limits(stall_s=0.3))
    body = json.dumps(says()).encode()
    head = "POST /api/plain HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ada\r\ncontent-type: application/json\r\n"
    async with listening(app) as url:
        sock = socket.socket()
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        sock.setblocking(False)
        loop = asyncio.get_running_loop()
        await loop.sock_connect(sock, ("127.0.0.1", int(url.rpartition(":")[2])))
        await loop.sock_sendall(sock, f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        await soon(lambda: service_of(app).hub.counts.stalled == 1, limit=20)
        sock.close()
    assert service_of(app).hub.readers() == 0


async def test_what_a_client_sent_of_its_messages_is_not_kept_for_as_long_as_it_reads(
    journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("ag_ui", reason="the extra `ag-ui` is not installed")

    class Message(dict[str, Any]):
        """One that a weak reference can be made to."""

    bridge, sent = AgUI(chat_of(turn(text("a"), wait(asyncio.Event())))), list[weakref.ref[Message]]()

    def asked(body: Any) -> Asked:
        history = (Message(id="u1", role="user", content="hi"),)
        sent.append(weakref.ref(history[0]))
        return Asked("c1", "k1", {"message": "hi"}, history=history)

    monkeypatch.setattr(bridge, "asked", asked)
    app = runs_app(journal, by_token, bridges=[bridge], drain_s=0.1)
    async with listening(app) as url, httpx.AsyncClient(base_url=url, headers={"authorization": "Bearer ada"}) as ada:
        async with ada.stream("POST", "/ag-ui", json={}) as answer:
            chunks, decoder, types = answer.aiter_raw(), Decoder(), list[str]()
            async with asyncio.timeout(10):
                while "TEXT_MESSAGE_CONTENT" not in types:
                    types += [json.loads(frame.data)["type"] for frame in decoder.feed(await anext(chunks))]
            gc.collect()
            assert [ref() for ref in sent] == [None]


async def test_a_server_that_drains_sends_its_readers_away_and_starts_nothing(journal: MemoryJournal) -> None:
    app = app_of(journal, turn(text("a"), wait(asyncio.Event())))
    async with listening(app) as url, streaming(url) as take, caller(app) as ada:
        await take(2)
        draining = asyncio.create_task(service_of(app).drain())
        assert (await take(3))[-1] == {"e": "error", "code": "try_again"}
        assert code(await ada.post("/api/plain", json=says("c2", "k2"))) == "draining"
        await draining
    (row,) = await journal.runs()
    assert row.status == "cancelled"


async def test_a_reader_of_whom_nobody_can_say_now_whether_it_may_read_is_told_to_come_back(
    journal: MemoryJournal,
) -> None:
    broken = asyncio.Event()

    def unsure(request: Request, action: Action, run: RunRow | None) -> Principal | None:
        if broken.is_set():
            raise ConnectionError
        return by_token(request, action, run)

    chat = chat_of(turn(text("a"), wait(asyncio.Event())))
    app = runs_app(journal, unsure, bridges=[Plain(chat)], limits=Limits(again_s=0.1), drain_s=0.1)
    async with listening(app) as url, streaming(url) as take:
        await take(2)
        broken.set()
        assert (await take(3))[-1] == {"e": "error", "code": "try_again"}


# Answers.


async def test_an_answer_goes_on_with_the_run_and_streams_what_comes_of_it(journal: MemoryJournal) -> None:
    async with node(journal, asks("a"), turn(text("shipped"))) as ada:
        paused = await post(ada, says())
        assert paused[-1]["e"] == "asks"
        found = await post(ada, answers(paused[-1]["ids"]))
        assert found[0]["run"] == f"{paused[0]['run']}.2"
        assert "".join(event.get("text", "") for event in found) == "shipped"
        assert (found[-1], DID) == ({"e": "done"}, ["a"])
        again = await post(ada, answers(paused[-1]["ids"]))
        assert (again[-1], DID) == ({"e": "done"}, ["a"]), "the same answer again joins what came of it"
        other = await ada.post("/api/plain", json=answers(paused[-1]["ids"], ok=False))
        assert (other.status_code, code(other)) == (409, "already_answered")
        joined = await post(ada, says())
        assert joined[0]["run"] == f"{paused[0]['run']}.2"
    assert [request.body["actor"] for request in await journal.requests([paused[0]["run"]])] == ["ada"]


async def test_a_rejected_call_is_not_made(journal: MemoryJournal) -> None:
    async with node(journal, asks("a"), turn(text("not shipped"))) as ada:
        paused = await post(ada, says())
        found = await post(ada, answers(paused[-1]["ids"], ok=False, why="too dear"))
        assert (found[-1], DID) == ({"e": "done"}, [])
    (request,) = await journal.requests([paused[0]["run"]])
    assert request.body["reason"] == "too dear"


async def test_answers_that_come_together_go_on_in_one_run(journal: MemoryJournal) -> None:
    async with node(journal, asks("a", "b", "c"), turn(text("shipped"))) as ada:
        paused = await post(ada, says())
        assert len(paused[-1]["ids"]) == 3
        body = answers(paused[-1]["ids"])
        body["answers"][1]["ok"] = False
        found = await post(ada, body)
        assert (found[0]["run"], found[-1]) == (f"{paused[0]['run']}.2", {"e": "done"})
        assert sorted(DID) == ["a", "c"]
    assert len(await journal.runs()) == 2


async def test_of_two_answers_one_at_a_time_the_second_goes_to_the_run_that_asks_again(journal: MemoryJournal) -> None:
    async with node(journal, asks("a", "b"), turn(text("shipped"))) as ada:
        first, second = (await post(ada, says()))[-1]["ids"]
        half = await post(ada, answers([first]))
        assert half[-1]["e"] == "asks"
        assert [name.split("/")[1:] for name in half[-1]["ids"]] == [second.split("/")[1:]]
        assert (await post(ada, answers(half[-1]["ids"], key="k3")))[-1] == {"e": "done"}
    assert sorted(DID) == ["a", "b"]


async def test_an_answer_about_something_else_than_was_shown_is_refused(journal: MemoryJournal) -> None:
    async with node(journal, asks("a")) as ada:
        run_id, name, digest = (await post(ada, says()))[-1]["ids"][0].split("/")
        for wrong in (f"{run_id}/{name}/{'0' * 64}", f"{run_id}/{name}/"):
            assert code(await ada.post("/api/plain", json=answers([wrong]))) == "digest_differs"
        assert code(await ada.post("/api/plain", json=answers([f"{run_id}/ask-9/{digest}"]))) == "unknown_interaction"
    assert DID == []


async def test_what_was_not_shown_can_be_rejected_and_not_approved(journal: MemoryJournal) -> None:
    chat = chat_of(asks("a"), turn(text("not shipped")), approve_blind=[])
    async with living(runs_app(journal, by_token, bridges=[Plain(chat)])) as app, caller(app) as ada:
        ids = (await post(ada, says()))[-1]["ids"]
        refused = await ada.post("/api/plain", json=answers(ids))
        assert (refused.status_code, code(refused)) == (409, "not_shown")
        assert (await post(ada, answers(ids, ok=False)))[-1] == {"e": "done"}
    chat = chat_of(asks("a"), turn(text("shipped")), approve_blind=[], disclosure=Disclosure(approval_details="all"))
    async with living(runs_app(journal, by_token, bridges=[Plain(chat)])) as app, caller(app) as ada:
        ids = (await post(ada, says("c2")))[-1]["ids"]
        assert (await post(ada, answers(ids, conversation="c2")))[-1] == {"e": "done"}
    assert DID == ["a"]


@pytest.mark.parametrize(
    ("kind", "ok", "why", "stored"),
    [
        ("approval", True, "fine", {"reason": "fine"}),
        ("approval", False, "too dear", {"reason": "too dear"}),
        ("clarification", True, "the blue one", {"text": "the blue one"}),
        ("clarification", False, "no idea", {"reason": "no idea"}),
        ("recovery", True, "try again", {"text": "try again"}),
        ("recovery", True, "", {}),
        ("clarification", True, None, "answer_missing"),
        ("clarification", True, "x" * 5000, "answer_too_long"),
        ("approval", False, "x" * 5000, "answer_too_long"),
    ],
)
async def test_the_reason_of_an_approval_is_its_text_where_the_question_takes_one(
    journal: MemoryJournal, kind: str, ok: bool, why: str | None, stored: dict[str, str] | str
) -> None:
    chat = chat_of(asks("a"), turn(text("ok")), approval_kinds={"danger": kind})
    async with living(runs_app(journal, by_token, bridges=[Plain(chat)])) as app, caller(app) as ada:
        ids = (await post(ada, says()))[-1]["ids"]
        answer = await ada.post("/api/plain", json=answers(ids, ok=ok, why=why))
        if isinstance(stored, str):
            assert (answer.status_code, code(answer)) == (422, stored)
            return
        assert told(answer)[-1] == {"e": "done"}
    (request,) = await journal.requests([ids[0].split("/")[0]])
    assert {name: request.body[name] for name in ("reason", "text") if name in request.body} == stored


async def test_an_answer_that_comes_too_late_or_from_others_is_refused(journal: MemoryJournal) -> None:
    chat = chat_of(asks("a"), approval_ttl=0.05)
    async with living(runs_app(journal, by_token, bridges=[Plain(chat)])) as app, caller(app) as ada:
        ids = (await post(ada, says()))[-1]["ids"]
        await asyncio.sleep(0.06)
        late = await ada.post("/api/plain", json=answers(ids))
        assert (late.status_code, code(late)) == (409, "expired")
    chat = chat_of(asks("a"), answerers=["carol"])
    async with living(runs_app(journal, by_token, bridges=[Plain(chat)])) as app, caller(app) as ada:
        ids = (await post(ada, says("c2")))[-1]["ids"]
        others = await ada.post("/api/plain", json=answers(ids, conversation="c2"))
        assert (others.status_code, code(others)) == (403, "not_allowed")
    assert DID == []


async def test_the_same_decision_in_other_words_is_another_answer(journal: MemoryJournal) -> None:
    chat = chat_of(asks("a"), turn(text("ok")), approval_kinds={"danger": "recovery"})
    async with living(runs_app(journal, by_token, bridges=[Plain(chat)])) as app, caller(app) as ada:
        ids = (await post(ada, says()))[-1]["ids"]
        for _ in range(2):
            assert (await post(ada, answers(ids, why="half of it")))[-1] == {"e": "done"}
        for why in ("all of it", None):
            other = await ada.post("/api/plain", json=answers(ids, why=why))
            assert (other.status_code, code(other)) == (409, "already_answered")
            assert "half" not in other.text


async def test_the_same_answer_twice_at_once_is_one_and_both_see_what_comes_of_it(
    journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = journal.ask

    async def slowly(*given: Any, **more: Any) -> Any:
        await asyncio.sleep(0.1)  # until the other one has looked, too
        return await ask(*given, **more)

    monkeypatch.setattr(journal, "ask", slowly)
    async with node(journal, asks("a"), turn(text("shipped"))) as ada:
        ids = (await post(ada, says()))[-1]["ids"]
        found = await asyncio.gather(*(post(ada, answers(ids)) for _ in range(3)))
        assert [each[-1] for each in found] == [{"e": "done"}] * 3
    assert DID == ["a"]


async def paused_elsewhere(journal: Journal) -> list[str]:
    """The ids under which the questions of a run travel that paused in a process that is gone."""
    chat = chat_of(asks("a"), keep_pauses=True)
    whose: Any = {"owner": "ada", "tenant": "north", "labels": {"plain.conversation": "c1"}}
    run = chat.using(journal=journal, **whose)("hi")
    await run
    await run.closed()
    ids = [question_id(run.id, question) for question in run.view.interactions.values()]
    del run
    gc.collect()  # a handle that is there could be answered
    return ids


async def test_a_pause_whose_owner_is_gone_goes_on_where_its_bridge_is_mounted(tmp_path: Path) -> None:
    first, second = (open_journal(f"sqlite:///{tmp_path}/runs.db") for _ in range(2))
    ids = await paused_elsewhere(first)
    chat = chat_of(turn(text("shipped")), keep_pauses=True)
    app = runs_app(second, by_token, bridges=[Plain(chat)], limits=Limits(answer_s=0.05))
    async with living(app), caller(app) as ada:
        found = await post(ada, answers(ids))
        assert (found[-1], DID) == ({"e": "done"}, ["a"])
    await first.close()
    await second.close()


async def test_an_answer_that_nobody_can_go_on_with_yet_is_kept_and_says_so(tmp_path: Path) -> None:
    first, second = (open_journal(f"sqlite:///{tmp_path}/runs.db") for _ in range(2))
    ids = await paused_elsewhere(first)
    app = runs_app(second, by_token, bridges=[Plain(progress(other))], limits=Limits(answer_s=0.05))
    async with living(app), caller(app) as ada:
        for _ in range(2):
            answer = await ada.post("/api/plain", json=answers(ids))
            assert (answer.status_code, code(answer)) == (503, "not_resumed")
        (request,) = await second.requests([ids[0].split("/")[0]])
        assert request.body["decision"] == "approved"
        assert (await ada.post("/api/plain/c1/cancel", json={})).status_code == 202
        late = await ada.post("/api/plain", json=answers(ids))
        assert (code(late), late.json()["error"]["decision"]) == ("already_answered", "cancelled")
    assert DID == []
    await first.close()
    await second.close()


def other(message: str) -> RunResultStreaming:
    return Runner.run_streamed(scripted(turn(text("x"))), message)


# Mounting.


@pytest.mark.parametrize(
    "path", ["", "/", "api", "/api/", "/api//x", "/a b", "/a{b}", *(f"/{own}" for own in OWN_PATHS)]
)
def test_a_path_that_is_none_or_ours_is_refused(journal: MemoryJournal, path: str) -> None:
    with pytest.raises(UsageError, match="a bridge cannot be at"):
        runs_app(journal, by_token, bridges=[Plain(chat_of(), path=path)])


@pytest.mark.parametrize("other", ["/api/plain", "/api/plain/more", "/api"])
def test_two_bridges_at_one_path_are_refused(journal: MemoryJournal, other: str) -> None:
    with pytest.raises(UsageError, match="two bridges are at or below"):
        runs_app(
            journal, by_token, bridges=[Plain(chat_of()), Plain(chat_of(), path="/zzz"), Plain(chat_of(), path=other)]
        )


def test_a_bridge_to_what_is_not_under_the_decorator_is_refused(journal: MemoryJournal) -> None:
    def chat(message: str) -> None: ...

    with pytest.raises(UsageError, match="under @progress"):
        runs_app(journal, by_token, bridges=[Plain(chat)])  # type: ignore[arg-type]


async def test_the_function_of_a_bridge_cannot_be_started_elsewhere_unless_it_is_offered(
    journal: MemoryJournal,
) -> None:
    async with node(journal) as ada:
        assert code(await ada.post("/runs", json={"arguments": {"message": "hi"}})) == "bad_fields"
        for method, path in (("GET", "/api/plain"), ("POST", "/api/plain/c1/stream"), ("GET", "/api/plain/c1/cancel")):
            body = {"json": {}} if method == "POST" else {}
            assert code(await ada.request(method, path, **body)) == "method_not_allowed"


def test_a_body_that_is_held_to_its_bounds_still_shows_the_connection_it_came_on() -> None:
    class Served:
        transport = object()

        async def receive(self) -> Any: ...

    served = Served()
    assert transport_of(Bounded(served.receive, Limits()).receive) is served.transport
    assert transport_of(Bounded(lambda: served.receive(), Limits()).receive) is None
