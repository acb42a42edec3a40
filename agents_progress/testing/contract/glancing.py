"""What a list shows of a run is kept beside it; lists go on page by page, and from a task to its newest run."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents_progress.errors import RunErased, RunNotFound
from agents_progress.glance import KEPT, Glance
from agents_progress.journal import Journal, Origin
from agents_progress.journal.base import RunRow, Scope, continued
from agents_progress.testing.contract.logs import Log, started, ticks

COUNTS = {
    "requests": 1,
    "input_tokens": 10,
    "output_tokens": 5,
    "total_tokens": 15,
    "cached_tokens": None,
    "reasoning_tokens": None,
    "status": "reported",
}
COST = {"amount": "0.0123", "currency": "USD", "at_least": False}


async def glance_of(journal: Journal, run_id: str = "r") -> tuple[Any, ...]:
    """What a row says at a glance; the same from the list and alone."""
    (listed,) = [row for row in await journal.runs() if row.run_id == run_id]
    alone = await journal.run(run_id)
    assert alone is not None
    assert alone.glance == listed.glance
    return shown(alone)


def shown(row: RunRow) -> tuple[Any, ...]:
    assert row.glance is not None
    return row.glance.activity, row.glance.usage, row.glance.cost


class Glancing:
    """What :attr:`RunRow.glance`, `before` of :meth:`Journal.runs` and :meth:`Journal.newest` promise."""

    tick: float

    async def test_a_row_shows_what_is_worked_on_after_each_append(self, journal: Journal, reopened: Journal) -> None:
        log = Log("r").start().request("c1", title="Look up").request("c2", title="查库存").say("text.delta", index=0)
        log.say("tool.started", call_id="c2").say("tool.started", call_id="c1").request("c1/c1", title="Inner")
        log.say("tool.finished", call_id="c2").say("tool.finished", call_id="c1/c1").say("tool.failed", call_id="c1")
        log.say("stage.started", stage_id="s", title="Sum up").say("stage.completed", stage_id="s")
        expected = [None, "Look up", "Look up", "Look up", "查库存", "查库存", "查库存", "Inner", "Look up", None]
        for step, activity in zip(log.envelopes, [*expected, "Sum up", None], strict=True):
            await (journal if step.seq % 2 else reopened).append([step])
            assert await glance_of(journal) == (activity, None, None)
            assert await glance_of(reopened) == (activity, None, None)

    async def test_a_row_shows_the_newest_usage_and_cost(self, journal: Journal) -> None:
        log = Log("r").start().say("usage.updated", **COUNTS, x={"cost": COST, "more": 1})
        log.say("usage.updated", **{**COUNTS, "requests": 2})
        await journal.append(log.envelopes[:2])
        assert await glance_of(journal) == (None, COUNTS, COST)
        await journal.append(ticks("r", 3, 3))
        assert await glance_of(journal) == (None, COUNTS, COST)
        await journal.append([log.envelopes[2]._replace(seq=4, event_id="r:4")])
        assert await glance_of(journal) == (None, {**COUNTS, "requests": 2}, None)

    async def test_one_batch_shows_the_same_as_its_envelopes_one_by_one(self, journal: Journal) -> None:
        for run_id, size in (("one", 1), ("all", 100)):
            log = Log(run_id).start().request("c1", title="A").say("tool.started", call_id="c1")
            log.say("usage.updated", **COUNTS, x={"cost": COST}).request("c2", title="B")
            for first in range(0, len(log.envelopes), size):
                await journal.append(log.envelopes[first : first + size])
        assert await glance_of(journal, "one") == await glance_of(journal, "all") == ("A", COUNTS, COST)

    @pytest.mark.parametrize("outcome", ["succeeded", "paused", "cancelled", "failed", "incomplete"])
    async def test_a_run_that_has_ended_works_on_nothing(self, journal: Journal, outcome: str) -> None:
        log = (
            Log("r").start().request("c1").say("usage.updated", **COUNTS).say("stage.started", stage_id="s", title="S")
        )
        await journal.append(log.end(outcome).envelopes)
        assert await glance_of(journal) == (None, COUNTS, None)
        await journal.seal("r")
        assert await glance_of(journal) == (None, COUNTS, None)

    async def test_a_reserved_run_has_a_glance_that_goes_on_with_its_log(self, journal: Journal) -> None:
        await journal.reserve("r", 60.0, task_id="t")
        assert await glance_of(journal) == (None, None, None)
        lease = await journal.lease("r", 60.0)
        log = Log("r").say("run.accepted", task_id="t").start(task_id="t").request("c1", title="Look up").envelopes
        await journal.append(log[1:], lease=lease)
        assert await glance_of(journal) == ("Look up", None, None)
        assert journal.renew([lease], 60.0) == []
        await journal.touch(["r"])
        assert await glance_of(journal) == ("Look up", None, None)

    async def test_a_lost_run_works_on_nothing_and_keeps_its_usage(self, journal: Journal) -> None:
        lease = await journal.lease("r", self.tick)
        log = Log("r").start().say("usage.updated", **COUNTS, x={"cost": COST}).request("c1")
        await journal.append(log.envelopes, lease=lease)
        assert (await glance_of(journal))[0] == "look"
        while "r" not in await journal.expire():
            await asyncio.sleep(self.tick / 10)
        assert await glance_of(journal) == (None, COUNTS, COST)

    async def test_pruning_and_snapshots_leave_the_glance(self, journal: Journal, reopened: Journal) -> None:
        log = Log("r").start().request("c1", title="Look up").say("usage.updated", **COUNTS).envelopes
        await journal.append(log)
        await journal.prune("r", 3)
        assert await glance_of(reopened) == ("Look up", COUNTS, None)
        await reopened.append(Log("r").start().request().say("x").say("tool.started", call_id="c1").envelopes[3:])
        assert await glance_of(journal) == ("Look up", COUNTS, None)

    async def test_what_was_refused_changes_no_glance(self, journal: Journal) -> None:
        log = Log("r").start().request("c1", title="Look up").envelopes
        await journal.append(log)
        with pytest.raises(Exception, match="r"):
            await journal.append([log[1]._replace(payload={**log[1].payload, "title": "Other"})])
        await journal.append(log)
        assert await glance_of(journal) == ("Look up", None, None)

    async def test_a_glance_of_ten_thousand_open_calls_is_small(self, journal: Journal) -> None:
        log = Log("r").start()
        for number in range(10_000):
            log.request(f"c{number}", title=f"Call {number}")
        await journal.append(log.envelopes)
        row = await journal.run("r")
        assert row is not None
        assert row.glance is not None
        assert len(row.glance.requested) == KEPT
        assert row.glance.activity == "Call 0"
        settled = Log("r").start()
        for number in range(KEPT):
            settled.say("tool.skipped", call_id=f"c{number}", reason="not_run")
        await journal.append(
            [step._replace(seq=10_000 + step.seq, event_id=f"r:{10_000 + step.seq}") for step in settled.envelopes[1:]]
        )
        assert await glance_of(journal) == (None, None, None)  # of the others nothing is known

    async def test_a_glance_of_the_moment_does_not_change_later(self, journal: Journal) -> None:
        log = Log("r").start().request("c1", title="Look up").say("tool.finished", call_id="c1").envelopes
        await journal.append(log[:2])
        before = await journal.run("r")
        await journal.append(log[2:])
        assert before is not None
        assert shown(before) == ("Look up", None, None)
        assert await glance_of(journal) == (None, None, None)

    async def test_an_erased_run_has_no_glance_and_its_id_tells_nothing(self, journal: Journal) -> None:
        await journal.append(Log("r").start().request().envelopes, origin=Origin(owner="mei"))
        await journal.erase(run_id="r")
        assert await journal.runs() == []
        with pytest.raises(RunErased):
            await journal.run("r")

    async def test_another_scope_sees_no_glance(self, journal: Journal) -> None:
        await journal.append(Log("r").start().request().envelopes, origin=Origin(owner="mei", tenant="acme"))
        for scope in (Scope(owner="leo"), Scope(tenant="other"), Scope(owner="mei", tenant="other")):
            assert await journal.run("r", scope=scope) is None
            assert await journal.runs(scope=scope) == []
        for scope in (Scope(owner="mei"), Scope(tenant="acme")):
            (row,) = await journal.runs(scope=scope)
            assert row.glance == Glance(requested={"c1": "look"})

    # Page by page.

    async def test_a_list_goes_on_after_a_run(self, journal: Journal, reopened: Journal) -> None:
        for n in range(7):
            await journal.append([started(f"r{n}", f"t{n % 2}")], origin=Origin(labels={"n": str(n % 3)}))
        await journal.append([Log("r0").start().end("failed").envelopes[1]])
        pages: list[str] = []
        before: str | None = None
        while page := await reopened.runs(limit=3, before=before):
            pages += [row.run_id for row in page]
            before = page[-1].run_id
        assert pages == ["r6", "r5", "r4", "r3", "r2", "r1", "r0"]

        async def after(before: str, **filters: Any) -> list[str]:
            return [row.run_id for row in await journal.runs(before=before, **filters)]

        assert await after("r5", task_id="t1") == ["r3", "r1"]
        assert await after("r4", task_id="t1") == ["r3", "r1"]  # which matches itself or not
        assert await after("r5", labels={"n": "0"}) == ["r3", "r0"]
        assert await after("r3", status="running") == ["r2", "r1"]
        assert await after("r3", status="failed") == ["r0"]
        assert await after("r0") == []
        assert await after("r3", limit=0) == []

    async def test_a_list_cannot_go_on_after_a_run_that_is_not_there(self, journal: Journal) -> None:
        await journal.append([started("a")], origin=Origin(owner="mei"))
        await journal.append([started("b")], origin=Origin(owner="leo"))
        await journal.append([started("gone")])
        await journal.erase(run_id="gone")
        await journal.lease("leased", 60.0)
        for unknown in ("never", "leased", "x" * 65, "a\0"):
            with pytest.raises(RunNotFound):
                await journal.runs(before=unknown)
        with pytest.raises(RunErased):
            await journal.runs(before="gone")
        for hidden in ("b", "gone"):
            with pytest.raises(RunNotFound):
                await journal.runs(before=hidden, scope=Scope(owner="mei"))
        assert [row.run_id for row in await journal.runs(before="b")] == ["a"]

    # From a task to its newest run.

    async def test_the_newest_run_of_each_task_is_named_at_once(self, journal: Journal, reopened: Journal) -> None:
        for run_id, task_id, owner in (
            ("a", "t1", "mei"),
            ("b", "t2", "mei"),
            ("a.2", "t1", "mei"),
            ("x", "t1", "leo"),
        ):
            await journal.append([started(run_id, task_id)], origin=Origin(owner=owner))
        assert await reopened.newest(["t1", "t2", "none"]) == {"t1": "x", "t2": "b"}
        assert await journal.newest(["t1", "t2"], scope=Scope(owner="mei")) == {"t1": "a.2", "t2": "b"}
        assert await journal.newest(["t2"], scope=Scope(owner="leo")) == {}
        assert await journal.newest([]) == {}

    async def test_paused_runs_are_followed_to_what_continues_them(self, journal: Journal) -> None:
        paused = Log("a").start(task_id="t1").ask(call_id=None).end("paused").envelopes
        await journal.append(paused, origin=Origin(owner="mei"))
        await journal.append([started("other", "t2")])
        assert await continued(journal, await journal.runs()) == {}
        await journal.append(Log("a.2").start(resumed_from="a", task_id="t1").envelopes, origin=Origin(owner="mei"))
        await journal.append([started("theirs", "t1")], origin=Origin(owner="leo"))
        assert await continued(journal, await journal.runs()) == {"a": "theirs"}
        rows = await journal.runs(scope=Scope(owner="mei"))
        assert await continued(journal, rows, Scope(owner="mei")) == {"a": "a.2"}
