"""Kill -9 at every step of an approval, then a restart: the bank has paid once in the end, and never twice.

Each step is named. One process asks and may be killed; a second one, which never saw it, approves and may be killed; a
third one approves what still waits. Where nothing waits because a process died after its claim, the run is told as
unknown, never as done, and asking anew comes to one payment through the ledger.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from .asker import ANSWERING, ASKED, ASKING, EDITED, orders
from .figures import Figures
from .nursery import Nursery
from .payer import paid
from .places import Place, Places, stores

BACKENDS: Final = "sqlite", "postgres"
LEASE_S: Final = 1.0
WITHIN_S: Final = 40.0


@dataclass
class Story:
    """Who dies where, and what became of it."""

    nursery: Nursery
    place: Place
    folder: Path
    deaths: tuple[str, str]
    edited: bool = False
    run_id: str = field(default_factory=lambda: secrets.token_hex(8))
    faults: list[str] = field(default_factory=list)
    seen: list[str] = field(default_factory=list)

    @property
    def bank(self) -> Path:
        return self.folder / "bank"

    async def live(self, does: str, step: str) -> dict[str, Any] | None:
        """One process up to a step; what it told, None when it died."""
        told = self.folder / f"told-{does}"
        about = {
            "url": self.place.url,
            "bank": str(self.bank),
            "step": step,
            "does": does,
            "told": str(told),
            "edited": self.edited,
        }
        child = self.nursery.born({**about, "lease_s": LEASE_S, "run_id": self.run_id})
        try:
            async with asyncio.timeout(WITHIN_S):
                await child.gone()
        except TimeoutError:
            child.kill()
            self.faults.append(f"a process hung at or before {step!r}")
        finally:
            child.close()
        answer: dict[str, Any] | None = json.loads(told.read_text()) if told.exists() else None
        if (answer is None) != bool(step):
            self.faults.append(f"{does}: {'killed' if answer is None else 'lived'}, to be killed {step!r}")
        return answer

    async def play(self) -> None:
        asking, answering = self.deaths
        for does, step in (("ask", asking), ("answer", answering)):
            if does == "answer" and asking and asking not in ASKING[3:]:
                continue  # it never paused, so there is nothing to answer
            if does == "ask" or step:
                await self.live(does, step)
                self.seen.append(f"{'killed ' + step if step else does + 's'}, paid {len(paid(self.bank))}")
                if len(paid(self.bank)) > 1:
                    self.faults.append(f"paid {len(paid(self.bank))} times")
        told = await self.live("finish", "") or {}
        how = f"unknown is told as {told['left']}, and asked anew" if told.get("again") else "approved"
        self.seen.append(f"{how}: {told.get('kind')}, paid {len(paid(self.bank))}")
        if told.get("kind") != "succeeded" or len(paid(self.bank)) != 1:
            self.faults.append(f"it came to {told}, paid {len(paid(self.bank))} times")
        if set(orders(self.bank)) != {EDITED if self.edited else ASKED}:
            self.faults.append(f"paid for {orders(self.bank)}")
        if told.get("again") and told.get("left") != "unknown":
            self.faults.append(f"a run that was killed is told as {told['left']}")


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
    free = asyncio.Semaphore(4)

    async def one(places: Places, deaths: tuple[str, str], edited: bool) -> Story:
        async with free:
            with TemporaryDirectory() as folder:
                story = Story(nursery, places(), Path(folder), deaths, edited)
                await story.play()
                return story

    with stores(name) as places:
        stories = await asyncio.gather(*(one(places, *each) for each in plan(every)))
    for story in stories:
        figures.say(f"{name}{', edited' if story.edited else ''}: {'; '.join(story.seen)}")
        for fault in story.faults:
            figures.say(f"{name}, {story.deaths}: {fault}")
    bad = sum(bool(story.faults) for story in stories)
    figures.hold(not bad, f"{name}: {len(stories) - bad} of {len(stories)} approvals came to one payment")


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
