"""How the PostgreSQL journal keeps what paused runs leave behind."""

from __future__ import annotations

from typing import Final

from agents_progress.journal import rules
from agents_progress.journal.base import Lease
from agents_progress.journal.postgres_address import Database
from agents_progress.journal.postgres_read import ONE_RUN
from agents_progress.journal.postgres_schema import plain
from agents_progress.journal.postgres_write import lock, refuse_erased

PAUSE: Final = f"""
SELECT erased, kept.body FROM progress_runs LEFT JOIN progress_pauses kept USING (run) WHERE {ONE_RUN}
"""
PAUSES: Final = "SELECT run_id FROM progress_pauses JOIN progress_runs USING (run) ORDER BY run"

_KEEP: Final = (
    "INSERT INTO progress_pauses (run, body) VALUES (%s, %s) ON CONFLICT (run) DO UPDATE SET body = excluded.body"
)
_DROP: Final = (
    "DELETE FROM progress_pauses USING progress_runs runs WHERE runs.run = progress_pauses.run AND run_id = %s"
)


async def keep(db: Database, run_id: str, text: str, lease: Lease | None) -> None:
    """Store what a run that is about to pause leaves behind."""
    log = (await lock(db, [run_id])).get(run_id)
    refuse_erased(log)
    if log is None or not log.head:
        raise rules.not_found(run_id)
    rules.refuse_write(run_id, generation=log.generation, sealed=log.sealed, lease=lease)
    await db.execute(_KEEP, (log.run, text))


async def drop(db: Database, run_id: str) -> None:
    """Remove it."""
    await db.execute(_DROP, (plain(run_id),))
