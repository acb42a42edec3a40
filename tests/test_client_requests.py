"""What the client asks a server for, what it makes of the answers, and where its token goes."""

from __future__ import annotations

import asyncio
import json
import logging
import subprocess
import sys
import traceback
from typing import Any

import pytest

from agents_progress.client import Client, link, pace
from agents_progress.client.address import authorization
from agents_progress.errors import Refused, Unreachable, UsageError
from tests.feed_server import Asked, Handle, head, in_turn, row, serving

SECRET = "tok-5ecret"


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "FIRST_WAIT_S", 0.001)


def giving(value: object, status: int = 200, **headers: str) -> Handle:
    return lambda asked: asked.answer(status, value, **headers)


async def cut_off(asked: Asked) -> None:
    asked.cut()


async def draining(asked: Asked) -> None:
    await asked.refuse(503, "draining", headers={"retry-after": "0"})


# Starting.


async def test_a_start_sends_what_was_given_and_nothing_else() -> None:
    async with serving(giving(row(), 201)) as server, Client(server.url + "/prefix/") as client:
        assert (await client.start())["run_id"] == "run-1"
        await client.start(
            "total", {"question": "2+3?"}, task_id="t", labels={"a": "b"}, title="Sum", idempotency_key="k1"
        )
    bare, whole = server.asked
    assert (bare.method, bare.path, json.loads(bare.body)) == ("POST", "/prefix/runs", {"arguments": {}})
    assert bare.headers["content-type"] == "application/json"
    assert json.loads(whole.body) == {
        "function": "total",
        "arguments": {"question": "2+3?"},
        "task_id": "t",
        "labels": {"a": "b"},
        "title": "Sum",
    }
    assert whole.headers["idempotency-key"] == "k1"


@pytest.mark.parametrize("first", [cut_off, draining], ids=["the answer was lost", "refused for now"])
async def test_a_start_is_repeated_under_one_key_and_two_starts_never_share_one(first: Handle) -> None:
    async with serving(in_turn(first, first, giving(row(), 201))) as server, Client(server.url) as client:
        await client.start()
        await client.start()
    keys = [asked.headers["idempotency-key"] for asked in server.asked]
    assert keys[0] == keys[1] == keys[2] != keys[3] and len(keys) == 4


async def test_a_start_that_the_application_failed_is_not_repeated() -> None:
    failing = in_turn(lambda asked: asked.refuse(502, "start_failed"))
    async with serving(failing) as server, Client(server.url) as client:
        with pytest.raises(Refused, match="start_failed"):
            await client.start()
    assert len(server.asked) == 1


@pytest.mark.parametrize("key", ["", "two words", "a\r\nX-Evil: 1", "é"])
async def test_a_key_that_no_header_carries_is_refused_before_anything_is_sent(key: str) -> None:
    async with serving(giving(row())) as server, Client(server.url) as client:
        with pytest.raises(UsageError, match="visible ASCII"):
            await client.start(idempotency_key=key)
        assert server.asked == []


# Asking.


async def test_runs_are_filtered_by_what_was_given() -> None:
    async with serving(giving({"runs": [row(), row(run_id="run-2")]})) as server, Client(server.url) as client:
        assert [found["run_id"] for found in await client.runs()] == ["run-1", "run-2"]
        await client.runs(status="done", task_id="t", labels={"room": "a b&c"}, before="run-9", limit=7)
    assert server.asked[0].query == {"limit": ["100"]}
    wanted = {"limit": ["7"], "status": ["done"], "task_id": ["t"], "before": ["run-9"], "label.room": ["a b&c"]}
    assert server.asked[1].query == wanted


async def test_a_run_is_told_with_its_open_call_and_without_what_a_newer_server_adds() -> None:
    call = {"call_id": "c1", "name": "look", "title": "Look", "for_s": 3.5}
    cost = {"amount": "0.0123", "currency": "USD", "at_least": False}
    known = row(open_call=call, activity="Look", usage={"requests": 1}, cost=cost)
    async with serving(giving({**known, "brand_new": 1})) as server, Client(server.url) as client:
        assert await client.run("run-1") == known


@pytest.mark.parametrize("cost", [{"amount": 0.1, "currency": "USD", "at_least": False}, {"amount": "1"}, "0.1 USD"])
async def test_a_cost_of_another_form_is_refused(cost: Any) -> None:
    async with serving(giving(row(cost=cost))) as server, Client(server.url) as client:
        with pytest.raises(Refused, match="cost"):
            await client.run("run-1")


@pytest.mark.parametrize(
    "answer", [{}, row(status="success"), row(seq="1"), [], None], ids=lambda value: str(value)[:12]
)
async def test_an_answer_of_another_form_is_refused_and_not_guessed_at(answer: Any) -> None:
    async with serving(giving(answer)) as server, Client(server.url) as client:
        for asking in (client.run("run-1"), client.start(), client.runs()):
            with pytest.raises(Refused, match="unreadable|no_answer"):
                await asking


