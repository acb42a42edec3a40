"""Runs that nobody reads are cancelled, when the application says so."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from agents import function_tool
from staging import on, reach, scripted, started, stored

from agents_progress.errors import JournalUnavailable, UsageError
from agents_progress.journal import MemoryJournal
from agents_progress.testing import Turn, call, text, turn, wait

LIMIT = 0.2


def open_turn() -> Turn:
    return turn(text("hel", wait(asyncio.Event())))


async def test_a_run_that_nobody_ever_read_is_cancelled(journal: MemoryJournal) -> None:
    run = started(scripted(open_turn()), journal=journal, unread=LIMIT)
    outcome = await run
    assert (outcome.kind, outcome.requested_by) == ("cancelled", "unread")
    assert (await stored(journal, run.id)).of("cancel.requested") == [{"mode": "immediate", "actor": "unread"}]


async def test_a_run_in_a_private_journal_is_cancelled_too() -> None:
    assert (await started(scripted(open_turn()), unread=LIMIT)).requested_by == "unread"


async def test_a_run_is_left_alone_while_somebody_reads_it_here_and_cancelled_once_they_left() -> None:
    run = started(scripted(open_turn()), unread=LIMIT)
    reading = asyncio.ensure_future(reach(run, "run.ended"))
    await asyncio.sleep(4 * LIMIT)
    assert run.view.status == "running"
    left_at = asyncio.get_running_loop().time()
    reading.cancel()
    assert (await run).requested_by == "unread"
    assert asyncio.get_running_loop().time() - left_at >= LIMIT


async def test_a_run_is_left_alone_while_somebody_reads_it_on_another_node(journal: MemoryJournal) -> None:
    run = started(scripted(open_turn()), journal=journal, unread=LIMIT)
    for _ in range(16):
        await asyncio.sleep(LIMIT / 4)
        await journal.touch([run.id])
    assert run.view.status == "running"
    assert (await run).requested_by == "unread"


async def test_sinks_are_no_readers() -> None:
    assert (await started(scripted(open_turn()), unread=LIMIT, sinks=[on("x", lambda: None)])).kind == "cancelled"


async def test_a_journal_that_is_away_leaves_the_run_alone() -> None:
    class Away(MemoryJournal):
        away = True

        async def run(self, *args: Any, **kwargs: Any) -> Any:
            if self.away:
                raise JournalUnavailable("the journal is away; try again")
            return await super().run(*args, **kwargs)

    journal = Away()
    run = started(scripted(open_turn()), journal=journal, unread=LIMIT)
    await asyncio.sleep(3 * LIMIT)
    assert run.view.status == "running"
    journal.away = False
    assert (await run).requested_by == "unread"


async def test_a_paused_run_is_left_alone_and_the_one_that_continues_it_is_not(journal: MemoryJournal) -> None:
    @function_tool(needs_approval=True)
    def danger() -> str:
        return "did"

    agent = scripted(turn(call("danger")), open_turn(), tools=[danger])
    run = started(agent, journal=journal, unread=LIMIT, run_id="r")
    assert (await run).kind == "paused"
    await asyncio.sleep(2 * LIMIT)
    assert run.continued is None and await journal.run("r.2") is None
    assert (await run.resume(approve="all")).requested_by == "unread"


async def test_a_run_that_ends_in_time_is_left_alone() -> None:
    run = started(scripted(turn(text("hello"))), unread=0.01)
    assert (await started(scripted(turn(text("hello"))), unread=60.0)).kind == "succeeded"
    assert (await run).kind in ("succeeded", "cancelled")
    assert [task for task in asyncio.all_tasks() if "gone" in repr(task)] == []


@pytest.mark.parametrize("bad", [0, -1.0])
async def test_a_time_that_is_none_is_refused(bad: float) -> None:
    with pytest.raises(UsageError, match="unread is a time in seconds"):
        started(scripted(), unread=bad)
