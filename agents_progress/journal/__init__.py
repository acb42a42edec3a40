"""Journals: append-only, ordered envelopes of runs. :func:`open_journal` picks a backend by URL."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Final
from urllib.parse import urlsplit

from agents_progress.errors import JournalExtraMissing, UnknownJournalURL
from agents_progress.journal.base import Journal, Origin, RunRow
from agents_progress.journal.memory import MemoryJournal
from agents_progress.journal.pauses import Pause

__all__ = ["DEFAULT_URL", "Journal", "MemoryJournal", "Origin", "Pause", "RunRow", "open_journal", "redacted"]

DEFAULT_URL = "sqlite:///agents-progress.db"
"""Where the command line looks when it is told nothing: a file in the working directory."""

KNOWN_URLS = (
    "memory://",
    "sqlite:///FILE (relative)",
    "sqlite:////FILE (absolute)",
    "postgresql://USER@HOST:PORT/DATABASE",
    "redis://HOST:PORT/DB",
)

_SERVERS: Final[Mapping[str, tuple[str, str]]] = {
    "postgresql": ("postgres", "PostgresJournal"),
    "postgres": ("postgres", "PostgresJournal"),
    "redis": ("redis", "RedisJournal"),
    "rediss": ("redis", "RedisJournal"),
}
"""Scheme of a URL to the module here, which has the name of its extra too, and its journal."""


def open_journal(url: str, *, create: bool = True) -> Journal:
    """The journal behind a URL. Nothing is opened before its first use, so it may be named before a fork.

    With ``create=False`` a journal that does not exist yet is refused at first use instead of made. Raises
    :exc:`UnknownJournalURL` for a URL that no backend answers to, and :exc:`JournalExtraMissing` when its driver is not
    installed.
    """
    scheme = url.partition("://")[0]
    if scheme in _SERVERS:
        return _on_a_server(url, *_SERVERS[scheme], create=create)
    parts = urlsplit(url)
    if parts.scheme == "memory" and not parts.path:
        return MemoryJournal()
    if parts.scheme == "sqlite" and not parts.netloc and len(parts.path) > 1:
        from agents_progress.journal.sqlite import SQLiteJournal

        return SQLiteJournal(parts.path[1:], create=create)
    raise UnknownJournalURL(f"no journal answers to {_amiss(parts.scheme)}; known are {', '.join(KNOWN_URLS)}")


def _amiss(scheme: str) -> str:
    if not scheme:
        return "an address that does not begin with its kind; a file is named as in sqlite:///runs.db"
    if scheme == "sqlite":
        return "'sqlite' without three slashes and the name of a file"
    return repr(scheme)


def redacted(url: str) -> str:
    """A URL as it may be shown or logged: without user, password and options. What is not clear is left out."""
    scheme, there, rest = url.partition("://")
    place, _, options = rest.partition("?")
    if not there or "@" in options:  # a question mark in a password, perhaps
        return f"{scheme}://***" if there else "***"
    return f"{scheme}://{place if place.startswith('/') else place.rpartition('@')[2]}"


def _on_a_server(url: str, extra: str, name: str, *, create: bool) -> Journal:
    try:
        module = import_module(f"agents_progress.journal.{extra}")
    except ModuleNotFoundError as error:
        driver = (error.name or "").partition(".")[0]
        if driver not in ("psycopg", "redis"):
            raise
        raise JournalExtraMissing(
            f"a journal on this server needs {driver}; install it with: pip install 'agents-progress[{extra}]'"
        ) from error
    journal: Journal = getattr(module, name)(url, create=create)
    return journal
