"""The connections to a file with tables of ours: a journal's, or one of that kind by itself."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock

from agents_progress.effects.tables import Role, Tables
from agents_progress.errors import JournalClosed
from agents_progress.journal.sqlite_file import connect, translated


class _Open:
    """The connections of one process, each with the lock of whoever uses it."""

    def __init__(self, path: str, tables: Tables) -> None:
        self.pid = os.getpid()
        self.locks: dict[Role, Lock] = {"writer": Lock(), "reader": Lock(), "renewer": Lock()}
        self.connections: dict[Role, sqlite3.Connection] = {}
        self._path = path
        self._tables = tables

    def connection(self, role: Role) -> sqlite3.Connection:
        if role not in self.connections:
            db = connect(self._path, create=True)
            try:
                db.create_function("now", 0, time.time)  # the file's nodes share the machine's clock
                self._tables.prepare(db, lambda: _is_there(db, self._tables.mark), transaction(db), self._path)
            except BaseException:
                db.close()
                raise
            self.connections[role] = db
        return self.connections[role]


class SQLiteLink:
    """A file, opened at its first use, once a process; its folder must exist."""

    def __init__(self, path: str | os.PathLike[str], tables: Tables) -> None:
        self.path = os.fspath(path)
        self.closed = False
        self._tables = tables
        self._open: _Open | None = None
        self._lock = Lock()

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
    def using(self, role: Role) -> Iterator[sqlite3.Connection]:
        """A connection, for one thread at a time."""
        with self._lock:
            if self.closed:
                raise JournalClosed(f"{self._tables.what} in {self.path} was closed; open it again")
            if self._open is None or self._open.pid != os.getpid():
                self._open = _Open(self.path, self._tables)  # a parent's connections must not be touched after a fork
            opened = self._open
        with opened.locks[role], translated(self.path):
            yield opened.connection(role)


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """Nobody else writes meanwhile; an exception undoes it."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        db.rollback()
        raise


def _is_there(db: sqlite3.Connection, mark: str) -> bool:
    return db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (mark,)).fetchone() is not None
