"""``reactions``: what outside changes led to, how far each is, and a person's word about one.

A word goes straight to the store, under the rules of :mod:`agents_progress.effects.reactions.entry`. The application's
code is not needed for it: a worker reads the record again before it submits anything.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from agents_progress.cli.listing import grid
from agents_progress.cli.printing import FINE, say, say_json
from agents_progress.effects.places import reactions_beside
from agents_progress.effects.reactions import entry as rules
from agents_progress.effects.reactions.entry import Entry, entry_of
from agents_progress.effects.reactions.shown import bodies, fields, grant_of, line_fields
from agents_progress.effects.reactions.store import ReactionStore
from agents_progress.errors import ReactionNotFound, ReactionRefused, UsageError
from agents_progress.journal import open_journal, redacted
from agents_progress.labels import age
from agents_progress.plaintext import clean

_COLUMNS: Final = ("task_id", "age", "state", "reaction", "grant", "record", "version", "reason")
_AUDIT: Final = ("at", "what", "reason", "actor")
_MOST: Final = 40
"""Cells of a text in a row; ``--json`` and ``show`` give all of it."""
_LINES: Final = 1000
"""Lines of the audit log of one reaction that are shown, the newest."""


def reactions(chosen: argparse.Namespace) -> int:
    """Looks only: where nothing was received yet, no store is made."""
    with _store(chosen) as store:
        found = _listed(store, chosen)
        grants = {entry.grant: grant_of(store, entry) for entry in found}
        now = store.look("")[1] if found else 0.0
    if chosen.json:
        say_json([fields(entry, grants[entry.grant]) for entry in found])
        return FINE
    rows = [_cells(fields(entry, grants[entry.grant]), now - entry.received_at) for entry in found]
    for line in grid([_COLUMNS, *rows], _MOST) if found else ():
        say(line)
    if not found:
        such = "such " if chosen.state else ""
        say(f"no {such}reactions are kept in {clean(redacted(chosen.journal))}")
    return FINE


def show(chosen: argparse.Namespace) -> int:
    """One reaction, and its lines in the audit log. There are no bodies in either, unless they are asked for."""
    with _store(chosen) as store:
        entry = _one(store, chosen.task_id)
        facts = fields(entry, grant_of(store, entry)) | (bodies(entry) if chosen.bodies else {})
        lines = [line_fields(line) for line in store.audit(task_id=entry.task_id, limit=_LINES)]
    if chosen.json:
        say_json({**facts, "audit": lines})
        return FINE
    width = max(map(len, facts))
    for name, value in facts.items():
        say(f"{name:<{width}}  {_text(value)}")
    say("")
    for row in grid([_AUDIT, *([_text(line[name]) for name in _AUDIT] for line in lines)], _MOST):
        say(row)
    return FINE


def approve(chosen: argparse.Namespace) -> int:
    """Approve exactly what the digest stands for."""
    return _said(
        chosen,
        lambda found, now: rules.approved(found, chosen.digest.lower(), chosen.actor, now),
        "approved; a worker reads its record again, and submits it",
    )


def reject(chosen: argparse.Namespace) -> int:
    """Reject what is asked."""
    return _said(chosen, lambda found, now: rules.rejected(found, chosen.actor, now), "rejected; it stops")


def cancel(chosen: argparse.Namespace) -> int:
    """Stop what was not submitted."""
    return _said(chosen, lambda found, now: rules.cancelled(found, chosen.actor, now), "cancelled; it stops")


_FINDINGS: Final[dict[rules.Finding, str]] = {
    "look": "a worker reads its receipt now",
    "not_submitted": "it did not arrive; it is submitted again, unless it was cancelled",
    "give_up": "it stops; whether it happened is not known",
}


def resolve(chosen: argparse.Namespace) -> int:
    """Only what is uncertain can be resolved. Nobody can say that it is done: that takes a receipt."""
    finding: rules.Finding = next(name for name in _FINDINGS if getattr(chosen, name))
    return _said(chosen, lambda found, now: rules.resolved(found, finding, chosen.actor, now), _FINDINGS[finding])


@contextmanager
def _store(chosen: argparse.Namespace) -> Iterator[ReactionStore]:
    store = reactions_beside(open_journal(chosen.journal))
    try:
        yield store
    finally:
        store.close()


def _listed(store: ReactionStore, chosen: argparse.Namespace) -> Sequence[Entry]:
    found = store.documents(state=chosen.state, limit=chosen.limit) if store.exists() else []
    return [entry for entry in map(entry_of, found) if entry is not None]


def _one(store: ReactionStore, task_id: str) -> Entry:
    entry = entry_of(store.look(task_id)[0]) if store.exists() else None
    if entry is None:
        raise ReactionNotFound(f"there is no reaction {task_id!r:.80}; `agents-progress reactions` lists them")
    return entry


def _said(chosen: argparse.Namespace, rule: Callable[[rules.Found, float], Any], words: str) -> int:
    if not chosen.actor.strip():
        raise UsageError("say who decides: --actor NAME")
    with _store(chosen) as store:
        entry = _one(store, chosen.task_id)
        code = store.change([entry.task_id], rule, beside=[entry.grant])
    if code is not None:
        raise ReactionRefused(code)
    about = " ".join(clean(text) for text in (entry.reaction, entry.resource, entry.version) if text)
    say(f"{entry.task_id} {about}: {words}")
    return FINE


def _cells(facts: dict[str, Any], seconds: float) -> list[str]:
    return [age(seconds, "en") if name == "age" else _text(facts[name]) for name in _COLUMNS]


def _text(value: object) -> str:
    return "-" if value in (None, "") else clean(str(value))
