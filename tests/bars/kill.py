"""Kill -9 of an owner at random points of its whole life, on each durable backend.

Of every run it leaves behind: what is stored is whole (numbers from 1 without a hole, each envelope valid, a fold
without issues), holds all that any reader was given, and is not shown as done without its verdict. After the lease, two
nodes race to declare it lost; one does, once, and the view says unknown. Another run is then finished on the same
journal.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from agents import set_tracing_disabled

from agents_progress import Envelope
from agents_progress.events import parse_envelope
from agents_progress.journal import Journal
from agents_progress.keeper import FIRST
from agents_progress.view import RunView

from .figures import Figures
from .nursery import Nursery
from .owner import RUNS, SAID, work
from .places import BACKENDS, Place, Places, stores

LEASE_S: Final = 0.5
ENDINGS: Final = {"run.ended", "run.lost"}


@dataclass
class Killed:
    """One owner that was killed, and what was seen of its runs."""

    place: Place
    after_s: float
    run_ids: Sequence[str]
    delivered: Path
    tailed: dict[str, list[Envelope]] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    found: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    def expect(self, holds: object, words: str) -> None:
        if not holds:
            self.faults.append(f"killed after {self.after_s * 1000:.0f} ms: {words}")

    def given(self, run_id: str) -> list[Envelope]:
        """What the owner's own reader was given; a line that was being written when it died is not."""
        lines = self.delivered.read_bytes().split(b"\n")[:-1] if self.delivered.exists() else []
        return [envelope for envelope in map(parse_envelope, lines) if envelope.run_id == run_id]


async def judged(killed: Killed) -> None:
    """Wait until its leases ran out, then look as two other nodes and write as one of them."""
    one, two = killed.place.journal(LEASE_S), killed.place.journal(LEASE_S)
    try:
        await asyncio.sleep(FIRST * LEASE_S + 0.1)
        before = {run_id: await one.read(run_id, limit=10_000) for run_id in killed.run_ids}
        ended = [lost for found in await asyncio.gather(one.expire(), two.expire()) for lost in found]
        killed.expect(await one.expire() == [], "expire ended something again")
        for run_id in killed.run_ids:
            await _judge(killed, one, run_id, before[run_id], ended.count(run_id))
        again = work.using(journal=two, run_id="another")()
        killed.expect((await again).accepted, "another run on the same journal was not accepted")
        await again.closed()
        killed.expect(_view(await one.read("another", limit=10_000)).status == "done", "another run is not done")
    finally:
        await one.close()
        await two.close()


async def _judge(killed: Killed, journal: Journal, run_id: str, before: list[Envelope], ended: int) -> None:
    stored = await journal.read(run_id, limit=10_000)
    types = [envelope.type for envelope in stored]
    killed.found[_moment([envelope.type for envelope in before], ended)] += 1
    given, tailed = killed.given(run_id), killed.tailed[run_id]
    killed.expect(given == stored[: len(given)], f"{run_id}: its own reader was given what is not stored")
    if not stored:
        killed.expect(not ended and not tailed, f"{run_id}: nothing is stored, yet it was seen")
        return
    view = _view(stored)
    killed.expect([envelope.seq for envelope in stored] == list(range(1, len(stored) + 1)), f"{run_id}: a hole")
    killed.expect(view.issues == [] and not view.duplicates, f"{run_id}: {view.issues}")
    killed.expect(sum(type_ in ENDINGS for type_ in types) == 1, f"{run_id}: endings {types}")
    killed.expect(stored[: len(before)] == before and len(stored) == len(before) + ended, f"{run_id}: changed")
    killed.expect(ended == types.count("run.lost"), f"{run_id}: {ended} nodes declared it lost, {types}")
    killed.expect((view.status == "done") == ("app.checked" in types), f"{run_id}: {view.status} with {types}")
    killed.expect((view.status == "unknown") == ("run.lost" in types), f"{run_id}: {view.status} with {types}")
    killed.expect(" ".join(SAID).startswith(" ".join(message.text for message in view.messages)), f"{run_id}: text")
    # Its tail from another process ends by itself now, with everything that is stored.
    give_up = time.monotonic() + 5
    while run_id not in killed.ended and time.monotonic() < give_up:
        await asyncio.sleep(0.02)
    killed.expect(run_id in killed.ended, f"{run_id}: a live tail did not end")
    killed.expect(tailed == stored, f"{run_id}: a live tail saw {len(tailed)} of {len(stored)}, or others")


