"""Where the journals of a bar are: empty stores of a durable backend, which any process opens as a node of its own."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from agents_progress.journal import Journal, open_journal

from .servers import PgBouncer, Postgres, Redis

BACKENDS: Final = ("sqlite", "postgres", "redis")
"""Those that are durable."""


@dataclass(frozen=True, slots=True)
class Place:
    """An empty store; it can be told to another process as JSON."""

    url: str
    prefix: str | None = None

    def journal(self, lease_s: float | None = None, **options: Any) -> Journal:
        """A node of its own on the store, with leases of this many seconds; None leaves the backend's own."""
        if self.prefix is None:
            journal = open_journal(self.url)
        else:
            from agents_progress.journal.redis import RedisJournal

            journal = RedisJournal(self.url, prefix=self.prefix, **options)
        if lease_s is not None:
            journal.lease_s = lease_s
        return journal


Places: TypeAlias = Callable[[], Place]
"""Makes an empty store at each call."""


@contextmanager
def stores(backend: str) -> Iterator[Places]:
    """The stores of a backend, on a server of its own."""
    with ExitStack() as open_until_then:
        match backend:
            case "sqlite":
                folder = Path(open_until_then.enter_context(TemporaryDirectory(prefix="bars-")))
                yield lambda: Place(f"sqlite:///{folder}/{secrets.token_hex(6)}.db")
            case "postgres":
                yield schemas(open_until_then.enter_context(Postgres()))
            case "pgbouncer":
                postgres = open_until_then.enter_context(Postgres(connections=300))
                yield pooled(postgres, open_until_then.enter_context(PgBouncer(postgres)))
            case "redis":
                yield prefixes(open_until_then.enter_context(Redis()))
            case _:
                raise ValueError(f"{backend} is none of {', '.join((*BACKENDS, 'pgbouncer'))}")


def schemas(server: Postgres) -> Places:
    """A schema each."""

    def make() -> Place:
        name = f"bar_{secrets.token_hex(6)}"
        command(server.url, f"CREATE SCHEMA {name}")
        return Place(f"{server.url}?options={quote(f'-csearch_path={name}')}")

    return make


def pooled(server: Postgres, pooler: PgBouncer) -> Places:
    """A database of the pooler each, which is a schema of the server."""
    numbers = count()

    def make() -> Place:
        name = f"bar{next(numbers)}"
        command(server.url, f"CREATE SCHEMA {name}")
        return Place(pooler.url.removesuffix("bar0") + name)

    return make


def prefixes(server: Redis) -> Places:
    """A prefix each."""
    return lambda: Place(server.url, prefix=f"bar-{secrets.token_hex(6)}")


def command(url: str, *statements: str) -> Sequence[Any]:
    """Statements to a PostgreSQL server, outside a transaction; the answer to the last."""
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []
