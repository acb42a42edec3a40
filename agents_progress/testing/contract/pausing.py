"""What a paused run leaves behind is kept for every node, and for nobody who may not see the run."""

from __future__ import annotations

import asyncio

import pytest

from agents_progress.errors import Fenced, RunErased, RunNotFound, Sealed
from agents_progress.journal import Journal, Origin, Pause
from agents_progress.journal.base import Lease, Scope
from agents_progress.testing.contract.logs import started, story, ticks
from agents_progress.testing.contract.owning import LONG

STATE = "巡检✓\x00\u2028\n\ud800'\"\\ state"


def left(run_id: str = "r", body: str = STATE) -> Pause:
    return Pause(run_id, "total", body, "2026-10-07T08:00:00Z", {"ask-1": ["mei", "bo"]})


class Pausing:
    """What :meth:`Journal.keep_pause`, :meth:`Journal.pause` and their sisters promise."""

    tick: float

    async def test_a_pause_is_kept_exactly_and_for_every_node(self, journal: Journal, reopened: Journal) -> None:
        await journal.append([started("r")])
        for node in (journal, reopened):
            assert (await node.pause("r"), await node.pauses()) == (None, [])
        await journal.keep_pause(left())
        for node in (journal, reopened):
            assert (await node.pause("r"), await node.pauses()) == (left(), ["r"])
        plain = Pause("r", "another", "")
        await reopened.keep_pause(plain)
        assert (await journal.pause("r"), await journal.pauses()) == (plain, ["r"]), "one a run, the newest"

    async def test_the_state_of_a_pause_is_in_no_repr(self) -> None:
        assert "state" not in repr(left())

    async def test_a_pause_stays_when_its_run_ends_and_is_sealed(self, journal: Journal, reopened: Journal) -> None:
        await journal.append([started("r")])
        await journal.keep_pause(left())
        await journal.append(ticks("r", 2, 3))
        await journal.seal("r")
        assert await reopened.pause("r") == left()
        with pytest.raises(Sealed):
            await journal.keep_pause(left(body="later"))
        assert await reopened.pause("r") == left()

    async def test_what_was_used_is_dropped_once_and_for_all(self, journal: Journal, reopened: Journal) -> None:
        for run_id in ("r", "s"):
            await journal.append([started(run_id)])
            await journal.keep_pause(left(run_id))
        await asyncio.gather(*(node.drop_pause("r") for node in (journal, reopened) * 3))
        await journal.drop_pause("nobody")
        for node in (journal, reopened):
            assert (await node.pause("r"), await node.pauses()) == (None, ["s"])
        assert await journal.run("r") is not None, "the run itself is left alone"

    async def test_only_the_owner_of_a_run_keeps_its_pause(self, journal: Journal, reopened: Journal) -> None:
        lease = await journal.lease("r", LONG)
        with pytest.raises(RunNotFound):
            await journal.keep_pause(left(), lease=lease)
        await journal.append([started("r")], lease=lease)
        for wrong in (None, Lease("r", lease.generation + 1)):
            with pytest.raises(Fenced):
                await reopened.keep_pause(left(), lease=wrong)
        assert await journal.pause("r") is None
        await journal.keep_pause(left(), lease=lease)
        assert await reopened.pause("r") == left()

    async def test_an_owner_that_was_lost_keeps_no_pause(self, journal: Journal, reopened: Journal) -> None:
        lease = await journal.lease("r", self.tick)
        await journal.append([started("r")], lease=lease)
        await asyncio.sleep(self.tick * 1.5)
        assert await reopened.expire() == ["r"]
        with pytest.raises(Fenced):
            await journal.keep_pause(left(), lease=lease)
        assert await reopened.pauses() == []

    async def test_an_unknown_run_has_no_pause(self, journal: Journal) -> None:
        with pytest.raises(RunNotFound):
            await journal.keep_pause(left("nobody"))
        assert (await journal.pause("nobody"), await journal.pauses()) == (None, [])

    async def test_nobody_sees_the_pause_of_a_run_outside_their_scope(self, journal: Journal) -> None:
        await journal.append([started("r")], origin=Origin(owner="mei", tenant="a"))
        await journal.keep_pause(left())
        for outside in (Scope(owner="bo"), Scope(tenant="b"), Scope(owner="mei", tenant="b"), Scope(owner="")):
            assert await journal.pause("r", scope=outside) is None
        assert await journal.pause("r", scope=Scope(owner="mei", tenant="a")) == left()

    @pytest.mark.parametrize("target", [{"run_id": "r"}, {"task_id": "task-1"}, {"owner": "mei"}])
    async def test_a_pause_is_erased_with_its_run(
        self, journal: Journal, reopened: Journal, target: dict[str, str]
    ) -> None:
        await journal.append([started("r")], origin=Origin(owner="mei"))
        await journal.append([started("s", "task-2")], origin=Origin(owner="bo"))
        for run_id in ("r", "s"):
            await journal.keep_pause(left(run_id))
        await reopened.erase(**target)
        assert await journal.pauses() == ["s"]
        with pytest.raises(RunErased):
            await journal.pause("r")
        assert await journal.pause("r", scope=Scope(owner="mei")) is None
        await journal.drop_pause("r")
        with pytest.raises(RunErased):
            await journal.keep_pause(left())

    async def test_a_pause_goes_when_all_of_its_log_is_pruned(self, journal: Journal, reopened: Journal) -> None:
        await journal.append(story("r"))
        await journal.keep_pause(left())
        await journal.prune("r", 5)
        assert await reopened.pause("r") == left()
        await journal.prune("r", 100)
        assert (await reopened.pause("r"), await journal.pauses()) == (None, [])
