"""``effects`` and ``resolve``: what tools that act once did, and what a person found out about it."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Sequence
from contextlib import closing
from typing import Any, Final

from agents_progress.cli.listing import grid
from agents_progress.cli.printing import FINE, say, say_json
from agents_progress.effects.entry import DidNotHappen, Entry, Finding, Happened
from agents_progress.effects.ledger import Ledger
from agents_progress.effects.places import open_ledger
from agents_progress.effects.shown import fields
from agents_progress.errors import UsageError
from agents_progress.journal import redacted
from agents_progress.labels import age
from agents_progress.plaintext import clean

_COLUMNS: Final = ("entry", "age", "state", "run_id", "tool", "key", "scope", "settled_by")
_MOST: Final = 40
"""Cells of a text in a row; ``--json`` gives all of it."""
_SHORT: Final = 16
"""Digits of an entry in a row: few, and more than it takes to name it."""
_digits: Final = re.compile(r"[0-9a-f]{8,64}", re.ASCII).fullmatch


def effects(chosen: argparse.Namespace) -> int:
    """Looks only: where nothing was recorded yet, no ledger is made."""
    with closing(open_ledger(chosen.journal)) as ledger:
        found, now = _listed(ledger, chosen)
    if chosen.json:
        say_json([{**fields(entry, now), "scope": entry.effect.scope} for entry in found])
        return FINE
    for line in _table(found, now) if found else ():
        say(line)
    if not found:
        such = "such " if chosen.state or chosen.task else ""
        say(f"no {such}effects are recorded in {clean(redacted(chosen.journal))}")
    return FINE


def _listed(ledger: Ledger, chosen: argparse.Namespace) -> tuple[list[Entry], float]:
    """The entries, and the store's time."""
    found = []
    if ledger.exists():
        found = ledger.entries(state=chosen.state, task_id=chosen.task, limit=chosen.limit)
    return found, ledger.look(found[0].effect.entry)[1] if found else 0.0


def _table(found: Sequence[Entry], now: float) -> list[str]:
    return grid([_COLUMNS, *(_cells(entry, now) for entry in found)], _MOST)


def _cells(entry: Entry, now: float) -> tuple[str, ...]:
    effect = entry.effect
    return (
        effect.entry[:_SHORT],
        age(now - entry.began_at, "en"),
        entry.state(now),
        *(clean(text or "-") for text in (effect.run_id, effect.name, effect.key, effect.scope, entry.settled_by)),
    )


def resolve(chosen: argparse.Namespace) -> int:
    """Only what is uncertain can be resolved, and only the attempt that was looked at."""
    finding, entry = _finding(chosen), chosen.entry.lower()
    if not chosen.by.strip():
        raise UsageError("say who found it out: --by NAME")
    with closing(open_ledger(chosen.journal)) as ledger:
        found, now = _one(ledger, entry)
        short, state = found.effect.entry[:_SHORT], found.state(now)
        if state != "uncertain":
            raise UsageError(f"{short} is {state}; only an uncertain effect can be resolved")
        if not ledger.resolve(found.effect.entry, found.generation, finding, chosen.by):
            raise UsageError(f"{short} was settled by somebody else just now; look at it again")
    happened = isinstance(finding, Happened)
    what = "happened; further calls get its output" if happened else "did not happen; the next call runs it"
    about = " ".join(clean(text) for text in (found.effect.name, found.effect.key) if text)
    say(f"{short} {about}: {what}" if about else f"{short}: {what}")
    return FINE


def _one(ledger: Ledger, digits: str) -> tuple[Entry, float]:
    """The entry that begins with these digits, and the store's time. One that was erased takes all of its digits."""
    if not _digits(digits):
        raise UsageError("an effect is named by at least the first 8 of its 64 hex digits")
    if ledger.exists():
        found = ledger.entries(begins=digits, limit=2)
        if len(found) > 1:
            raise UsageError(f"more than one effect begins with {digits}; give more of its digits")
        entry, now = ledger.look(found[0].effect.entry if found else digits)
        if entry is not None:
            return entry, now
    raise UsageError(f"no effect begins with {digits}; `agents-progress effects` lists those there are")


def _finding(chosen: argparse.Namespace) -> Finding:
    if not chosen.happened:
        if chosen.output is not None:
            raise UsageError("what did not happen has no output; leave --output out")
        return DidNotHappen()
    return Happened(None if chosen.output is None else _json(chosen.output))


def _json(text: str) -> Any:
    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        raise UsageError("--output takes JSON; put a text in double quotes, as in '\"paid\"'") from None
