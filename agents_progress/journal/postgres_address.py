"""Where a PostgreSQL journal is, what it takes to connect, and what is said when that fails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, TypeAlias

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.rows import TupleRow

from agents_progress.errors import JournalUnavailable, JournalUnreadable, UnknownJournalURL

Database: TypeAlias = psycopg.AsyncConnection[TupleRow]

FROZEN_S: Final = 10
"""How long a transaction may wait for its client, in seconds. Less than a lease: whoever takes over finds no lock then.
"""

NOT_FOR_EVER: Final = f"SET LOCAL idle_in_transaction_session_timeout = '{FROZEN_S}s'"
"""A node that froze with a lock in its hand loses it."""

# Settings of one transaction, because those of a session would reach other clients of a pooler. Durable whatever the
# server's default; and whoever waits for a lock outlasts one that is frozen.
BEGIN: Final = f"BEGIN; SET LOCAL synchronous_commit = on; SET LOCAL lock_timeout = '15s'; {NOT_FOR_EVER}"
"""How a transaction that writes begins."""

_DEFAULTS: Final = {
    "connect_timeout": 10,
    # A server that vanished without a word is noticed, although a listener has nothing to say to it.
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 30_000,
    "application_name": "agents_progress",
}


class Address:
    """Where a journal is, with what it takes to connect. Only :attr:`name` is ever shown."""

    def __init__(self, url: str) -> None:
        try:
            given: dict[str, Any] = conninfo_to_dict(url)
        except psycopg.Error:
            # What libpq says about a URL quotes it, password included.
            raise UnknownJournalURL(
                "this is no PostgreSQL URL; write postgresql://USER@HOST:PORT/DATABASE, with % codes for odd characters"
            ) from None
        place = ":".join(str(given[part]) for part in ("host", "port") if part in given)
        self.name = f"postgresql://{place}/{given.get('dbname', '')}"
        self._secret = str(given.get("password") or "")
        # Nothing is prepared by name, so that a pooler may give each transaction another server connection.
        self._settings = {**_DEFAULTS, **given, "autocommit": True, "prepare_threshold": None}

    def __repr__(self) -> str:
        return f"Address({self.name!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Address) and other._settings == self._settings

    def __hash__(self) -> int:
        return hash(self.name)

    async def connect(self) -> Database:
        """A connection for an event loop."""
        return await psycopg.AsyncConnection.connect(**self._settings)

    def connect_thread(self) -> psycopg.Connection[TupleRow]:
        """A connection for a thread, which sends each statement as one message, values included: until all of it has
        arrived the transaction idles, for the server's clock, too. Of several messages that is not so.
        """
        return psycopg.connect(**self._settings, cursor_factory=psycopg.ClientCursor)

    @contextmanager
    def translated(self) -> Iterator[None]:
        """Names the journal and the next step for whatever the driver raises, without a password."""
        try:
            yield
        except psycopg.errors.InsufficientPrivilege as error:
            raise JournalUnavailable(f"the journal {self.name} may not be used: {self._said(error)}") from None
        except psycopg.ProgrammingError as error:
            raise JournalUnreadable(f"{self.name} holds no journal of ours: {self._said(error)}") from None
        except (psycopg.Error, OSError) as error:
            raise JournalUnavailable(f"the journal {self.name} cannot be used now: {self._said(error)}") from None

    def _said(self, error: BaseException) -> str:
        said = " ".join(str(error).split()) or type(error).__name__
        return said.replace(self._secret, "***") if self._secret else said
