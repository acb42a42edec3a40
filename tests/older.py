"""What the release before said to its stores, word for word: it may be at work beside this one during a deploy."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agents_progress.events import Envelope
from agents_progress.standing import Standing

SQLITE_TABLES = """
CREATE TABLE journal (protocol TEXT NOT NULL, version INTEGER NOT NULL);
INSERT INTO journal VALUES ('agents-progress/1', 2);
CREATE TABLE runs (
    run INTEGER PRIMARY KEY,
    run_id TEXT NOT NULL UNIQUE,
    task_id TEXT NOT NULL,
    title TEXT,
    seq INTEGER NOT NULL DEFAULT 0,
    standing TEXT NOT NULL DEFAULT '{}',
    started_at TEXT NOT NULL DEFAULT '',
    updated_at TEXT NOT NULL DEFAULT '',
    origin TEXT NOT NULL DEFAULT '{}',
    owner TEXT,
    tenant TEXT,
    floor INTEGER NOT NULL DEFAULT 0,
    generation INTEGER NOT NULL DEFAULT 0,
    deadline REAL,
    exclusive TEXT,
    sealed INTEGER NOT NULL DEFAULT 0
);
CREATE INDEX runs_by_task ON runs (task_id);
CREATE INDEX runs_by_owner ON runs (owner) WHERE owner IS NOT NULL;
CREATE INDEX runs_by_deadline ON runs (deadline) WHERE deadline IS NOT NULL;
CREATE INDEX runs_by_key ON runs (exclusive) WHERE exclusive IS NOT NULL;
CREATE TABLE envelopes (
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    body BLOB NOT NULL,
    PRIMARY KEY (run, seq)
) WITHOUT ROWID;
CREATE TABLE snapshots (run INTEGER PRIMARY KEY, seq INTEGER NOT NULL, body BLOB NOT NULL);
CREATE TABLE erased (run_id TEXT PRIMARY KEY) WITHOUT ROWID;
"""

POSTGRES_TABLES = """
CREATE TABLE progress_journal (protocol TEXT NOT NULL, version INTEGER NOT NULL);
INSERT INTO progress_journal VALUES ('agents-progress/1', 1);
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


def standing(log: Sequence[Envelope]) -> str:
    found = Standing()
    found.observe_all(log)
    return json.dumps(found.to_dict())


ORIGIN: dict[str, Any] = {"owner": "mei", "tenant": None, "labels": {}, "host": "h", "pid": 1, "versions": {}}


def sqlite_append(db: Any, log: Sequence[Envelope]) -> None:
    """All of a log of which a part may be stored."""
    first, last = log[0], log[-1]
    db.execute("BEGIN IMMEDIATE")
    line = db.execute(
        "SELECT run, run_id, seq, floor, standing, generation, deadline, sealed FROM runs WHERE run_id = ?",
        (first.run_id,),
    ).fetchone()
    run, head = (line[0], line[2]) if line else (None, 0)
    if not line:
        run = db.execute("INSERT INTO runs (run_id, task_id) VALUES (?1, ?1)", (first.run_id,)).lastrowid
        db.execute(
            "UPDATE runs SET task_id = ?, title = ?, started_at = ?, origin = ?, owner = ?, tenant = ? WHERE run = ?",
            (first.payload.get("task_id"), None, first.occurred_at, json.dumps(ORIGIN), ORIGIN["owner"], None, run),
        )
    db.execute(
        "UPDATE runs SET seq = ?, updated_at = ?, standing = ? WHERE run = ?",
        (last.seq, last.occurred_at, standing(log), run),
    )
    for step in log[head:]:
        db.execute("INSERT INTO envelopes VALUES (?, ?, ?)", (run, step.seq, step.to_json()))
    db.execute("COMMIT")


def sqlite_erase(db: Any, run_id: str) -> None:
    db.execute("BEGIN IMMEDIATE")
    (run,) = db.execute("SELECT run FROM runs WHERE run_id = ?", (run_id,)).fetchone()
    for table in ("envelopes", "snapshots", "runs"):
        db.execute(f"DELETE FROM {table} WHERE run = ?", (run,))
    db.execute("INSERT OR IGNORE INTO erased VALUES (?)", (run_id,))
    db.execute("COMMIT")


