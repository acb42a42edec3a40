"""Which ledger is meant: that of a URL, or the one beside a run's journal. One a place and process."""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock
from typing import Final

from agents_progress.effects.ledger import Ledger
from agents_progress.effects.ledger_memory import MemoryLedger
from agents_progress.errors import UsageError
from agents_progress.journal import Journal, MemoryJournal, open_journal

_opened: Final[dict[Hashable, Ledger]] = {}
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
            from agents_progress.effects.ledger_sqlite import SQLiteLedger

            path: str = journal.path  # type: ignore[attr-defined]
            return _shared(("sqlite", path), SQLiteLedger(path))
        case "PostgresJournal":
            from agents_progress.effects.ledger_postgres import PostgresLedger

            address = journal.address  # type: ignore[attr-defined]
            return _shared(("postgres", address), PostgresLedger(address))
    return None


def _shared(place: Hashable, made: Ledger) -> Ledger:
    """Ledgers open nothing before their first use, so that one that is made in vain costs nothing."""
    with _opening:
        ledger = _opened.get(place)
        if ledger is None or ledger.closed:
            ledger = _opened[place] = made
        return ledger
