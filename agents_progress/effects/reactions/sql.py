"""What the SQL stores of reactions have in common: two tables, their statements, and what a line of them is.

Texts of an application are stored as ASCII JSON, which every store takes and compares.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import fields
from typing import Any, Final

from agents_progress.effects.entry import Hold
from agents_progress.effects.reactions.store import Document, Line
from agents_progress.effects.tables import Tables
from agents_progress.errors import JournalUnreadable
from agents_progress.journal.base import Scope

TABLE: Final = "progress_reactions"
AUDIT: Final = "progress_reactions_audit"

_COLUMNS: Final[Mapping[str, str]] = {
    "name": "TEXT PRIMARY KEY",
    "kind": "TEXT NOT NULL",
    "body": "TEXT NOT NULL",
    "reaction": "TEXT NOT NULL",
    "state": "TEXT NOT NULL",
    "due_at": "DOUBLE PRECISION",
    "generation": "BIGINT NOT NULL",
    "owner": "TEXT",
    "tenant": "TEXT",
    "task_id": "TEXT",
    "at": "DOUBLE PRECISION NOT NULL",
}
_LINE: Final = tuple(item.name for item in fields(Line))
_FREE: Final = frozenset({"body", "reaction", "owner", "tenant", "actor", "reason"})
"""Columns that hold what is an application's, as JSON."""


def tables(number: str) -> Tables:
    """The tables in one dialect; ``number`` is the type of a key that counts by itself."""
    lines = ", ".join(f"{name} {'DOUBLE PRECISION NOT NULL' if name == 'at' else 'TEXT'}" for name in _LINE)
    return Tables(
        "a store of reactions",
        "progress_reactions_version",
        1,
        (
            f"CREATE TABLE {TABLE} ({', '.join(f'{name} {kind}' for name, kind in _COLUMNS.items())})",
            f"CREATE INDEX {TABLE}_due ON {TABLE} (due_at) WHERE due_at IS NOT NULL",
            f"CREATE INDEX {TABLE}_task ON {TABLE} (task_id) WHERE task_id IS NOT NULL",
            f"CREATE INDEX {TABLE}_at ON {TABLE} (at) WHERE kind = 'reaction'",
            f"CREATE INDEX {TABLE}_state ON {TABLE} (state, at) WHERE kind = 'reaction'",
            f"CREATE INDEX {TABLE}_owner ON {TABLE} (owner, at) WHERE kind = 'reaction'",
            f"CREATE TABLE {AUDIT} (number {number}, {lines})",
            f"CREATE INDEX {AUDIT}_task ON {AUDIT} (task_id) WHERE task_id IS NOT NULL",
        ),
    )


