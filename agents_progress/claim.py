"""Taking a run in hand before anything of it is executed, in whatever state a journal has it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from agents_progress.errors import AlreadyEnded, AppendConflict, JournalError, JournalUnavailable, LeaseHeld, Sealed
from agents_progress.events import Envelope, is_run_id
from agents_progress.journal.base import EVERYTHING, Journal, Request, RunRow, Scope
from agents_progress.keeper import Tenure, expire

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
    journal: Journal,
    run_id: str,
    *,
    exclusive: str | None = None,
    wait: float = 0.0,
    patience: float = 0.0,
    anew: bool = False,
) -> Claim:
    """Take a run that is unknown or only reserved, and hold its lease from now on.

    ``wait`` is for another run with the same ``exclusive`` key to end, ``patience`` for a journal that is away, both in
    seconds. With ``anew`` a run that was lost is begun anew under the next id. Raises :exc:`LeaseHeld` for one that has
    an owner or whose key is held, :exc:`AlreadyEnded`, :exc:`RunErased` and :exc:`JournalUnavailable`.
    """
    bounds = {LeaseHeld: time.monotonic() + wait, JournalUnavailable: time.monotonic() + patience}
    pause = LOOK_S
    while True:
        try:
            found = await _found(journal, run_id, anew)
            refusal = None if found.row is None else _refusal(found.row)
            if refusal is None:
                if (taken := await _taken(journal, found, exclusive, bounds[JournalUnavailable])) is not None:
                    return taken
                continue
        except (LeaseHeld, JournalUnavailable) as error:
            left = bounds[type(error)] - time.monotonic()
            if left <= 0:
                raise
            await asyncio.sleep(min(pause, left))
            pause = min(1.5 * pause, LOOK_AT_MOST_S)
        else:
            raise refusal


class _Found(NamedTuple):
    """The run to take: its own row, None for an unknown one, and that of the lost run before it."""

    run_id: str
    row: RunRow | None
    lost: RunRow | None
    attempt: int


async def _found(journal: Journal, run_id: str, anew: bool) -> _Found:
    attempt, lost = 1, None
    while True:
        row = await journal.run(run_id)
        if row is not None and row.lease_left_s is not None and row.lease_left_s <= 0:
            await expire(journal)  # its owner is late
            row = await journal.run(run_id)
        if not anew or row is None or row.standing.lost is None:
            return _Found(run_id, row, lost, attempt)
        run_id, attempt, lost = next_run_id(run_id), attempt + 1, row


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


async def _taken(journal: Journal, found: _Found, exclusive: str | None, until: float) -> Claim | None:
    """Lease a run; None when it changed since we looked. What was reserved has said so, and may be asked to stop."""
    tenure, run_id = Tenure(journal, found.run_id, exclusive), found.run_id
    try:
        await tenure.begin()
        known, said, asked = await _stored(journal, found, until)
    except LeaseHeld:
        if found.row is None and run_id in await expire(journal):  # whoever had it never began
            return None
        raise
    except Sealed:
        if await journal.run(run_id) is not None:  # it has ended
            return None
        raise
    except BaseException:
        tenure.leave()
        raise
    return Claim(run_id, tenure, known, said, asked, found.attempt if found.attempt > 1 else None)


async def _stored(
    journal: Journal, found: _Found, until: float
) -> tuple[RunRow | None, Sequence[Envelope], Sequence[Request]]:
    """What is known of a leased run, what it said, and what was asked of it. A journal that goes away now is waited
    for here: another claim would find the lease, which is ours.
    """
    while True:
        try:
            known, said = found.row or found.lost, await journal.read(found.run_id, limit=1)
            if not said:
                return known, said, ()
            if said[0].type != "run.accepted":  # by somebody who took no lease
                raise AppendConflict(f"run {found.run_id} exists; somebody else claimed it first")
            if found.row is None:  # reserved since we looked
                known = await journal.run(found.run_id)
            return known, said, await journal.requests([found.run_id])
        except JournalUnavailable:
            if time.monotonic() >= until:
                raise
            await asyncio.sleep(LOOK_S)


def next_run_id(run_id: str) -> str:
    """The id of the run that follows another one in its task: ``.2`` after the first, then ``.3``, and so on."""
    stem, dot, number = run_id.rpartition(".")
    return f"{stem}.{int(number) + 1}" if dot and number.isdigit() else f"{run_id}.2"


async def follower(journal: Journal, run_id: str, scope: Scope = EVERYTHING) -> tuple[str, RunRow | None]:
    """The id of the run that goes on from a paused one, and its row, None when none does yet.

    A run whose owner was killed before it said anything went on from nothing, and is passed over.
    """
    while True:
        run_id = next_run_id(run_id)
        row = await journal.run(run_id, scope=scope) if is_run_id(run_id) else None
        if row is None or row.standing.lost is None or row.seq > 1:
            return run_id, row


def run_ids_before(run_id: str) -> list[str]:
    """The ids of the runs that one follows in its task, the first one first."""
    stem, dot, number = run_id.rpartition(".")
    if not (dot and number.isdigit()):
        return []
    return [stem, *(f"{stem}.{each}" for each in range(2, int(number)))]
