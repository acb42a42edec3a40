"""The embedded journal: one SQLite file, one writer thread, write-ahead log, synchronous FULL.

Whatever gathered while the last commit ran goes into the next one, whichever runs it belongs to, so that durability
costs one disk flush for many envelopes. Nothing is opened at construction: files and threads belong to the process that
first uses them, so a journal may be named at import and the process forked afterwards.
"""

from __future__ import annotations

import asyncio
import os
import sqlite3
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, Final, TypeVar

from pydantic_core import to_json

from agents_progress.errors import JournalClosed
from agents_progress.events import Envelope
from agents_progress.journal import rules, sqlite_read, sqlite_write
from agents_progress.journal.base import (
    EVERYTHING,
    Erased,
    Journal,
    Lease,
    Origin,
    Request,
    RunRow,
    Scope,
    one_run,
)
from agents_progress.journal.pauses import Pause, pause_text, stored_pause
from agents_progress.journal.sqlite_file import connect, translated, wipe
from agents_progress.journal.tails import ASKED, Bell, Page, asks, follow
from agents_progress.journal.threads import outcome_of
from agents_progress.messages import Status

T = TypeVar("T")

POLL_S: Final = 0.1
"""How often a tail looks for what other processes appended, in seconds, while its run is busy."""
ASKED_ELSEWHERE_S: Final = 0.5
"""How often an owner looks for what other processes ask of it, in seconds."""


@dataclass(slots=True)
class _Write:
    """Something to do in the writer's next transaction, and the run whose tails are to be told."""

    work: Callable[[sqlite3.Connection], Any]
    run_id: str | None
    written: Future[Any] = field(default_factory=Future)


class _Open:
    """The connections and threads of one process."""

    def __init__(self, path: str, create: bool) -> None:
        self.pid = os.getpid()
        self.path = path
        self.create = create
        self.threads = {
            role: ThreadPoolExecutor(1, thread_name_prefix=f"agents-progress-{role}")
            for role in ("writer", "reader", "folder")
        }
        self.renewing = Lock()
        self.closed = False
        self.queue: deque[_Write] = deque()
        self.bell = Bell()
        self.connections: dict[str, sqlite3.Connection] = {}

    def connection(self, role: str) -> sqlite3.Connection:
        """The connection of a role: each is used by one thread at a time."""
        if role not in self.connections:
            self.connections[role] = connect(self.path, self.create)
        return self.connections[role]

    def close(self) -> None:
        for thread in self.threads.values():
            thread.shutdown(wait=True)
        with self.renewing:
            self.closed = True
            for connection in self.connections.values():
                connection.close()


