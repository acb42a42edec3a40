"""Which ledger or store of reactions is meant: that of a URL, or the one beside a journal. One a place and process."""

from __future__ import annotations

import atexit
from collections.abc import Hashable
from threading import Lock
from typing import Final, TypeVar
from weakref import WeakKeyDictionary

from agents_progress.effects.ledger import Ledger
from agents_progress.effects.ledger.memory import MemoryLedger
from agents_progress.effects.reactions.memory import MemoryReactionStore
from agents_progress.effects.reactions.store import ReactionStore
from agents_progress.errors import UsageError
from agents_progress.journal import Journal, MemoryJournal, open_journal

Kept = TypeVar("Kept", bound="Ledger | ReactionStore")

_opened: Final[dict[Hashable, Ledger | ReactionStore]] = {}
_in_memory: Final[WeakKeyDictionary[Journal, ReactionStore]] = WeakKeyDictionary()
_opening: Final = Lock()


def open_ledger(url: str) -> Ledger:
    """The ledger of a URL, the same one for every caller in this process until it is closed.

    It may lie beside a journal, in tables of its own. Raises :exc:`UnknownJournalURL` and :exc:`JournalExtraMissing` as
    :func:`open_journal` does, and :exc:`UsageError` where no ledger can be kept.
    """
    journal = open_journal(url)
    return _shared("memory", MemoryLedger()) if isinstance(journal, MemoryJournal) else ledger_beside(journal)


def ledger_beside(journal: Journal) -> Ledger:
    """The ledger in the store of a journal. Raises :exc:`UsageError` for a journal whose store keeps none."""
    ledger = kept_beside(journal)
    if ledger is None:
        raise UsageError(
            f"effects cannot be recorded in a {type(journal).__name__}; name a ledger: "
            "@once(ledger='sqlite:///FILE' or 'postgresql://...')"
        )
    return ledger


def kept_beside(journal: Journal) -> Ledger | None:
    """The ledger in the store of a journal, None where none is kept: in memory it would forget with the process what
    must not happen again.
    """
    match type(journal).__name__:
        case "SQLiteJournal":
            from agents_progress.effects.ledger.sqlite import SQLiteLedger

            path: str = journal.path  # type: ignore[attr-defined]
            return _shared(("sqlite", path), SQLiteLedger(path))
        case "PostgresJournal":
            from agents_progress.effects.ledger.postgres import PostgresLedger

            address = journal.address  # type: ignore[attr-defined]
            return _shared(("postgres", address), PostgresLedger(address))
    return None


def reactions_beside(journal: Journal) -> ReactionStore:
    """The reactions in the store of a journal. Raises :exc:`UsageError` for a journal whose store keeps none."""
    store = reactions_kept_beside(journal)
    if store is None:
        raise UsageError(
            f"reactions cannot be kept in a {type(journal).__name__}; name a store: Reactions(..., store=...), "
            "or a journal in 'sqlite:///FILE' or 'postgresql://...'"
        )
    return store


def reactions_kept_beside(journal: Journal) -> ReactionStore | None:
    """The reactions in the store of a journal, None where none are kept. Those in memory end with their journal."""
    match type(journal).__name__:
        case "MemoryJournal":
            with _opening:
                return _in_memory.setdefault(journal, MemoryReactionStore())
        case "SQLiteJournal":
            from agents_progress.effects.reactions.sqlite import SQLiteReactionStore

            path: str = journal.path  # type: ignore[attr-defined]
            return _shared(("reactions", path), SQLiteReactionStore(path))
        case "PostgresJournal":
            from agents_progress.effects.reactions.postgres import PostgresReactionStore

            address = journal.address  # type: ignore[attr-defined]
            return _shared(("reactions", address), PostgresReactionStore(address))
    return None


@atexit.register
def _close() -> None:
    """Whoever comes to a store by its journal has nothing to close."""
    for kept in _opened.values():
        kept.close()


def _shared(place: Hashable, made: Kept) -> Kept:
    """Stores open nothing before their first use, so that one that is made in vain costs nothing."""
    with _opening:
        kept = _opened.get(place)
        if not isinstance(kept, type(made)) or kept.closed:
            kept = _opened[place] = made
        return kept
