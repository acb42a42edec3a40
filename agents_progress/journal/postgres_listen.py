"""How the tails of one process hear of news: one connection that listens, or one question for all of them."""

from __future__ import annotations

import asyncio
import secrets
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any, Final

import psycopg
from psycopg.rows import TupleRow

from agents_progress.errors import JournalError
from agents_progress.journal.postgres_address import Address
from agents_progress.journal.postgres_schema import CHANNEL, plain
from agents_progress.journal.tails import ASKED, Bell

POLL_S: Final = 0.5
"""How often the store is asked for news while no notification can arrive, in seconds."""
RECONNECT_S: Final = 1.0
"""How long a listener that lost its connection waits before it makes another one, in seconds."""

LISTEN: Final = f"LISTEN {CHANNEL}"
_NOTIFY: Final = "SELECT pg_notify(%(channel)s, %(probe)s)"
_NEWS: Final = "SELECT run_id, seq, floor, sealed, erased FROM progress_runs WHERE run_id = ANY(%(run_ids)s)"

Ask = Callable[[str, Mapping[str, Any]], Awaitable[list[TupleRow]]]


class Listener(Bell):
    """Rings for tails when their run changed. Its connection is made when the first tail waits.

    Whether notifications arrive is found out, not assumed: a pooler in transaction mode takes a LISTEN and delivers
    nothing. Until a notification of our own arrived, the store is asked now and then, with one question for all tails.
    """

    def __init__(self, address: Address, ask: Ask) -> None:
        super().__init__()
        self.hears = False
        self._address = address
        self._ask = ask
        self._watching = Lock()
        self._watched: Counter[str] = Counter()
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> None:
        """Listen from now on. The only method, with :meth:`close`, for the thread of the connections."""
        if not self._tasks:
            self._tasks = [asyncio.create_task(self._listen_forever()), asyncio.create_task(self._poll_forever())]

    @contextmanager
    def listening(self, run_id: str) -> Iterator[asyncio.Event]:
        """An event that is set whenever the run may have changed."""
        with self._watching:
            self._watched[run_id] += 1
        try:
            with super().listening(run_id) as heard:
                yield heard
        finally:
            with self._watching:
                self._watched[run_id] -= 1
                self._watched += Counter()  # drops what nobody watches

    async def close(self) -> None:
        """Wake every tail for the last time."""
        self.ring_all()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _listen_forever(self) -> None:
        while True:
            with suppress(psycopg.Error, OSError):
                await self._listen()
            self.hears = False
            self.ring_all()
            await asyncio.sleep(RECONNECT_S)

    async def _listen(self) -> None:
        db = await self._address.connect()
        probe = f"?{secrets.token_hex(8)}"
        try:
            await db.execute(LISTEN)
            asking = asyncio.create_task(self._ask_back(probe))
            try:
                self.ring_all()  # for what happened before this connection listened
                async for notice in db.notifies():
                    if notice.payload == probe:
                        self.hears = True
                    else:
                        self.ring(notice.payload)
            finally:
                asking.cancel()
        finally:
            await db.close()

    async def _ask_back(self, probe: str) -> None:
        """Over another connection: a pooler may well deliver what one connection tells itself."""
        while True:
            with suppress(JournalError):
                await self._ask(_NOTIFY, {"channel": CHANNEL, "probe": probe})
                return
            await asyncio.sleep(RECONNECT_S)

    async def _poll_forever(self) -> None:
        known: dict[str, TupleRow] = {}
        while True:
            await asyncio.sleep(POLL_S)
            with self._watching:
                watched = self._watched.keys() - {ASKED}  # whoever waits for requests looks anyway
            if self.hears or not watched:
                continue
            try:
                lines = await self._ask(_NEWS, {"run_ids": [plain(run_id) for run_id in watched]})
            except JournalError:
                self.ring_all()  # each tail finds out for itself, and says so
                continue
            now = {line[0]: line for line in lines}
            for run_id, line in now.items():
                if known.get(run_id) != line:
                    self.ring(run_id)
            known = now