class SQLiteJournal(Journal):
    """A journal in one file. The file is readable by its owner only (mode 0600).

    ``path`` is a file name; its folder must exist. With ``create=False`` a missing file is refused at first use.
    """

    gap_s = 0.02  # an append costs two changes of thread, however little it stores

    def __init__(self, path: str | os.PathLike[str], *, create: bool = True) -> None:
        self._path = os.fspath(path)
        self._create = create
        self._open: _Open | None = None
        self._lock = Lock()
        self._closed = False

    @property
    def path(self) -> str:
        """The name of the file."""
        return self._path

    # Writing.

    async def append(
        self,
        envelopes: Sequence[Envelope],
        *,
        origin: Origin | None = None,
        claim: bool = False,
        lease: Lease | None = None,
    ) -> None:
        if not envelopes:
            self._opened()
            return
        run_id, batch = one_run(envelopes), tuple(envelopes)
        await self._write(lambda db: sqlite_write.write(db, batch, origin, claim, lease), run_id)

    async def seal(self, run_id: str, *, lease: Lease | None = None) -> None:
        await self._write(lambda db: sqlite_write.seal(db, run_id, lease), run_id)

    # Reading.

    async def read(
        self, run_id: str, after_seq: int = 0, limit: int = 1000, *, scope: Scope = EVERYTHING
    ) -> list[Envelope]:
        return list((await self._page(run_id, after_seq, limit, scope)).envelopes)

    def tail(self, run_id: str, after_seq: int = 0, *, scope: Scope = EVERYTHING) -> AsyncIterator[Envelope]:
        async def read(after: int, limit: int) -> Page:
            return await self._page(run_id, after, limit, scope)

        return follow(read, self._opened().bell, run_id, after_seq, POLL_S)

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
        wanted = dict(labels or {})
        return await self._read(lambda db: sqlite_read.rows(db, task_id, wanted, status, before, limit, scope))

    async def newest(self, task_ids: Collection[str], *, scope: Scope = EVERYTHING) -> dict[str, str]:
        return await self._read(lambda db: sqlite_read.newest(db, task_ids, scope))

    async def run(self, run_id: str, *, scope: Scope = EVERYTHING) -> RunRow | None:
        return await self._read(lambda db: sqlite_read.row(db, run_id, scope))

    async def touch(self, run_ids: Sequence[str]) -> None:
        await self._write(lambda db: sqlite_write.touch(db, run_ids))

    async def snapshot(self, run_id: str, *, scope: Scope = EVERYTHING) -> dict[str, Any] | None:
        return await self._read(lambda db: sqlite_read.snapshot(db, run_id, scope))

    # Ownership.

    async def lease(self, run_id: str, ttl: float, *, exclusive: str | None = None) -> Lease:
        return await self._write(lambda db: sqlite_write.take(db, run_id, ttl, exclusive))

    def renew(self, leases: Sequence[Lease], ttl: float) -> list[Lease]:
        opened = self._opened()
        with opened.renewing, translated(self._path):
            if opened.closed:
                raise JournalClosed(f"the journal {self._path} was closed; open it again")
            db = opened.connection("renewer")
            db.execute("BEGIN IMMEDIATE")
            try:
                gone = sqlite_write.renew(db, leases, ttl)
                db.execute("COMMIT")
            except BaseException:
                db.rollback()
                raise
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
        accepted = rules.accepted(run_id, task_id, title)
        await self._write(lambda db: sqlite_write.reserve(db, accepted, ttl, origin), run_id)

    async def expire(self) -> list[str]:
        ended, sealed = await self._write(sqlite_write.expire)
        self._tell(sealed)
        return ended

    # Control.

    async def ask(self, request: Request, *, scope: Scope = EVERYTHING) -> Request:
        text = rules.request_text(request)
        return await self._write(lambda db: sqlite_write.ask(db, request, text, scope), ASKED)

    async def requests(self, run_ids: Collection[str]) -> list[Request]:
        self._opened()
        names = list(run_ids)
        return await self._read(lambda db: sqlite_read.requests(db, names)) if names else []

    def asks(self, owned: Callable[[], Collection[str]]) -> AsyncIterator[Request]:
        return asks(self.requests, self._opened().bell, owned, ASKED_ELSEWHERE_S)

    # Pauses.

    async def keep_pause(self, pause: Pause, *, lease: Lease | None = None) -> None:
        text = pause_text(pause)
        await self._write(lambda db: sqlite_write.keep_pause(db, pause.run_id, text, lease))

    async def pause(self, run_id: str, *, scope: Scope = EVERYTHING) -> Pause | None:
        text = await self._read(lambda db: sqlite_read.pause(db, run_id, scope))
        return None if text is None else stored_pause(run_id, text)

    async def pauses(self) -> list[str]:
        return await self._read(sqlite_read.pauses)

    async def drop_pause(self, run_id: str) -> None:
        await self._write(lambda db: sqlite_write.drop_pause(db, run_id))
        await self._wipe()

    # Retention.

    async def prune(self, run_id: str, upto_seq: int) -> int:
        # A log that is stored does not change, and a long one takes its time: no writer and no reader waits for it.
        answer = await self._read(lambda db: sqlite_read.folded(db, self._path, run_id, upto_seq), "folder")
        if answer is None:
            return 0
        return await self._write(lambda db: sqlite_write.prune(db, run_id, *answer))

    async def keep_snapshot(self, run_id: str, snapshot: Mapping[str, Any]) -> None:
        place, body = {name: snapshot.get(name) for name in ("run_id", "seq")}, to_json(snapshot)
        await self._write(lambda db: sqlite_write.keep(db, run_id, place, body))

    async def erase(self, *, run_id: str | None = None, task_id: str | None = None, owner: str | None = None) -> Erased:
        rules.one_target(run_id, task_id, owner)
        named = {"run_id": run_id, "task_id": task_id, "owner": owner}
        ((column, value),) = ((name, value) for name, value in named.items() if value is not None)
        erased, ids = await self._write(lambda db: sqlite_write.erase(db, column, value))
        self._tell(ids)
        await self._wipe()
        return erased

    # Being open and closed.

    @property
    def closed(self) -> bool:
        return self._closed

    async def close(self) -> None:
        with self._lock:
            opened, self._open, self._closed = self._open, None, True
        if opened is not None and opened.pid == os.getpid():
            opened.bell.ring_all()
            await asyncio.to_thread(opened.close)

    def _opened(self) -> _Open:
        with self._lock:
            if self._closed:
                raise JournalClosed(f"the journal {self._path} was closed; open it again")
            if self._open is None or self._open.pid != os.getpid():
                # After a fork the parent's threads do not exist here and its connections must not be touched.
                self._open = _Open(self._path, self._create)
            return self._open

    def _tell(self, run_ids: Sequence[str]) -> None:
        if (opened := self._open) is not None:
            for run_id in run_ids:
                opened.bell.ring(run_id)

    # To the threads and back.

    async def _write(self, work: Callable[[sqlite3.Connection], T], run_id: str | None = None) -> T:
        opened, write = self._opened(), _Write(work, run_id)
        opened.queue.append(write)
        opened.threads["writer"].submit(_write_gathered, opened)
        result: T = await outcome_of(write.written)
        return result

    async def _read(self, question: Callable[[sqlite3.Connection], T], role: str = "reader") -> T:
        opened = self._opened()

        def answer() -> T:
            with translated(self._path):
                db = opened.connection(role)
                db.execute("BEGIN")  # so that all of an answer is of one moment
                try:
                    return question(db)
                finally:
                    db.rollback()

        return await asyncio.wrap_future(opened.threads[role].submit(answer))

    async def _wipe(self) -> None:
        """Empty the write-ahead log of what was erased."""
        opened = self._opened()
        await asyncio.wrap_future(opened.threads["writer"].submit(_wipe, opened))

    async def _page(self, run_id: str, after_seq: int, limit: int, scope: Scope) -> Page:
        after = max(after_seq, 0)
        bodies, known, sealed = await self._read(lambda db: sqlite_read.page(db, run_id, after, limit, scope))
        return Page([sqlite_read.as_envelope(body, self._path) for body in bodies], known, sealed)


