"""What was erased is gone for good, and nobody sees a run outside their scope."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agents_progress.errors import RunErased, UsageError
from agents_progress.journal import Journal, Origin, Pause
from agents_progress.journal.base import Erased, Request, Scope
from agents_progress.testing.contract.logs import followed, started, story, ticks, viewed, whole
from agents_progress.testing.contract.owning import LONG


async def stored(journal: Journal) -> None:
    """Four runs of two tasks and three owners, one with a snapshot."""
    await journal.append(story("a", "t1"), origin=Origin(owner="mei"))
    await journal.keep_snapshot("a", viewed("a", story("a", "t1")[:5]))
    await journal.append([started("b", "t1")], origin=Origin(owner="bo"))
    await journal.append([started("c", "t2"), *ticks("c", 2, 4)], origin=Origin(owner="mei"))
    await journal.append([started("d", "t2")])


CALLS: dict[str, Callable[[Journal, str], Awaitable[Any]]] = {
    "read": lambda journal, run_id: journal.read(run_id),
    "tail": lambda journal, run_id: followed(journal.tail(run_id)),
    "run": lambda journal, run_id: journal.run(run_id),
    "ask": lambda journal, run_id: journal.ask(Request(run_id, "cancel", {})),
    "pause": lambda journal, run_id: journal.pause(run_id),
    "keep_pause": lambda journal, run_id: journal.keep_pause(Pause(run_id, "f", "{}")),
    "snapshot": lambda journal, run_id: journal.snapshot(run_id),
    "append": lambda journal, run_id: journal.append([started(run_id)]),
    "claim": lambda journal, run_id: journal.append([started(run_id)], claim=True),
    "seal": lambda journal, run_id: journal.seal(run_id),
    "lease": lambda journal, run_id: journal.lease(run_id, LONG),
    "reserve": lambda journal, run_id: journal.reserve(run_id, LONG),
    "prune": lambda journal, run_id: journal.prune(run_id, 1),
    "keep": lambda journal, run_id: journal.keep_snapshot(run_id, viewed(run_id, [started(run_id)])),
}
"""Everything that names one run."""


class Erasing:
    """What :meth:`Journal.erase` and :class:`Scope` promise."""

    @pytest.mark.parametrize(
        ("target", "expected", "left"),
        [
            ({"run_id": "a"}, Erased(1, 12, 1), ["d", "c", "b"]),
            ({"run_id": "nobody"}, Erased(), ["d", "c", "b", "a"]),
            ({"task_id": "t1"}, Erased(2, 13, 1), ["d", "c"]),
            ({"task_id": "t9"}, Erased(), ["d", "c", "b", "a"]),
            ({"owner": "mei"}, Erased(2, 16, 1), ["d", "b"]),
            ({"owner": "nobody"}, Erased(), ["d", "c", "b", "a"]),
        ],
    )
    async def test_runs_are_erased_by_id_task_or_owner(
        self, journal: Journal, reopened: Journal, target: dict[str, str], expected: Erased, left: list[str]
    ) -> None:
        await stored(journal)
        assert await reopened.erase(**target) == expected
        assert [row.run_id for row in await journal.runs()] == left
        for run_id in ("a", "b", "c", "d"):
            if run_id in left:
                assert (await whole(journal, run_id))[0].run_id == run_id
            else:
                with pytest.raises(RunErased):
                    await whole(journal, run_id)
        assert await journal.erase(**target) == Erased()

    @pytest.mark.parametrize("call", CALLS)
    async def test_only_a_tombstone_answers_for_an_erased_run(
        self, journal: Journal, reopened: Journal, call: str
    ) -> None:
        await stored(journal)
        await journal.erase(run_id="a")
        for node in (journal, reopened):
            with pytest.raises(RunErased):
                await CALLS[call](node, "a")
        assert [row.run_id for row in await journal.runs()] == ["d", "c", "b"]

    async def test_the_owner_of_an_erased_run_writes_nothing_more(self, journal: Journal, reopened: Journal) -> None:
        lease = await journal.lease("r", LONG, exclusive="key")
        await journal.append([started("r")], lease=lease)
        assert await reopened.erase(run_id="r") == Erased(1, 1, 0)
        with pytest.raises(RunErased):
            await journal.append(ticks("r", 2, 2), lease=lease)
        with pytest.raises(RunErased):
            await journal.seal("r", lease=lease)
        assert await journal.expire() == []
        await journal.lease("s", LONG, exclusive="key")

    async def test_a_pruned_and_sealed_run_is_erased_too(self, journal: Journal) -> None:
        await journal.append(story("r"))
        await journal.prune("r", 5)
        await journal.seal("r")
        assert await journal.erase(task_id="task-1") == Erased(1, 7, 1)
        with pytest.raises(RunErased):
            await journal.snapshot("r")

    async def test_exactly_one_thing_to_erase_is_named(self, journal: Journal) -> None:
        await stored(journal)
        wrong: list[dict[str, str]] = [{}, {"run_id": "a", "task_id": "t1"}, {"task_id": "t1", "owner": "mei"}]
        for target in wrong:
            with pytest.raises(UsageError):
                await journal.erase(**target)
        assert len(await journal.runs()) == 4

    # Scopes.

    @pytest.mark.parametrize(
        ("scope", "seen"),
        [
            (Scope(), ["d", "c", "b", "a"]),
            (Scope(owner="mei"), ["b", "a"]),
            (Scope(tenant="x"), ["c", "a"]),
            (Scope(owner="mei", tenant="x"), ["a"]),
            (Scope(owner="bo", tenant="y"), []),
            (Scope(owner="nobody"), []),
            (Scope(owner=""), []),
        ],
    )
    async def test_a_run_outside_the_scope_is_one_that_does_not_exist(
        self, journal: Journal, scope: Scope, seen: list[str]
    ) -> None:
        origins = {"a": ("mei", "x"), "b": ("mei", "y"), "c": ("bo", "x"), "d": (None, None)}
        for run_id, (owner, tenant) in origins.items():
            await journal.append([started(run_id)], origin=Origin(owner=owner, tenant=tenant))
        assert [row.run_id for row in await journal.runs(scope=scope)] == seen
        assert [row.run_id for row in await journal.runs(scope=scope, limit=1)] == seen[:1]
        assert [row.run_id for row in await journal.runs(scope=scope, task_id="task-1", status="running")] == seen
        for run_id in origins:
            assert await journal.read(run_id, scope=scope) == ([started(run_id)] if run_id in seen else [])

    async def test_a_tombstone_has_no_owner(self, journal: Journal) -> None:
        await journal.append([started("r")], origin=Origin(owner="mei"))
        await journal.erase(run_id="r")
        for owner in ("mei", "bo"):
            assert await journal.read("r", scope=Scope(owner=owner)) == []
            assert await journal.snapshot("r", scope=Scope(owner=owner)) is None
            assert await journal.run("r", scope=Scope(owner=owner)) is None
