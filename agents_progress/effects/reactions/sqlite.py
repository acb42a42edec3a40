"""Reactions in tables of their own in the file of a journal, or in a file of that kind by itself."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Collection, Sequence
from typing import Final

from agents_progress.effects.entry import Hold
from agents_progress.effects.reactions.sql import Statements, document_of, line_of, owner_of, tables, terms, values_of
from agents_progress.effects.reactions.store import Document, Line, ReactionStore, Rule, T
from agents_progress.effects.sqlite_link import SQLiteLink, transaction
from agents_progress.journal.base import EVERYTHING, Scope
from agents_progress.journal.sqlite_file import wipe

_SQL: Final = Statements(lambda name: f":{name}", "now()")


class SQLiteReactionStore(ReactionStore):
    """Reactions in one file, which a journal may share; its folder must exist."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        super().__init__()
        self._link = SQLiteLink(path, tables("INTEGER PRIMARY KEY"))

    def change(self, names: Sequence[str], rule: Rule[T], beside: Sequence[str] = ()) -> T:
        with self._link.using("writer") as db, transaction(db):
            answer, writing = rule([_found(db, name) for name in (*names, *beside)], time.time())
            db.executemany(_SQL.store, map(values_of, writing.documents))
            db.executemany(_SQL.forget, [{"task_id": task_id} for task_id in writing.forget])
            db.executemany(_SQL.forget_owner, map(owner_of, writing.forget_owners))
            db.executemany(_SQL.line, map(values_of, writing.lines))
            return answer

    def look(self, name: str) -> tuple[Document | None, float]:
        with self._link.using("reader") as db:
            return _found(db, name), time.time()

    def due(self, reactions: Collection[str], limit: int) -> list[str]:
        with self._link.using("reader") as db:
            return [name for (name,) in db.execute(*_SQL.due(reactions, limit))]

    def renew(self, holds: Sequence[Hold], ttl: float) -> list[Hold]:
        with self._link.using("renewer") as db, transaction(db):
            return [hold for hold in holds if not db.execute(_SQL.renew, terms(hold, ttl)).rowcount]

    def documents(
        self,
        *,
        state: str | None = None,
        reaction: str | None = None,
        limit: int = 100,
        scope: Scope = EVERYTHING,
    ) -> list[Document]:
        query = _SQL.listing(limit, scope, state=state, reaction=reaction)
        with self._link.using("reader") as db:
            return [document_of(line) for line in db.execute(*query)]

    def names(self, states: Collection[str], reactions: Collection[str] | None = None) -> list[str]:
        with self._link.using("reader") as db:
            return [name for (name,) in db.execute(*_SQL.names(states, reactions))]

    def audit(
        self, *, task_id: str | None = None, what: str | None = None, limit: int = 1000, scope: Scope = EVERYTHING
    ) -> list[Line]:
        query = _SQL.lines(limit, scope, task_id=task_id, what=what)
        with self._link.using("reader") as db:
            return [line_of(line) for line in db.execute(*query)][::-1]

    def exists(self) -> bool:
        return self._link.exists()

    @property
    def closed(self) -> bool:
        return self._link.closed

    def close(self) -> None:
        self.end_thread()
        self._link.close()

    def wipe(self) -> None:
        with self._link.using("writer") as db:
            wipe(db)


def _found(db: sqlite3.Connection, name: str) -> Document | None:
    line = db.execute(_SQL.find, {"name": name}).fetchone()
    return None if line is None else document_of(line)
