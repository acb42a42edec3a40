"""Live tails: what is stored and what is still to come, each envelope once and in order."""

from __future__ import annotations

import asyncio

import pytest

from agents_progress.errors import JournalClosed, RunErased
from agents_progress.events import Envelope
from agents_progress.journal import Journal, Origin
from agents_progress.journal.base import Scope
from agents_progress.testing.contract.logs import followed, started, ticks, whole


async def write(journal: Journal, log: list[Envelope], size: int = 3) -> None:
    """Append a log in small batches, pausing in between, and seal it."""
    for start in range(0, len(log), size):
        await journal.append(log[start : start + size])
        await asyncio.sleep(0.002 if start % 2 else 0)
    await journal.seal(log[0].run_id)


class Tailing:
    """What :meth:`Journal.tail` promises."""

    async def test_a_tail_gives_what_is_stored_and_ends_with_a_sealed_run(self, journal: Journal) -> None:
        log = ticks("r", 1, 20)
        await journal.append(log)
        await journal.seal("r")
        assert await followed(journal.tail("r")) == log
        assert await followed(journal.tail("r", 12)) == log[12:]
        assert await followed(journal.tail("r", -3)) == log
        assert await followed(journal.tail("r", 20)) == []
        assert await followed(journal.tail("r", 10**30)) == []

    async def test_a_tail_waits_at_the_end_of_a_run_that_is_not_sealed(self, journal: Journal) -> None:
        log = ticks("r", 1, 3)
        await journal.append(log)
        waiting = asyncio.ensure_future(followed(journal.tail("r")))
        done, _ = await asyncio.wait([waiting], timeout=0.2)
        assert not done
        await journal.append(ticks("r", 4, 4))
        await journal.seal("r")
        assert await waiting == ticks("r", 1, 4)

    async def test_tails_that_start_while_the_run_is_written_miss_and_repeat_nothing(self, journal: Journal) -> None:
        log = ticks("r", 1, 120)
        writing = asyncio.ensure_future(write(journal, log))
        tails = []
        for n in range(40):
            after = n * 3 % 50
            tails.append((after, asyncio.ensure_future(followed(journal.tail("r", after)))))
            await asyncio.sleep(0.001 if n % 3 else 0)
        await writing
        for after, tail in tails:
            assert await tail == log[after:]

    async def test_a_tail_on_another_node_sees_every_append(self, journal: Journal, reopened: Journal) -> None:
        log = ticks("r", 1, 60)
        tails = [asyncio.ensure_future(followed(reopened.tail("r", after))) for after in (0, 0, 7, 59)]
        await asyncio.sleep(0.01)
        await write(journal, log)
        tails.append(asyncio.ensure_future(followed(reopened.tail("r"))))
        assert await asyncio.gather(*tails) == [log, log, log[7:], log[59:], log]

    async def test_a_tail_waits_for_a_run_that_nobody_knows_yet(self, journal: Journal, reopened: Journal) -> None:
        tails = [asyncio.ensure_future(followed(node.tail("r"))) for node in (journal, reopened)]
        await asyncio.sleep(0.05)
        await write(journal, ticks("r", 1, 5))
        assert await asyncio.gather(*tails) == [ticks("r", 1, 5)] * 2

    async def test_the_envelopes_of_other_runs_stay_with_them(self, journal: Journal) -> None:
        names = ["r", "R", "r.2", "rr"]
        tails = [asyncio.ensure_future(followed(journal.tail(name))) for name in names]
        await asyncio.gather(*(write(journal, ticks(name, 1, 20, of=name), 1 + n) for n, name in enumerate(names)))
        assert await asyncio.gather(*tails) == [ticks(name, 1, 20, of=name) for name in names]

    async def test_a_tail_that_is_left_disturbs_nobody(self, journal: Journal) -> None:
        log = ticks("r", 1, 30)
        await journal.append(log[:10])
        staying = asyncio.ensure_future(followed(journal.tail("r")))
        assert await followed(journal.tail("r"), 4) == log[:4]
        leaving = [asyncio.ensure_future(followed(journal.tail("r"))) for _ in range(5)]
        await asyncio.sleep(0.02)
        for tail in leaving:
            tail.cancel()
        await asyncio.gather(*leaving, return_exceptions=True)
        await write(journal, log[10:])
        assert await staying == log

    async def test_a_tail_that_is_slow_still_gets_everything(self, journal: Journal) -> None:
        log = ticks("r", 1, 2500)
        await journal.append(log[:1500])
        given: list[Envelope] = []
        async with asyncio.timeout(30):
            async for step in journal.tail("r"):
                given.append(step)
                if step.seq == 700:
                    await journal.append(log[1500:])
                    await journal.seal("r")
        assert given == log

    async def test_tails_of_other_threads_are_told_too(self, journal: Journal) -> None:
        def elsewhere() -> list[Envelope]:
            async def main() -> list[Envelope]:
                return await followed(journal.tail("r"))

            return asyncio.run(main())

        threads = [asyncio.ensure_future(asyncio.to_thread(elsewhere)) for _ in range(3)]
        await write(journal, ticks("r", 1, 40))
        assert await asyncio.gather(*threads) == [ticks("r", 1, 40)] * 3

    async def test_a_batch_reaches_a_tail_whole_or_not_at_all(self, journal: Journal) -> None:
        await journal.append(ticks("r", 1, 2))
        tail = asyncio.ensure_future(followed(journal.tail("r")))
        bad = [*ticks("r", 3, 4), ticks("r", 5, 5)[0]._replace(payload={"a": object()})]
        await asyncio.gather(journal.append(ticks("other", 1, 1)), return_exceptions=True)
        try:
            await journal.append(bad)
        except Exception:
            await journal.append(ticks("r", 3, 5))
        await journal.seal("r")
        assert [step.seq for step in await tail] == [1, 2, 3, 4, 5]

    async def test_only_the_own_tails_see_a_run(self, journal: Journal, reopened: Journal) -> None:
        foreign = [
            asyncio.ensure_future(followed(node.tail("r", scope=scope)))
            for node in (journal, reopened)
            for scope in (Scope(owner="bo"), Scope(tenant="b"), Scope(owner="mei", tenant="b"))
        ]
        own = [
            asyncio.ensure_future(followed(node.tail("r", scope=scope)))
            for node in (journal, reopened)
            for scope in (Scope(owner="mei"), Scope(tenant="a"), Scope(owner="mei", tenant="a"))
        ]
        await journal.append([started("r")], origin=Origin(owner="mei", tenant="a"))
        await journal.append(ticks("r", 2, 3))
        await journal.seal("r")
        assert await asyncio.gather(*own) == [[started("r"), *ticks("r", 2, 3)]] * 6
        done, waiting = await asyncio.wait(foreign, timeout=0.2)
        assert not done
        for tail in waiting:
            tail.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    async def test_a_tail_in_progress_ends_when_its_run_is_erased(self, journal: Journal, reopened: Journal) -> None:
        await journal.append([started("r")], origin=Origin(owner="mei"))
        await journal.append(ticks("other", 1, 1))
        tails = [
            asyncio.ensure_future(followed(node.tail("r", after, scope=scope)))
            for node in (journal, reopened)
            for scope in (Scope(), Scope(owner="mei"))
            for after in (0, 1)
        ]
        await asyncio.sleep(0.2)
        other = asyncio.ensure_future(followed(journal.tail("other")))
        await journal.erase(run_id="r")
        answers = await asyncio.gather(*tails, return_exceptions=True)
        assert [type(answer) for answer in answers] == [RunErased] * 8
        await journal.seal("other")
        assert await other == ticks("other", 1, 1)

    async def test_closing_ends_live_tails(self, journal: Journal) -> None:
        await journal.append(ticks("r", 1, 2))
        tails = [asyncio.ensure_future(followed(journal.tail(run_id))) for run_id in ("r", "unknown")]
        await asyncio.sleep(0.1)
        assert await whole(journal, "r") == ticks("r", 1, 2)
        await journal.close()
        assert await asyncio.gather(*tails) == [ticks("r", 1, 2), []]
        with pytest.raises(JournalClosed):
            await followed(journal.tail("r"))
