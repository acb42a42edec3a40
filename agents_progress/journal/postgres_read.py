"""What the PostgreSQL journal asks its tables, and how their lines are read."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from agents_progress.errors import BadEnvelope, JournalUnreadable
from agents_progress.events import Envelope, parse_envelope, parse_known
from agents_progress.journal.base import Origin, RunRow, Scope
from agents_progress.journal.facts import stored_facts
from agents_progress.journal.postgres_schema import maybe_plain, plain

_IN_SCOPE: Final = (
    "(%(owner)s::text IS NULL OR owner = %(owner)s) AND (%(tenant)s::text IS NULL OR tenant = %(tenant)s)"
)
ONE_RUN: Final = f"run_id = %(run_id)s AND {_IN_SCOPE}"
"""Holds for a run inside a scope: see :func:`asked`."""

# One statement sees one moment: what it says of the run holds for the envelopes it gives.
READ: Final = f"""
SELECT runs.floor, runs.sealed, runs.erased, kept.body
FROM progress_runs runs LEFT JOIN LATERAL (
    SELECT seq, body FROM progress_envelopes
    WHERE run = runs.run AND seq > %(after)s ORDER BY seq LIMIT %(limit)s
) kept ON true
WHERE {ONE_RUN} ORDER BY kept.seq
"""
SNAPSHOT: Final = f"""
SELECT runs.erased, kept.body FROM progress_runs runs LEFT JOIN progress_snapshots kept USING (run) WHERE {ONE_RUN}
"""

_ROW: Final = """
SELECT erased, run_id, about, seq, standing, glance, glance_seq, started_at, updated_at, sealed, generation,
    CASE WHEN written_seq = seq THEN extract(epoch FROM clock_timestamp() - written_at)::float8 END,
    extract(epoch FROM clock_timestamp() - read_at)::float8,
    extract(epoch FROM deadline - clock_timestamp())::float8
FROM progress_runs LEFT JOIN progress_reads USING (run)
"""
RUN: Final = f"{_ROW} WHERE {ONE_RUN} AND (begun IS NOT NULL OR erased)"
_TESTS: Final = {
    "owner": "owner = %(owner)s",
    "tenant": "tenant = %(tenant)s",
    "task_id": "task_id = %(task_id)s",
    "labels": "labels @> %(labels)s::jsonb",
    "status": "status = %(status)s",
    "before": f"begun < (SELECT begun FROM progress_runs WHERE run_id = %(before)s AND {_IN_SCOPE})",
}
NEWEST: Final = f"""
SELECT DISTINCT ON (task_id) about, run_id FROM progress_runs
WHERE task_id = ANY(%(task_ids)s) AND begun IS NOT NULL AND {_IN_SCOPE} ORDER BY task_id, begun DESC
"""

PRUNABLE: Final = """
SELECT run, runs.seq, floor, erased, kept.seq, kept.body FROM progress_runs runs
LEFT JOIN progress_snapshots kept USING (run) WHERE run_id = %(run_id)s
"""
BODIES: Final = (
    "SELECT body FROM progress_envelopes WHERE run = %(run)s AND seq > %(after)s AND seq <= %(upto)s ORDER BY seq"
)


def listing(wanted: Mapping[str, Any]) -> str:
    """The query for the runs that match what is wanted. It names nothing else, so that an index serves."""
    tests = ["begun IS NOT NULL", *(test for name, test in _TESTS.items() if wanted[name] is not None)]
    return f"{_ROW} WHERE {' AND '.join(tests)} ORDER BY begun DESC LIMIT %(limit)s"


def asked(run_id: str, scope: Scope) -> dict[str, Any]:
    """The values of :data:`ONE_RUN`."""
    return {"run_id": plain(run_id), "owner": maybe_plain(scope.owner), "tenant": maybe_plain(scope.tenant)}


def searchable(labels: Mapping[str, str]) -> str:
    """Labels as the JSON that is stored for searching, and searched for."""
    return json.dumps({plain(name): plain(value) for name, value in labels.items()})


def row_of(line: Sequence[Any]) -> RunRow:
    """A line of :data:`RUN` or of a :func:`listing`, of a run that is not erased."""
    _, run_id, about, seq, standing, glance, glance_seq, started_at, updated_at, sealed, generation, *seconds = line
    told, (silent_s, unread_s, lease_left_s) = json.loads(about), seconds
    facts = stored_facts(seq, standing, glance, glance_seq)
    return RunRow(
        run_id=run_id,
        task_id=told["task_id"],
        title=told["title"],
        seq=seq,
        standing=facts.standing,
        started_at=started_at,
        updated_at=updated_at,
        origin=Origin(**told["origin"]),
        sealed=sealed,
        silent_s=silent_s,
        unread_s=unread_s,
        generation=generation,
        lease_left_s=lease_left_s,
        glance=facts.glance,
    )


def envelope_of(body: bytes, name: str) -> Envelope:
    """A stored envelope. Its payload is the reader's to judge, so that a damaged one shows as an issue and hides
    nothing.
    """
    try:
        return parse_known(body) or parse_envelope(body)
    except BadEnvelope as error:
        raise JournalUnreadable(f"{name} is damaged: {error}") from error
