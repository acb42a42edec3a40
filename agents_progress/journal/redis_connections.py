"""The connections of one process to one Redis server, in a thread with an event loop of its own.

Callers may sit in any loop and any thread, and may leave theirs at any time: no connection belongs to them. The
connections of a process that forked stay with the parent; the child opens its own.
"""

from __future__ import annotations

import asyncio
import os
import re
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import parse_qs, unquote, urlsplit

import redis as blocking
from redis import exceptions
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff
from redis.retry import Retry as BlockingRetry

from agents_progress.errors import (
    JournalClosed,
    JournalError,
    JournalUnavailable,
    JournalUnreadable,
    UnknownJournalURL,
)
from agents_progress.events import PROTOCOL
from agents_progress.journal.redis_scripts import SCRIPTS, Script

T = TypeVar("T")

LAYOUT_VERSION: Final = 1
SHARED: Final = 8
"""Connections that commands share; the one that blocks and the one that renews are beside them."""
RETRIES: Final = 3
"""How often a command is sent again over a new connection. Every script may be sent twice."""
TIMEOUT_S: Final = 10.0
"""How long the server may take to answer, in seconds."""
CLOSE_S: Final = 30.0
"""How long a journal that is closed waits for what was asked before, in seconds."""

FAILURES: Final = (exceptions.RedisError, OSError)
"""What the client raises when the server is away, or refuses."""

_OPTIONS: Final[Mapping[str, Any]] = {
    "protocol": 2,
    "socket_timeout": TIMEOUT_S,
    "socket_connect_timeout": TIMEOUT_S,
}
_BACKOFF: Final = ExponentialBackoff(cap=0.5, base=0.02)


_is_database = re.compile(r"(/\d*)?").fullmatch


class Address(NamedTuple):
    """Where the journal is. ``shown`` is what messages say of it: never the user, the password or the options."""

    url: str
    prefix: str
    shown: str
    secrets: tuple[str, ...]

    @classmethod
    def of(cls, url: str, prefix: str) -> Address:
        """Raises :exc:`UnknownJournalURL` for a URL that names no server."""
        try:
            parts = urlsplit(url)
            place = f"{parts.hostname or 'localhost'}:{parts.port or 6379}"
            if parts.fragment or not _is_database(parts.path):
                raise ValueError("part of a password")
            blocking.ConnectionPool.from_url(url).make_connection()  # opens nothing, but reads the options
        except (ValueError, TypeError):
            # The URL may hold a password, and so may what the parser says about it.
            raise UnknownJournalURL(
                "the URL of the journal cannot be read; it looks like redis://user:password@host:6379/0, with special "
                "characters of the password percent-encoded"
            ) from None
        given = (parts.password, *parse_qs(parts.query).get("password", []))
        secrets = tuple(form for secret in given if secret for form in (secret, unquote(secret)))
        return cls(url, prefix, f"{parts.scheme}://{place}{parts.path}", secrets)

    def __repr__(self) -> str:
        return self.shown

    def refusal(self, error: Exception) -> JournalError:
        """What a failure of the client or of the server means to the caller."""
        said = str(error)
        for secret in self.secrets:
            said = said.replace(secret, "***")
        if isinstance(error, exceptions.ResponseError) and said.startswith("WRONGTYPE"):
            return JournalUnreadable(f"{self.shown} holds other things under {self.prefix}: name another prefix")
        return JournalUnavailable(f"the journal {self.shown} cannot be used now: {said or type(error).__name__}")


def answered(answers: Sequence[Any]) -> list[Any]:
    """The answers, or the first refusal among them: as the server words it, for the client would quote the command."""
    for answer in answers:
        if isinstance(answer, Exception):
            raise answer
    return list(answers)


