"""The journal of one process, gone with it: for tests, and for runs that were given no other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from threading import Lock

from agents_progress.errors import JournalClosed
from agents_progress.events import Envelope
from agents_progress.journal.base import Journal, Origin, RunRow, fresh, one_run
from agents_progress.messages import Status
from agents_progress.standing import Standing


@dataclass(slots=True)
class _Log:
    origin: Origin
    envelopes: list[Envelope] = field(default_factory=list)
    standing: Standing = field(default_factory=Standing)

    def row(self) -> RunRow:
        first, last = self.envelopes[0], self.envelopes[-1]
        return RunRow(
            run_id=first.run_id,
            task_id=first.payload.get("task_id", first.run_id),
            title=first.payload.get("title"),
            seq=last.seq,
            standing=self.standing,
            started_at=first.occurred_at,
            updated_at=last.occurred_at,
            origin=self.origin,
        )


class MemoryJournal(Journal):
    """Keeps every envelope in this process."""

    def __init__(self) -> None:
        self._logs: dict[str, _Log] = {}
        self._lock = Lock()
        self._closed = False

    async def append(self, envelopes: Sequence[Envelope], *, origin: Origin | None = None, claim: bool = False) -> None:
        self._refuse_closed()
        if not envelopes:
            return
        run_id = one_run(envelopes)
        with self._lock:
            log = self._logs.get(run_id) or _Log(origin or Origin())
            new = fresh(envelopes, len(log.envelopes), lambda after, upto: log.envelopes[after:upto], claim)
            standing = log.standing.copy()
            standing.observe_all(new)
            log.standing = standing
            log.envelopes.extend(new)
            self._logs[run_id] = log

    async def read(self, run_id: str, after_seq: int = 0, limit: int = 1000) -> list[Envelope]:
        self._refuse_closed()
        log = self._logs.get(run_id)
        return log.envelopes[max(after_seq, 0) : max(after_seq, 0) + limit] if log else []

    async def runs(
        self,
        *,
        task_id: str | None = None,
        labels: Mapping[str, str] | None = None,
        status: Status | None = None,
        limit: int = 100,
    ) -> list[RunRow]:
        self._refuse_closed()
        wanted = dict(labels or {}).items()
        with self._lock:
            rows = [log.row() for log in reversed(self._logs.values())]
        matching = (
            row
            for row in rows
            if (task_id is None or row.task_id == task_id)
            and wanted <= row.labels.items()
            and (status is None or row.status == status)
        )
        return list(islice(matching, limit))

    @property
    def closed(self) -> bool:
        return self._closed

    async def close(self) -> None:
        self._closed = True

    def _refuse_closed(self) -> None:
        if self._closed:
            raise JournalClosed("this journal was closed; open it again")
