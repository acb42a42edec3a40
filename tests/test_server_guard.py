"""What stands before every route: hosts, origins, bodies, and what a proxy says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from serving import JSON, by_token, caller, code, listening, live, write
from starlette.applications import Starlette

from agents_progress.journal import MemoryJournal
from agents_progress.server import Limits, runs_app


@pytest.fixture
async def app(journal: MemoryJournal) -> Starlette:
    await write(journal, live("r1"), sealed=False)
    return runs_app(journal, by_token, limits=Limits(body_bytes=1000, body_s=0.3))


@pytest.fixture
async def ada(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    async with caller(app) as client:
        yield client


async def cancelled(journal: MemoryJournal) -> bool:
    return bool(await journal.requests(["r1"]))


# Other sites.

FROM_ELSEWHERE: list[tuple[dict[str, str], int]] = [
    ({}, 202),
    ({"origin": "http://runs.test"}, 202),
    ({"origin": "https://runs.test"}, 202),  # a proxy ended TLS
    ({"origin": "HTTP://RUNS.test:80"}, 202),
    ({"origin": "http://pages.test"}, 202),  # listed
    ({"sec-fetch-site": "same-origin"}, 202),
    ({"sec-fetch-site": "none"}, 202),
    ({"origin": "http://evil.test"}, 403),
    ({"origin": "http://runs.test.evil.test"}, 403),
    ({"origin": "http://runs.test:8080"}, 403),
    ({"origin": "https://runs.test:80"}, 403),
    ({"origin": "http://pages.test:81"}, 403),
    ({"origin": "null"}, 403),
    ({"origin": ""}, 403),
    ({"origin": "runs.test"}, 403),
    ({"origin": "file://runs.test"}, 403),
    ({"sec-fetch-site": "cross-site"}, 403),
    ({"sec-fetch-site": "same-site"}, 403),
    ({"sec-fetch-site": "cross-site", "origin": "http://runs.test"}, 403),
]


@pytest.mark.parametrize(("headers", "status"), FROM_ELSEWHERE)
async def test_a_page_of_another_site_changes_nothing(
    journal: MemoryJournal, headers: dict[str, str], status: int
) -> None:
    await write(journal, live("r1"), sealed=False)
    app = runs_app(journal, by_token, origins=["http://pages.test"])
    async with caller(app) as ada:
        answer = await ada.post("/runs/r1/cancel", json={}, headers=headers)
    assert answer.status_code == status, answer.text
    assert status == 202 or code(answer) == "cross_origin"
    assert await cancelled(journal) is (status == 202)


async def test_two_origins_are_refused(ada: httpx.AsyncClient) -> None:
    headers = httpx.Headers([("origin", "http://runs.test"), ("origin", "http://runs.test")])
    assert code(await ada.post("/runs/r1/cancel", json={}, headers=headers)) == "cross_origin"


async def test_a_preflight_of_another_site_allows_nothing(ada: httpx.AsyncClient) -> None:
    asked = {"origin": "http://evil.test", "access-control-request-method": "POST"}
    answer = await ada.options("/runs", headers=asked)
    assert answer.status_code == 405
    assert not [name for name in answer.headers if name.startswith("access-control-")]


NOT_JSON = [
    "text/plain",
    "",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
    "application/jsonp",
]
NOT_JSON += ["application/json; charset=utf-16", "application/json; charset=utf-8; x=y", "application/json, text/plain"]


@pytest.mark.parametrize("kind", NOT_JSON)
async def test_a_body_that_a_form_could_send_is_refused(
    ada: httpx.AsyncClient, journal: MemoryJournal, kind: str
) -> None:
    answer = await ada.post("/runs/r1/cancel", content=b"{}", headers={"content-type": kind})
    assert (answer.status_code, code(answer)) == (415, "not_json")
    assert not await cancelled(journal)


@pytest.mark.parametrize(
    "kind", ["application/json", "Application/JSON; charset=UTF-8", 'application/json;charset="utf-8"']
)
async def test_json_in_utf_8_is_taken_however_it_is_named(ada: httpx.AsyncClient, kind: str) -> None:
    answer = await ada.post("/runs/r1/cancel", content=b"{}", headers={"content-type": kind})
    assert answer.status_code == 202


async def test_two_kinds_or_a_compressed_body_are_refused(ada: httpx.AsyncClient) -> None:
    twice = httpx.Headers([("content-type", "application/json"), ("content-type", "text/plain")])
    for headers in (twice, {**JSON, "content-encoding": "gzip"}, {}):
        assert code(await ada.post("/runs/r1/cancel", content=b"{}", headers=headers)) == "not_json"


# Hosts and proxies.


@pytest.mark.parametrize(
    ("host", "answered"),
    [
        ("runs.test", True),
        ("RUNS.test", True),
        ("runs.test:8443", True),
        ("named.test:81", True),
        ("[::1]:9", True),
        ("named.test", False),
        ("named.test:82", False),
        ("evil.test", False),
        ("evil.test:runs.test", False),
        ("runs.test.evil.test", False),
        ("runs.test@evil.test", False),
        ("[", False),
        ("", False),
    ],
)
async def test_only_its_own_names_are_answered(journal: MemoryJournal, host: str, answered: bool) -> None:
    app = runs_app(journal, by_token, hosts=["runs.test", "Named.test:81", "[::1]"])
    async with caller(app) as ada:
        answer = await ada.get("/runs", headers={"host": host})
    assert answer.status_code == (200 if answered else 421)
    assert answered or code(answer) == "wrong_host"


async def test_two_host_names_are_none(journal: MemoryJournal) -> None:
    headers = httpx.Headers([("host", "runs.test"), ("host", "runs.test")])
    async with caller(runs_app(journal, by_token)) as ada:
        assert code(await ada.get("/runs", headers=headers)) == "wrong_host"


@pytest.mark.parametrize("name", ["forwarded", "x-forwarded-for", "X-Forwarded-Host", "x-forwarded-proto", "x-real-ip"])
async def test_a_service_that_is_reached_directly_takes_nothing_that_was_forwarded(
    journal: MemoryJournal, name: str
) -> None:
    async with caller(runs_app(journal, by_token, direct=True)) as ada:
        answer = await ada.get("/runs", headers={name: "for=127.0.0.1"})
    assert (answer.status_code, code(answer)) == (400, "forwarded")
    async with caller(runs_app(journal, by_token)) as ada:
        assert (await ada.get("/runs", headers={name: "for=127.0.0.1"})).status_code == 200


# Bodies.

BAD_JSON = [
    b"",
    b" ",
    b"null",
    b"[]",
    b"1",
    b'"x"',
    b"{",
    b"{}{}",
    b"{'a': 1}",
    b'{"a": NaN}',
    b'{"a": Infinity}',
    b'{"a": 1e999}',
    b'{"mode": "immediate", "mode": "after_turn"}',
    b'{"a": {"b": 1, "b": 2}}',
    b'{"a": "\\ud800"}',
    b'{"\\udfff": 1}',
    b'{"a": "\xff"}',
    b'{"a": "\xed\xa0\x80"}',
    b"\xef\xbb\xbf{}",
    "{}".encode("utf-16"),
    b'{"a": ' + b"[" * 40 + b"]" * 40 + b"}",
    b"[" * 900,
    b'{"a":' * 180,
    b'{"a": "\n"}',
    b"{} // no",
]


@pytest.mark.parametrize("body", BAD_JSON)
async def test_a_body_that_is_not_one_strict_json_object_is_refused(
    ada: httpx.AsyncClient, journal: MemoryJournal, body: bytes
) -> None:
    for path in ("/runs", "/runs/r1/cancel", "/runs/r1/interactions/ask-1"):
        answer = await ada.post(path, content=body, headers=JSON)
        assert (answer.status_code, code(answer)) == (400, "bad_json")
    assert not await cancelled(journal)


@pytest.mark.parametrize("body", [{"mode": "now"}, {"mode": None}, {"actor": "bob"}, {"mode": ["immediate"]}, {"": 1}])
async def test_a_field_that_no_cancel_has_is_refused_by_name(ada: httpx.AsyncClient, body: Any) -> None:
    answer = await ada.post("/runs/r1/cancel", json=body)
    assert (answer.status_code, code(answer)) == (422, "bad_fields")


async def test_a_number_with_too_many_digits_to_read_is_no_fault_of_ours(journal: MemoryJournal) -> None:
    await write(journal, live("r1"), sealed=False)
    async with caller(runs_app(journal, by_token)) as ada:
        answer = await ada.post("/runs/r1/cancel", content=b'{"a": ' + b"9" * 5000 + b"}", headers=JSON)
    assert answer.status_code in (400, 422)


async def parts(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


async def test_a_body_over_the_cap_is_refused_whether_or_not_it_says_its_length(ada: httpx.AsyncClient) -> None:
    large = json.dumps({"a": "x" * 1000}).encode()
    for content in (large, parts(*(large[place : place + 100] for place in range(0, len(large), 100)))):
        answer = await ada.post("/runs/r1/cancel", content=content, headers=JSON)
        assert (answer.status_code, code(answer)) == (413, "body_too_large")


async def test_a_body_of_just_the_cap_is_taken(ada: httpx.AsyncClient) -> None:
    body = b"{}" + b" " * 998
    assert (await ada.post("/runs/r1/cancel", content=body, headers=JSON)).status_code == 202
    assert (await ada.post("/runs/r1/cancel", content=body + b" ", headers=JSON)).status_code == 413


# Over a real connection.


async def raw(url: str, request: bytes, *, until_closed: bool = True) -> bytes:
    """What a server answers to these bytes, until it hangs up."""
    host, port = url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(request)
    async with asyncio.timeout(10):
        answer = await (reader.read() if until_closed else reader.readuntil(b"\r\n\r\n"))
    writer.close()
    return answer


def post(path: str, rest: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nhost: runs.test\r\nauthorization: Bearer ada\r\ncontent-type: application/json\r\n"
    return (head + rest).encode("latin-1")


async def test_a_body_that_does_not_arrive_is_not_waited_for(app: Starlette, journal: MemoryJournal) -> None:
    async with listening(app) as url:
        answer = await raw(url, post("/runs/r1/cancel", "content-length: 10\r\n\r\n{"))
        assert answer.startswith(b"HTTP/1.1 408 ")
        assert b'"slow_body"' in answer
        answer = await raw(url, post("/runs/r1/cancel", "transfer-encoding: chunked\r\n\r\n1\r\n{\r\n"))
        assert answer.startswith(b"HTTP/1.1 408 ")
    assert not await cancelled(journal)


async def test_an_endless_body_is_cut_off(app: Starlette) -> None:
    async with listening(app) as url:
        answer = await raw(
            url, post("/runs/r1/cancel", "transfer-encoding: chunked\r\n\r\n") + b"7d0\r\n" + b" " * 2000
        )
        assert answer.startswith(b"HTTP/1.1 413 ")
        answer = await raw(url, post("/runs/r1/cancel", "content-length: 99999999999\r\n\r\n"))
        assert answer.startswith(b"HTTP/1.1 413 ")


async def test_a_caller_who_hangs_up_in_the_middle_of_a_body_is_forgotten(
    app: Starlette, journal: MemoryJournal, caplog: pytest.LogCaptureFixture
) -> None:
    async with listening(app) as url:
        host, port = url.removeprefix("http://").split(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(post("/runs/r1/cancel", "content-length: 10\r\n\r\n{"))
        await writer.drain()
        writer.close()
        await writer.wait_closed()
        assert (await raw(url, b"GET /livez HTTP/1.0\r\n\r\n")).startswith(b"HTTP/1.1 200 ")
    assert not await cancelled(journal)
    assert not caplog.records


async def test_a_web_socket_is_turned_away(app: Starlette) -> None:
    upgrade = b"upgrade: websocket\r\nconnection: upgrade\r\nsec-websocket-version: 13\r\n"
    upgrade += b"sec-websocket-key: eHh4eHh4eHh4eHh4eHh4eA==\r\n\r\n"
    async with listening(app) as url:
        answer = await raw(url, b"GET /runs HTTP/1.1\r\nhost: runs.test\r\n" + upgrade, until_closed=False)
    assert answer.startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET /runs/%ff%fe HTTP/1.1",
        b"GET /runs/r1%00 HTTP/1.1",
        b"GET //runs HTTP/1.1",
        b"GET http://evil.test/runs HTTP/1.1",
        b"GET /runs/../runs/r1 HTTP/1.1",
        b"GET /runs/%2e%2e%2flivez HTTP/1.1",
        b"OPTIONS * HTTP/1.1",
        b"G\xc3\xa4T /runs HTTP/1.1",
        b"GET /runs/\xe6\xb5\x81 HTTP/1.1",
        b"GET /runs?limit=\xff HTTP/1.1",
        b"GET /runs?%ff=%fe HTTP/1.1",
        b"GET " + b"/runs" * 2000 + b" HTTP/1.1",
    ],
)
async def test_odd_paths_are_never_a_fault(
    app: Starlette, request_line: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    async with listening(app) as url:
        head = b"\r\nhost: runs.test\r\nauthorization: Bearer ada\r\nconnection: close\r\n\r\n"
        status = int((await raw(url, request_line + head)).split(b" ")[1])
    assert status < 500
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
