"""What the thread of a PostgreSQL journal holds: a writing, a reading and a listening connection.

A connection that broke is made anew at its next use. What was under way then fails by name and is not repeated: whether
a commit that got no answer was made, only its caller can find out, by appending the same again.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, TypeVar

import psycopg
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow

from agents_progress.errors import JournalError
from agents_progress.journal.postgres_address import BEGIN, FROZEN_S, Address, Database
from agents_progress.journal.postgres_listen import Listener
from agents_progress.journal.postgres_schema import prepare

T = TypeVar("T")
WriteGathered: TypeAlias = Callable[[Database, Sequence[Any]], Awaitable[dict[int, Exception]]]
Role: TypeAlias = Literal["writer", "reader"]

IDLE: Final = TransactionStatus.IDLE

# The server itself ends a transaction whose client is silent between two statements, and none whose client is silent in
# the middle of one: of a COPY, or with an answer that it does not take. Others of the same role may.
_END_FROZEN: Final = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity frozen
WHERE datname = current_database() AND pg_has_role(usesysid, 'USAGE')
    AND state <> 'idle' AND wait_event IN ('ClientRead', 'ClientWrite')
    AND state_change < clock_timestamp() - make_interval(secs => %(silent)s)
    AND EXISTS (
        SELECT FROM pg_locks WHERE pid = frozen.pid
        AND relation = 'progress_runs'::regclass AND mode IN ('RowShareLock', 'RowExclusiveLock')
    )
"""


@dataclass(slots=True)
class Waiting:
    """Something to write, and the future of whoever waits for it."""

    what: Any
    written: asyncio.Future[None]


class Link:
    """The connections of one process, used in one event loop. ``write_gathered`` stores a group of batches in one
    transaction, and says by place which it refused.
    """

    def __init__(self, address: Address, create: bool, write_gathered: WriteGathered) -> None:
        self.address = address
        self.listener = Listener(address, self.ask)
        self._create = create
        self._write_gathered = write_gathered
        self._connections: dict[Role, Database] = {}
        self._locks: dict[Role, asyncio.Lock] = {"writer": asyncio.Lock(), "reader": asyncio.Lock()}
        self._queue: deque[Waiting] = deque()
        self._writing: asyncio.Task[None] | None = None

    # Writing.

    async def write(self, batch: Any) -> None:
        """Store a batch with whatever else gathered."""
        waiting = Waiting(batch, asyncio.get_running_loop().create_future())
        self._queue.append(waiting)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())
        await waiting.written

    async def _write_all(self) -> None:
        try:
            while self._queue:
                group = [self._queue.popleft() for _ in range(len(self._queue))]
                await self._write_group(group)
        finally:
            self._writing = None

    async def _write_group(self, group: Sequence[Waiting]) -> None:
        failures: dict[int, Exception] = {}
        try:
            failures = await self.transact(lambda db: self._write_gathered(db, [waiting.what for waiting in group]))
        except Exception as error:  # noqa: BLE001 - whatever happens in this task belongs to the callers
            failures = dict.fromkeys(range(len(group)), error)
        except BaseException:
            for waiting in group:
                waiting.written.cancel()
            raise
        for place, waiting in enumerate(group):
            if waiting.written.done():
                continue
            if place in failures:
                waiting.written.set_exception(failures[place])
                waiting.written.exception()  # its caller may have left
            else:
                waiting.written.set_result(None)

    async def transact(self, work: Callable[[Database], Awaitable[T]]) -> T:
        """What something gives inside a transaction, which an exception undoes. Tried again, once, when somebody held a
        lock for so long that they may be frozen.
        """
        async with self._locks["writer"]:
            with self.address.translated():
                try:
                    return await self._attempt(work)
                except psycopg.errors.LockNotAvailable:
                    await self.end_frozen()
                    return await self._attempt(work)

    async def _attempt(self, work: Callable[[Database], Awaitable[T]]) -> T:
        db = await self._begun()
        try:
            answer = await work(db)
            await db.execute("COMMIT")
        except BaseException as error:
            await _undo(db, error)
            raise
        return answer

    async def _begun(self) -> Database:
        """A connection that was lost while it idled is replaced: nothing was under way on it."""
        db = await self._connection("writer")
        try:
            await db.execute(BEGIN)
        except psycopg.OperationalError:
            db = await self._connection("writer")
            await db.execute(BEGIN)
        return db

    async def end_frozen(self) -> None:
        """Take their locks from those who froze in the middle of a statement, where the server lets us."""
        with suppress(JournalError):
            await self.ask(_END_FROZEN, {"silent": FROZEN_S})

    # Reading.

    async def ask(self, query: str, values: Mapping[str, Any]) -> list[TupleRow]:
        """The answer to a query over the reading connection; asked again, once, when the connection was lost."""
        async with self._locks["reader"]:
            with self.address.translated():
                db = await self._connection("reader")
                try:
                    return await _answer(db, query, values)
                except psycopg.OperationalError:
                    if not db.closed:
                        raise
                    return await _answer(await self._connection("reader"), query, values)

    async def _connection(self, role: Role) -> Database:
        db = self._connections.get(role)
        if db is not None and db.info.transaction_status != IDLE:
            await db.close()  # whoever used it was cancelled in the middle
        if db is None or db.closed:
            db = await self.address.connect()
            if role == "writer":
                db.cursor_factory = psycopg.AsyncClientCursor  # as for a thread
            try:
                await prepare(db, self.address.name, create=self._create)
            except BaseException:
                await db.close()
                raise
            self._connections[role] = db
        return db

    # Closing.

    async def close(self) -> None:
        """Finish what was asked for, then end the tails and let go."""
        while self._writing is not None:
            await asyncio.wait([self._writing])
        await self.listener.close()
        for role, lock in self._locks.items():
            async with lock:
                if role in self._connections:
                    await self._connections.pop(role).close()


async def _answer(db: Database, query: str, values: Mapping[str, Any]) -> list[TupleRow]:
    return await (await db.execute(query, values, binary=True)).fetchall()


async def _undo(db: Database, error: BaseException) -> None:
    """Roll back; a connection in an uncertain state is closed, which rolls back too."""
    with suppress(psycopg.Error):
        if isinstance(error, Exception) and not db.closed:
            await db.execute("ROLLBACK")
            return
    await db.close()
