"""How the PostgreSQL journal leases runs, and ends those that are late. Leases run by the server's clock."""

from __future__ import annotations

from typing import Final

from agents_progress.journal import rules
from agents_progress.journal.postgres_address import Database
from agents_progress.journal.postgres_write import lock, store

LOST_AT_ONCE: Final = 100
"""Runs that one transaction declares lost, at most."""

FOR: Final = "clock_timestamp() + make_interval(secs => %s)"
LEASE: Final = (
    f"UPDATE progress_runs SET generation = generation + 1, exclusive = %s, deadline = {FOR} WHERE run = %s "
    "RETURNING generation"
)
HOLDERS: Final = (
    "SELECT run_id FROM progress_runs WHERE exclusive = %s AND run <> %s AND generation > 0 "
    "AND deadline > clock_timestamp() LIMIT 1"
)
# Whoever locks several runs does so in the order of their ids, or two of them would wait for each other.
RENEW: Final = f"""
WITH held AS (
    SELECT run FROM progress_runs runs
    JOIN unnest(%s::text[], %s::bigint[]) AS asked (run_id, generation) USING (run_id, generation)
    WHERE deadline > clock_timestamp() ORDER BY run_id FOR UPDATE OF runs
)
UPDATE progress_runs runs SET deadline = {FOR} FROM held WHERE runs.run = held.run
RETURNING runs.run_id, runs.generation
"""
_LATE: Final = (
    "SELECT run_id FROM progress_runs WHERE deadline < clock_timestamp() "
    f"ORDER BY run_id LIMIT {LOST_AT_ONCE} FOR UPDATE SKIP LOCKED"
)


async def lose(db: Database) -> list[tuple[str, bool]]:
    """End runs that are late, and say of each whether its log was told. What another node holds is that node's to end,
    or was just prolonged.
    """
    late = [name for (name,) in await (await db.execute(_LATE)).fetchall()]
    logs = await lock(db, late)
    for log in logs.values():
        last = rules.lost(log.run_id, log.head, log.generation, log.facts.standing)
        if last is not None:
            log.add([last])
        log.generation += 1
        log.seal()
    await store(db, logs.values())
    return [(log.run_id, bool(log.new)) for log in logs.values()]
