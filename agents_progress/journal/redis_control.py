"""What is asked of owners, who reads their runs, and what paused ones leave behind, on Redis.

The requests of a run are one field of its hash, so that whichever release erases the run erases them too: a line each,
in the order in which they were asked. Beside them one stream for all runs wakes the owners; a request that was stored
by somebody who could not ring is found all the same, when they look.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from agents_progress.errors import JournalError
from agents_progress.journal import rules
from agents_progress.journal.base import EVERYTHING, Lease, Request, Scope
from agents_progress.journal.redis_connections import FAILURES, Connections, answered, marked
from agents_progress.journal.redis_keys import Keys, refuse, right
from agents_progress.journal.redis_scripts import ASK, KEEP_PAUSE, PAUSE, RING, TOUCH
from agents_progress.journal.redis_watch import PAUSE_S, Watch
from agents_progress.journal.tails import ASKED, Bell


class Control:
    """Belongs to the thread of its connections; only its bell is heard elsewhere."""

    def __init__(self, connections: Connections, keys: Keys, watch: Watch) -> None:
        self.bell = Bell()
        self._connections = connections
        self._keys = keys
        self._watch = watch
        self._listening: asyncio.Task[None] | None = None

    async def ask(self, request: Request, text: str, scope: Scope) -> Request:
        """See :meth:`Journal.ask`."""
        arguments = rules.opening(request.key), text, marked(scope.owner), marked(scope.tenant)
        word, *stored = await self._connections.call(ASK, self._keys.of(request.run_id), *arguments)
        if not stored:
            refuse("erased" if word == b"erased" and scope == EVERYTHING else "not_found", request.run_id)
        await self._connections.call(RING, [self._keys.asked])
        return rules.stored_request(request.run_id, stored[0])

    async def requests(self, run_ids: Sequence[str]) -> list[Request]:
        """See :meth:`Journal.requests`."""
        fields = await self._connections.send(*(("HGET", self._keys.of(run_id)[0], "requests") for run_id in run_ids))
        return [
            rules.stored_request(run_id, line)
            for run_id, lines in zip(run_ids, fields, strict=True)
            for line in (lines or b"").splitlines()
        ]

    async def keep_pause(self, run_id: str, text: str, lease: Lease | None) -> None:
        """See :meth:`Journal.keep_pause`."""
        await self._connections.send(("SADD", self._keys.pauses, run_id))
        (word,) = await self._connections.call(KEEP_PAUSE, self._keys.of(run_id), right(run_id, lease), text)
        if word != b"kept":
            refuse(word.decode(), run_id)

    async def pause(self, run_id: str, scope: Scope) -> bytes | None:
        """The text behind :meth:`Journal.pause`."""
        bounds = marked(scope.owner), marked(scope.tenant)
        word, *found = await self._connections.call(PAUSE, self._keys.of(run_id), *bounds)
        if word == b"erased" and scope == EVERYTHING:
            refuse("erased", run_id)
        return found[0] if found else None

    async def pauses(self) -> list[str]:
        """See :meth:`Journal.pauses`."""
        (names,) = await self._connections.send(("SMEMBERS", self._keys.pauses))
        run_ids = sorted(name.decode() for name in names)
        stored = await self._connections.send(*(("HEXISTS", self._keys.of(each)[0], "pause") for each in run_ids))
        return [run_id for run_id, holds in zip(run_ids, stored, strict=True) if holds]

    async def drop_pause(self, run_id: str) -> None:
        """See :meth:`Journal.drop_pause`."""
        await self._connections.send(("HDEL", self._keys.of(run_id)[0], "pause"))
        await self._connections.send(("SREM", self._keys.pauses, run_id))

    async def touch(self, run_ids: Sequence[str]) -> None:
        """See :meth:`Journal.touch`."""
        if run_ids:
            answered(await self._connections.call_all([(TOUCH, self._keys.of(run_id), ()) for run_id in run_ids]))

    def listen(self) -> None:
        """Ring the bell from now on whenever something is asked."""
        if self._listening is None:
            self._listening = asyncio.ensure_future(self._listen())

    async def _listen(self) -> None:
        while not self._connections.closing:
            try:
                (newest,) = await self._connections.send(("XREVRANGE", self._keys.asked, "+", "-", "COUNT", 1))
            except (*FAILURES, JournalError):
                await asyncio.sleep(PAUSE_S)
                continue
            self.bell.ring(ASKED)
            await self._watch.changed(self._keys.asked, newest[0][0].decode() if newest else "0-0")
        self.bell.ring_all()