@pytest.mark.parametrize("answer", [{}, [], {"answer": 1}], ids=str)
async def test_a_decision_without_a_proper_answer_is_refused(answer: Any) -> None:
    async with serving(giving(answer, 202)) as server, Client(server.url) as client:
        with pytest.raises(Refused, match="unreadable|no_answer"):
            await client.cancel("run-1")


async def test_a_snapshot_is_given_as_the_server_gives_it() -> None:
    async with serving(giving({"version": 1, "seq": 4})) as server, Client(server.url) as client:
        assert await client.snapshot("run-1") == {"version": 1, "seq": 4}
    assert server.asked[0].path == "/runs/run-1/snapshot"


async def test_what_changes_nothing_is_asked_again() -> None:
    async with serving(in_turn(cut_off, draining, giving(row()))) as server, Client(server.url) as client:
        assert (await client.run("run-1"))["seq"] == 1
    assert len(server.asked) == 3


async def test_a_server_that_stays_away_is_told_by_its_last_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(link.Link.ask.__kwdefaults__, "patience", 0.02)
    for last, kind in ((draining, Refused), (cut_off, Unreachable)):
        async with serving(last) as server, Client(server.url) as client:
            with pytest.raises(kind):
                await client.run("run-1")
        assert len(server.asked) > 1


# Deciding.


async def test_a_cancel_and_an_answer_send_what_was_decided() -> None:
    answers = in_turn(
        giving({"answer": "accepted"}, 202),
        giving({"answer": "already_ended"}, 202),
        giving({"answer": "accepted", "continued_as": "run-1.2"}, 202),
        giving({"answer": "accepted", "continued_as": None}, 202),
    )
    async with serving(answers) as server, Client(server.url) as client:
        assert await client.cancel("run-1") == "accepted"
        assert await client.cancel("run-1", mode="after_turn") == "already_ended"
        assert await client.answer("run-1", "ask-1", "approve", digest="d1") == "run-1.2"
        assert await client.answer("run-1", "a/../b?c", "reject", reason="no") is None
    paths = [asked.path for asked in server.asked]
    assert paths == ["/runs/run-1/cancel"] * 2 + ["/runs/run-1/interactions/" + i for i in ("ask-1", "a%2F..%2Fb%3Fc")]
    assert [json.loads(asked.body) for asked in server.asked] == [
        {},
        {"mode": "after_turn"},
        {"decision": "approve", "digest": "d1"},
        {"decision": "reject", "reason": "no"},
    ]


@pytest.mark.parametrize("fault", [cut_off, draining], ids=["cut", "refused for now"])
async def test_a_cancel_and_an_answer_are_sent_once(fault: Handle) -> None:
    async with serving(fault) as server, Client(server.url) as client:
        with pytest.raises((Refused, Unreachable)) as first:
            await client.cancel("run-1")
        with pytest.raises((Refused, Unreachable)):
            await client.answer("run-1", "ask-1", "approve")
    assert len(server.asked) == 2
    assert isinstance(first.value, Refused) or "whether the request was carried out is not known" in str(first.value)


async def test_an_answer_that_came_second_is_told_whose_was_first() -> None:
    second = in_turn(lambda asked: asked.refuse(409, "already_answered", decision="rejected", actor="ada"))
    async with serving(second) as server, Client(server.url) as client:
        with pytest.raises(Refused) as refused:
            await client.answer("run-1", "ask-1", "approve")
    assert refused.value.code == "already_answered"
    assert refused.value.facts == {"decision": "rejected", "actor": "ada"}


async def test_the_text_of_a_refusal_is_foreign_and_shown_harmless_and_short() -> None:
    evil = "\x1b[2J" + "x" * 10_000
    async with serving(in_turn(lambda asked: asked.refuse(404, evil, evil))) as server, Client(server.url) as client:
        with pytest.raises(Refused) as refused:
            await client.run("run-1")
    assert str(refused.value).isprintable() and len(str(refused.value)) < 700


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[1]", b"\xff", b'{"error": 5}', b'{"error": {"code": 5}}', b"[" * 9999]
)
async def test_a_refusal_in_any_other_form_still_names_its_status(body: bytes) -> None:
    async def handle(asked: Asked) -> None:
        await asked.send(head(418, {"content-length": str(len(body))}) + body)

    async with serving(handle) as server, Client(server.url) as client:
        with pytest.raises(Refused, match="418"):
            await client.run("run-1")


# Addresses and tokens.


