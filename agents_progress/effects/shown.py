"""What is shown of an entry, to whoever may see it. Never what the tool was given, or what it returned."""

from __future__ import annotations

from typing import Any

from agents_progress.clock import moment
from agents_progress.effects.entry import Entry


def fields(entry: Entry, now: float) -> dict[str, Any]:
    """An entry as JSON, in its state at a moment of the store's time. The times in it are those of the store too."""
    effect = entry.effect
    return {
        "entry": effect.entry,
        "state": entry.state(now),
        "tool": effect.name,
        "key": effect.key,
        "run_id": effect.run_id,
        "task_id": effect.task_id,
        "call_id": effect.call_id,
        "generation": entry.generation,
        "began_at": moment(entry.began_at),
        "settled_at": None if entry.settled_at is None else moment(entry.settled_at),
        "settled_by": entry.settled_by,
    }
