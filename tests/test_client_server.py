"""The client and the server together: one starts, follows, decides and lists what the other keeps, over restarts."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra `server` is not installed")
pytest.importorskip("uvicorn", reason="the extra `server` is not installed")

from agents import Runner, RunResultStreaming, function_tool

from agents_progress import progress
from agents_progress.client import Client
from agents_progress.errors import CursorExpired, Refused, RunErased
from agents_progress.events import Envelope
from agents_progress.journal import MemoryJournal, open_journal
from agents_progress.server import runs_app
from agents_progress.testing import call, text, turn, wait
from agents_progress.view import RunView
from tests.commands import Command
from tests.feed_server import story, view_of
from tests.logs import Log
from tests.serving import by_token, listening, live, scripted, write
from tests.test_cli_tail import told


@function_tool(needs_approval=True)
def refund() -> str:
    return "refunded"


@asynccontextmanager
async def serving(journal: MemoryJournal, *turns: Any) -> AsyncIterator[Client]:
    """Ada's client of a server with one function."""

    @progress(verify=lambda answer: answer == "5 EUR")
    def total(question: str) -> RunResultStreaming:
        return Runner.run_streamed(scripted(*turns, tools=[refund]), question)

    async with listening(runs_app(journal, by_token, functions=[total])) as url, Client(url, token="ada") as client:
        yield client


async def test_a_run_is_started_followed_and_listed(journal: MemoryJournal) -> None:
    async with serving(journal, turn(text("5 ", "EUR"))) as client:
        run = await client.start("total", {"question": "2+3?"}, labels={"room": "7"}, idempotency_key="k")
        again = await client.start("total", {"question": "2+3?"}, labels={"room": "7"}, idempotency_key="k")
        views = [(view.status, view.text) async for view in client.follow(run["run_id"])]
        log = [envelope async for envelope in client.events(run["run_id"])]
        assert again["run_id"] == run["run_id"]
        assert views[-1] == ("done", "5 EUR")
        assert log == await journal.read(run["run_id"])
        assert (await client.run(run["run_id"]))["status"] == "done"
        assert [row["run_id"] for row in await client.runs(status="done", labels={"room": "7"})] == [run["run_id"]]
        assert await client.runs(status="running") == []
        assert RunView.from_snapshot(await client.snapshot(run["run_id"])).snapshot() == view_of(log).snapshot()


async def test_a_run_is_cancelled_where_it_is_followed(journal: MemoryJournal) -> None:
    async with serving(journal, turn(text("5 "), wait(asyncio.Event()), text("EUR"))) as client:
        run = await client.start(arguments={"question": "2+3?"})
        async for view in client.follow(run["run_id"]):
            if view.text and not view.standing.cancel_requested:
                assert await client.cancel(run["run_id"]) in ("accepted", "already_cancelling")
        assert view.status == "cancelled"
        assert view.terminal is not None and view.terminal["requested_by"] == "ada"
        assert await client.cancel(run["run_id"]) == "already_ended"


async def test_an_answer_lets_a_paused_run_go_on_and_a_second_one_is_told_the_first(journal: MemoryJournal) -> None:
    async with serving(journal, turn(call("refund", {})), turn(text("5 EUR"))) as client:
        run = await client.start(arguments={"question": "refund me"})
        seen: list[tuple[str, str]] = []
        async for view in client.follow(run["run_id"], continued=True):
            seen.append((view.run_id, view.status))
            if view.standing.outcome == "paused" and view.run_id == run["run_id"]:
                (question,) = view.interactions.values()
                with pytest.raises(Refused, match="digest_differs"):
                    await client.answer(run["run_id"], question.interaction_id, "approve", digest="0" * 64)
                later = await client.answer(
                    run["run_id"], question.interaction_id, "approve", digest=question.digest, reason="fair"
                )
                with pytest.raises(Refused, match="already_answered") as second:
                    await client.answer(run["run_id"], question.interaction_id, "reject", digest=question.digest)
                assert second.value.facts == {"decision": "approved", "actor": "ada"}
        assert seen[-1] == (f"{run['run_id']}.2", "done")
        assert later in (None, f"{run['run_id']}.2")
        assert (await client.run(run["run_id"]))["continued_as"] == f"{run['run_id']}.2"


