"""A rolling restart of two servers under 100 runs, each with a reader who knows one address for both.

Every reader comes to an end with exactly the view that the journal folds to, and every view says what its script did:
its own ending, or cancelled by the shutdown with part of the text, or lost and therefore unknown.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from agents_progress import RunView
from agents_progress.client import Client
from agents_progress.journal import Journal

from .figures import Figures, spread
from .fleet import AMISS, Kind, Node, Proxy, fleet, person, said
from .places import BACKENDS, stores

RUNS: Final = 100
LEASE_S: Final = 5.0
STEP_S: Final = 0.1
ENDS: Final[dict[Kind, str]] = {"right": "done", "wrong": "rejected", "broken": "failed"}


@dataclass(frozen=True, slots=True)
class Load:
    """So many runs: half of them at once, the other half while the servers are restarted.

    A run takes from ``least_s`` to three times as long. The servers let runs end for ``drain_s``.
    """

    runs: int
    least_s: float
    drain_s: float
    spread_s: float
    """Within so many seconds the second half is started."""

    def ticks(self, number: int) -> int:
        """Words of each of the two messages of a run."""
        return int(self.least_s * (1 + number % 7 / 3) / STEP_S / 2)

    def starts_after(self, number: int) -> float:
        half = self.runs // 2
        return 0.0 if number < half else (number - half) / (self.runs - half) * self.spread_s


@dataclass(slots=True)
class Lived:
    """One run as its reader saw it."""

    number: int
    run_id: str
    view: RunView
    waited_s: float
    """For its start to be answered."""
    statuses: set[str]


def kind_of(number: int) -> Kind:
    """One run in ten ends badly, each way."""
    kind: Kind = {3: "wrong", 7: "broken"}.get(number % 10, "right")  # type: ignore[assignment]
    return kind


async def lived(client: Client, load: Load, number: int) -> Lived:
    """Start a run, and read it to its end: views or, every other time, envelopes."""
    await asyncio.sleep(load.starts_after(number))
    began = time.monotonic()
    wanted = {"ticks": load.ticks(number), "step_s": STEP_S, "kind": kind_of(number)}
    run_id = (await client.start("slow", wanted, labels={"number": str(number)}))["run_id"]
    waited_s, statuses = time.monotonic() - began, set[str]()
    view = RunView(run_id)
    if number % 2:
        async for seen in client.follow(run_id):
            view = seen
            statuses.add(view.status)
    else:
        async for envelope in client.events(run_id):
            view.feed(envelope)
            statuses.add(view.status)
    return Lived(number, run_id, view, waited_s, statuses)


async def faults(run: Lived, load: Load, journal: Journal) -> list[str]:
    """What is false about a run."""
    found = []
    stored = await journal.read(run.run_id, limit=100_000)
    folded, types = RunView(run.run_id), [envelope.type for envelope in stored]
    for envelope in stored:
        folded.feed(envelope.to_json())
    if folded.snapshot() != run.view.snapshot():
        found.append(f"its reader has {run.view.status} at {run.view.seq}, the log {folded.status} at {folded.seq}")
    if folded.issues or [envelope.seq for envelope in stored] != list(range(1, len(stored) + 1)):
        found.append(f"its log is not whole: {folded.issues}")
    kind, text = kind_of(run.number), [message.text for message in run.view.messages]
    word = said(load.ticks(run.number))
    whole = {"right": [word, word], "wrong": [word, word, AMISS], "broken": [word]}[kind]
    match run.view.status:
        case "cancelled":
            by = [each.payload.get("requested_by") for each in stored if each.type == "run.ended"]
            true = by == ["shutdown"] and "".join(whole).startswith("".join(text))
        case "unknown":
            true = types.count("run.lost") == 1 and "".join(whole).startswith("".join(text))
        case status:
            true = status == ENDS[kind] and text == whole
    if not true:
        found.append(f"{kind}, and its reader ended with {run.view.status}, {text}")
    if "done" in run.statuses and run.view.status != "done":
        found.append(f"was shown as done before it was {run.view.status}")
    return found


async def restarted(node: Node, figures: Figures) -> None:
    away_s = await node.drain()
    up_s = await node.start()
    figures.say(f"{node.name} drained and gone after {away_s:.2f} s, up again {up_s:.2f} s later")


def warnings(log: str) -> list[str]:
    """Those of the package, without the ids."""
    return [re.sub(r"[0-9a-f]{32}", "ID", line) for line in log.splitlines() if line.startswith("agents_progress: ")]


async def rolling(backend: str, load: Load, figures: Figures) -> None:
    with stores(backend) as places, TemporaryDirectory(prefix="bars-") as folder:
        place = places()
        journal = place.journal()
        try:
            async with fleet(place, Path(folder), lease_s=LEASE_S, drain_s=load.drain_s) as nodes:
                proxy = Proxy(*nodes)
                async with proxy.listening() as url, person(url) as client:
                    await _roll(nodes, client, load, journal, figures)
                figures.say(f"connections through the one address: {proxy.given}")
                for node in nodes:
                    figures.say(f"{node.name} warned of {dict(Counter(warnings(node.said)))}")
                tracebacks = [node.name for node in nodes if "Traceback" in node.said]
                figures.hold(not tracebacks, f"tracebacks in the logs of {tracebacks or 'none'}")
                for node in nodes:
                    if node.name in tracebacks:
                        figures.say(node.said[-3000:])
        finally:
            await journal.close()


async def _roll(nodes: Sequence[Node], client: Client, load: Load, journal: Journal, figures: Figures) -> None:
    began = time.monotonic()
    readers = [asyncio.create_task(lived(client, load, number)) for number in range(load.runs)]
    await asyncio.sleep(load.least_s / 2)
    for node in nodes:
        await restarted(node, figures)
    most_s = max(load.spread_s + began - time.monotonic(), 0.0) + 3 * load.least_s + 60
    _, hung = await asyncio.wait(readers, timeout=most_s)
    for each in hung:
        each.cancel()
    results = await asyncio.gather(*readers, return_exceptions=True)
    runs = [each for each in results if isinstance(each, Lived)]
    raised = [each for each in results if isinstance(each, Exception)]
    figures.say(f"{load.runs} runs over {time.monotonic() - began:.1f} s: {dict(Counter(r.view.status for r in runs))}")
    figures.say(f"a start was answered after {spread([run.waited_s for run in runs], 's', 1)}")
    figures.hold(not hung, f"{len(hung)} readers hung")
    figures.hold(not raised, f"{len(raised)} starts or readers were refused: {Counter(map(repr, raised))}")
    false = [f"{run.number}: {fault}" for run in runs for fault in await faults(run, load, journal)]
    for each in false[:10]:
        figures.say(each)
    figures.hold(not false, f"{len(false)} false endings or views among {len(runs)}")
    rows = await journal.runs(limit=load.runs * 2)
    figures.hold(len(rows) == load.runs, f"{len(rows)} runs are stored, of {load.runs} starts")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bars.rolling", description=__doc__)
    parser.add_argument("--backend", choices=(*BACKENDS, "pgbouncer"), default="postgres")
    parser.add_argument("--runs", type=int, default=RUNS)
    chosen = parser.parse_args(arguments)
    logging.getLogger("agents_progress").setLevel(logging.ERROR)  # every reader says that it was sent away
    figures = Figures("rolling")
    asyncio.run(rolling(chosen.backend, Load(chosen.runs, least_s=3.0, drain_s=4.0, spread_s=15.0), figures))
    return figures.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
