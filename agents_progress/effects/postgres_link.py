"""The connections to a PostgreSQL database with tables of ours, in the first schema of its ``search_path``.

Whoever changes something holds an advisory lock of its name until the commit, so that what is not there yet can be
locked too. Times are the server's. Works through PgBouncer in transaction mode.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any, Final, TypeAlias

import psycopg
from psycopg.rows import TupleRow

from agents_progress.effects.tables import Role, Tables
from agents_progress.errors import JournalClosed
from agents_progress.journal.postgres_address import Address

Database: TypeAlias = "psycopg.Connection[TupleRow]"

NOW: Final = "extract(epoch FROM clock_timestamp())::double precision"
"""The server's time in seconds since 1970."""

LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
"""Locks a name until the end of the transaction."""

LOCK_SHARED: Final = "SELECT pg_advisory_xact_lock_shared(hashtextextended(%s, 0))"
"""The same, against those who lock it for themselves alone."""

# Durable whatever the server's default; and a node that froze with a lock in its hand loses it.
_BEGIN: Final = (
    "BEGIN; SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = '30s'; "
    "SET LOCAL idle_in_transaction_session_timeout = '20s'"
)
_FIND: Final = "SELECT FROM pg_class WHERE relname = %s AND pg_table_is_visible(oid)"


class Opened:
    """The connections of one process, each with the lock of whoever uses it."""

    def __init__(self, address: Address, tables: Tables) -> None:
        self.pid = os.getpid()
        self.locks: dict[Role, Lock] = {"writer": Lock(), "reader": Lock(), "renewer": Lock()}
        self.connections: dict[Role, Database] = {}
        self._address = address
        self._tables = tables

    def connection(self, role: Role) -> Database:
        """The connection of a role, made anew when it was lost."""
        db = self.connections.get(role)
        if db is None or db.closed:
            db = self._address.connect_thread()
            try:
                mark = self._tables.mark
                self._tables.prepare(db, lambda: _is_there(db, mark), _alone(db, mark), self._address.name)
            except BaseException:
                db.close()
                raise
            self.connections[role] = db
        return db

    def answer(self, role: Role, query: str, values: dict[str, Any]) -> list[TupleRow]:
        """The answer to a statement that does no harm when it is made twice: a connection that was lost while it idled
        shows only now.
        """
        try:
            return self.connection(role).execute(query, values).fetchall()
        except psycopg.OperationalError:
            return self.connection(role).execute(query, values).fetchall()


class PostgresLink:
    """A database, opened at its first use, once a process. ``url`` is a libpq URL; :attr:`name` shows no password."""

    def __init__(self, url: str | Address, tables: Tables) -> None:
        self.closed = False
        self._address = Address(url) if isinstance(url, str) else url
        self._tables = tables
        self._open: Opened | None = None
        self._lock = Lock()

    @property
    def name(self) -> str:
        """Where it is."""
        return self._address.name

    def close(self) -> None:
        """Close the connections of this process."""
        with self._lock:
            opened, self._open, self.closed = self._open, None, True
        if opened is not None and opened.pid == os.getpid():
            for role, lock in opened.locks.items():
                with lock:
                    if role in opened.connections:
                        opened.connections.pop(role).close()

    @contextmanager
    def using(self, role: Role) -> Iterator[Opened]:
        """The connections, of which that of a role is for one thread at a time."""
        with self._lock:
            if self.closed:
                raise JournalClosed(f"{self._tables.what} in {self._address.name} was closed; open it again")
            if self._open is None or self._open.pid != os.getpid():
                self._open = Opened(self._address, self._tables)  # a parent's connections stay the parent's
            opened = self._open
        with opened.locks[role], self._address.translated():
            yield opened


@contextmanager
def transaction(opened: Opened) -> Iterator[Database]:
    """The writing connection inside a transaction, which an exception undoes. One that was lost while it idled is
    replaced: nothing was under way on it.
    """
    db = opened.connection("writer")
    try:
        db.execute(_BEGIN)
    except psycopg.OperationalError:
        db = opened.connection("writer")
        db.execute(_BEGIN)
    try:
        yield db
        db.execute("COMMIT")
    except BaseException as error:
        _undo(db, error)
        raise


def time_of(db: Database) -> float:
    """The server's time."""
    (now,) = db.execute(f"SELECT {NOW}").fetchone() or (0.0,)
    return float(now)


def _undo(db: Database, error: BaseException) -> None:
    """Roll back; a connection in an uncertain state is closed, which rolls back too."""
    with suppress(psycopg.Error):
        if isinstance(error, Exception) and not db.closed:
            db.execute("ROLLBACK")
            return
    db.close()


def _is_there(db: Database, mark: str) -> bool:
    return db.execute(_FIND, (mark,)).fetchone() is not None


@contextmanager
def _alone(db: Database, mark: str) -> Iterator[None]:
    with db.transaction():
        db.execute(LOCK, (mark,))
        yield
