"""A task followed in a browser: in tabs that come and go over a server of the test, and against the real one."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from agents import Runner, RunResultStreaming, function_tool
from serving import begun, by_token, done, listening, paused, runs_app, scripted, write

from agents_progress import progress
from agents_progress.journal import MemoryJournal
from agents_progress.testing import call, text, turn
from agents_progress.testing.contract.logs import Log
from agents_progress.view import RunView
from tests.browser.node import HERE, NODE, needs_node, played, scenarios_of

pytestmark = needs_node

SCENARIOS = scenarios_of("task.mjs")


def test_every_scenario_is_played() -> None:
    assert list(played("task.mjs")) == SCENARIOS
    assert len(SCENARIOS) == 43


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_task_is_followed_so_that(scenario: str) -> None:
    assert played("task.mjs")[scenario] is None, played("task.mjs")[scenario]


# Against the real server.


@asynccontextmanager
async def browser(*words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A tab, which is closed in the end."""
    process = await asyncio.create_subprocess_exec(
        str(NODE), str(HERE / "tabs.mjs"), *words, stdout=asyncio.subprocess.PIPE, limit=2**22
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def told(process: asyncio.subprocess.Process, run_id: str, status: str) -> None:
    """Until the tab shows this status of this run."""
    assert process.stdout is not None
    async for line in process.stdout:
        said = json.loads(line)
        if (said.get("run"), said.get("status")) == (run_id, status):
            return
    raise AssertionError(f"the tab left before {run_id} was {status}")


async def last(process: asyncio.subprocess.Process) -> dict[str, Any]:
    """What the tab says when it has nothing more to follow, and ends by itself."""
    assert process.stdout is not None
    lines = [line async for line in process.stdout]
    assert await process.wait() == 0
    said: dict[str, Any] = json.loads(lines[-1])
    return said


def folded(*logs: Log) -> list[dict[str, Any]]:
    """The views of closed logs, as a tab stores them, without what it counted for itself."""
    views: list[dict[str, Any]] = []
    for log in logs:
        view = RunView(log.run_id)
        for envelope in log.envelopes:
            view.feed(envelope)
        view.close_transport()
        views.append(uncounted(json.loads(json.dumps(view.snapshot()))))
    return views


def uncounted(snapshot: dict[str, Any]) -> dict[str, Any]:
    return {**snapshot, "plain": {**snapshot["plain"], "duplicates": 0}}


async def test_a_tab_follows_three_runs_of_the_real_server_over_one_feed(journal: MemoryJournal) -> None:
    logs = [begun(name) for name in ("run-A", "run-B", "run-C")]
    for log in logs:
        for index in range(50):
            log.say("text.delta", item_id="m1", index=index, text="巡检✓\r\n\u2028")
    async with listening(runs_app(journal, by_token)) as url:
        for log in logs:
            await write(journal, log, sealed=False)
        async with browser(url, "ada", *(log.run_id for log in logs)) as tab:
            await told(tab, "run-C", "running")
            for log in logs:
                stored = len(log.envelopes)
                log.end().check()
                await write(journal, part(log, stored))
            said = await last(tab)
    assert [uncounted(end) for end in said["ends"]] == folded(*logs)
    assert said["most"] == 1
    assert said["asked"].count("run-A/events") == 1
    assert {"run-B/snapshot", "run-C/snapshot"} <= set(said["asked"])


async def test_a_tab_goes_on_with_the_run_that_continues_a_paused_one(journal: MemoryJournal) -> None:
    first, later = paused("run-A"), done("run-A.2")
    async with listening(runs_app(journal, by_token)) as url:
        await write(journal, first)
        async with browser(url, "ada", "run-A") as tab:
            await told(tab, "run-A", "waiting")
            await write(journal, later)
            said = await last(tab)
    assert [uncounted(end) for end in said["ends"]] == folded(later)
    asked = said["asked"]
    assert asked[0] == "run-A/events" and asked[-1] == "run-A.2/events" and set(asked[1:-1]) == {"run-A"}


async def test_a_tab_that_answers_goes_on_at_once_with_what_its_answer_began(journal: MemoryJournal) -> None:
    @function_tool(needs_approval=True)
    def danger(what: str) -> str:
        return f"did {what}"

    @progress
    def ship(question: str) -> RunResultStreaming:
        turns = turn(call("danger", {"what": "a"}, call_id="c1")), turn(text("shipped"))
        return Runner.run_streamed(scripted(*turns, tools=[danger]), question)

    async with listening(runs_app(journal, by_token, functions=[ship])) as url:
        headers = {"authorization": "Bearer ada"}
        async with httpx.AsyncClient(base_url=url, headers=headers) as ada:
            started = (await ada.post("/runs", json={"arguments": {"question": "go"}})).json()
        async with browser(url, "ada", "answer", started["run_id"]) as tab:
            said = await last(tab)
    (end,) = said["ends"]
    assert end["run_id"] == f"{started['run_id']}.2"
    assert end["texts"][-1]["pieces"] == ["shipped"]


def part(log: Log, start: int) -> Log:
    some = Log(log.run_id)
    some.envelopes = log.envelopes[start:]
    return some
