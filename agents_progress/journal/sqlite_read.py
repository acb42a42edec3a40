"""What the embedded journal reads from its file. Each function runs in one transaction of its caller's."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final, NamedTuple

from pydantic_core import from_json, to_json

from agents_progress.errors import BadEnvelope, JournalUnreadable
from agents_progress.events import Envelope, parse_envelope, parse_known
from agents_progress.journal import rules
from agents_progress.journal.base import EVERYTHING, Origin, Request, RunRow, Scope
from agents_progress.journal.facts import Facts, stored_facts
from agents_progress.journal.sqlite_file import UNNOTED
from agents_progress.messages import Status

_INSIDE: Final = "(:owner IS NULL OR owner = :owner) AND (:tenant IS NULL OR tenant = :tenant)"
"""Holds for the runs of a scope."""

RUN: Final = "SELECT run, run_id, seq, floor, standing, glance, noted_seq, generation, deadline, sealed FROM runs"

_ROW: Final = (
    "SELECT run, run_id, task_id, title, seq, standing, glance, noted_seq, started_at, updated_at, origin, "
    "sealed, generation, written_seq, written_at, read_at, deadline FROM runs "
)


class Run(NamedTuple):
    """The facts of :mod:`agents_progress.journal.rules` about a run, and its number in the file."""

    run: int
    run_id: str
    head: int
    floor: int
    standing: str
    glance: str | None
    noted_seq: int | None
    generation: int
    deadline: float | None
    sealed: bool

    @property
    def facts(self) -> Facts:
        """What is kept of its log."""
        return stored_facts(self.head, self.standing, self.glance, self.noted_seq)


def found_run(db: sqlite3.Connection, run_id: str) -> Run | None:
    """A run that is stored or leased. Raises :exc:`RunErased`."""
    line = db.execute(f"{RUN} WHERE run_id = ?", (run_id,)).fetchone()
    if line is None:
        _refuse_erased(db, run_id)
        return None
    return Run(*line)


def _refuse_erased(db: sqlite3.Connection, run_id: str) -> None:
    if db.execute("SELECT 1 FROM erased WHERE run_id = ?", (run_id,)).fetchone():
        raise rules.erased(run_id)


def bodies(db: sqlite3.Connection, run: int, after: int, upto: int) -> Iterator[bytes]:
    """The envelopes of a range, as they are stored."""
    query = "SELECT body FROM envelopes WHERE run = ? AND seq > ? AND seq <= ? ORDER BY seq"
    return (body for (body,) in db.execute(query, (run, after, upto)))


def as_envelope(body: bytes, path: str) -> Envelope:
    """A stored envelope. Its payload is the reader's to judge, so that a damaged one shows as an issue and hides
    nothing.
    """
    try:
        return parse_known(body) or parse_envelope(body)
    except BadEnvelope as error:
        raise JournalUnreadable(f"{path} is damaged: {error}") from error


# Within a scope.


def inside(db: sqlite3.Connection, run_id: str, scope: Scope) -> Run | None:
    """A run inside a scope; a tombstone lies outside every scope but the widest."""
    asked = {"run_id": run_id, **asdict(scope)}
    line = db.execute(f"{RUN} WHERE run_id = :run_id AND {_INSIDE}", asked).fetchone()
    if line is None and scope == EVERYTHING:
        _refuse_erased(db, run_id)
    return Run(*line) if line else None


def page(db: sqlite3.Connection, run_id: str, after: int, limit: int, scope: Scope) -> tuple[list[bytes], bool, bool]:
    """The envelopes after a cursor, as they are stored, and whether the run is there and sealed."""
    found = inside(db, run_id, scope)
    if found is None:
        return [], False, False
    if after < found.floor and (kept := stored_snapshot(db, found.run)):
        raise rules.expired(run_id, found.floor, kept)
    query = "SELECT body FROM envelopes WHERE run = ? AND seq > ? ORDER BY seq LIMIT ?"
    stored = [body for (body,) in db.execute(query, (found.run, min(after, 2**62), limit))]
    return stored, True, bool(found.sealed)


def stored_snapshot(db: sqlite3.Connection, run: int) -> dict[str, Any] | None:
    """The newest stored snapshot of a run."""
    line = db.execute("SELECT body FROM snapshots WHERE run = ?", (run,)).fetchone()
    return from_json(line[0]) if line else None


def snapshot(db: sqlite3.Connection, run_id: str, scope: Scope) -> dict[str, Any] | None:
    """The newest stored snapshot of a run inside a scope."""
    found = inside(db, run_id, scope)
    return stored_snapshot(db, found.run) if found else None


def row(db: sqlite3.Connection, run_id: str, scope: Scope) -> RunRow | None:
    """A run that has begun."""
    found = inside(db, run_id, scope)
    if found is None or not found.head:
        return None
    return _row_of(db.execute(f"{_ROW} WHERE run = ?", (found.run,)).fetchone())


def rows(
    db: sqlite3.Connection,
    task_id: str | None,
    labels: Mapping[str, str],
    status: Status | None,
    before: str | None,
    limit: int,
    scope: Scope,
) -> list[RunRow]:
    """The newest runs that match every filter."""
    if before is not None and row(db, before, scope) is None:
        raise rules.not_found(before)
    found: list[RunRow] = []
    asked = {"task_id": task_id, "status": status, "before": before, **asdict(scope)}
    for line in db.execute(_listing({name for name, value in asked.items() if value is not None}), asked):
        if len(found) >= limit:
            break
        one = _row_of(line)
        if labels.items() <= one.labels.items() and (status is None or one.status == status):
            found.append(one)
    return found


def _listing(given: Collection[str]) -> str:
    """The query for the rows that match what is given, newest first. It names nothing else, so that each comes in order
    from an index: of one status from two, which SQLite merges.
    """
    tests = {name: f" AND {name} = :{name}" for name in ("task_id", "owner", "tenant")}
    tests["before"] = " AND run < (SELECT run FROM runs WHERE run_id = :before)"
    query = f"{_ROW} WHERE seq > 0{''.join(test for name, test in tests.items() if name in given)}"
    if "status" in given:
        query = f"{query} AND status = :status AND NOT ({UNNOTED}) UNION ALL {query} AND {UNNOTED}"
    return f"{query} ORDER BY run DESC"


def newest(db: sqlite3.Connection, task_ids: Collection[str], scope: Scope) -> dict[str, str]:
    """The newest run of each task."""
    query = (
        "SELECT task_id, run_id FROM runs WHERE run IN (SELECT max(run) FROM runs "
        f"WHERE task_id IN (SELECT value FROM json_each(:task_ids)) AND seq > 0 AND {_INSIDE} GROUP BY task_id)"
    )
    return dict(db.execute(query, {"task_ids": json.dumps(list(task_ids)), **asdict(scope)}).fetchall())


def _row_of(line: tuple[Any, ...]) -> RunRow:
    _, run_id, task_id, title, seq, standing, glance, noted_seq, started_at, updated_at, origin, *more = line
    sealed, generation, written_seq, written_at, read_at, deadline = more
    facts, now = stored_facts(seq, standing, glance, noted_seq), time.time()
    return RunRow(
        run_id=run_id,
        task_id=task_id,
        title=title,
        seq=seq,
        standing=facts.standing,
        started_at=started_at,
        updated_at=updated_at,
        origin=Origin(**json.loads(origin)),
        sealed=bool(sealed),
        silent_s=now - written_at if written_seq == seq else None,
        unread_s=None if read_at is None else now - read_at,
        generation=generation,
        lease_left_s=None if deadline is None else deadline - now,
        glance=facts.glance,
    )


def requests(db: sqlite3.Connection, run_ids: Collection[str]) -> list[Request]:
    """What was asked of the owners of runs, in order."""
    lines = db.execute(
        "SELECT run_id, requests.body FROM requests JOIN runs USING (run) "
        "WHERE run_id IN (SELECT value FROM json_each(?)) ORDER BY request",
        (json.dumps(list(run_ids)),),
    )
    return [rules.stored_request(run_id, body) for run_id, body in lines]


# For pruning.


def folded(db: sqlite3.Connection, path: str, run_id: str, upto: int) -> tuple[int, bytes | None] | None:
    """What pruning does to a log: its new floor, and the snapshot to keep unless a stored one reaches as far. None when
    there is nothing to prune.
    """
    found = found_run(db, run_id)
    if found is None or min(upto, found.head) <= found.floor:
        return None
    floor, known = min(upto, found.head), stored_snapshot(db, found.run)
    covered = known["seq"] if known else 0
    if covered >= floor:
        return floor, None
    stored = bodies(db, found.run, covered, floor)
    return floor, to_json(rules.folded(run_id, known, (as_envelope(body, path) for body in stored)))


def pause(db: sqlite3.Connection, run_id: str, scope: Scope) -> str | None:
    """What is stored of a paused run inside a scope."""
    found = inside(db, run_id, scope)
    line = db.execute("SELECT body FROM pauses WHERE run = ?", (found.run,)).fetchone() if found else None
    return None if line is None else str(line[0])


def pauses(db: sqlite3.Connection) -> list[str]:
    """The runs of which a pause is stored."""
    return [run_id for (run_id,) in db.execute("SELECT run_id FROM pauses JOIN runs USING (run) ORDER BY run")]
