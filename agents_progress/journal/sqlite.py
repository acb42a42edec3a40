"""The embedded journal: one SQLite file, one writer thread, write-ahead log, synchronous FULL.

Whatever gathered while the last commit ran goes into the next one, whichever runs it belongs to, so that durability
costs one disk flush for many envelopes. Nothing is opened at construction: files and threads belong to the process that
first uses them, so a journal may be named at import and the process forked afterwards.
"""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, Final, TypeVar

from pydantic_core import to_json

from agents_progress.errors import BadEnvelope, JournalClosed, JournalUnavailable, JournalUnreadable
from agents_progress.events import PROTOCOL, Envelope, parse_envelope, parse_known
from agents_progress.journal.base import Journal, Origin, RunRow, fresh, one_run
from agents_progress.messages import Status
from agents_progress.standing import UPDATES, Standing

T = TypeVar("T")

SCHEMA_VERSION: Final = 1
BUSY_TIMEOUT_S: Final = 30.0
"""How long a write waits for another process that holds the file, in seconds."""

_SCHEMA: Final = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS journal (protocol TEXT NOT NULL, version INTEGER NOT NULL);
INSERT INTO journal SELECT '{PROTOCOL}', {SCHEMA_VERSION} WHERE NOT EXISTS (SELECT 1 FROM journal);
CREATE TABLE IF NOT EXISTS runs (
    run INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    task_id TEXT NOT NULL,
    title TEXT,
    seq INTEGER NOT NULL,
    standing TEXT NOT NULL,
    started_at TEXT NOT NULL,
    updated_at TEXT NOT NULL,
    origin TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS runs_by_task ON runs (task_id);
CREATE TABLE IF NOT EXISTS envelopes (
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (run, seq)
) WITHOUT ROWID;
COMMIT;
"""


_INSERTS: Final = [
    (size, f"INSERT INTO envelopes VALUES {', '.join(['(?, ?, ?)'] * size)}") for size in (256, 32, 4, 1)
]


@dataclass(slots=True)
class _Batch:
    envelopes: Sequence[Envelope]
    origin: Origin | None
    claim: bool
    written: Future[None] = field(default_factory=Future)


class _Open:
    """The connections and threads of one process."""

    def __init__(self, path: str, create: bool) -> None:
        self.pid = os.getpid()
        self.path = path
        self.create = create
        self.writer = ThreadPoolExecutor(1, thread_name_prefix="agents-progress-writer")
        self.reader = ThreadPoolExecutor(1, thread_name_prefix="agents-progress-reader")
        self.connections: dict[str, sqlite3.Connection] = {}

    def connection(self, role: str) -> sqlite3.Connection:
        """The connection of a thread; each role has one thread, so it is made there once."""
        if role not in self.connections:
            self.connections[role] = _connect(self.path, self.create)
        return self.connections[role]

    def close(self) -> None:
        self.writer.shutdown(wait=True)
        self.reader.shutdown(wait=True)
        for connection in self.connections.values():
            connection.close()


def _connect(path: str, create: bool) -> sqlite3.Connection:
    if create:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    elif not Path(path).is_file():
        raise JournalUnreadable(
            f"there is no journal at {path}; name another one with --journal, or run something first"
        )
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    try:
        if _holds_a_journal(connection, path, create):
            connection.execute("PRAGMA synchronous = FULL")
        else:
            _switch_to_wal(connection)
            connection.executescript(_SCHEMA)
            connection.execute("PRAGMA synchronous = FULL")
    except BaseException:
        connection.close()
        raise
    return connection


def _switch_to_wal(connection: sqlite3.Connection) -> None:
    """Wait for other connections that make the same file: SQLite's own busy timeout does not cover this switch."""
    give_up = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.01)


def _holds_a_journal(connection: sqlite3.Connection, path: str, create: bool) -> bool:
    """Whether the file is a journal of ours; False for an empty one. Somebody else's database is refused and left
    alone.
    """
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not tables and create:
        return False
    if "journal" not in tables:
        raise JournalUnreadable(f"{path} is no journal, so it was left alone; name another file")
    protocol, version = connection.execute("SELECT protocol, version FROM journal").fetchone() or ("nothing", 0)
    if (protocol, version) != (PROTOCOL, SCHEMA_VERSION):
        raise JournalUnreadable(
            f"{path} holds {protocol} in version {version}; this release reads {PROTOCOL} in version {SCHEMA_VERSION}"
        )
    return True


