"""Another program holds the write lock of a SQLite journal: for 1 s, for 10 s, and for longer than every timeout.

Shorter than a lease it only delays. Longer, a run may end unknown with a clear error of the journal's; what is stored
never has a hole, and readers are answered all the while.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sqlite3
import sys
import time
from collections import Counter
from collections.abc import Sequence
from typing import Final

from agents import set_tracing_disabled

from agents_progress.errors import JournalError
from agents_progress.journal import Journal

from .figures import Figures, spread
from .outage import judged, tailed, words, work
from .places import stores

RUNS: Final = 4
LEASE_S: Final = 15.0


async def locked(held_s: float, lease_s: float, figures: Figures, *, patience: float = 60.0) -> None:
    with stores("sqlite") as places:
        place = places()
        journal, other = place.journal(lease_s), place.journal(lease_s)
        lives = held_s + lease_s / 3 + 1
        begun = [work.using(journal=journal, patience=patience)(number, lives) for number in range(RUNS)]
        seen: list[list[object]] = [[] for _ in begun]
        tails = [
            asyncio.create_task(tailed(other, run.id, told, Counter())) for run, told in zip(begun, seen, strict=True)
        ]
        while not all(run.view.text for run in begun):
            await asyncio.sleep(0.05)
        foreign = sqlite3.connect(place.url.removeprefix("sqlite:///"), isolation_level=None)
        foreign.execute("BEGIN IMMEDIATE")
        reading = asyncio.create_task(reads(other, begun[0].id))
        await asyncio.sleep(held_s)
        foreign.rollback()
        foreign.close()
        reading.cancel()
        took = await reading
        outcomes = Counter([(await run).kind for run in begun])
        for run in begun:
            await run.closed()
        errors = Counter(type(run.error).__name__ for run in begun if run.error is not None)
        may_be_lost = held_s >= lease_s
        if may_be_lost:
            await asyncio.sleep(lease_s + 0.5)
        lost = await other.expire()
        await asyncio.wait(tails, timeout=10)
        wrong = Counter[str]()
        for number, (run, told) in enumerate(zip(begun, seen, strict=True)):
            stored = await other.read(run.id, limit=100_000)
            wrong.update(judged(run, stored, told, words(number, lives / 2), may_be_lost=may_be_lost))
            if run.outcome is not None and run.outcome.kind == "unknown" and not isinstance(run.error, JournalError):
                wrong[f"unknown because of {run.error!r}"] += 1
        for tail in tails:
            tail.cancel()
        await journal.close()
        await other.close()
    for fault, count in wrong.items():
        figures.say(f"{count} x {fault}")
    ends = f"{dict(outcomes)}, {dict(errors)}, {len(lost)} lost; reads meanwhile {spread(took)}"
    figures.hold(
        not wrong, f"locked for {held_s:g} s, leases of {lease_s:g} s: {ends}; {RUNS - len(wrong)} of {RUNS} true"
    )


async def reads(journal: Journal, run_id: str) -> list[float]:
    """How long each read took until it was cancelled, in seconds."""
    took = []
    try:
        while True:
            began = time.perf_counter()
            await journal.read(run_id)
            took.append(time.perf_counter() - began)
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        return took


def main(arguments: Sequence[str]) -> int:
    argparse.ArgumentParser(prog="python -m tests.bars.locked", description=__doc__).parse_args(arguments)
    set_tracing_disabled(True)
    logging.getLogger("agents_progress").setLevel(logging.CRITICAL)
    figures = Figures("locked")
    for held_s in (1.0, 10.0, 35.0, 70.0):
        asyncio.run(locked(held_s, LEASE_S, figures))
    return figures.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
