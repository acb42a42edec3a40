"""How tails learn of new envelopes: one connection a process waits in XREAD for all of them.

A tail says up to which entry it has seen the stream, and XREAD is given just that: what was appended in between is
answered at once, so nothing falls between reading and waiting. Whoever is woken reads again by itself.
"""

from __future__ import annotations

import asyncio
from typing import Any, Final

from agents_progress.journal.redis_connections import FAILURES, Connections

BLOCK_MS: Final = 2000
"""How long one XREAD waits before it is sent again."""
PAUSE_S: Final = 0.1
"""How long nobody is woken after the connection was lost."""


class Watch:
    """Belongs to the thread of its connections."""

    def __init__(self, connections: Connections) -> None:
        self._connections = connections
        self._waiting: dict[str, dict[asyncio.Future[None], tuple[int, int]]] = {}
        self._task: asyncio.Task[None] | None = None
        self._connection: Any = None
        self._client_id = 0
        self._blocked: frozenset[tuple[str, str]] = frozenset()
        self._interrupting: asyncio.Task[None] | None = None

    async def changed(self, key: str, seen: str) -> None:
        """Wait until a stream has more than the entry ``seen``, or until there is a reason to look."""
        if self._connections.closing:
            return
        future = asyncio.get_running_loop().create_future()
        first, _, second = seen.partition("-")
        self._waiting.setdefault(key, {})[future] = int(first), int(second)
        try:
            if self._task is None or self._task.done():
                self._task = asyncio.ensure_future(self._watch())
            elif self._outdated:
                self._interrupt()
            await future
        finally:
            waiters = self._waiting.get(key, {})
            waiters.pop(future, None)
            if not waiters:
                self._waiting.pop(key, None)

    async def close(self) -> None:
        """Wake everybody and let go of the connection."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        self._wake(list(self._waiting))

    def _wanted(self) -> frozenset[tuple[str, str]]:
        """Each stream with the oldest entry that one of its waiters has seen."""
        seen = {key: min(waiters.values()) for key, waiters in self._waiting.items()}
        return frozenset((key, f"{first}-{second}") for key, (first, second) in seen.items())

    def _wake(self, keys: list[str]) -> None:
        for key in keys:
            for future in self._waiting.get(key, {}):
                if not future.done():
                    future.set_result(None)

    async def _watch(self) -> None:
        try:
            while self._waiting:
                try:
                    self._wake(await self._news())
                except FAILURES:
                    # Whoever waits asks the server itself, and hears from it, or from its silence, what is wrong.
                    await self._let_go()
                    await asyncio.sleep(PAUSE_S)
                    self._wake(list(self._waiting))
                await asyncio.sleep(0)  # those who were woken take themselves off the list
        finally:
            await self._let_go()

    async def _news(self) -> list[str]:
        """The streams that have something new, after waiting for it."""
        if self._connection is None:
            self._connection, self._client_id = await self._connections.apart()
        wanted = self._wanted()
        if not wanted:
            return []
        keys, ids = zip(*wanted, strict=True)
        try:
            self._blocked = wanted
            command = ("XREAD", "COUNT", 1, "BLOCK", BLOCK_MS, "STREAMS", *keys, *ids)
            await self._connection.send_command(*command)
            answer: Any = await self._connection.read_response()
        finally:
            self._blocked = frozenset()
        return [key.decode() for key, _ in answer or ()]

    def _interrupt(self) -> None:
        if self._interrupting is None or self._interrupting.done():
            self._interrupting = asyncio.ensure_future(self._unblock())

    @property
    def _outdated(self) -> bool:
        """Whether XREAD waits, but not for everything that is wanted."""
        return bool(self._blocked) and not self._wanted() <= self._blocked

    async def _unblock(self) -> None:
        """End the present wait; asked again while the server has not seen that XREAD yet."""
        try:
            while self._outdated:
                await self._connections.client.execute_command("CLIENT UNBLOCK", self._client_id)
                await asyncio.sleep(0.001)
        except FAILURES:
            return  # the wait ends by itself

    async def _let_go(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.disconnect(nowait=True)
