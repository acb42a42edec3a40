"""Snapshots that an owner keeps for readers on other nodes: when, how many, and that nothing waits for them."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from agents import Agent
from staging import Prebuilt, message_item, response_completed, response_created, started, stored, text_delta

from agents_progress import RunView, snapshots
from agents_progress.journal import MemoryJournal
from agents_progress.run import Run


class Watched(MemoryJournal):
    """A journal that others read, and that notes which snapshots it was given."""

    lease_s = 60.0

    def __init__(self) -> None:
        super().__init__()
        self.kept: list[int] = []
        self.let_go = asyncio.Event()
        self.let_go.set()
        self.error: Exception | None = None

    async def keep_snapshot(self, run_id: str, snapshot: Mapping[str, Any]) -> None:
        await self.let_go.wait()
        if self.error is not None:
            raise self.error
        await super().keep_snapshot(run_id, snapshot)
        self.kept.append(snapshot["seq"])


def long(count: int, journal: MemoryJournal, **options: Any) -> Run:
    """A run of about so many envelopes."""
    deltas = [text_delta("x") for _ in range(count)]
    events = [response_created()]
    for place in range(0, count, 500):
        events += [*deltas[place : place + 500], None]
    item = message_item("x" * count)
    model = Prebuilt([*events, response_completed(item)])
    return started(Agent(name="A", model=model), journal=journal, coalesce=None, **options)


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshots, "EVERY", 1000)
    monkeypatch.setattr(snapshots, "WORTH_IT", 100)


async def test_a_long_run_keeps_snapshots_on_its_way_and_one_of_its_end(small: None) -> None:
    journal = Watched()
    run = long(3500, journal, verify=lambda output: True)
    assert (await run).accepted
    await run.closed()
    log = await stored(journal, run.id)
    assert journal.kept == sorted(journal.kept) and 3 <= len(journal.kept) <= 5 and journal.kept[-1] == len(log.types)
    snapshot = await journal.snapshot(run.id)
    assert snapshot == run.view.snapshot() == log.view.snapshot(), "the verdict included"


async def test_a_snapshot_on_the_way_can_be_gone_on_from(small: None) -> None:
    journal = Watched()
    run = long(2500, journal)
    async for _ in run:
        if journal.kept:
            break
    snapshot = await journal.snapshot(run.id)
    assert snapshot is not None
    await run
    view = RunView.from_snapshot(snapshot)
    for later in await journal.read(run.id, snapshot["seq"], 10_000):
        view.feed(later)
    assert view.issues == [] and view.snapshot()["texts"] == run.view.snapshot()["texts"]


@pytest.mark.parametrize("count", [10, 90])
async def test_a_short_run_keeps_none(small: None, count: int) -> None:
    journal = Watched()
    run = long(count - 10, journal)
    await run
    await run.closed()
    assert journal.kept == [] and await journal.snapshot(run.id) is None


async def test_a_journal_of_this_process_alone_is_given_none(small: None) -> None:
    journal = MemoryJournal()
    run = long(2500, journal)
    await run
    await run.closed()
    assert await journal.snapshot(run.id) is None


async def test_a_snapshot_that_hangs_delays_neither_the_events_nor_the_outcome(small: None) -> None:
    journal = Watched()
    journal.let_go.clear()
    run = long(5000, journal)
    seen = [envelope.type async for envelope in run]
    assert (await run).kind == "succeeded" and seen[-1] == "run.ended" and journal.kept == []
    journal.let_go.set()
    await run.closed()
    assert journal.kept[-1] == len(seen), "the one of the end is kept after all"


async def test_a_snapshot_that_fails_is_logged_and_harms_nothing(small: None, caplog: pytest.LogCaptureFixture) -> None:
    journal = Watched()
    journal.error = OSError("no space left on /secret")
    run = long(2500, journal)
    assert (await run).kind == "succeeded"
    await run.closed()
    assert f"run {run.id}: a snapshot was not kept: OSError" in caplog.text and "secret" not in caplog.text
    row = await journal.run(run.id)
    assert row is not None and row.sealed


async def test_a_view_that_failed_is_not_kept(small: None, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Watched()
    feed_all = RunView.feed_all
    monkeypatch.setattr(RunView, "feed_all", lambda view, batch: 1 / 0 if view.seq else feed_all(view, batch))
    run = long(2500, journal)
    await run
    await run.closed()
    assert journal.kept == []


async def test_a_log_that_broke_keeps_none(small: None) -> None:
    journal = Watched()
    run = long(5000, journal)
    async for _ in run:
        await journal.erase(run_id=run.id)
        break
    assert (await run).kind == "unknown"
    await run.closed()
    assert journal.kept == []
