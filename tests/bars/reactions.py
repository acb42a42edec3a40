"""Kill -9 at every step of a reaction, then a restart: its submission arrived once. And how many reactions four worker
processes bring to their end on PostgreSQL.

Each step is named. After the death at one, another process makes the reaction's way again and must bring it to one
arrival and a receipt; then second processes are killed too, and a third one finishes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from agents_progress.effects.reactions import Accepted, Grant, Reaction, Reactions
from agents_progress.errors import ReactionRefused
from agents_progress.journal import open_journal

from .figures import Figures
from .nursery import Nursery
from .places import Place, stores
from .reactor import AGAIN, EFFECT, FIRST, ONCE_MORE, SUBMITTED, arrived
from .stories import Story, play

BACKENDS: Final = "sqlite", "postgres"
WORKERS: Final = 4
MANY: Final = 1000


@dataclass
class Case(Story):
    """One story of a reaction, at one time."""

    now: float = field(default_factory=time.time, kw_only=True)

    within_s = 60.0

    async def play(self) -> None:
        for step in self.deaths:
            self.expect(await self.live(step, now=self.now) is None, f"nobody came to {step!r}")
            self.expect(len(arrived(self.bank)) <= 1, f"arrived {len(arrived(self.bank))} times after {step!r}")
        told = await self.live("", now=self.now) or {}
        ended = told.get("state") == "done" and (told.get("runs") or [""])[-1] == "done"
        self.expect(ended, f"the last process says {told}")
        self.expect(arrived(self.bank) == [told.get("key")], f"arrived {len(arrived(self.bank))} times in the end")
        self.seen += [f"killed {', then '.join(self.deaths)}", f"{told.get('runs')}, arrived {len(arrived(self.bank))}"]


def plan(every: bool) -> list[Sequence[str]]:
    """The steps at which one process after another dies."""
    single = [(step,) for step in FIRST]
    double = [(EFFECT[1], step) for step in AGAIN] + [(SUBMITTED, step) for step in ONCE_MORE]
    return [*single, *double] if every else [*single[3 :: len(FIRST) // 4], double[4], double[-4]]


async def backend(name: str, nursery: Nursery, every: bool, figures: Figures) -> None:
    """Play all of a plan, some at a time, and say of each what was seen."""
    cases = [lambda place, folder, deaths=deaths: Case(nursery, place, folder, deaths) for deaths in plan(every)]
    await play(name, cases, figures, "stories came to one arrival, confirmed")


# Throughput.


async def crowd(name: str, figures: Figures, many: int = MANY, workers: int = WORKERS) -> None:
    """Many reactions through some worker processes."""
    with stores(name) as places, TemporaryDirectory() as folder:
        place, bank, now = places(), Path(folder, "bank"), time.time()
        reactions = engine(place, bank, now)
        began = time.monotonic()
        for number in range(many):
            answer = await reactions.receive(_event(number, now))
            assert isinstance(answer, Accepted)
        figures.say(f"{name}: {many / (time.monotonic() - began):.0f} notifications/s are received by one process")
        began = time.monotonic()
        processes = [await _worker(place, bank, now, many) for _ in range(workers)]
        codes = [await process.wait() for process in processes]
        took = time.monotonic() - began
        keys = arrived(bank)
        states = [entry.state for entry in await reactions.list(limit=many + 1)]
        figures.say(f"{name}: {many} reactions, {workers} processes: {many / took:.1f}/s from receipt to receipt")
        figures.hold(codes == [0] * workers, f"{name}: every worker came to its end")
        figures.hold(states == ["done"] * many, f"{name}: {states.count('done')} of {many} are done")
        figures.hold(len(set(keys)) == many, f"{name}: {len(set(keys))} receipts")
        figures.hold(len(keys) == len(set(keys)), f"{name}: {len(keys) - len(set(keys))} doubles")
        reactions.store.close()
        await reactions.journal.close()


def engine(place: Place, bank: Path, now: float) -> Reactions:
    """The engine of one process, over the file of the bank."""
    from .reactor import Life

    life = Life({"bank": str(bank), "step": ""})
    grant = Grant("g", "ada", {"order/*"}, {"pay"}, now + 3600)
    return Reactions(open_journal(place.url), [Reaction("pay", grant, life, life, life.prepare)])


def _event(number: int, now: float) -> dict[str, Any]:
    event = {"event_id": f"e{number}", "reaction": "pay", "who": "ada", "resource": f"order/{number}"}
    return {**event, "version": "v1", "action": "pay", "occurred_at": now}


async def _worker(place: Place, bank: Path, now: float, many: int) -> asyncio.subprocess.Process:
    about = json.dumps({"url": place.url, "bank": str(bank), "now": now, "many": many})
    command = [sys.executable, "-m", "tests.bars.reactions", "--work", about]
    return await asyncio.create_subprocess_exec(*command, env={**os.environ})


async def work(about: dict[str, Any]) -> None:
    """One worker, which approves what it finds ready, until everything is done."""
    reactions = engine(Place(about["url"]), Path(about["bank"]), about["now"])
    working = asyncio.create_task(reactions.work(at_once=4))
    while True:
        ready = await reactions.list(state="ready", limit=20)
        for entry in ready:
            try:
                await reactions.approve(entry.task_id, entry.asked or "", "ann")
            except ReactionRefused as refused:
                assert refused.code == "not_waiting", refused  # another worker was first
        if not ready and len(await reactions.list(state="done", limit=about["many"])) == about["many"]:
            break
        await asyncio.sleep(0.05 if ready else 0.5)
    working.cancel()
    await asyncio.wait({working})
    reactions.store.close()
    await reactions.journal.close()


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bars.reactions", description=__doc__)
    parser.add_argument("--backend", choices=BACKENDS, action="append")
    parser.add_argument("--many", type=int, default=MANY)
    parser.add_argument("--work", help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.work:
        asyncio.run(work(json.loads(chosen.work)))
        return 0
    figures = Figures("reactions")
    with Nursery("reactor") as nursery:
        for name in chosen.backend or BACKENDS:
            asyncio.run(backend(name, nursery, every=True, figures=figures))
    asyncio.run(crowd("postgres", figures, chosen.many))
    return figures.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
