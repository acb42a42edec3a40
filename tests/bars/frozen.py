"""Stop a process with SIGSTOP for longer than its lease, have another one take over, then let it go on: it acts no
second time, and changes nothing that the other one found out.

For a tool under `@once`, for a kept pause that is being answered, and for a worker of reactions between its steps. A
process that is stopped inside the application's own submission, before it arrives, is seen by nobody: it arrives
late, under the same key, which is one effect downstream.
"""

from __future__ import annotations

import argparse
import asyncio
import secrets
import sqlite3
import sys
import time
from abc import abstractmethod
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, Final

from agents_progress.effects.places import open_ledger, reactions_beside

from .asker import ANSWERING
from .figures import Figures
from .nursery import Child, Nursery
from .payer import BODY, FIRST, paid
from .places import Place
from .reactor import EFFECT, arrived
from .reactor import FIRST as REACTING
from .stories import Story, play

BACKENDS: Final = "sqlite", "postgres"
LATE: Final = (BODY[0], EFFECT[0], ANSWERING[6])
"""Steps inside the application's code, with the effect still to come."""
INSIDE: Final = ("within the transaction of", "before the commit of")
"""Moments in which a lock of the store is held. A file stays locked, then; a server ends the transaction."""
AT_THE_SERVER: Final = ("before the commit of: record that it happened",)


@dataclass
class Frozen(Story):
    """One process that is stopped at a step, and another one that lives on."""

    now: float = field(default_factory=time.time, kw_only=True)
    run_id: str = field(default_factory=lambda: secrets.token_hex(8), kw_only=True)

    within_s = 45.0

    stopped: dict[str, Any] = field(default_factory=dict, init=False)
    other: dict[str, Any] = field(default_factory=dict, init=False)

    async def rows(self) -> list[object]:
        """The runs in the journal, as they stand."""
        journal = self.place.journal()
        rows: list[object] = [(row.run_id, row.status, row.seq) for row in await journal.runs()]
        await journal.close()
        return rows

    @abstractmethod
    async def known(self) -> Sequence[object]:
        """What the store says, which must not change any more."""

    @abstractmethod
    def well(self, told: dict[str, Any]) -> bool:
        """Whether the process that took over came to the right end."""

    def effects(self) -> list[str]:
        """The key of each effect that was had."""
        return paid(self.bank)

    async def play(self) -> None:
        (step,) = self.deaths
        await self.rows()  # and with them the tables: whoever is stopped while it makes some has everybody else wait
        await self.known()
        child, told = self.born(step, freezes=str(self.folder / "thawed"), **self.stopped)
        try:
            async with asyncio.timeout(self.within_s):
                await child.frozen()
                while _locked(self.place.url):
                    child.thaw()  # for a moment: another thread of it was at the file
                    await asyncio.sleep(0.01)
                    await child.frozen()
            await self._overtaken(step, child, told)
        finally:
            child.kill()  # one that is left stopped would stay for ever
            child.close()

    async def _overtaken(self, step: str, child: Child, told: Path) -> None:
        self.expect(not told.exists(), f"nobody came to {step!r}")
        found = await self.live("", **self.other) or {}
        self.expect(self.well(found), f"whoever took over says {found}")
        known, before = await self.known(), len(self.effects())
        (self.folder / "thawed").touch()
        child.thaw()
        await self.end(child)
        keys = self.effects()
        self.seen.append(f"stopped {step}: {before} before it went on, {len(keys)} after, {len(set(keys))} under a key")
        self.expect(len(set(keys)) == 1, f"{len(set(keys))} effects")
        self.expect(len(keys) == 1 or (step in LATE and len(keys) == 2), f"{len(keys)} arrivals")
        after = await self.known()
        self.expect(after == known, f"what was known changed from {known} to {after}")


@dataclass
class Paying(Frozen):
    """A tool under `@once`."""

    kind: str

    def __post_init__(self) -> None:
        about = {"asks": True, "kind": self.kind}
        self.stopped, self.other = about | {"run_id": self.run_id}, about | {"run_id": secrets.token_hex(8)}

    async def known(self) -> Sequence[object]:
        return await asyncio.to_thread(_entries, self.place.url)

    def well(self, told: dict[str, Any]) -> bool:
        return told.get("output") == "paid 7"


