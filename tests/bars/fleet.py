"""Servers of runs as processes of their own, on one store: started, drained, killed, and started again on their port.

Their functions are scripted, and what they say is known here, so that a view can be held against it. Whoever gives a
name as the token is that person; all of them own the same runs.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from agents import Agent, Runner, RunResultStreaming, function_tool, set_tracing_disabled

from agents_progress import Verdict, progress
from agents_progress.client import Client
from agents_progress.testing import ScriptedAPI, Turn, call, http_error, pause, text, turn

from .places import Place
from .servers import free_port

ROOT: Final = Path(__file__).parents[2]
HOST: Final = "127.0.0.1"
START_S: Final = 30.0
DRAINED_WITHIN_S: Final = 60.0
"""How long a server may take to answer, and to go away, in seconds."""
WORD: Final = "word "
PAID: Final = "It is paid."
AMISS: Final = "It went amiss."

Kind: TypeAlias = Literal["right", "wrong", "broken"]
"""What becomes of a slow run: its check passes or does not, or the model fails at its end."""


def said(ticks: int) -> str:
    """What a slow run says when it comes to its end."""
    return WORD * ticks


# The server's process.


@progress
def slow(ticks: int, step_s: float, kind: Kind = "right") -> RunResultStreaming:
    words = text(*(step for _ in range(ticks) for step in (WORD, pause(step_s))))
    last = {"right": turn(words), "wrong": turn(words, text(AMISS)), "broken": http_error(400, "No.")}
    return _streamed(turn(words, call("look", {}, call_id="c1")), last[kind])


@progress
def plain() -> RunResultStreaming:
    return _streamed(turn(text(said(1))))


@progress
def ask(paid: str) -> RunResultStreaming:
    """``paid`` is the file that tells how often the tool ran, and where."""
    return _streamed(turn(call("pay", {"paid": paid}, call_id="c1")), turn(text(PAID)))


@progress(keep_pauses=True)
def entrust(paid: str) -> RunResultStreaming:
    """As :func:`ask`, and any server goes on with it: the model's second turn is said by whichever that is."""
    asked = Path(f"{paid}.asked")
    turns = [turn(text(PAID))] if asked.exists() else [turn(call("pay", {"paid": paid}, call_id="c1"))]
    asked.touch()
    return _streamed(*turns)


@function_tool
def look() -> str:
    return "seen"


@function_tool(needs_approval=True)
def pay(paid: str) -> str:
    with Path(paid).open("a") as file:
        file.write(f"{os.getpid()}\n")
    return "paid"


def _streamed(*turns: Turn) -> RunResultStreaming:
    return Runner.run_streamed(Agent(name="Clerk", model=ScriptedAPI(turns).model(), tools=[look, pay]), "go")


async def check(output: Any) -> Verdict:
    return Verdict(output != AMISS, check="script")


async def serve(about: Mapping[str, Any]) -> None:
    import uvicorn

    from agents_progress.server import Principal, runs_app
    from agents_progress.server.limits import Limits

    class Announced(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            print("up", flush=True)

    def by_token(request: Any, action: Any, run: Any) -> Principal | None:
        name = request.headers.get("authorization", "").removeprefix("Bearer ")
        return Principal(name, owner="team") if name else None

    journal = Place(about["url"], about["prefix"]).journal(about["lease_s"])
    functions = [each.using(verify=check) for each in (slow, plain, ask, entrust)]
    limits = Limits(runs_per_owner=1000, readers_per_owner=5000)
    app = runs_app(journal, by_token, functions=functions, limits=limits, drain_s=about["drain_s"])
    config = uvicorn.Config(
        app, host=HOST, port=about["port"], log_level="warning", ws="none", lifespan="on", timeout_graceful_shutdown=5
    )
    await Announced(config).serve()
    await journal.close()


# The bar's process.


class Node:
    """One server of a fleet. ``port`` stays the same over its lives."""

    def __init__(self, name: str, place: Place, folder: Path, lease_s: float, drain_s: float) -> None:
        self.name = name
        self.port = free_port()
        self.log = folder / f"{name}.log"
        self._about = {"url": place.url, "prefix": place.prefix, "port": self.port}
        self._about |= {"lease_s": lease_s, "drain_s": drain_s}
        self._process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "started before"
        return self._process.pid

    async def start(self) -> float:
        """Start it and wait until it answers; gives how long that took, in seconds."""
        began = time.monotonic()
        command = [sys.executable, "-m", "tests.bars.fleet", json.dumps(self._about)]
        with self.log.open("ab") as log:
            self._process = await asyncio.create_subprocess_exec(
                *command, cwd=ROOT, stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=log
            )
        assert self._process.stdout is not None
        async with asyncio.timeout(START_S):
            line = await self._process.stdout.readline()
        if line != b"up\n":
            raise RuntimeError(f"server {self.name} did not start: {self.said[-2000:]}")
        return time.monotonic() - began

    async def drain(self) -> float:
        """Have it go away in good order; gives how long that took, in seconds."""
        began = time.monotonic()
        await self._ended(signal.SIGTERM, DRAINED_WITHIN_S)
        return time.monotonic() - began

    async def kill(self) -> None:
        await self._ended(signal.SIGKILL, 5.0)

    @property
    def said(self) -> str:
        """What it logged, over all its lives."""
        return self.log.read_text() if self.log.exists() else ""

    async def close(self) -> None:
        if self._process is not None and self._process.returncode is None:
            await self.kill()

    async def _ended(self, how: signal.Signals, within: float) -> None:
        assert self._process is not None, "started before"
        self._process.send_signal(how)
        async with asyncio.timeout(within):
            await self._process.wait()


@asynccontextmanager
async def fleet(
    place: Place, folder: Path, *, lease_s: float, drain_s: float = 0.2
) -> AsyncIterator[tuple[Node, Node]]:
    """Two servers, A and B, on one store."""
    nodes = [Node(name, place, folder, lease_s, drain_s) for name in "AB"]
    async with AsyncExitStack() as stack:
        for node in nodes:
            stack.push_async_callback(node.close)
            await node.start()
        yield nodes[0], nodes[1]


class Proxy:
    """One address for both servers: each connection goes to the next one that takes it."""

    def __init__(self, *nodes: Node) -> None:
        self._nodes = list(nodes)
        self._open: set[asyncio.Task[None]] = set()
        self.given = dict.fromkeys((node.name for node in nodes), 0)
        """Connections that each server got."""

    @asynccontextmanager
    async def listening(self) -> AsyncIterator[str]:
        server = await asyncio.start_server(self._connected, HOST, 0)
        try:
            yield f"http://{HOST}:{server.sockets[0].getsockname()[1]}"
        finally:
            server.close()
            for each in self._open:
                each.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            for node in self._nodes[:]:
                self._nodes.append(self._nodes.pop(0))
                with suppress(OSError):
                    behind = await asyncio.open_connection(HOST, node.port)
                    self.given[node.name] += 1
                    await self._between((reader, writer), behind)
                    break
        finally:
            writer.close()
            self._open.discard(task)

    async def _between(self, one: Any, other: Any) -> None:
        ways = [asyncio.create_task(self._copy(*way)) for way in ((one[0], other[1]), (other[0], one[1]))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            other[1].close()

    async def _copy(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while chunk := await reader.read(65536):
                writer.write(chunk)
                await writer.drain()


def person(url: str, name: str = "ada") -> Client:
    return Client(url, token=name, patience=60.0)


if __name__ == "__main__":
    set_tracing_disabled(True)
    asyncio.run(serve(json.loads(sys.argv[1])))
