"""How the PostgreSQL journal writes: lock the runs, join the batches to them, store what is new in a few statements.

Every function runs inside a transaction of its caller. Rows are made, and then locked, in the order of their ids, so
that no two nodes wait for each other.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Final

import psycopg

from agents_progress.errors import UsageError
from agents_progress.events import Envelope, is_run_id, parse_envelope
from agents_progress.journal.base import Lease, Origin, fresh
from agents_progress.journal.facts import Facts, stored_facts
from agents_progress.journal.postgres_address import Database
from agents_progress.journal.postgres_read import searchable
from agents_progress.journal.postgres_schema import CHANNEL, maybe_plain, plain
from agents_progress.journal.rules import erased, refuse_write

_MAKE: Final = (
    "INSERT INTO progress_runs (run_id) SELECT name FROM unnest(%s::text[]) name ORDER BY name "
    "ON CONFLICT (run_id) DO NOTHING"
)
_LOCK: Final = (
    "SELECT run, run_id, seq, floor, generation, deadline IS NOT NULL, sealed, erased, standing, glance, glance_seq "
    "FROM progress_runs WHERE run_id = ANY(%s) ORDER BY run_id FOR UPDATE"
)
_DROP_UNBEGUN: Final = "DELETE FROM progress_runs WHERE run = ANY(%s)"
_BEGIN: Final = (
    "UPDATE progress_runs SET begun = nextval('progress_begun'), task_id = %s, owner = %s, tenant = %s, labels = %s, "
    "about = %s, started_at = %s WHERE run = %s"
)
_STORE: Final = f"""
UPDATE progress_runs SET seq = %(seq)s, standing = %(standing)s, status = %(status)s,
    glance = %(glance)s, glance_seq = %(seq)s,
    updated_at = coalesce(%(updated_at)s, updated_at), generation = %(generation)s, sealed = %(sealed)s,
    deadline = CASE WHEN %(held)s THEN deadline END,
    written_seq = CASE WHEN seq < %(seq)s THEN %(seq)s ELSE written_seq END,
    written_at = CASE WHEN seq < %(seq)s THEN clock_timestamp() ELSE written_at END
