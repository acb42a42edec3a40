"""A run whose owner is gone, or never came, is declared lost: once, by any node."""

from __future__ import annotations

import asyncio

import pytest

from agents_progress.errors import AppendConflict, Fenced, Sealed
from agents_progress.events import parse
from agents_progress.journal import Journal, Origin
from agents_progress.testing.contract.logs import Log, followed, started, ticks, whole
from agents_progress.testing.contract.owning import LONG


class Losing:
    """What :meth:`Journal.expire` and :meth:`Journal.reserve` promise."""

    tick: float

    # Leases that ran out.

    async def test_a_run_whose_lease_ran_out_is_lost_once(self, journal: Journal, reopened: Journal) -> None:
        lease = await journal.lease("r", self.tick)
        await journal.append([started("r")], lease=lease)
        assert await journal.expire() == []
        await asyncio.sleep(self.tick * 1.5)
        ended = await asyncio.gather(*(node.expire() for node in (journal, reopened) * 4))
        assert sorted(ended) == [[]] * 7 + [["r"]]
        assert await reopened.expire() == []
        first, lost = await whole(reopened, "r")
        assert first == started("r")
        assert (lost.seq, lost.type, lost.payload) == (2, "run.lost", {"reason": "lease_expired"})
        assert parse(lost.to_json()) == lost
        (row,) = await journal.runs()
        assert (row.seq, row.status, row.updated_at) == (2, "unknown", lost.occurred_at)

    async def test_the_owner_of_a_lost_run_is_fenced(self, journal: Journal, reopened: Journal) -> None:
        lease = await journal.lease("r", self.tick)
        await journal.append([started("r")], lease=lease)
        await asyncio.sleep(self.tick * 1.5)
        assert await reopened.expire() == ["r"]
        for right in (lease, None):
            for batch in (ticks("r", 2, 2), [started("r")]):
                with pytest.raises(Fenced):
                    await journal.append(batch, lease=right)
            with pytest.raises(Fenced):
                await journal.seal("r", lease=right)
        with pytest.raises(Sealed):
            await journal.lease("r", LONG)
        assert journal.renew([lease], LONG) == [lease]
        assert len(await whole(journal, "r")) == 2

    async def test_many_runs_are_lost_each_once_and_the_others_go_on(self, journal: Journal, reopened: Journal) -> None:
        for n in range(12):
            lease = await journal.lease(f"r{n}", self.tick if n % 2 else LONG)
            await journal.append([started(f"r{n}")], lease=lease)
        await journal.append([started("free")])
        await asyncio.sleep(self.tick * 1.5)
        ended = await asyncio.gather(*(node.expire() for node in (journal, reopened) * 2))
        assert sorted(run_id for ids in ended for run_id in ids) == sorted(f"r{n}" for n in range(1, 12, 2))
        statuses = {row.run_id: row.status for row in await journal.runs()}
        assert statuses.pop("free") == "running"
        assert statuses == {f"r{n}": "unknown" if n % 2 else "running" for n in range(12)}

    async def test_a_run_that_has_its_ending_is_only_sealed(self, journal: Journal) -> None:
        lease = await journal.lease("r", self.tick)
        log = Log("r").start().end().check().envelopes
        await journal.append(log, lease=lease)
        await asyncio.sleep(self.tick * 1.5)
        assert await journal.expire() == []
        assert await followed(journal.tail("r")) == log
        with pytest.raises(Sealed):
            await journal.lease("r", LONG)

    async def test_a_run_that_its_owner_did_not_begin_is_lost_too(self, journal: Journal) -> None:
        await journal.lease("r", self.tick)
        await asyncio.sleep(self.tick * 1.5)
        assert await journal.expire() == ["r"]
        (lost,) = await followed(journal.tail("r"))
        assert (lost.seq, lost.type, lost.payload) == (1, "run.lost", {"reason": "lease_expired"})
        assert [(row.run_id, row.task_id, row.status) for row in await journal.runs()] == [("r", "r", "unknown")]

    async def test_a_sealed_run_is_never_lost(self, journal: Journal) -> None:
        lease = await journal.lease("r", self.tick)
        await journal.append([started("r")], lease=lease)
        await journal.seal("r", lease=lease)
        await asyncio.sleep(self.tick * 1.5)
        assert await journal.expire() == []
        assert await whole(journal, "r") == [started("r")]

    async def test_a_tail_is_told_of_the_loss_and_ends(self, journal: Journal, reopened: Journal) -> None:
        lease = await journal.lease("r", self.tick)
        await journal.append([started("r")], lease=lease)
        tails = [asyncio.ensure_future(followed(node.tail("r"))) for node in (journal, reopened)]
        await asyncio.sleep(self.tick * 1.5)
        assert await journal.expire() == ["r"]
        for given in await asyncio.gather(*tails):
            assert [step.type for step in given] == ["run.started", "run.lost"]

    # Reservations.

    async def test_a_reserved_run_is_accepted_and_begun_by_its_owner(self, journal: Journal, reopened: Journal) -> None:
        origin = Origin(owner="mei", tenant="acme", labels={"k": "v"}, host="h", pid=7, versions={})
        await journal.reserve("r", self.tick, task_id="t", title="Total", origin=origin)
        (accepted,) = await whole(reopened, "r")
        assert (accepted.event_id, accepted.seq, accepted.type) == ("r:1", 1, "run.accepted")
        assert accepted.payload == {"task_id": "t", "title": "Total"}
        assert parse(accepted.to_json()) == accepted
        (row,) = await reopened.runs()
        assert (row.task_id, row.title, row.status, row.origin) == ("t", "Total", "accepted", origin)
        lease = await reopened.lease("r", LONG)
        await asyncio.sleep(self.tick * 1.5)
        assert await journal.expire() == []
        await reopened.append(ticks("r", 2, 3), lease=lease)
        assert await whole(journal, "r") == [accepted, *ticks("r", 2, 3)]

    async def test_a_lease_of_a_reserved_run_goes_on_after_its_acceptance(
        self, journal: Journal, reopened: Journal
    ) -> None:
        await journal.reserve("r", LONG, task_id="t")
        (accepted,) = await whole(journal, "r")
        lease = await reopened.lease("r", LONG)
        for batch in ([started("r")], ticks("r", 1, 2)):  # whoever was given the job again begins where it stands
            with pytest.raises(AppendConflict):
                await reopened.append(batch, claim=True, lease=lease)
        with pytest.raises(Fenced):
            await journal.append(ticks("r", 2, 2))
        await reopened.append(ticks("r", 2, 3), lease=lease)
        assert await whole(journal, "r") == [accepted, *ticks("r", 2, 3)]

    async def test_a_run_that_is_only_reserved_may_be_written_without_a_lease(
        self, journal: Journal, reopened: Journal
    ) -> None:
        await journal.reserve("r", LONG)
        (accepted,) = await whole(journal, "r")
        await reopened.append(ticks("r", 2, 3))
        lease = await journal.lease("r", LONG)
        with pytest.raises(Fenced):
            await reopened.append(ticks("r", 4, 4))
        await journal.append(ticks("r", 4, 4), lease=lease)
        assert await whole(reopened, "r") == [accepted, *ticks("r", 2, 4)]

    async def test_a_reserved_run_without_a_task_is_one_of_its_own(self, journal: Journal) -> None:
        await journal.reserve("r", LONG)
        (accepted,) = await whole(journal, "r")
        assert accepted.payload == {"task_id": "r"}
        assert [(row.task_id, row.title) for row in await journal.runs()] == [("r", None)]

    async def test_a_reservation_that_nobody_takes_up_is_lost(self, journal: Journal, reopened: Journal) -> None:
        await journal.reserve("r", self.tick)
        assert await reopened.expire() == []
        await asyncio.sleep(self.tick * 1.5)
        ended = await asyncio.gather(journal.expire(), reopened.expire())
        assert sorted(ended) == [[], ["r"]]
        accepted, lost = await followed(reopened.tail("r"))
        assert (accepted.type, lost.type, lost.payload) == ("run.accepted", "run.lost", {"reason": "never_started"})
        with pytest.raises(Sealed):
            await journal.lease("r", LONG)

    async def test_a_run_that_exists_cannot_be_reserved(self, journal: Journal, reopened: Journal) -> None:
        await journal.append([started("begun")])
        await journal.lease("owned", LONG)
        await journal.reserve("reserved", LONG)
        for run_id in ("begun", "owned", "reserved"):
            for node in (journal, reopened):
                with pytest.raises(AppendConflict):
                    await node.reserve(run_id, LONG)
        with pytest.raises(AppendConflict):
            await journal.append([started("reserved")], claim=True)
        assert await whole(journal, "begun") == [started("begun")]

    async def test_of_many_reservations_exactly_one_wins(self, journal: Journal, reopened: Journal) -> None:
        asked = [node.reserve("r", LONG) for node in (journal, reopened) * 4]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert answers.count(None) == 1
        assert sum(isinstance(answer, AppendConflict) for answer in answers) == 7
        assert len(await whole(journal, "r")) == 1
