"""Appending to Redis: what gathered while the last exchange ran goes into the next one, one batch of each run.

Everything that decides about a batch happens in one script on the server. Only where the run stands is worked out
here, from where it stood: remembered from the last append, or asked for when another process wrote in between.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from itertools import islice
from secrets import token_hex
from typing import Any, Final

from pydantic_core import to_json

from agents_progress.events import Envelope
from agents_progress.journal.base import Lease, Origin, fresh
from agents_progress.journal.facts import Facts
from agents_progress.journal.redis_connections import FAILURES, Connections, marked
from agents_progress.journal.redis_keys import Keys, facts_of, first_row, refuse, right, stored_envelope
from agents_progress.journal.redis_scripts import APPEND

TOGETHER: Final = 64
"""Batches of different runs in one exchange, at most."""
REMEMBERED: Final = 4096
"""Runs of which it is remembered where they stand."""


@dataclass(slots=True)
class Batch:
    """What somebody waits for. ``ttl_ms`` makes it a reservation."""

    envelopes: Sequence[Envelope]
    origin: Origin
    claim: bool
    lease: Lease | None = None
    ttl_ms: int | None = None
    written: Future[None] = field(default_factory=Future)
    token: str = ""
    born: int = 0
    base: int = 0
    facts: Facts = field(default_factory=Facts)
    bodies: list[bytes] = field(default_factory=list)

    def __post_init__(self) -> None:
        # A claim that is sent twice, because the connection broke, must not take itself for somebody else's.
        self.token = token_hex(16) if self.claim else ""

    @property
    def run_id(self) -> str:
        return self.envelopes[0].run_id

    @property
    def begins(self) -> bool:
        return self.envelopes[0].seq == 1

    def stand(self, base: int, facts: Facts) -> None:
        """Work out the facts after this batch from those at ``base``. Raises for a batch that has none."""
        first, last = self.envelopes[0].seq, self.envelopes[-1].seq
        self.base, self.facts = base, facts
        if first - 1 <= base < last:  # or else the script will say where the log ends, or refuse
            self.facts = facts.after(self.envelopes[base + 1 - first :])

    def arguments(self) -> list[Any]:
        first, last = self.envelopes[0], self.envelopes[-1]
        rest: list[Any] = ["", "", "", 0]
        if self.begins:
            row = to_json(first_row(first, self.origin))
            rest = [row, marked(self.origin.owner), marked(self.origin.tenant), self.born]
        ttl = "" if self.ttl_ms is None else self.ttl_ms
        lease = right(self.run_id, self.lease)
        head = [lease, self.token, first.seq, self.base, self.facts.standing_text, last.occurred_at]
        return [*head, *rest, ttl, self.facts.glance_text or "", *self.bodies]


class Writer:
    """Belongs to the thread of its connections; :meth:`put` is called there."""

    def __init__(self, connections: Connections, keys: Keys) -> None:
        self._connections = connections
        self._keys = keys
        self._pending: deque[Batch] = deque()
        self._draining: asyncio.Task[None] | None = None
        self._stood: dict[str, tuple[int, Facts]] = {}

    def put(self, batch: Batch) -> None:
        """Take in a batch; its future says when it is stored."""
        self._pending.append(batch)
        if self._draining is None:
            self._draining = asyncio.ensure_future(self._drain())

    async def _drain(self) -> None:
        try:
            while self._pending:
                await self._settle(self._next())
        finally:
            self._draining = None

    def _next(self) -> list[Batch]:
        """The oldest batch of each run: the next one of a run depends on how this one ends."""
        taken: dict[str, Batch] = {}
        later: deque[Batch] = deque()
        while self._pending and len(taken) < TOGETHER:
            batch = self._pending.popleft()
            if batch.run_id in taken:
                later.append(batch)
            else:
                taken[batch.run_id] = batch
        self._pending.extendleft(reversed(later))
        return list(taken.values())

    async def _settle(self, batches: list[Batch]) -> None:
        try:
            await self._connections.opened()
            await self._store([batch for batch in batches if self._prepared(batch)])
        except BaseException as error:  # noqa: BLE001 - whatever happens in this thread belongs to the callers
            self._fail(batches, error)

    def _fail(self, batches: list[Batch], error: BaseException) -> None:
        if isinstance(error, FAILURES):
            error = self._connections.address.refusal(error)
        for batch in batches:
            if not batch.written.done():
                batch.written.set_exception(error)

    def _prepared(self, batch: Batch) -> bool:
        """Whatever is wrong with a batch shows here, before anything of it is written."""
        try:
            batch.bodies = [envelope.to_json() for envelope in batch.envelopes]
            batch.stand(*self._stood.get(batch.run_id, (0, Facts())))
        except Exception as error:  # noqa: BLE001 - this batch only
            batch.written.set_exception(error)
            return False
        return True

    async def _store(self, batches: list[Batch]) -> None:
        await self._announce([batch for batch in batches if batch.begins and not batch.base])
        while batches:
            calls = [(APPEND, self._keys.of(batch.run_id), batch.arguments()) for batch in batches]
            answers = await self._connections.call_all(calls)
            again = []
            for batch, answer in zip(batches, answers, strict=True):
                try:
                    if await self._unsettled(batch, answer):
                        again.append(batch)
                except Exception as refused:  # noqa: BLE001 - this batch only
                    self._fail([batch], refused)
            batches = again

    async def _announce(self, beginnings: list[Batch]) -> None:
        """Give each run that begins its place in the lists before it exists, so that none can be missing there."""
        if not beginnings:
            return
        (newest,) = await self._connections.send(("INCRBY", self._keys.born, len(beginnings)))
        commands: list[Sequence[Any]] = []
        for born, batch in enumerate(beginnings, newest - len(beginnings) + 1):
            batch.born = born
            commands += self._listing(batch, born, "NX")
            if batch.ttl_ms is not None:
                commands.append(("ZADD", self._keys.due, "NX", 0, batch.run_id))
        await self._connections.send(*commands)

    def _listing(self, batch: Batch, born: int, *options: str) -> list[Sequence[Any]]:
        task_id = batch.envelopes[0].payload.get("task_id", batch.run_id)
        return [("ZADD", index, *options, born, batch.run_id) for index in self._keys.indexes(task_id, batch.origin)]

    async def _unsettled(self, batch: Batch, answer: Any) -> bool:
        """Take in what the script said of a batch. True when it must be asked again."""
        if isinstance(answer, Exception):
            raise answer
        word, *rest = answer
        match word.decode():
            case "stored":
                self._remember(batch)
                await self._list(batch, *rest)
            case "known":
                pass
            case "head":
                batch.stand(rest[0], facts_of(*rest))
                return True
            case "gap":
                fresh(batch.envelopes, rest[0], lambda after, upto: [], False)
            case "differs":
                return await self._compared(batch, *rest)
            case refusal:
                refuse(refusal, batch.run_id)
        batch.written.set_result(None)
        return False

    def _remember(self, batch: Batch) -> None:
        self._stood.pop(batch.run_id, None)
        self._stood[batch.run_id] = batch.envelopes[-1].seq, batch.facts
        if len(self._stood) > 2 * REMEMBERED:
            self._stood = dict(islice(self._stood.items(), REMEMBERED, None))

    async def _list(self, batch: Batch, born: bytes | None = None, deadline: bytes | None = None) -> None:
        """The place of a new run among the others is that of its own beginning, not of one that was refused."""
        if batch.begins and born is not None and batch.born:
            commands = self._listing(batch, int(born))
            if deadline is not None:
                commands.append(("ZADD", self._keys.due, int(deadline), batch.run_id))
            await self._connections.send(*commands)

    async def _compared(self, batch: Batch, head: int, floor: int) -> bool:
        """Stored bytes differ; the content may be the same, with its keys in another order."""
        first = batch.envelopes[0].seq
        kept, upto = max(first - 1, floor), min(head, batch.envelopes[-1].seq)
        stream = self._keys.of(batch.run_id)[1]
        (entries,) = await self._connections.send(("XRANGE", stream, f"{kept + 1}-0", f"{upto}-0"))
        shown = self._connections.address.shown
        stored = [stored_envelope(fields[b"e"], shown) for _, fields in entries]
        rest = fresh(batch.envelopes, head, lambda after, upto: stored, False, floor)
        if not rest:
            batch.written.set_result(None)
            return False
        batch.envelopes, batch.bodies = rest, batch.bodies[-len(rest) :]
        batch.stand(0, Facts())
        return True
