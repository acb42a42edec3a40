"""One run has one owner: leases, fencing, exclusive keys, renewal, sealing."""

from __future__ import annotations

import asyncio
import threading
import time
from dataclasses import replace

import pytest

from agents_progress.errors import Fenced, LeaseHeld, RunNotFound, Sealed
from agents_progress.journal import Journal
from agents_progress.journal.base import Lease
from agents_progress.testing.contract.logs import ticks, whole

LONG = 60.0
"""A time to live that ends in no test."""


class Owning:
    """What :meth:`Journal.lease`, :meth:`Journal.renew` and :meth:`Journal.seal` promise."""

    tick: float

    # Fencing.

    async def test_the_holder_of_a_lease_writes(self, journal: Journal) -> None:
        lease = await journal.lease("r", LONG)
        assert lease.run_id == "r"
        assert lease.generation >= 1
        await journal.append(ticks("r", 1, 3), claim=True, lease=lease)
        await journal.append(ticks("r", 4, 5), lease=lease)
        await journal.append(ticks("r", 4, 5), lease=lease)
        assert await whole(journal, "r") == ticks("r", 1, 5)

    async def test_an_older_lease_and_none_are_fenced(self, journal: Journal, reopened: Journal) -> None:
        lease = await journal.lease("r", LONG)
        await journal.append(ticks("r", 1, 2), lease=lease)
        older = replace(lease, generation=lease.generation - 1)
        for node in (journal, reopened):
            for wrong in (older, None, replace(lease, run_id="other")):
                for batch in (ticks("r", 3, 3), ticks("r", 1, 2)):
                    with pytest.raises(Fenced):
                        await node.append(batch, lease=wrong)
                with pytest.raises(Fenced):
                    await node.seal("r", lease=wrong)
        assert await whole(journal, "r") == ticks("r", 1, 2)
        await reopened.append(ticks("r", 3, 3), lease=lease)

    async def test_a_run_that_began_without_a_lease_is_owned_once_it_has_one(self, journal: Journal) -> None:
        await journal.append(ticks("r", 1, 2))
        lease = await journal.lease("r", LONG)
        with pytest.raises(Fenced):
            await journal.append(ticks("r", 3, 3))
        await journal.append(ticks("r", 3, 3), lease=lease)
        await journal.append(ticks("free", 1, 1))
        assert await whole(journal, "r") == ticks("r", 1, 3)

    async def test_a_batch_that_is_fenced_fails_alone(self, journal: Journal) -> None:
        lease = await journal.lease("r", LONG)
        answers = await asyncio.gather(
            journal.append(ticks("a", 1, 2)),
            journal.append(ticks("r", 1, 2)),
            journal.append(ticks("r", 1, 2), lease=lease),
            journal.append(ticks("b", 1, 2)),
            return_exceptions=True,
        )
        assert [type(answer) for answer in answers] == [type(None), Fenced, type(None), type(None)]

    # Who holds.

    async def test_a_run_with_an_owner_is_not_leased_again(self, journal: Journal, reopened: Journal) -> None:
        await journal.lease("r", LONG)
        for node in (journal, reopened):
            with pytest.raises(LeaseHeld):
                await node.lease("r", LONG)
        await reopened.lease("s", LONG)

    async def test_of_many_nodes_exactly_one_becomes_the_owner(self, journal: Journal, reopened: Journal) -> None:
        asked = [node.lease("r", LONG) for node in (journal, reopened) * 5]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert sum(isinstance(answer, Lease) for answer in answers) == 1
        assert sum(isinstance(answer, LeaseHeld) for answer in answers) == 9

    async def test_a_lease_alone_is_no_run_to_read_or_list(self, journal: Journal) -> None:
        await journal.lease("r", LONG)
        assert await journal.runs() == []
        assert await journal.read("r") == []
        assert await journal.snapshot("r") is None

    async def test_an_exclusive_key_is_held_by_one_run_at_a_time(self, journal: Journal, reopened: Journal) -> None:
        first = await journal.lease("a", LONG, exclusive="thread-1")
        for node in (journal, reopened):
            with pytest.raises(LeaseHeld, match="run a is running"):
                await node.lease("b", LONG, exclusive="thread-1")
        await reopened.lease("c", LONG, exclusive="thread-2")
        await reopened.lease("d", LONG)
        await journal.seal("a", lease=first)
        await reopened.lease("b", LONG, exclusive="thread-1")

    async def test_a_key_that_was_refused_leaves_the_run_free(self, journal: Journal) -> None:
        await journal.lease("a", LONG, exclusive="key")
        with pytest.raises(LeaseHeld):
            await journal.lease("b", LONG, exclusive="key")
        await journal.append(ticks("b", 1, 1))
        await journal.lease("b", LONG)

    async def test_of_many_runs_exactly_one_gets_the_key(self, journal: Journal, reopened: Journal) -> None:
        asked = [node.lease(f"r{n}", LONG, exclusive="key") for n, node in enumerate((journal, reopened) * 5)]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert sum(isinstance(answer, Lease) for answer in answers) == 1
        assert sum(isinstance(answer, LeaseHeld) for answer in answers) == 9

    async def test_the_key_of_a_late_owner_is_free_but_its_run_is_not(self, journal: Journal) -> None:
        late = await journal.lease("a", self.tick, exclusive="key")
        await asyncio.sleep(self.tick * 1.5)
        await journal.lease("b", LONG, exclusive="key")
        with pytest.raises(LeaseHeld):
            await journal.lease("a", LONG)
        assert journal.renew([late], LONG) == [late]

    # Renewing.

    async def test_a_renewed_lease_outlives_its_first_time(self, journal: Journal, reopened: Journal) -> None:
        lease, other = await journal.lease("r", self.tick), await journal.lease("s", self.tick)
        assert journal.renew([], LONG) == []
        assert journal.renew([lease], LONG) == []
        await asyncio.sleep(self.tick * 1.5)
        assert await reopened.expire() == ["s"]
        await journal.append(ticks("r", 1, 2), lease=lease)
        assert journal.renew([lease, other], LONG) == [other]

    async def test_a_plain_thread_renews_while_the_loop_is_blocked(self, journal: Journal, reopened: Journal) -> None:
        lease = await journal.lease("r", 4 * self.tick)
        await journal.append(ticks("r", 1, 1), lease=lease)
        over = threading.Event()
        given_back: list[Lease] = []

        def renewing() -> None:
            while not over.wait(self.tick):
                given_back.extend(journal.renew([lease], 4 * self.tick))

        thread = threading.Thread(target=renewing)
        thread.start()
        try:
            time.sleep(8 * self.tick)
            assert await reopened.expire() == []
        finally:
            over.set()
            thread.join()
        assert given_back == []
        await journal.append(ticks("r", 2, 2), lease=lease)

    async def test_leases_that_are_no_longer_held_are_given_back(self, journal: Journal, reopened: Journal) -> None:
        names = ("held", "sealed", "erased", "late", "lost")
        leases = {name: await journal.lease(name, self.tick if name == "lost" else LONG) for name in names}
        await journal.append(ticks("erased", 1, 1), lease=leases["erased"])
        await journal.seal("sealed", lease=leases["sealed"])
        await journal.erase(run_id="erased")
        await asyncio.sleep(self.tick * 1.5)
        assert await reopened.expire() == ["lost"]
        forged = [Lease("nobody", 1), replace(leases["held"], generation=leases["held"].generation - 1)]
        gone = [leases["sealed"], leases["erased"], leases["lost"], *forged]
        assert journal.renew([*leases.values(), *forged], LONG) == gone
        assert reopened.renew([leases["held"], leases["late"]], LONG) == []

    async def test_two_owners_go_on_side_by_side(self, journal: Journal, reopened: Journal) -> None:
        async def own(node: Journal, run_id: str) -> None:
            lease = await node.lease(run_id, LONG)
            for seq in range(1, 31):
                await node.append(ticks(run_id, seq, seq), claim=seq == 1, lease=lease)
                node.renew([lease], LONG)
            await node.seal(run_id, lease=lease)

        names = [f"r{n}" for n in range(6)]
        await asyncio.gather(*(own((journal, reopened)[n % 2], name) for n, name in enumerate(names)))
        for name in names:
            assert await whole(journal, name) == await whole(reopened, name) == ticks(name, 1, 30)

    # Sealing.

    async def test_nothing_is_written_after_a_seal(self, journal: Journal, reopened: Journal) -> None:
        await journal.append(ticks("free", 1, 2))
        lease = await journal.lease("owned", LONG)
        await journal.append(ticks("owned", 1, 2), lease=lease)
        for run_id, right in (("free", None), ("owned", lease)):
            await journal.seal(run_id, lease=right)
            for node in (journal, reopened):
                await node.seal(run_id, lease=right)
                for batch in (ticks(run_id, 3, 3), ticks(run_id, 1, 2)):
                    with pytest.raises(Sealed):
                        await node.append(batch, lease=right)
                with pytest.raises(Sealed):
                    await node.lease(run_id, LONG)
            assert await whole(journal, run_id) == ticks(run_id, 1, 2)
        assert {row.run_id: row.seq for row in await reopened.runs()} == {"free": 2, "owned": 2}

    async def test_a_run_that_is_not_there_cannot_be_sealed(self, journal: Journal) -> None:
        with pytest.raises(RunNotFound):
            await journal.seal("nobody")
        await journal.append(ticks("nobody", 1, 1), claim=True)
