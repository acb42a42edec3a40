"""The connections to a file with tables of ours: a journal's, or one of that kind by itself."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from agents_progress.effects.connections import Connections, Link
from agents_progress.effects.tables import Role, Tables
from agents_progress.journal.sqlite_file import connect, translated


class _Connections(Connections[sqlite3.Connection]):
    def connect(self, *, create: bool) -> sqlite3.Connection:
        db = connect(self._place, create)
        db.create_function("now", 0, time.time)  # the file's nodes share the machine's clock
        return db

    def has(self, db: sqlite3.Connection, table: str) -> bool:
        return db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (table,)).fetchone() is not None

    def alone(self, db: sqlite3.Connection, name: str) -> AbstractContextManager[object]:
        return transaction(db)


class SQLiteLink(Link[_Connections]):
    """A file, opened at its first use, once a process; its folder must exist."""

    def __init__(self, path: str | os.PathLike[str], tables: Tables) -> None:
        name = os.fspath(path)
        super().__init__(name, tables, lambda: _Connections(name, tables), lambda: translated(name))

    @contextmanager
    def using(self, role: Role) -> Iterator[sqlite3.Connection]:
        """A connection, for one thread at a time."""
        with self.opened(role) as opened:
            yield opened.connection(role)

    def exists(self) -> bool:
        """Whether the tables are there; makes nothing."""
        return Path(self.name).is_file() and super().exists()


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
