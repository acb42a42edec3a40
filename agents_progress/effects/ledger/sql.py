"""What the SQL ledgers have in common: one table, its statements, and how a line of it is an entry.

Texts of an application may hold what a TEXT column cannot; they are stored as ASCII JSON, which every store takes and
compares.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, get_args

from agents_progress.effects.entry import Effect, Entry, Settled, State
from agents_progress.effects.tables import Tables
from agents_progress.errors import JournalUnreadable
from agents_progress.journal.base import EVERYTHING, Scope

TABLE: Final = "progress_effects"

_COLUMNS: Final[Mapping[str, str]] = {
    "entry": "TEXT PRIMARY KEY",
    "arguments": "TEXT NOT NULL",
    "name": "TEXT NOT NULL",
    "key": "TEXT NOT NULL",
    "scope": "TEXT NOT NULL",
    "owner": "TEXT",
    "tenant": "TEXT",
    "run_id": "TEXT",
    "task_id": "TEXT",
    "call_id": "TEXT",
    "generation": "BIGINT NOT NULL",
    "began_at": "DOUBLE PRECISION NOT NULL",
    "deadline": "DOUBLE PRECISION NOT NULL",
    "settled": "TEXT",
    "settled_at": "DOUBLE PRECISION",
    "settled_by": "TEXT",
    "output": "TEXT",
    "erased": "INTEGER NOT NULL",
}
_FREE: Final = frozenset({"name", "key", "scope", "owner", "tenant", "run_id", "task_id", "call_id", "settled_by"})
"""Columns whose text is an application's or a model's, and stored as JSON."""

_EFFECT: Final = frozenset(Effect.__slots__)

TABLES: Final = Tables(
    "a ledger",
    "progress_ledger",
    1,
    (
        f"CREATE TABLE {TABLE} ({', '.join(f'{name} {kind}' for name, kind in _COLUMNS.items())})",
        *(
            f"CREATE INDEX {TABLE}_{name} ON {TABLE} ({name}) WHERE {name} IS NOT NULL"
            for name in ("run_id", "task_id", "owner")
        ),
        f"CREATE INDEX {TABLE}_open ON {TABLE} (deadline) WHERE settled IS NULL",
    ),
)


class Statements:
    """The statements in one dialect: ``named`` writes a parameter, and ``now`` is the store's time in seconds."""

    def __init__(self, named: Callable[[str], str], now: str) -> None:
        columns = ", ".join(_COLUMNS)
        changed = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS if name != "entry")
        values = ", ".join(map(named, _COLUMNS))
        self._look = f"SELECT {now}, {columns} FROM (SELECT 1) AS one LEFT JOIN {TABLE} ON "
        self.store = f"INSERT INTO {TABLE} ({columns}) VALUES ({values}) ON CONFLICT (entry) DO UPDATE SET {changed}"
        self.renew = (
            f"UPDATE {TABLE} SET deadline = {now} + {named('ttl')} WHERE entry = {named('entry')} "
            f"AND generation = {named('generation')} AND settled IS NULL AND deadline > {now}"
        )
        self._list = f"SELECT {columns} FROM {TABLE} WHERE erased = 0"
        self._erase = (
            f"UPDATE {TABLE} SET arguments = '', name = '\"\"', key = '\"\"', scope = '\"\"', owner = NULL, "
            "tenant = NULL, run_id = NULL, task_id = NULL, call_id = NULL, settled_by = NULL, output = NULL, "
            "erased = 1 WHERE "
        )
        self._named = named
        self._states: Mapping[State, str] = {
            "running": f"settled IS NULL AND deadline > {now}",
            "uncertain": f"settled IS NULL AND deadline <= {now}",
            "succeeded": "settled = 'happened'",
            "failed": "settled = 'did_not_happen'",
        }

    def erase(self, name: str, value: str) -> tuple[str, dict[str, Any]]:
        """The statement that erases what has this value in a column."""
        return f"{self._erase}{name} = {self._named('value')}", {"value": json.dumps(value)}

    def look(self, entry: str, scope: Scope = EVERYTHING) -> tuple[str, dict[str, Any]]:
        """The query for :meth:`Ledger.look`: one line, of the store's time and of the entry or nothing."""
        conditions, given = self._equal({"owner": scope.owner, "tenant": scope.tenant})
        return self._look + " AND ".join([f"entry = {self._named('entry')}", *conditions]), {**given, "entry": entry}

    def listing(
        self, state: State | None, task_id: str | None, begins: str, limit: int, scope: Scope
    ) -> tuple[str, dict[str, Any]]:
        """The query for :meth:`Ledger.entries`; what is not asked for does not stand in it."""
        conditions, given = self._equal({"task_id": task_id, "owner": scope.owner, "tenant": scope.tenant})
        conditions += [self._states[state]] if state is not None else []
        if begins:
            conditions.append(f"substr(entry, 1, {len(begins)}) = {self._named('begins')}")
            given["begins"] = begins
        query = " AND ".join([self._list, *conditions])
        query += f" ORDER BY began_at DESC, entry DESC LIMIT {self._named('limit')}"
        return query, {**given, "limit": max(limit, 0)}

    def _equal(self, wanted: Mapping[str, str | None]) -> tuple[list[str], dict[str, Any]]:
        """The conditions that columns have these values, of those that are given."""
        given = {name: json.dumps(value) for name, value in wanted.items() if value is not None}
        return [f"{name} = {self._named(name)}" for name in given], given


def values_of(entry: Entry) -> dict[str, Any]:
    """An entry as the values of its columns."""
    found: dict[str, Any] = {}
    for name in _COLUMNS:
        value = getattr(entry.effect if name in _EFFECT else entry, name)
        found[name] = json.dumps(value) if name in _FREE and value is not None else value
    return {**found, "erased": int(entry.erased)}


def looked(line: Sequence[Any] | None) -> tuple[Entry | None, float]:
    """The answer to :attr:`Statements.look`: the entry, None for an unknown one, and the store's time."""
    now, *entry = line or (0.0, None)
    return None if entry[0] is None else entry_of(entry), float(now)


def entry_of(line: Sequence[Any]) -> Entry:
    """The entry in a line of the table. Raises :exc:`JournalUnreadable` for what is none: a word that is not known here
    must not count as one that lets the body run again.
    """
    found = dict(zip(_COLUMNS, line, strict=True))
    try:
        for name in _FREE:
            found[name] = None if found[name] is None else json.loads(found[name])
    except (TypeError, ValueError) as error:
        raise _unreadable(line) from error
    if found["settled"] not in (None, *get_args(Settled)):
        raise _unreadable(line)
    effect = Effect(**{name: found.pop(name) for name in _EFFECT})
    return Entry(effect, **{**found, "erased": bool(found["erased"])})


def _unreadable(line: Sequence[Any]) -> JournalUnreadable:
    return JournalUnreadable(f"effect {str(line[0])[:16]} cannot be read in {TABLE}; it was changed by something else")
