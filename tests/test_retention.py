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
from reacting import World
from serving import BOB, begun, by_token, done, living, paused, write
from staging import soon

from agents_progress.effects.entry import Stored, Uncertain
from agents_progress.effects.ledger import Ledger
from agents_progress.effects.places import ledger_beside, reactions_beside
from agents_progress.effects.reactions import Entry, Ignored, Known, Quarantined
from agents_progress.effects.reactions.entry import entry_of
from agents_progress.effects.reactions.sqlite import SQLiteReactionStore
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


# What reactions keep.


@pytest.fixture(params=["memory", "sqlite", "postgres"])
async def everywhere(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Journal]:
    """A journal of any store that keeps reactions."""
    url = {"memory": "memory://", "sqlite": f"sqlite:///{tmp_path}/runs.db"}.get(request.param)
    journal = open_journal(url or request.getfixturevalue("store").url)
    yield journal
    reactions_beside(journal).close()
    await journal.close()


class Reacted:
    """A reaction of ada's that is done, in which everything is private, and one of bob's that waits."""

    def __init__(self, journal: Journal) -> None:
        self.kept = reactions_beside(journal)
        self.ada, self.bob = World(journal, self.kept), World(journal, self.kept)
        self.bob.grant = replace(self.ada.grant, id="other", owner="bob")
        self.bob.engine = self.bob.begun()
        self.event = self.ada.event(text="secret", label="secret")

    async def happen(self) -> str:
        self.ada.result = {"say": "secret"}
        task_id = await self.ada.received(**self.event)
        entry = await self.ada.moved(task_id)
        await self.ada.engine.approve(task_id, entry.asked or "", "ann")
        assert (await self.ada.moved(task_id)).state == "done"
        ignored = await self.ada.engine.receive(self.ada.event(event_id="e3", resource="elsewhere"))
        assert ignored == Ignored("resource_not_granted")
        self.waits = await self.bob.ready(event_id="e2", resource="doc/2")
        return task_id

    def entry(self, task_id: str) -> Entry:
        entry = entry_of(self.kept.look(task_id)[0])
        assert entry is not None
        return entry


@pytest.mark.parametrize("which", ["first run", "last run", "task", "owner"])
async def test_erasing_takes_what_a_reaction_keeps_and_leaves_that_there_was_one(
    everywhere: Journal, which: str
) -> None:
    all_of_it = Reacted(everywhere)
    task_id, kept, engine = await all_of_it.happen(), all_of_it.kept, all_of_it.ada.engine
    targets = {"first run": {"run_id": task_id}, "last run": {"run_id": f"{task_id}.2"}, "task": {"task_id": task_id}}
    assert (await erase(everywhere, **targets.get(which, {"owner": "ada"}))).runs == (1 if "run" in which else 2)
    left = all_of_it.entry(task_id)
    assert (left.state, left.erased, left.submits) == ("done", True, 1)
    assert (left.result, left.asked, left.text, left.label, left.resource) == (None, None, "", "", "")
    lines = kept.audit(task_id=task_id)
    assert [line.what for line in lines] == ["received", "prepare", "approve", "submit", "confirm"]
    assert {(line.actor, line.owner, line.tenant) for line in lines} == {(None, None, None)}
    assert [line.owner for line in kept.audit(what="ignored")] == [None if which == "owner" else "ada"]
    assert await engine.receive(all_of_it.event) == Known(task_id)
    assert await engine.receive({**all_of_it.event, "version": "v2"}) == Quarantined(task_id)
    assert all_of_it.entry(all_of_it.waits.task_id) == all_of_it.waits


async def test_erasing_an_owner_stops_what_was_open(everywhere: Journal) -> None:
    world = World(everywhere, reactions_beside(everywhere))
    task_id = await world.approved()
    await erase(everywhere, owner="ada")
    entry = await world.moved(task_id)
    assert (entry.state, entry.erased) == ("stopped", True)
    assert world.target.taken == []


async def test_erasing_reactions_leaves_nothing_of_them_in_the_file(tmp_path: Path) -> None:
    journal = open_journal(f"sqlite:///{tmp_path}/runs.db")
    all_of_it = Reacted(journal)
    await all_of_it.happen()
    await erase(journal, owner="ada")
    all_of_it.kept.close()
    await journal.close()
    assert b"secret" not in (tmp_path / "runs.db").read_bytes()


