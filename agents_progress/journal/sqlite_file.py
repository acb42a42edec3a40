"""The file of the embedded journal: its schema, how a connection to it is made, and what its errors are called.

A file has a version, which a release must know, and a revision: how many of :data:`_EXPANSIONS` it went through. A
release adds those that are missing when it opens a file, and passes over those that it does not know. So an expansion
may add what an older release can leave alone, and nothing else: that one goes on writing to the same file.
"""

from __future__ import annotations

import os
import sqlite3
import time
from pathlib import Path
from threading import Lock
from typing import Final

from agents_progress.errors import JournalUnavailable, JournalUnreadable
from agents_progress.events import PROTOCOL
from agents_progress.journal.facts import status_of

SCHEMA_VERSION: Final = 2
BUSY_TIMEOUT_S: Final = 30.0
"""How long a write waits for another process that holds the file, in seconds."""
CHECKPOINT_PAGES: Final = 4000
"""At how many pages the write-ahead log goes into the file, which takes two flushes more: 16 MB, four times what SQLite
would choose.
"""

UNNOTED: Final = "noted_seq IS NOT seq"
"""Holds for the few runs of which an older release wrote last: their status is known from their standing alone."""

WIPE_WAIT_MS: Final = 500
"""How long an erasure waits for readers before it leaves the write-ahead log to the next checkpoint."""

_SCHEMA: Final = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS journal (protocol TEXT NOT NULL, version INTEGER NOT NULL);
INSERT INTO journal SELECT '{PROTOCOL}', {SCHEMA_VERSION} WHERE NOT EXISTS (SELECT 1 FROM journal);
CREATE TABLE IF NOT EXISTS runs (
    run INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    task_id TEXT NOT NULL,
    title TEXT,
    seq INTEGER NOT NULL DEFAULT 0,
    standing TEXT NOT NULL DEFAULT '{{}}',
    started_at TEXT NOT NULL DEFAULT '',
    updated_at TEXT NOT NULL DEFAULT '',
    origin TEXT NOT NULL DEFAULT '{{}}',
    owner TEXT,
    tenant TEXT,
    floor INTEGER NOT NULL DEFAULT 0,
    generation INTEGER NOT NULL DEFAULT 0,
    deadline REAL,
    exclusive TEXT,
    sealed INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX IF NOT EXISTS runs_by_task ON runs (task_id);
CREATE INDEX IF NOT EXISTS runs_by_owner ON runs (owner) WHERE owner IS NOT NULL;
CREATE INDEX IF NOT EXISTS runs_by_deadline ON runs (deadline) WHERE deadline IS NOT NULL;
CREATE INDEX IF NOT EXISTS runs_by_key ON runs (exclusive) WHERE exclusive IS NOT NULL;
CREATE TABLE IF NOT EXISTS envelopes (
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (run, seq)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS snapshots (run INTEGER PRIMARY KEY, seq INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS erased (run_id TEXT PRIMARY KEY) WITHOUT ROWID;
COMMIT;
"""

_EXPANSIONS: Final = (
    (
        "ALTER TABLE runs ADD COLUMN written_seq INTEGER",
        "ALTER TABLE runs ADD COLUMN written_at REAL",
        "ALTER TABLE runs ADD COLUMN read_at REAL",
        """
CREATE TABLE requests (
    request INTEGER PRIMARY KEY,
    run INTEGER NOT NULL,
    key TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (run, key)
)
""",
        """
CREATE TRIGGER requests_go_with_their_run AFTER DELETE ON runs
BEGIN DELETE FROM requests WHERE run = OLD.run; END
""",
    ),
    (
        "ALTER TABLE runs ADD COLUMN noted_seq INTEGER",
        "ALTER TABLE runs ADD COLUMN status TEXT",
        "ALTER TABLE runs ADD COLUMN glance TEXT",
        "UPDATE runs SET noted_seq = seq, status = status_of(standing)",
        "CREATE INDEX runs_by_status ON runs (status)",
        f"CREATE INDEX runs_unnoted ON runs (run) WHERE {UNNOTED}",
    ),
    (
        "CREATE TABLE pauses (run INTEGER PRIMARY KEY, body TEXT NOT NULL)",
        """
CREATE TRIGGER pauses_go_with_their_run AFTER DELETE ON runs
BEGIN DELETE FROM pauses WHERE run = OLD.run; END
""",
        """
CREATE TRIGGER pauses_go_with_their_log AFTER UPDATE OF floor ON runs WHEN NEW.floor >= NEW.seq
BEGIN DELETE FROM pauses WHERE run = NEW.run; END
""",
    ),
)
"""``written_at`` is that of ``written_seq``, and ``status`` and ``glance`` are those of ``noted_seq``: a release that
does not know them leaves them behind. Triggers erase and prune, because an older release may be the one that does.
"""

_MAKING: Final = Lock()
"""Held while a file is made. Closing any descriptor of a file ends all locks that the process has on it, those of its
connections included. So a descriptor is closed before there is any connection, and never after.
"""


def connect(path: str, create: bool) -> sqlite3.Connection:
    """A connection to the journal in a file, which may be made."""
    with _MAKING:
        if not Path(path).is_file():
            if not create:
                raise JournalUnreadable(
                    f"there is no journal at {path}; name another one with --journal, or run something first"
                )
            os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    connection = sqlite3.connect(path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)
    try:
        if not _holds_a_journal(connection, path, create):
            _switch_to_wal(connection)
            connection.executescript(_SCHEMA)
        _expand(connection)
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA wal_autocheckpoint = {CHECKPOINT_PAGES}")
        connection.execute("PRAGMA secure_delete = ON")  # what was erased shall not be found in the file
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


def _expand(connection: sqlite3.Connection) -> None:
    """Bring the file to the revision of this release, whoever else opens it at the same time."""
    if _revision(connection) >= len(_EXPANSIONS):
        return
    connection.create_function("status_of", 1, status_of, deterministic=True)
    connection.execute("BEGIN IMMEDIATE")
    try:
        for expansion in _EXPANSIONS[_revision(connection) :]:  # read again: now nobody else changes it
            for statement in expansion:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {len(_EXPANSIONS)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def _revision(connection: sqlite3.Connection) -> int:
    (revision,) = connection.execute("PRAGMA user_version").fetchone()
    return int(revision)


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


def wipe(connection: sqlite3.Connection) -> None:
    """Empty the write-ahead log, which still holds what was erased, unless another process reads it just now."""
    connection.execute(f"PRAGMA busy_timeout = {WIPE_WAIT_MS}")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000:.0f}")


class translated:  # noqa: N801 - reads as a with statement
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
