"""The browser's client: against a server made of answers that cuts, repeats and refuses, and against the real one."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from agents import Runner, RunResultStreaming, function_tool
from serving import by_token, listening, living, runs_app, scripted, service_of, write
from starlette.applications import Starlette
from starlette.routing import Mount

from agents_progress import progress
from agents_progress.journal import MemoryJournal
from agents_progress.messages import MESSAGES
from agents_progress.testing import call, text, turn
from agents_progress.testing.contract.logs import Log
from agents_progress.view import RunView
from tests.browser.node import HERE, NODE, needs_node, node, played, scenarios_of

pytestmark = needs_node

SCENARIOS = scenarios_of("client.mjs")


def test_every_scenario_is_played() -> None:
    assert list(played("client.mjs")) == SCENARIOS
    assert len(SCENARIOS) == 35


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_client_holds_that(scenario: str) -> None:
    assert played("client.mjs")[scenario] is None, played("client.mjs")[scenario]


# Against the real server.


async def test_a_browser_whose_server_goes_away_ends_with_the_view_of_python(journal: MemoryJournal) -> None:
    log = Log("run-A").start().request().say("tool.started", call_id="c1")
    for index in range(300):
        log.say("text.delta", item_id="m1", index=index, text="巡检✓\r\n\u2028" * 9)
    log.say("tool.finished", call_id="c1", duration_ms=3).say("note.mood", good=1.0, deep={"🙂": 2**70}).end().check()
    nodes = [runs_app(journal, by_token), runs_app(journal, by_token)]
    here = 0

    async def either(scope: Any, receive: Any, send: Any) -> None:
        await nodes[here](scope, receive, send)

    async with living(nodes[0]), living(nodes[1]), listening(Starlette(routes=[Mount("/", either)])) as url:
        await write(journal, part(log, 0, 100), sealed=False)
        process = await asyncio.create_subprocess_exec(
            *(str(NODE), str(HERE / "follow.mjs"), f"{url}/runs/run-A", "ada"),
            stdout=asyncio.subprocess.PIPE,
            limit=2**20,
        )
        assert process.stdout is not None
        lines = process.stdout
        assert await seen(lines, 100) == "running"
        here = 1
        service_of(nodes[0]).hub.say_bye()
        await write(journal, part(log, 100, 200), sealed=False)
        assert await seen(lines, 200) == "running"
        await write(journal, part(log, 200, len(log.envelopes)))
        assert await seen(lines, len(log.envelopes)) == "done"
        (*_, last) = [json.loads(line) async for line in lines]
        assert await process.wait() == 0
    view = RunView("run-A")
    for envelope in log.envelopes:
        view.feed(envelope)
    view.close_transport()
    assert last["envelopes"] == list(range(1, len(log.envelopes) + 1))
    assert last["end"] == json.loads(json.dumps(view.snapshot()))


def part(log: Log, start: int, stop: int) -> Log:
    some = Log(log.run_id)
    some.envelopes = log.envelopes[start:stop]
    return some


async def seen(lines: asyncio.StreamReader, seq: int) -> str:
    """The status when the browser has come so far."""
    async for line in lines:
        told = json.loads(line)
        if told.get("seq") == seq:
            return str(told["status"])
    raise AssertionError(f"the browser left before {seq}")


async def test_a_browser_starts_watches_and_answers_a_run(journal: MemoryJournal) -> None:
    @function_tool(needs_approval=True)
    def danger(what: str) -> str:
        return f"did {what}"

    @progress
    def ship(question: str) -> RunResultStreaming:
        turns = turn(call("danger", {"what": "a"}, call_id="c1")), turn(text("shipped"))
        return Runner.run_streamed(scripted(*turns, tools=[danger]), question)

    async with listening(runs_app(journal, by_token, functions=[ship])) as url:
        said = json.loads(await asyncio.to_thread(node, str(HERE / "control.mjs"), url, "ada"))
    assert said == {
        "same": True,
        "paused": ["waiting", "Ship it", "danger"],
        "other": [409, "digest_differs", {}],
        "given": "accepted",
        "late": [409, "already_answered", {"decision": "approved", "actor": "ada"}],
        "ended": ["checking", MESSAGES["checking"]["zh"], "shipped"],
        "cancelled": {"answer": "already_ended"},
        "nobody": [401, "unauthenticated", {}],
        "elsewhere": [404, "not_found", {}],
    }
