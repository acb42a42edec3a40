"""What every journal promises: one class of tests, run for each backend alike."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agents_progress.errors import AppendConflict, AppendGap, JournalClosed, UnknownJournalURL, UsageError
from agents_progress.events import Envelope
from agents_progress.journal import Journal, MemoryJournal, Origin, open_journal
from agents_progress.journal.sqlite import SQLiteJournal
from tests.logs import OUTPUT, Log, envelope


def ticks(run_id: str, first: int, last: int, **payload: Any) -> list[Envelope]:
    return [envelope(seq, "note.tick", {"n": seq, **payload}, run_id) for seq in range(first, last + 1)]


def started(run_id: str, task_id: str = "task-1", title: str | None = None) -> Envelope:
    payload: dict[str, Any] = {"agent": "A", "task_id": task_id, "parent": None, "resumed_from": None}
    return envelope(1, "run.started", payload if title is None else {**payload, "title": title}, run_id)


async def whole(journal: Journal, run_id: str) -> list[Envelope]:
    return await journal.read(run_id, limit=100_000)


class JournalContract:
    """Subclasses give a fixture ``journal``; none may leave a test out."""

    # Appending and reading.

    async def test_what_was_appended_is_read_back_exactly(self, journal: Journal) -> None:
        odd = {"text": "巡检✓\x00\u2028\n", "numbers": [0, -1, 1.5, 2**60], "none": None, "deep": {"a": [{}]}, "": True}
        log = [*Log("r").start().envelopes, envelope(2, "note.odd", odd, "r")]
        await journal.append(log)
        assert await whole(journal, "r") == log

    async def test_a_cursor_and_a_limit_cut_the_log(self, journal: Journal) -> None:
        log = ticks("r", 1, 30)
        await journal.append(log)
        assert await journal.read("r", after_seq=0, limit=5) == log[:5]
        assert await journal.read("r", after_seq=10, limit=5) == log[10:15]
        assert await journal.read("r", after_seq=28) == log[28:]
        assert await journal.read("r", after_seq=30) == []
        assert await journal.read("r", after_seq=10**30) == []
        assert await journal.read("r", after_seq=-7, limit=2) == log[:2]
        assert await journal.read("r", limit=0) == []

    async def test_paging_by_cursor_gives_the_whole_log(self, journal: Journal) -> None:
        log = ticks("r", 1, 25)
        await journal.append(log)
        pages: list[Envelope] = []
        while page := await journal.read("r", after_seq=len(pages), limit=4):
            pages += page
        assert pages == log

    async def test_an_unknown_run_reads_as_empty(self, journal: Journal) -> None:
        assert await journal.read("nobody") == []
        assert await journal.read("") == []
        await journal.append(ticks("r", 1, 1))
        assert await journal.read("R") == []

    async def test_the_same_batch_again_changes_nothing(self, journal: Journal) -> None:
        log = ticks("r", 1, 5)
        for batch in (log, log, log[1:3], log[4:], log[:1]):
            await journal.append(batch)
        assert await whole(journal, "r") == log
        (row,) = await journal.runs()
        assert row.seq == 5

    async def test_a_batch_that_overlaps_adds_only_what_is_new(self, journal: Journal) -> None:
        log = ticks("r", 1, 8)
        await journal.append(log[:5])
        await journal.append(log[2:8])
        assert await whole(journal, "r") == log

    @pytest.mark.parametrize(
        "change", [{"payload": {"n": 99}}, {"type": "note.tock"}, {"occurred_at": "2026-01-01T00:00:00Z"}]
    )
    async def test_other_content_under_a_stored_number_is_a_conflict(
        self, journal: Journal, change: dict[str, Any]
    ) -> None:
        log = ticks("r", 1, 3)
        await journal.append(log)
        with pytest.raises(AppendConflict):
            await journal.append([log[1]._replace(**change)])
        with pytest.raises(AppendConflict):
            await journal.append([log[2]._replace(**change), *ticks("r", 4, 6)])
        assert await whole(journal, "r") == log

    async def test_a_hole_is_refused(self, journal: Journal) -> None:
        with pytest.raises(AppendGap):
            await journal.append(ticks("r", 2, 3))
        await journal.append(ticks("r", 1, 2))
        with pytest.raises(AppendGap):
            await journal.append(ticks("r", 4, 4))
        assert await whole(journal, "r") == ticks("r", 1, 2)

    async def test_a_run_that_was_refused_whole_does_not_exist(self, journal: Journal) -> None:
        with pytest.raises(AppendGap):
            await journal.append(ticks("r", 5, 6), claim=True)
        assert await journal.runs() == []
        await journal.append(ticks("r", 1, 1), claim=True)

    async def test_a_batch_of_several_runs_or_with_a_hole_is_refused_whole(self, journal: Journal) -> None:
        for batch in (
            [*ticks("r", 1, 2), *ticks("s", 3, 3)],
            [*ticks("r", 1, 1), *ticks("s", 1, 1)],
            [*ticks("r", 1, 1), *ticks("r", 3, 3)],
            [*ticks("r", 1, 1), *ticks("r", 1, 1)],
            [*ticks("r", 2, 2), *ticks("r", 1, 1)],
        ):
            with pytest.raises(UsageError):
                await journal.append(batch)
        assert await journal.runs() == []

    async def test_an_empty_batch_is_nothing(self, journal: Journal) -> None:
        await journal.append([])
        await journal.append([], claim=True)
        assert await journal.runs() == []

    async def test_what_was_read_is_the_readers_own(self, journal: Journal) -> None:
        await journal.append(ticks("r", 1, 2))
        (await whole(journal, "r")).clear()
        assert len(await whole(journal, "r")) == 2

    async def test_the_callers_own_batch_may_be_changed_afterwards(self, journal: Journal) -> None:
        batch = ticks("r", 1, 2)
        await journal.append(batch)
        batch.append(ticks("r", 3, 3)[0])
        assert len(await whole(journal, "r")) == 2

    async def test_an_envelope_that_cannot_be_stored_fails_alone(self, journal: Journal) -> None:
        bad = [envelope(1, "note.bad", {"a": object()}, f"bad-{n}") for n in range(4)]
        good = [ticks(f"good-{n}", 1, 2) for n in range(4)]
        batches = [batch for n in range(4) for batch in ([bad[n]], good[n])]
        await asyncio.gather(*(journal.append(batch) for batch in batches), return_exceptions=True)
        for n in range(4):
            assert await whole(journal, f"good-{n}") == good[n]

    async def test_a_batch_that_cannot_be_understood_leaves_nothing_behind(self, journal: Journal) -> None:
        shapeless = [*ticks("r", 2, 3), envelope(4, "run.ended", {}, "r")]  # made by a faulty producer
        await journal.append(ticks("r", 1, 1))
        for batch in (shapeless, [envelope(1, "run.ended", {}, "new")]):
            with pytest.raises(Exception, match="outcome"):
                await journal.append(batch)
        assert await whole(journal, "r") == ticks("r", 1, 1)
        assert [(row.run_id, row.seq, row.status) for row in await journal.runs()] == [("r", 1, "running")]
        await journal.append(ticks("new", 1, 1), claim=True)
        await journal.append(ticks("r", 2, 2))

    # Claiming.

    async def test_of_two_claims_exactly_one_wins_even_with_the_same_content(self, journal: Journal) -> None:
        for other in (ticks("r", 1, 1), ticks("r", 1, 1, who="b")):
            run_id = f"r-{len(other[0].payload)}"
            first = [step._replace(run_id=run_id) for step in ticks("r", 1, 1)]
            second = [step._replace(run_id=run_id) for step in other]
            answers = await asyncio.gather(
                *(journal.append(batch, claim=True) for batch in (first, second)), return_exceptions=True
            )
            assert answers.count(None) == 1
            assert sum(isinstance(answer, AppendConflict) for answer in answers) == 1
            assert len(await whole(journal, run_id)) == 1

    async def test_of_twenty_claims_exactly_one_wins(self, journal: Journal) -> None:
        claims = [journal.append(ticks("r", 1, 1 + n % 3, who=n), claim=True) for n in range(20)]
        answers = await asyncio.gather(*claims, return_exceptions=True)
        assert answers.count(None) == 1
        assert sum(isinstance(answer, AppendConflict) for answer in answers) == 19
        winner = answers.index(None)
        assert await whole(journal, "r") == ticks("r", 1, 1 + winner % 3, who=winner)

    async def test_a_run_that_exists_cannot_be_claimed(self, journal: Journal) -> None:
        await journal.append(ticks("r", 1, 1))
        with pytest.raises(AppendConflict):
            await journal.append(ticks("r", 1, 1), claim=True)
        with pytest.raises(AppendConflict):
            await journal.append(ticks("r", 2, 2), claim=True)
        await journal.append(ticks("r", 2, 2))

    # Lists of runs.

    async def test_the_newest_run_comes_first_and_the_limit_holds(self, journal: Journal) -> None:
        for n in range(6):
            await journal.append([started(f"r{n}")])
        await journal.append(ticks("r0", 2, 3))
        assert [row.run_id for row in await journal.runs()] == ["r5", "r4", "r3", "r2", "r1", "r0"]
        assert [row.run_id for row in await journal.runs(limit=2)] == ["r5", "r4"]
        assert await journal.runs(limit=0) == []

    async def test_runs_are_filtered_by_task_and_labels_and_status(self, journal: Journal) -> None:
        await journal.append([started("a", "t1")], origin=Origin(labels={"team": "x", "env": "prod"}))
        await journal.append([started("b", "t1")], origin=Origin(labels={"team": "x"}))
        await journal.append([started("c", "t2")], origin=Origin(labels={"team": "y"}))
        await journal.append([envelope(2, "run.ended", {"outcome": "failed", "final_output": None}, "c")])

        async def found(**filters: Any) -> list[str]:
            return [row.run_id for row in await journal.runs(**filters)]

        assert await found(task_id="t1") == ["b", "a"]
        assert await found(task_id="t9") == []
        assert await found(labels={"team": "x"}) == ["b", "a"]
        assert await found(labels={"team": "x", "env": "prod"}) == ["a"]
        assert await found(labels={}) == ["c", "b", "a"]
        assert await found(labels={"team": "z"}) == []
        assert await found(status="failed") == ["c"]
        assert await found(status="running") == ["b", "a"]
        assert await found(status="running", task_id="t1", labels={"env": "prod"}) == ["a"]
        assert await found(status="running", limit=1) == ["b"]

    async def test_the_status_of_a_run_follows_its_log(self, journal: Journal) -> None:
        log = Log("r").say("run.accepted", task_id="t").start().ask(call_id=None)
        log.say("approval.resolved", interaction_id="ask-1", decision="approved").end().check()
        expected = ["accepted", "running", "waiting", "running", "checking", "done"]
        for step, status in zip(log.envelopes, expected, strict=True):
            await journal.append([step])
            (row,) = await journal.runs()
            assert (row.status, row.seq) == (status, step.seq)

    async def test_a_row_of_a_list_is_a_copy_of_its_moment(self, journal: Journal) -> None:
        log = Log("r").start().ask(call_id=None).say("approval.resolved", interaction_id="ask-1", decision="approved")
        await journal.append(log.envelopes[:2])
        (before,) = await journal.runs()
        await journal.append(log.envelopes[2:])
        assert (before.status, before.seq) == ("waiting", 2)

    async def test_a_row_says_what_the_first_batch_said(self, journal: Journal) -> None:
        origin = Origin(owner="mei", tenant="acme", labels={"trace": "巡"}, host="h", pid=7, versions={"p": "1"})
        await journal.append([started("r", "task-9", "Total")], origin=origin)
        await journal.append(ticks("r", 2, 4), origin=Origin(owner="other"))
        (row,) = await journal.runs()
        assert (row.run_id, row.task_id, row.title, row.seq, row.origin) == ("r", "task-9", "Total", 4, origin)
        assert (row.started_at, row.updated_at) == (started("r").occurred_at, ticks("r", 4, 4)[0].occurred_at)
        assert dict(row.labels) == {"trace": "巡"}

    async def test_nothing_of_the_origin_travels_in_an_envelope(self, journal: Journal) -> None:
        await journal.append([started("r")], origin=Origin(owner="mei-secret", labels={"k": "label-secret"}))
        assert "secret" not in repr(await whole(journal, "r"))

    # Many at once.

    async def test_runs_are_kept_apart(self, journal: Journal) -> None:
        await journal.append(ticks("r", 1, 3, of="r"))
        await journal.append(ticks("r.2", 1, 2, of="r.2"))
        with pytest.raises(AppendConflict):
            await journal.append(ticks("r", 1, 3, of="other"))
        assert await whole(journal, "r.2") == ticks("r.2", 1, 2, of="r.2")
        assert len(await journal.runs()) == 2

    async def test_fifty_runs_append_at_once(self, journal: Journal) -> None:
        async def write(run_id: str) -> None:
            await journal.append([started(run_id)], claim=True)
            for first in range(2, 42, 4):
                await journal.append(ticks(run_id, first, first + 3))

        names = [f"run-{n}" for n in range(50)]
        await asyncio.gather(*map(write, names))
        for name in names:
            assert [step.seq for step in await whole(journal, name)] == list(range(1, 42))
        assert {row.run_id: row.seq for row in await journal.runs()} == dict.fromkeys(names, 41)

    async def test_batches_of_one_run_keep_the_order_they_were_asked_in(self, journal: Journal) -> None:
        log = ticks("r", 1, 60)
        await asyncio.gather(*(journal.append([step]) for step in log))
        assert await whole(journal, "r") == log

    async def test_other_threads_and_loops_may_use_it_at_once(self, journal: Journal) -> None:
        def elsewhere(run_id: str) -> list[Envelope]:
            async def main() -> list[Envelope]:
                for seq in range(1, 21):
                    await journal.append(ticks(run_id, seq, seq))
                return await whole(journal, run_id)

            return asyncio.run(main())

        logs = await asyncio.gather(*(asyncio.to_thread(elsewhere, f"r{n}") for n in range(4)))
        assert logs == [ticks(f"r{n}", 1, 20) for n in range(4)]

    async def test_a_caller_that_is_cancelled_leaves_a_whole_log(self, journal: Journal) -> None:
        tasks = [asyncio.ensure_future(journal.append(ticks("r", first, first + 9))) for first in range(1, 101, 10)]
        await asyncio.sleep(0)
        for task in tasks[3:]:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await journal.append(ticks("other", 1, 1))
        log = await whole(journal, "r")
        assert log == ticks("r", 1, len(log))
        assert len(log) >= 30

    # Closing.

    async def test_a_closed_journal_refuses_everything_by_name(self, journal: Journal) -> None:
        await journal.append(ticks("r", 1, 1))
        assert journal.closed is False
        await journal.close()
        await journal.close()
        assert journal.closed is True
        for call in (journal.append(ticks("r", 2, 2)), journal.append([]), journal.read("r"), journal.runs()):
            with pytest.raises(JournalClosed):
                await call

    async def test_an_unused_journal_may_be_closed(self, journal: Journal) -> None:
        await journal.close()
        assert journal.closed

    async def test_closing_finishes_what_was_asked_for(self, journal: Journal) -> None:
        tasks = [asyncio.ensure_future(journal.append(ticks(f"r{n}", 1, 5))) for n in range(10)]
        await asyncio.sleep(0)
        await journal.close()
        assert await asyncio.gather(*tasks) == [None] * 10


class TestMemoryJournal(JournalContract):
    @pytest.fixture
    def journal(self) -> Journal:
        return MemoryJournal()


class TestSQLiteJournal(JournalContract):
    @pytest.fixture
    async def journal(self, tmp_path: Path) -> AsyncIterator[Journal]:
        journal = SQLiteJournal(tmp_path / "runs.db")
        yield journal
        await journal.close()


def test_every_backend_runs_the_whole_contract() -> None:
    tests = [name for name in vars(JournalContract) if name.startswith("test_")]
    assert len(tests) >= 25
    for backend in (TestMemoryJournal, TestSQLiteJournal):
        assert [name for name in vars(backend) if name.startswith("test_")] == []
        assert issubclass(backend, JournalContract)


@pytest.mark.parametrize(
    "url", ["", "runs.db", "mysql://x/y", "sqlite://", "sqlite:///", "sqlite://host/x.db", "memory://x/y"]
)
def test_an_unknown_url_is_refused_and_says_which_are_known(url: str) -> None:
    with pytest.raises(UnknownJournalURL, match="sqlite:///FILE"):
        open_journal(url)


async def test_urls_open_the_backend_they_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert isinstance(open_journal("memory://"), MemoryJournal)
    for url, file in (("sqlite:///a.db", tmp_path / "a.db"), (f"sqlite:///{tmp_path}/b.db", tmp_path / "b.db")):
        journal = open_journal(url)
        assert not file.exists()
        await journal.append(Log("r").start().end(final_output=OUTPUT).envelopes)
        await journal.close()
        assert file.exists()
