"""Kill -9 at every step of an approval, then a restart: the bank has paid once in the end, and never twice.

Each step is named. One process asks and may be killed; a second one, which never saw it, approves and may be killed; a
third one approves what still waits. Where nothing waits because a process died after its claim, the run is told as
unknown, never as done, and asking anew comes to one payment through the ledger.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from .asker import ANSWERING, ASKED, ASKING, EDITED, orders
from .figures import Figures
from .nursery import Nursery
from .payer import paid
from .stories import Story, play

BACKENDS: Final = "sqlite", "postgres"


@dataclass
class Case(Story):
    """One story of two processes: one asks, and another one that never saw it answers."""

    edited: bool = field(default=False, kw_only=True)
    run_id: str = field(default_factory=lambda: secrets.token_hex(8), kw_only=True)

    async def part(self, does: str, step: str) -> dict[str, Any] | None:
        """The process that does this, up to a step; what it told, None when it died."""
        answer = await self.live(step, does=does, run_id=self.run_id, edited=self.edited)
        how = "killed" if answer is None else "lived"
        self.expect((answer is None) == bool(step), f"{does}: {how}, to be killed {step!r}")
        return answer

    async def play(self) -> None:
        asking, answering = self.deaths
        for does, step in (("ask", asking), ("answer", answering)):
            if does == "answer" and asking and asking not in ASKING[3:]:
                continue  # it never paused, so there is nothing to answer
            if does == "ask" or step:
                await self.part(does, step)
                self.seen.append(f"{'killed ' + step if step else does + 's'}, paid {len(paid(self.bank))}")
                self.expect(len(paid(self.bank)) <= 1, f"paid {len(paid(self.bank))} times")
        told = await self.part("finish", "") or {}
        how = f"unknown is told as {told['left']}, and asked anew" if told.get("again") else "approved"
        self.seen.append(f"{how}: {told.get('kind')}, paid {len(paid(self.bank))}")
        once = told.get("kind") == "succeeded" and len(paid(self.bank)) == 1
        self.expect(once, f"it came to {told}, paid {len(paid(self.bank))} times")
        paid_for = {EDITED if self.edited else ASKED}
        self.expect(set(orders(self.bank)) == paid_for, f"paid for {orders(self.bank)}")
        truly = not told.get("again") or told.get("left") == "unknown"
        self.expect(truly, f"a run that was killed is told as {told.get('left')}")


def plan(every: bool) -> list[tuple[tuple[str, str], bool]]:
    """The steps at which the process that asks and the one that answers die, and whether the answer edits what is paid.

    An edit is decided when the answer is; whether it holds is seen from the claim on.
    """
    asking, answering = [(step, "") for step in ASKING], [("", step) for step in ANSWERING]
    both = [(ASKING[3], step) for step in ANSWERING]
    edited = answering[2:9]
    if not every:
        asking, answering, both, edited = [asking[1], asking[3]], answering[1::4], [both[3]], edited[1::4]
    return [(deaths, False) for deaths in asking + answering + both] + [(deaths, True) for deaths in edited]


async def backend(name: str, nursery: Nursery, every: bool, figures: Figures) -> None:
    """Play all of a plan on one backend, some at a time, and say of each what was seen."""
    cases = [
        lambda place, folder, deaths=deaths, edited=edited: Case(nursery, place, folder, deaths, edited=edited)
        for deaths, edited in plan(every)
    ]
    await play(name, cases, figures, "approvals came to one payment")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bars.approvals", description=__doc__)
    parser.add_argument("--backend", choices=BACKENDS, action="append")
    chosen = parser.parse_args(arguments)
    figures = Figures("approvals")
    with Nursery("asker") as nursery:
        for name in chosen.backend or BACKENDS:
            asyncio.run(backend(name, nursery, every=True, figures=figures))
    return figures.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