def _moment(before: Sequence[str], ended: int) -> str:
    if not before:
        return "leased, nothing stored" if ended else "not begun"
    if ended:
        return "under way"
    return "with its verdict" if before[-1] == "app.checked" else "ended, no verdict"


def _view(envelopes: Sequence[Envelope]) -> RunView:
    """Folded from the bytes, so that every payload is validated."""
    view = RunView(envelopes[0].run_id)
    for envelope in envelopes:
        view.feed(envelope.to_json())
    return view


async def kill(nursery: Nursery, place: Place, folder: Path, name: str, after_s: float) -> Killed:
    """Let an owner live for so long, read by tails in this process."""
    run_ids = [f"{name}-{number}" for number in range(1, RUNS + 1)]
    killed = Killed(place, after_s, run_ids, folder / name)
    watcher = place.journal()
    tails = [asyncio.create_task(_follow(watcher, run_id, killed)) for run_id in run_ids]
    try:
        about = {"url": place.url, "prefix": place.prefix, "lease_s": LEASE_S, "run_ids": run_ids}
        child = nursery.born({**about, "delivered": str(killed.delivered)})
        timer = asyncio.get_running_loop().call_later(after_s, child.kill)
        await child.gone()
        timer.cancel()
        child.close()
        await judged(killed)
    finally:
        for tail in tails:
            tail.cancel()
        results = await asyncio.gather(*tails, return_exceptions=True)
        killed.faults += [f"a tail raised {result!r}" for result in results if isinstance(result, Exception)]
        await watcher.close()
    return killed


async def _follow(watcher: Journal, run_id: str, killed: Killed) -> None:
    seen = killed.tailed[run_id] = []
    async for envelope in watcher.tail(run_id):
        seen.append(envelope)
    killed.ended.add(run_id)


async def lifetime(nursery: Nursery, places: Places, folder: Path) -> float:
    """How long an owner lives when nobody kills it, in seconds: the median of three at once."""

    async def one(number: int) -> float:
        run_ids = [f"r{n}" for n in range(RUNS)]
        place, began = places(), time.monotonic()
        about = {"url": place.url, "prefix": place.prefix, "lease_s": LEASE_S, "run_ids": run_ids}
        child = nursery.born({**about, "delivered": str(folder / f"life-{number}")})
        await child.gone()
        child.close()
        return time.monotonic() - began

    return statistics.median(await asyncio.gather(*(one(number) for number in range(3))))


async def backend(name: str, nursery: Nursery, points: int, at_once: int, figures: Figures) -> None:
    """Kill at as many points, spread evenly over a life and shuffled."""
    with stores(name) as places, TemporaryDirectory() as folder:
        life = await lifetime(nursery, places, Path(folder))
        moments = [life * (point + random.random()) / points for point in range(points)]
        random.shuffle(moments)
        free = asyncio.Semaphore(at_once)

        async def one(number: int, after_s: float) -> Killed:
            async with free:
                return await kill(nursery, places(), Path(folder), f"k{number}", after_s)

        lives = await asyncio.gather(*(one(number, after_s) for number, after_s in enumerate(moments)))
    found = sum((killed.found for killed in lives), Counter[str]())
    figures.say(f"{name}: a life of {life * 1000:.0f} ms, {RUNS} runs each; runs as they were left: {dict(found)}")
    for fault in [fault for killed in lives for fault in killed.faults][:20]:
        figures.say(f"{name}: {fault}")
    bad = sum(bool(killed.faults) for killed in lives)
    figures.hold(not bad, f"{name}: {points - bad} of {points} kills left nothing false")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bars.kill", description=__doc__)
    parser.add_argument("--backend", choices=(*BACKENDS, "pgbouncer"), action="append")
    parser.add_argument("--points", type=int, default=200)
    parser.add_argument("--at-once", type=int, default=8, help="owners whose life or aftermath runs at once")
    chosen = parser.parse_args(arguments)
    set_tracing_disabled(True)
    figures = Figures("kill")
    with Nursery("owner") as nursery:
        for name in chosen.backend or BACKENDS:
            asyncio.run(backend(name, nursery, chosen.points, chosen.at_once, figures))
    return figures.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