WHERE run = %(run)s RETURNING pg_notify('{CHANNEL}', run_id)
"""
_COPY: Final = "COPY progress_envelopes (run, seq, body) FROM STDIN (FORMAT BINARY)"
_COPY_HEAD: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_COPY_TAIL: Final = b"\xff\xff"
_copy_row = struct.Struct("!hiqiqi").pack


@dataclass(slots=True)
class Batch:
    """What one caller appends."""

    envelopes: Sequence[Envelope]
    origin: Origin | None
    claim: bool
    lease: Lease | None


@dataclass(slots=True)
class Log:
    """A locked run: what is stored of it, and what this transaction adds."""

    run: int
    run_id: str
    head: int
    floor: int
    generation: int
    held: bool
    sealed: bool
    erased: bool
    facts: Facts
    origin: Origin | None = None
    new: list[Envelope] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    changed: bool = False

    @property
    def unknown(self) -> bool:
        """Whether nobody but this transaction knows the run."""
        return not (self.head or self.generation or self.held or self.sealed or self.erased)

    def seal(self) -> None:
        """Nothing follows; what held the run is given back."""
        self.sealed, self.held, self.changed = True, False, True

    def add(self, envelopes: Sequence[Envelope], origin: Origin | None = None) -> None:
        """Put envelopes at the end, all or none."""
        bodies = [envelope.to_json() for envelope in envelopes]
        self.facts = self.facts.after(envelopes)
        if self.head == 0:
            self.origin = origin or Origin()
        self.new += envelopes
        self.bodies += bodies
        self.head, self.changed = envelopes[-1].seq, True


def named(run_id: str) -> str:
    """A run id that may be written. Raises :exc:`UsageError` for one that no reader would accept."""
    if not is_run_id(run_id):
        raise UsageError("a run id is 1 to 64 of letters, digits, dot, underscore and hyphen; choose another one")
    return run_id


async def lock(db: Database, run_ids: Iterable[str], *, make: Iterable[str] = ()) -> dict[str, Log]:
    """The runs that exist, those of ``make`` included, locked until the transaction ends."""
    makes = sorted(set(make))
    if makes:
        await db.execute(_MAKE, (makes,))
    lines = await (await db.execute(_LOCK, (sorted({*map(plain, run_ids), *makes}),))).fetchall()
    logs = [Log(*(*line[:-3], stored_facts(line[2], *line[-3:]))) for line in lines]
    return {log.run_id: log for log in logs}


async def write_gathered(db: Database, batches: Sequence[Batch]) -> dict[int, Exception]:
    """Store batches of any runs; what was refused, by place. Nothing of a refused batch is stored."""
    failures: dict[int, Exception] = {}
    begins = {batch.envelopes[0].run_id for batch in batches if batch.envelopes[0].seq == 1}
    logs = await lock(db, {batch.envelopes[0].run_id for batch in batches}, make=begins)
    for place, batch in enumerate(batches):
        log = logs.get(batch.envelopes[0].run_id)
        stored = await _overlap(db, log, batch.envelopes) if log else []
        try:
            _join(log, batch, stored)
        except Exception as refused:  # noqa: BLE001 - this batch only
            failures[place] = refused
    await store(db, logs.values())
    unbegun = [log.run for log in logs.values() if log.unknown]
    if unbegun:
        await db.execute(_DROP_UNBEGUN, (unbegun,))
    return failures


async def _overlap(db: Database, log: Log, batch: Sequence[Envelope]) -> list[Envelope]:
    """What is stored already, before this transaction, under the numbers of a batch."""
    first, last = batch[0].seq, min(batch[-1].seq, log.head - len(log.new))
    if last < first:
        return []
    query = "SELECT body FROM progress_envelopes WHERE run = %s AND seq BETWEEN %s AND %s ORDER BY seq"
    lines = await (await db.execute(query, (log.run, first, last))).fetchall()
    return [parse_envelope(body) for (body,) in lines]


def _join(log: Log | None, batch: Batch, stored: Sequence[Envelope]) -> None:
    if log is None:
        refuse_write(batch.envelopes[0].run_id, generation=0, sealed=False, lease=batch.lease)
        fresh(batch.envelopes, 0, lambda after, upto: (), batch.claim)
        return
    refuse_erased(log)
    refuse_write(log.run_id, generation=log.generation, sealed=log.sealed, lease=batch.lease)

    def known(after: int, upto: int) -> list[Envelope]:
        return [envelope for envelope in (*stored, *log.new) if after < envelope.seq <= upto]

    new = fresh(batch.envelopes, log.head, known, batch.claim, log.floor)
    if new:
        log.add(new, batch.origin)


def refuse_erased(log: Log | None) -> None:
    """Raise :exc:`RunErased` for a tombstone."""
    if log is not None and log.erased:
        raise erased(log.run_id)


async def store(db: Database, logs: Iterable[Log]) -> None:
    """Write what changed, and wake whoever waits for it."""
    changed = [log for log in logs if log.changed]
    begun = [_beginning(log) for log in changed if log.origin is not None]
    async with psycopg.AsyncClientCursor(db) as cursor:
        if begun:
            await cursor.execute(";".join(cursor.mogrify(_BEGIN, values) for values in begun))
        if any(log.new for log in changed):
            async with cursor.copy(_COPY) as copy:
                await copy.write(_COPY_HEAD + b"".join(map(_copied, changed)) + _COPY_TAIL)
        if changed:
            await cursor.execute(";".join(cursor.mogrify(_STORE, _facts(log)) for log in changed))


def _copied(log: Log) -> bytes:
    """The rows of the new envelopes as COPY reads them; a statement for each costs ten times as much."""
    return b"".join(
        _copy_row(3, 8, log.run, 8, envelope.seq, len(body)) + body
        for envelope, body in zip(log.new, log.bodies, strict=True)
    )


def _beginning(log: Log) -> tuple[Any, ...]:
    first, origin = log.new[0], log.origin or Origin()
    task_id = first.payload.get("task_id", first.run_id)
    stored = {**asdict(origin), "labels": dict(origin.labels), "versions": dict(origin.versions)}
    return (
        plain(task_id),
        maybe_plain(origin.owner),
        maybe_plain(origin.tenant),
        searchable(origin.labels),
        json.dumps({"task_id": task_id, "title": first.payload.get("title"), "origin": stored}),
        first.occurred_at,
        log.run,
    )


def _facts(log: Log) -> dict[str, Any]:
    return {
        "seq": log.head,
        "standing": log.facts.standing_text,
        "status": log.facts.standing.status,
        "glance": log.facts.glance_text,
        "updated_at": log.new[-1].occurred_at if log.new else None,
        "generation": log.generation,
        "sealed": log.sealed,
        "held": log.held,
        "run": log.run,
    }
