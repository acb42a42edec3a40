"""Taking a run in hand before anything of it is executed, in whatever state a journal has it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from agents_progress.errors import AlreadyEnded, AppendConflict, JournalError, LeaseHeld, Sealed
from agents_progress.events import Envelope
from agents_progress.journal.base import Journal, Request, RunRow
from agents_progress.keeper import Tenure

LOOK_S: Final = 0.05
LOOK_AT_MOST_S: Final = 1.0
"""Pauses between two looks at a key that somebody holds; each is half as long again as the one before."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A run that is ours, and that nobody else can begin.

    ``known`` is what its reservation or, for a run begun ``anew``, the lost run says; None for an unknown one. ``said``
    is what its log holds already, ``asked`` what was asked of it meanwhile. ``attempt`` counts the runs that were lost,
    None when none was.
    """

    run_id: str
    tenure: Tenure
    known: RunRow | None = None
    said: Sequence[Envelope] = ()
    asked: Sequence[Request] = ()
    attempt: int | None = None


async def claim(
    journal: Journal, run_id: str, *, exclusive: str | None = None, wait: float = 0.0, anew: bool = False
) -> Claim:
    """Take a run that is unknown or only reserved, and hold its lease from now on.

    ``wait`` is for another run with the same ``exclusive`` key to end, in seconds. With ``anew`` a run that was lost is
    begun anew under the next id. Raises :exc:`LeaseHeld` for one that has an owner or whose key is held,
    :exc:`AlreadyEnded`, :exc:`RunErased`, and :exc:`JournalUnavailable` at once.
    """
    until, pause = time.monotonic() + wait, LOOK_S
    attempt, lost = 1, None
    while True:
        row = await _known(journal, run_id)
        if anew and row is not None and row.standing.lost is not None:
            run_id, attempt, lost = next_run_id(run_id), attempt + 1, row
            continue
        if row is not None and (refusal := _refusal(row)) is not None:
            raise refusal
        try:
            return await _taken(journal, Tenure(journal, run_id, exclusive), row or lost, attempt)
        except Sealed:  # it ended since we looked
            if await journal.run(run_id) is None:
                raise
        except LeaseHeld:
            if row is None and run_id in await journal.expire():
                continue  # whoever had it never began
            if time.monotonic() >= until:
                raise
            await asyncio.sleep(min(pause, until - time.monotonic()))
            pause = min(1.5 * pause, LOOK_AT_MOST_S)


async def _known(journal: Journal, run_id: str) -> RunRow | None:
    """What the journal has of a run. One whose owner is late is declared lost first."""
    row = await journal.run(run_id)
    if row is not None and row.lease_left_s is not None and row.lease_left_s <= 0:
        await journal.expire()
        row = await journal.run(run_id)
    return row


def _refusal(row: RunRow) -> JournalError | None:
    """Why a run that is not lost cannot be taken; None when it is reserved and nobody took it up."""
    run_id, standing = row.run_id, row.standing
    if standing.lost is not None:
        return AlreadyEnded(f"run {run_id} was lost ({standing.lost}); begin it anew with `.start(...)`")
    if row.sealed or standing.outcome is not None:
        return AlreadyEnded(
            f"run {run_id} has ended ({standing.outcome}); read it in the journal, or choose another id for a new run"
        )
    if standing.moved or row.generation:
        return LeaseHeld(f"run {run_id} has an owner; follow it in the journal, or wait for its end")
    return None


async def _taken(journal: Journal, tenure: Tenure, known: RunRow | None, attempt: int) -> Claim:
    """Lease a run. What was reserved has said so, and may have been asked to stop."""
    try:
        await tenure.begin()
        said = await journal.read(tenure.run_id, limit=1)
        if said and said[0].type != "run.accepted":  # by somebody who took no lease
            raise AppendConflict(f"run {tenure.run_id} exists; somebody else claimed it first")
        asked = await journal.requests([tenure.run_id]) if said else ()
        if said and (known is None or known.run_id != tenure.run_id):  # reserved since we looked
            known = await journal.run(tenure.run_id)
    except BaseException:
        tenure.leave()
        raise
    return Claim(tenure.run_id, tenure, known, said, asked, attempt if attempt > 1 else None)


def next_run_id(run_id: str) -> str:
    """The id of the run that follows another one in its task: ``.2`` after the first, then ``.3``, and so on."""
    stem, dot, number = run_id.rpartition(".")
    return f"{stem}.{int(number) + 1}" if dot and number.isdigit() else f"{run_id}.2"
