"""What is shown of a run: its row as JSON, and the views of live ones."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from agents_progress.glance import Glance
from agents_progress.journal.base import Journal, RunRow, Scope
from agents_progress.messages import sentence
from agents_progress.rows import Activity
from agents_progress.stored import caught_up, view_of
from agents_progress.view import RunView

START_LABEL: Final = "agents-progress.start"
"""Under it a run keeps the digest of the request that started it. Never shown, and taken from nobody."""

_KEPT: Final = 64


@dataclass(slots=True)
class _Kept:
    """A view that is folded by one caller at a time."""

    view: RunView | None = None
    folding: asyncio.Lock = field(default_factory=asyncio.Lock)


class LiveViews:
    """Views of live runs that somebody asks for again and again: each folds on from where it was left.

    A few are kept, those that were asked for last; one whose run has ended is to be dropped.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._kept: dict[str, _Kept] = {}

    async def of(self, run_id: str, scope: Scope) -> RunView:
        """The view of a run now."""
        kept = self._kept[run_id] = self._kept.pop(run_id) if run_id in self._kept else _Kept()
        if len(self._kept) > _KEPT:
            self.drop(next(iter(self._kept)))
        async with kept.folding:
            if kept.view is None:
                kept.view = await view_of(self._journal, run_id, scope)
            else:
                kept.view = await caught_up(self._journal, kept.view, scope)
            return kept.view

    def drop(self, run_id: str) -> None:
        """Keep nothing of a run."""
        self._kept.pop(run_id, None)


def fields(row: RunRow, continued_as: str | None) -> dict[str, Any]:
    """A run as every answer and list gives it. Never its owner, tenant, host or versions."""
    glance = row.glance or Glance()  # where it is not known, nothing is said
    return {
        "run_id": row.run_id,
        "task_id": row.task_id,
        "title": row.title,
        "status": row.status,
        "message": sentence(row.status),
        "seq": row.seq,
        "started_at": row.started_at,
        "updated_at": row.updated_at,
        "labels": {name: value for name, value in row.labels.items() if name != START_LABEL},
        "sealed": row.sealed,
        "last_event_age": None if row.silent_s is None else round(max(row.silent_s, 0.0), 3),
        "continued_as": continued_as,
        "activity": glance.activity,
        "usage": glance.usage,
        "cost": glance.cost,
    }


def open_call(row: RunRow, view: RunView) -> dict[str, Any] | None:
    """What a live run has been working on for the longest time: a call that runs, or else one that was requested."""
    if row.standing.ended:
        return None
    calls = [activity for activity in view.activities if activity.open and activity.kind not in ("stage", "handoff")]
    calls.sort(key=lambda activity: activity.state != "running")
    if not calls:
        return None
    call = {"call_id": calls[0].activity_id, "name": calls[0].name, "title": calls[0].title}
    age = _age(calls[0], row)
    return call if age is None else {**call, "for_s": age}


def _age(call: Activity, row: RunRow) -> float | None:
    """For how long, in seconds: up to the last event by the owner's clock, and from then on by the store's.

    So it holds however wrong the clock of this node is.
    """
    try:
        until_last = (datetime.fromisoformat(row.updated_at) - datetime.fromisoformat(call.since)).total_seconds()
    except ValueError:
        return None
    return round(max(until_last, 0.0) + max(row.silent_s or 0.0, 0.0), 3)