class Connections:
    """Opened by :meth:`ask`. Everything that is asked runs in one thread, so it needs no locks."""

    def __init__(self, address: Address, create: bool) -> None:
        self.address = address
        self.pid = os.getpid()
        self.closing = False
        self._closed = False
        self._asking = threading.Lock()
        self._create = create
        self._opening: asyncio.Task[None] | None = None
        self._renewing: Any = None
        self._renewing_lock = threading.Lock()
        self.loop = asyncio.new_event_loop()
        # Who finds every connection in use waits for one: thousands of tails may be woken at once.
        self.client: Any = Redis.from_pool(
            BlockingConnectionPool.from_url(
                address.url, retry=Retry(_BACKOFF, RETRIES), max_connections=SHARED, timeout=None, **_OPTIONS
            )
        )
        self._thread = threading.Thread(target=self._serve, name="agents-progress-redis", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()
        self.loop.close()

    def ask(self, question: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        """Run a coroutine in the thread of the connections, after the server was found fit."""
        with self._asking:
            self._refuse_closed()
            return asyncio.run_coroutine_threadsafe(self._answer(question), self.loop)

    def tell(self, call: Callable[[], None]) -> None:
        """Call something in the thread of the connections, in the order of the calls."""
        with self._asking:
            self._refuse_closed()
            self.loop.call_soon_threadsafe(call)

    def _refuse_closed(self) -> None:
        if self._closed:
            raise JournalClosed(f"the journal {self.address.shown} was closed; open it again")

    async def _answer(self, question: Callable[[], Coroutine[Any, Any, T]]) -> T:
        try:
            await self.opened()
            return await question()
        except FAILURES as error:
            raise self.address.refusal(error) from None
        except asyncio.CancelledError:
            if self.closing:
                raise JournalUnavailable(f"the journal {self.address.shown} was closed before it answered") from None
            raise

    async def opened(self) -> None:
        """Look at the server once a process; a look that failed is repeated by the next question."""
        if self._opening is None or (self._opening.done() and (self._opening.cancelled() or self._opening.exception())):
            self._opening = asyncio.ensure_future(self._open())
        await asyncio.shield(self._opening)

    async def _open(self) -> None:
        memory = await self.client.execute_command("INFO", "memory")
        policy = memory.get("maxmemory_policy", "unknown")
        if policy != "noeviction":
            raise JournalUnavailable(
                f"{self.address.shown} may evict keys (maxmemory-policy {policy}), and parts of a log with them; "
                "set maxmemory-policy to noeviction"
            )
        key, ours = f"{self.address.prefix}:version", f"{PROTOCOL} {LAYOUT_VERSION}"
        if self._create:
            await self.client.execute_command("SETNX", key, ours)
        found = await self.client.execute_command("GET", key)
        if found is None:
            raise JournalUnreadable(f"there is no journal at {self.address.shown}; name another one, or run something")
        protocol, _, version = found.decode(errors="replace").rpartition(" ")
        if (protocol, version) != (PROTOCOL, str(LAYOUT_VERSION)):
            raise JournalUnreadable(
                f"{self.address.shown} holds {protocol or 'nothing'} in version {version}; "
                f"this release reads {PROTOCOL} in version {LAYOUT_VERSION}"
            )
        await self._load()

    async def _load(self) -> None:
        for script in SCRIPTS:
            await self.client.execute_command("SCRIPT LOAD", script.text)

    async def call(self, script: Script, keys: Sequence[str], *arguments: str | bytes | int) -> Any:
        """Run a script; its answer."""
        (answer,) = await self.call_all([(script, keys, arguments)])
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def call_all(self, calls: Sequence[tuple[Script, Sequence[str], Sequence[Any]]]) -> list[Any]:
        """Run many scripts in one exchange, in order; an answer each, which may be an exception."""
        answers = await self._sent(calls)
        unknown = [place for place, answer in enumerate(answers) if isinstance(answer, exceptions.NoScriptError)]
        if unknown:  # the server was started again, or its scripts were flushed
            await self._load()
            for place, answer in zip(unknown, await self._sent([calls[place] for place in unknown]), strict=True):
                answers[place] = answer
        return answers

    async def _sent(self, calls: Sequence[tuple[Script, Sequence[str], Sequence[Any]]]) -> list[Any]:
        pipe = self.client.pipeline(transaction=False)
        for script, keys, arguments in calls:
            pipe.execute_command("EVALSHA", script.sha, len(keys), *keys, *arguments)
        return list(await pipe.execute(raise_on_error=False))

    async def send(self, *commands: Sequence[Any]) -> list[Any]:
        """Plain commands in one exchange; their answers."""
        pipe = self.client.pipeline(transaction=False)
        for command in commands:
            pipe.execute_command(*command)
        return answered(await pipe.execute(raise_on_error=False)) if commands else []

    async def apart(self) -> tuple[Any, int]:
        """A connection that may block, and the id by which the server knows it."""
        connection: Any = self.client.connection_pool.make_connection()
        await connection.connect()
        await connection.send_command("CLIENT", "ID")
        return connection, int(await connection.read_response())

    # In a thread of the caller's.

    def ask_blocking(self, calls: Sequence[tuple[Script, Sequence[str | bytes], Sequence[Any]]]) -> list[Any]:
        """As :meth:`call_all`, blocking, over a connection that nothing else uses."""
        return self.send_blocking([("EVAL", script.text, len(keys), *keys, *more) for script, keys, more in calls])

    def send_blocking(self, commands: Sequence[Sequence[Any]]) -> list[Any]:
        """As :meth:`send`, blocking, over a connection that nothing else uses."""
        if not commands:
            return []
        with self._renewing_lock:
            try:
                if self._renewing is None:
                    self._renewing = blocking.Redis.from_url(
                        self.address.url, retry=BlockingRetry(_BACKOFF, RETRIES), **_OPTIONS
                    )
                pipe = self._renewing.pipeline(transaction=False)
                for command in commands:
                    pipe.execute_command(*command)
                return answered(pipe.execute(raise_on_error=False))
            except FAILURES as error:
                raise self.address.refusal(error) from None

    # Closing.

    def close(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Finish what was asked for, end the thread and let go. Blocks; ``last`` wakes whoever waits."""
        with self._asking:  # from here on nothing is asked that would not be answered
            self._closed = True
            finished = asyncio.run_coroutine_threadsafe(self._finish(last), self.loop)
        finished.result()
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        with self._renewing_lock:
            if self._renewing is not None:
                self._renewing.close()

    async def _finish(self, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.closing = True
        asked = asyncio.all_tasks() - {asyncio.current_task()}
        await last()
        if asked:
            _, left = await asyncio.wait(asked, timeout=CLOSE_S)
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)
        await self.client.aclose()


def marked(value: str | None) -> str:
    """A value that may be missing, as an argument of a script."""
    return "" if value is None else f"={value}"


LEFT_BEHIND: Final[list[object]] = []
"""Connections of a parent process: kept, because letting go of them here would disturb it."""
