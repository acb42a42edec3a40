"""Which runs are over for how long, and what erasing takes away: the journal's part and the ledger's.

:func:`erase` is the door for applications. :meth:`Journal.erase` alone would leave what the run's tools returned in the
ledger beside the journal. A ledger elsewhere, as ``@once(ledger=...)`` names one, is erased by its own
:meth:`Ledger.erase`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from agents_progress.effects.ledger import Ledger
from agents_progress.effects.places import kept_beside
from agents_progress.journal.base import Erased, Journal, RunRow
from agents_progress.journal.threads import outcome_of


async def erase(
    journal: Journal, *, run_id: str | None = None, task_id: str | None = None, owner: str | None = None
) -> Erased:
    """Remove the runs of one id, task or owner, and what the ledger beside the journal stored of their effects.

    The ledger comes first: if it fails, the runs are there to be erased again. That an effect was there, and what
    became of it, stays without its content, so that it does not happen a second time. Where there is no ledger, none is
    made. Raises as the journal and the ledger do, and :exc:`UsageError` unless exactly one of the three is given.
    """
    target = {"run_id": run_id, "task_id": task_id, "owner": owner}
    ledger = kept_beside(journal)
    if ledger is not None:
        await outcome_of(ledger.submit(_erase, ledger, target))
    return await journal.erase(**target)


def _erase(ledger: Ledger, target: dict[str, str | None]) -> None:
    if ledger.exists():
        ledger.erase(**target)


def over(rows: Sequence[RunRow]) -> Iterator[tuple[RunRow, float]]:
    """The runs that are over, of all as :meth:`Journal.runs` gives them, with the seconds since their last word.

    What is not sealed is running, or may be; a paused run waits for its answer until another one of its task goes on
    from it.
    """
    newest = {row.task_id: row.run_id for row in reversed(rows)}  # they come newest first
    for row in rows:
        waits = row.standing.outcome == "paused" and newest[row.task_id] == row.run_id
        if row.sealed and not waits:
            yield row, _silence(row)


def _silence(row: RunRow) -> float:
    """By the store's clock; by that of the run's owner where an older release wrote, so that the store noted none."""
    if row.silent_s is not None:
        return row.silent_s
    return (datetime.now(UTC) - datetime.fromisoformat(row.updated_at)).total_seconds()
