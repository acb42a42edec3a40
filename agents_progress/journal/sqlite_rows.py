"""What the embedded journal asks of its file. Each function runs in one transaction of its caller's; one that refuses
does so before it writes anything.
"""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final, NamedTuple

from pydantic_core import from_json, to_json

from agents_progress.errors import BadEnvelope, JournalUnreadable
from agents_progress.events import Envelope, parse_envelope, parse_known
from agents_progress.journal import rules
from agents_progress.journal.base import EVERYTHING, Erased, Lease, Origin, RunRow, Scope, fresh
from agents_progress.messages import Status
from agents_progress.standing import UPDATES, Standing

_INSERTS: Final = [
    (size, f"INSERT INTO envelopes VALUES {', '.join(['(?, ?, ?)'] * size)}") for size in (256, 32, 4, 1)
]

_INSIDE: Final = "(:owner IS NULL OR owner = :owner) AND (:tenant IS NULL OR tenant = :tenant)"
"""Holds for the runs of a scope."""

_GIVE_BACK: Final = "UPDATE runs SET sealed = 1, deadline = NULL, exclusive = NULL"


class Run(NamedTuple):
    """The facts of :mod:`agents_progress.journal.rules` about a run, and its number in the file."""

    run: int
    run_id: str
    head: int
    floor: int
    standing: str
    generation: int
    deadline: float | None
    sealed: bool


_RUN: Final = "SELECT run, run_id, seq, floor, standing, generation, deadline, sealed FROM runs"


def _run(db: sqlite3.Connection, run_id: str) -> Run | None:
    """A run that is stored or leased. Raises :exc:`RunErased`."""
    line = db.execute(f"{_RUN} WHERE run_id = ?", (run_id,)).fetchone()
    if line is None:
        _refuse_erased(db, run_id)
        return None
    return Run(*line)


def _refuse_erased(db: sqlite3.Connection, run_id: str) -> None:
    if db.execute("SELECT 1 FROM erased WHERE run_id = ?", (run_id,)).fetchone():
        raise rules.erased(run_id)


def _place(db: sqlite3.Connection, run_id: str) -> Run:
    """A place for a run that did not begin yet."""
    run = db.execute("INSERT INTO runs (run_id, task_id) VALUES (?1, ?1)", (run_id,)).lastrowid
    return Run(run or 0, run_id, 0, 0, "{}", 0, None, sealed=False)


# Writing.


def write(
    db: sqlite3.Connection, envelopes: Sequence[Envelope], origin: Origin | None, claim: bool, lease: Lease | None
) -> None:
    """Append a batch of one run."""
    run_id = envelopes[0].run_id
    found = _run(db, run_id)
    _, _, head, floor, _, generation, _, sealed = found or (0, run_id, 0, 0, "{}", 0, None, False)
    rules.refuse_write(run_id, generation=generation, sealed=bool(sealed), lease=lease)

    def stored(after: int, upto: int) -> list[Envelope]:
        return [parse_envelope(body) for body in _bodies(db, found.run, after, upto)] if found else []

    _extend(db, run_id, found, fresh(envelopes, head, stored, claim, floor), origin)


def _bodies(db: sqlite3.Connection, run: int, after: int, upto: int) -> list[bytes]:
    query = "SELECT body FROM envelopes WHERE run = ? AND seq > ? AND seq <= ? ORDER BY seq"
    return [body for (body,) in db.execute(query, (run, after, upto))]


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
    bodies = [envelope.to_json() for envelope in envelopes]
    standing = found.standing if found else "{}"
    begins = found is None or not found.head
    if begins or any(envelope.type in UPDATES for envelope in envelopes):
        standing = _observed(standing, envelopes)
    run = (found or _place(db, run_id)).run
    if begins:
        _begin(db, run, envelopes[0], origin or Origin())
    db.execute(
        "UPDATE runs SET seq = ?, updated_at = ?, standing = ? WHERE run = ?",
        (envelopes[-1].seq, envelopes[-1].occurred_at, standing, run),
    )
    _insert(db, [(run, envelope.seq, body) for envelope, body in zip(envelopes, bodies, strict=True)])


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


def _insert(db: sqlite3.Connection, rows: Sequence[tuple[int, int, bytes]]) -> None:
    """Many rows a statement: after each one this thread must win the interpreter back from the event loop."""
    start = 0
    for size, statement in _INSERTS:
        while len(rows) - start >= size:
            db.execute(statement, [value for row in rows[start : start + size] for value in row])
            start += size


def _standing(text: str) -> Standing:
    return Standing(**json.loads(text))


def _observed(standing: str, envelopes: Sequence[Envelope]) -> str:
    after = _standing(standing)
    after.observe_all(envelopes)
    return to_json(after.to_dict()).decode()


def seal(db: sqlite3.Connection, run_id: str, lease: Lease | None) -> None:
    """Close a log and give its lease back."""
    found = _run(db, run_id)
    if found is None:
        raise rules.not_found(run_id)
    rules.refuse_write(run_id, generation=found.generation, sealed=False, lease=lease)
    db.execute(f"{_GIVE_BACK} WHERE run = ?", (found.run,))


# Reading.


def page(db: sqlite3.Connection, run_id: str, after: int, limit: int, scope: Scope) -> tuple[list[bytes], bool, bool]:
    """The envelopes after a cursor, as they are stored, and whether the run is there and sealed."""
    line = _inside(db, run_id, scope)
    if line is None:
        return [], False, False
    run, floor, sealed = line
    if after < floor and (snapshot := _snapshot(db, run)):
        raise rules.expired(run_id, floor, snapshot)
    query = "SELECT body FROM envelopes WHERE run = ? AND seq > ? ORDER BY seq LIMIT ?"
    bodies = [body for (body,) in db.execute(query, (run, min(after, 2**62), limit))]
    return bodies, True, bool(sealed)


