"""The response that writes one reader's event stream, as ASGI."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, Final, TypeAlias

from starlette.responses import Response
from starlette.types import Receive, Send
from starlette.types import Scope as Connection

from agents_progress import telemetry
from agents_progress.journal.base import EVERYTHING, Scope
from agents_progress.server.bodies import transport_of
from agents_progress.server.feeds import Ending, Hub, Reader
from agents_progress.server.frames import WRITE_BYTES, snapshot_frame
from agents_progress.sse import comment, encode

logger = logging.getLogger(__name__)

Again: TypeAlias = Callable[[], Awaitable[bool]]

HEADERS: Final = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-store, no-transform",  # compressing would hold frames back, too
    "x-accel-buffering": "no",
}
HEARTBEAT: Final = comment()


def retry_ms() -> int:
    """When to come back, in milliseconds: spread, so that readers who lost a server together return one by one."""
    return 1000 + secrets.randbelow(2000)


LAST_WORDS: Final[dict[Ending, Callable[[], bytes]]] = {
    Ending.SEALED: lambda: b"",
    Ending.ERASED: lambda: encode("{}", event="erased"),
    Ending.BYE: lambda: encode("{}", event="bye", retry_ms=retry_ms()),
    Ending.CLOSED: lambda: b"",
}
"""What a reader is told before its stream is closed. Envelopes never have an event name, so no log can forge these."""


class EventStream(Response):
    """What one reader sees of a run: the frames after its cursor, until the log is closed or the reader leaves.

    How it is put into bytes is said by :meth:`opening`, :meth:`said` and :meth:`closing`: here as it is.

    ``snapshot`` (:meth:`RunView.snapshot`) is sent first, and its ``seq`` is the cursor then. ``again`` is asked every
    ``again_s`` seconds whether the reader may still read: False closes the stream, and after an error or no answer in
    that time the reader is sent away to come back, since nobody said that it may not.
    After ``heartbeat_s`` without a frame a comment is sent. A reader that takes nothing for ``stall_s`` is cut off.
    All times are in seconds, and are kept to a tenth.
    """

    def __init__(
        self,
        hub: Hub,
        run_id: str,
        after_seq: int = 0,
        *,
        snapshot: dict[str, Any] | None = None,
        scope: Scope = EVERYTHING,
        again: Again | None = None,
        again_s: float = 60.0,
        heartbeat_s: float = 15.0,
        stall_s: float = 30.0,
    ) -> None:
        self.status_code = 200
        self.background = None
        self.init_headers(HEADERS)
        self.hub = hub
        self.run_id = run_id
        self.after_seq = snapshot["seq"] if snapshot else after_seq
        self.first = snapshot_frame(snapshot) if snapshot else b""
        self.read_scope = scope
        self.again = again
        self.again_s = again_s
        self.heartbeat_s = heartbeat_s
        self.stall_s = stall_s

    over = False
    """Whether the reader was told that there is no more, though the feed goes on."""

    def opening(self) -> bytes:
        """What is sent first."""
        first, self.first = self.first, b""  # it is large, and the stream may live long
        return b"retry: %d\n\n%b" % (retry_ms(), first)

    def said(self, frames: bytes) -> bytes:
        """What is sent of the next frames of the feed."""
        return frames

    def closing(self, ending: Ending | None) -> bytes:
        """What is sent last; None when the stream was ``over``."""
        return LAST_WORDS[ending]() if ending else b""

    async def __call__(self, scope: Connection, receive: Receive, send: Send) -> None:
        """Answer one request; returns when the stream is closed, whoever closed it."""
        start = {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
        if scope["method"] == "HEAD":
            await send(start)
            await send({"type": "http.response.body"})
            return
        with self.hub.reading(self.run_id, self.after_seq, scope=self.read_scope) as reader:
            await _Connection(self, reader, receive, send).serve(start)


class _Connection:
    """One reader's socket, as far as ASGI shows it.

    A timer looks after heartbeats, stalls and authorisation. A timer for each write would cost more than the write.
    """

    def __init__(self, stream: EventStream, reader: Reader, receive: Receive, send: Send) -> None:
        self._stream = stream
        self._reader = reader
        self._receive = receive
        self._send = send
        self._loop = asyncio.get_running_loop()
        self._sending = False
        self._moved_at = self._asked_at = self._loop.time()
        self._look_s = min(stream.heartbeat_s, stream.stall_s, stream.again_s) / 10
        self._stalled = False
        self._open: asyncio.Timeout | None = None
        self._asking: asyncio.Task[None] | None = None

    async def serve(self, start: dict[str, Any]) -> None:
        listening = asyncio.create_task(self._until_gone())
        self._timer = self._loop.call_later(self._look_s, self._look)
        try:
            async with asyncio.timeout(None) as self._open:
                _keep_nothing(self._receive)
                await self._write(start)
        except OSError:  # it left, or was let go (a TimeoutError)
            if self._stalled:
                self._stream.hub.counts.stalled += 1
                _abort(self._receive)
                await asyncio.wait({listening}, timeout=1.0)
        finally:
            self._open = None
            self._timer.cancel()
            listening.cancel()
            if self._asking is not None:
                self._asking.cancel()

    async def _write(self, start: dict[str, Any]) -> None:
        stream, reader = self._stream, self._reader
        await self._send(start)
        await self._put(stream.opening())
        while (ending := reader.ending) is None and not stream.over:
            if said := stream.said(await reader.take()):
                await self._put(said)
            elif self._loop.time() - self._moved_at >= stream.heartbeat_s:
                await self._put(HEARTBEAT)
            if reader.behind:  # a send need not wait for anything: let others come in, and a loss be heard
                await asyncio.sleep(0)
        await self._put(stream.closing(ending), more=False)

    async def _put(self, body: bytes, *, more: bool = True) -> None:
        """Send in pieces that a server may buffer for every reader there is."""
        for start in range(0, len(body) or 1, WRITE_BYTES):
            self._sending, self._moved_at = True, self._loop.time()
            piece, goes_on = body[start : start + WRITE_BYTES], more or start + WRITE_BYTES < len(body)
            await self._send({"type": "http.response.body", "body": piece, "more_body": goes_on})
        self._sending, self._moved_at = False, self._loop.time()

    async def _until_gone(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._let_go()

    def _let_go(self) -> None:
        """Stop writing now, also in the middle of a send."""
        if self._open is not None and not self._open.expired():
            self._open.reschedule(self._loop.time())

    def _look(self) -> None:
        now, stream = self._loop.time(), self._stream
        quiet_s = now - self._moved_at
        if self._sending and quiet_s >= stream.stall_s:
            self._stalled = True
            self._let_go()
        elif not self._sending and quiet_s >= stream.heartbeat_s:
            self._reader.nudge()
        if stream.again is not None and now - self._asked_at >= stream.again_s:
            self._asked_at = now
            self._asking = self._loop.create_task(self._ask(stream.again))
        self._timer = self._loop.call_later(self._look_s, self._look)

    async def _ask(self, again: Again) -> None:
        try:
            async with asyncio.timeout(self._stream.again_s * 0.9):
                ending = None if await again() else Ending.CLOSED
        except Exception as error:  # noqa: BLE001 - who cannot be asked has said neither yes nor no
            logger.warning(
                "a reader of run %s is sent away: authorising it again raised %s",
                self._stream.run_id,
                type(error).__name__,
                extra=telemetry.about(self._stream.run_id),
            )
            ending = Ending.BYE
        if ending is not None:
            self._reader.end(ending)


# The connection itself is needed twice. A server that merely closes waits for the reader to take the rest, which it
# does not; and one that keeps what was not taken has nothing to wait for once the last frame was handed over.


def _keep_nothing(receive: Receive) -> None:
    """Have every send wait until the system took what was sent before."""
    limit = getattr(transport_of(receive), "set_write_buffer_limits", None)
    if limit is not None:
        limit(high=0)


def _abort(receive: Receive) -> None:
    """Cut the connection off without sending what is left."""
    abort = getattr(transport_of(receive), "abort", None)
    if abort is not None:
        abort()