@pytest.mark.parametrize(
    "url",
    [
        "",
        "host",
        "ftp://host",
        "http://",
        "http://h:99999",
        "http://h:x",
        "http://[::1",
        "https://h/é",
        "http://h/a\nb",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError, match="no address of a server"):
        Client(url)


@pytest.mark.parametrize("url", [f"https://me:{SECRET}@h/", f"https://h/?token={SECRET}", f"https://h/#{SECRET}"])
def test_a_secret_in_an_address_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(UsageError, match="header of its own") as refused:
        Client(url)
    assert SECRET not in str(refused.value)


@pytest.mark.parametrize("token", ["", f"{SECRET}\n", f"a {SECRET}", f"é{SECRET}"])
def test_a_token_that_no_header_carries_is_refused_and_not_repeated(token: str) -> None:
    with pytest.raises(UsageError) as refused:
        Client("https://h", token=token)
    assert SECRET not in str(refused.value)


async def test_a_token_is_sent_in_a_header_and_seen_nowhere_else(caplog: pytest.LogCaptureFixture) -> None:
    told: list[str] = []
    answers = in_turn(giving({"runs": []}), cut_off, lambda asked: asked.refuse(401, "unauthenticated"))
    with caplog.at_level(logging.DEBUG):
        async with serving(answers) as server:
            async with Client(server.url, token=SECRET) as client:
                told.append(repr(client))
                await client.runs()
                for _ in range(2):
                    try:
                        await client.cancel("run-1")
                    except (Refused, Unreachable):
                        told.append(traceback.format_exc())
                try:
                    await anext(client.events("run-1"))
                except Refused:
                    told.append(traceback.format_exc())
    assert len(told) == 4
    assert [asked.headers["authorization"] for asked in server.asked] == [f"Bearer {SECRET}"] * 4
    assert all(SECRET not in f"{asked.path}{asked.query}" for asked in server.asked)
    assert SECRET not in caplog.text + "".join(told)


async def test_a_token_is_never_sent_on_to_another_address() -> None:
    async with serving(giving(row())) as other:

        async def elsewhere(asked: Asked) -> None:
            await asked.answer(307, None, location=f"{other.url}/runs/run-1")

        async with serving(elsewhere) as server, Client(server.url, token=SECRET) as client:
            with pytest.raises(Refused, match="sends elsewhere"):
                await client.run("run-1")
            with pytest.raises(Refused, match="sends elsewhere"):
                await anext(client.events("run-1"))
        assert other.asked == []


@pytest.mark.parametrize(
    ("url", "warned"),
    [
        ("http://example.org:80/x", True),
        ("http://10.0.0.1", True),
        ("http://localhost.example.org", True),
        ("https://example.org", False),
        ("http://localhost:8000", False),
        ("http://runs.localhost", False),
        ("http://127.8.9.1", False),
        ("http://[::1]:8000", False),
    ],
)
def test_a_token_that_travels_unencrypted_to_another_machine_is_warned_of(
    caplog: pytest.LogCaptureFixture, url: str, warned: bool
) -> None:
    authorization(url, SECRET)
    authorization(url, None)
    assert len(caplog.records) == warned
    assert SECRET not in caplog.text


def test_a_client_says_where_it_points() -> None:
    assert repr(Client("https://host/prefix/", token=SECRET)) == "Client('https://host/prefix')"


async def test_a_hundred_feeds_leave_room_for_a_request() -> None:
    everybody = asyncio.Event()

    async def handle(asked: Asked) -> None:
        if asked.path.endswith("events"):
            await asked.send(head(200, {"content-type": "text/event-stream"}), b": beat\n\n")
            await everybody.wait()
        else:
            everybody.set()
            await asked.answer(200, row())

    async with serving(handle) as server, Client(server.url) as client:
        feeds = [asyncio.ensure_future(anext(client.events("run-1"))) for _ in range(150)]
        while len(server.asked) < 150:
            await asyncio.sleep(0.01)
        assert (await client.run("run-1"))["run_id"] == "run-1"
        for feed in feeds:
            feed.cancel()
        await asyncio.gather(*feeds, return_exceptions=True)


@pytest.mark.parametrize(
    ("missing", "said"),
    [
        ([], "httpx2"),
        (["httpx2"], "httpx"),
        (["httpx", "httpx2"], "ClientExtraMissing pip install 'agents-progress[client]'"),
    ],
    ids=["both there", "only httpx", "neither"],
)
def test_the_client_uses_the_http_package_that_is_installed(missing: list[str], said: str) -> None:
    code = f"""
import sys
sys.modules.update(dict.fromkeys({missing}))
try:
    from agents_progress.client.link import httpx
    print(httpx.__name__)
except ImportError as error:
    print(type(error).__name__, str(error).rpartition("run: ")[2])
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=True)
    assert ran.stdout.strip() == said
