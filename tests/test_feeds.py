"""The shared feed of a run: what each reader gets, what is done once for all of them, and how it ends."""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from pydantic_core import to_json

from agents_progress.errors import JournalUnavailable
from agents_progress.events import Envelope
from agents_progress.journal import MemoryJournal, Origin
from agents_progress.journal.base import EVERYTHING, RunRow, Scope
from agents_progress.server import feeds, frames
from agents_progress.server.feeds import Ending, Feed, Hub, Reader
from agents_progress.sse import Decoder, Frame
from agents_progress.testing.contract.logs import started, ticks, viewed

SOON = 10.0


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(SOON):
        while not holds():
            await asyncio.sleep(0.001)


async def everything(reader: Reader, upto: int | None = None) -> list[Frame]:
    """What a reader takes until it ends, or until it has an envelope."""
    decoder, frames = Decoder(), []
    async with asyncio.timeout(SOON):
        while reader.ending is None and (upto is None or reader.seq < upto):
            frames += decoder.feed(await reader.take())
    return frames


def seqs(frames: list[Frame]) -> list[int]:
    return [int(frame.id) for frame in frames]


def the_feed(hub: Hub) -> Feed:
    (feed,) = hub._feeds.values()
    return feed


class Counting(MemoryJournal):
    """Counts what is asked of it, and is away when told so."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[int] = []
        self.tails = 0
        self.away = False

    async def read(
        self, run_id: str, after_seq: int = 0, limit: int = 1000, *, scope: Scope = EVERYTHING
    ) -> list[Envelope]:
        self.reads.append(after_seq)
        if self.away:
            raise JournalUnavailable("away; wait")
        return await super().read(run_id, after_seq, limit, scope=scope)

    async def run(self, run_id: str, *, scope: Scope = EVERYTHING) -> RunRow | None:
        if self.away:
            raise JournalUnavailable("away; wait")
        return await super().run(run_id, scope=scope)

    async def tail(self, run_id: str, after_seq: int = 0, *, scope: Scope = EVERYTHING) -> AsyncIterator[Envelope]:  # type: ignore[override]
        self.tails += 1
        try:
            async for envelope in super().tail(run_id, after_seq, scope=scope):
                if self.away:
                    raise JournalUnavailable("away; wait")
                yield envelope
        finally:
            self.tails -= 1


@pytest.fixture
def counting() -> Counting:
    return Counting()


@pytest.fixture(autouse=True)
async def nothing_is_left_running() -> AsyncIterator[None]:
    before = asyncio.all_tasks()
    yield
    await until(lambda: asyncio.all_tasks() - before <= {asyncio.current_task()})


# What is done once.


async def test_an_envelope_is_encoded_once_for_fifty_readers(
    journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[int] = []

    def counted(envelope: Envelope) -> bytes:
        encoded.append(envelope.seq)
        return encode_envelope(envelope)

    encode_envelope = frames.encode_envelope
    monkeypatch.setattr(frames, "encode_envelope", counted)
    hub = Hub(journal)

    async def read() -> list[int]:
        with hub.reading("r") as reader:
            return seqs(await everything(reader))

    readers = [asyncio.create_task(read()) for _ in range(50)]
    await until(lambda: hub.readers("r") == 50)
    for start in range(1, 301, 10):
        await journal.append(ticks("r", start, start + 9))
        await asyncio.sleep(0)
    await journal.seal("r")
    assert await asyncio.gather(*readers) == [list(range(1, 301))] * 50
    assert encoded == list(range(1, 301))


async def test_readers_at_the_same_place_share_the_reading_of_the_journal(counting: Counting) -> None:
    await counting.append(ticks("r", 1, 1000))
    await counting.seal("r")
    hub = Hub(counting)

    async def read(after: int) -> list[int]:
        with hub.reading("r", after) as reader:
            return seqs(await everything(reader))

    cursors = [0, 0, *range(30)]
    given = await asyncio.gather(*(read(after) for after in cursors))
    assert given == [list(range(after + 1, 1001)) for after in cursors]
    assert len(counting.reads) <= 30 + 2 * (1000 // feeds.PAGE + 1)  # each by itself, it would be 250


async def test_frames_that_gather_are_taken_together(journal: MemoryJournal) -> None:
    hub, takes = Hub(journal), [0] * 200

    async def read(number: int) -> list[int]:
        frames, decoder = [], Decoder()
        with hub.reading("r") as reader:
            while reader.ending is None:
                if chunk := await reader.take():
                    takes[number] += 1
                    frames += decoder.feed(chunk)
        return seqs(frames)

    readers = [asyncio.create_task(read(number)) for number in range(200)]
    await until(lambda: hub.readers("r") == 200)
    for seq in range(1, 201):
        await journal.append(ticks("r", seq, seq))
        for _ in range(3):
            await asyncio.sleep(0)
    await journal.seal("r")
    assert await asyncio.gather(*readers) == [list(range(1, 201))] * 200
    assert max(takes) < 100  # one by one it would be 200


# Behind, and near again.


async def test_a_reader_that_lags_goes_through_the_journal_and_comes_back_with_nothing_lost_or_doubled(
    counting: Counting,
) -> None:
    await counting.append([started("r")])
    hub = Hub(counting, kept=16)
    with hub.reading("r", 1) as slow, hub.reading("r", 1) as quick:
        await until(lambda: the_feed(hub).kept.head == 1)
        following = asyncio.create_task(everything(quick, 600))
        await counting.append(ticks("r", 2, 3))
        given = seqs(await everything(slow, 3))
        for seq in range(4, 601):
            await counting.append(ticks("r", seq, seq))
            if not seq % 4:
                await until(lambda: quick.seq >= seq)  # noqa: B023 - waited for at once
        assert seqs(await following) == list(range(2, 601))
        assert (hub.counts.lags, slow.seq) == (0, 3)
        given += seqs(await everything(slow, 600))
        assert (hub.counts.lags, hub.counts.lagged) == (1, 597)
        counting.reads.clear()
        for seq in range(601, 651):
            await counting.append(ticks("r", seq, seq))
            given += seqs(await everything(slow, seq))
        assert given == list(range(2, 651))
        assert counting.reads == []


@pytest.mark.parametrize("seed", range(5))
async def test_readers_that_come_and_go_at_random_each_have_the_exact_log(journal: MemoryJournal, seed: int) -> None:
    hub, last, rng = Hub(journal, kept=32), 3000, random.Random(seed)

    async def read(rng: random.Random) -> list[int]:
        given: list[int] = []
        decoder = Decoder()
        while True:
            with hub.reading("r", given[-1] if given else 0) as reader:
                for _ in range(rng.randrange(1, 60)):
                    given += seqs(decoder.feed(await reader.take()))
                    if reader.ending is Ending.SEALED:
                        return given
                    if rng.random() < 0.1:
                        await asyncio.sleep(rng.random() * 0.01)
            await asyncio.sleep(rng.random() * 0.005)

    readers = [asyncio.create_task(read(random.Random(rng.random()))) for _ in range(30)]
    seq = 0
    while seq < last:
        size = min(rng.choice([1, 1, 2, 5, 80]), last - seq)
        await journal.append(ticks("r", seq + 1, seq + size))
        seq += size
        await asyncio.sleep(rng.random() * 0.002)
    await journal.seal("r")
    for given in await asyncio.gather(*readers):
        assert given == list(range(1, last + 1))
    assert hub.readers() == 0
    assert hub.watched == frozenset()


async def test_what_a_feed_keeps_is_bounded_in_frames_and_in_bytes(journal: MemoryJournal) -> None:
    hub = Hub(journal, kept=100, kept_bytes=40_000)
    await journal.append([started("r")])
    with hub.reading("r", 1) as reader:
        feed = the_feed(hub)
        await until(lambda: feed.kept.head == 1)
        for first, size in ((2, 10), (502, 3000)):
            await journal.append(ticks("r", first, first + 499, text="x" * size))
            await until(lambda: feed.kept.head >= first + 499)  # noqa: B023 - waited for at once
            assert len(feed.kept._frames) <= 100
            assert sum(map(len, feed.kept._frames)) == feed.kept._bytes <= 40_000
            assert feed.kept.head - feed.kept.first + 1 == len(feed.kept._frames)
            for seq in range(feed.kept.first - 1, feed.kept.head):
                assert feed.kept.after(seq).seq > seq
            assert len(feed.kept._joined) <= frames.JOINS
        assert seqs(await everything(reader, 1001)) == list(range(2, 1002))


@pytest.mark.parametrize("behind", [False, True])
async def test_frames_are_joined_into_chunks_of_a_bounded_size(journal: MemoryJournal, behind: bool) -> None:
    hub, sizes, chunks = Hub(journal), {40: 200_000, 41: 100}, []
    log = [ticks("r", seq, seq, text="x" * sizes.get(seq, 1000))[0] for seq in range(1, 101)]
    if behind:
        await journal.append(log)
    with hub.reading("r") as reader:
        taking = reader.take()
        if not behind:
            first = asyncio.create_task(taking)
            await until(lambda: the_feed(hub).kept.head == 0)
            await journal.append(log)
            taking = first  # type: ignore[assignment]
        chunks.append(await taking)
        while reader.seq < 100:
            chunks.append(await reader.take())
    assert seqs(Decoder().feed(b"".join(chunks))) == list(range(1, 101))
    large = [chunk for chunk in chunks if len(chunk) > frames.WRITE_BYTES]
    assert [seqs(Decoder().feed(chunk)) for chunk in large] == [[40]]
    assert len(chunks) < 10


async def test_news_that_comes_while_the_journal_is_asked_wakes_all_who_share_its_empty_answer(
    journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, answer, answers, run, read = asyncio.Event(), asyncio.Event(), [], journal.run, journal.read

    async def later(*place: Any, **scope: Any) -> Any:
        await begin.wait()
        return await run(*place, **scope)

    async def slow(*place: Any, **scope: Any) -> Any:
        answers.append(await read(*place, **scope))
        await answer.wait()
        return answers[-1]

    await journal.append(ticks("r", 1, 3))
    monkeypatch.setattr(journal, "run", later)
    monkeypatch.setattr(journal, "read", slow)
    hub = Hub(journal)
    with hub.reading("r", 3) as early, hub.reading("r", 3) as late:
        first = asyncio.create_task(everything(early, 5))
        await until(lambda: answers)
        await journal.append(ticks("r", 4, 5))
        begin.set()
        await until(lambda: the_feed(hub).kept.head == 5)
        second = asyncio.create_task(everything(late, 5))
        await asyncio.sleep(0)
        assert answers == [[]]
        answer.set()
        assert [seqs(await first), seqs(await second)] == [[4, 5], [4, 5]]


async def test_pages_of_large_envelopes_become_short(counting: Counting) -> None:
    await counting.append(ticks("r", 1, 400, text="x" * 20_000))
    await counting.seal("r")
    hub = Hub(counting)
    with hub.reading("r") as reader:
        assert seqs(await everything(reader)) == list(range(1, 401))
        most = max(later - earlier for earlier, later in itertools.pairwise(counting.reads[-20:]))
        assert most * 20_000 <= feeds.PAGE_BYTES


# How it ends.


async def test_a_sealed_log_ends_after_its_last_envelope(journal: MemoryJournal) -> None:
    await journal.append(ticks("r", 1, 5))
    hub = Hub(journal)
    with hub.reading("r") as early, hub.reading("r", 5) as waiting:
        assert seqs(await everything(early, 5)) == [1, 2, 3, 4, 5]
        both = [asyncio.create_task(everything(reader)) for reader in (early, waiting)]
        await journal.append(ticks("r", 6, 6))
        await journal.seal("r")
        assert [seqs(frames) for frames in await asyncio.gather(*both)] == [[6], [6]]
        assert early.ending is waiting.ending is Ending.SEALED
    with hub.reading("r", 6) as late:
        assert await everything(late) == []


async def test_an_erased_run_ends_for_all_who_read_it(journal: MemoryJournal) -> None:
    await journal.append(ticks("r", 1, 500))
    hub = Hub(journal)
    with hub.reading("r", 500) as near, hub.reading("r", 0) as behind:
        waiting = asyncio.create_task(everything(near))
        await everything(behind, 1)
        await journal.erase(run_id="r")
        await waiting
        given = seqs(await everything(behind))
        assert given == list(range(behind.seq + 1 - len(given), behind.seq + 1))
        assert near.ending is behind.ending is Ending.ERASED


async def test_a_reader_whose_place_was_pruned_goes_on_from_the_snapshot(journal: MemoryJournal) -> None:
    log = [started("r"), *ticks("r", 2, 300)]
    await journal.append(log)
    await journal.prune("r", 200)
    hub = Hub(journal)
    with hub.reading("r", 50) as reader:
        first, *rest = await everything(reader, 300)
    assert (first.event, first.id) == ("snapshot", "200")
    assert to_json(viewed("r", log[:200])) == first.data.encode()
    assert seqs(rest) == list(range(201, 301))


async def test_a_feed_whose_own_place_was_pruned_goes_on_from_the_snapshot(
    counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    await counting.append([started("r")])
    hub, tail, held = Hub(counting), counting.tail, asyncio.Event()

    async def slow_to_begin(*place: Any, scope: Scope = EVERYTHING) -> AsyncIterator[Envelope]:
        await held.wait()
        async for envelope in tail(*place, scope=scope):
            yield envelope

    monkeypatch.setattr(counting, "tail", slow_to_begin)
    with hub.reading("r", 1) as reader:
        taking = asyncio.create_task(everything(reader, 12))
        await until(lambda: the_feed(hub).kept.head == 1)
        await counting.append(ticks("r", 2, 10))
        await counting.prune("r", 8)
        held.set()
        await until(lambda: the_feed(hub).kept.head == 10)
        await counting.append(ticks("r", 11, 12))
        frames = await taking
    assert [(frame.event, frame.id) for frame in frames[:1]] == [("snapshot", "8")]
    assert seqs(frames[1:]) == [9, 10, 11, 12]


async def test_a_journal_that_comes_back_has_lost_nothing(
    counting: Counting, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(feeds, "RETRY_S", 0.01)
    await counting.append(ticks("r", 1, 300))
    hub = Hub(counting)
    with hub.reading("r", 300) as near, hub.reading("r", 0) as behind:
        await until(lambda: counting.tails == 1)
        counting.away = True
        reading = [asyncio.create_task(everything(reader, 310)) for reader in (near, behind)]
        counting.reads.clear()
        await counting.append(ticks("r", 301, 305))
        await until(lambda: len(counting.reads) > 2 and counting.tails == 0)
        counting.away = False
        await counting.append(ticks("r", 306, 310))
        given = [seqs(frames) for frames in await asyncio.gather(*reading)]
    assert given == [list(range(301, 311)), list(range(1, 311))]
    assert caplog.records == []


async def test_readers_are_told_to_come_back_when_the_journal_stays_away(
    counting: Counting, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(feeds, "RETRY_S", 0.01)
    await counting.append(ticks("r", 1, 300))
    hub = Hub(counting, patience=0.05)
    counting.away = True
    with hub.reading("r", 0) as reader:
        assert await everything(reader) == []
        assert reader.ending is Ending.BYE
    assert caplog.records == []


async def test_several_short_outages_are_not_one_long_one(counting: Counting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(feeds, "RETRY_S", 0.001)
    await counting.append(ticks("r", 1, 1000))
    hub = Hub(counting, patience=0.2)
    with hub.reading("r", 1000) as near, hub.reading("r", 0) as behind:
        await until(lambda: counting.tails == 1)
        given = []
        for seq in range(1001, 1004):
            counting.away = True
            assert await behind.take() == b""
            await counting.append(ticks("r", seq, seq))
            await until(lambda: counting.tails == 0)
            counting.away = False
            given += seqs(await everything(near, seq))
            assert await behind.take() != b""
            await asyncio.sleep(0.15)  # so that the first outage is longer ago than patience lasts
        assert given == [1001, 1002, 1003]
        assert behind.ending is None


async def test_who_comes_back_after_an_outage_is_not_held_up_by_those_who_have_not_left_yet(
    counting: Counting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "RETRY_S", 0.01)
    await counting.append(ticks("r", 1, 5))
    hub = Hub(counting, patience=0)
    counting.away = True
    with hub.reading("r") as staying:
        await everything(staying)
        await until(lambda: the_feed(hub).ending is Ending.BYE)
        counting.away = False
        with hub.reading("r") as back:
            assert seqs(await everything(back, 5)) == [1, 2, 3, 4, 5]
            staying_feed, back_feed = staying._feed, back._feed
            assert staying_feed is not back_feed
            with hub.reading("r", 5):
                assert hub.readers("r") == 2
        assert hub.watched == frozenset()


async def test_news_in_the_middle_of_a_wave_reaches_those_who_were_woken_before_it(
    journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feeds, "SLICE", 1)
    hub = Hub(journal)

    async def read(first: bool) -> list[int]:
        with hub.reading("r") as reader:
            given = seqs(await everything(reader, 1))
            if first:
                await journal.append(ticks("r", 2, 2))
            return given + seqs(await everything(reader, 2))

    readers = [asyncio.create_task(read(number == 5)) for number in range(50)]
    await until(lambda: hub.readers("r") == 50)
    await until(lambda: len(the_feed(hub).waiting) == 50)
    await journal.append(ticks("r", 1, 1))
    assert await asyncio.gather(*readers) == [[1, 2]] * 50


async def test_readers_are_told_to_come_back_when_the_journal_is_closed(
    journal: MemoryJournal, caplog: pytest.LogCaptureFixture
) -> None:
    await journal.append(ticks("r", 1, 3))
    hub = Hub(journal)
    with hub.reading("r", 3) as waiting:
        ending = asyncio.create_task(everything(waiting))
        await until(lambda: the_feed(hub).kept.head == 3)
        await journal.close()
        assert await ending == []
        assert waiting.ending is Ending.BYE
    with hub.reading("r", 0) as late:
        assert await everything(late) == []
        assert late.ending is Ending.BYE
    assert caplog.records == []


async def test_a_fault_of_a_journal_sends_the_readers_away_and_is_logged_by_its_name_alone(
    journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def broken(*place: Any, **scope: Any) -> list[Envelope]:
        raise KeyError("a private value")

    await journal.append(ticks("r", 1, 3))
    monkeypatch.setattr(journal, "read", broken)
    hub = Hub(journal)
    with hub.reading("r") as reader:
        assert await everything(reader) == []
        assert reader.ending is Ending.BYE
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert record.getMessage() == "the feed of run r broke off with KeyError; its readers come back"
    assert record.exc_info is None


# Its life.


async def test_a_feed_lives_as_long_as_it_has_readers(counting: Counting) -> None:
    await counting.append(ticks("a", 1, 1))
    await counting.append(ticks("b", 1, 1))
    hub = Hub(counting)
    with hub.reading("a", 1) as first:
        with hub.reading("a", 1), hub.reading("b", 1):
            await until(lambda: counting.tails == 2)
            assert (hub.readers(), hub.readers("a"), hub.readers("b"), hub.readers("c")) == (3, 2, 1, 0)
            assert hub.watched == {"a", "b"}
        await until(lambda: counting.tails == 1)
        assert hub.watched == {"a"}
        await counting.append(ticks("a", 2, 2))
        assert seqs(await everything(first, 2)) == [2]
    await until(lambda: counting.tails == 0)
    assert (hub.readers(), hub.watched) == (0, frozenset())


async def test_a_reader_sees_what_its_scope_shows_and_nothing_else(journal: MemoryJournal) -> None:
    await journal.append(ticks("r", 1, 3), origin=Origin(owner="ann"))
    hub = Hub(journal)
    with hub.reading("r", scope=Scope(owner="ann")) as ann, hub.reading("r", scope=Scope(owner="bob")) as bob:
        spying = asyncio.create_task(everything(bob))
        assert seqs(await everything(ann, 3)) == [1, 2, 3]
        await journal.append(ticks("r", 4, 4))
        assert seqs(await everything(ann, 4)) == [4]
        await until(lambda: hub.readers("r") == 2)
        bob.end(Ending.CLOSED)
        assert await spying == []


async def test_every_reader_gets_what_is_there_before_it_is_told_to_come_back(journal: MemoryJournal) -> None:
    await journal.append(ticks("r", 1, 3))
    hub = Hub(journal)
    with hub.reading("r", 3) as near, hub.reading("r", 3) as slow:
        await until(lambda: the_feed(hub).kept.head == 3)
        waiting = asyncio.create_task(everything(near))
        await journal.append(ticks("r", 4, 9))
        await until(lambda: near.seq == 9)
        hub.say_bye()
        await waiting
        assert near.ending is Ending.BYE
        assert slow.ending is None
        assert seqs(await everything(slow)) == [4, 5, 6, 7, 8, 9]
        assert slow.ending is Ending.BYE
    with hub.reading("r") as late:
        assert late.ending is Ending.BYE


async def test_closing_waits_for_the_readers_to_leave(journal: MemoryJournal) -> None:
    await journal.append(ticks("r", 1, 3))
    hub, left = Hub(journal), []

    async def read() -> None:
        with hub.reading("r", 3) as reader:
            await everything(reader)
            await asyncio.sleep(0.02)
        left.append(reader)

    readers = [asyncio.create_task(read()) for _ in range(3)]
    await until(lambda: hub.readers() == 3)
    async with asyncio.timeout(SOON):
        await hub.close()
    assert hub.readers() == 0
    await asyncio.gather(*readers)
    assert len(left) == 3


async def test_one_hub_serves_the_event_loops_of_several_threads(journal: MemoryJournal) -> None:
    await journal.append(ticks("r", 1, 3))
    hub = Hub(journal)

    async def read() -> tuple[list[int], Ending | None]:
        with hub.reading("r") as reader:
            return seqs(await everything(reader)), reader.ending

    threads = [asyncio.create_task(asyncio.to_thread(asyncio.run, read())) for _ in range(3)]
    await until(lambda: hub.readers("r") == 3)
    await journal.append(ticks("r", 4, 6))
    await until(lambda: all(reader.seq == 6 for feed in hub._feeds.values() for reader in feed.readers))
    hub.say_bye()
    assert await asyncio.gather(*threads) == [([1, 2, 3, 4, 5, 6], Ending.BYE)] * 3
