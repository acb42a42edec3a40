"""One million events through a run with a SQLite journal and ten readers: memory grows by the text and little more.

Every event is an envelope of its own. Half of the readers are as fast as they can be; the others stop now and then, so
that they fall behind what is kept in memory and read on from the journal.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import re
import sys
import threading
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from agents import Agent, Runner, RunResultStreaming, set_tracing_disabled
from agents.models.interface import Model
from openai.types.responses import ResponseTextDeltaEvent

from agents_progress import progress
from agents_progress.run import Run
from tests.staging import message_item, response_completed, response_created

from .figures import Figures
from .places import stores

READERS: Final = 10
WORD: Final = "word "
BAR_MB: Final = 50.0


class Endless(Model):
    """One response of a great many deltas, which take no memory of their own; ``rate`` a second, where it is given."""

    def __init__(self, deltas: int, word: str = WORD, rate: float = 0.0) -> None:
        self.deltas = deltas
        self.word = word
        self.rate = rate

    async def get_response(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError("this model only streams")

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        yield response_created()
        delta = ResponseTextDeltaEvent(
            content_index=0,
            delta=self.word,
            item_id="msg_1",
            logprobs=[],
            output_index=0,
            sequence_number=0,
            type="response.output_text.delta",
        )
        began = time.monotonic()
        for number in range(self.deltas):
            yield delta
            if self.rate:
                await asyncio.sleep(max(began + (number + 1) / self.rate - time.monotonic(), 0))
            elif not number % 64:
                await asyncio.sleep(0)
        yield response_completed(message_item("done"))


class Memory:
    """What a process takes, watched from a thread; in MB. The cache of the file system is not in it."""

    def __init__(self, pid: int | None = None) -> None:
        self._status = Path("/proc", str(pid or "self"), "status")
        self.first = self.most = self.now()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def now(self) -> float:
        found = re.search(r"RssAnon:\s+(\d+)", self._status.read_text())
        return int(found[1]) / 1024 if found else 0.0

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            self.most = max(self.most, self.now())

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._over.set()
        self._thread.join()


async def read(run: Run, stops: int) -> int:
    """How many envelopes a reader was given; it stops for a while at every so many."""
    count = 0
    async for envelope in run:
        count += 1
        assert envelope.seq == count, "in order, each once"
        if stops and not count % stops:
            await asyncio.sleep(0.2)
    return count


async def million(events: int, figures: Figures) -> None:
    with stores("sqlite") as places:
        journal = places().journal()

        @progress(journal=journal, coalesce=None)
        def work(deltas: int) -> RunResultStreaming:
            return Runner.run_streamed(Agent(name="A", model=Endless(deltas)), "go")

        await work(5000)  # what is loaded at first use belongs to no run
        gc.collect()
        with Memory() as memory:
            began = time.monotonic()
            run = work(events)
            counts = await asyncio.gather(*(read(run, 0 if number % 2 else 20_000) for number in range(READERS)))
            outcome, took = await run, time.monotonic() - began
            stored = run.view.seq
        text_mb = len(run.view.text) / 2**20
        grown = memory.most - memory.first
        await journal.close()
    figures.say(f"{events:,} events, {READERS} readers, {outcome.kind}, {took:.0f} s, {events / took:,.0f} events/s")
    figures.hold(set(counts) == {stored} and stored > events, f"readers were given {set(counts)} of {stored}")
    figures.hold(len(run.view.text) == events * len(WORD), f"text of {text_mb:.1f} MB is whole")
    figures.hold(
        grown - text_mb < BAR_MB, f"memory grew by {grown:.1f} MB, text {text_mb:.1f} (at most text + {BAR_MB:g})"
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bars.million", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    chosen = parser.parse_args(arguments)
    set_tracing_disabled(True)
    figures = Figures("million")
    asyncio.run(million(chosen.events, figures))
    return figures.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
