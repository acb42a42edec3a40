"""The tables of the PostgreSQL journal, and the rules by which a database is taken for one.

The tables live in the first schema of the connection's ``search_path``. A text of an application may hold what a TEXT
column cannot: it is stored escaped (:func:`plain`) where it is searched, and as ASCII JSON where it is given back.

Tables have a version, which a release must know, and a revision: how many of :data:`_EXPANSIONS` they went through. A
release adds those that are missing when it connects, and passes over those that it does not know. So an expansion may
add what an older release can leave alone, and nothing else: that one goes on writing to the same tables.
"""

from __future__ import annotations

from typing import Any, Final

import psycopg
from psycopg.rows import TupleRow

from agents_progress.errors import JournalUnreadable
from agents_progress.events import PROTOCOL
from agents_progress.journal.postgres_address import NOT_FOR_EVER

SCHEMA_VERSION: Final = 1
CHANNEL: Final = "agents_progress"
"""Each change of a run is notified here, with its id, by the transaction that made it."""

_SCHEMA_LOCK: Final = 0x61676E_70726F67
"""The advisory lock under which tables are made: any number that every release agrees on."""

_TABLES: Final = f"""
CREATE TABLE progress_journal (protocol TEXT NOT NULL, version INTEGER NOT NULL);
INSERT INTO progress_journal VALUES ('{PROTOCOL}', {SCHEMA_VERSION});
CREATE SEQUENCE progress_begun;
CREATE TABLE progress_runs (
    run BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    begun BIGINT,
    task_id TEXT,
    owner TEXT,
    tenant TEXT,
    labels JSONB,
    status TEXT,
    about TEXT,
    standing TEXT,
    started_at TEXT,
    updated_at TEXT,
    seq BIGINT NOT NULL DEFAULT 0,
    floor BIGINT NOT NULL DEFAULT 0,
    generation BIGINT NOT NULL DEFAULT 0,
    deadline TIMESTAMPTZ,
    exclusive TEXT,
    sealed BOOLEAN NOT NULL DEFAULT false,
    erased BOOLEAN NOT NULL DEFAULT false
) WITH (fillfactor = 70);
CREATE INDEX progress_runs_begun ON progress_runs (begun) WHERE begun IS NOT NULL;
CREATE INDEX progress_runs_task ON progress_runs USING hash (task_id);
CREATE INDEX progress_runs_owner ON progress_runs USING hash (owner);
CREATE INDEX progress_runs_labels ON progress_runs USING gin (labels jsonb_path_ops);
CREATE INDEX progress_runs_deadline ON progress_runs (deadline) WHERE deadline IS NOT NULL;
CREATE INDEX progress_runs_exclusive ON progress_runs USING hash (exclusive);
CREATE TABLE progress_envelopes (
    run BIGINT NOT NULL,
    seq BIGINT NOT NULL,
    body BYTEA NOT NULL,
    PRIMARY KEY (run, seq)
);
CREATE TABLE progress_snapshots (run BIGINT PRIMARY KEY, seq BIGINT NOT NULL, body BYTEA NOT NULL);
"""