class SQLiteJournal(Journal):
    """A journal in one file. The file is readable by its owner only (mode 0600).

    ``path`` is a file name; its folder must exist. With ``create=False`` a missing file is refused at first use.
    """

    gap_s = 0.02  # an append costs two changes of thread, however little it stores

    def __init__(self, path: str | os.PathLike[str], *, create: bool = True) -> None:
        self._path = os.fspath(path)
        self._create = create
        self._open: _Open | None = None
        self._queue: deque[_Batch] = deque()
        self._lock = Lock()
        self._closed = False

    async def append(self, envelopes: Sequence[Envelope], *, origin: Origin | None = None, claim: bool = False) -> None:
        opened = self._opened()
        if not envelopes:
            return
        one_run(envelopes)
        batch = _Batch(envelopes, origin, claim)
        self._queue.append(batch)
        opened.writer.submit(self._write_gathered, opened)
        # A caller that is cancelled leaves; its batch is written all the same.
        await asyncio.shield(asyncio.wrap_future(batch.written))

    async def read(self, run_id: str, after_seq: int = 0, limit: int = 1000) -> list[Envelope]:
        bodies = await self._ask(
            lambda db: db.execute(
                "SELECT body FROM envelopes JOIN runs USING (run) "
                "WHERE run_id = ? AND envelopes.seq > ? ORDER BY envelopes.seq LIMIT ?",
                (run_id, min(after_seq, 2**62), limit),
            ).fetchall()
        )
        return [_envelope(body, self._path) for (body,) in bodies]

    async def runs(
        self,
        *,
        task_id: str | None = None,
        labels: Mapping[str, str] | None = None,
        status: Status | None = None,
        limit: int = 100,
    ) -> list[RunRow]:
        wanted = dict(labels or {}).items()

        def find(db: sqlite3.Connection) -> list[RunRow]:
            found: list[RunRow] = []
            cursor = db.execute(
                "SELECT run_id, task_id, title, seq, standing, started_at, updated_at, origin FROM runs "
                "WHERE ?1 IS NULL OR task_id = ?1 ORDER BY run DESC",
                (task_id,),
            )
            for line in cursor:
                if len(found) >= limit:
                    break
                row = _row(line)
                if wanted <= row.labels.items() and (status is None or row.status == status):
                    found.append(row)
            return found

        return await self._ask(find)

    @property
    def closed(self) -> bool:
        return self._closed

    async def close(self) -> None:
        with self._lock:
            opened, self._open, self._closed = self._open, None, True
        if opened is not None and opened.pid == os.getpid():
            await asyncio.to_thread(opened.close)

    def _opened(self) -> _Open:
        with self._lock:
            if self._closed:
                raise JournalClosed(f"the journal {self._path} was closed; open it again")
            if self._open is None or self._open.pid != os.getpid():
                # After a fork the parent's threads do not exist here and its connections must not be touched.
                self._open, self._queue = _Open(self._path, self._create), deque()
            return self._open

    async def _ask(self, question: Callable[[sqlite3.Connection], T]) -> T:
        opened = self._opened()

        def answer() -> T:
            with _translated(self._path):
                return question(opened.connection("reader"))

        return await asyncio.wrap_future(opened.reader.submit(answer))

    # In the writer thread.

    def _write_gathered(self, opened: _Open) -> None:
        batches = [self._queue.popleft() for _ in range(len(self._queue))]
        if not batches:
            return
        failures: dict[int, BaseException] = {}
        try:
            with _translated(self._path):
                db = opened.connection("writer")
                db.execute("BEGIN IMMEDIATE")
                try:
                    for place, batch in enumerate(batches):
                        try:
                            _write(db, batch)
                        except sqlite3.Error:
                            raise
                        except Exception as refused:  # noqa: BLE001 - this batch only; nothing of it was written
                            failures[place] = refused
                    db.execute("COMMIT")
                except BaseException:
                    db.rollback()
                    raise
        except BaseException as error:  # noqa: BLE001 - whatever happens in this thread belongs to the callers
            failures = dict.fromkeys(range(len(batches)), error)
        for place, batch in enumerate(batches):
            if place in failures:
                batch.written.set_exception(failures[place])
            else:
                batch.written.set_result(None)


