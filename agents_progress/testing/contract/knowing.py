"""What is known of one run without its log: where it stands, and since when nothing was written or read."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from agents_progress.errors import RunErased
from agents_progress.journal import Journal, Origin, RunRow
from agents_progress.journal.base import Scope
from agents_progress.testing.contract.logs import started, story, ticks, whole
from agents_progress.testing.contract.owning import LONG

SOON = 20.0
"""More seconds than pass between two lines of a test, and less than any other figure that it could be taken for."""


async def known(journal: Journal, run_id: str = "r") -> RunRow:
    """The row of a run that is there, of which a list says the same."""
    row = await journal.run(run_id)
    assert row is not None
    (listed,) = [row for row in await journal.runs() if row.run_id == run_id]
    assert timeless(listed) == timeless(row)
    for name in ("silent_s", "unread_s", "lease_left_s"):
        one, other = getattr(row, name), getattr(listed, name)
        assert (one is None) == (other is None)
        assert one is None or abs(one - other) < SOON
    return row


def timeless(row: RunRow) -> RunRow:
    return replace(row, silent_s=None, unread_s=None, lease_left_s=None)


class Knowing:
    """What :meth:`Journal.run` and :meth:`Journal.touch` promise, and the facts of a :class:`RunRow`."""

    tick: float

    async def test_one_run_is_known_by_its_id(self, journal: Journal, reopened: Journal) -> None:
        origin = Origin(owner="mei", tenant="acme", labels={"trace": "巡"}, host="h", pid=7, versions={"p": "1"})
        log = story("r", "task-9")
        await journal.append(log, origin=origin)
        await journal.append(ticks("other", 1, 2))
        row = await known(reopened)
        assert (row.run_id, row.task_id, row.seq, row.status, row.origin) == ("r", "task-9", 12, "done", origin)
        assert (row.started_at, row.updated_at) == (log[0].occurred_at, log[-1].occurred_at)
        assert (row.sealed, row.generation, row.unread_s, row.lease_left_s) == (False, 0, None, None)

    async def test_a_run_that_has_not_begun_is_unknown(self, journal: Journal) -> None:
        await journal.append(ticks("r", 1, 1))
        await journal.lease("leased", LONG)
        for run_id in ("nobody", "", "R", "leased"):
            assert await journal.run(run_id) is None

    async def test_an_erased_run_is_known_as_erased(self, journal: Journal, reopened: Journal) -> None:
        await journal.append([started("r")], origin=Origin(owner="mei"))
        await journal.erase(run_id="r")
        for node in (journal, reopened):
            with pytest.raises(RunErased):
                await node.run("r")
            assert await node.run("r", scope=Scope(owner="mei")) is None

    async def test_a_run_is_known_within_its_scope_only(self, journal: Journal) -> None:
        await journal.append([started("r")], origin=Origin(owner="mei", tenant="a"))
        for inside in (Scope(), Scope(owner="mei"), Scope(tenant="a"), Scope(owner="mei", tenant="a")):
            row = await journal.run("r", scope=inside)
            assert row is not None
            assert row.run_id == "r"
        for outside in (Scope(owner="bo"), Scope(tenant="b"), Scope(owner="mei", tenant="b"), Scope(owner="")):
            assert await journal.run("r", scope=outside) is None

    # Silence.

    async def test_a_run_is_silent_since_its_last_append(self, journal: Journal, reopened: Journal) -> None:
        await journal.append(ticks("r", 1, 3))  # their own times are long past
        before = await known(reopened)
        await asyncio.sleep(self.tick)
        await journal.touch(["r"])
        await journal.lease("r", LONG)
        after = await known(reopened)
        assert before.silent_s is not None
        assert after.silent_s is not None
        assert 0 <= before.silent_s < before.silent_s + self.tick * 0.9 < after.silent_s < SOON

    async def test_whatever_is_written_ends_the_silence_and_a_seal_does_not(self, journal: Journal) -> None:
        lease = await journal.lease("r", LONG)
        await journal.append(ticks("r", 1, 1), lease=lease)
        await asyncio.sleep(2 * self.tick)
        silent = (await known(journal)).silent_s or 0
        await journal.append(ticks("r", 1, 1), lease=lease)  # stored before: nothing is written
        assert ((await known(journal)).silent_s or 0) >= silent >= 2 * self.tick * 0.9
        await journal.append(ticks("r", 1, 2), lease=lease)
        assert ((await known(journal)).silent_s or 0) < silent
        await asyncio.sleep(2 * self.tick)
        await journal.seal("r", lease=lease)
        row = await known(journal)
        assert row.sealed
        assert row.silent_s is not None
        assert row.silent_s >= 2 * self.tick * 0.9

    # Owners.

    async def test_a_row_tells_the_lease_and_how_long_it_holds(self, journal: Journal, reopened: Journal) -> None:
        await journal.append(ticks("r", 1, 1))
        lease = await journal.lease("r", LONG)
        row = await known(reopened)
        assert row.generation == lease.generation
        assert row.lease_left_s is not None
        assert LONG - SOON < row.lease_left_s <= LONG
        assert reopened.renew([lease], 2 * LONG) == []
        left = (await known(journal)).lease_left_s or 0
        assert 2 * LONG - SOON < left <= 2 * LONG
        await journal.seal("r", lease=lease)
        row = await known(reopened)
        assert (row.sealed, row.generation, row.lease_left_s) == (True, lease.generation, None)

    async def test_a_lease_that_ran_out_is_below_zero_until_its_run_is_declared_lost(
        self, journal: Journal, reopened: Journal
    ) -> None:
        lease = await journal.lease("r", self.tick)
        await journal.append([started("r")], lease=lease)
        await asyncio.sleep(self.tick * 1.5)
        row = await known(journal)
        assert row.lease_left_s is not None
        assert -SOON < row.lease_left_s < 0
        assert (row.sealed, row.status) == (False, "running")
        assert await reopened.expire() == ["r"]
        row = await known(journal)
        assert (row.sealed, row.lease_left_s, row.status) == (True, None, "unknown")
        assert row.generation == lease.generation + 1
        assert row.silent_s is not None
        assert 0 <= row.silent_s < SOON

    async def test_a_reservation_holds_for_its_time(self, journal: Journal) -> None:
        await journal.reserve("r", LONG)
        row = await known(journal)
        assert (row.status, row.generation, row.sealed) == ("accepted", 0, False)
        assert row.lease_left_s is not None
        assert row.silent_s is not None
        assert LONG - SOON < row.lease_left_s <= LONG
        assert 0 <= row.silent_s < SOON

    # Readers.

    async def test_a_touch_says_that_a_run_is_read_now(self, journal: Journal, reopened: Journal) -> None:
        for run_id in ("r", "s", "unread"):
            await journal.append(ticks(run_id, 1, 1))
        await journal.touch(["r", "s"])
        await asyncio.sleep(self.tick)
        await reopened.touch(["r", "r"])
        first, second = await known(journal), await known(journal, "s")
        assert first.unread_s is not None
        assert second.unread_s is not None
        assert 0 <= first.unread_s < first.unread_s + self.tick * 0.9 < second.unread_s < SOON
        assert (await known(journal, "unread")).unread_s is None

    async def test_a_touch_makes_no_run_and_passes_over_what_nobody_can_read(
        self, journal: Journal, reopened: Journal
    ) -> None:
        for run_id in ("sealed", "erased", "r"):
            await journal.append(ticks(run_id, 1, 1))
        await journal.seal("sealed")
        await journal.erase(run_id="erased")
        for node in (journal, reopened):
            await node.touch(["nobody", "sealed", "erased", "r", ""])
            await node.touch([])
        assert (await known(journal, "sealed")).unread_s is None
        assert (await known(journal)).unread_s is not None
        assert {row.run_id for row in await journal.runs()} == {"sealed", "r"}
        assert await journal.run("nobody") is None
        await journal.reserve("nobody", LONG)
        assert (await known(journal, "nobody")).unread_s is None
        with pytest.raises(RunErased):
            await journal.run("erased")

    async def test_a_run_is_written_and_touched_at_once(self, journal: Journal, reopened: Journal) -> None:
        log, over = ticks("r", 1, 120), asyncio.Event()
        await journal.append(log[:1])

        async def reading(node: Journal) -> None:
            while not over.is_set():
                await node.touch(["r", "other"])
                await asyncio.sleep(0)

        readers = [asyncio.ensure_future(reading(node)) for node in (journal, reopened)]
        for step in log[1:]:
            await journal.append([step])
            await asyncio.sleep(0)
        over.set()
        await asyncio.gather(*readers)
        assert await whole(reopened, "r") == log
        assert (await known(journal)).unread_s is not None

    async def test_a_touch_is_nothing_that_a_tail_gives(self, journal: Journal, reopened: Journal) -> None:
        given: list[Any] = []

        async def following() -> None:
            async for step in reopened.tail("r"):
                given.append(step)

        await journal.append(ticks("r", 1, 2))
        tail = asyncio.ensure_future(following())
        await journal.touch(["r"])
        await reopened.touch(["r"])
        await journal.append(ticks("r", 3, 3))
        await journal.seal("r")
        await asyncio.wait_for(tail, 20)
        assert given == ticks("r", 1, 3)
