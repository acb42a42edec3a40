"""The feed of one run, over as many connections as it takes: every envelope once and in order, to the end of the log.

A connection that ends says nothing about the run. Only an answer 204 does: the log is closed and all of it was given.
What does not come in order (a hole, an envelope that cannot be read or is of another run) is asked for once more, and
then replaced by a snapshot.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager
from typing import Final

from pydantic_core import from_json

from agents_progress.client.link import Link, least_wait_s
from agents_progress.client.pace import Pace
from agents_progress.errors import BadSnapshot, ProtocolError, Refused, RunErased, Unreachable
from agents_progress.events import Envelope, check_payload, is_known, parse_envelope, parse_known
from agents_progress.messages import Language
from agents_progress.sse import Decoder, Frame
from agents_progress.view import RunView

_SILENT_HEARTBEATS: Final = 2
"""A connection that was silent for so many heartbeats is dead."""

_log = logging.getLogger(__name__)


class _OutOfOrder(Exception):
    """What came cannot follow what was given."""


class Feed:
    """One run, read from a cursor on. ``snapshot_first`` begins with what the server knows, as a view."""

    def __init__(
        self,
        link: Link,
        path: str,
        run_id: str,
        after_seq: int = 0,
        *,
        patience: float | None,
        heartbeat_s: float,
        language: Language = "en",
        snapshot_first: bool = False,
    ) -> None:
        self._link = link
        self._path = path
        self._run_id = run_id
        self._cursor = after_seq
        self._pace = Pace(patience)
        self._heartbeat_s = heartbeat_s
        self._language: Language = language
        self._want_snapshot = snapshot_first
        self._asked_again = False
        self._events = {"message": self._envelope, "snapshot": self._snapshot, "erased": self._erased}
        """The frames that say something, by name. A farewell is followed by the end of the connection anyway."""

    async def items(self) -> AsyncGenerator[Envelope | RunView, None]:
        """Envelopes, each checked against its type where that is known here, and in place of what cannot be had a view
        that replaces them.

        Raises :exc:`Unreachable` when patience is over, :exc:`Refused`, :exc:`RunErased`, and :exc:`BadSnapshot` for
        one that this version cannot read.
        """
        while True:
            before, fault = self._cursor, None
            try:
                async with self._connection() as chunks:
                    if chunks is None:
                        return
                    decoder, opened = Decoder(), time.monotonic()
                    async for chunk in chunks:
                        for item in self._taken(decoder, chunk):
                            yield item
                        if time.monotonic() - opened > self._heartbeat_s:
                            self._pace.progress()  # a quiet run on a connection that works
            except (Refused, Unreachable, ProtocolError, _OutOfOrder) as error:
                fault = error
            if fault is not None or self._cursor == before:
                await self._wait(fault)

    def _connection(self) -> AbstractAsyncContextManager[AsyncIterator[bytes] | None]:
        query = {"snapshot": "1"} if self._want_snapshot else {}
        headers = {"Last-Event-ID": str(self._cursor)} if self._cursor else {}
        silence_s = self._heartbeat_s * _SILENT_HEARTBEATS
        return self._link.feed(self._path, headers, query, silence_s)

    async def _wait(self, fault: Exception | None) -> None:
        """Until the next connection, or raise what makes another one useless."""
        if isinstance(fault, BadSnapshot):
            raise fault
        least_s = least_wait_s(fault) if isinstance(fault, Refused | Unreachable) else None
        if isinstance(fault, ProtocolError | _OutOfOrder):
            self._want_snapshot = self._want_snapshot or self._asked_again
            self._asked_again = True
        wait = self._pace.failed(least_s)
        told = fault or "it was closed"
        if wait is None:
            raise Unreachable(
                f"run {self._run_id} does not go on after {self._cursor} ({told}); ask again from there later"
            ) from fault
        if fault is not None and self._pace.failures == 1:
            _log.warning("the feed of run %s stopped after %d (%s); trying again", self._run_id, self._cursor, told)
        await asyncio.sleep(wait)

    def _taken(self, decoder: Decoder, chunk: bytes) -> Iterator[Envelope | RunView]:
        frames = decoder.feed(chunk)
        if decoder.retry_ms is not None:
            self._pace.first_s = decoder.retry_ms / 1000
        for frame in frames:
            take = self._events.get(frame.event)
            item = None if take is None else take(frame)
            if item is not None:
                yield item

    def _envelope(self, frame: Frame) -> Envelope | None:
        envelope = parse_known(frame.data)
        if envelope is None:
            envelope = parse_envelope(frame.data)
            if is_known(envelope.type):
                check_payload(envelope)
        if envelope.run_id != self._run_id:
            raise _OutOfOrder("an envelope of another run came")
        if envelope.seq <= self._cursor:
            return None
        if envelope.seq != self._cursor + 1:
            raise _OutOfOrder(f"{envelope.seq} came next")
        self._reached(envelope.seq)
        return envelope

    def _snapshot(self, frame: Frame) -> RunView:
        try:
            view = RunView.from_snapshot(from_json(frame.data, allow_inf_nan=False), self._language)
        except ValueError as error:
            raise BadSnapshot("the server sent a snapshot that this release cannot read; update it") from error
        leads_on = view.seq > self._cursor or (view.seq == self._cursor and not self._asked_again)
        if view.run_id != self._run_id or not leads_on:
            raise _OutOfOrder("a snapshot came that does not lead on")
        self._want_snapshot = False
        self._reached(view.seq)
        return view

    def _erased(self, frame: Frame) -> None:
        raise RunErased(f"run {self._run_id} was erased; only that it existed is known")

    def _reached(self, seq: int) -> None:
        self._cursor = seq
        self._asked_again = False
        self._pace.progress()
