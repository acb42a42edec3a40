"""What the embedded journal writes to its file. Each function runs in one transaction of its caller's; one that refuses
does so before it writes anything.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from agents_progress.events import Envelope, parse_envelope
from agents_progress.journal import rules
from agents_progress.journal.base import Erased, Lease, Origin, Request, Scope, fresh
from agents_progress.journal.facts import Facts
from agents_progress.journal.sqlite_read import RUN, Run, bodies, found_run, inside

_INSERTS: Final = [
    (size, f"INSERT INTO envelopes VALUES {', '.join(f'(?1, ?2 + {n}, ?{n + 3})' for n in range(size))}")
    for size in (256, 32, 4, 1)
]
"""The number of the run, the first sequence number, and as many bodies: what is counted here is not handed over."""

_STEP: Final = (
    "UPDATE runs SET seq = ?1, updated_at = ?2, written_seq = ?1, written_at = ?3, noted_seq = ?1 WHERE run = ?4"
)
_FACTS: Final = "UPDATE runs SET standing = ?, status = ?, glance = ? WHERE run = ?"
"""Apart, because most batches change none of them, and one is indexed."""

_GIVE_BACK: Final = "UPDATE runs SET sealed = 1, deadline = NULL, exclusive = NULL"


def _place(db: sqlite3.Connection, run_id: str) -> Run:
    """A place for a run that did not begin yet."""
    run = db.execute("INSERT INTO runs (run_id, task_id) VALUES (?1, ?1)", (run_id,)).lastrowid
    return Run(run or 0, run_id, 0, 0, "{}", None, None, 0, None, sealed=False)


# Writing.


def write(
    db: sqlite3.Connection, envelopes: Sequence[Envelope], origin: Origin | None, claim: bool, lease: Lease | None
) -> None:
    """Append a batch of one run."""
    run_id = envelopes[0].run_id
    found = found_run(db, run_id)
    head, floor = (found.head, found.floor) if found else (0, 0)
    generation, sealed = (found.generation, bool(found.sealed)) if found else (0, False)
    rules.refuse_write(run_id, generation=generation, sealed=sealed, lease=lease)

    def stored(after: int, upto: int) -> list[Envelope]:
        return [parse_envelope(body) for body in bodies(db, found.run, after, upto)] if found else []

    _extend(db, run_id, found, fresh(envelopes, head, stored, claim, floor), origin)


def _extend(
    db: sqlite3.Connection,
    run_id: str,
    found: Run | None,
    envelopes: Sequence[Envelope],
    origin: Origin | None = None,
) -> None:
    """Store the next envelopes of a run."""
    if not envelopes:
        return
    # Whatever is wrong with a batch shows here, before anything of it is written.
    texts = [envelope.to_json() for envelope in envelopes]
    before = found.facts if found else Facts()
    after = before.after(envelopes)
    run = (found or _place(db, run_id)).run
    if found is None or not found.head:
        _begin(db, run, envelopes[0], origin or Origin())
    db.execute(_STEP, (envelopes[-1].seq, envelopes[-1].occurred_at, time.time(), run))
    if after is not before or after.glance is None:
        db.execute(_FACTS, (after.standing_text, after.standing.status, after.glance_text, run))
    _insert(db, run, envelopes[0].seq, texts)


def _begin(db: sqlite3.Connection, run: int, first: Envelope, origin: Origin) -> None:
    db.execute(
        "UPDATE runs SET task_id = ?, title = ?, started_at = ?, origin = ?, owner = ?, tenant = ? WHERE run = ?",
        (
            first.payload.get("task_id", first.run_id),
            first.payload.get("title"),
            first.occurred_at,
            json.dumps({**asdict(origin), "labels": dict(origin.labels), "versions": dict(origin.versions)}),
            origin.owner,
            origin.tenant,
            run,
        ),
    )


def _insert(db: sqlite3.Connection, run: int, first: int, texts: Sequence[bytes]) -> None:
    """Many rows a statement: after each one this thread must win the interpreter back from the event loop."""
    start = 0
    for size, statement in _INSERTS:
        while len(texts) - start >= size:
            db.execute(statement, (run, first + start, *texts[start : start + size]))
            start += size


def seal(db: sqlite3.Connection, run_id: str, lease: Lease | None) -> None:
    """Close a log and give its lease back."""
    found = found_run(db, run_id)
    if found is None:
        raise rules.not_found(run_id)
    rules.refuse_write(run_id, generation=found.generation, sealed=False, lease=lease)
    db.execute(f"{_GIVE_BACK} WHERE run = ?", (found.run,))


# Ownership. The clock is the machine's, read inside the transaction: every node of a file runs on one machine.


def take(db: sqlite3.Connection, run_id: str, ttl: float, exclusive: str | None) -> Lease:
    """Lease a run."""
    found = found_run(db, run_id)
    if found:
        rules.refuse_lease(run_id, generation=found.generation, deadline=found.deadline, sealed=bool(found.sealed))
    now = time.time()
    holder = db.execute("SELECT run_id FROM runs WHERE exclusive = ? AND deadline > ?", (exclusive, now)).fetchone()
    if holder:
        raise rules.held_elsewhere(exclusive or "", holder[0])
    found = found or _place(db, run_id)
    db.execute(
        "UPDATE runs SET generation = ?, deadline = ?, exclusive = ? WHERE run = ?",
        (found.generation + 1, now + ttl, exclusive, found.run),
    )
    return Lease(run_id, found.generation + 1)


def renew(db: sqlite3.Connection, leases: Sequence[Lease], ttl: float) -> list[Lease]:
    """Prolong leases; those that are no longer held."""
    now = time.time()
    query = "UPDATE runs SET deadline = ? WHERE run_id = ? AND generation = ? AND deadline > ?"
    return [
        lease for lease in leases if not db.execute(query, (now + ttl, lease.run_id, lease.generation, now)).rowcount
    ]


def reserve(db: sqlite3.Connection, accepted: Envelope, ttl: float, origin: Origin | None) -> None:
    """Begin a run that somebody will lease."""
    if found_run(db, accepted.run_id):
        raise rules.exists(accepted.run_id)
    place = _place(db, accepted.run_id)
    _extend(db, accepted.run_id, place, [accepted], origin)
    db.execute("UPDATE runs SET deadline = ? WHERE run = ?", (time.time() + ttl, place.run))


def expire(db: sqlite3.Connection) -> tuple[list[str], list[str]]:
    """Seal the runs whose deadline has passed: those that were lost, and all of them."""
    late = [Run(*line) for line in db.execute(f"{RUN} WHERE deadline <= ?", (time.time(),))]
    ended: list[str] = []
    for found in late:
        if lost := rules.lost(found.run_id, found.head, found.generation, found.facts.standing):
            _extend(db, found.run_id, found, [lost])
            ended.append(found.run_id)
        db.execute(f"{_GIVE_BACK}, generation = generation + 1 WHERE run = ?", (found.run,))
    return ended, [found.run_id for found in late]


# Control.


def touch(db: sqlite3.Connection, run_ids: Sequence[str]) -> None:
    """Note that runs are read now."""
    query = "UPDATE runs SET read_at = ? WHERE run_id = ? AND NOT sealed"
    db.executemany(query, [(time.time(), run_id) for run_id in run_ids])


def ask(db: sqlite3.Connection, request: Request, text: str, scope: Scope) -> Request:
    """Store a request unless one with its key is there; the stored one."""
    run_id, key = request.run_id, rules.key_text(request.key)
    found = inside(db, run_id, scope)
    if found is None or not found.head:
        raise rules.not_found(run_id)
    db.execute("INSERT OR IGNORE INTO requests (run, key, body) VALUES (?, ?, ?)", (found.run, key, text))
    (body,) = db.execute("SELECT body FROM requests WHERE run = ? AND key = ?", (found.run, key)).fetchone()
    return rules.stored_request(run_id, body)


# Pauses.


def keep_pause(db: sqlite3.Connection, run_id: str, body: str, lease: Lease | None) -> None:
    """Store what a run that is about to pause leaves behind."""
    found = found_run(db, run_id)
    if found is None or not found.head:
        raise rules.not_found(run_id)
    rules.refuse_write(run_id, generation=found.generation, sealed=bool(found.sealed), lease=lease)
    db.execute("INSERT OR REPLACE INTO pauses VALUES (?, ?)", (found.run, body))


def drop_pause(db: sqlite3.Connection, run_id: str) -> None:
    """Remove it."""
    db.execute("DELETE FROM pauses WHERE run = (SELECT run FROM runs WHERE run_id = ?)", (run_id,))


# Retention.


def prune(db: sqlite3.Connection, run_id: str, floor: int, body: bytes | None) -> int:
    """Put a snapshot in the place of the envelopes up to ``floor``; how many went."""
    found = found_run(db, run_id)
    if found is None or floor <= found.floor:
        return 0
    if body is not None:
        _keep(db, found.run, floor, body)
    db.execute("UPDATE runs SET floor = ? WHERE run = ?", (floor, found.run))
    return db.execute("DELETE FROM envelopes WHERE run = ? AND seq <= ?", (found.run, floor)).rowcount


def keep(db: sqlite3.Connection, run_id: str, snapshot: Mapping[str, Any], body: bytes) -> None:
    """Store a snapshot unless a newer one is there."""
    found = found_run(db, run_id)
    seq = rules.snapshot_seq(run_id, snapshot, found.head if found else 0)
    if found:
        _keep(db, found.run, seq, body)


def _keep(db: sqlite3.Connection, run: int, seq: int, body: bytes) -> None:
    db.execute(
        "INSERT INTO snapshots VALUES (?, ?, ?) ON CONFLICT (run) "
        "DO UPDATE SET seq = excluded.seq, body = excluded.body WHERE excluded.seq > seq",
        (run, seq, body),
    )


def erase(db: sqlite3.Connection, column: str, value: str) -> tuple[Erased, list[str]]:
    """Remove the runs of which a column holds a value, and leave a tombstone of each; their ids."""
    gone = db.execute(f"SELECT run, run_id FROM runs WHERE {column} = ?", (value,)).fetchall()
    numbers, ids = [(run,) for run, _ in gone], [run_id for _, run_id in gone]
    removed = {
        table: max(db.executemany(f"DELETE FROM {table} WHERE run = ?", numbers).rowcount, 0)
        for table in ("envelopes", "snapshots", "runs")
    }
    db.executemany("INSERT OR IGNORE INTO erased VALUES (?)", [(run_id,) for run_id in ids])
    return Erased(removed["runs"], removed["envelopes"], removed["snapshots"]), ids
