"""``prune``: runs that were over long ago, made small or forgotten."""

from __future__ import annotations

import argparse
import re
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from agents_progress.cli.printing import FINE, say
from agents_progress.cli.stored import asked
from agents_progress.errors import CursorExpired, RunErased
from agents_progress.journal import Journal, RunRow
from agents_progress.plaintext import clean

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_age: Final = re.compile(r"([0-9]{1,6})([smhd])").fullmatch
_ALL: Final = 10**9


def age(text: str) -> int:
    """Seconds of an option like 30d, 12h, 90m or 5s."""
    found = _age(text)
    if found is None:
        raise ValueError
    return int(found[1]) * _SECONDS[found[2]]


def prune(chosen: argparse.Namespace) -> int:
    """What is not sealed is running, or may be; a paused run waits for its answer until another run goes on from it."""
    runs, envelopes = asked(chosen.journal, lambda journal: _prune(journal, chosen))
    what = "erased" if chosen.erase else "pruned"
    if chosen.dry_run:
        say(f"{runs} runs would be {what}, with up to {envelopes} envelopes")
    else:
        say(f"{runs} runs were {what}, with {envelopes} envelopes")
    return FINE


async def _prune(journal: Journal, chosen: argparse.Namespace) -> tuple[int, int]:
    """How many runs, and how many of their envelopes."""
    rows = await journal.runs(limit=_ALL)
    newest = {row.task_id: row.run_id for row in reversed(rows)}  # they come newest first
    runs = envelopes = 0
    for row in rows:
        waits = row.standing.outcome == "paused" and newest[row.task_id] == row.run_id
        if not row.sealed or waits or _silence(row) <= chosen.older_than:
            continue
        with suppress(RunErased):  # by somebody else, just now
            if not chosen.erase and not await _has_log(journal, row):
                continue
            if chosen.dry_run:
                say(clean(f"{row.run_id}  {row.status:<10}  {row.seq:>6}  {row.updated_at}"))
            envelopes += row.seq if chosen.dry_run else await _remove(journal, row, chosen.erase)
            runs += 1
    return runs, envelopes


async def _remove(journal: Journal, row: RunRow, erase: bool) -> int:
    if erase:
        return (await journal.erase(run_id=row.run_id)).envelopes
    return await journal.prune(row.run_id, row.seq)


async def _has_log(journal: Journal, row: RunRow) -> bool:
    """Whether anything is left to be pruned."""
    try:
        return bool(await journal.read(row.run_id, row.seq - 1, 1))
    except CursorExpired:
        return False


def _silence(row: RunRow) -> float:
    """Since the last envelope, by the store's clock; by that of the run's owner where the store noted none."""
    if row.silent_s is not None:
        return row.silent_s
    return (datetime.now(UTC) - datetime.fromisoformat(row.updated_at)).total_seconds()
