"""The journal of one process, gone with it: for tests, and for runs that were given no other."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import islice
from threading import Lock
from typing import Any

from agents_progress.errors import JournalClosed
from agents_progress.events import Envelope
from agents_progress.journal import rules
from agents_progress.journal.base import (
    EVERYTHING,
    Erased,
    Journal,
    Lease,
    Origin,
    Request,
    RunRow,
    Scope,
    fresh,
    one_run,
)
from agents_progress.journal.facts import Facts
from agents_progress.journal.pauses import Pause, pause_text, stored_pause
from agents_progress.journal.tails import ASKED, LOOK_S, Bell, Page, asks, follow
from agents_progress.messages import Status


@dataclass(slots=True)
class _Log:
    """One run: the facts of :mod:`agents_progress.journal.rules`, and the envelopes after ``floor``."""

    run_id: str
    origin: Origin = field(default_factory=Origin)
    first: Envelope | None = None
    last: Envelope | None = None
    envelopes: list[Envelope] = field(default_factory=list)
    facts: Facts = field(default_factory=Facts)
    snapshot: dict[str, Any] | None = None
    floor: int = 0
    generation: int = 0
    deadline: float | None = None
    exclusive: str | None = None
    sealed: bool = False
    requests: dict[str, Request] = field(default_factory=dict)
    pause: Pause | None = None
    written_at: float = 0.0
    read_at: float | None = None

    @property
    def head(self) -> int:
        return self.last.seq if self.last else 0

    def between(self, after: int, upto: int) -> list[Envelope]:
        """The kept envelopes after one sequence number up to another; neither lies before the floor."""
        return self.envelopes[after - self.floor : upto - self.floor]

    def extend(self, new: Sequence[Envelope], origin: Origin | None = None) -> None:
        """Take in the next envelopes, wholly or not at all."""
        if not new:
            return
        facts = self.facts.after(new)
        if self.first is None:
            self.first, self.origin = new[0], origin or self.origin
        self.facts, self.last, self.written_at = facts, new[-1], time.monotonic()
        self.envelopes.extend(new)

    def close(self) -> None:
        """Seal it and give its lease back."""
        self.sealed, self.deadline, self.exclusive = True, None, None

    def row(self, first: Envelope, last: Envelope) -> RunRow:
        now = time.monotonic()
        return RunRow(
            run_id=self.run_id,
            task_id=first.payload.get("task_id", self.run_id),
            title=first.payload.get("title"),
            seq=last.seq,
            standing=self.facts.standing,
            started_at=first.occurred_at,
            updated_at=last.occurred_at,
            origin=self.origin,
            sealed=self.sealed,
            silent_s=now - self.written_at,
            unread_s=None if self.read_at is None else now - self.read_at,
            generation=self.generation,
            lease_left_s=None if self.deadline is None else self.deadline - now,
            glance=self.facts.glance,
        )


class MemoryJournal(Journal):
    """Keeps every envelope in this process."""

    lease_s = None

    def __init__(self) -> None:
        self._logs: dict[str, _Log] = {}
        self._erased: set[str] = set()
        self._lock = Lock()
        self._bell = Bell()
        self._closed = False

    # Writing.

    async def append(
        self,
        envelopes: Sequence[Envelope],
        *,
        origin: Origin | None = None,
        claim: bool = False,
        lease: Lease | None = None,
    ) -> None:
        self._refuse_closed()
        if not envelopes:
            return
        run_id = one_run(envelopes)
        with self._lock:
            log = self._log(run_id) or _Log(run_id)
            rules.refuse_write(run_id, generation=log.generation, sealed=log.sealed, lease=lease)
            log.extend(fresh(envelopes, log.head, log.between, claim, log.floor), origin)
            self._logs[run_id] = log
        self._bell.ring(run_id)

    async def seal(self, run_id: str, *, lease: Lease | None = None) -> None:
        self._refuse_closed()
        with self._lock:
            log = self._log(run_id)
            if log is None:
                raise rules.not_found(run_id)
            rules.refuse_write(run_id, generation=log.generation, sealed=False, lease=lease)
            log.close()
        self._bell.ring(run_id)

    # Reading.

    async def read(
        self, run_id: str, after_seq: int = 0, limit: int = 1000, *, scope: Scope = EVERYTHING
    ) -> list[Envelope]:
        return list(self._page(run_id, after_seq, limit, scope).envelopes)

    def tail(self, run_id: str, after_seq: int = 0, *, scope: Scope = EVERYTHING) -> AsyncIterator[Envelope]:
        self._refuse_closed()

        async def read(after: int, limit: int) -> Page:
            return self._page(run_id, after, limit, scope)

        return follow(read, self._bell, run_id, after_seq)

    async def runs(
        self,
        *,
        task_id: str | None = None,
        labels: Mapping[str, str] | None = None,
        status: Status | None = None,
        before: str | None = None,
        limit: int = 100,
        scope: Scope = EVERYTHING,
    ) -> list[RunRow]:
        wanted = dict(labels or {}).items()
        rows = iter(self._rows(scope))
        if before is not None and not any(row.run_id == before for row in rows):  # and stands behind it now
            with self._lock:
                self._seen(before, scope)
            raise rules.not_found(before)
        matching = (
            row
            for row in rows
            if (task_id is None or row.task_id == task_id)
            and wanted <= row.labels.items()
            and (status is None or row.status == status)
        )
        return list(islice(matching, limit))

    async def newest(self, task_ids: Collection[str], *, scope: Scope = EVERYTHING) -> dict[str, str]:
        return {row.task_id: row.run_id for row in reversed(self._rows(scope)) if row.task_id in task_ids}

    def _rows(self, scope: Scope) -> list[RunRow]:
        self._refuse_closed()
        with self._lock:
            logs = [log for log in reversed(self._logs.values()) if rules.visible(log.origin, scope)]
            return [log.row(log.first, log.last) for log in logs if log.first and log.last]

    async def run(self, run_id: str, *, scope: Scope = EVERYTHING) -> RunRow | None:
        self._refuse_closed()
        with self._lock:
            log = self._seen(run_id, scope)
            return log.row(log.first, log.last) if log and log.first and log.last else None

    async def touch(self, run_ids: Sequence[str]) -> None:
        self._refuse_closed()
        with self._lock:
            for run_id in run_ids:
                if (log := self._logs.get(run_id)) and not log.sealed:
                    log.read_at = time.monotonic()

    async def snapshot(self, run_id: str, *, scope: Scope = EVERYTHING) -> dict[str, Any] | None:
        self._refuse_closed()
        with self._lock:
            log = self._seen(run_id, scope)
            return deepcopy(log.snapshot) if log else None

    # Ownership.

    async def lease(self, run_id: str, ttl: float, *, exclusive: str | None = None) -> Lease:
        self._refuse_closed()
        with self._lock:
            log = self._log(run_id) or _Log(run_id)
            rules.refuse_lease(run_id, generation=log.generation, deadline=log.deadline, sealed=log.sealed)
            now = time.monotonic()
            for other in self._logs.values() if exclusive is not None else ():
                if other.exclusive == exclusive and (other.deadline or 0) > now:
                    raise rules.held_elsewhere(exclusive or "", other.run_id)
            log.generation, log.deadline, log.exclusive = log.generation + 1, now + ttl, exclusive
            self._logs[run_id] = log
            return Lease(run_id, log.generation)

    def renew(self, leases: Sequence[Lease], ttl: float) -> list[Lease]:
        self._refuse_closed()
        gone: list[Lease] = []
        with self._lock:
            now = time.monotonic()
            for lease in leases:
                log = self._logs.get(lease.run_id)
                if log is None or log.generation != lease.generation or (log.deadline or 0) <= now:
                    gone.append(lease)
                else:
                    log.deadline = now + ttl
        return gone

    async def reserve(
        self,
        run_id: str,
        ttl: float,
        *,
        task_id: str | None = None,
        title: str | None = None,
        origin: Origin | None = None,
    ) -> None:
        self._refuse_closed()
        with self._lock:
            if self._log(run_id):
                raise rules.exists(run_id)
            log = self._logs[run_id] = _Log(run_id, deadline=time.monotonic() + ttl)
            log.extend([rules.accepted(run_id, task_id, title)], origin)
        self._bell.ring(run_id)

    async def expire(self) -> list[str]:
        self._refuse_closed()
        with self._lock:
            now = time.monotonic()
            late = [log for log in self._logs.values() if log.deadline is not None and log.deadline <= now]
            ended: list[str] = []
            for log in late:
                if lost := rules.lost(log.run_id, log.head, log.generation, log.facts.standing):
                    log.extend([lost])
                    ended.append(log.run_id)
                log.generation += 1
                log.close()
        for log in late:
            self._bell.ring(log.run_id)
        return ended

    # Control.

    async def ask(self, request: Request, *, scope: Scope = EVERYTHING) -> Request:
        self._refuse_closed()
        own = rules.stored_request(request.run_id, rules.request_text(request))
        with self._lock:
            log = self._seen(request.run_id, scope)
            if log is None or log.first is None:
                raise rules.not_found(request.run_id)
            stored = log.requests.setdefault(own.key, own)
        self._bell.ring(ASKED)
        return stored

    async def requests(self, run_ids: Collection[str]) -> list[Request]:
        self._refuse_closed()
        with self._lock:
            logs = [log for run_id in run_ids if (log := self._logs.get(run_id))]
            return [request for log in logs for request in log.requests.values()]

    def asks(self, owned: Callable[[], Collection[str]]) -> AsyncIterator[Request]:
        self._refuse_closed()
        return asks(self.requests, self._bell, owned, LOOK_S)

    # Pauses.

    async def keep_pause(self, pause: Pause, *, lease: Lease | None = None) -> None:
        self._refuse_closed()
        with self._lock:
            log = self._log(pause.run_id)
            if log is None or log.first is None:
                raise rules.not_found(pause.run_id)
            rules.refuse_write(pause.run_id, generation=log.generation, sealed=log.sealed, lease=lease)
            log.pause = stored_pause(pause.run_id, pause_text(pause))

    async def pause(self, run_id: str, *, scope: Scope = EVERYTHING) -> Pause | None:
        self._refuse_closed()
        with self._lock:
            log = self._seen(run_id, scope)
            return log.pause if log else None

    async def pauses(self) -> list[str]:
        self._refuse_closed()
        with self._lock:
            return [log.run_id for log in self._logs.values() if log.pause]

    async def drop_pause(self, run_id: str) -> None:
        self._refuse_closed()
        with self._lock:
            if log := self._logs.get(run_id):
                log.pause = None

    # Retention.

    async def prune(self, run_id: str, upto_seq: int) -> int:
        self._refuse_closed()
        with self._lock:
            log = self._log(run_id)
            floor = min(upto_seq, log.head) if log else 0
            if log is None or floor <= log.floor:
                return 0
            covered = log.snapshot["seq"] if log.snapshot else 0
            if covered < floor:
                log.snapshot = rules.folded(run_id, log.snapshot, log.between(covered, floor))
            removed, log.floor = floor - log.floor, floor
            log.pause = None if floor == log.head else log.pause
            del log.envelopes[:removed]
            return removed

    async def keep_snapshot(self, run_id: str, snapshot: Mapping[str, Any]) -> None:
        self._refuse_closed()
        with self._lock:
            log = self._log(run_id)
            seq = rules.snapshot_seq(run_id, snapshot, log.head if log else 0)
            if log and seq > (log.snapshot["seq"] if log.snapshot else 0):
                log.snapshot = deepcopy(dict(snapshot))

    async def erase(self, *, run_id: str | None = None, task_id: str | None = None, owner: str | None = None) -> Erased:
        self._refuse_closed()
        rules.one_target(run_id, task_id, owner)
        holds: Callable[[_Log], bool] = lambda log: (  # noqa: E731
            log.run_id == run_id
            or (task_id is not None and log.first is not None and log.row(log.first, log.first).task_id == task_id)
            or (owner is not None and log.origin.owner == owner)
        )
        with self._lock:
            gone = [log for log in self._logs.values() if holds(log)]
            for log in gone:
                del self._logs[log.run_id]
                self._erased.add(log.run_id)
        for log in gone:
            self._bell.ring(log.run_id)
        kept = sum(log.snapshot is not None for log in gone)
        return Erased(len(gone), sum(len(log.envelopes) for log in gone), kept)

    # Being closed.

    @property
    def closed(self) -> bool:
        return self._closed

    async def close(self) -> None:
        self._closed = True
        self._bell.ring_all()

    def _refuse_closed(self) -> None:
        if self._closed:
            raise JournalClosed("this journal was closed; open it again")

    # With the lock held.

    def _log(self, run_id: str) -> _Log | None:
        if run_id in self._erased:
            raise rules.erased(run_id)
        return self._logs.get(run_id)

    def _seen(self, run_id: str, scope: Scope) -> _Log | None:
        """The log of a run inside a scope; a tombstone lies outside every scope but the widest."""
        log = self._log(run_id) if scope == EVERYTHING else self._logs.get(run_id)
        return log if log and rules.visible(log.origin, scope) else None

    def _page(self, run_id: str, after_seq: int, limit: int, scope: Scope) -> Page:
        self._refuse_closed()
        with self._lock:
            log, after = self._seen(run_id, scope), max(after_seq, 0)
            if log is None:
                return Page()
            if after < log.floor and log.snapshot:
                raise rules.expired(run_id, log.floor, deepcopy(log.snapshot))
            return Page(log.between(after, after + limit), known=True, sealed=log.sealed)
