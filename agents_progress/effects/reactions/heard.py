"""What people answer where they see it: on a page, at a prompt, through another node. It reaches reactions by the
journal, as it reaches every other paused run.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agents_progress.claim import run_ids_before
from agents_progress.effects.reactions.runs import QUESTION
from agents_progress.journal.base import Journal, Request

Decision: TypeAlias = Literal["approved", "rejected", "cancelled"]


@dataclass(frozen=True, slots=True)
class Heard:
    """One answer, or one request to stop. ``digest`` is that of what was shown."""

    request_id: str
    task_id: str
    decision: Decision
    digest: str
    actor: str


async def heard(journal: Journal, waiting: Collection[str], still_open: Collection[str]) -> list[Heard]:
    """What was said of tasks: answers of those that are ``waiting`` for one, and cancels of all that are open, in
    whichever of their runs somebody saw them.
    """
    newest = await journal.newest(still_open) if still_open else {}
    tasks = {run_id: task_id for task_id, last in newest.items() for run_id in (*run_ids_before(last), last)}
    requests = await journal.requests(list(tasks))
    asking = {newest[task_id] for task_id in waiting if task_id in newest}
    read = [_read(tasks[request.run_id], request, request.run_id in asking) for request in requests]
    return [one for one in read if one is not None]


async def cancelled_by(journal: Journal, run_ids: Collection[str]) -> str | None:
    """Who asked one of these runs to stop; None when nobody did."""
    said = [_read("", request, False) for request in await journal.requests(run_ids)] if run_ids else []
    return next((one.actor for one in said if one is not None), None)


def _read(task_id: str, request: Request, asks: bool) -> Heard | None:
    verb, _, object_ = request.key.partition(".")
    decision = request.body.get("decision") if asks and (verb, object_) == ("answer", QUESTION) else None
    digest, actor = request.body.get("digest"), request.body.get("actor")
    if verb == "cancel":
        decision = "cancelled"
    if decision not in ("approved", "rejected", "cancelled") or not isinstance(actor, str) or not actor.strip():
        return None
    return Heard(request.request_id, task_id, decision, digest if isinstance(digest, str) else "", actor)