async def test_where_there_is_no_reaction_no_table_is_made(journal: Journal) -> None:
    await write(journal, done("mine.1"))
    for target in ({"run_id": "mine.1"}, {"task_id": "mine"}, {"owner": "ada"}):
        await erase(journal, **target)
    assert await over(journal, 10) == []
    kept = reactions_beside(journal)
    assert not kept.exists()
    kept.close()


async def test_a_run_stays_when_its_reaction_could_not_be_erased(
    journal: Journal, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*asked: Any) -> Any:
        raise JournalUnavailable("away")

    all_of_it = Reacted(journal)
    task_id = await all_of_it.happen()
    with monkeypatch.context() as patch:
        patch.setattr(all_of_it.kept, "change", away)
        with pytest.raises(JournalUnavailable):
            await erase(journal, run_id=task_id)
    assert await journal.run(task_id) is not None
    await erase(journal, run_id=task_id)
    assert all_of_it.entry(task_id).erased
    all_of_it.kept.close()


async def test_the_runs_of_a_reaction_that_is_open_are_not_over(everywhere: Journal) -> None:
    world = World(everywhere, reactions_beside(everywhere), resubmit_after=None)
    world.target.drops = True
    task_id = await world.approved()
    entry = await world.moved(task_id)
    assert entry.state == "uncertain"
    assert [row.sealed for row in await everywhere.runs()] == [True, True]
    assert await over(everywhere, 10) == []
    await world.engine.resolve(task_id, "give_up", "ann")
    await world.engine.settle()
    assert len(await over(everywhere, 10)) == len(await everywhere.runs())


# Whoever erases.


async def test_the_service_erases_what_the_tools_of_a_run_returned_with_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(life, "SWEEP_S", 0.01)
    journal = open_journal(f"sqlite:///{tmp_path}/runs.db")
    ledger = await recorded(journal)
    all_of_it = Reacted(journal)
    task_id = await all_of_it.happen()
    async with living(runs_app(journal, by_token, erase_after=0.01)):
        await soon(lambda: ledger.entries() == [])
        await soon(lambda: all_of_it.entry(task_id).erased)
    assert ledger.begin(MINE) == Stored(None)
    assert all_of_it.entry(all_of_it.waits.task_id) == all_of_it.waits
    assert await journal.run(all_of_it.waits.task_id) is not None
    ledger.close()
    all_of_it.kept.close()
    await journal.close()


async def test_the_command_erases_what_the_tools_of_a_run_returned_with_the_run(
    tmp_path: Path, command: Command
) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    journal = open_journal(url)
    (await recorded(journal)).close()
    all_of_it = Reacted(journal)
    await all_of_it.happen()
    all_of_it.kept.close()
    await journal.close()
    printed = await asyncio.to_thread(command, "prune", "--older-than", "0s", "--erase", "--journal", url)
    assert printed.out.startswith("4 runs were erased")
    db = sqlite3.connect(tmp_path / "runs.db")
    assert db.execute("SELECT count(*), sum(erased), count(output) FROM progress_effects").fetchone() == (2, 2, 0)
    db.close()
    kept = SQLiteReactionStore(tmp_path / "runs.db")
    assert {entry.erased for entry in map(entry_of, kept.documents(state="done")) if entry} == {True}
    assert [document.name for document in kept.documents(state="ready")] == [all_of_it.waits.task_id]
    kept.close()
    assert b"secret" not in (tmp_path / "runs.db").read_bytes()


# Past their time.


async def test_runs_that_work_or_wait_are_not_over_and_the_silence_of_the_others_is_counted() -> None:
    journal = MemoryJournal()
    await write(journal, begun("works"), sealed=False)
    for log in (paused("waits"), paused("answered"), done("answered.2"), done("ended")):
        await write(journal, log)
    found = await over(journal, 100)
    assert [row.run_id for row, _ in found] == ["ended", "answered.2", "answered"]
    assert all(silent_s == row.silent_s for row, silent_s in found)


async def test_the_silence_of_a_run_that_an_older_release_wrote_is_counted_by_its_owners_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    journal = MemoryJournal()
    await write(journal, done("ended"))
    (row,) = await journal.runs()
    hour_ago = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    changed: dict[str, Any] = {"silent_s": None, "updated_at": hour_ago}

    async def runs(**asked: Any) -> list[Any]:
        return [replace(row, **changed)]

    monkeypatch.setattr(journal, "runs", runs)
    ((_, silent_s),) = await over(journal, 100)
    assert 3600 <= silent_s < 3660
