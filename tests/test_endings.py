"""Every situation of the scenario table, driven through the real client and models inside `@progress.inside`: the very
same user code that runs bare in `test_scenarios.py` must end as the table says, with exactly one `run.ended` where an
ending is known.
"""

from __future__ import annotations

import asyncio

import pytest

import compat.scenarios  # noqa: F401 - importing them fills the table
from agents_progress import progress
from agents_progress.journal import MemoryJournal
from agents_progress.view import RunView
from compat.registry import SCENARIOS, Scenario
from compat.stage import Stage

PATIENCE = 5.0
"""Seconds a run may go on after its scenario's own code returned."""


async def newest_run(journal: MemoryJournal) -> str | None:
    rows = await journal.runs(limit=1)
    return rows[0].run_id if rows else None


async def ended(journal: MemoryJournal) -> None:
    while True:
        rows = await journal.runs()
        if rows and all(row.standing.ended for row in rows):
            return
        await asyncio.sleep(0.01)


async def play(scenario: Scenario, journal: MemoryJournal) -> BaseException | None:
    @progress.inside(journal=journal)
    async def body() -> None:
        await scenario.play(Stage())

    task = asyncio.ensure_future(body())
    done, _ = await asyncio.wait({task}, timeout=10)
    assert done, "the scenario's own code hangs"
    return task.exception() if not task.cancelled() else asyncio.CancelledError()


@pytest.mark.parametrize("name", SCENARIOS)
async def test_the_ending_is_the_one_in_the_table(name: str) -> None:
    scenario = SCENARIOS[name]
    journal = MemoryJournal()
    await play(scenario, journal)
    patience = 0.5 if scenario.outcome == "none" else PATIENCE
    try:
        await asyncio.wait_for(ended(journal), patience)
    except TimeoutError:
        assert scenario.outcome == "none", "no ending was recorded"
    run_id = await newest_run(journal)
    assert run_id is not None
    log = await journal.read(run_id, limit=100_000)
    view = RunView(run_id)
    for envelope in log:
        view.feed(envelope.to_json())
    endings = [envelope for envelope in log if envelope.type == "run.ended"]
    if scenario.outcome == "none":
        assert not endings
        return
    assert [envelope.payload["outcome"] for envelope in endings] == [scenario.outcome]
    assert view.issues == []
