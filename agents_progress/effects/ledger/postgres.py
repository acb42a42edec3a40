"""The ledger of many nodes: tables of its own in a PostgreSQL database, beside a journal's or alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agents_progress.effects.entry import Entry, Hold, State
from agents_progress.effects.ledger.base import Change, Ledger, T, one_target
from agents_progress.effects.ledger.sql import TABLE, TABLES, Statements, entry_of, looked, values_of
from agents_progress.effects.postgres_link import LOCK, NOW, PostgresLink, transaction
from agents_progress.journal.base import EVERYTHING, Scope
from agents_progress.journal.postgres_address import Address

_SQL: Final = Statements(lambda name: f"%({name})s", NOW)


class PostgresLedger(Ledger):
    """A ledger in a PostgreSQL database, in the first schema of its ``search_path``. ``url`` is a libpq URL."""

    def __init__(self, url: str | Address) -> None:
        super().__init__()
        self._link = PostgresLink(url, TABLES)

    def __repr__(self) -> str:
        return f"PostgresLedger({self._link.name!r})"

    def change(self, entry: str, rule: Change[T]) -> T:
        with self._link.using("writer") as opened, transaction(opened) as db:
            db.execute(LOCK, (f"{TABLE} {entry}",))
            answer, after = rule(*looked(db.execute(*_SQL.look(entry)).fetchone()))
            if after is not None:
                db.execute(_SQL.store, values_of(after))
            return answer

    def look(self, entry: str, *, scope: Scope = EVERYTHING) -> tuple[Entry | None, float]:
        with self._link.using("reader") as opened:
            return looked(opened.answer("reader", *_SQL.look(entry, scope))[0])

    def renew(self, holds: Sequence[Hold], ttl: float) -> list[Hold]:
        with self._link.using("renewer") as opened:
            gone: list[Hold] = []
            for hold in holds:
                terms = {"entry": hold.entry, "generation": hold.generation, "ttl": ttl}
                if not opened.answer("renewer", f"{_SQL.renew} RETURNING 1", terms):
                    gone.append(hold)
            return gone

    def entries(
        self,
        *,
        state: State | None = None,
        task_id: str | None = None,
        begins: str = "",
        limit: int = 100,
        scope: Scope = EVERYTHING,
    ) -> list[Entry]:
        with self._link.using("reader") as opened:
            lines = opened.answer("reader", *_SQL.listing(state, task_id, begins, limit, scope))
            return [entry_of(line) for line in lines]

    def erase(self, *, run_id: str | None = None, task_id: str | None = None, owner: str | None = None) -> int:
        target = one_target(run_id, task_id, owner)
        with self._link.using("writer") as opened, transaction(opened) as db:
            return db.execute(*_SQL.erase(*target)).rowcount

    def exists(self) -> bool:
        return self._link.exists()

    @property
    def closed(self) -> bool:
        return self._link.closed

    def close(self) -> None:
        self.end_thread()
        self._link.close()
