"""Journals: append-only, ordered envelopes of runs. :func:`open_journal` picks a backend by URL."""

from __future__ import annotations

from urllib.parse import urlsplit

from agents_progress.errors import UnknownJournalURL
from agents_progress.journal.base import Journal, Origin, RunRow
from agents_progress.journal.memory import MemoryJournal

__all__ = ["DEFAULT_URL", "Journal", "MemoryJournal", "Origin", "RunRow", "open_journal"]

DEFAULT_URL = "sqlite:///agents-progress.db"
"""Where the command line looks when it is told nothing: a file in the working directory."""

KNOWN_URLS = ("memory://", "sqlite:///FILE (relative)", "sqlite:////FILE (absolute)", "redis://HOST:PORT/DB")


def open_journal(url: str, *, create: bool = True) -> Journal:
    """The journal behind a URL. Nothing is opened before its first use, so it may be named before a fork.

    With ``create=False`` a journal that does not exist yet is refused at first use instead of made. Raises
    :exc:`UnknownJournalURL` for a URL that no backend answers to.
    """
    parts = urlsplit(url)
    if parts.scheme == "memory" and not parts.path:
        return MemoryJournal()
    if parts.scheme == "sqlite" and not parts.netloc and len(parts.path) > 1:
        from agents_progress.journal.sqlite import SQLiteJournal

        return SQLiteJournal(parts.path[1:], create=create)
    if parts.scheme in {"redis", "rediss"}:
        try:
            from agents_progress.journal.redis import RedisJournal
        except ImportError:
            raise UnknownJournalURL(
                "a journal on Redis needs a package that is not installed: pip install 'agents-progress[redis]'"
            ) from None
        return RedisJournal(url, create=create)
    raise UnknownJournalURL(f"no journal answers to {parts.scheme or url!r}; known are {', '.join(KNOWN_URLS)}")
