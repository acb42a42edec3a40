"""The lists of runs on Redis: sorted sets that say where to look, walked from their newest end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from agents_progress.journal import rules
from agents_progress.journal.base import EVERYTHING, RunRow, Scope
from agents_progress.journal.facts import status_of
from agents_progress.journal.redis_connections import Connections, answered, marked
from agents_progress.journal.redis_keys import Keys, matches, stored_row
from agents_progress.journal.redis_scripts import ROW
from agents_progress.messages import Status

LEAST: Final = 100
MOST: Final = 500
"""Runs whose rows one exchange asks for, at least and at most."""
MANY: Final = 2000
"""Runs whose standing alone one exchange asks for, at most."""


class Lists:
    """Belongs to the thread of its connections."""

    def __init__(self, connections: Connections, keys: Keys) -> None:
        self._connections = connections
        self._keys = keys

    async def newest_first(
        self,
        task_id: str | None,
        labels: Mapping[str, str],
        status: Status | None,
        before: str | None,
        limit: int,
        scope: Scope,
    ) -> list[RunRow]:
        """See :meth:`Journal.runs`."""
        index = self._keys.index(task_id=task_id, owner=scope.owner, tenant=scope.tenant)
        place = "+inf" if before is None else f"({await self._born(before, scope)}"
        found: list[RunRow] = []
        count = min(max(limit, LEAST), MOST)
        while len(found) < limit:
            bounds = place, "-inf", "WITHSCORES", "LIMIT", 0, count
            (listed,) = await self._connections.send(("ZREVRANGEBYSCORE", index, *bounds))
            if not listed:
                break
            place = f"({listed[-1].decode()}"
            names = [name.decode() for name in listed[::2]]
            rows = await self.rows(names if status is None else await self._of_status(names, status), scope)
            found += [row for row in rows if row is not None and matches(row, task_id, labels, status)]
            count = min(2 * count, MOST if status is None else MANY)  # a rare one is far away
        return found[:limit]

    async def _of_status(self, run_ids: Sequence[str], status: Status) -> list[str]:
        stood = await self._connections.send(*(("HGET", self._keys.of(run_id)[0], "standing") for run_id in run_ids))
        told = zip(run_ids, stood, strict=True)
        return [run_id for run_id, standing in told if standing is not None and status_of(standing) == status]

    async def newest(self, task_ids: Sequence[str], scope: Scope) -> dict[str, str]:
        """See :meth:`Journal.newest`. A list may begin with runs of others: then the next one is asked about."""
        found: dict[str, str] = {}
        wanted, place = set(task_ids), 0
        while wanted:
            lists = [self._keys.index(task_id=task_id) for task_id in wanted]
            listed = await self._connections.send(*(("ZREVRANGE", index, place, place) for index in lists))
            names = {task_id: names[0].decode() for task_id, names in zip(wanted, listed, strict=True) if names}
            rows = await self.rows(list(names.values()), scope)
            found |= {task: row.run_id for task, row in zip(names, rows, strict=True) if row and row.task_id == task}
            wanted, place = names.keys() - found.keys(), place + 1
        return found

    async def rows(self, run_ids: Sequence[str], scope: Scope) -> list[RunRow | None]:
        """A row each, None for a run that is not there or lies outside the scope."""
        bounds = marked(scope.owner), marked(scope.tenant)
        answers = await self._connections.call_all([(ROW, self._keys.of(run_id), bounds) for run_id in run_ids])
        told = zip(run_ids, answered(answers), strict=True)
        return [stored_row(run_id, facts) if word == b"row" else None for run_id, (word, *facts) in told]

    async def _born(self, run_id: str, scope: Scope) -> str:
        """The place of a run among all of them."""
        word, *_ = await self._connections.call(ROW, self._keys.of(run_id), marked(scope.owner), marked(scope.tenant))
        if word == b"erased" and scope == EVERYTHING:
            raise rules.erased(run_id)
        (born,) = await self._connections.send(("HGET", self._keys.of(run_id)[0], "born"))
        if word != b"row" or born is None:
            raise rules.not_found(run_id)
        return str(int(born))
