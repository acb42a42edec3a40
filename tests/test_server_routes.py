"""The routes over stored runs: what each shows, and what it answers to what it does not take."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from agents import Runner, RunResultStreaming, function_tool
from serving import (
    ADA,
    BOB,
    OPS,
    begun,
    by_token,
    caller,
    code,
    done,
    envelopes,
    feed,
    live,
    living,
    paused,
    scripted,
    service_of,
    write,
)
from starlette.applications import Starlette

from agents_progress import current_run, progress
from agents_progress.errors import UsageError
from agents_progress.journal import MemoryJournal
from agents_progress.server import Limits, runs_app
from agents_progress.testing import call, text, turn
from agents_progress.testing.contract.logs import Log
from agents_progress.view import RunView


@pytest.fixture
def app(journal: MemoryJournal) -> Starlette:
    return runs_app(journal, by_token, limits=Limits(answer_s=0.05))


@pytest.fixture
async def ada(app: Starlette) -> AsyncIterator[httpx.AsyncClient]:
    async with caller(app) as client:
        yield client


# What is shown.


async def test_a_run_is_shown_with_its_status_its_sentence_and_its_silence(
    journal: MemoryJournal, ada: httpx.AsyncClient
) -> None:
    await write(journal, done("r1"), conversation="c9")
    shown = (await ada.get("/runs/r1")).json()
    assert shown.pop("last_event_age") >= 0
    assert shown == {
        "run_id": "r1",
        "task_id": "r1",
        "title": None,
        "status": "done",
        "message": "Done: the run ended and the check passed",
        "seq": 4,
        "started_at": "2026-10-07T08:00:01Z",
        "updated_at": "2026-10-07T08:00:04Z",
        "labels": {"conversation": "c9"},
        "sealed": True,
        "continued_as": None,
        "activity": None,
        "usage": None,
        "cost": None,
        "open_call": None,
    }


async def test_a_live_run_says_which_call_it_has_been_working_on_and_for_how_long(
    journal: MemoryJournal, ada: httpx.AsyncClient
) -> None:
    log = live("r1").request("c2", name="pack", title="Pack the parcel")
    log.say("tool.requested", call_id="c3", name="weigh", kind="function")
    await write(journal, log, sealed=False)
    shown = (await ada.get("/runs/r1")).json()
    call = shown["open_call"]
    assert (call["call_id"], call["name"], shown["status"], shown["sealed"]) == ("c1", "look", "running", False)
    assert call["for_s"] >= 2  # by the owner's clock from its start to the newest event, by the store's from then on
    log.say("tool.finished", call_id="c1")
    await journal.append(log.envelopes)
    assert (await ada.get("/runs/r1")).json()["open_call"] | {"for_s": 0} == {
        "call_id": "c2",
        "name": "pack",
        "title": "Pack the parcel",
        "for_s": 0,
    }


async def test_a_paused_run_names_the_newest_run_of_its_task(journal: MemoryJournal, ada: httpx.AsyncClient) -> None:
    await write(journal, paused("r1"))
    assert (await ada.get("/runs/r1")).json()["continued_as"] is None
    await write(journal, Log("r1.2").start(resumed_from="r1", task_id="r1").end())
    assert (await ada.get("/runs/r1")).json()["continued_as"] == "r1.2"
    assert (await ada.get("/runs/r1.2")).json()["continued_as"] is None
    listed = {run["run_id"]: run["continued_as"] for run in (await ada.get("/runs?status=waiting")).json()["runs"]}
    assert listed == {"r1": "r1.2"}


async def test_a_list_is_filtered_by_status_task_and_labels(journal: MemoryJournal, ada: httpx.AsyncClient) -> None:
    await write(journal, done("r1"), conversation="c 9", **{"a.b": "1"})
    await write(journal, live("r2"), sealed=False, conversation="c8")
    await write(journal, Log("r3").start(task_id="task-3").end("failed"))

    async def ids(query: str) -> list[str]:
        return [run["run_id"] for run in (await ada.get(f"/runs{query}")).json()["runs"]]

    assert await ids("") == ["r3", "r2", "r1"]
    assert await ids("?limit=2") == ["r3", "r2"]
    assert await ids("?status=running") == ["r2"]
    assert await ids("?task_id=task-3") == ["r3"]
    assert await ids("?label.conversation=c%209&label.a.b=1") == ["r1"]
    assert await ids("?label.conversation=c8&status=done") == []


async def test_a_list_goes_on_after_a_run_that_its_caller_may_see(
    app: Starlette, journal: MemoryJournal, ada: httpx.AsyncClient
) -> None:
    for run_id in ("r1", "r2", "r3"):
        await write(journal, done(run_id))
    pages = [(await ada.get(f"/runs?limit=2{after}")).json()["runs"] for after in ("", "&before=r2", "&before=r1")]
    assert [[run["run_id"] for run in page] for page in pages] == [["r3", "r2"], ["r1"], []]
    await write(journal, done("gone"))
    await journal.erase(run_id="gone")
    refused = {before: await ada.get(f"/runs?before={before}") for before in ("never", "gone")}
    async with caller(app, "bob") as bob:
        refused["r2"] = await bob.get("/runs?before=r2")
    assert {answer.content for answer in refused.values()} == {refused["never"].content}
    assert {(answer.status_code, code(answer)) for answer in refused.values()} == {(400, "bad_query")}


async def test_a_list_says_whether_there_are_older_runs_of_what_was_asked(
    journal: MemoryJournal, ada: httpx.AsyncClient
) -> None:
    for run_id in ("r1", "r2", "r3"):
        await write(journal, done(run_id))
    await write(journal, live("r4"), sealed=False)
    await write(journal, live("b0"), BOB, sealed=False)
    for query, listed, older in (
        ("", ["r4", "r3", "r2", "r1"], False),
        ("?limit=4", ["r4", "r3", "r2", "r1"], False),
        ("?limit=3", ["r4", "r3", "r2"], True),
        ("?limit=2&before=r3", ["r2", "r1"], False),
        ("?limit=1&before=r3", ["r2"], True),
        ("?limit=1&status=running", ["r4"], False),
        ("?before=r1", [], False),
    ):
        found = (await ada.get(f"/runs{query}")).json()
        assert ([row["run_id"] for row in found["runs"]], found["older"]) == (listed, older), query


async def test_a_row_shows_what_is_worked_on_and_what_it_cost(journal: MemoryJournal, ada: httpx.AsyncClient) -> None:
    counts = {
        "requests": 1,
        **dict.fromkeys(("input_tokens", "output_tokens", "total_tokens"), 5),
        "status": "reported",
    }
    cost = {"amount": "0.0123", "currency": "USD", "at_least": True}
    log = begun("r1").request("c1", title="Look up").say("usage.updated", **counts, x={"cost": cost})
    await write(journal, log, sealed=False)
    (listed,) = (await ada.get("/runs")).json()["runs"]
    alone = (await ada.get("/runs/r1")).json()
    for row in (listed, alone):
        assert (row["activity"], row["usage"], row["cost"]) == ("Look up", counts, cost)


async def test_a_list_of_paused_runs_asks_the_journal_once_for_what_continues_them(
    journal: MemoryJournal, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        await write(journal, paused(f"r{number}"))
        await write(journal, Log(f"r{number}.2").start(resumed_from=f"r{number}", task_id=f"r{number}").end("failed"))
    asked: list[str] = []
    for name in ("runs", "newest", "run"):
        whole = getattr(journal, name)

        async def told(*given: Any, name: str = name, whole: Any = whole, **more: Any) -> Any:
            asked.append(name)
            return await whole(*given, **more)

        monkeypatch.setattr(journal, name, told)
    rows = (await ada.get("/runs?status=waiting")).json()["runs"]
    assert [row["continued_as"] for row in rows] == [f"r{number}.2" for number in reversed(range(20))]
    assert asked == ["runs", "newest"]


async def test_a_snapshot_is_the_view_of_everything_stored(journal: MemoryJournal, ada: httpx.AsyncClient) -> None:
    await write(journal, done("r1"))
    answer = await ada.get("/runs/r1/snapshot")
    view = RunView.from_snapshot(answer.json())
    assert (view.seq, view.status, view.text) == (4, "done", "hi")
    assert answer.headers["etag"] == '"4"'
    again = await ada.get("/runs/r1/snapshot", headers={"if-none-match": '"3", W/"4"'})
    assert (again.status_code, again.content) == (304, b"")


async def test_a_snapshot_goes_on_from_what_was_pruned(journal: MemoryJournal, ada: httpx.AsyncClient) -> None:
    before = RunView("r1")
    for envelope in done("r1").envelopes:
        before.feed(envelope)
    await write(journal, done("r1"))
    await journal.prune("r1", 3)
    assert (await ada.get("/runs/r1/snapshot")).json() == json.loads(json.dumps(before.snapshot()))


# Feeds.


async def test_a_feed_gives_every_envelope_with_its_number_and_then_ends(
    journal: MemoryJournal, ada: httpx.AsyncClient
) -> None:
    await write(journal, done("r1"))
    found = await feed(ada, "/runs/r1/events")
    assert [(frame.event, frame.id) for frame in found] == [("message", str(seq)) for seq in range(1, 5)]
    assert envelopes(found) == [envelope.to_dict() for envelope in done("r1").envelopes]


@pytest.mark.parametrize(("headers", "query"), [({"last-event-id": "2"}, ""), ({}, "?after_seq=2")])
async def test_a_feed_goes_on_after_a_cursor(
    journal: MemoryJournal, ada: httpx.AsyncClient, headers: dict[str, str], query: str
) -> None:
    await write(journal, done("r1"))
    assert [frame.id for frame in await feed(ada, f"/runs/r1/events{query}", headers=headers)] == ["3", "4"]


async def test_the_header_of_a_reconnection_comes_before_the_query_of_the_first_request(
    journal: MemoryJournal, ada: httpx.AsyncClient
) -> None:
    await write(journal, done("r1"))
    found = await feed(ada, "/runs/r1/events?after_seq=0", headers={"last-event-id": "3"})
    assert [frame.id for frame in found] == ["4"]


@pytest.mark.parametrize(
    ("headers", "query"),
    [({"last-event-id": "4"}, ""), ({}, "?after_seq=4"), ({"last-event-id": "4"}, "?snapshot=1")],
)
async def test_repl_5_a_cursor_at_the_end_of_a_closed_log_is_told_to_stop(
    journal: MemoryJournal, ada: httpx.AsyncClient, headers: dict[str, str], query: str
) -> None:
    await write(journal, done("r1"))
    answer = await ada.get(f"/runs/r1/events{query}", headers=headers)
    assert (answer.status_code, answer.content) == (204, b"")


async def test_a_feed_begins_with_the_stored_snapshot_and_goes_on_with_what_came_after_it(
    journal: MemoryJournal, ada: httpx.AsyncClient
) -> None:
    await write(journal, done("r1"))
    log = await journal.read("r1")
    stored = RunView("r1")
    for envelope in log[:2]:
        stored.feed(envelope)
    await journal.keep_snapshot("r1", stored.snapshot())
    first, *rest = await feed(ada, "/runs/r1/events?snapshot=1")
    assert (first.event, first.id) == ("snapshot", "2")
    view, whole = RunView.from_snapshot(json.loads(first.data)), RunView("r1")
    for frame in rest:
        view.feed(frame.data)
    for envelope in log:
        whole.feed(envelope)
    assert view.snapshot() == whole.snapshot()


async def test_a_feed_begins_with_a_snapshot_when_asked_and_when_the_cursor_expired(
    journal: MemoryJournal, ada: httpx.AsyncClient
) -> None:
    await write(journal, done("r1"))
    (asked,) = await feed(ada, "/runs/r1/events?snapshot=1")
    assert (asked.event, asked.id, json.loads(asked.data)["seq"]) == ("snapshot", "4", 4)
    await journal.prune("r1", 3)
    first, *rest = await feed(ada, "/runs/r1/events", headers={"last-event-id": "1"})
    assert (first.event, first.id, [frame.id for frame in rest]) == ("snapshot", "3", ["4"])
    view = RunView.from_snapshot(json.loads(first.data))
    for envelope in envelopes(rest):
        view.feed(envelope)
    assert (view.status, view.text, view.issues) == ("done", "hi", [])


async def test_net_1_no_proxy_is_invited_to_hold_a_feed_back(journal: MemoryJournal, ada: httpx.AsyncClient) -> None:
    await write(journal, done("r1"))
    headers = (await ada.get("/runs/r1/events")).headers
    assert headers["content-type"].partition(";")[0] == "text/event-stream"
    assert headers["cache-control"] == "no-store, no-transform"
    assert headers["x-accel-buffering"] == "no"
    assert "connection" not in headers


CURSORS = ["é-1", "流-1", "a\0b", "", "999999999999999999999", "-1", "NaN", "1.5", "+1", " 1", "1 ", "0x1", "١", "1,2"]


@pytest.mark.parametrize("cursor", CURSORS)
async def test_sse_7_a_cursor_that_is_no_number_is_refused_wherever_it_stands(
    journal: MemoryJournal, ada: httpx.AsyncClient, cursor: str
) -> None:
    await write(journal, done("r1"))
    for headers, query in (
        ({}, {"after_seq": cursor}),
        ({b"last-event-id": cursor.encode()}, {}),
        ({b"last-event-id": cursor.encode("utf-16-le")}, {}),
    ):
        answer = await ada.get("/runs/r1/events", params=query, headers=headers)
        assert (answer.status_code, code(answer)) == (400, "bad_cursor")


async def test_a_cursor_of_another_run_is_refused_with_the_head_of_this_one(
    journal: MemoryJournal, ada: httpx.AsyncClient
) -> None:
    await write(journal, done("r1"))
    answer = await ada.get("/runs/r1/events", headers={"last-event-id": "5"})
    assert (answer.status_code, code(answer), answer.json()["error"]["head"]) == (400, "cursor_ahead", 4)


async def test_sse_7_an_id_that_no_run_can_have_is_an_unknown_one(ada: httpx.AsyncClient) -> None:
    unknown = await ada.get("/runs/nobody")
    for run_id in ("é", "流", "a\0b", "%2e%2e", "a b", "x" * 65, "r1\n", "%ff", "*"):
        for rest in ("", "/events", "/snapshot"):
            answer = await ada.get(
                f"/runs/{run_id}{rest}" if "%" in run_id else httpx.URL("/").join(f"/runs/{quoted(run_id)}{rest}")
            )
            assert (answer.status_code, answer.content) == (404, unknown.content)


def quoted(text: str) -> str:
    return "".join(f"%{byte:02x}" for byte in text.encode())


# What is not taken.

REFUSED: list[tuple[str, str, int, str]] = [
    ("GET", "/runs?status=happy", 400, "bad_query"),
    ("GET", "/runs?limit=0", 400, "bad_query"),
    ("GET", "/runs?limit=201", 400, "bad_query"),
    ("GET", "/runs?limit=ten", 400, "bad_query"),
    ("GET", "/runs?limit=1&limit=2", 400, "bad_query"),
    ("GET", "/runs?task_id=a%20b", 400, "bad_query"),
    ("GET", "/runs?before=a%20b", 400, "bad_query"),
    ("GET", "/runs?before=never", 400, "bad_query"),
    ("GET", "/runs?before=r1&before=r1", 400, "bad_query"),
    ("GET", "/runs?label.a=%00", 400, "bad_query"),
    ("GET", "/runs?label.%0a=1", 400, "bad_query"),
    ("GET", "/runs?owner=bob", 400, "bad_query"),
    ("GET", "/runs?token=x", 400, "token_in_url"),
    ("GET", "/runs/r1?access_token=x", 400, "token_in_url"),
    ("GET", "/runs/r1?Token=", 400, "token_in_url"),
    ("GET", "/runs/r1/events?snapshot=yes", 400, "bad_query"),
    ("GET", "/runs/r1/events?after_seq=1&after_seq=1", 400, "bad_query"),
    ("GET", "/runs/r1?verbose=1", 400, "bad_query"),
    ("GET", "/runs/r1/snapshot?at=3", 400, "bad_query"),
    ("GET", "/runs/", 404, "no_such_path"),
    ("GET", "/runs/r1/", 404, "no_such_path"),
    ("GET", "/runs/r1/events/", 404, "no_such_path"),
    ("GET", "/runs/r1/nothing", 404, "no_such_path"),
    ("GET", "/tool-executions", 404, "no_such_path"),
    ("GET", "/runs/r1/cancel", 405, "method_not_allowed"),
    ("GET", "/runs/r1/interactions/ask-1", 405, "method_not_allowed"),
    ("HEAD", "/runs/r1/events", 405, "method_not_allowed"),
    ("PUT", "/runs/r1", 405, "method_not_allowed"),
    ("DELETE", "/runs/r1", 405, "method_not_allowed"),
    ("OPTIONS", "/runs", 405, "method_not_allowed"),
    ("OPTIONS", "/runs/r1/cancel", 405, "method_not_allowed"),
    ("PROPFIND", "/runs", 405, "method_not_allowed"),
    ("TRACE", "/livez", 405, "method_not_allowed"),
]


@pytest.mark.parametrize(("method", "path", "status", "why"), REFUSED)
async def test_what_is_not_taken_is_refused_with_a_code_and_a_sentence(
    journal: MemoryJournal, ada: httpx.AsyncClient, method: str, path: str, status: int, why: str
) -> None:
    await write(journal, done("r1"))
    answer = await ada.request(method, path)
    assert answer.status_code == status
    assert method == "HEAD" or code(answer) == why
    assert (answer.headers.get("allow") is not None) == (status == 405)


async def test_a_get_with_a_body_is_refused_unread(ada: httpx.AsyncClient) -> None:
    answer = await ada.request("GET", "/runs", content=b"{}")
    assert (answer.status_code, code(answer)) == (400, "bad_request")


# Who may.


async def test_there_is_no_app_without_somebody_who_decides_who_may(journal: MemoryJournal) -> None:
    for nobody in (None, "ada", True):
        with pytest.raises(UsageError, match="authorize="):
            runs_app(journal, nobody)  # type: ignore[arg-type]


ROUTES = [
    ("GET", "/runs"),
    ("POST", "/runs"),
    ("GET", "/runs/r1"),
    ("GET", "/runs/r1/events"),
    ("GET", "/runs/r1/snapshot"),
    ("POST", "/runs/r1/cancel"),
    ("POST", "/runs/r1/interactions/ask-1"),
    ("GET", f"/tool-executions/{'a' * 64}"),
]


@pytest.mark.parametrize(("method", "path"), ROUTES)
async def test_nobody_in_particular_gets_nothing(
    app: Starlette, journal: MemoryJournal, method: str, path: str
) -> None:
    await write(journal, paused("r1"))
    async with caller(app, None) as nobody:
        answer = await nobody.request(method, path, json={} if method == "POST" else None)
    assert (answer.status_code, code(answer), answer.headers["www-authenticate"]) == (401, "unauthenticated", "Bearer")


@pytest.mark.parametrize(("method", "path"), [route for route in ROUTES if "r1" in route[1]])
@pytest.mark.parametrize("name", ["bob", "eve"])
async def test_sec_2_the_run_of_another_does_not_exist_byte_for_byte(
    app: Starlette, journal: MemoryJournal, method: str, path: str, name: str
) -> None:
    await write(journal, paused("r1"))
    before = await journal.read("r1")
    body = {"decision": "approve"} if "ask-1" in path else {}
    async with caller(app, name) as other:
        foreign = await other.request(method, path, json=body if method == "POST" else None)
        unknown = await other.request(method, path.replace("r1", "r2"), json=body if method == "POST" else None)
    assert (foreign.status_code, code(foreign)) == (404, "not_found")
    assert (foreign.content, foreign.headers) == (unknown.content, unknown.headers)
    assert await journal.read("r1") == before
    assert await journal.requests(["r1"]) == []


async def test_a_list_shows_each_caller_their_own_and_an_operator_everything(
    app: Starlette, journal: MemoryJournal
) -> None:
    await write(journal, done("a1"), ADA)
    await write(journal, done("b1"), BOB)
    seen = {}
    for name in ("ada", "bob", "eve", "ops"):
        async with caller(app, name) as client:
            seen[name] = [run["run_id"] for run in (await client.get("/runs")).json()["runs"]]
    assert seen == {"ada": ["a1"], "bob": ["b1"], "eve": [], "ops": ["b1", "a1"]}


async def test_an_erased_run_is_an_unknown_one_for_an_operator_too(app: Starlette, journal: MemoryJournal) -> None:
    await write(journal, done("r1"))
    await journal.erase(run_id="r1")
    async with caller(app, "ops") as ops:
        for path in ("/runs/r1", "/runs/r1/events", "/runs/r1/snapshot"):
            answer = await ops.get(path)
            assert (answer.status_code, code(answer)) == (404, "not_found")


async def test_whoever_may_read_a_run_but_not_cancel_it_is_told_so_and_others_nothing(journal: MemoryJournal) -> None:
    def authorize(request: Any, action: str, run: Any) -> Any:
        principal = by_token(request, action, run)  # type: ignore[arg-type]
        return None if run is not None and (action == "cancel" or run.run_id == "secret") else principal

    app = runs_app(journal, authorize)
    await write(journal, live("r1"), sealed=False)
    await write(journal, live("secret"), sealed=False)
    async with caller(app) as ada:
        answers = {run_id: await ada.post(f"/runs/{run_id}/cancel", json={}) for run_id in ("r1", "secret", "nobody")}
        assert (await ada.get("/runs/secret")).content == answers["nobody"].content
    assert [answer.status_code for answer in answers.values()] == [403, 404, 404]
    assert answers["secret"].content == answers["nobody"].content
    assert await journal.requests(["r1", "secret"]) == []


async def test_an_authorize_that_fails_grants_nothing_and_says_nothing(
    journal: MemoryJournal, caplog: pytest.LogCaptureFixture
) -> None:
    async def raises(*asked: Any) -> Any:
        raise RuntimeError("password=hunter2")

    await write(journal, done("r1"))
    for authorize, status in ((raises, 503), (lambda *asked: "ada", 503), (lambda *asked: True, 503)):
        async with caller(runs_app(journal, authorize)) as client:  # type: ignore[arg-type]
            answer = await client.get("/runs/r1")
        assert (answer.status_code, code(answer)) == (status, "authorize_failed")
        assert int(answer.headers["retry-after"]) > 0
    assert "hunter2" not in caplog.text
    assert "RuntimeError" in caplog.text


async def test_a_permission_error_without_a_run_means_to_no_run_at_all(journal: MemoryJournal) -> None:
    def reads_only(request: Any, action: str, run: Any) -> Any:
        if action not in ("read", "list"):
            raise PermissionError
        return OPS

    await write(journal, live("r1"), sealed=False)
    async with caller(runs_app(journal, reads_only)) as client:
        assert (await client.get("/runs/r1")).status_code == 200
        for path in ("/runs", "/runs/r1/cancel", "/runs/nobody/cancel"):
            answer = await client.post(path, json={})
            assert (answer.status_code, code(answer)) == (403, "forbidden")


# The process.


async def test_the_probes_ask_nobody_who_they_are_and_tell_nothing(app: Starlette) -> None:
    async with caller(app, None) as nobody:
        live_answer, ready = await nobody.get("/livez"), await nobody.get("/readyz")
        assert (live_answer.status_code, live_answer.json()) == (200, {"live": True})
        assert (ready.status_code, ready.json()) == (200, {"ready": True})
        assert (await nobody.head("/readyz")).status_code == 200


async def test_a_service_without_its_journal_is_live_and_not_ready(app: Starlette, journal: MemoryJournal) -> None:
    await journal.close()
    async with caller(app) as ada:
        assert (await ada.get("/livez")).status_code == 200
        assert (await ada.get("/readyz")).status_code == 503
        answer = await ada.get("/runs")
        assert (answer.status_code, code(answer)) == (503, "unavailable")
        assert int(answer.headers["retry-after"]) > 0


async def test_every_answer_forbids_guessing_and_storing(journal: MemoryJournal, ada: httpx.AsyncClient) -> None:
    await write(journal, done("r1"))
    for path in ("/runs", "/runs/r1", "/runs/nobody", "/runs/r1/events", "/livez", "/nothing"):
        headers = (await ada.get(path)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "no-store" in headers["cache-control"]
        assert not [name for name in headers if name.startswith("access-control-")]


async def test_nothing_of_where_a_run_is_stored_is_shown(journal: MemoryJournal, ada: httpx.AsyncClient) -> None:
    await write(journal, done("r1"), **{"agents-progress.start": "d1g3st"})
    (row,) = await journal.runs()
    for path in ("/runs", "/runs/r1", "/runs/r1/snapshot", "/runs/r1/events"):
        said = (await ada.get(path)).text
        assert not [secret for secret in (row.origin.host, str(row.origin.pid), "north", "d1g3st") if secret in said]


async def test_a_fault_of_ours_is_answered_without_a_word_about_it(
    app: Starlette, ada: httpx.AsyncClient, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(*args: Any, **kwargs: Any) -> Any:
        raise ZeroDivisionError("the private value 42")

    monkeypatch.setattr(service_of(app).journal, "runs", broken)
    answer = await ada.get("/runs")
    assert (answer.status_code, code(answer)) == (500, "internal")
    assert "42" not in answer.text + caplog.text
    assert "ZeroDivisionError" in caplog.text


async def test_a_run_that_is_asked_for_again_and_again_is_folded_on_from_where_it_was_left(
    app: Starlette, journal: MemoryJournal, ada: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = live("r1")
    await write(journal, log, sealed=False)
    real, cursors = journal.read, list[int]()

    async def read(run_id: str, after_seq: int = 0, limit: int = 1000, **more: Any) -> Any:
        cursors.append(after_seq)
        return await real(run_id, after_seq, limit, **more)

    monkeypatch.setattr(journal, "read", read)
    await asyncio.gather(*(ada.get("/runs/r1") for _ in range(3)))
    log.say("tool.finished", call_id="c1")
    await journal.append(log.envelopes)
    assert (await ada.get("/runs/r1")).json()["open_call"] is None
    assert cursors == [0, 3, 3, 3]
    await journal.append(log.end().envelopes)
    await ada.get("/runs/r1")
    assert service_of(app).views._kept == {}


async def test_so_many_live_views_are_kept_and_no_more(
    app: Starlette, journal: MemoryJournal, ada: httpx.AsyncClient
) -> None:
    for number in range(70):
        await write(journal, live(f"r{number}"), sealed=False)
        await ada.get(f"/runs/r{number}")
    assert list(service_of(app).views._kept) == [f"r{number}" for number in range(6, 70)]


async def test_what_a_tool_says_of_itself_is_json_whatever_it_says(journal: MemoryJournal) -> None:
    @function_tool
    def measure() -> str:
        current_run().report("a\ud800b", current=float("nan"), total=float("inf"))
        with current_run().stage("\udfff"):
            return "ok"

    @progress
    def work() -> RunResultStreaming:
        return Runner.run_streamed(
            scripted(turn(call("measure", {}, call_id="c1")), turn(text(".")), tools=[measure]), "go"
        )

    app = runs_app(journal, by_token, functions=[work])
    async with living(app), caller(app) as ada:
        path = (await ada.post("/runs", json={})).headers["location"]
        said = envelopes(await feed(ada, f"{path}/events"))
        assert (await ada.get(f"{path}/snapshot")).status_code == 200
    (progressed,) = (each["payload"] for each in said if each["type"] == "tool.progress")
    assert progressed == {"call_id": "c1", "message": "a\ufffdb", "current": None, "total": None}
    assert [each["payload"]["title"] for each in said if each["type"].startswith("stage.")] == ["\ufffd"] * 2
