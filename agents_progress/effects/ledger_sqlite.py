"""The embedded ledger: tables of its own in the file of a journal, or in a file of that kind by itself."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any, Final, Literal, TypeAlias

from agents_progress.effects.entry import Entry, Hold, State
from agents_progress.effects.ledger import Change, Ledger, T, one_target
from agents_progress.effects.ledger_sql import MARK, Statements, entry_of, looked, prepare, values_of
from agents_progress.errors import JournalClosed
from agents_progress.journal.base import EVERYTHING, Scope
from agents_progress.journal.sqlite_file import connect, translated, wipe

Role: TypeAlias = Literal["writer", "reader", "renewer"]

_SQL: Final = Statements(lambda name: f":{name}", "now()")


class _Open:
    """The connections of one process, each with the lock of whoever uses it."""

    def __init__(self, path: str) -> None:
        self.pid = os.getpid()
        self.locks: dict[Role, Lock] = {"writer": Lock(), "reader": Lock(), "renewer": Lock()}
        self.connections: dict[Role, sqlite3.Connection] = {}
        self._path = path

    def connection(self, role: Role) -> sqlite3.Connection:
        if role not in self.connections:
            db = connect(self._path, create=True)
            try:
                db.create_function("now", 0, time.time)  # the file's nodes share the machine's clock
                prepare(db, lambda: _is_there(db), _transaction(db), self._path)
            except BaseException:
                db.close()
                raise
            self.connections[role] = db
        return self.connections[role]


class SQLiteLedger(Ledger):
    """A ledger in one file, which a journal may share; its folder must exist."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self._path = os.fspath(path)
        self._open: _Open | None = None
        self._lock = Lock()
        self._closed = False

    def change(self, entry: str, rule: Change[T]) -> T:
        with self._using("writer") as db, _transaction(db):
            answer, after = rule(*_looked(db, entry))
            if after is not None:
                db.execute(_SQL.store, values_of(after))
            return answer

    def look(self, entry: str) -> tuple[Entry | None, float]:
        with self._using("reader") as db:
            return _looked(db, entry)

    def renew(self, holds: Sequence[Hold], ttl: float) -> list[Hold]:
        with self._using("renewer") as db, _transaction(db):
            return [hold for hold in holds if not db.execute(_SQL.renew, _terms(hold, ttl)).rowcount]

    def entries(
        self,
        *,
        state: State | None = None,
        task_id: str | None = None,
        limit: int = 100,
        scope: Scope = EVERYTHING,
    ) -> list[Entry]:
        with self._using("reader") as db:
            return [entry_of(line) for line in db.execute(*_SQL.listing(state, task_id, limit, scope))]

    def erase(self, *, run_id: str | None = None, task_id: str | None = None, owner: str | None = None) -> int:
        target = one_target(run_id, task_id, owner)
        with self._using("writer") as db:
            with _transaction(db):
                count = db.execute(*_SQL.erase(*target)).rowcount
            wipe(db)
            return count

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
    def _using(self, role: Role) -> Iterator[sqlite3.Connection]:
        with self._lock:
            if self._closed:
                raise JournalClosed(f"the ledger {self._path} was closed; open it again")
            if self._open is None or self._open.pid != os.getpid():
                self._open = _Open(self._path)  # a parent's connections must not be touched after a fork
            opened = self._open
        with opened.locks[role], translated(self._path):
            yield opened.connection(role)


@contextmanager
def _transaction(db: sqlite3.Connection) -> Iterator[None]:
    db.execute("BEGIN IMMEDIATE")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        db.rollback()
        raise


def _is_there(db: sqlite3.Connection) -> bool:
    return db.execute("SELECT 1 FROM sqlite_master WHERE name = ?", (MARK,)).fetchone() is not None


def _looked(db: sqlite3.Connection, entry: str) -> tuple[Entry | None, float]:
    return looked(db.execute(_SQL.look, {"entry": entry}).fetchone())


def _terms(hold: Hold, ttl: float) -> dict[str, Any]:
    return {"entry": hold.entry, "generation": hold.generation, "ttl": ttl}
