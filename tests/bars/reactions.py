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
import secrets
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
from .places import Place, Places, stores
from .reactor import AGAIN, EFFECT, FIRST, ONCE_MORE, SUBMITTED, arrived

BACKENDS: Final = "sqlite", "postgres"
LEASE_S: Final = 1.0
WITHIN_S: Final = 60.0
WORKERS: Final = 4
MANY: Final = 1000


@dataclass
class Case:
    """One story: who dies where, and what became of it."""

    nursery: Nursery
    place: Place
    folder: Path
    deaths: Sequence[str]
    now: float = field(default_factory=time.time)
    faults: list[str] = field(default_factory=list)

    @property
    def bank(self) -> Path:
        return self.folder / "bank"

    async def live(self, step: str) -> dict[str, Any] | None:
        """One process up to a step; what it told, None when it died."""
        told = self.folder / f"told-{secrets.token_hex(4)}"
        about = {"url": self.place.url, "bank": str(self.bank), "step": step, "told": str(told)}
        child = self.nursery.born({**about, "lease_s": LEASE_S, "now": self.now})
        try:
            async with asyncio.timeout(WITHIN_S):
                await child.gone()
        except TimeoutError:
            child.kill()
            self.faults.append(f"a process hung at or before {step!r}")
        finally:
            child.close()
        answer: dict[str, Any] | None = json.loads(told.read_text()) if told.exists() else None
        return answer

    async def play(self) -> str:
        for step in self.deaths:
            if await self.live(step) is not None:
                self.faults.append(f"nobody came to {step!r}")
            if len(arrived(self.bank)) > 1:
                self.faults.append(f"arrived {len(arrived(self.bank))} times after {step!r}")
        told = await self.live("") or {}
        if told.get("state") != "done" or (told.get("runs") or [""])[-1] != "done":
            self.faults.append(f"the last process says {told}")
        if arrived(self.bank) != [told.get("key")]:
            self.faults.append(f"arrived {len(arrived(self.bank))} times in the end")
        return f"killed {', then '.join(self.deaths)}: {told.get('runs')}, arrived {len(arrived(self.bank))}"


def plan(every: bool) -> list[Sequence[str]]:
    """The steps at which one process after another dies."""
    single = [(step,) for step in FIRST]
    double = [(EFFECT[1], step) for step in AGAIN] + [(SUBMITTED, step) for step in ONCE_MORE]
    return [*single, *double] if every else [*single[3 :: len(FIRST) // 4], double[4], double[-4]]


async def backend(name: str, nursery: Nursery, every: bool, figures: Figures) -> None:
    """Play all of a plan, some at a time, and say of each what was seen."""
    free = asyncio.Semaphore(4)

    async def one(places: Places, deaths: Sequence[str]) -> Case:
        async with free:
            with TemporaryDirectory() as folder:
                case = Case(nursery, places(), Path(folder), deaths)
                figures.say(f"{name}, {await case.play()}")
                return case

    with stores(name) as places:
        cases = await asyncio.gather(*(one(places, deaths) for deaths in plan(every)))
    for case in cases:
        for fault in case.faults:
            figures.say(f"{name}, {case.deaths}: {fault}")
    bad = sum(bool(case.faults) for case in cases)
    figures.hold(not bad, f"{name}: {len(cases) - bad} of {len(cases)} stories came to one arrival, confirmed")


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