@dataclass
class Answering(Frozen):
    """A kept pause that is being answered."""

    def __post_init__(self) -> None:
        self.stopped = {"does": "answer", "run_id": self.run_id}
        self.other = {"does": "finish", "run_id": self.run_id}

    async def play(self) -> None:
        asked = await self.live("", does="ask", run_id=self.run_id)
        self.expect(asked == {"kind": "paused"}, f"whoever asked says {asked}")
        await super().play()

    async def known(self) -> Sequence[object]:
        return [*await self.rows(), *await asyncio.to_thread(_entries, self.place.url)]

    def well(self, told: dict[str, Any]) -> bool:
        return told.get("kind") == "succeeded" and told.get("left", "unknown") == "unknown"


@dataclass
class Reacting(Frozen):
    """A worker of reactions."""

    def __post_init__(self) -> None:
        self.stopped = self.other = {"now": self.now}

    async def known(self) -> Sequence[object]:
        return [*await self.rows(), *await asyncio.to_thread(_reactions, self.place)]

    def well(self, told: dict[str, Any]) -> bool:
        return told.get("state") == "done" and (told.get("runs") or [""])[-1] == "done"

    def effects(self) -> list[str]:
        return arrived(self.bank)


def _locked(url: str) -> bool:
    """Whether a process was stopped with a lock that nobody takes from it: that of a file."""
    if not url.startswith("sqlite:///"):
        return False
    try:
        with closing(sqlite3.connect(f"file:{url.removeprefix('sqlite:///')}?mode=rw", timeout=0, uri=True)) as db:
            db.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        return "locked" in str(error)
    return False


def _reactions(place: Place) -> Sequence[object]:
    store = reactions_beside(place.journal())  # of which nothing is opened
    found = store.documents()
    store.close()
    return found


def _entries(url: str) -> Sequence[object]:
    ledger = open_ledger(url)
    found = ledger.entries()
    ledger.close()
    return found


def plan(name: str, every: bool) -> tuple[list[tuple[str, str]], list[str], list[str]]:
    """The steps at which a process stops: of a tool of a kind, of an answer, of a worker."""
    held = () if name == "sqlite" else AT_THE_SERVER
    paying = [step for step in FIRST if not step.startswith(INSIDE) or step in held]
    reacting = [step for step in REACTING if not step.startswith(INSIDE)]
    if every:
        return list(product(("sync", "async"), paying)), list(ANSWERING), reacting
    return [("sync", FIRST[3])], [ANSWERING[3]], ["after: say that it may happen (approved)"]


async def backend(name: str, nurseries: dict[str, Nursery], every: bool, figures: Figures) -> None:
    """Play all of it on one backend."""
    tools, answers, workers = plan(name, every)
    payer, asker, reactor = (nurseries[module] for module in ("payer", "asker", "reactor"))
    stories: list[Callable[[Place, Path], Story]] = [
        *(partial(_paying, payer, kind, step) for kind, step in tools),
        *(lambda place, folder, step=step: Answering(asker, place, folder, [step]) for step in answers),
        *(lambda place, folder, step=step: Reacting(reactor, place, folder, [step]) for step in workers),
    ]
    await play(name, stories, figures, "stopped processes left one effect behind, and changed nothing late")


def _paying(nursery: Nursery, kind: str, step: str, place: Place, folder: Path) -> Story:
    return Paying(nursery, place, folder, [step], kind)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bars.frozen", description=__doc__)
    parser.add_argument("--backend", choices=BACKENDS, action="append")
    chosen = parser.parse_args(arguments)
    figures = Figures("frozen")
    with Nursery("payer") as payer, Nursery("asker") as asker, Nursery("reactor") as reactor:
        nurseries = {"payer": payer, "asker": asker, "reactor": reactor}
        for name in chosen.backend or BACKENDS:
            asyncio.run(backend(name, nurseries, every=True, figures=figures))
    return figures.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
