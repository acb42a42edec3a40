"""Two nodes on one store: start on one, watch, cancel and approve on the other; one key is one run."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

import httpx
import pytest
from agents import Runner, RunResultStreaming, function_tool
from serving import by_token, caller, code, envelopes, feed, living, runs_app, scripted
from staging import stored

from agents_progress import progress
from agents_progress.journal import Journal, open_journal
from agents_progress.testing import call, text, turn, wait

POSTGRES = os.environ.get("AGENTS_PROGRESS_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/test")
REDIS = os.environ.get("AGENTS_PROGRESS_TEST_REDIS", "redis://127.0.0.1:6379/9")

Opening = Callable[[], Journal]


@pytest.fixture
def sqlite(tmp_path: Path) -> Opening:
    return lambda: open_journal(f"sqlite:///{tmp_path}/runs.db")


@pytest.fixture
def postgres() -> Iterator[Opening]:
    psycopg = pytest.importorskip("psycopg", reason="the postgres extra is not installed")
    try:
        admin = psycopg.connect(POSTGRES, connect_timeout=3, autocommit=True)
    except psycopg.OperationalError as error:
        pytest.skip(f"no PostgreSQL server answers: {error}")
    schema = f"nodes_{secrets.token_hex(6)}"
    admin.execute(f"CREATE SCHEMA {schema}")
    joint = "&" if "?" in POSTGRES else "?"
    yield lambda: open_journal(f"{POSTGRES}{joint}options={quote(f'-csearch_path={schema}')}")
    admin.execute("SET client_min_messages TO warning")
    admin.execute(f"DROP SCHEMA {schema} CASCADE")
    admin.close()


@pytest.fixture
def redis() -> Iterator[Opening]:
    driver = pytest.importorskip("redis", reason="the redis extra is not installed")
    from agents_progress.journal.redis import RedisJournal

    client, prefix = driver.Redis.from_url(REDIS), f"nodes-{secrets.token_hex(6)}"
    try:
        client.ping()
    except driver.ConnectionError:
        pytest.skip(f"no Redis server answers at {REDIS.rpartition('@')[2]}")
    yield lambda: RedisJournal(REDIS, prefix=prefix)
    for key in client.scan_iter(f"{prefix}:*", count=1000):
        client.delete(key)
    client.close()


class Nodes:
    """Ada at two nodes, each with a connection of its own to one store, and Bob at the second."""

    def __init__(
        self, first: httpx.AsyncClient, second: httpx.AsyncClient, bob: httpx.AsyncClient, journal: Journal
    ) -> None:
        self.first = first
        self.second = second
        self.bob = bob
        self.journal = journal
        """As neither of them has it."""


@function_tool(needs_approval=True)
def danger(what: str) -> str:
    return f"did {what}"


@progress
def work(how: Literal["hold", "ask", "end"] = "end") -> RunResultStreaming:
    turns = {
        "hold": (turn(text("so far"), wait(asyncio.Event())),),
        "ask": (turn(call("danger", {"what": "x"}, call_id="c1")), turn(text("ok"))),
        "end": (turn(text("ok")),),
    }
    return Runner.run_streamed(scripted(*turns[how], tools=[danger]), "go")


@pytest.fixture(params=["sqlite", "postgres", "redis"])
async def nodes(request: pytest.FixtureRequest) -> AsyncIterator[Nodes]:
    opening: Opening = request.getfixturevalue(request.param)
    journals = [opening() for _ in range(3)]
    async with AsyncExitStack() as stack:
        for journal in journals:
            stack.push_async_callback(journal.close)
        apps = [runs_app(journal, by_token, functions=[work], drain_s=0.1) for journal in journals[:2]]
        for app in apps:
            await stack.enter_async_context(living(app))
        people = [caller(apps[0]), caller(apps[1]), caller(apps[1], "bob")]
        yield Nodes(*[await stack.enter_async_context(person) for person in people], journals[2])


async def started(node: httpx.AsyncClient, how: str, **headers: str) -> str:
    answer = await node.post("/runs", json={"arguments": {"how": how}}, headers=headers)
    assert answer.status_code in (200, 201), answer.text
    return str(answer.json()["run_id"])


async def test_a_run_is_watched_and_cancelled_on_another_node(nodes: Nodes) -> None:
    run_id = await started(nodes.first, "hold")
    assert (await nodes.second.get(f"/runs/{run_id}")).json()["status"] == "running"
    watching = asyncio.create_task(feed(nodes.second, f"/runs/{run_id}/events"))
    assert (await nodes.second.post(f"/runs/{run_id}/cancel", json={})).json() == {"answer": "accepted"}
    found = envelopes(await watching)
    assert [each["seq"] for each in found] == list(range(1, len(found) + 1))
    assert (found[-1]["payload"]["outcome"], found[-1]["payload"]["requested_by"]) == ("cancelled", "ada")
    at_the_end = {"last-event-id": str(len(found))}
    assert (await nodes.first.get(f"/runs/{run_id}/events", headers=at_the_end)).status_code == 204


async def test_a_pause_is_answered_on_another_node_and_goes_on_at_its_owner(nodes: Nodes) -> None:
    run_id = await started(nodes.first, "ask")
    found = envelopes(await feed(nodes.second, f"/runs/{run_id}/events"))
    (digest,) = (each["payload"]["digest"] for each in found if each["type"] == "approval.wait")
    body = {"decision": "approve", "digest": digest, "reason": "逐条核对 ✓"}
    answers = await asyncio.gather(
        *(node.post(f"/runs/{run_id}/interactions/ask-1", json=body) for node in (nodes.first, nodes.second) * 5)
    )
    assert sorted(answer.status_code for answer in answers) == [202] + [409] * 9
    (won,) = (answer.json() for answer in answers if answer.status_code == 202)
    assert won == {"answer": "accepted", "continued_as": f"{run_id}.2"}
    await feed(nodes.second, f"/runs/{run_id}.2/events")
    assert (await stored(nodes.journal, f"{run_id}.2")).ending["final_output"] == "ok"


async def test_one_key_on_two_nodes_is_one_run(nodes: Nodes) -> None:
    key = {"idempotency-key": "k1"}
    ids = await asyncio.gather(*(started(node, "end", **key) for node in (nodes.first, nodes.second) * 5))
    assert len(set(ids)) == 1
    assert [row.run_id for row in await nodes.journal.runs()] == ids[:1]
    other = await nodes.second.post("/runs", json={"arguments": {"how": "ask"}}, headers=key)
    assert (other.status_code, code(other)) == (409, "key_reused")


async def test_sec_2_another_tenant_sees_and_changes_nothing_on_any_store(nodes: Nodes) -> None:
    run_id = await started(nodes.first, "end")
    await feed(nodes.first, f"/runs/{run_id}/events")
    before = await nodes.journal.read(run_id)
    unknown = await nodes.bob.get("/runs/nobody")
    requests: list[tuple[str, str, Any]] = [
        ("GET", "", None),
        ("GET", "/events", None),
        ("GET", "/snapshot", None),
        ("POST", "/cancel", {}),
        ("POST", "/interactions/ask-1", {"decision": "approve"}),
    ]
    for method, rest, body in requests:
        answer = await nodes.bob.request(method, f"/runs/{run_id}{rest}", json=body)
        assert (answer.status_code, answer.content) == (404, unknown.content)
    assert (await nodes.bob.get("/runs")).json()["runs"] == []
    assert await nodes.journal.read(run_id) == before
    assert await nodes.journal.requests([run_id]) == []


async def test_odd_labels_and_titles_are_kept_as_they_are(nodes: Nodes) -> None:
    labels = {"chat/1": "巡检 ✓ 'x' \"y\" \\ % {}", "a": "", "-.": "\u2028"}
    body = {"arguments": {}, "labels": labels, "title": "Ⅷ '; --", "task_id": "task-7"}
    run = (await nodes.first.post("/runs", json=body)).json()
    shown = (await nodes.second.get(f"/runs/{run['run_id']}")).json()
    assert (shown["labels"], shown["title"], shown["task_id"]) == (labels, "Ⅷ '; --", "task-7")
    query = {"label.chat/1": labels["chat/1"], "label.-.": "\u2028"}
    listed = (await nodes.second.get("/runs", params=query)).json()["runs"]
    assert [each["run_id"] for each in listed] == [run["run_id"]]
    assert (await nodes.second.get("/runs", params={**query, "label.a": "x"})).json()["runs"] == []
