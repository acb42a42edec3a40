"""What the application prepares, and what of it can be held as a result."""

from __future__ import annotations

import json
from collections.abc import Awaitable
from typing import Any

from agents_progress.effects.keys import canonical
from agents_progress.effects.reactions.entry import Entry
from agents_progress.effects.reactions.terms import Case, Decorated, Reaction
from agents_progress.errors import UsageError
from agents_progress.journal.base import Journal
from agents_progress.outcome import Outcome


async def prepare(reaction: Reaction, entry: Entry, case: Case, journal: Journal) -> tuple[Any, str | None]:
    """What the application gives, and why it counts for nothing, if it does."""
    code = reaction.prepare
    if isinstance(code, Decorated):
        whose = {"owner": entry.owner, "tenant": entry.tenant}
        return _output(await code.using(task_id=entry.task_id, journal=journal, **whose)(case))
    made = code(case)
    return (await made if isinstance(made, Awaitable) else made), None


def _output(outcome: Outcome) -> tuple[Any, str | None]:
    """What an agent's run prepared, or why it counts for nothing."""
    if outcome.kind != "succeeded":
        return None, "prepare_paused" if outcome.kind == "paused" else "prepare_failed"
    if outcome.verdict is not None and not outcome.verdict.ok:
        return None, "prepare_rejected"
    return outcome.output, None


def result_of(output: Any) -> tuple[str, str | None]:
    """What was prepared as it is stored, and why it cannot be submitted, if it cannot."""
    try:
        result = canonical(output)
    except UsageError:
        return "", "bad_result"
    return result, "empty_result" if _empty(json.loads(result)) else None


def _empty(value: Any) -> bool:
    """Whether there is nothing in it; a number and a truth value are something."""
    return value is None or value in ([], {}) or (isinstance(value, str) and not value.strip())
