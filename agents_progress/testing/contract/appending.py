"""Logs are appended, claimed and read exactly."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agents_progress.errors import AppendConflict, AppendGap, UsageError
from agents_progress.events import Envelope
from agents_progress.journal import Journal
from agents_progress.testing.contract.logs import Log, envelope, ticks, whole


class Appending:
    """What :meth:`Journal.append` and :meth:`Journal.read` promise."""

    async def test_what_was_appended_is_read_back_exactly(self, journal: Journal) -> None:
        odd: dict[str, Any] = {
            "text": "巡检✓\x00\u2028\n",
            "numbers": [0, -1, 1.5, 2**60],
            "none": None,
            "deep": {"a": [{}]},
            "": True,
        }
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
