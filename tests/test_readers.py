"""Readers of a run: they see what is stored, in order, as late as they like, and never slow the run or end it."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import AsyncIterator, Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, function_tool
from staging import (
    Log,
    Prebuilt,
    call_item,
    item_done,
    log_of,
    message_item,
    response_completed,
    response_created,
    scripted,
    soon,
    started,
    stored,
    text_delta,
)

from agents_progress.errors import JournalUnavailable
from agents_progress.journal import Journal, MemoryJournal, open_journal
from agents_progress.log import KEPT
from agents_progress.run import Run
from agents_progress.testing import text, turn, wait

MANY = 3 * KEPT


@function_tool
async def look() -> str:
    return "ok"


WINDOW = 10
READ = (False, True, True, False, False, True, True, False)
"""Which windows of turns have readers: arranged so that turns which cost the SDK more fall to both kinds alike."""


class Turns(Prebuilt):
    """A model of many equal turns, which notes when each was asked for and tells when a window begins."""

    def __init__(self, begin_window: Callable[[bool], None]) -> None:
        super().__init__()
        self.turns = WINDOW * len(READ)
        self.asked: list[float] = []
        self._begin_window = begin_window

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        number = len(self.asked)
        if number < self.turns and not number % WINDOW:
            self._begin_window(READ[number // WINDOW])
        self.asked.append(time.perf_counter())
        yield response_created()
        for _ in range(20):
            yield text_delta("word ")
            await asyncio.sleep(0)
        await asyncio.sleep(0.002)  # what the network and the model take
        item = message_item("word " * 20) if number == self.turns else call_item("look", "{}", f"c{number}")
        yield item_done(item, 1)
        yield response_completed(item)

    def between(self, read: bool) -> float:
        """The median time from one model call to the next, in milliseconds, in windows with or without readers."""
        return 1000 * statistics.median(
            after - before
            for number, (before, after) in enumerate(pairwise(self.asked))
            if READ[number // WINDOW] is read and number % WINDOW not in (0, WINDOW - 1)
        )


async def ratio_with_readers(journal: Journal, options: dict[str, Any]) -> float:
    """One run, half of it with slow and dead readers: their time between model calls over the time without them."""
    slow: list[asyncio.Task[None]] = []
    dead: list[Any] = []

    async def read_slowly() -> None:
        async for _ in run:
            await asyncio.sleep(0.03)

    async def read_once_and_hang() -> None:
        dead.append(reader := aiter(run))
        await anext(reader)
        await asyncio.Event().wait()

    def begin_window(read: bool) -> None:
        for reader in slow:
            reader.cancel()
        if read:
            slow.extend(asyncio.create_task(each()) for each in (read_slowly, read_once_and_hang) for _ in range(4))

    model = Turns(begin_window)
    run = started(Agent(name="A", model=model, tools=[look]), journal=journal, max_turns=100, **options)
    assert (await run).kind == "succeeded"
    begin_window(False)
    await asyncio.gather(*slow, return_exceptions=True)
    assert len(slow) == 32 and all(reader.cancelled() for reader in slow), "none of them came to the end"
    for each in dead:
        await each.aclose()
    alone, read = model.between(read=False), model.between(read=True)
    print(f"between model calls {alone:.2f} ms alone, {read:.2f} ms with readers, ratio {read / alone:.2f}")
    return read / alone


@pytest.mark.parametrize("options", [{}, {"coalesce": None}], ids=["coalesced", "not coalesced"])
@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_slow_and_dead_readers_leave_the_time_between_model_calls_as_it_is(
    kind: str, options: dict[str, Any], tmp_path: Path
) -> None:
    journal: Journal = MemoryJournal() if kind == "memory" else open_journal(f"sqlite:///{tmp_path}/runs.db")
    for _ in range(3):  # a busy machine may spoil a measurement, but readers that hold the run back spoil each
        ratio = await ratio_with_readers(journal, options)
        if ratio <= 1.2:
            break
    assert ratio <= 1.2
    await journal.close()


def long_run(journal: Journal, gate: asyncio.Event | None = None) -> Run:
    """A run of many envelopes, which can be held before its end."""

    class Long(Prebuilt):
        async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
            yield response_created()
            for number in range(MANY):
                yield text_delta(f"{number} ")
                if not number % 16:
                    await asyncio.sleep(0)
            if gate is not None:
                await gate.wait()
            item = message_item("".join(f"{number} " for number in range(MANY)))
            yield item_done(item)
            yield response_completed(item)

    return started(Agent(name="A", model=Long()), journal=journal, coalesce=None)


class Watched(MemoryJournal):
    """Counts what is read of it, and fails to be read when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        self.away = False

    async def read(self, run_id: str, after_seq: int = 0, limit: int = 1000) -> Any:
        self.reads += 1
        if self.away:
            raise JournalUnavailable("the journal cannot be read now")
        return await super().read(run_id, after_seq, limit)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_a_reader_that_begins_after_the_end_sees_everything(kind: str, tmp_path: Path) -> None:
    journal: Journal = MemoryJournal() if kind == "memory" else open_journal(f"sqlite:///{tmp_path}/runs.db")
    run = long_run(journal)
    assert (await run).kind == "succeeded"
    late = await log_of(run)
    assert [envelope.seq for envelope in late.envelopes] == list(range(1, len(late.types) + 1))
    assert late.types.count("text.delta") == MANY and late.types[-1] == "run.ended"
    assert late.view.text == run.view.text == late.ending["final_output"]
    assert late == await stored(journal, run.id)
    await journal.close()


