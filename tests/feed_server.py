"""A server of runs for the tests of its clients: one log over event streams, as badly as a test wants it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

from agents_progress import sse
from agents_progress.events import Envelope
from agents_progress.testing.contract.logs import Log
from agents_progress.view import RunView

FEED = {"content-type": "text/event-stream"}


@dataclass
class Asked:
    """One request, and the connection it came on."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    body: bytes
    writer: asyncio.StreamWriter = field(repr=False)

    @property
    def cursor(self) -> int:
        return int(self.headers.get("last-event-id") or self.query.get("after_seq", ["0"])[0])

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
            await self.writer.drain()

    async def answer(self, status: int, value: object = None, **headers: str) -> None:
        body = b"" if value is None else json.dumps(value).encode()
        told = {"content-type": "application/json", "content-length": str(len(body)), **headers}
        await self.send(head(status, told) + body)

    async def refuse(self, status: int, code: str, message: str = "no", /, headers: Any = None, **facts: Any) -> None:
        await self.answer(status, {"error": {"code": code, "message": message, **facts}}, **(headers or {}))

    def cut(self) -> None:
        """The network breaks: nothing more is sent, and no end is said."""
        self.writer.transport.abort()


def head(status: int, headers: dict[str, str]) -> bytes:
    named = {"connection": "close", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return "\r\n".join([f"HTTP/1.1 {status} x", *(f"{k}: {v}" for k, v in named.items()), "", ""]).encode()


def frames(envelopes: Sequence[Envelope]) -> bytes:
    return b"".join(map(sse.encode_envelope, envelopes))


def snapshot_frame(view: RunView) -> bytes:
    return sse.encode(json.dumps(view.snapshot()), event="snapshot", id=str(view.seq))


def view_of(envelopes: Sequence[Envelope], run_id: str | None = None) -> RunView:
    view = RunView(run_id or envelopes[0].run_id)
    for envelope in envelopes:
        view.feed(envelope)
    return view


def chunked(body: bytes) -> bytes:
    """A body as one chunk, without the end that makes a cut one tell itself from a whole one."""
    return b"%x\r\n%b\r\n" % (len(body), body) if body else b""


Handle = Callable[[Asked], Awaitable[None]]


@dataclass
class FeedServer:
    """What is asked, in order, and where."""

    url: str
    asked: list[Asked]

    @property
    def cursors(self) -> list[int]:
        return [asked.cursor for asked in self.asked]


@asynccontextmanager
async def serving(handle: Handle, port: int = 0) -> AsyncIterator[FeedServer]:
    """Serve one request a connection until the block ends; a fault of ``handle`` is raised there."""
    found = FeedServer("", [])
    faults: list[BaseException] = []
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            asked = await _request(reader, writer)
            found.asked.append(asked)
            await handle(asked)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the client left
        except BaseException as error:
            if not isinstance(error, asyncio.CancelledError):
                faults.append(error)
        finally:
            tasks.discard(task)
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    found.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield found
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.wait_closed()
    if faults:
        raise faults[0]


async def _request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Asked:
    first, *lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
    method, target, _ = first.split(" ")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    parts = urlsplit(target)
    return Asked(method, parts.path, parse_qs(parts.query), headers, body, writer)


def story(run_id: str = "run-1", words: int = 20, outcome: str = "succeeded") -> list[Envelope]:
    """A whole run: text, a tool, an ending and its check."""
    log = Log(run_id).start().request("c1")
    log.say("tool.started", call_id="c1").say("tool.finished", call_id="c1")
    for number in range(words):
        log.say("text.delta", item_id="m", index=number, text=f"wort {number} 流\u2028 ")
    log.end(outcome)
    return (log.check() if outcome == "succeeded" else log).envelopes


def honest(envelopes: Sequence[Envelope], *, prelude: bytes = b"") -> Handle:
    """The whole of a closed log, as the protocol says."""

    async def handle(asked: Asked) -> None:
        rest = [envelope for envelope in envelopes if envelope.seq > asked.cursor]
        if asked.query.get("snapshot") == ["1"]:
            await asked.send(head(200, FEED), prelude, snapshot_frame(view_of(envelopes)))
        elif rest:
            await asked.send(head(200, FEED), prelude, frames(rest))
        else:
            await asked.answer(204)

    return handle


def in_turn(*handles: Handle) -> Handle:
    """Each request by the next of these, and the last by all that follow."""
    left = list(handles)

    async def handle(asked: Asked) -> None:
        await (left.pop(0) if len(left) > 1 else left[0])(asked)

    return handle


def row(**changed: Any) -> dict[str, Any]:
    """What a server says of a run."""
    return {
        "run_id": "run-1",
        "task_id": "run-1",
        "title": None,
        "status": "running",
        "message": "",
        "seq": 1,
        "started_at": "",
        "updated_at": "",
        "labels": {},
        "sealed": False,
        "last_event_age": 0.0,
        "continued_as": None,
        **changed,
    }
