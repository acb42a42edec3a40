"""Who owns a run: its lease outlives a blocked loop, and not its process; a zombie writes nothing."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest
from agents import function_tool
from staging import log_of, reach, scripted, soon, started, stored

from agents_progress.errors import Fenced, LeaseHeld
from agents_progress.journal.sqlite import SQLiteJournal
from agents_progress.testing import call, text, turn, wait

ROOT = Path(__file__).parent.parent


class Short(SQLiteJournal):
    """A journal whose leases run out soon."""

    lease_s = 0.8


@pytest.fixture
async def file(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
async def short(file: Path) -> AsyncIterator[Short]:
    journal = Short(file)
    yield journal
    await journal.close()


@pytest.fixture
async def elsewhere(file: Path) -> AsyncIterator[Short]:
    """The same store, as another node has it."""
    journal = Short(file)
    yield journal
    await journal.close()


async def test_a_tool_that_blocks_the_loop_loses_no_lease(short: Short, elsewhere: Short) -> None:
    lost: list[str] = []

    @function_tool
    async def block() -> str:
        time.sleep(2.4)  # three times as long as the lease
        return "ok"

    await started(scripted(turn(text("warm")), name="Warm"), journal=elsewhere)  # so that the tool comes at once
    run = started(scripted(turn(call("block")), turn(text("done")), tools=[block]), journal=short)
    assert (await run).kind == "succeeded"
    lost += await elsewhere.expire()
    assert lost == [] and (await stored(elsewhere, run.id)).ending["outcome"] == "succeeded"


async def test_a_run_that_ended_gave_its_lease_back_and_its_log_is_closed(short: Short, elsewhere: Short) -> None:
    run = started(scripted(turn(text("done"))), journal=short, verify=lambda output: True)
    assert (await run).accepted
    await run.closed()
    tailed = [envelope async for envelope in elsewhere.tail(run.id)]
    assert tailed == list((await log_of(run)).envelopes) and tailed[-1].type == "app.checked"
    await asyncio.sleep(1.0)
    assert await elsewhere.expire() == []


async def test_a_zombie_writes_nothing_and_its_readers_see_unknown(
    short: Short, elsewhere: Short, monkeypatch: pytest.MonkeyPatch
) -> None:
    renewals: list[Any] = []
    renew = Short.renew

    def cut_off(journal: Short, leases: Any, ttl: float) -> Any:
        renewals.append(leases)
        return renew(journal, leases, ttl) if len(renewals) == 1 else []

    monkeypatch.setattr(Short, "renew", cut_off)
    said = asyncio.Event()
    run = started(scripted(turn(text("hel", wait(said), "lo"))), journal=short)
    await reach(run, "text.delta")
    await asyncio.sleep(1.1)
    assert await elsewhere.expire() == [run.id] and await elsewhere.expire() == []
    said.set()
    outcome = await run
    assert (outcome.kind, run.view.status) == ("unknown", "unknown") and isinstance(run.error, Exception)
    log = await stored(elsewhere, run.id)
    assert log.ending == {"reason": "lease_expired"} and log.view.status == "unknown"
    assert run.result.final_output == "hello", "the user's own run is whole"


async def test_a_lease_that_is_gone_is_noticed_while_the_run_is_silent(short: Short, elsewhere: Short) -> None:
    run = started(scripted(turn(text("hel", wait(asyncio.Event())))), journal=short)
    await reach(run, "text.delta")
    await elsewhere.erase(run_id=run.id)
    await soon(lambda: run.error)
    assert isinstance(run.error, Fenced) and run.view.status == "unknown"
    run.cancel()
    assert (await run).kind == "unknown"


async def test_a_run_that_is_live_elsewhere_is_not_recorded_over(short: Short, elsewhere: Short) -> None:
    first = started(scripted(turn(text("hel", wait(asyncio.Event())))), journal=short, run_id="job-1")
    await reach(first, "text.delta")
    again = started(scripted(turn(text("hello"))), journal=elsewhere, run_id="job-1")
    assert (await again).kind == "unknown" and isinstance(again.error, LeaseHeld)
    first.cancel()
    assert (await first).kind == "cancelled"
    assert (await stored(elsewhere, "job-1")).ending["outcome"] == "cancelled"


CRASHING = """
import asyncio, os, sys
from agents import Agent, Runner, set_tracing_disabled
from agents_progress import progress
from agents_progress.journal.sqlite import SQLiteJournal
from agents_progress.testing import ScriptedAPI, text, turn, wait

class Short(SQLiteJournal):
    lease_s = 0.8

@progress(journal=Short(sys.argv[1]), run_id="crashed")
def work():
    agent = Agent(name="A", model=ScriptedAPI([turn(text("hel", wait(asyncio.Event())))]).model())
    return Runner.run_streamed(agent, "hi")

async def main():
    async for envelope in work():
        if envelope.type == "text.delta":
            print("there", flush=True)

set_tracing_disabled(True)
asyncio.run(main())
"""


def crash(file: Path, how: Callable[[subprocess.Popen[str]], None]) -> None:
    process = subprocess.Popen([sys.executable, "-c", CRASHING, str(file)], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None and process.stdout.readline() == "there\n"
    how(process)
    process.wait(10)
    process.stdout.close()


async def test_a_run_whose_process_was_killed_is_lost_once_the_next_run_looks(file: Path, elsewhere: Short) -> None:
    await asyncio.to_thread(crash, file, lambda process: os.kill(process.pid, signal.SIGKILL))
    before = await stored(elsewhere, "crashed")
    assert before.view.status == "running" and before.endings == [], "nothing is known yet"
    await asyncio.sleep(1.1)
    await started(scripted(turn(text("hello"))), journal=elsewhere)
    log = await stored(elsewhere, "crashed")
    assert log.ending == {"reason": "lease_expired"} and log.view.status == "unknown" and log.view.issues == []
    assert log.view.text == "hel"


async def test_leases_of_many_runs_are_kept_by_one_thread_that_ends_with_the_last(short: Short) -> None:
    import threading

    def keepers() -> list[Any]:
        return [thread for thread in threading.enumerate() if thread.name == "agents-progress-leases"]

    runs = [started(scripted(turn(text("hel", wait(asyncio.Event())))), journal=short) for _ in range(20)]
    for run in runs:
        await reach(run, "text.delta")
    assert len(keepers()) == 1
    await asyncio.sleep(1.1)
    assert await short.expire() == []
    for run in runs:
        run.cancel()
    assert {(await run).kind for run in runs} == {"cancelled"}
    for run in runs:
        await run.closed()
    await soon(lambda: not keepers())