class _translated:  # noqa: N801 - reads as a with statement
    """Names the file and the next step for whatever SQLite raises."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __enter__(self) -> None: ...

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, sqlite3.OperationalError):
            raise JournalUnavailable(f"the journal {self.path} cannot be used now: {error}") from error
        if isinstance(error, sqlite3.DatabaseError):
            raise JournalUnreadable(f"{self.path} is not a journal: {error}") from error
        if isinstance(error, OSError):
            raise JournalUnavailable(f"the journal {self.path} cannot be opened: {error.strerror}") from error


def _write(db: sqlite3.Connection, batch: _Batch) -> None:
    first, last = batch.envelopes[0], batch.envelopes[-1]
    line = db.execute("SELECT run, seq, standing FROM runs WHERE run_id = ?", (first.run_id,)).fetchone()
    run, head, standing = line or (None, 0, None)

    def stored(after: int, upto: int) -> list[Envelope]:
        rows = db.execute("SELECT body FROM envelopes WHERE run = ? AND seq > ? AND seq <= ?", (run, after, upto))
        return [parse_envelope(body) for (body,) in rows]

    envelopes = fresh(batch.envelopes, head, stored, batch.claim)
    if not envelopes:
        return
    # Whatever is wrong with a batch shows here, before anything of it is written.
    bodies = [envelope.to_json() for envelope in envelopes]
    if head == 0 or any(envelope.type in UPDATES for envelope in envelopes):
        standing = _observed(standing, envelopes)
    if run is None:
        run = _begin(db, first, batch.origin or Origin())
    db.execute(
        "UPDATE runs SET seq = ?, updated_at = ?, standing = ? WHERE run = ?",
        (last.seq, last.occurred_at, standing, run),
    )
    _insert(db, [(run, envelope.seq, body) for envelope, body in zip(envelopes, bodies, strict=True)])


def _insert(db: sqlite3.Connection, rows: Sequence[tuple[int | None, int, bytes]]) -> None:
    """Many rows a statement: after each one this thread must win the interpreter back from the event loop."""
    start = 0
    for size, statement in _INSERTS:
        while len(rows) - start >= size:
            db.execute(statement, [value for row in rows[start : start + size] for value in row])
            start += size


def _envelope(body: bytes, path: str) -> Envelope:
    """A stored envelope. Its payload is the reader's to judge, so that a damaged one shows as an issue and hides
    nothing.
    """
    try:
        return parse_known(body) or parse_envelope(body)
    except BadEnvelope as error:
        raise JournalUnreadable(f"{path} is damaged: {error}") from error


def _begin(db: sqlite3.Connection, first: Envelope, origin: Origin) -> int | None:
    cursor = db.execute(
        "INSERT INTO runs (run_id, task_id, title, seq, standing, started_at, updated_at, origin) "
        "VALUES (?, ?, ?, 0, '', ?, ?, ?)",
        (
            first.run_id,
            first.payload.get("task_id", first.run_id),
            first.payload.get("title"),
            first.occurred_at,
            first.occurred_at,
            json.dumps({**asdict(origin), "labels": dict(origin.labels), "versions": dict(origin.versions)}),
        ),
    )
    return cursor.lastrowid


def _observed(standing: str | None, envelopes: Sequence[Envelope]) -> str:
    after = Standing(**json.loads(standing)) if standing else Standing()
    after.observe_all(envelopes)
    return to_json(after.to_dict()).decode()


def _row(line: tuple[Any, ...]) -> RunRow:
    run_id, task_id, title, seq, standing, started_at, updated_at, origin = line
    return RunRow(
        run_id=run_id,
        task_id=task_id,
        title=title,
        seq=seq,
        standing=Standing(**json.loads(standing)),
        started_at=started_at,
        updated_at=updated_at,
        origin=Origin(**json.loads(origin)),
    )
