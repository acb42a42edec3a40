"""500 sockets that ask for a feed and never read a byte, 50 that never finish their request, 50 that vanish within a
frame: the run beside them does what it does without them, and so does a reader.

The run says a kilobyte at each beat of a clock, so that what nobody takes soon fills every buffer there is.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import socket
import struct
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from agents_progress.events import Envelope, parse_envelope
from agents_progress.journal.base import Journal
from agents_progress.sse import Decoder

from .figures import Figures, share, spread
from .million import Memory
from .places import stores
from .served import READ_BYTES, Served, raw, request, wire

STUCK: Final = 500
OTHERS: Final = 50
"""Sockets of each of the two other kinds."""
RATE: Final = 250.0
SECONDS: Final = 20.0
WORD: Final = "word " * 200
STALL_S: Final = 3.0
BAR_MB: Final = 150.0
BAR_RATIO: Final = 1.1
BAR_LATE_S: Final = 1.0
"""A reader has 99 % of the envelopes within this time."""
RESET: Final = struct.pack("ii", 1, 0)


class Nuisances:
    """The sockets. What is stuck, or slow to ask, is kept open until it goes."""

    def __init__(self, server: Served, stuck: int, others: int) -> None:
        self._server = server
        self._numbers = stuck, others
        self._kept: list[socket.socket] = []
        self.vanished = 0

    def come(self, run_id: str) -> None:
        stuck, others = self._numbers
        asked = request(run_id, version="1.1")
        self._kept += [raw(self._server, asked) for _ in range(stuck)]
        self._kept += [raw(self._server, asked[: random.randrange(len(asked) - 2)]) for _ in range(others)]
        for _ in range(others):
            self._vanish(raw(self._server, asked))

    def _vanish(self, opened: socket.socket) -> None:
        with opened:
            while b"\nid: " not in (got := opened.recv(300)) or got.endswith(b"\n\n"):
                pass
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
        self.vanished += 1

    def go(self) -> None:
        for each in self._kept:
            each.close()


@dataclass
class Passage:
    """What came of one run: its log, how long that took, and by how much its reader was late."""

    run_id: str = ""
    log: list[Envelope] = field(default_factory=list)
    read: list[Envelope] = field(default_factory=list)
    late: list[float] = field(default_factory=list)

    @property
    def took(self) -> float:
        return at(self.log[-1]) - at(self.log[0])

    @property
    def said(self) -> list[tuple[int, str, dict[str, Any]]]:
        """The log without the task, which no two runs share."""
        return [(each.seq, each.type, {**each.payload, "task_id": None}) for each in self.log]


def at(envelope: Envelope) -> float:
    return datetime.fromisoformat(envelope.occurred_at).timestamp()


async def follow(server: Served, passage: Passage) -> None:
    """The reader beside the others."""
    decoder = Decoder()
    async with wire(server, request(passage.run_id)) as feed:
        while chunk := await feed.bytes.read(READ_BYTES):
            now = time.time()
            for frame in decoder.feed(chunk):
                envelope = parse_envelope(frame.data)
                passage.read.append(envelope)
                passage.late.append(now - at(envelope))


async def passes(
    server: Served, journal: Journal, seconds: float, rate: float, nuisances: Nuisances | None = None
) -> Passage:
    passage = Passage(await server.start(int(seconds * rate), WORD, rate))
    reading = asyncio.create_task(follow(server, passage))
    if nuisances is not None:
        await asyncio.to_thread(nuisances.come, passage.run_id)
    await reading
    passage.log = [envelope async for envelope in journal.tail(passage.run_id)]
    return passage


async def stuck(number: int, others: int, seconds: float, rate: float, stall_s: float, figures: Figures) -> None:
    with stores("sqlite") as places:
        place = places()
        with Served(place.url, stall_s=stall_s) as server:
            journal, nuisances = place.journal(), Nuisances(server, number, others)
            await passes(server, journal, 0.5, rate)  # what is loaded at first use
            before = await server.counts()
            alone = await passes(server, journal, seconds, rate)
            between = await server.counts()
            with Memory(server.pid) as memory:
                beside = await passes(server, journal, seconds, rate, nuisances)
                after = await server.counts()
            nuisances.go()
            await journal.close()
    grown, ratio = memory.most - memory.first, beside.took / alone.took
    cpu = f"{between['cpu'] - before['cpu']:.1f} and {after['cpu'] - between['cpu']:.1f} s of a core"
    size = len(WORD) * seconds * rate / 2**20
    figures.say(f"{seconds * rate:,.0f} words, {size:.0f} MB, {rate:g} a second; without and with the others: {cpu}")
    figures.hold(alone.said == beside.said, f"the same {len(alone.log)} envelopes are in both logs")
    figures.hold(ratio < BAR_RATIO, f"the run took {alone.took:.2f} and {beside.took:.2f} s, {ratio:.3f} times as long")
    for word, passage in ("alone", alone), ("beside the others", beside):
        figures.hold(
            passage.read == passage.log and share(passage.late, 0.99) < BAR_LATE_S,
            f"a reader {word} was given {len(passage.read)} of {len(passage.log)}, late by {spread(passage.late)}",
        )
    figures.hold(nuisances.vanished == others, f"{nuisances.vanished} vanished within a frame")
    figures.hold(after["stalled"] == number, f"{after['stalled']} were cut off after {stall_s:g} s")
    figures.hold(
        after["connections"] == others, f"{after['connections']} connections are left, of {others} that are slow to ask"
    )
    figures.hold(grown <= BAR_MB, f"memory of the server grew by {grown:.1f} MB (at most {BAR_MB:g})")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bars.stuck", description=__doc__)
    parser.add_argument("--stuck", type=int, default=STUCK)
    parser.add_argument("--others", type=int, default=OTHERS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--stall-s", type=float, default=STALL_S)
    chosen = parser.parse_args(arguments)
    figures = Figures("stuck")
    asyncio.run(stuck(chosen.stuck, chosen.others, chosen.seconds, chosen.rate, chosen.stall_s, figures))
    return figures.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
