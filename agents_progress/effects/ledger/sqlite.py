"""The embedded ledger: tables of its own in the file of a journal, or in a file of that kind by itself."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from typing import Any, Final

from agents_progress.effects.entry import Entry, Hold, State
from agents_progress.effects.ledger.base import Change, Ledger, T, one_target
from agents_progress.effects.ledger.sql import TABLES, Statements, entry_of, looked, values_of
from agents_progress.effects.sqlite_link import SQLiteLink, transaction
from agents_progress.journal.base import EVERYTHING, Scope
from agents_progress.journal.sqlite_file import wipe

_SQL: Final = Statements(lambda name: f":{name}", "now()")


class SQLiteLedger(Ledger):
    """A ledger in one file, which a journal may share; its folder must exist."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self._link = SQLiteLink(path, TABLES)

    def change(self, entry: str, rule: Change[T]) -> T:
        with self._link.using("writer") as db, transaction(db):
            answer, after = rule(*_looked(db, entry))
            if after is not None:
                db.execute(_SQL.store, values_of(after))
            return answer

    def look(self, entry: str, *, scope: Scope = EVERYTHING) -> tuple[Entry | None, float]:
        with self._link.using("reader") as db:
            return _looked(db, entry, scope)

    def renew(self, holds: Sequence[Hold], ttl: float) -> list[Hold]:
        with self._link.using("renewer") as db, transaction(db):
            return [hold for hold in holds if not db.execute(_SQL.renew, _terms(hold, ttl)).rowcount]

    def entries(
        self,
        *,
        state: State | None = None,
        task_id: str | None = None,
        begins: str = "",
        limit: int = 100,
        scope: Scope = EVERYTHING,
    ) -> list[Entry]:
        with self._link.using("reader") as db:
            return [entry_of(line) for line in db.execute(*_SQL.listing(state, task_id, begins, limit, scope))]

    def erase(self, *, run_id: str | None = None, task_id: str | None = None, owner: str | None = None) -> int:
        target = one_target(run_id, task_id, owner)
        with self._link.using("writer") as db:
            with transaction(db):
                count = db.execute(*_SQL.erase(*target)).rowcount
            wipe(db)
            return count

    def exists(self) -> bool:
        return self._link.exists()

    @property
    def closed(self) -> bool:
        return self._link.closed

    def close(self) -> None:
        self.end_thread()
        self._link.close()


def _looked(db: sqlite3.Connection, entry: str, scope: Scope = EVERYTHING) -> tuple[Entry | None, float]:
    return looked(db.execute(*_SQL.look(entry, scope)).fetchone())


def _terms(hold: Hold, ttl: float) -> dict[str, Any]:
    return {"entry": hold.entry, "generation": hold.generation, "ttl": ttl}
