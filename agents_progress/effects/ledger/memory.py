"""The ledger that ends with its process: for tests, and for effects that do too."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from threading import RLock

from agents_progress.effects.entry import Entry, Hold, State, erased
from agents_progress.effects.ledger.base import Change, Ledger, T, one_target
from agents_progress.errors import JournalClosed
from agents_progress.journal.base import EVERYTHING, Scope


class MemoryLedger(Ledger):
    """Entries in a dictionary. ``now`` gives the time in seconds; tests may turn it."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._now = now
        self._entries: dict[str, Entry] = {}
        self._lock = RLock()
        self._closed = False

    def change(self, entry: str, rule: Change[T]) -> T:
        with self._opened():
            answer, after = rule(self._entries.get(entry), self._now())
            if after is not None:
                self._entries[entry] = after
            return answer

    def look(self, entry: str, *, scope: Scope = EVERYTHING) -> tuple[Entry | None, float]:
        with self._opened():
            found = self._entries.get(entry)
            return found if found is not None and _visible(found, scope) else None, self._now()

    def renew(self, holds: Sequence[Hold], ttl: float) -> list[Hold]:
        gone: list[Hold] = []
        with self._opened():
            now = self._now()
            for hold in holds:
                found = self._entries.get(hold.entry)
                if found is None or found.generation != hold.generation or found.state(now) != "running":
                    gone.append(hold)
                else:
                    self._entries[hold.entry] = replace(found, deadline=now + ttl)
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
        with self._opened():
            now = self._now()
            found = [
                entry
                for entry in self._entries.values()
                if not entry.erased
                and state in (None, entry.state(now))
                and task_id in (None, entry.effect.task_id)
                and entry.effect.entry.startswith(begins)
                and _visible(entry, scope)
            ]
        found.sort(key=lambda entry: (entry.began_at, entry.effect.entry), reverse=True)
        return found[: max(limit, 0)]

    def erase(self, *, run_id: str | None = None, task_id: str | None = None, owner: str | None = None) -> int:
        name, value = one_target(run_id, task_id, owner)
        with self._opened():
            found = [entry for entry in self._entries.values() if getattr(entry.effect, name) == value]
            for entry in found:
                self._entries[entry.effect.entry] = erased(entry)
        return len(found)

    def exists(self) -> bool:
        with self._opened():
            return bool(self._entries)

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        self.end_thread()
        self._closed = True

    def _opened(self) -> RLock:
        if self._closed:
            raise JournalClosed("the ledger was closed; open it again")
        return self._lock


def _visible(entry: Entry, scope: Scope) -> bool:
    return scope.owner in (None, entry.effect.owner) and scope.tenant in (None, entry.effect.tenant)