async def test_a_live_run_says_what_it_works_on(journal: MemoryJournal) -> None:
    async with serving(journal) as client:
        await write(journal, live("run-1"), sealed=False)
        row = await client.run("run-1")
    assert row["open_call"] is not None and row["open_call"]["call_id"] == "c1"
    assert not row["sealed"] and row["last_event_age"] is not None


async def test_what_a_caller_may_not_see_is_not_there(journal: MemoryJournal) -> None:
    async with serving(journal) as client:
        await journal.append(story("run-1"))  # of nobody
        for asking in (client.run("run-1"), client.cancel("run-1"), anext(client.events("run-1"))):
            with pytest.raises(Refused, match="404 not_found"):
                await asking


def log_of(envelopes: list[Envelope]) -> Log:
    log = Log(envelopes[0].run_id)
    log.envelopes = envelopes
    return log


async def test_a_pruned_run_is_followed_from_its_snapshot_and_an_erased_one_is_left(journal: MemoryJournal) -> None:
    log = story("run-1")
    async with serving(journal) as client:
        await write(journal, log_of(log))
        await journal.prune("run-1", 9)
        with pytest.raises(CursorExpired) as expired:
            await anext(client.events("run-1", 3))
        rest = [envelope async for envelope in client.events("run-1", expired.value.snapshot["seq"])]
        assert rest == log[expired.value.snapshot["seq"] :]
        assert [view.snapshot() async for view in client.follow("run-1")][-1] == view_of(log).snapshot()

        await write(journal, log_of(story("run-2")[:5]), sealed=False)
        with pytest.raises(RunErased):
            async for view in client.follow("run-2"):
                if view.seq == 5:
                    await journal.erase(run_id="run-2")


APP = """
from agents import Agent, Runner
from agents_progress import progress
from agents_progress.server import Principal

@progress
def total(question: str):
    return Runner.run_streamed(Agent("Clerk"), question)

def anybody(request, action, run):
    return Principal("local")
"""

SERVE = """
import sys
from agents_progress.server.serve import Serving, serve
chosen = Serving("served:total", sys.argv[1], port=int(sys.argv[2]), authorize="served:anybody")
sys.exit(serve(chosen, lambda line: print(line, flush=True)))
"""


@contextmanager
def server(folder: Path, port: int) -> Iterator[subprocess.Popen[bytes]]:
    """A server of the journal in a folder, in a process of its own; it is killed at the end of the block."""
    (folder / "served.py").write_text(APP)
    process = subprocess.Popen(
        [sys.executable, "-c", SERVE, f"sqlite:///{folder}/runs.db", str(port)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline().startswith(b"serving ")
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.timeout(150)  # three servers are started, each of which imports the SDK
async def test_readers_survive_a_server_that_is_killed_and_one_that_leaves_in_good_order(
    command: Command, tmp_path: Path
) -> None:
    log, got = story(words=30), []
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    journal = open_journal(f"sqlite:///{tmp_path}/runs.db")
    await journal.append(log[:5])

    async def read(client: Client, upto: int) -> None:
        async with asyncio.timeout(120):
            while len(got) < upto:
                got.append(await anext(events))

    url = f"http://127.0.0.1:{port}"
    async with Client(url) as client:
        events = client.events("run-1")
        with server(tmp_path, port):
            tailing = asyncio.create_task(told(command, f"{url}/runs/run-1"))
            await read(client, 5)
        await journal.append(log[5:12])  # while it is down
        with server(tmp_path, port) as leaving:
            await journal.append(log[12:20])
            await read(client, 20)
            leaving.terminate()
            assert await asyncio.to_thread(leaving.wait, 30) == 0
        await journal.append(log[20:])
        await journal.seal("run-1")
        with server(tmp_path, port):
            await read(client, len(log))
            assert [envelope async for envelope in events] == []
            printed = await tailing
    await journal.close()
    assert got == log
    assert printed.code == 0 and printed.rows[-1].endswith("巡检✓")
