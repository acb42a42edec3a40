"""What one process holds of a PostgreSQL journal: a thread with an event loop of its own, and the connections in it.

Not the application's loop: while a blocking tool holds that one up, a transaction would stay open with the locks of its
runs, and their leases could not be renewed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Sequence
from threading import Lock, Thread
from typing import Any, TypeVar

import psycopg
from psycopg.rows import TupleRow

from agents_progress.errors import JournalClosed
from agents_progress.journal.postgres_address import Address
from agents_progress.journal.postgres_link import Link, WriteGathered
from agents_progress.journal.threads import outcome_of

T = TypeVar("T")


class Process:
    """The thread and the connections of one process. Those of a parent must neither be used nor closed after a fork:
    keep the object and make another one.
    """

    def __init__(self, address: Address, create: bool, write_gathered: WriteGathered) -> None:
        self.pid = os.getpid()
        self.link = Link(address, create, write_gathered)
        self._address = address
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._serve, name="agents-progress-postgres", daemon=True)
        self._thread.start()
        self._lock = Lock()
        self._closing = False
        self._renewer: psycopg.Connection[TupleRow] | None = None
        self._renewing = Lock()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something in the thread. A caller that is cancelled leaves; it is done all the same."""
        with self._lock:
            if self._closing:
                work.close()
                raise self._closed()
            doing = asyncio.run_coroutine_threadsafe(work, self._loop)
        return await outcome_of(doing)

    def renew(self, query: str, values: Sequence[Any]) -> list[TupleRow]:
        """The answer to a statement that does no harm when it is made twice, over the connection of the caller's
        thread.
        """
        with self._renewing, self._address.translated():
            if self._closing:
                raise self._closed()  # a keeper may come late
            try:
                return self._connected().execute(query, values).fetchall()
            except psycopg.OperationalError:
                # A connection that was lost while it idled shows only now.
                return self._connected().execute(query, values).fetchall()

    def _connected(self) -> psycopg.Connection[TupleRow]:
        if self._renewer is None or self._renewer.closed:
            self._renewer = self._address.connect_thread()
        return self._renewer

    async def close(self) -> None:
        """Finish what was asked for, and let go. A caller that is cancelled leaves; it is done all the same."""
        with self._lock:
            self._closing = True
            closing = asyncio.run_coroutine_threadsafe(self.link.close(), self._loop)
        closing.add_done_callback(lambda over: self._loop.call_soon_threadsafe(self._loop.stop))
        await outcome_of(closing)
        await asyncio.to_thread(self._thread.join)

    def _serve(self) -> None:
        self._loop.run_forever()
        self._loop.close()
        with self._renewing:
            if self._renewer is not None:
                self._renewer.close()

    def _closed(self) -> JournalClosed:
        return JournalClosed(f"the journal {self._address.name} was closed; open it again")
