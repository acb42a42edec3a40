"""Kill -9 at every step of a once-only tool's call, then a restart: the bank has paid once, or nobody knows and it
comes to once. It never pays twice.

Each step is named. After the first death a second process makes the same call: with `reconcile` it must come to one
payment by itself; without it, it may refuse, and a person who looked at the bank's file resolves it. Then second
processes are killed too, at every step of theirs, and a third one finishes. Last, what one call costs.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import statistics
import sys
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

from agents_progress.effects.entry import DidNotHappen, Entry, Happened
from agents_progress.effects.ledger import Ledger
from agents_progress.effects.ledger.memory import MemoryLedger
from agents_progress.effects.once import once
from agents_progress.effects.places import open_ledger

from .figures import Figures, spread
from .nursery import Nursery
from .payer import AGAIN, BODY, FIRST, paid
from .places import Place, stores
from .stories import LEASE_S, Story, play

BACKENDS: Final = "sqlite", "postgres"
KINDS: Final = "sync", "async"
RECEIPT: Final = "paid 7"
CALLS: Final = 200


@dataclass
class Case(Story):
    """One story of a tool of a kind, with a bank that can be asked or not."""

    kind: str
    asks: bool
    ledger: Ledger = field(init=False)

    def __post_init__(self) -> None:
        self.ledger = open_ledger(self.place.url)

    async def state(self) -> str:
        """The state of the effect once nobody holds it."""
        give_up = time.monotonic() + 10 * LEASE_S
        while True:
            found, now = await asyncio.to_thread(self._entry)
            if found is None or found.state(now) != "running" or time.monotonic() > give_up:
                return "none" if found is None else found.state(now)
            await asyncio.sleep(LEASE_S / 10)

    def _entry(self) -> tuple[Entry | None, float]:
        found = self.ledger.entries()
        self.expect(len(found) <= 1, f"{len(found)} entries of one effect")
        return (found or [None])[0], self.ledger.look("")[1]

    def person(self) -> None:
        """Somebody looks at the bank's file, and says what is in it."""
        (entry,) = self.ledger.entries(state="uncertain")
        finding = Happened(RECEIPT) if paid(self.bank) else DidNotHappen()
        self.expect(self.ledger.resolve(entry.effect.entry, entry.generation, finding, "ann"), "it was not resolved")

    async def play(self) -> None:
        self.seen.append(f"{self.kind}, {'asks the bank' if self.asks else 'asks nobody'}")
        try:
            await self._play()
        finally:
            await asyncio.to_thread(self.ledger.close)

    async def call(self, step: str, *, asks: bool) -> dict[str, Any] | None:
        """One process that calls the tool in a run of its own; what it gave, None when it died."""
        return await self.live(step, asks=asks, kind=self.kind, run_id=secrets.token_hex(8))

    async def _play(self) -> None:
        for step in self.deaths:
            answer = await self.call(step, asks=self.asks)
            state, times = await self.state(), len(paid(self.bank))
            how = "lived" if answer is not None else "killed"
            self.seen.append(f"{how} {step}: {state}, paid {times}")
            self.expect(times <= 1, f"paid {times} times")
            self.expect((state == "succeeded") <= (times == 1), f"{state}, and paid {times} times")
            self.expect(state in ("uncertain", "none", "failed") or times == 1, f"{state}, and paid {times} times")
        answer = await self.call("", asks=self.asks)
        if answer is not None and answer["note"] == "effect_uncertain" and not self.asks:
            self.expect(len(paid(self.bank)) <= 1, "paid more than once")
            await asyncio.to_thread(self.person)
            self.seen.append("refused as uncertain, resolved by a person")
            answer = await self.call("", asks=False)
        self.expect(answer is not None and answer["output"] == RECEIPT, f"the last call gave {answer}")
        self.expect(len(paid(self.bank)) == 1, f"paid {len(paid(self.bank))} times in the end")
        self.seen.append(f"then {'the stored result' if answer and answer['reused'] else 'the effect'}, paid 1")


def plan(every: bool) -> list[tuple[str, Sequence[str], bool]]:
    """Kind of tool, the steps at which one process after another dies, and whether `reconcile` is given."""
    kinds = KINDS if every else KINDS[:1]
    single = [(kind, (step,), asks) for kind, step, asks in product(KINDS, FIRST, (True, False))]
    before, after = BODY[0], BODY[1]
    double = [(kind, (first, second), True) for kind, first, second in product(kinds, (before, after), AGAIN)]
    return single + double if every else single[:: len(FIRST) // 2 + 1] + double[:: len(AGAIN) // 3]


async def backend(name: str, nursery: Nursery, every: bool, figures: Figures) -> None:
    cases = [partial(_case, nursery, *story) for story in plan(every)]
    await play(name, cases, figures, "stories came to one payment")


def _case(nursery: Nursery, kind: str, deaths: Sequence[str], asks: bool, place: Place, folder: Path) -> Story:
    return Case(nursery, place, folder, deaths, kind, asks)


def cost(name: str, figures: Figures) -> None:
    """What one call costs beyond its body: the first one, with its two commits, and one that gets the stored result."""
    with ExitStack() as until_then:
        url = "" if name == "memory" else until_then.enter_context(stores(name))().url
        ledger = open_ledger(url) if url else MemoryLedger()
        until_then.callback(ledger.close)

        @once(ledger=ledger, scope="bar")
        def nothing(number: int) -> str:
            return "x"

        nothing(-1)
        first, again = ([_timed(nothing, number) for number in range(CALLS)] for _ in range(2))
        figures.say(f"{name}: a first call costs {spread(first)}; one that is given the result {spread(again)}")
        figures.hold(statistics.median(again) < 0.05, f"{name}: a stored result is given within 50 ms")


def _timed(function: Any, number: int) -> float:
    began = time.perf_counter()
    function(number)
    return time.perf_counter() - began


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bars.effects", description=__doc__)
    parser.add_argument("--backend", choices=BACKENDS, action="append")
    chosen = parser.parse_args(arguments)
    figures = Figures("effects")
    with Nursery("payer") as nursery:
        for name in chosen.backend or BACKENDS:
            asyncio.run(backend(name, nursery, every=True, figures=figures))
    for name in ("memory", *(chosen.backend or BACKENDS)):
        cost(name, figures)
    return figures.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
