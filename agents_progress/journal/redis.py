"""The journal on a Redis server: a stream for each run, and a script for each change.

Durability is the server's. When :meth:`RedisJournal.append` returns, the envelopes are in its memory. They outlive its
crash from the moment its append-only file is flushed: with ``appendonly yes`` and ``appendfsync always`` before it
answers, with ``everysec`` within a second; without an append-only file they are lost with the process. A replica that
is promoted may lack the last of them: ``min-replicas-to-write``, or WAIT by an operator, narrows that and does not
close it. For runs that must survive the server use PostgreSQL. A server that may evict keys is refused.

What costs what: an append is one exchange, four for the first batch of a run; a read or a snapshot is one. A list of
runs walks the narrowest of the lists by task, owner and tenant from its newest end and drops what does not match, so a
rare label or status costs a walk through that list: for a status one short question a run. No log is folded. An erased
run leaves two small keys. Waiting tails share one connection, and each change of the set of runs they wait for ends one
XREAD and begins another.

Needs Redis 7 and the extra ``redis``. Keys are laid out for a cluster; the client speaks to one server.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Collection, Coroutine, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Any, Final, TypeVar

from pydantic_core import from_json, to_json

from agents_progress.errors import Fenced, JournalClosed, JournalUnreadable, Sealed
from agents_progress.events import Envelope
from agents_progress.journal import rules
from agents_progress.journal.base import (
    EVERYTHING,
    Erased,
    Journal,
    Lease,
    Origin,
    Request,
    RunRow,
    Scope,
    one_run,
)
from agents_progress.journal.pauses import Pause, pause_text, stored_pause
from agents_progress.journal.redis_connections import LEFT_BEHIND, Address, Connections, marked
from agents_progress.journal.redis_control import Control
from agents_progress.journal.redis_keys import Keys, stored_envelope, stored_row
from agents_progress.journal.redis_lists import Lists
from agents_progress.journal.redis_scripts import READ, ROW, SNAPSHOT
from agents_progress.journal.redis_upkeep import Upkeep, milliseconds
from agents_progress.journal.redis_watch import Watch
from agents_progress.journal.redis_writer import Batch, Writer
from agents_progress.journal.tails import LOOK_S, asks
from agents_progress.journal.threads import outcome_of
from agents_progress.messages import Status

T = TypeVar("T")

PAGE: Final = 1000
"""Envelopes that a tail reads at once, at most."""
FARTHEST: Final = 10**13
"""A cursor beyond this is at the end of any log; numbers of the scripts stay exact."""


@dataclass(slots=True)
class _Open:
    """What one process has open."""

    connections: Connections
    writer: Writer
    watch: Watch
    lists: Lists
    upkeep: Upkeep
    control: Control


async def _ask(opened: _Open, question: Callable[..., Coroutine[Any, Any, T]], *arguments: Any) -> T:
    return await asyncio.wrap_future(opened.connections.ask(partial(question, *arguments)))


class RedisJournal(Journal):
    """A journal on the server behind ``url`` (``redis://`` or ``rediss://``), under keys that begin with ``prefix``.

    With ``create=False`` a server that holds no journal under this prefix is refused at first use.
    """

    gap_s = 0.02  # an append costs two changes of thread and an exchange, however little it stores

    def __init__(self, url: str, *, prefix: str = "agents-progress", create: bool = True) -> None:
        self._address = Address.of(url, prefix)
        self._keys = Keys(prefix)
        self._create = create
        self._open: _Open | None = None
        self._lock = Lock()
        self._closed = False

    def __repr__(self) -> str:
        return f"RedisJournal({self._address.shown!r}, prefix={self._address.prefix!r})"

    # Writing.

    async def append(
        self,
        envelopes: Sequence[Envelope],
        *,
        origin: Origin | None = None,
        claim: bool = False,
        lease: Lease | None = None,
    ) -> None:
        opened = self._opened()
        if not envelopes:
            return
        one_run(envelopes)
        await self._write(opened, Batch(list(envelopes), origin or Origin(), claim, lease))

    async def seal(self, run_id: str, *, lease: Lease | None = None) -> None:
        opened = self._opened()
        await _ask(opened, opened.upkeep.seal, run_id, lease)

    # Reading.

    async def read(
        self, run_id: str, after_seq: int = 0, limit: int = 1000, *, scope: Scope = EVERYTHING
    ) -> list[Envelope]:
        opened = self._opened()
        word, _, *rest = await _ask(opened, self._read, opened, run_id, after_seq, limit, scope)
        if word == b"erased" and scope == EVERYTHING:
            raise rules.erased(run_id)
        return self._parsed(rest[1]) if word == b"read" else []

    def tail(self, run_id: str, after_seq: int = 0, *, scope: Scope = EVERYTHING) -> AsyncIterator[Envelope]:
        return self._tail(run_id, after_seq, scope)

    async def _tail(self, run_id: str, after_seq: int, scope: Scope) -> AsyncGenerator[Envelope, None]:
        opened = self._opened()
        known = ended = False
        while not ended:
            try:
                page, known, ended = await _ask(opened, self._next_page, opened, run_id, after_seq, scope, known)
            except JournalClosed:
                return
            for envelope in page:
                yield envelope
            if page:
                after_seq = page[-1].seq

    async def runs(
        self,
        *,
        task_id: str | None = None,
        labels: Mapping[str, str] | None = None,
        status: Status | None = None,
        before: str | None = None,
        limit: int = 100,
        scope: Scope = EVERYTHING,
    ) -> list[RunRow]:
        opened, wanted = self._opened(), dict(labels or {})
        return await _ask(opened, opened.lists.newest_first, task_id, wanted, status, before, max(limit, 0), scope)

    async def newest(self, task_ids: Collection[str], *, scope: Scope = EVERYTHING) -> dict[str, str]:
        opened = self._opened()
        return await _ask(opened, opened.lists.newest, list(task_ids), scope)

    async def run(self, run_id: str, *, scope: Scope = EVERYTHING) -> RunRow | None:
        opened, keys, bounds = self._opened(), self._keys.of(run_id), (marked(scope.owner), marked(scope.tenant))
        word, *facts = await _ask(opened, opened.connections.call, ROW, keys, *bounds)
        if word == b"erased" and scope == EVERYTHING:
            raise rules.erased(run_id)
        return stored_row(run_id, facts) if word == b"row" else None

    async def touch(self, run_ids: Sequence[str]) -> None:
        opened = self._opened()
        await _ask(opened, opened.control.touch, list(run_ids))

    async def snapshot(self, run_id: str, *, scope: Scope = EVERYTHING) -> dict[str, Any] | None:
        opened, keys, bounds = self._opened(), self._keys.of(run_id), (marked(scope.owner), marked(scope.tenant))
        word, *found = await _ask(opened, opened.connections.call, SNAPSHOT, keys, *bounds)
        if word == b"erased" and scope == EVERYTHING:
            raise rules.erased(run_id)
        return from_json(found[0]) if found and found[0] else None

    # Ownership.

    async def lease(self, run_id: str, ttl: float, *, exclusive: str | None = None) -> Lease:
        opened = self._opened()
        return await _ask(opened, opened.upkeep.lease, run_id, ttl, exclusive)

    def renew(self, leases: Sequence[Lease], ttl: float) -> list[Lease]:
        return self._opened().upkeep.renew(leases, ttl)

    async def reserve(
        self,
        run_id: str,
        ttl: float,
        *,
        task_id: str | None = None,
        title: str | None = None,
        origin: Origin | None = None,
    ) -> None:
        first = rules.accepted(run_id, task_id, title)
        batch = Batch([first], origin or Origin(), claim=True, ttl_ms=milliseconds(ttl))
        try:
            await self._write(self._opened(), batch)
        except (Fenced, Sealed):  # it has an owner, or had one
            raise rules.exists(run_id) from None

    async def expire(self) -> list[str]:
        opened = self._opened()
        return await _ask(opened, opened.upkeep.expire)

    # Control.

    async def ask(self, request: Request, *, scope: Scope = EVERYTHING) -> Request:
        opened, text = self._opened(), rules.request_text(request)
        return await _ask(opened, opened.control.ask, request, text, scope)

    async def requests(self, run_ids: Collection[str]) -> list[Request]:
        opened, names = self._opened(), list(run_ids)
        return await _ask(opened, opened.control.requests, names) if names else []

    async def asks(self, owned: Callable[[], Collection[str]]) -> AsyncIterator[Request]:
        opened = self._opened()
        opened.connections.tell(opened.control.listen)
        async with aclosing(asks(self.requests, opened.control.bell, owned, LOOK_S)) as steps:
            async for request in steps:
                yield request

    # Pauses.

    async def keep_pause(self, pause: Pause, *, lease: Lease | None = None) -> None:
        opened, text = self._opened(), pause_text(pause)
        await _ask(opened, opened.control.keep_pause, pause.run_id, text, lease)

    async def pause(self, run_id: str, *, scope: Scope = EVERYTHING) -> Pause | None:
        opened = self._opened()
        text = await _ask(opened, opened.control.pause, run_id, scope)
        return None if text is None else stored_pause(run_id, text)

    async def pauses(self) -> list[str]:
        opened = self._opened()
        return await _ask(opened, opened.control.pauses)

    async def drop_pause(self, run_id: str) -> None:
        opened = self._opened()
        await _ask(opened, opened.control.drop_pause, run_id)

    # Retention.

    async def prune(self, run_id: str, upto_seq: int) -> int:
        opened = self._opened()
        return await _ask(opened, opened.upkeep.prune, run_id, upto_seq)

    async def keep_snapshot(self, run_id: str, snapshot: Mapping[str, Any]) -> None:
        opened, own = self._opened(), from_json(to_json(dict(snapshot)))
        await _ask(opened, opened.upkeep.keep_snapshot, run_id, own)

    async def erase(self, *, run_id: str | None = None, task_id: str | None = None, owner: str | None = None) -> Erased:
        opened = self._opened()
        rules.one_target(run_id, task_id, owner)
        return await _ask(opened, opened.upkeep.erase, run_id, task_id, owner)

    # Closing.

    @property
    def closed(self) -> bool:
        return self._closed

    async def close(self) -> None:
        with self._lock:
            opened, self._open, self._closed = self._open, None, True
        if opened is not None and opened.connections.pid == os.getpid():
            await asyncio.to_thread(opened.connections.close, opened.watch.close)

    def _opened(self) -> _Open:
        with self._lock:
            if self._closed:
                raise JournalClosed(f"the journal {self._address.shown} was closed; open it again")
            if self._open is not None and self._open.connections.pid != os.getpid():
                LEFT_BEHIND.append(self._open)
                self._open = None
            if self._open is None:
                connections = Connections(self._address, self._create)
                writer, watch = Writer(connections, self._keys), Watch(connections)
                lists, upkeep = Lists(connections, self._keys), Upkeep(connections, self._keys)
                control = Control(connections, self._keys, watch)
                self._open = _Open(connections, writer, watch, lists, upkeep, control)
            return self._open

    async def _write(self, opened: _Open, batch: Batch) -> None:
        opened.connections.tell(partial(opened.writer.put, batch))
        await outcome_of(batch.written)

    def _parsed(self, bodies: list[bytes]) -> list[Envelope]:
        return [stored_envelope(body, self._address.shown) for body in bodies]

    # In the thread of the connections.

    async def _read(self, opened: _Open, run_id: str, after_seq: int, limit: int, scope: Scope) -> list[Any]:
        after = min(max(after_seq, 0), FARTHEST)
        bounds = after, max(limit, 0), marked(scope.owner), marked(scope.tenant)
        answer: list[Any] = await opened.connections.call(READ, self._keys.of(run_id), *bounds)
        if answer[0] == b"pruned":
            raise rules.expired(run_id, answer[1], from_json(answer[2]))
        if answer[0] == b"damaged":
            raise JournalUnreadable(f"{self._address.shown} is damaged: envelopes of run {run_id} are missing")
        return answer

    async def _next_page(
        self, opened: _Open, run_id: str, after_seq: int, scope: Scope, known: bool
    ) -> tuple[list[Envelope], bool, bool]:
        """What a tail gives next, after waiting for it; whether its run is known to be there; whether that is all."""
        while True:
            word, seen, *rest = await self._read(opened, run_id, after_seq, PAGE, scope)
            if word == b"erased" and (known or scope == EVERYTHING):
                raise rules.erased(run_id)
            if word == b"none" and known:
                raise JournalUnreadable(f"{self._address.shown} was emptied; run {run_id} was there before")
            if word == b"read":
                known = True
                sealed, bodies = rest
                if bodies or sealed:
                    return self._parsed(bodies), known, bool(sealed)
            if opened.connections.closing:
                return [], known, True
            await opened.watch.changed(self._keys.of(run_id)[1], seen.decode())
