"""200 readers over HTTP that leave and return at random moments of one run: all end with the same view, byte for byte.

Most are cut off in the middle of a frame. They return with the id of the last whole frame; a few ask for a snapshot.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Final

from agents_progress.events import parse_envelope
from agents_progress.journal.base import Journal
from agents_progress.sse import Decoder, Frame
from agents_progress.view import RunView

from .figures import Figures, spread
from .places import stores
from .served import READ_BYTES, Served, request, wire

READERS: Final = 200
EVENTS: Final = 5000
RATE: Final = 100.0
"""Events a second."""
VISITS: Final = 10
"""A reader stays for up to a fifth of what the run takes, so it comes about so often."""
SNAPSHOTS: Final = 0.1
"""The part of the returns that begin with a snapshot."""
AWAY_S: Final = 0.5
"""How long a reader is away, at most."""
CUT_BYTES: Final = 150
"""A frame is larger than this."""


class Restless:
    """A reader that does not stay. What it is given twice or not at all, its view shows."""

    def __init__(
        self, server: Served, run_id: str, stays_s: float, chance: random.Random, counts: Counter[str]
    ) -> None:
        self.view = RunView(run_id)
        self.visits = 0
        self._server = server
        self._stays_s = stays_s
        self._chance = chance
        self._counts = counts

    async def read(self) -> None:
        """Come and go until the server says that there is no more."""
        await asyncio.sleep(self._chance.uniform(0, AWAY_S))
        while await self._visit():
            await asyncio.sleep(self._chance.uniform(0, AWAY_S))

    async def _visit(self) -> bool:
        self.visits += 1
        snapshot = self.visits > 1 and self._chance.random() < SNAPSHOTS
        async with wire(self._server, request(self.view.run_id, self.view.seq, snapshot=snapshot)) as feed:
            if feed.status != 200:
                self._counts[f"status {feed.status}"] += 1
                return False
            decoder, leaves = Decoder(), asyncio.timeout(self._chance.uniform(0, self._stays_s))
            try:
                async with leaves:
                    while chunk := await feed.bytes.read(READ_BYTES):
                        self._take(decoder.feed(chunk))
            except TimeoutError:
                self._leave(decoder, await feed.bytes.read(self._chance.randrange(1, CUT_BYTES)))
        return True

    def _leave(self, decoder: Decoder, last: bytes) -> None:
        """Leave after the next few bytes, which mostly end within a frame."""
        self._counts["cut within a frame" if not last.endswith(b"\n\n") else "cut between frames"] += 1
        self._take(decoder.feed(last))

    def _take(self, frames: Sequence[Frame]) -> None:
        for frame in frames:
            if frame.event == "snapshot":
                self._counts["snapshots"] += 1
                self.view = RunView.from_snapshot(json.loads(frame.data))
            else:
                self.view.feed(parse_envelope(frame.data))


def shown(view: RunView) -> bytes:
    """A view, byte for byte, without what counts how it was fed."""
    snapshot = view.snapshot()
    for counter in ("duplicates", "foreign"):
        del snapshot["plain"][counter]
    return json.dumps(snapshot).encode()


async def folded(journal: Journal, run_id: str) -> RunView:
    """The view of a run from its stored log."""
    view = RunView(run_id)
    async for envelope in journal.tail(run_id):
        view.feed(envelope.to_json())
    return view


async def restless(readers: int, events: int, rate: float, figures: Figures, seed: int) -> None:
    counts, stays_s = Counter[str](), 2 * events / rate / VISITS
    with stores("sqlite") as places:
        place = places()
        with Served(place.url) as server:
            run_id = await server.start(events, "word ", rate)
            crowd = [Restless(server, run_id, stays_s, random.Random(seed + each), counts) for each in range(readers)]
            await asyncio.gather(*(reader.read() for reader in crowd))
            facts = await server.counts()
        journal = place.journal()
        stored = await folded(journal, run_id)
        await journal.close()
    views = {shown(reader.view) for reader in crowd}
    repeated = sum(reader.view.duplicates for reader in crowd)
    figures.say(f"seed {seed}; {dict(counts)}; visits {spread([reader.visits for reader in crowd], '', 1)}")
    figures.say(f"{stored.seq} envelopes; {facts['lags']} lags, {repeated} given twice")
    figures.hold(
        stored.standing.outcome == "succeeded" and stored.seq > events, f"the log is whole: {stored.issues or 'yes'}"
    )
    figures.hold(counts["status 204"] == readers, f"{counts['status 204']} of {readers} readers were told of the end")
    figures.hold(counts["cut within a frame"] >= readers, "readers were cut off within frames")
    figures.hold(repeated == 0, "nothing was given twice")
    figures.hold(views == {shown(stored)}, f"{readers} readers have {len(views)} view: that of the log")


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bars.readers", description=__doc__)
    parser.add_argument("--readers", type=int, default=READERS)
    parser.add_argument("--events", type=int, default=EVENTS)
    parser.add_argument("--rate", type=float, default=RATE)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    chosen = parser.parse_args(arguments)
    figures = Figures("readers")
    asyncio.run(restless(chosen.readers, chosen.events, chosen.rate, figures, chosen.seed))
    return figures.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
