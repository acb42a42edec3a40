"""The journal of many nodes: a PostgreSQL database, in which every promise holds between nodes as within one.

A run is a row, and whoever writes to it holds the row's lock until the commit; the right to write is checked under that
lock. Whatever gathered while the last commit ran goes into the next one. Leases run by the server's clock. Nothing is
opened at construction: connections belong to the process that first uses them, so a journal may be named at import and
the process forked afterwards.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import aclosing
from threading import Lock
from typing import Any, Final, TypeVar

from psycopg.rows import TupleRow
from pydantic_core import to_json

from agents_progress.errors import JournalClosed
from agents_progress.events import Envelope
from agents_progress.journal import postgres_pauses, rules
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
from agents_progress.journal.postgres_address import Address, Database
from agents_progress.journal.postgres_control import REQUESTS, TOUCH, ask
from agents_progress.journal.postgres_owning import FOR, HOLDERS, LEASE, LOST_AT_ONCE, RENEW, lose
from agents_progress.journal.postgres_pauses import PAUSE, PAUSES
from agents_progress.journal.postgres_process import Process
from agents_progress.journal.postgres_read import (
    BODIES,
    NEWEST,
    PRUNABLE,
    READ,
    RUN,
    SNAPSHOT,
    asked,
    envelope_of,
    listing,
    row_of,
    searchable,
)
from agents_progress.journal.postgres_schema import CHANNEL, maybe_plain, plain
from agents_progress.journal.postgres_write import (
    Batch,
    Log,
    lock,
    named,
    refuse_erased,
    store,
    write_gathered,
)
from agents_progress.journal.tails import LOOK_S, Page, asks, follow
from agents_progress.messages import Status

T = TypeVar("T")

_PRUNE: Final = "DELETE FROM progress_envelopes WHERE run = %s AND seq <= %s"
_KEEP: Final = (
    "INSERT INTO progress_snapshots AS kept VALUES (%s, %s, %s) "
    "ON CONFLICT (run) DO UPDATE SET seq = excluded.seq, body = excluded.body WHERE kept.seq < excluded.seq"
)
_TOMBSTONE: Final = (
    "UPDATE progress_runs SET begun = NULL, task_id = NULL, owner = NULL, tenant = NULL, labels = NULL, status = NULL, "
    "about = NULL, standing = NULL, started_at = NULL, updated_at = NULL, seq = 0, floor = 0, deadline = NULL, "
    f"exclusive = NULL, sealed = true, erased = true WHERE run = ANY(%s) RETURNING pg_notify('{CHANNEL}', run_id)"
)


class PostgresJournal(Journal):
    """A journal in a PostgreSQL database, for any number of nodes.

    ``url`` is a libpq URL; the tables are made in the first schema of its ``search_path``. With ``create=False`` a
    database without them is refused at first use. Works through PgBouncer in transaction mode, where tails poll.
    Have all nodes connect as one role: a node that froze while it sent its rows loses its locks to others of its role.
    """

    gap_s = 0.02  # a commit waits for the server's disk, however little it stores

    def __init__(self, url: str, *, create: bool = True) -> None:
        self._address = Address(url)
        self._create = create
        self._processes: list[Process] = []
        self._lock = Lock()
        self._closed = False

    def __repr__(self) -> str:
        return f"PostgresJournal({self._address.name!r})"

    @property
    def address(self) -> Address:
        """Where the database is."""
        return self._address

    # Writing.

    async def append(
        self,
        envelopes: Sequence[Envelope],
        *,
        origin: Origin | None = None,
        claim: bool = False,
        lease: Lease | None = None,
    ) -> None:
        process = self._process()
        if envelopes:
            named(one_run(envelopes))
            await process.run(process.link.write(Batch(list(envelopes), origin, claim, lease)))

    async def seal(self, run_id: str, *, lease: Lease | None = None) -> None:
        async def work(db: Database) -> None:
            log = await _known(db, run_id)
            if log.sealed and log.generation == (lease.generation if lease else 0):
                return
            rules.refuse_write(run_id, generation=log.generation, sealed=log.sealed, lease=lease)
            log.seal()
            await store(db, [log])

        await self._transact(work)

    # Reading.

    async def read(
        self, run_id: str, after_seq: int = 0, limit: int = 1000, *, scope: Scope = EVERYTHING
    ) -> list[Envelope]:
        return list((await self._page(run_id, after_seq, limit, scope)).envelopes)

    async def tail(self, run_id: str, after_seq: int = 0, *, scope: Scope = EVERYTHING) -> AsyncIterator[Envelope]:
        async def read(after: int, limit: int) -> Page:
            return await self._page(run_id, after, limit, scope)

        process = self._process()
        await process.run(process.link.listener.start())
        async with aclosing(follow(read, process.link.listener, run_id, after_seq)) as steps:
            async for envelope in steps:
                yield envelope

    async def _page(self, run_id: str, after_seq: int, limit: int, scope: Scope) -> Page:
        after = min(max(after_seq, 0), 2**62)
        lines = await self._ask(READ, {**asked(run_id, scope), "after": after, "limit": max(limit, 0)})
        if not lines:
            return Page()
        floor, sealed, erased, _ = lines[0]
        if erased:
            raise rules.erased(run_id)
        if after < floor:
            raise rules.expired(run_id, floor, await self.snapshot(run_id, scope=scope) or {})
        envelopes = [envelope_of(body, self._address.name) for *_, body in lines if body is not None]
        return Page(envelopes, known=True, sealed=sealed)

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
        filters = {"task_id": maybe_plain(task_id), "labels": searchable(labels) if labels else None, "status": status}
        wanted = {**asked("", scope), **filters, "before": maybe_plain(before), "limit": max(limit, 0)}
        lines = await self._ask(listing(wanted), wanted)
        if not lines and before is not None and await self.run(before, scope=scope) is None:
            raise rules.not_found(before)
        return [row_of(line) for line in lines]

    async def newest(self, task_ids: Collection[str], *, scope: Scope = EVERYTHING) -> dict[str, str]:
        lines = await self._ask(NEWEST, {**asked("", scope), "task_ids": [plain(task_id) for task_id in task_ids]})
        return {json.loads(about)["task_id"]: run_id for about, run_id in lines}

    async def run(self, run_id: str, *, scope: Scope = EVERYTHING) -> RunRow | None:
        for line in await self._ask(RUN, asked(run_id, scope)):
            if line[0]:
                raise rules.erased(run_id)
            return row_of(line)
        return None

    async def touch(self, run_ids: Sequence[str]) -> None:
        await self._ask(TOUCH, {"run_ids": [plain(run_id) for run_id in run_ids]})

    async def snapshot(self, run_id: str, *, scope: Scope = EVERYTHING) -> dict[str, Any] | None:
        lines = await self._ask(SNAPSHOT, asked(run_id, scope))
        if not lines:
            return None
        erased, body = lines[0]
        if erased:
            raise rules.erased(run_id)
        return None if body is None else json.loads(body)

    # Ownership.

    async def lease(self, run_id: str, ttl: float, *, exclusive: str | None = None) -> Lease:
        async def work(db: Database) -> Lease:
            log = (await lock(db, [run_id], make=[named(run_id)]))[run_id]
            refuse_erased(log)
            rules.refuse_lease(run_id, generation=log.generation, deadline=0.0 if log.held else None, sealed=log.sealed)
            if exclusive is not None:
                key = plain(exclusive)
                # Of two nodes that ask for one key, the second waits until the first has decided.
                await db.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (f"{CHANNEL} {key}",))
                if holder := await (await db.execute(HOLDERS, (key, log.run))).fetchone():
                    raise rules.held_elsewhere(exclusive, holder[0])
            answer = await (await db.execute(LEASE, (maybe_plain(exclusive), ttl, log.run))).fetchone()
            return Lease(run_id, answer[0] if answer else 0)

        return await self._transact(work)

    def renew(self, leases: Sequence[Lease], ttl: float) -> list[Lease]:
        asked = [lease.run_id for lease in leases], [lease.generation for lease in leases], ttl
        held = self._process().renew(RENEW, asked)
        return [lease for lease in leases if (lease.run_id, lease.generation) not in held]

    async def reserve(
        self,
        run_id: str,
        ttl: float,
        *,
        task_id: str | None = None,
        title: str | None = None,
        origin: Origin | None = None,
    ) -> None:
        async def work(db: Database) -> None:
            log = (await lock(db, [run_id], make=[named(run_id)]))[run_id]
            refuse_erased(log)
            if not log.unknown:
                raise rules.exists(run_id)
            log.add([rules.accepted(run_id, task_id, title)], origin)
            await store(db, [log])
            await db.execute(f"UPDATE progress_runs SET deadline = {FOR} WHERE run = %s", (ttl, log.run))

        await self._transact(work)

    async def expire(self) -> list[str]:
        ended: list[str] = []
        while True:
            late = await self._transact(lose)
            ended += [run_id for run_id, told in late if told]
            if len(late) < LOST_AT_ONCE:
                break
        process = self._process()
        await process.run(process.link.end_frozen())  # what they hold was passed over; the next look finds it
        return ended

    # Control.

    async def ask(self, request: Request, *, scope: Scope = EVERYTHING) -> Request:
        text = rules.request_text(request)
        return await self._transact(lambda db: ask(db, request, text, scope))

    async def requests(self, run_ids: Collection[str]) -> list[Request]:
        names = [plain(run_id) for run_id in run_ids]
        self._process()
        lines = await self._ask(REQUESTS, {"run_ids": names}) if names else []
        return [rules.stored_request(run_id, body) for run_id, body in lines]

    async def asks(self, owned: Callable[[], Collection[str]]) -> AsyncIterator[Request]:
        process = self._process()
        await process.run(process.link.listener.start())
        async with aclosing(asks(self.requests, process.link.listener, owned, LOOK_S)) as steps:
            async for request in steps:
                yield request

    # Pauses.

    async def keep_pause(self, pause: Pause, *, lease: Lease | None = None) -> None:
        text = pause_text(pause)
        await self._transact(lambda db: postgres_pauses.keep(db, pause.run_id, text, lease))

    async def pause(self, run_id: str, *, scope: Scope = EVERYTHING) -> Pause | None:
        for erased, text in await self._ask(PAUSE, asked(run_id, scope)):
            if erased:
                raise rules.erased(run_id)
            return None if text is None else stored_pause(run_id, text)
        return None

    async def pauses(self) -> list[str]:
        return [run_id for (run_id,) in await self._ask(PAUSES, {})]

    async def drop_pause(self, run_id: str) -> None:
        await self._transact(lambda db: postgres_pauses.drop(db, run_id))

    # Retention.

    async def prune(self, run_id: str, upto_seq: int) -> int:
        while True:
            lines = await self._ask(PRUNABLE, {"run_id": plain(run_id)})
            run, head, floor, erased, after, body = lines[0] if lines else (0, 0, 0, False, None, None)
            if erased:
                raise rules.erased(run_id)
            upto = min(upto_seq, head)
            if upto <= floor:
                return 0
            # What is stored under a number never changes, so the lock is not held while this takes its time.
            snapshot = None if (after or 0) >= upto else await self._folded(run_id, run, after or 0, upto, body)
            if snapshot is not None or (after or 0) >= upto:
                break

        async def work(db: Database) -> int:
            refuse_erased((await lock(db, [run_id])).get(run_id))
            if snapshot is not None:
                await db.execute(_KEEP, (run, upto, to_json(snapshot)))
            await db.execute("UPDATE progress_runs SET floor = greatest(floor, %s) WHERE run = %s", (upto, run))
            return (await db.execute(_PRUNE, (run, upto))).rowcount

        return await self._transact(work)

    async def _folded(self, run_id: str, run: int, after: int, upto: int, body: bytes | None) -> dict[str, Any] | None:
        """The snapshot of the view up to a sequence number; None when somebody else pruned meanwhile."""
        bodies = [body for (body,) in await self._ask(BODIES, {"run": run, "after": after, "upto": upto})]
        if len(bodies) != upto - after:
            return None
        snapshot: dict[str, Any] | None = None if body is None else json.loads(body)
        return await asyncio.to_thread(rules.folded, run_id, snapshot, bodies)

    async def keep_snapshot(self, run_id: str, snapshot: Mapping[str, Any]) -> None:
        async def work(db: Database) -> None:
            log = (await lock(db, [run_id])).get(run_id)
            refuse_erased(log)
            seq = rules.snapshot_seq(run_id, snapshot, log.head if log else 0)
            if log is not None:
                await db.execute(_KEEP, (log.run, seq, to_json(snapshot)))

        await self._transact(work)

    async def erase(self, *, run_id: str | None = None, task_id: str | None = None, owner: str | None = None) -> Erased:
        rules.one_target(run_id, task_id, owner)
        wanted = {"run_id": run_id, "task_id": task_id, "owner": owner}
        name, value = next((name, plain(value)) for name, value in wanted.items() if value is not None)

        async def work(db: Database) -> Erased:
            query = f"SELECT run FROM progress_runs WHERE {name} = %s AND NOT erased ORDER BY run_id FOR UPDATE"
            runs = [run for (run,) in await (await db.execute(query, (value,))).fetchall()]
            envelopes = await db.execute("DELETE FROM progress_envelopes WHERE run = ANY(%s)", (runs,))
            snapshots = await db.execute("DELETE FROM progress_snapshots WHERE run = ANY(%s)", (runs,))
            await db.execute(_TOMBSTONE, (runs,))
            return Erased(len(runs), envelopes.rowcount, snapshots.rowcount)

        return await self._transact(work)

    # Opening and closing.

    @property
    def closed(self) -> bool:
        return self._closed

    async def close(self) -> None:
        with self._lock:
            mine = [process for process in self._processes if process.pid == os.getpid()]
            closed, self._closed = self._closed, True
        for process in () if closed else mine:
            await process.close()

    def _process(self) -> Process:
        with self._lock:
            if self._closed:
                raise JournalClosed(f"the journal {self._address.name} was closed; open it again")
            if not self._processes or self._processes[-1].pid != os.getpid():
                self._processes.append(Process(self._address, self._create, write_gathered))
            return self._processes[-1]

    async def _ask(self, query: str, values: Mapping[str, Any]) -> list[TupleRow]:
        process = self._process()
        return await process.run(process.link.ask(query, values))

    async def _transact(self, work: Callable[[Database], Awaitable[T]]) -> T:
        process = self._process()
        return await process.run(process.link.transact(work))


async def _known(db: Database, run_id: str) -> Log:
    """A run that is there, locked."""
    log = (await lock(db, [run_id])).get(run_id)
    refuse_erased(log)
    if log is None:
        raise rules.not_found(run_id)
    return log
