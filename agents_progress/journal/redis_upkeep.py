"""Who owns a run, and what is kept of it, on Redis: leases, losses, snapshots, pruning, erasing.

A run, an exclusive key and the list of deadlines lie in different places, so they change one after the other, in an
order that is safe to break off: a key is taken before its lease and outlives it, and a run is on the list of deadlines
before it has one.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from secrets import token_hex
from typing import Any

from pydantic_core import from_json, to_json

from agents_progress.errors import JournalUnreadable
from agents_progress.journal import rules
from agents_progress.journal.base import Erased, Lease, Origin
from agents_progress.journal.redis_connections import Connections
from agents_progress.journal.redis_keys import Keys, facts_of, first_row, refuse, right, stored_row
from agents_progress.journal.redis_scripts import (
    DUE,
    ERASE,
    FREE_KEY,
    KEEP,
    LEASE,
    LOSE,
    RENEW,
    ROW,
    SEAL,
    TAKE_KEY,
)


def milliseconds(ttl: float) -> int:
    """A time to live in the unit of the server, at least one."""
    return max(int(ttl * 1000), 1)


class Upkeep:
    """Everything but :meth:`renew` runs in the thread of the connections."""

    def __init__(self, connections: Connections, keys: Keys) -> None:
        self._connections = connections
        self._keys = keys

    # Ownership.

    async def lease(self, run_id: str, ttl: float, exclusive: str | None) -> Lease:
        """See :meth:`Journal.lease`."""
        claim, ttl_ms = f"{run_id}/{token_hex(16)}", milliseconds(ttl)
        key = None if exclusive is None else self._keys.exclusive(exclusive)
        holder = b"" if key is None else await self._connections.call(TAKE_KEY, [key], claim, ttl_ms)
        if holder:
            await self._refuse_lease(run_id)
            raise rules.held_elsewhere(exclusive or "", holder.decode().rpartition("/")[0])
        await self._connections.send(("ZADD", self._keys.due, "NX", 0, run_id))
        word, *held = await self._connections.call(LEASE, self._keys.of(run_id), ttl_ms, claim, key or "")
        if word != b"leased":
            if key is not None:
                await self._connections.call(FREE_KEY, [key], claim)
            refuse(word.decode(), run_id)
        generation, deadline = held
        await self._connections.send(("ZADD", self._keys.due, int(deadline), run_id))
        if key is not None:
            await self._connections.call(TAKE_KEY, [key], claim, ttl_ms)
        return Lease(run_id, generation)

    async def _refuse_lease(self, run_id: str) -> None:
        """What stands against the run itself is said first."""
        erased, sealed = await self._facts(run_id, "erased", "sealed")
        if erased or sealed:
            refuse("erased" if erased else "sealed", run_id)

    def renew(self, leases: Sequence[Lease], ttl: float) -> list[Lease]:
        """See :meth:`Journal.renew`."""
        ttl_ms, ask = milliseconds(ttl), self._connections.ask_blocking
        answers = ask([(RENEW, self._keys.of(lease.run_id), (lease.generation, ttl_ms)) for lease in leases])
        gone: set[Lease] = set()
        keyed: list[tuple[Lease, bytes, bytes]] = []
        sooner: list[Sequence[Any]] = []
        for lease, (word, *kept) in zip(leases, answers, strict=True):
            if word == b"gone":
                gone.add(lease)
                continue
            before, deadline, key, claim = kept
            if int(deadline) < int(before):
                sooner.append(("ZADD", self._keys.due, "LT", int(deadline), lease.run_id))
            if key:
                keyed.append((lease, key, claim))
        self._connections.send_blocking(sooner)
        holders = ask([(TAKE_KEY, [key], (claim, ttl_ms)) for _, key, claim in keyed])
        gone |= {lease for (lease, _, _), other in zip(keyed, holders, strict=True) if other}
        return [lease for lease in leases if lease in gone]

    async def seal(self, run_id: str, lease: Lease | None) -> None:
        """See :meth:`Journal.seal`."""
        word, *kept = await self._connections.call(SEAL, self._keys.of(run_id), right(run_id, lease))
        if word != b"done":
            refuse(word.decode(), run_id)
        await self._free(*kept)

    async def expire(self) -> list[str]:
        """See :meth:`Journal.expire`."""
        due = await self._connections.call(DUE, [self._keys.due])
        return [run_id.decode() for run_id in due if await self._lose(run_id.decode())]

    async def _lose(self, run_id: str) -> bool:
        """End a run whose deadline has passed; True when this call said that it is lost.

        A deadline that was moved goes back on the list as it stands in the run, and is looked at again: it may have
        been moved once more in between.
        """
        listed: bytes | None = None
        while True:
            head, generation, *stored = await self._facts(run_id, "head", "generation", "standing", "glance")
            base, ruled = int(head or 0), int(generation or 0)
            facts = facts_of(base, *stored)
            lost = rules.lost(run_id, base, ruled, facts.standing)
            arguments: list[Any] = [base, ruled, "", "", "", "", 0, ""]
            if lost is not None:
                after = facts.after([lost])
                row, born = (b"", 0) if base else (to_json(first_row(lost, Origin())), await self._announce(run_id))
                told = lost.occurred_at, lost.to_json(), row, born, after.glance_text or ""
                arguments[2:] = [after.standing_text, *told]
            word, *more = await self._connections.call(LOSE, self._keys.of(run_id), *arguments)
            if word == b"live":
                if more[0] == listed:
                    return False
                listed = more[0]
                await self._connections.send(("ZADD", self._keys.due, int(more[0]), run_id))
            elif word != b"moved":
                await self._connections.send(("ZREM", self._keys.due, run_id))
                return bool(word == b"lost" and lost is not None)

    async def _announce(self, run_id: str) -> int:
        """A place in the lists for a run that has nothing but a lease that ran out."""
        (born,) = await self._connections.send(("INCR", self._keys.born))
        indexes = self._keys.indexes(run_id, Origin())
        await self._connections.send(*(("ZADD", index, "NX", born, run_id) for index in indexes))
        return int(born)

    # Retention.

    async def prune(self, run_id: str, upto_seq: int) -> int:
        """See :meth:`Journal.prune`."""
        erased, head, floor, snapshot = await self._facts(run_id, "erased", "head", "floor", "snapshot")
        if erased:
            raise rules.erased(run_id)
        upto = min(upto_seq, int(head or 0))
        if upto <= int(floor or 0):
            return 0
        kept: dict[str, Any] | None = from_json(snapshot) if snapshot else None
        if kept is None or kept["seq"] < upto:
            after = kept["seq"] if kept else 0
            bodies = [body async for body in self._bodies(run_id, after, upto)]
            kept = await asyncio.to_thread(rules.folded, run_id, kept, bodies)
            if kept["seq"] != upto:
                if await self._facts(run_id, "erased", "floor") == [erased, floor]:
                    raise JournalUnreadable(f"{self._connections.address.shown} is damaged in run {run_id}")
                return await self.prune(run_id, upto_seq)  # somebody else did in between
        return await self.keep(run_id, upto, kept)

    async def _bodies(self, run_id: str, after: int, upto: int) -> AsyncIterator[bytes]:
        stream = self._keys.of(run_id)[1]
        while after < upto:
            (page,) = await self._connections.send(("XRANGE", stream, f"{after + 1}-0", f"{upto}-0", "COUNT", 1000))
            if not page:
                return
            for _, fields in page:
                yield fields[b"e"]
            after = int(page[-1][0].partition(b"-")[0])

    async def keep_snapshot(self, run_id: str, snapshot: Mapping[str, Any]) -> None:
        """See :meth:`Journal.keep_snapshot`."""
        erased, head = await self._facts(run_id, "erased", "head")
        if erased:
            raise rules.erased(run_id)
        rules.snapshot_seq(run_id, snapshot, int(head or 0))
        if head:
            await self.keep(run_id, 0, snapshot)

    async def keep(self, run_id: str, upto: int, snapshot: Mapping[str, Any]) -> int:
        """Store a snapshot, and remove what it replaces; how many envelopes were removed."""
        arguments = upto, snapshot["seq"], to_json(dict(snapshot))
        word, *removed = await self._connections.call(KEEP, self._keys.of(run_id), *arguments)
        if word != b"kept":
            refuse(word.decode(), run_id)
        return int(removed[0])

    async def erase(self, run_id: str | None, task_id: str | None, owner: str | None) -> Erased:
        """See :meth:`Journal.erase`."""
        names = [run_id] if run_id is not None else await self._listed(self._keys.index(task_id=task_id, owner=owner))
        total = Erased()
        for name in names:
            word, *told = await self._connections.call(ROW, self._keys.of(name), "", "")
            row = stored_row(name, told) if word == b"row" else None
            if row is not None and (task_id not in {None, row.task_id} or owner not in {None, row.origin.owner}):
                continue  # somebody else's, whose claim was the first
            if row is None and run_id is None:
                await self._connections.send(("ZREM", self._keys.index(task_id=task_id, owner=owner), name))
                continue
            word, *counts = await self._connections.call(ERASE, self._keys.of(name))
            indexes = self._keys.indexes(row.task_id, row.origin) if row else []
            await self._connections.send(*(("ZREM", index, name) for index in (*indexes, self._keys.due)))
            if word == b"erased":
                runs, envelopes, snapshots, *kept = counts
                await self._free(*kept)
                total = Erased(total.runs + runs, total.envelopes + envelopes, total.snapshots + snapshots)
        return total

    async def _listed(self, index: str) -> list[str]:
        (names,) = await self._connections.send(("ZRANGE", index, 0, -1))
        return [name.decode() for name in names]

    async def _free(self, key: bytes | None = None, claim: bytes | None = None) -> None:
        if key and claim:
            await self._connections.call(FREE_KEY, [key.decode()], claim)

    async def _facts(self, run_id: str, *names: str) -> list[Any]:
        (values,) = await self._connections.send(("HMGET", self._keys.of(run_id)[0], *names))
        return list(values)
