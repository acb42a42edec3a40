"""Plays situations with every front end at once, each bare and with our module between it and the server."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from playwright.async_api import Browser, Page
from playwright.async_api import Error as PlaywrightError

from .clients import Client, InChromium, InNode, NodeProcess, Screen
from .node import Node, other_node
from .packages import FRONTS, bundled
from .situations import Player, Situation
from .stage import Stage, staged

PLACES: Final = ("node", "chromium")


class Seat(NamedTuple):
    """Where a front end is played, and whether our module stands between it and the server."""

    front: str
    place: str
    truth: bool

    def __str__(self) -> str:
        return f"{self.front} {self.place}{'' if self.truth else ' bare'}"


SEATS: Final = tuple(itertools.starmap(Seat, itertools.product(FRONTS, PLACES, (True, False))))
SHORT: Final = tuple(seat for seat in SEATS if seat.truth or seat.place == "node")
"""What the suite plays; the bar plays all."""


@dataclass(frozen=True)
class Played:
    """What came of one situation for one front end."""

    seat: Seat
    status: str
    screen: Screen
    faults: Sequence[str]


@dataclass
class Theatre:
    """A server, the front ends in Node, and a page of a browser for each of the others."""

    stage: Stage
    processes: Mapping[str, NodeProcess]
    pages: Mapping[Seat, Page]
    _count: int = 0

    async def play(self, situation: Situation, seats: Sequence[Seat] = SEATS) -> dict[Seat, Played]:
        """Every seat at once."""
        async with AsyncExitStack() as stack:
            node = None
            if situation.end is not None:
                node = await stack.enter_async_context(other_node(self.stage, len(seats), situation.end))
            async with asyncio.TaskGroup() as group:
                tasks = {seat: group.create_task(self._played(situation, seat, node)) for seat in seats}
        return {seat: task.result() for seat, task in tasks.items()}

    async def _played(self, situation: Situation, seat: Seat, node: Node | None) -> Played:
        self._count += 1
        name, server = f"{seat.front}-{self._count}", self.stage.url if node is None else node.url
        client = await self._opened(server, seat, name, situation.path(seat.front))
        player = Player(self.stage, seat.front, name, client, node)
        try:
            await situation.play(player)
        except (PlaywrightError, TimeoutError) as error:
            player.faults.append(f"its user cannot go on: {str(error).partition(chr(10))[0]}")
        status = player.views[-1].status if player.views else "none"
        return Played(seat, status, player.screen, player.faults)

    async def _opened(self, server: str, seat: Seat, name: str, path: str) -> Client:
        if seat.place == "node":
            return await InNode(self.processes[seat.front], name, server + path, seat.truth).open()
        return await InChromium(self.pages[seat]).open(server, seat.front, name, path, seat.truth)


@asynccontextmanager
async def theatre(folder: Path, browser: Browser) -> AsyncIterator[Theatre]:
    """Everything that plays, until the block ends."""
    bundles = {front: bundled(front, folder) for front in FRONTS}
    scripts = {front: page for front, (_, page) in bundles.items()}
    async with AsyncExitStack() as stack:
        stage = await stack.enter_async_context(staged(folder / "runs.db", scripts))
        processes = {}
        for front, (bundle, _) in bundles.items():
            processes[front] = await NodeProcess.started(bundle)
            stack.push_async_callback(processes[front].close)
        pages = {}
        for seat in SEATS:
            if seat.place == "chromium":
                pages[seat] = await browser.new_page()
                pages[seat].set_default_timeout(15_000)
                stack.push_async_callback(pages[seat].close)
        yield Theatre(stage, processes, pages)
