"""The ledger of many nodes: tables of its own in a PostgreSQL database, beside a journal's or alone.

Whoever changes an entry holds an advisory lock of its name until the commit, so that an entry that is not there yet can
be locked too. Deadlines run by the server's clock. Works through PgBouncer in transaction mode.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Lock
from typing import Any, Final, Literal, TypeAlias

import psycopg
from psycopg.rows import TupleRow

from agents_progress.effects.entry import Entry, Hold, State
from agents_progress.effects.ledger import Change, Ledger, T, one_target
from agents_progress.effects.ledger_sql import MARK, TABLE, Statements, entry_of, looked, prepare, values_of
from agents_progress.errors import JournalClosed
from agents_progress.journal.base import EVERYTHING, Scope
from agents_progress.journal.postgres_address import Address

Role: TypeAlias = Literal["writer", "reader", "renewer"]
Database: TypeAlias = "psycopg.Connection[TupleRow]"

_NOW: Final = "extract(epoch FROM clock_timestamp())::double precision"
_SQL: Final = Statements(lambda name: f"%({name})s", _NOW)

_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))"
# Durable whatever the server's default; and a node that froze with a lock in its hand loses it.
_BEGIN: Final = (
    "BEGIN; SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = '30s'; "
    "SET LOCAL idle_in_transaction_session_timeout = '20s'"
)
_FIND: Final = "SELECT FROM pg_class WHERE relname = %s AND pg_table_is_visible(oid)"


class _Open:
    """The connections of one process, each with the lock of whoever uses it."""

    def __init__(self, address: Address) -> None:
        self.pid = os.getpid()
        self.locks: dict[Role, Lock] = {"writer": Lock(), "reader": Lock(), "renewer": Lock()}
        self.connections: dict[Role, Database] = {}
        self._address = address

    def connection(self, role: Role) -> Database:
        db = self.connections.get(role)
        if db is None or db.closed:
            db = self._address.connect_thread()
            try:
                prepare(db, lambda: _is_there(db), _alone(db), self._address.name)
            except BaseException:
                db.close()
                raise
            self.connections[role] = db
        return db


class PostgresLedger(Ledger):
    """A ledger in a PostgreSQL database, in the first schema of its ``search_path``. ``url`` is a libpq URL."""

    def __init__(self, url: str | Address) -> None:
        super().__init__()
        self._address = Address(url) if isinstance(url, str) else url
        self._open: _Open | None = None
        self._lock = Lock()
        self._closed = False

    def __repr__(self) -> str:
        return f"PostgresLedger({self._address.name!r})"

    def change(self, entry: str, rule: Change[T]) -> T:
        with self._using("writer") as opened, _transaction(opened) as db:
            db.execute(_LOCK, (f"{TABLE} {entry}",))
            answer, after = rule(*looked(db.execute(_SQL.look, {"entry": entry}).fetchone()))
            if after is not None:
                db.execute(_SQL.store, values_of(after))
            return answer

    def look(self, entry: str) -> tuple[Entry | None, float]:
        with self._using("reader") as opened:
            return looked(_answer(opened, "reader", _SQL.look, {"entry": entry})[0])

    def renew(self, holds: Sequence[Hold], ttl: float) -> list[Hold]:
        with self._using("renewer") as opened:
            gone: list[Hold] = []
            for hold in holds:
                terms = {"entry": hold.entry, "generation": hold.generation, "ttl": ttl}
                if not _answer(opened, "renewer", f"{_SQL.renew} RETURNING 1", terms):
                    gone.append(hold)
            return gone

    def entries(
        self,
        *,
        state: State | None = None,
        task_id: str | None = None,
        limit: int = 100,
        scope: Scope = EVERYTHING,
    ) -> list[Entry]:
        with self._using("reader") as opened:
            lines = _answer(opened, "reader", *_SQL.listing(state, task_id, limit, scope))
            return [entry_of(line) for line in lines]

    def erase(self, *, run_id: str | None = None, task_id: str | None = None, owner: str | None = None) -> int:
        target = one_target(run_id, task_id, owner)
        with self._using("writer") as opened, _transaction(opened) as db:
            return db.execute(*_SQL.erase(*target)).rowcount

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        self.end_thread()
        with self._lock:
            opened, self._open, self._closed = self._open, None, True
        if opened is not None and opened.pid == os.getpid():
            for role, lock in opened.locks.items():
                with lock:
                    if role in opened.connections:
                        opened.connections.pop(role).close()

    @contextmanager
    def _using(self, role: Role) -> Iterator[_Open]:
        with self._lock:
            if self._closed:
                raise JournalClosed(f"the ledger {self._address.name} was closed; open it again")
            if self._open is None or self._open.pid != os.getpid():
                self._open = _Open(self._address)  # a parent's connections must not be touched after a fork
            opened = self._open
        with opened.locks[role], self._address.translated():
            yield opened


@contextmanager
def _transaction(opened: _Open) -> Iterator[Database]:
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


def _undo(db: Database, error: BaseException) -> None:
    """Roll back; a connection in an uncertain state is closed, which rolls back too."""
    with suppress(psycopg.Error):
        if isinstance(error, Exception) and not db.closed:
            db.execute("ROLLBACK")
            return
    db.close()


def _answer(opened: _Open, role: Role, query: str, values: dict[str, Any]) -> list[TupleRow]:
    """The answer to a statement that does no harm when it is made twice: a connection that was lost while it idled
    shows only now.
    """
    try:
        return opened.connection(role).execute(query, values).fetchall()
    except psycopg.OperationalError:
        return opened.connection(role).execute(query, values).fetchall()


def _is_there(db: Database) -> bool:
    return db.execute(_FIND, (MARK,)).fetchone() is not None


@contextmanager
def _alone(db: Database) -> Iterator[None]:
    with db.transaction():
        db.execute(_LOCK, (MARK,))
        yield
