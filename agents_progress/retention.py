"""Which runs are over for how long, and what erasing takes away: of the journal, of its ledger and of reactions.

:func:`erase` is the door for applications. :meth:`Journal.erase` alone would leave what the run's tools returned in the
ledger beside the journal, and what reactions keep there. A ledger or a store elsewhere, as ``@once(ledger=...)`` and
``Reactions(store=...)`` name one, has an ``erase`` of its own.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime

from agents_progress.effects.ledger import Ledger
from agents_progress.effects.ledger.base import one_target
from agents_progress.effects.places import kept_beside, reactions_kept_beside
from agents_progress.effects.reactions.erasing import erase_owner, erase_task, open_tasks
from agents_progress.errors import RunErased
from agents_progress.journal.base import Erased, Journal, RunRow
from agents_progress.journal.threads import outcome_of


async def erase(
    journal: Journal, *, run_id: str | None = None, task_id: str | None = None, owner: str | None = None
) -> Erased:
    """Remove the runs of one id, task or owner, and what is stored beside the journal of their effects and reactions.

    The runs come last: if something fails, they are there to be erased again. That an effect or a reaction was there,
    and what became of it, stays without its content, so that nothing happens a second time. A reaction of which any run
    is erased goes with it, and stops if it was open. Where there is no ledger and no reaction, no table is made. Raises
    as the journal and the ledger do, and :exc:`UsageError` unless exactly one of the three is given.
    """
    target = {"run_id": run_id, "task_id": task_id, "owner": owner}
    one_target(run_id, task_id, owner)
    ledger, reactions = kept_beside(journal), reactions_kept_beside(journal)
    if ledger is not None:
        await outcome_of(ledger.submit(_erase, ledger, target))
    if reactions is not None:
        if owner is not None:
            await outcome_of(reactions.submit(erase_owner, reactions, owner))
        elif (task := task_id or await _task_of(journal, run_id or "")) is not None:
            await outcome_of(reactions.submit(erase_task, reactions, task))
    return await journal.erase(**target)


def _erase(ledger: Ledger, target: dict[str, str | None]) -> None:
    if ledger.exists():
        ledger.erase(**target)


async def _task_of(journal: Journal, run_id: str) -> str | None:
    with suppress(RunErased):
        row = await journal.run(run_id)
        return None if row is None else row.task_id
    return None


async def over(journal: Journal, limit: int) -> list[tuple[RunRow, float]]:
    """The runs that are over, of the newest ``limit``, with the seconds since their last word.

    What is not sealed is running, or may be; a paused run waits for its answer until another one of its task goes on
    from it; and a reaction that is open has runs still to come, and goes with any that is erased.
    """
    reactions = reactions_kept_beside(journal)
    still_open = set() if reactions is None else await outcome_of(reactions.submit(open_tasks, reactions))
    rows = await journal.runs(limit=limit)
    newest = {row.task_id: row.run_id for row in reversed(rows)}  # they come newest first
    found: list[tuple[RunRow, float]] = []
    for row in rows:
        waits = row.standing.outcome == "paused" and newest[row.task_id] == row.run_id
        if row.sealed and not waits and row.task_id not in still_open:
            found.append((row, _silence(row)))
    return found


def _silence(row: RunRow) -> float:
    """By the store's clock; by that of the run's owner where an older release wrote, so that the store noted none."""
    if row.silent_s is not None:
        return row.silent_s
    return (datetime.now(UTC) - datetime.fromisoformat(row.updated_at)).total_seconds()
