"""Snapshots are kept; what was pruned is replaced by one."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents_progress.errors import AppendConflict, AppendGap, BadSnapshot, CursorExpired
from agents_progress.journal import Journal, Origin
from agents_progress.journal.base import Scope
from agents_progress.testing.contract.logs import Log, followed, story, ticks, viewed, whole

STORY = story("r")


async def expired(journal: Journal, run_id: str, after_seq: int) -> dict[str, Any]:
    """The snapshot that an expired cursor is answered with, by reading and by a tail alike."""
    with pytest.raises(CursorExpired) as read:
        await journal.read(run_id, after_seq)
    with pytest.raises(CursorExpired) as tail:
        await followed(journal.tail(run_id, after_seq))
    assert read.value.snapshot == tail.value.snapshot
    return read.value.snapshot


class Keeping:
    """What :meth:`Journal.keep_snapshot`, :meth:`Journal.snapshot` and :meth:`Journal.prune` promise."""

    # Snapshots.

    async def test_the_newest_snapshot_is_kept(self, journal: Journal, reopened: Journal) -> None:
        await journal.append(STORY)
        assert await journal.snapshot("r") is None
        assert await journal.snapshot("nobody") is None
        for seq, newest in ((4, 4), (2, 4), (9, 9), (4, 9), (12, 12)):
            await journal.keep_snapshot("r", viewed("r", STORY[:seq]))
            assert await reopened.snapshot("r") == viewed("r", STORY[:newest])
        assert await whole(journal, "r") == STORY

    async def test_snapshots_kept_at_once_leave_the_newest(self, journal: Journal, reopened: Journal) -> None:
        await journal.append(STORY)
        nodes = (journal, reopened) * 5
        await asyncio.gather(*(node.keep_snapshot("r", viewed("r", STORY[: n + 1])) for n, node in enumerate(nodes)))
        assert await journal.snapshot("r") == viewed("r", STORY[:10])

    async def test_a_snapshot_is_kept_exactly(self, journal: Journal) -> None:
        log = Log("r").start().say("text.delta", item_id="m", index=0, text="巡检✓\u2028\n\x00").envelopes
        await journal.append(log)
        snapshot = viewed("r", log)
        await journal.keep_snapshot("r", snapshot)
        snapshot["plain"]["title"] = "changed by the caller afterwards"
        assert await journal.snapshot("r") == viewed("r", log)

    async def test_a_snapshot_that_is_not_of_the_stored_log_is_refused(self, journal: Journal) -> None:
        await journal.append(STORY[:3])
        await journal.append(ticks("s", 1, 12))
        for run_id, snapshot in (
            ("r", viewed("r", STORY[:4])),
            ("s", viewed("r", STORY[:2])),
            ("nobody", viewed("nobody", ticks("nobody", 1, 1))),
            ("r", {}),
        ):
            with pytest.raises(BadSnapshot):
                await journal.keep_snapshot(run_id, snapshot)
            assert await journal.snapshot(run_id) is None

    async def test_a_snapshot_is_shown_within_its_scope_only(self, journal: Journal) -> None:
        await journal.append(STORY, origin=Origin(owner="mei", tenant="a"))
        await journal.keep_snapshot("r", viewed("r", STORY))
        assert await journal.snapshot("r", scope=Scope(owner="bo")) is None
        assert await journal.snapshot("r", scope=Scope(owner="mei", tenant="b")) is None
        assert await journal.snapshot("r", scope=Scope(owner="mei", tenant="a")) == viewed("r", STORY)

    # Pruning.

    @pytest.mark.parametrize("upto", [1, 2, 6, 11, 12, 10**30])
    async def test_what_was_pruned_is_replaced_by_a_snapshot(
        self, journal: Journal, reopened: Journal, upto: int
    ) -> None:
        await journal.append(STORY)
        floor = min(upto, len(STORY))
        assert await journal.prune("r", upto) == floor
        for after in (0, floor - 1, -5):
            snapshot = await expired(reopened, "r", after)
            assert snapshot == await reopened.snapshot("r") == viewed("r", STORY[:floor])
            rest = await reopened.read("r", snapshot["seq"])
            assert viewed("r", rest, snapshot) == viewed("r", STORY)
        assert await journal.read("r", floor) == STORY[floor:]
        assert await journal.read("r", floor + 1) == STORY[floor + 1 :]

    async def test_a_log_may_be_pruned_again_and_further(self, journal: Journal, reopened: Journal) -> None:
        await journal.append(STORY)
        removed = [await node.prune("r", upto) for node, upto in ((journal, 3), (reopened, 3), (reopened, 2))]
        assert removed == [3, 0, 0]
        assert await reopened.prune("r", 8) == 5
        assert await expired(journal, "r", 3) == viewed("r", STORY[:8])
        assert sorted(await asyncio.gather(journal.prune("r", 10), reopened.prune("r", 10))) == [0, 2]
        assert viewed("r", await journal.read("r", 10), await journal.snapshot("r")) == viewed("r", STORY)

    async def test_pruning_nothing_is_nothing(self, journal: Journal) -> None:
        await journal.append(STORY)
        assert await journal.prune("r", 0) == 0
        assert await journal.prune("r", -4) == 0
        assert await journal.prune("nobody", 10) == 0
        assert await whole(journal, "r") == STORY
        assert await journal.read("nobody") == []

    async def test_a_newer_snapshot_that_is_stored_serves_as_well(self, journal: Journal) -> None:
        await journal.append(STORY)
        await journal.keep_snapshot("r", viewed("r", STORY[:7]))
        assert await journal.prune("r", 5) == 5
        assert await expired(journal, "r", 0) == viewed("r", STORY[:7])
        assert await journal.read("r", 5) == STORY[5:]
        assert await journal.prune("r", 9) == 4
        assert await expired(journal, "r", 0) == viewed("r", STORY[:9])

    async def test_a_log_goes_on_after_it_was_pruned(self, journal: Journal, reopened: Journal) -> None:
        await journal.append(STORY[:6])
        assert await journal.prune("r", 4) == 4
        for batch in (STORY[5:8], STORY[2:8], STORY[:8], STORY[:2]):  # repeated, across the floor, and wholly below it
            await reopened.append(batch)
        with pytest.raises(AppendConflict):
            await reopened.append([STORY[5]._replace(type="note.other")])
        with pytest.raises(AppendConflict):
            await reopened.append(STORY[:1], claim=True)
        with pytest.raises(AppendGap):
            await reopened.append(STORY[9:])
        await reopened.append(STORY[8:])
        assert await journal.read("r", 4) == STORY[4:]
        (row,) = await journal.runs()
        assert (row.seq, row.task_id, row.status) == (12, "task-1", "done")
        assert (row.started_at, row.updated_at) == (STORY[0].occurred_at, STORY[-1].occurred_at)

    async def test_a_log_that_was_pruned_whole_goes_on(self, journal: Journal) -> None:
        await journal.append(STORY[:6])
        assert await journal.prune("r", 6) == 6
        assert await journal.read("r", 6) == []
        (row,) = await journal.runs()
        assert (row.seq, row.status, row.updated_at) == (6, "waiting", STORY[5].occurred_at)
        await journal.append(STORY[6:])
        assert viewed("r", await journal.read("r", 6), await expired(journal, "r", 0)) == viewed("r", STORY)

    async def test_a_tail_that_is_up_to_date_does_not_notice_pruning(self, journal: Journal, reopened: Journal) -> None:
        await journal.append(STORY[:6])
        tails = [node.tail("r") for node in (journal, reopened)]
        for tail in tails:
            assert [await anext(tail) for _ in range(6)] == STORY[:6]
        assert await journal.prune("r", 5) == 5
        await journal.append(STORY[6:])
        await journal.seal("r")
        for tail in tails:
            assert await followed(tail) == STORY[6:]

    async def test_a_cursor_outside_the_scope_expires_for_nobody(self, journal: Journal) -> None:
        await journal.append(STORY, origin=Origin(owner="mei"))
        await journal.prune("r", 5)
        assert await journal.read("r", scope=Scope(owner="bo")) == []
        with pytest.raises(CursorExpired):
            await journal.read("r", scope=Scope(owner="mei"))

    async def test_other_runs_are_not_pruned(self, journal: Journal) -> None:
        await journal.append(STORY)
        await journal.append(ticks("s", 1, 5))
        await journal.prune("r", 5)
        assert await whole(journal, "s") == ticks("s", 1, 5)
        assert await journal.snapshot("s") is None
