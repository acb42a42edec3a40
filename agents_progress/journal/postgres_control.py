"""How the PostgreSQL journal keeps what is asked of owners, and who reads their runs."""

from __future__ import annotations

from typing import Any, Final

from agents_progress.journal import rules
from agents_progress.journal.base import EVERYTHING, Request, Scope
from agents_progress.journal.postgres_address import Database
from agents_progress.journal.postgres_read import ONE_RUN, asked
from agents_progress.journal.postgres_schema import CHANNEL, one
from agents_progress.journal.tails import ASKED

# The lock keeps the run from being erased meanwhile, and gives the requests of a run their order.
_ASKED_RUN: Final = f"SELECT run, begun, erased FROM progress_runs WHERE {ONE_RUN} FOR UPDATE"
_STORE: Final = (
    "INSERT INTO progress_requests (run, key, body) VALUES (%(run)s, %(key)s, %(body)s) "
    f"ON CONFLICT (run, key) DO NOTHING RETURNING pg_notify('{CHANNEL}', '{ASKED}')"
)
_STORED: Final = "SELECT body FROM progress_requests WHERE run = %(run)s AND key = %(key)s"

REQUESTS: Final = """
SELECT run_id, body FROM progress_requests JOIN progress_runs USING (run)
WHERE run_id = ANY(%(run_ids)s) ORDER BY request
"""

# In a table of its own: appends hold the rows of their runs, and these must not wait for them, nor they for these. Not
# worth a flush either, for a touch that a crash takes away is followed by the next.
TOUCH: Final = """
WITH unhurried AS (SELECT set_config('synchronous_commit', 'off', true))
INSERT INTO progress_reads (run, read_at)
SELECT run, clock_timestamp() FROM progress_runs, unhurried
WHERE run_id = ANY(%(run_ids)s) AND NOT sealed AND NOT erased ORDER BY run
ON CONFLICT (run) DO UPDATE SET read_at = excluded.read_at RETURNING run
"""


async def ask(db: Database, request: Request, text: str, scope: Scope) -> Request:
    """Store a request unless one with its key is there; the stored one."""
    run, begun, erased = await one(db, _ASKED_RUN, asked(request.run_id, scope)) or (0, None, False)
    if erased and scope == EVERYTHING:
        raise rules.erased(request.run_id)
    if begun is None:
        raise rules.not_found(request.run_id)
    values: dict[str, Any] = {"run": run, "key": rules.key_text(request.key), "body": text}
    await db.execute(_STORE, values)
    (body,) = await one(db, _STORED, values) or (text,)
    return rules.stored_request(request.run_id, body)
