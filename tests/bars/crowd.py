"""500 runs at once in one process, 50 events/s each, one reader each, on PostgreSQL: what an append and the loop wait,
how many connections it takes, and that no reader misses anything.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any, Final

from agents import Agent, Runner, RunResultStreaming, set_tracing_disabled
from agents.models.interface import Model

from agents_progress import progress
from agents_progress.journal import Journal
from agents_progress.run import Run
from tests.staging import message_item, response_completed, response_created, text_delta

from .figures import Figures, spread
from .places import command, schemas
from .servers import Postgres

RUNS: Final = 500
RATE: Final = 50
"""Events a second of each run."""
SECONDS: Final = 20.0
CONNECTIONS: Final = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'agents_progress'"


class Paced(Model):
    """A delta at each beat of a clock that all models share; one that is late says what it missed at once."""

    def __init__(self, begins: float, deltas: int) -> None:
        self.begins = begins
        self.deltas = deltas

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("this model only streams")

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        yield response_created()
        word = text_delta("word ")
        for number in range(self.deltas):
            await asyncio.sleep(max(self.begins + number / RATE - time.monotonic(), 0))
            yield word
        yield response_completed(message_item("word " * self.deltas))


class Appends:
    """How long appends took."""

    def __init__(self, journal: Journal) -> None:
        self.took: list[float] = []
        self.envelopes = 0
        append = journal.append

        async def timed(envelopes: Any, **options: Any) -> None:
            began = time.perf_counter()
            await append(envelopes, **options)
            self.took.append(time.perf_counter() - began)
            self.envelopes += len(envelopes)

        journal.append = timed  # type: ignore[method-assign]


async def lag(lags: list[float], every: float = 0.02) -> None:
    """By how much the loop is late, again and again."""
    while True:
        due = time.perf_counter() + every
        await asyncio.sleep(every)
        lags.append(time.perf_counter() - due)


async def read(run: Run, late: list[float], begins: float) -> int:
    """How many envelopes one reader was given, and how late each word came."""
    count = words = 0
    async for envelope in run:
        count += 1
        assert envelope.seq == count, "in order, each once"
        if envelope.type == "text.delta":
            late.append(time.monotonic() - begins - words / RATE)
            words += 1
    return count


async def crowd(runs: int, seconds: float, figures: Figures) -> None:
    with Postgres() as server:
        place = schemas(server)()
        journal, deltas = place.journal(), int(seconds * RATE)
        appends, lags, late = Appends(journal), list[float](), list[float]()
        begins = time.monotonic() + 0.3 + runs / 150  # to start a run takes a few milliseconds

        @progress(journal=journal, coalesce=None)
        def work() -> RunResultStreaming:
            return Runner.run_streamed(Agent(name="A", model=Paced(begins, deltas)), "go")

        started = [work() for _ in range(runs)]
        readers = [asyncio.create_task(read(run, late, begins)) for run in started]
        await asyncio.sleep(max(begins - time.monotonic(), 0))
        gc.collect()
        gc.freeze()
        appends.took.clear()
        watching = asyncio.create_task(lag(lags))
        spent = time.process_time()
        await asyncio.sleep(seconds / 2)
        ((connections,),) = await asyncio.to_thread(command, server.url, CONNECTIONS)
        outcomes = await asyncio.gather(*started)
        took, spent = time.monotonic() - begins, time.process_time() - spent
        counts = await asyncio.gather(*readers)
        watching.cancel()
        for run in started:
            await run.closed()
        rows = await journal.runs(limit=runs + 1)
        stored = {row.run_id: row.seq for row in rows}
        drops = sum(stored.get(run.id, 0) - count for run, count in zip(started, counts, strict=True))
        errors = Counter(f"{type(run.error).__name__}: {run.error}"[:200] for run in started if run.error is not None)
        await journal.close()
    kinds = Counter(outcome.kind for outcome in outcomes)
    rate = f"{sum(counts) / took:,.0f} envelopes/s over {took:.1f} s, {spent / took * 100:.0f} % of a core"
    figures.say(f"{runs} runs, {RATE} events/s each for {seconds:g} s: {rate}, {connections} connections")
    figures.say(
        f"append {spread(appends.took)} ({len(appends.took):,} of {appends.envelopes / max(len(appends.took), 1):.1f})"
    )
    figures.say(f"loop late by {spread(lags)}; a reader has a word after {spread(late)}")
    figures.hold(set(kinds) == {"succeeded"}, f"endings {dict(kinds)} {dict(errors.most_common(3))}")
    figures.hold(drops == 0 and min(counts) > deltas, f"{drops} drops of {sum(stored.values()):,} envelopes")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bars.crowd", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    chosen = parser.parse_args(arguments)
    set_tracing_disabled(True)
    figures = Figures("crowd")
    asyncio.run(crowd(chosen.runs, chosen.seconds, figures))
    return figures.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
