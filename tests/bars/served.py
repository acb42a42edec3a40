"""A server process of a bar's own, uvicorn as it is installed, and the raw sockets that read from it.

The process serves one function: a run that says a word again and again. It tells its port, answers every line of its
input with its counts, and ends with its input. It is run as `python -m tests.bars.served JSON`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

from agents import Agent, Runner, RunResultStreaming, set_tracing_disabled

from agents_progress.client import Client
from agents_progress.journal import open_journal

from .million import WORD, Endless

HOST: Final = "127.0.0.1"
ROOT: Final = Path(__file__).parents[2]
READ_BYTES: Final = 2**16
CROWDS: Final = {"readers": 100_000, "readers_per_owner": 100_000}
"""A bar brings more readers than one owner may have."""


# The server's process.


async def serve(url: str, limits: dict[str, Any]) -> None:
    import uvicorn

    from agents_progress import progress
    from agents_progress.server import Principal, runs_app
    from agents_progress.server.limits import Limits

    @progress(coalesce=None)
    def work(deltas: int, word: str = WORD, rate: float = 0.0) -> RunResultStreaming:
        return Runner.run_streamed(Agent(name="A", model=Endless(deltas, word, rate)), "go")

    journal = open_journal(url)
    app = runs_app(journal, lambda *asked: Principal("bar"), functions=[work], limits=Limits(**(CROWDS | limits)))
    config = uvicorn.Config(
        app, host=HOST, port=0, lifespan="on", log_level="warning", backlog=4096, timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    say({"port": server.servers[0].sockets[0].getsockname()[1]})
    hub = app.state.service.hub
    while await asyncio.to_thread(sys.stdin.readline):
        counts = {"stalled": hub.counts.stalled, "lags": hub.counts.lags, "reading": hub.readers()}
        say(counts | {"connections": len(server.server_state.connections), "cpu": time.process_time()})
    server.should_exit = True
    await serving
    await journal.close()


def say(facts: dict[str, Any]) -> None:
    print(json.dumps(facts), flush=True)


class Served:
    """The process, as the bar has it: ``with Served(url) as server: ...`` starts and ends it."""

    def __init__(self, url: str, **limits: Any) -> None:
        about = json.dumps({"url": url, "limits": limits})
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.bars.served", about],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def __enter__(self) -> Self:
        self.port: int = self._told()["port"]
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        try:
            self._process.communicate(timeout=20)
        finally:
            self._process.kill()
            self._process.wait()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    async def counts(self) -> dict[str, Any]:
        """What befell its readers so far, its open connections, and the seconds of a core it took."""
        assert self._process.stdin
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return await asyncio.to_thread(self._told)

    async def start(self, deltas: int, word: str = WORD, rate: float = 0.0) -> str:
        """Start a run of so many words, so many a second, or as fast as it can; gives its id."""
        async with Client(self.url) as client:
            row = await client.start(arguments={"deltas": deltas, "word": word, "rate": rate})
        return row["run_id"]

    def _told(self) -> dict[str, Any]:
        assert self._process.stdout
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the server of the bar ended; what it wrote to stderr says why")
        facts: dict[str, Any] = json.loads(line)
        return facts


# Readers.


def request(run_id: str, after_seq: int = 0, *, snapshot: bool = False, version: str = "1.0") -> bytes:
    """The request for a feed. The answer to HTTP/1.0 is the stream itself, not cut into chunks."""
    query = "?snapshot=1" if snapshot else ""
    return (
        f"GET /runs/{run_id}/events{query} HTTP/{version}\r\nHost: localhost\r\nLast-Event-ID: {after_seq}\r\n\r\n"
    ).encode()


@dataclass
class Wire:
    """An open feed: its status, and its bytes."""

    status: int
    bytes: asyncio.StreamReader
    transport: asyncio.WriteTransport


@asynccontextmanager
async def wire(server: Served, asked: bytes) -> AsyncIterator[Wire]:
    """One connection with one request. It is cut off, not closed, so that nothing is said goodbye to."""
    reader, writer = await asyncio.open_connection(HOST, server.port)
    try:
        writer.write(asked)
        head = await reader.readuntil(b"\r\n\r\n")
        yield Wire(int(head.split()[1]), reader, writer.transport)
    finally:
        writer.transport.abort()


def raw(server: Served, asked: bytes) -> socket.socket:
    """A socket that has sent this and takes little at a time, in packets of a network: those of the loopback interface
    are so large that its buffers hold megabytes.
    """
    opened = socket.socket()
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1460)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    opened.connect((HOST, server.port))
    opened.sendall(asked)
    return opened


IDS: Final = re.compile(rb"^id: (\d+)$", re.MULTILINE)


async def count(server: Served, run_id: str, stops: int = 0) -> int:
    """How many envelopes a reader was given in one connection, in order; it stops for a while at every so many."""
    seen, stop_at, rest = 0, stops, b""
    async with wire(server, request(run_id)) as feed:
        while chunk := await feed.bytes.read(READ_BYTES):
            whole, blank, rest = (rest + chunk).rpartition(b"\n\n")
            ids = IDS.findall(whole + blank)
            if not ids:
                continue
            assert int(ids[0]) == seen + 1 and int(ids[-1]) == seen + len(ids), "in order, each once"
            seen += len(ids)
            if stops and seen >= stop_at:
                stop_at += stops
                await asyncio.sleep(0.2)
    return seen


def main() -> None:
    about = json.loads(sys.argv[1])
    set_tracing_disabled(True)
    os.environ.setdefault("OPENAI_API_KEY", "none")
    asyncio.run(serve(about["url"], about["limits"]))


if __name__ == "__main__":
    main()