async def test_a_reader_far_behind_reads_from_the_journal_and_memory_stays_bounded() -> None:
    journal, gate = Watched(), asyncio.Event()
    run = long_run(journal, gate)
    behind = aiter(run)
    seen = [await anext(behind)]
    await soon(lambda: run.view.seq >= MANY)
    assert journal.reads == 0 and len(run._owner.log._recent) <= 2 * KEPT
    gate.set()
    seen += [envelope async for envelope in behind]
    assert journal.reads >= 1
    assert [envelope.seq for envelope in seen] == list(range(1, len(seen) + 1)) and seen[-1].type == "run.ended"
    reads = journal.reads
    recent = run._owner.log.read(len(seen) - 10)
    assert [envelope.seq async for envelope in recent] == [envelope.seq for envelope in seen[-10:]]
    assert journal.reads == reads, "who is nearly up to date costs the journal nothing"


async def test_a_reader_whose_reading_fails_does_not_take_the_ending_from_the_run() -> None:
    journal, gate = Watched(), asyncio.Event()
    run = long_run(journal, gate)
    behind = aiter(run)
    await anext(behind)
    await soon(lambda: run.view.seq >= MANY)
    journal.away = True
    left = [envelope async for envelope in behind]
    assert not any(envelope.type == "run.ended" for envelope in left), "it sees no ending, so it shows unknown"
    journal.away = False
    gate.set()
    outcome = await run
    assert (await stored(journal, run.id)).ending["outcome"] == "succeeded"
    assert outcome.kind == "succeeded" and run.view.status == "checking"
    assert (await log_of(run)).ending["outcome"] == "succeeded"


async def test_nothing_is_delivered_before_it_is_stored(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    journal, other = open_journal(url), open_journal(url)
    run = started(scripted(turn(text("one two three four five"))), journal=journal, coalesce=None)
    async for envelope in run:
        assert await other.read(run.id, envelope.seq - 1, 1) == [envelope]
    for each in (journal, other):
        await each.close()


async def test_many_readers_in_all_states_see_one_log(journal: MemoryJournal) -> None:
    gate = asyncio.Event()
    run = started(scripted(turn(text("one ", wait(gate), "two three"))), journal=journal, coalesce=None)

    async def read(number: int) -> Log:
        seen = []
        async for envelope in run:
            seen.append(envelope)
            for _ in range(number % 5):
                await asyncio.sleep(0)
        return Log(seen)

    readers = [asyncio.create_task(read(number)) for number in range(200)]
    await asyncio.sleep(0)
    for reader in readers[::10]:
        reader.cancel()
    gate.set()
    logs = await asyncio.gather(*readers, return_exceptions=True)
    whole = await stored(journal, run.id)
    assert sum(isinstance(log, asyncio.CancelledError) for log in logs) == 20
    assert all(log == whole for log in logs if isinstance(log, Log))


async def test_a_reader_sees_text_within_the_time_of_coalescing_although_nothing_follows() -> None:
    run = started(scripted(turn(text("hel", wait(asyncio.Event())))))
    async with asyncio.timeout(2):
        async for envelope in run:
            if envelope.type == "text.delta":
                assert envelope.payload["text"] == "hel"
                break
    run.cancel()
    await run
