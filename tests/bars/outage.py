"""A store that is away for 10 s under 20 runs at once: nothing is lost, and nothing false is said.

It goes away at the worst moment, just before the leases are due to be renewed: frozen (connections stay, nothing
answers) or crashed and started again. Runs go on meanwhile. With a lease longer than the outage every run ends as its
model said; with a shorter one a run is lost, and says so everywhere.
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Final

from agents import Agent, Runner, RunResultStreaming, function_tool, set_tracing_disabled

from agents_progress import Envelope, progress
from agents_progress.errors import JournalError
from agents_progress.journal import Journal
from agents_progress.keeper import RENEWALS
from agents_progress.run import Run
from agents_progress.testing import ScriptedAPI, call, pause, text, turn
from agents_progress.view import RunView

from .figures import Figures
from .places import Place, prefixes, schemas
from .servers import Postgres, Redis, Server

RUNS: Final = 20
AWAY_S: Final = 10.0
LEASE_S: Final = 15.0
STEP_S: Final = 0.1
"""How long the model thinks between two words."""
EARLY_S: Final = 0.2
"""How long before the leases are due to be renewed the store goes away."""


@function_tool
async def look() -> str:
    await asyncio.sleep(STEP_S)
    return "ok"


def words(number: int, seconds: float) -> str:
    return "".join(f"w{number}.{place} " for place in range(int(seconds / STEP_S)))


@progress(verify=lambda output: output.startswith("w"))
def work(number: int, seconds: float) -> RunResultStreaming:
    said = words(number, seconds / 2)
    steps = [step for word in said.split() for step in (f"{word} ", pause(STEP_S))]
    turns = turn(text(*steps), call("look")), turn(text(*steps))
    return Runner.run_streamed(Agent(name="A", model=ScriptedAPI(turns).model(), tools=[look]), "go")


class Renewals:
    """When a journal renewed its leases last; it goes on renewing them."""

    def __init__(self, journal: Journal) -> None:
        self.last = 0.0
        renew = journal.renew

        def noted(*given: Any) -> Any:
            gone = renew(*given)
            self.last = time.monotonic()
            return gone

        journal.renew = noted  # type: ignore[method-assign]

    async def due(self, lease_s: float) -> None:
        """Wait until just before the next one."""
        seen = self.last
        while self.last == seen:
            await asyncio.sleep(0.01)
        await asyncio.sleep(max(self.last + lease_s / RENEWALS - EARLY_S - time.monotonic(), 0))


async def away(server: Server, how: str, seconds: float) -> float:
    """For how long it answered nobody, in seconds."""
    leave, come_back = {"frozen": (server.freeze, server.thaw), "crashed": (server.crash, server.start)}[how]
    began = time.monotonic()
    await asyncio.to_thread(leave)
    try:
        await asyncio.sleep(seconds)
    finally:
        await asyncio.to_thread(come_back)
    return time.monotonic() - began


async def tailed(journal: Journal, run_id: str, seen: list[Envelope], faults: Counter[str]) -> None:
    """Follow from another node, as its readers do: again from the last envelope when the store does not answer."""
    while True:
        try:
            async for envelope in journal.tail(run_id, seen[-1].seq if seen else 0):
                seen.append(envelope)
            return
        except JournalError as error:
            faults[type(error).__name__] += 1
            await asyncio.sleep(0.2)


async def outage(
    server: Server, place: Place, how: str, figures: Figures, *, away_s: float, lease_s: float, runs: int
) -> None:
    """One outage, and what became of the runs."""
    name = f"{type(server).__name__} {how} for {away_s:g} s, leases of {lease_s:g} s"
    lives = 3 * lease_s / RENEWALS + away_s
    journal, other = place.journal(lease_s), place.journal(lease_s)
    renewals, faults = Renewals(journal), Counter[str]()
    started = [work.using(journal=journal)(number, lives) for number in range(runs)]
    seen: list[list[Envelope]] = [[] for _ in started]
    tails = [asyncio.create_task(tailed(other, run.id, told, faults)) for run, told in zip(started, seen, strict=True)]
    await renewals.due(lease_s)
    was_away = await away(server, how, away_s)
    outcomes = await asyncio.gather(*started)
    await asyncio.gather(*(run.closed() for run in started))
    if lease_s < away_s:
        await asyncio.sleep(lease_s + 0.5)
    lost = await other.expire()
    await asyncio.wait(tails, timeout=10)
    ends = Counter(outcome.kind for outcome in outcomes)
    again = f"tails elsewhere began again: {dict(faults)}"
    figures.say(f"{name} ({was_away:.1f} s): {dict(ends)}, {len(lost)} lost; {again}")
    bad, faulty = 0, Counter[str]()
    for number, (run, told) in enumerate(zip(started, seen, strict=True)):
        stored = await other.read(run.id, limit=100_000)
        wrong = judged(run, stored, told, words(number, lives / 2), may_be_lost=lease_s < away_s)
        bad += bool(wrong)
        faulty.update(wrong)
    for fault, count in faulty.items():
        figures.say(f"{name}: {count} x {fault}")
    figures.hold(not bad, f"{name}: {runs - bad} of {runs} runs are whole and true")
    for tail in tails:
        tail.cancel()
    await journal.close()
    await other.close()


def judged(
    run: Run, stored: Sequence[Envelope], told: Sequence[Envelope], said: str, *, may_be_lost: bool
) -> list[str]:
    """What is wrong with a run after the outage, in words."""
    view = RunView(run.id)
    for envelope in stored:
        view.feed(envelope.to_json())
    wrong = []
    if [envelope.seq for envelope in stored] != list(range(1, len(stored) + 1)) or view.issues:
        wrong.append(f"stored with a hole or with issues {view.issues}")
    if list(told) != list(stored):
        wrong.append(f"a tail saw {len(told)} of {len(stored)}")
    texts = [message.text for message in view.messages]
    if view.status == "done":
        if (
            texts != [said, said]
            or list(view.tools.values()) != ["returned"]
            or run.outcome is None
            or not run.outcome.accepted
        ):
            wrong.append(f"done, yet other than the model said: {[len(part) for part in texts]}, {dict(view.tools)}")
    elif not may_be_lost:
        wrong.append(f"{view.status}, {run.outcome and run.outcome.kind}, {type(run.error).__name__}")
    elif (
        view.status != "unknown" or run.view.status != "unknown" or run.outcome is None or run.outcome.kind != "unknown"
    ):
        wrong.append(f"lost, yet it is {view.status} elsewhere, {run.view.status} here, {run.outcome}")
    elif not (said + said).startswith("".join(texts)):
        wrong.append("lost, and what is stored is not how it began")
    return wrong


CASES: Final = [
    (store, how, lease_s) for store in ("postgres", "redis") for how in ("frozen", "crashed") for lease_s in (15.0, 4.0)
]


async def cases(figures: Figures, chosen: Sequence[tuple[str, str, float]], away_s: float, runs: int) -> None:
    with ExitStack() as running:
        servers: dict[str, Server] = {}
        for store, how, lease_s in chosen:
            if store not in servers:
                servers[store] = running.enter_context({"postgres": Postgres, "redis": Redis}[store]())
            server = servers[store]
            place = schemas(server)() if isinstance(server, Postgres) else prefixes(server)()
            await outage(server, place, how, figures, away_s=away_s, lease_s=lease_s, runs=runs)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bars.outage", description=__doc__)
    parser.add_argument("--only", choices=("postgres", "redis"))
    parser.add_argument("--how", choices=("frozen", "crashed"))
    parser.add_argument("--lease", type=float)
    chosen = parser.parse_args(arguments)
    set_tracing_disabled(True)
    logging.getLogger("agents_progress").setLevel(logging.CRITICAL)
    figures = Figures("outage")
    wanted = [
        case
        for case in CASES
        if all(
            given in {None, value} for given, value in zip((chosen.only, chosen.how, chosen.lease), case, strict=True)
        )
    ]
    asyncio.run(cases(figures, wanted, AWAY_S, RUNS))
    return figures.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
