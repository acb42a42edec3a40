"""What is shown of a reaction, to whoever may see it. What it is made of only where that was asked for."""

from __future__ import annotations

from typing import Any

from agents_progress.clock import moment
from agents_progress.effects.reactions.entry import Entry
from agents_progress.effects.reactions.grant import held
from agents_progress.effects.reactions.store import Line, ReactionStore


def grant_of(store: ReactionStore, entry: Entry) -> str | None:
    """The id of the grant under which a reaction is, None for one that was erased."""
    found = held(store.look(entry.grant)[0]) if entry.grant else None
    return None if found is None else found.grant.id


def fields(entry: Entry, grant: str | None) -> dict[str, Any]:
    """A reaction as JSON, without its text and its result. Times are those of its store."""
    return {
        "task_id": entry.task_id,
        "state": entry.state,
        "reason": "erased" if entry.erased else entry.reason,
        "reaction": entry.reaction,
        "grant": grant,
        "revision": entry.revision,
        "who": entry.who,
        "record": entry.resource,
        "version": entry.version,
        "action": entry.action,
        "received_at": moment(entry.received_at),
        "asked": entry.asked,
        "decided": entry.decided,
        "actor": entry.actor,
        "submits": entry.submits,
        "submitted_at": None if entry.submitted_at is None else moment(entry.submitted_at),
        "reference": entry.reference,
    }


def bodies(entry: Entry) -> dict[str, Any]:
    """What a reaction is made of: the words of its notification, and the JSON of its result."""
    return {"label": entry.label, "text": entry.text, "result": entry.result}


def line_fields(line: Line) -> dict[str, Any]:
    """A line of the audit log as JSON."""
    return {"at": moment(line.at), "what": line.what, "reason": line.reason, "actor": line.actor}
