"""Runs are listed; many of them go on at once; a journal is closed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents_progress.errors import AppendConflict, JournalClosed
from agents_progress.events import Envelope
from agents_progress.journal import Journal, Origin
from agents_progress.journal.base import Request
from agents_progress.testing.contract.logs import Log, envelope, started, ticks, whole


class Listing:
    """What :meth:`Journal.runs` and :meth:`Journal.close` promise."""

    async def test_the_newest_run_comes_first_and_the_limit_holds(self, journal: Journal) -> None:
        for n in range(6):
            await journal.append([started(f"r{n}")])
        await journal.append(ticks("r0", 2, 3))
        assert [row.run_id for row in await journal.runs()] == ["r5", "r4", "r3", "r2", "r1", "r0"]
        assert [row.run_id for row in await journal.runs(limit=2)] == ["r5", "r4"]
        assert await journal.runs(limit=0) == []

    async def test_runs_are_filtered_by_task_and_labels_and_status(self, journal: Journal) -> None:
        await journal.append([started("a", "t1")], origin=Origin(labels={"team": "x", "env": "prod"}))
        await journal.append([started("b", "t1")], origin=Origin(labels={"team": "x"}))
        await journal.append([started("c", "t2")], origin=Origin(labels={"team": "y"}))
        await journal.append([envelope(2, "run.ended", {"outcome": "failed", "final_output": None}, "c")])

        async def found(**filters: Any) -> list[str]:
            return [row.run_id for row in await journal.runs(**filters)]

        assert await found(task_id="t1") == ["b", "a"]
        assert await found(task_id="t9") == []
        assert await found(labels={"team": "x"}) == ["b", "a"]
        assert await found(labels={"team": "x", "env": "prod"}) == ["a"]
        assert await found(labels={}) == ["c", "b", "a"]
        assert await found(labels={"team": "z"}) == []
        assert await found(status="failed") == ["c"]
        assert await found(status="running") == ["b", "a"]
        assert await found(status="running", task_id="t1", labels={"env": "prod"}) == ["a"]
        assert await found(status="running", limit=1) == ["b"]

    async def test_the_status_of_a_run_follows_its_log(self, journal: Journal) -> None:
        log = Log("r").say("run.accepted", task_id="t").start().ask(call_id=None)
        log.say("approval.resolved", interaction_id="ask-1", decision="approved").end().check()
        expected = ["accepted", "running", "waiting", "running", "checking", "done"]
        for step, status in zip(log.envelopes, expected, strict=True):
            await journal.append([step])
            (row,) = await journal.runs()
            assert (row.status, row.seq) == (status, step.seq)

    async def test_a_row_of_a_list_is_a_copy_of_its_moment(self, journal: Journal) -> None:
        log = Log("r").start().ask(call_id=None).say("approval.resolved", interaction_id="ask-1", decision="approved")
        await journal.append(log.envelopes[:2])
        (before,) = await journal.runs()
        await journal.append(log.envelopes[2:])
        assert (before.status, before.seq) == ("waiting", 2)

    async def test_a_row_says_what_the_first_batch_said(self, journal: Journal) -> None:
        origin = Origin(owner="mei", tenant="acme", labels={"trace": "巡"}, host="h", pid=7, versions={"p": "1"})
        await journal.append([started("r", "task-9", "Total")], origin=origin)
        await journal.append(ticks("r", 2, 4), origin=Origin(owner="other"))
        (row,) = await journal.runs()
        assert (row.run_id, row.task_id, row.title, row.seq, row.origin) == ("r", "task-9", "Total", 4, origin)
        assert (row.started_at, row.updated_at) == (started("r").occurred_at, ticks("r", 4, 4)[0].occurred_at)
        assert dict(row.labels) == {"trace": "巡"}

    async def test_nothing_of_the_origin_travels_in_an_envelope(self, journal: Journal) -> None:
        await journal.append([started("r")], origin=Origin(owner="mei-secret", labels={"k": "label-secret"}))
        assert "secret" not in repr(await whole(journal, "r"))

    # Many at once.

    async def test_runs_are_kept_apart(self, journal: Journal) -> None:
        await journal.append(ticks("r", 1, 3, of="r"))
        await journal.append(ticks("r.2", 1, 2, of="r.2"))
        with pytest.raises(AppendConflict):
            await journal.append(ticks("r", 1, 3, of="other"))
        assert await whole(journal, "r.2") == ticks("r.2", 1, 2, of="r.2")
        assert len(await journal.runs()) == 2

    async def test_fifty_runs_append_at_once(self, journal: Journal) -> None:
        async def write(run_id: str) -> None:
            await journal.append([started(run_id)], claim=True)
            for first in range(2, 42, 4):
                await journal.append(ticks(run_id, first, first + 3))

        names = [f"run-{n}" for n in range(50)]
        await asyncio.gather(*map(write, names))
        for name in names:
            assert [step.seq for step in await whole(journal, name)] == list(range(1, 42))
        assert {row.run_id: row.seq for row in await journal.runs()} == dict.fromkeys(names, 41)

    async def test_batches_of_one_run_keep_the_order_they_were_asked_in(self, journal: Journal) -> None:
        log = ticks("r", 1, 60)
        await asyncio.gather(*(journal.append([step]) for step in log))
        assert await whole(journal, "r") == log

    async def test_other_threads_and_loops_may_use_it_at_once(self, journal: Journal) -> None:
        def elsewhere(run_id: str) -> list[Envelope]:
            async def main() -> list[Envelope]:
                for seq in range(1, 21):
                    await journal.append(ticks(run_id, seq, seq))
                return await whole(journal, run_id)

            return asyncio.run(main())

        logs = await asyncio.gather(*(asyncio.to_thread(elsewhere, f"r{n}") for n in range(4)))
        assert logs == [ticks(f"r{n}", 1, 20) for n in range(4)]

    async def test_a_caller_that_is_cancelled_leaves_a_whole_log(self, journal: Journal) -> None:
        tasks = [asyncio.ensure_future(journal.append(ticks("r", first, first + 9))) for first in range(1, 101, 10)]
        await asyncio.sleep(0)
        for task in tasks[3:]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await journal.append(ticks("other", 1, 1))
        log = await whole(journal, "r")
        assert log == ticks("r", 1, len(log))
        assert len(log) >= 30

    # Closing.

    async def test_a_closed_journal_refuses_everything_by_name(self, journal: Journal) -> None:
        await journal.append(ticks("r", 1, 1))
        assert journal.closed is False
        await journal.close()
        await journal.close()
        assert journal.closed is True
        for call in (
            *(journal.append(ticks("r", 2, 2)), journal.append([]), journal.read("r"), journal.runs()),
            *(journal.run("r"), journal.touch(["r"]), journal.ask(Request("r", "cancel", {}))),
            *(journal.requests(["r"]), journal.requests([])),
        ):
            with pytest.raises(JournalClosed):
                await call

    async def test_an_unused_journal_may_be_closed(self, journal: Journal) -> None:
        await journal.close()
        assert journal.closed

    async def test_closing_finishes_what_was_asked_for(self, journal: Journal) -> None:
        tasks = [asyncio.ensure_future(journal.append(ticks(f"r{n}", 1, 5))) for n in range(10)]
        await asyncio.sleep(0)
        await journal.close()
        assert await asyncio.gather(*tasks) == [None] * 10