def _wipe(opened: _Open) -> None:
    with translated(opened.path):
        wipe(opened.connection("writer"))


def _write_gathered(opened: _Open) -> None:
    """Do what gathered in one transaction, in the writer's thread."""
    writes = [opened.queue.popleft() for _ in range(len(opened.queue))]
    if not writes:
        return
    answers: list[Any] = []
    try:
        with translated(opened.path):
            db = opened.connection("writer")
            db.execute("BEGIN IMMEDIATE")
            try:
                answers = [_answer(db, write) for write in writes]
                db.execute("COMMIT")
            except BaseException:
                db.rollback()
                raise
    except BaseException as error:  # noqa: BLE001 - whatever happens in this thread belongs to the callers
        answers = [error] * len(writes)
    for write, answer in zip(writes, answers, strict=True):
        if isinstance(answer, BaseException):
            write.written.set_exception(answer)
            continue
        write.written.set_result(answer)
        if write.run_id is not None:
            opened.bell.ring(write.run_id)


def _answer(db: sqlite3.Connection, write: _Write) -> Any:
    """What one of them gives, or why it is refused; nothing of one that is refused was written."""
    try:
        return write.work(db)
    except sqlite3.Error:
        raise
    except Exception as refused:  # noqa: BLE001 - this one only
        return refused