def postgres_append(db: Any, log: Sequence[Envelope]) -> None:
    """All of a log of which a part may be stored."""
    first, last = log[0], log[-1]
    with db.transaction():
        db.execute(
            "INSERT INTO progress_runs (run_id) SELECT name FROM unnest(%s::text[]) name ORDER BY name "
            "ON CONFLICT (run_id) DO NOTHING",
            ([first.run_id],),
        )
        run, head = db.execute(
            "SELECT run, seq FROM progress_runs WHERE run_id = ANY(%s) ORDER BY run_id FOR UPDATE", ([first.run_id],)
        ).fetchone()
        about = json.dumps({"task_id": first.payload["task_id"], "title": None, "origin": ORIGIN})
        if not head:
            db.execute(
                "UPDATE progress_runs SET begun = nextval('progress_begun'), task_id = %s, owner = %s, tenant = %s, "
                "labels = %s, about = %s, started_at = %s WHERE run = %s",
                (first.payload["task_id"], ORIGIN["owner"], None, "{}", about, first.occurred_at, run),
            )
        for step in log[head:]:
            db.execute(
                "INSERT INTO progress_envelopes (run, seq, body) VALUES (%s, %s, %s)", (run, step.seq, step.to_json())
            )
        db.execute(
            "UPDATE progress_runs SET seq = %s, standing = %s, status = %s, updated_at = coalesce(%s, updated_at), "
            "generation = %s, sealed = %s, deadline = CASE WHEN %s THEN NULL ELSE deadline END "
            "WHERE run = %s RETURNING pg_notify('agents_progress', run_id)",
            (last.seq, standing(log), "running", last.occurred_at, 0, False, True, run),
        )


def postgres_erase(db: Any, run_id: str) -> None:
    with db.transaction():
        (run,) = db.execute(
            "SELECT run FROM progress_runs WHERE run_id = %s AND NOT erased ORDER BY run_id FOR UPDATE", (run_id,)
        ).fetchone()
        db.execute("DELETE FROM progress_envelopes WHERE run = ANY(%s)", ([run],))
        db.execute("DELETE FROM progress_snapshots WHERE run = ANY(%s)", ([run],))
        db.execute(
            "UPDATE progress_runs SET begun = NULL, task_id = NULL, owner = NULL, tenant = NULL, labels = NULL, "
            "status = NULL, about = NULL, standing = NULL, started_at = NULL, updated_at = NULL, seq = 0, floor = 0, "
            "deadline = NULL, exclusive = NULL, sealed = true, erased = true WHERE run = ANY(%s) "
            "RETURNING pg_notify('agents_progress', run_id)",
            ([run],),
        )


def redis_append(server: Any, prefix: str, log: Sequence[Envelope]) -> None:
    """All of a log of which a part may be stored: what its script did, as commands."""
    first, last = log[0], log[-1]
    key, stream = f"{prefix}:{{{first.run_id}}}:run", f"{prefix}:{{{first.run_id}}}:log"
    head = int(server.hget(key, "head") or 0)
    for step in log[head:]:
        server.xadd(stream, {"e": step.to_json()}, f"{step.seq}-0")
    server.hset(key, mapping={"head": last.seq, "updated": last.occurred_at, "standing": standing(log)})
    if not head:
        born = server.incr(f"{prefix}:born")
        told = {"task_id": first.payload["task_id"], "title": None, "started_at": first.occurred_at, "origin": ORIGIN}
        server.hset(key, mapping={"row": json.dumps(told), "born": born, "claim": "", "owner": "mei"})
        for index in ("runs", f"task:{first.payload['task_id']}", "owner:mei"):
            server.zadd(f"{prefix}:{index}", {first.run_id: born})


def redis_erase(server: Any, prefix: str, run_id: str) -> None:
    key, stream = f"{prefix}:{{{run_id}}}:run", f"{prefix}:{{{run_id}}}:log"
    server.delete(key, stream)
    server.hset(key, "erased", "1")
    server.xadd(stream, {"erased": "1"}, "18446744073709551615-0")
