"""Reactions of many nodes: tables of their own in a PostgreSQL database, beside a journal's or alone."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from agents_progress.effects.entry import Hold
from agents_progress.effects.postgres_link import LOCK, LOCK_SHARED, NOW, Database, PostgresLink, time_of, transaction
from agents_progress.effects.reactions.sql import (
    TABLE,
    Statements,
    document_of,
    line_of,
    owner_of,
    tables,
    terms,
    values_of,
)
from agents_progress.effects.reactions.store import Document, Line, ReactionStore, Rule, T
from agents_progress.journal.base import EVERYTHING, Scope
from agents_progress.journal.postgres_address import Address

# The row too, as a renewal takes no other lock.
_SQL: Final = Statements(lambda name: f"%({name})s", NOW, lock=" FOR UPDATE")


class PostgresReactionStore(ReactionStore):
    """Reactions in a PostgreSQL database, in the first schema of its ``search_path``. ``url`` is a libpq URL."""

    def __init__(self, url: str | Address) -> None:
        super().__init__()
        self._link = PostgresLink(url, tables("BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"))

    def __repr__(self) -> str:
        return f"PostgresReactionStore({self._link.name!r})"

    def change(self, names: Sequence[str], rule: Rule[T], beside: Sequence[str] = ()) -> T:
        with self._link.using("writer") as opened, transaction(opened) as db:
            for name in sorted({*names, *beside}):  # in one order: nobody waits for somebody who waits for us
                db.execute(LOCK if name in names else LOCK_SHARED, (f"{TABLE} {name}",))
            found = [_found(db, name, _SQL.find_to_change) for name in names]
            found += [_found(db, name, _SQL.find) for name in beside]
            answer, writing = rule(found, time_of(db))
            for document in writing.documents:
                db.execute(_SQL.store, values_of(document))
            for task_id in writing.forget:
                db.execute(_SQL.forget, {"task_id": task_id})
            for owner in writing.forget_owners:
                db.execute(_SQL.forget_owner, owner_of(owner))
            for line in writing.lines:
                db.execute(_SQL.line, values_of(line))
            return answer

    def look(self, name: str) -> tuple[Document | None, float]:
        with self._link.using("reader") as opened:
            now = float(opened.answer("reader", f"SELECT {NOW}", {})[0][0])
            return next(map(document_of, opened.answer("reader", _SQL.find, {"name": name})), None), now

    def due(self, reactions: Collection[str], limit: int) -> list[str]:
        with self._link.using("reader") as opened:
            return [name for (name,) in opened.answer("reader", *_SQL.due(reactions, limit))]

    def renew(self, holds: Sequence[Hold], ttl: float) -> list[Hold]:
        query = f"{_SQL.renew} RETURNING 1"
        with self._link.using("renewer") as opened:
            return [hold for hold in holds if not opened.answer("renewer", query, terms(hold, ttl))]

    def documents(
        self,
        *,
        state: str | None = None,
        reaction: str | None = None,
        limit: int = 100,
        scope: Scope = EVERYTHING,
    ) -> list[Document]:
        query = _SQL.listing(limit, scope, state=state, reaction=reaction)
        with self._link.using("reader") as opened:
            return [document_of(line) for line in opened.answer("reader", *query)]

    def names(self, states: Collection[str], reactions: Collection[str] | None = None) -> list[str]:
        with self._link.using("reader") as opened:
            return [name for (name,) in opened.answer("reader", *_SQL.names(states, reactions))]

    def audit(
        self, *, task_id: str | None = None, what: str | None = None, limit: int = 1000, scope: Scope = EVERYTHING
    ) -> list[Line]:
        query = _SQL.lines(limit, scope, task_id=task_id, what=what)
        with self._link.using("reader") as opened:
            return [line_of(line) for line in opened.answer("reader", *query)][::-1]

    def exists(self) -> bool:
        return self._link.exists()

    @property
    def closed(self) -> bool:
        return self._link.closed

    def close(self) -> None:
        self.end_thread()
        self._link.close()

    def wipe(self) -> None:
        """The server's own affair."""


def _found(db: Database, name: str, query: str) -> Document | None:
    line = db.execute(query, {"name": name}).fetchone()
    return None if line is None else document_of(line)