class Statements:
    """The statements in one dialect: ``named`` writes a parameter, and ``now`` is the store's time in seconds."""

    def __init__(self, named: Callable[[str], str], now: str, lock: str = "") -> None:
        columns = ", ".join(_COLUMNS)
        changed = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS if name != "name")
        values = ", ".join(map(named, _COLUMNS))
        self._named, self._now = named, now
        self.find = f"SELECT {columns} FROM {TABLE} WHERE name = {named('name')}"
        self.find_to_change = f"{self.find}{lock}"
        self.store = f"INSERT INTO {TABLE} ({columns}) VALUES ({values}) ON CONFLICT (name) DO UPDATE SET {changed}"
        self.renew = (
            f"UPDATE {TABLE} SET due_at = {now} + {named('ttl')} WHERE name = {named('name')} "
            f"AND generation = {named('generation')} AND due_at > {now}"
        )
        self.line = f"INSERT INTO {AUDIT} ({', '.join(_LINE)}) VALUES ({', '.join(map(named, _LINE))})"
        forget = f"UPDATE {AUDIT} SET actor = NULL, owner = NULL, tenant = NULL WHERE "
        self.forget = f"{forget}task_id = {named('task_id')}"
        self.forget_owner = f"{forget}owner = {named('owner')}"
        self._list = f"SELECT {columns} FROM {TABLE} WHERE kind = 'reaction'"
        self._lines = f"SELECT {', '.join(_LINE)} FROM {AUDIT}"

    def due(self, reactions: Collection[str], limit: int) -> tuple[str, dict[str, Any]]:
        """The query for :meth:`ReactionStore.due`."""
        among, given = self._among("reaction", reactions)
        query = f"SELECT name FROM {TABLE} WHERE due_at <= {self._now} AND {among}"
        return f"{query} ORDER BY due_at, name LIMIT {self._named('limit')}", {**given, "limit": limit}

    def names(self, states: Collection[str], reactions: Collection[str] | None) -> tuple[str, dict[str, Any]]:
        """The query for :meth:`ReactionStore.names`."""
        among, given = self._among("state", states)
        query = f"SELECT name FROM {TABLE} WHERE kind = 'reaction' AND {among}"
        if reactions is not None:
            among, more = self._among("reaction", reactions)
            query, given = f"{query} AND {among}", given | more
        return query, given

    def _among(self, column: str, values: Collection[str]) -> tuple[str, dict[str, Any]]:
        """The condition that a column has one of these values."""
        given = {f"{column}{number}": _stored(column, value) for number, value in enumerate(values)}
        return f"{column} IN ({', '.join(map(self._named, given)) or 'NULL'})", given

    def listing(self, limit: int, scope: Scope, **wanted: str | None) -> tuple[str, dict[str, Any]]:
        """The query for :meth:`ReactionStore.documents`; what is not asked for does not stand in it."""
        conditions, given = self._conditions(scope, wanted)
        query = " AND ".join([self._list, *conditions])
        return f"{query} ORDER BY at DESC, name DESC LIMIT {self._named('limit')}", {**given, "limit": max(limit, 0)}

    def lines(self, limit: int, scope: Scope, **wanted: str | None) -> tuple[str, dict[str, Any]]:
        """The query for :meth:`ReactionStore.audit`, the newest line first."""
        conditions, given = self._conditions(scope, wanted)
        query = f"{self._lines} WHERE {' AND '.join(conditions)}" if conditions else self._lines
        return f"{query} ORDER BY number DESC LIMIT {self._named('limit')}", {**given, "limit": max(limit, 0)}

    def _conditions(self, scope: Scope, wanted: Mapping[str, str | None]) -> tuple[list[str], dict[str, Any]]:
        asked = {**wanted, "owner": scope.owner, "tenant": scope.tenant}
        given = {name: _stored(name, value) for name, value in asked.items() if value is not None}
        return [f"{name} = {self._named(name)}" for name in given], given


def _stored(name: str, value: Any) -> Any:
    return json.dumps(value) if name in _FREE and value is not None else value


def values_of(it: Document | Line) -> dict[str, Any]:
    """A document or a line as the values of its columns."""
    return {name: _stored(name, getattr(it, name)) for name in (_COLUMNS if isinstance(it, Document) else _LINE)}


def owner_of(name: str) -> dict[str, Any]:
    """The value of a statement about an owner."""
    return {"owner": _stored("owner", name)}


def _read(names: Collection[str], line: Sequence[Any]) -> dict[str, Any]:
    found = dict(zip(names, line, strict=True))
    try:
        return {name: json.loads(it) if name in _FREE and it is not None else it for name, it in found.items()}
    except (TypeError, ValueError) as error:
        raise JournalUnreadable(f"{str(line[0])[:80]} cannot be read in {TABLE}; something else changed it") from error


def document_of(line: Sequence[Any]) -> Document:
    """The document in a line of the table."""
    return Document(**_read(_COLUMNS, line))


def line_of(line: Sequence[Any]) -> Line:
    """The line of the audit log in a line of its table."""
    return Line(**_read(_LINE, line))


def terms(hold: Hold, ttl: float) -> dict[str, Any]:
    """The values of a renewal."""
    return {"name": hold.entry, "generation": hold.generation, "ttl": ttl}