def _inside(db: sqlite3.Connection, run_id: str, scope: Scope) -> tuple[int, int, int] | None:
    """A run inside a scope; a tombstone lies outside every scope but the widest."""
    line: tuple[int, int, int] | None = db.execute(
        f"SELECT run, floor, sealed FROM runs WHERE run_id = :run_id AND {_INSIDE}",
        {"run_id": run_id, **asdict(scope)},
    ).fetchone()
    if line is None and scope == EVERYTHING:
        _refuse_erased(db, run_id)
    return line


def _snapshot(db: sqlite3.Connection, run: int) -> dict[str, Any] | None:
    line = db.execute("SELECT body FROM snapshots WHERE run = ?", (run,)).fetchone()
    return from_json(line[0]) if line else None


def snapshot(db: sqlite3.Connection, run_id: str, scope: Scope) -> dict[str, Any] | None:
    """The newest stored snapshot of a run inside a scope."""
    line = _inside(db, run_id, scope)
    return _snapshot(db, line[0]) if line else None


def rows(
    db: sqlite3.Connection,
    task_id: str | None,
    labels: Mapping[str, str],
    status: Status | None,
    limit: int,
    scope: Scope,
) -> list[RunRow]:
    """The newest runs that match every filter."""
    found: list[RunRow] = []
    cursor = db.execute(
        "SELECT run_id, task_id, title, seq, standing, started_at, updated_at, origin FROM runs "
        f"WHERE seq > 0 AND (:task_id IS NULL OR task_id = :task_id) AND {_INSIDE} ORDER BY run DESC",
        {"task_id": task_id, **asdict(scope)},
    )
    for line in cursor:
        if len(found) >= limit:
            break
        row = _row(line)
        if labels.items() <= row.labels.items() and (status is None or row.status == status):
            found.append(row)
    return found


def _row(line: tuple[Any, ...]) -> RunRow:
    run_id, task_id, title, seq, standing, started_at, updated_at, origin = line
    return RunRow(
        run_id=run_id,
        task_id=task_id,
        title=title,
        seq=seq,
        standing=_standing(standing),
        started_at=started_at,
        updated_at=updated_at,
        origin=Origin(**json.loads(origin)),
    )


def as_envelope(body: bytes, path: str) -> Envelope:
    """A stored envelope. Its payload is the reader's to judge, so that a damaged one shows as an issue and hides
    nothing.
    """
    try:
        return parse_known(body) or parse_envelope(body)
    except BadEnvelope as error:
        raise JournalUnreadable(f"{path} is damaged: {error}") from error


# Ownership. The clock is the machine's, read inside the transaction: every node of a file runs on one machine.


def take(db: sqlite3.Connection, run_id: str, ttl: float, exclusive: str | None) -> Lease:
    """Lease a run."""
    found = _run(db, run_id)
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
    if _run(db, accepted.run_id):
        raise rules.exists(accepted.run_id)
    place = _place(db, accepted.run_id)
    _extend(db, accepted.run_id, place, [accepted], origin)
    db.execute("UPDATE runs SET deadline = ? WHERE run = ?", (time.time() + ttl, place.run))


def expire(db: sqlite3.Connection) -> tuple[list[str], list[str]]:
    """Seal the runs whose deadline has passed: those that were lost, and all of them."""
    late = [Run(*line) for line in db.execute(f"{_RUN} WHERE deadline <= ?", (time.time(),))]
    ended: list[str] = []
    for found in late:
        if lost := rules.lost(found.run_id, found.head, found.generation, _standing(found.standing)):
            _extend(db, found.run_id, found, [lost])
            ended.append(found.run_id)
        db.execute(f"{_GIVE_BACK}, generation = generation + 1 WHERE run = ?", (found.run,))
    return ended, [found.run_id for found in late]


# Retention.


def folded(db: sqlite3.Connection, path: str, run_id: str, upto: int) -> tuple[int, bytes | None] | None:
    """What pruning does to a log: its new floor, and the snapshot to keep unless a stored one reaches as far. None when
    there is nothing to prune.
    """
    found = _run(db, run_id)
    if found is None or min(upto, found.head) <= found.floor:
        return None
    floor, known = min(upto, found.head), _snapshot(db, found.run)
    covered = known["seq"] if known else 0
    if covered >= floor:
        return floor, None
    bodies = _bodies(db, found.run, covered, floor)
    return floor, to_json(rules.folded(run_id, known, (as_envelope(body, path) for body in bodies)))


def prune(db: sqlite3.Connection, run_id: str, floor: int, body: bytes | None) -> int:
    """Put a snapshot in the place of the envelopes up to ``floor``; how many went."""
    found = _run(db, run_id)
    if found is None or floor <= found.floor:
        return 0
    if body is not None:
        _keep(db, found.run, floor, body)
    db.execute("UPDATE runs SET floor = ? WHERE run = ?", (floor, found.run))
    return db.execute("DELETE FROM envelopes WHERE run = ? AND seq <= ?", (found.run, floor)).rowcount


def keep(db: sqlite3.Connection, run_id: str, snapshot: Mapping[str, Any], body: bytes) -> None:
    """Store a snapshot unless a newer one is there."""
    found = _run(db, run_id)
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
