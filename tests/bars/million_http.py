"""A million events with ten readers over HTTP: the memory of the server grows by the text and little more.

The run, the SQLite journal and the feeds are in the server's process; its readers are in this one. Half of them stop
now and then, and so read on from the journal.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence

from agents_progress.client import Client

from .figures import Figures
from .million import BAR_MB, READERS, WORD, Memory
from .places import stores
from .served import Served, count


async def million(events: int, figures: Figures) -> None:
    with stores("sqlite") as places, Served(places().url) as server:
        await counted(server, 5000)  # what is loaded at first use belongs to no run
        with Memory(server.pid) as memory:
            began = time.monotonic()
            run_id, counts = await counted(server, events)
            took = time.monotonic() - began
        async with Client(server.url) as client:
            row = await client.run(run_id)
        facts = await server.counts()
    text_mb, grown = events * len(WORD) / 2**20, memory.most - memory.first
    rate = f"{took:.0f} s, {events / took:,.0f} events/s, {facts['lags']} lags"
    figures.say(f"{events:,} events, {READERS} readers over HTTP, {row['status']}, {rate}")
    figures.hold(
        set(counts) == {row["seq"]} and row["seq"] > events, f"readers were given {set(counts)} of {row['seq']}"
    )
    figures.hold(
        grown - text_mb < BAR_MB,
        f"memory of the server grew by {grown:.1f} MB, text {text_mb:.1f} (at most text + {BAR_MB:g})",
    )


async def counted(server: Served, events: int) -> tuple[str, list[int]]:
    run_id = await server.start(events)
    stops = [0 if number % 2 else 20_000 for number in range(READERS)]
    return run_id, await asyncio.gather(*(count(server, run_id, each) for each in stops))


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bars.million_http", description=__doc__)
    parser.add_argument("--events", type=int, default=1_000_000)
    chosen = parser.parse_args(arguments)
    figures = Figures("million_http")
    asyncio.run(million(chosen.events, figures))
    return figures.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
