"""What people answer where they see it: on a page, at a prompt, through another node. It reaches reactions by the
journal, as it reaches every other paused run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from agents_progress.effects.reactions.entry import Entry
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


async def heard(journal: Journal, waiting: Sequence[Entry]) -> list[Heard]:
    """What was said of reactions that wait for an answer."""
    if not waiting:
        return []
    newest = await journal.newest({entry.task_id for entry in waiting})
    tasks = {run_id: task_id for task_id, run_id in newest.items()}
    requests = await journal.requests(list(tasks))
    read = [_read(tasks[request.run_id], request) for request in requests if request.run_id in tasks]
    return [one for one in read if one is not None]


def _read(task_id: str, request: Request) -> Heard | None:
    verb, _, object_ = request.key.partition(".")
    decision = request.body.get("decision") if (verb, object_) == ("answer", QUESTION) else None
    digest, actor = request.body.get("digest"), request.body.get("actor")
    if verb == "cancel":
        decision = "cancelled"
    if decision not in ("approved", "rejected", "cancelled") or not isinstance(actor, str) or not actor.strip():
        return None
    return Heard(request.request_id, task_id, decision, digest if isinstance(digest, str) else "", actor)
