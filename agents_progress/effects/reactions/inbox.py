"""What becomes of a notification: a new reaction, a known one, nothing, or quarantine. Pure rules over documents."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from agents_progress.effects.keys import digest
from agents_progress.effects.reactions.entry import Entry, Found
from agents_progress.effects.reactions.grant import Grant, Wanted, held, objection
from agents_progress.effects.reactions.notice import Notification
from agents_progress.effects.reactions.store import Document, Line, Writing

FRESH_S: Final = 86_400.0
AHEAD_S: Final = 60.0
"""How old a notification may be, and how far its sender's clock may be ahead of the store's, in seconds."""


@dataclass(frozen=True, slots=True)
class Accepted:
    """A new reaction was begun, under this task id."""

    task_id: str


@dataclass(frozen=True, slots=True)
class Known:
    """The same event, or another one about the same version, began this task before."""

    task_id: str


@dataclass(frozen=True, slots=True)
class Ignored:
    """Nothing was stored but a line in the audit log. ``reason`` is a code."""

    reason: str


@dataclass(frozen=True, slots=True)
class Quarantined:
    """The event was received before with other content. It is taken for neither: somebody must look into it."""

    task_id: str


Receipted: TypeAlias = Accepted | Known | Ignored | Quarantined


def names(notice: Notification, grant: Grant, task_id: str) -> list[str]:
    """The documents that receiving a notification changes: two marks, and the new reaction. The grant is beside."""
    tenant = grant.tenant
    event = digest("event", tenant, notice.reaction, notice.event_id)
    version = digest("version", grant.name, notice.reaction, notice.resource, notice.version, notice.action)
    return [f"mark:{event}", f"mark:{version}", task_id]


def received(
    found: Found, named: list[str], notice: Notification, task_id: str, fresh_s: float, now: float
) -> tuple[Receipted, Writing]:
    """Receive one. ``named`` are the names of what was ``found``, but for the grant, which comes last."""
    event, version, grant = found[0], found[1], held(found[3])
    if event is not None:
        known = str(event.task_id)
        if event.body["core"] != notice.core:
            return Quarantined(known), Writing(lines=[_line(notice, grant, "quarantined", now, known)])
        return Known(known), Writing(lines=[_line(notice, grant, "repeated", now, known)])
    wanted = Wanted(notice.who, notice.resource, notice.action, None)
    reason = _untimely(notice, fresh_s, now) or objection(grant, wanted, now)
    if reason is not None or grant is None:
        reason = reason or "grant_unknown"
        return Ignored(reason), Writing(lines=[_line(notice, grant, "ignored", now, None, reason)])
    if version is not None:
        known = str(version.task_id)
        mark = _mark(named[0], notice, known, now)
        return Known(known), Writing([mark], [_line(notice, grant, "repeated", now, known)])
    whose: dict[str, Any] = {"owner": grant.grant.owner, "tenant": grant.grant.tenant}
    about = notice.who, notice.resource, notice.version, notice.action, notice.label
    entry = Entry(
        task_id, notice.reaction, grant.grant.name, grant.grant.revision, *about, now, notice.text, due_at=now, **whose
    )
    marks = [_mark(name, notice, task_id, now) for name in named[:2]]
    return Accepted(task_id), Writing([*marks, entry.document()], [_line(notice, grant, "received", now, task_id)])


def _untimely(notice: Notification, fresh_s: float, now: float) -> str | None:
    if notice.occurred_at > now + AHEAD_S:
        return "future"
    return "stale" if notice.occurred_at < now - fresh_s else None


def _mark(name: str, notice: Notification, task_id: str, now: float) -> Document:
    """That a notification came, and what it led to; digests only, as it outlives what is erased."""
    return Document(name, "mark", {"core": notice.core}, task_id=task_id, at=now)


def _line(
    notice: Notification, grant: Any, what: str, now: float, task_id: str | None, reason: str | None = None
) -> Line:
    whose = {} if grant is None else {"owner": grant.grant.owner, "tenant": grant.grant.tenant}
    return Line(now, what, notice.reaction, task_id, reason, **whose)
