"""Which runs are past their time, and that erasing them takes what their tools returned with it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from serving import BOB, begun, by_token, done, living, paused, write
from staging import soon

from agents_progress.effects.entry import Stored, Uncertain
from agents_progress.effects.ledger import Ledger
from agents_progress.effects.places import ledger_beside
from agents_progress.errors import JournalUnavailable, RunErased, UsageError
from agents_progress.journal import Journal, MemoryJournal, open_journal
from agents_progress.retention import erase, over
from agents_progress.server import runs_app
from agents_progress.server import service as life
from agents_progress.testing import ledger_contract
from agents_progress.testing.ledger_contract import effect
from tests.commands import Command
from tests.test_postgres_journal import Store, server, store  # noqa: F401 - fixtures

MINE = effect("mine", owner="ada", run_id="mine.1", task_id="mine")
OTHER = effect("other", owner="bob", run_id="other.1", task_id="other")


@pytest.fixture(params=["sqlite", "postgres"])
async def journal(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Journal]:
    postgres = request.param == "postgres"
    url = request.getfixturevalue("store").url if postgres else f"sqlite:///{tmp_path}/runs.db"
    journal = open_journal(url)
    yield journal
    ledger_beside(journal).close()
    await journal.close()


async def recorded(journal: Journal) -> Ledger:
    """The ledger beside a journal: of ada's run an effect that happened, of bob's one that may have."""
    await write(journal, done("mine.1"))
    await write(journal, done("other.1"), BOB)
    ledger = ledger_beside(journal)
    ledger.succeed(ledger_contract.begun(ledger, MINE), '{"is":"secret"}')
    ledger.give_up(ledger_contract.begun(ledger, OTHER))
    return ledger


# Erasing.


@pytest.mark.parametrize("target", [{"run_id": "mine.1"}, {"task_id": "mine"}, {"owner": "ada"}], ids=str)
async def test_erasing_takes_the_runs_and_what_their_tools_returned_and_nothing_else(
    journal: Journal, target: dict[str, str]
) -> None:
    ledger = await recorded(journal)
    assert (await erase(journal, **target)).runs == 1
    with pytest.raises(RunErased):
        await journal.read("mine.1")
    assert ledger.begin(MINE) == Stored(None)
    assert ledger.begin(OTHER) == Uncertain(1)
    assert [entry.effect for entry in ledger.entries()] == [OTHER]
    assert await journal.run("other.1") is not None
    assert (await erase(journal, **target)).runs == 0


async def test_where_there_is_no_ledger_none_is_made(journal: Journal) -> None:
    await write(journal, done("mine.1"))
    assert (await erase(journal, run_id="mine.1")).runs == 1
    assert not ledger_beside(journal).exists()


@pytest.mark.parametrize("url", ["memory://", "sqlite:///new.db"])
async def test_runs_of_a_store_without_a_ledger_are_erased_all_the_same(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    journal = open_journal(url)
    await write(journal, done("mine.1"))
    assert (await erase(journal, owner="ada")).envelopes == len(done("mine.1").envelopes)
    await journal.close()


async def test_a_run_stays_when_its_outputs_could_not_be_erased(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(**target: str) -> int:
        raise JournalUnavailable("away")

    ledger = await recorded(journal)
    monkeypatch.setattr(ledger, "erase", away)
    with pytest.raises(JournalUnavailable):
        await erase(journal, run_id="mine.1")
    assert await journal.run("mine.1") is not None
    monkeypatch.undo()
    assert (await erase(journal, run_id="mine.1")).runs == 1
    assert ledger.begin(MINE) == Stored(None)


@pytest.mark.parametrize("target", [{}, {"run_id": "mine.1", "owner": "ada"}], ids=str)
async def test_what_is_to_be_erased_is_named_once(journal: Journal, target: dict[str, str]) -> None:
    ledger = await recorded(journal)
    for each in (journal, MemoryJournal()):
        with pytest.raises(UsageError, match="exactly one"):
            await erase(each, **target)
    assert isinstance(ledger.begin(MINE), Stored)
    assert ledger.begin(MINE).output is not None  # type: ignore[union-attr]


# Whoever erases.


async def test_the_service_erases_what_the_tools_of_a_run_returned_with_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(life, "SWEEP_S", 0.01)
    journal = open_journal(f"sqlite:///{tmp_path}/runs.db")
    ledger = await recorded(journal)
    async with living(runs_app(journal, by_token, erase_after=0.01)):
        await soon(lambda: ledger.entries() == [])
    assert ledger.begin(MINE) == Stored(None)
    ledger.close()
    await journal.close()


async def test_the_command_erases_what_the_tools_of_a_run_returned_with_the_run(
    tmp_path: Path, command: Command
) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    journal = open_journal(url)
    (await recorded(journal)).close()
    await journal.close()
    printed = await asyncio.to_thread(command, "prune", "--older-than", "0s", "--erase", "--journal", url)
    assert printed.out.startswith("2 runs were erased")
    db = sqlite3.connect(tmp_path / "runs.db")
    assert db.execute("SELECT count(*), sum(erased), count(output) FROM progress_effects").fetchone() == (2, 2, 0)
    db.close()
    assert b"secret" not in (tmp_path / "runs.db").read_bytes()


# Past their time.


async def test_runs_that_work_or_wait_are_not_over_and_the_silence_of_the_others_is_counted() -> None:
    journal = MemoryJournal()
    await write(journal, begun("works"), sealed=False)
    for log in (paused("waits"), paused("answered"), done("answered.2"), done("ended")):
        await write(journal, log)
    found = list(over(await journal.runs()))
    assert [row.run_id for row, _ in found] == ["ended", "answered.2", "answered"]
    assert all(silent_s == row.silent_s for row, silent_s in found)


async def test_the_silence_of_a_run_that_an_older_release_wrote_is_counted_by_its_owners_clock() -> None:
    journal = MemoryJournal()
    await write(journal, done("ended"))
    (row,) = await journal.runs()
    hour_ago = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    changed: dict[str, Any] = {"silent_s": None, "updated_at": hour_ago}
    ((_, silent_s),) = over([replace(row, **changed)])
    assert 3600 <= silent_s < 3660