_EXPANSIONS: Final = (
    """
ALTER TABLE progress_runs ADD COLUMN written_seq BIGINT, ADD COLUMN written_at TIMESTAMPTZ;
CREATE TABLE progress_reads (run BIGINT PRIMARY KEY, read_at TIMESTAMPTZ NOT NULL) WITH (fillfactor = 50);
CREATE TABLE progress_requests (
    request BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run BIGINT NOT NULL,
    key TEXT NOT NULL,
    body TEXT NOT NULL,
    UNIQUE (run, key)
);
CREATE FUNCTION progress_forget() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM progress_requests WHERE run = NEW.run;
    DELETE FROM progress_reads WHERE run = NEW.run;
    RETURN NULL;
END $$;
CREATE TRIGGER progress_erased AFTER UPDATE OF erased ON progress_runs
FOR EACH ROW WHEN (NEW.erased) EXECUTE FUNCTION progress_forget();
ALTER TABLE progress_journal ADD COLUMN revision INTEGER NOT NULL DEFAULT 0;
""",
    """
ALTER TABLE progress_runs ADD COLUMN glance_seq BIGINT, ADD COLUMN glance TEXT;
CREATE INDEX progress_runs_status ON progress_runs (status, begun) WHERE begun IS NOT NULL;
CREATE INDEX progress_runs_task_begun ON progress_runs (task_id, begun) WHERE begun IS NOT NULL;
CREATE FUNCTION progress_forget_glance() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.glance := NULL;
    RETURN NEW;
END $$;
CREATE TRIGGER progress_erased_glance BEFORE UPDATE OF erased ON progress_runs
FOR EACH ROW WHEN (NEW.erased) EXECUTE FUNCTION progress_forget_glance();
""",
    """
CREATE TABLE progress_pauses (run BIGINT PRIMARY KEY, body TEXT NOT NULL);
CREATE FUNCTION progress_forget_pause() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM progress_pauses WHERE run = NEW.run;
    RETURN NULL;
END $$;
CREATE TRIGGER progress_erased_pause AFTER UPDATE OF erased ON progress_runs
FOR EACH ROW WHEN (NEW.erased) EXECUTE FUNCTION progress_forget_pause();
CREATE TRIGGER progress_pruned_pause AFTER UPDATE OF floor ON progress_runs
FOR EACH ROW WHEN (NEW.floor >= NEW.seq) EXECUTE FUNCTION progress_forget_pause();
""",
)
"""``written_at`` is that of ``written_seq``, and ``glance`` that of ``glance_seq``: a release that does not know them
leaves them behind. Triggers erase and prune, because an older release may be the one that does.
"""

# Whoever waits for a lock on a table keeps everybody behind it from the table.
_PATIENCE: Final = "SET LOCAL lock_timeout = '5s'"

# Not to_regclass: within a transaction it remembers that a name was free, whoever took it meanwhile.
_FIND: Final = "SELECT FROM pg_class WHERE relname = 'progress_journal' AND pg_table_is_visible(oid)"

# The oldest tables have no revision.
_KNOWN: Final = "SELECT protocol, version, coalesce((to_jsonb(it) ->> 'revision')::int, 0) FROM progress_journal it"

_ESCAPES: Final = {0: r"\0", ord("\\"): r"\\"}


def plain(text: str) -> str:
    """A text as one that a TEXT column can hold. Two different texts never become the same."""
    return text.translate(_ESCAPES).encode("utf-8", "backslashreplace").decode()


def maybe_plain(text: str | None) -> str | None:
    """As :func:`plain`, for a text that may be missing."""
    return None if text is None else plain(text)


async def prepare(db: psycopg.AsyncConnection[TupleRow], name: str, *, create: bool) -> None:
    """Make the tables unless they are there, and bring them to the revision of this release. Raises
    :exc:`JournalUnreadable` for those of another version, and for none when none may be made.
    """
    revision = await _revision(db, name)
    if revision is None and not create:
        raise JournalUnreadable(f"there is no journal in {name}; name another one, or run something first")
    if revision is not None and revision >= len(_EXPANSIONS):
        return
    async with db.transaction():
        await db.execute(NOT_FOR_EVER)
        await db.execute("SELECT pg_advisory_xact_lock(%s)", (_SCHEMA_LOCK,))
        await db.execute(_PATIENCE)
        revision = await _revision(db, name)  # now nobody else changes it
        if revision is None:
            await db.execute(_TABLES)
        for expansion in _EXPANSIONS[revision or 0 :]:
            await db.execute(expansion)
        await db.execute("UPDATE progress_journal SET revision = greatest(revision, %s)", (len(_EXPANSIONS),))


async def _revision(db: psycopg.AsyncConnection[TupleRow], name: str) -> int | None:
    """That of the tables; None when there are none."""
    if await one(db, _FIND) is None:
        return None
    protocol, version, revision = await one(db, _KNOWN) or ("nothing", 0, 0)
    if (protocol, version) != (PROTOCOL, SCHEMA_VERSION):
        raise JournalUnreadable(
            f"{name} holds {protocol} in version {version}; this release reads {PROTOCOL} in version {SCHEMA_VERSION}"
        )
    return int(revision)


async def one(db: psycopg.AsyncConnection[TupleRow], query: str, values: Any = None) -> TupleRow | None:
    """The first line of an answer, None when it has none."""
    return await (await db.execute(query, values)).fetchone()
