"""The connections to a PostgreSQL database with tables of ours, in the first schema of its ``search_path``.

Whoever changes something holds an advisory lock of its name until the commit, so that what is not there yet can be
locked too. Times are the server's. Works through PgBouncer in transaction mode.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, Final, TypeAlias

import psycopg
from psycopg.rows import TupleRow

from agents_progress.effects.connections import Connections, Link
from agents_progress.effects.tables import Role, Tables
from agents_progress.journal.postgres_address import BEGIN, NOT_FOR_EVER, Address

Database: TypeAlias = "psycopg.Connection[TupleRow]"

NOW: Final = "extract(epoch FROM clock_timestamp())::double precision"
"""The server's time in seconds since 1970."""

LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
"""Locks a name until the end of the transaction."""

LOCK_SHARED: Final = "SELECT pg_advisory_xact_lock_shared(hashtextextended(%s, 0))"
"""The same, against those who lock it for themselves alone."""

_FIND: Final = "SELECT FROM pg_class WHERE relname = %s AND pg_table_is_visible(oid)"


class Opened(Connections[Database]):
    """The connections of one process."""

    def __init__(self, address: Address, tables: Tables) -> None:
        super().__init__(address.name, tables)
        self._address = address

    def connect(self, *, create: bool) -> Database:
        return self._address.connect_thread()

    def has(self, db: Database, table: str) -> bool:
        return db.execute(_FIND, (table,)).fetchone() is not None

    @contextmanager
    def alone(self, db: Database, name: str) -> Iterator[None]:
        with db.transaction():
            db.execute(NOT_FOR_EVER)
            db.execute(LOCK, (name,))
            yield

    def lost(self, db: Database) -> bool:
        return db.closed

    def exist(self) -> bool:
        try:
            return super().exist()
        except psycopg.OperationalError:  # as below
            return super().exist()

    def answer(self, role: Role, query: str, values: dict[str, Any]) -> list[TupleRow]:
        """The answer to a statement that does no harm when it is made twice: a connection that was lost while it idled
        shows only now.
        """
        try:
            return self.connection(role).execute(query, values).fetchall()
        except psycopg.OperationalError:
            return self.connection(role).execute(query, values).fetchall()


class PostgresLink(Link[Opened]):
    """A database, opened at its first use, once a process. ``url`` is a libpq URL; :attr:`name` shows no password."""

    def __init__(self, url: str | Address, tables: Tables) -> None:
        address = Address(url) if isinstance(url, str) else url
        super().__init__(address.name, tables, lambda: Opened(address, tables), address.translated)

    def using(self, role: Role) -> AbstractContextManager[Opened]:
        """The connections, of which that of the role is for one thread at a time."""
        return self.opened(role)


@contextmanager
def transaction(opened: Opened) -> Iterator[Database]:
    """The writing connection inside a transaction, which an exception undoes. One that was lost while it idled is
    replaced: nothing was under way on it.
    """
    db = opened.connection("writer")
    try:
        db.execute(BEGIN)
    except psycopg.OperationalError:
        db = opened.connection("writer")
        db.execute(BEGIN)
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
