"""Stories of processes that end at a named step, by their own hand, and of those that go on from there.

A story is lived in children of a nursery. Each one is told its step, and where to write what it came to; one that was
killed writes nothing. The bank of a story is a file, in which every payment shows that was really made.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Final

from .figures import Figures
from .nursery import Child, Nursery
from .places import Place, stores

LEASE_S: Final = 1.0
"""Of everything that is held in a story."""


class Mortal:
    """What one process does, as ``about`` says, up to the step where it is killed; or, with ``freezes``, stopped until
    the file of this name is there.
    """

    def __init__(self, about: Mapping[str, Any]) -> None:
        self.about = about
        self.bank = Path(about["bank"])

    def reached(self, step: str) -> None:
        """End here, if it is the step."""
        if not step or step != self.about["step"]:
            return
        if "freezes" not in self.about:
            os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(60)
        while not Path(self.about["freezes"]).exists():
            os.kill(os.getpid(), signal.SIGSTOP)
            time.sleep(0.02)

    def tell(self, told: Mapping[str, Any]) -> None:
        """Write what it came to."""
        Path(self.about["told"]).write_text(json.dumps(told))


def alone() -> None:
    """Wait until no thread is left, as before a fork: the keeper's ends by itself."""
    while threading.active_count() > 1:
        time.sleep(0.01)


@dataclass
class Story(ABC):
    """Who ends where, and what became of it."""

    nursery: Nursery
    place: Place
    folder: Path
    deaths: Sequence[str]
    faults: list[str] = field(default_factory=list, kw_only=True)
    seen: list[str] = field(default_factory=list, kw_only=True)

    within_s: ClassVar[float] = 40.0
    """How long a process may take."""

    @property
    def bank(self) -> Path:
        return self.folder / "bank"

    def expect(self, holds: object, words: str) -> None:
        if not holds:
            self.faults.append(words)

    def born(self, step: str, **about: Any) -> tuple[Child, Path]:
        """One process that goes up to a step, and the file in which it tells what it came to."""
        told = self.folder / f"told-{secrets.token_hex(4)}"
        place = {"url": self.place.url, "bank": str(self.bank), "lease_s": LEASE_S}
        return self.nursery.born({**place, "step": step, "told": str(told), **about}), told

    async def live(self, step: str, **about: Any) -> dict[str, Any] | None:
        """One process up to a step; what it told, None when it died."""
        child, told = self.born(step, **about)
        try:
            await self.end(child)
        finally:
            child.kill()
            child.close()
        answer: dict[str, Any] | None = json.loads(told.read_text()) if told.exists() else None
        return answer

    async def end(self, child: Child) -> None:
        """Wait for the end of a process."""
        try:
            async with asyncio.timeout(self.within_s):
                await child.gone()
        except TimeoutError:
            self.faults.append(f"a process hung, of {self.deaths}")

    @abstractmethod
    async def play(self) -> None:
        """Live it, and note what was seen and what was wrong."""


async def play(
    name: str, plan: Sequence[Callable[[Place, Path], Story]], figures: Figures, came_to: str, at_once: int = 4
) -> None:
    """Play all of a plan on stores of a backend, some at a time, and say of each what was seen."""
    free = asyncio.Semaphore(at_once)

    async def one(make: Callable[[Place, Path], Story]) -> Story:
        async with free:
            with TemporaryDirectory() as folder:
                story = make(places(), Path(folder))
                await story.play()
                return story

    with stores(name) as places:
        stories = await asyncio.gather(*map(one, plan))
    for story in stories:
        figures.say(f"{name}: {'; '.join(story.seen)}")
        for fault in story.faults:
            figures.say(f"{name}, {story.deaths}: {fault}")
    bad = sum(bool(story.faults) for story in stories)
    figures.hold(not bad, f"{name}: {len(stories) - bad} of {len(stories)} {came_to}")
