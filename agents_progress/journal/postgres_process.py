"""What one process holds of a PostgreSQL journal: a link for each event loop, and a connection to renew leases with."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from threading import Lock
from typing import Any

import psycopg
from psycopg.rows import TupleRow

from agents_progress.journal.postgres_address import Address
from agents_progress.journal.postgres_link import Link, WriteGathered


class Process:
    """The connections of one process. Those of a parent must neither be used nor closed after a fork: keep the object
    and make another one.
    """

    def __init__(self, address: Address, create: bool, write_gathered: WriteGathered) -> None:
        self.pid = os.getpid()
        self._address = address
        self._create = create
        self._write_gathered = write_gathered
        self._links: dict[asyncio.AbstractEventLoop, Link] = {}
        self._lock = Lock()
        self._renewer: psycopg.Connection[TupleRow] | None = None
        self._renewing = Lock()

    def link(self) -> Link:
        """The link of the running loop. Those of loops that are over are let go."""
        loop = asyncio.get_running_loop()
        with self._lock:
            if loop not in self._links:
                for over in [loop for loop in self._links if loop.is_closed()]:
                    self._links.pop(over).drop()
                self._links[loop] = Link(self._address, self._create, self._write_gathered)
            return self._links[loop]

    def renew(self, query: str, values: Sequence[Any]) -> list[TupleRow]:
        """The answer to a statement that does no harm when it is made twice, over the connection of a thread."""
        with self._renewing, self._address.translated():
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
        """Finish what was asked for in every loop, and let go."""
        with self._lock:
            links, self._links = self._links, {}
        for loop, link in links.items():
            if loop is asyncio.get_running_loop():
                await link.close()
            elif loop.is_running():
                await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(link.close(), loop))
            else:
                link.drop()
        with self._renewing:
            if self._renewer is not None:
                self._renewer.close()
