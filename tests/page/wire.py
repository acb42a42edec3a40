"""The way between a browser and a server, which can be cut: every connection breaks, and no new one is taken."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit


class Wire:
    """A TCP proxy on the loopback interface before one server."""

    def __init__(self, url: str) -> None:
        self._to = urlsplit(url)
        self._port = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._pumps: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    def lead(self, url: str) -> None:
        """Take the connections to come to another server."""
        self._to = urlsplit(url)

    async def heal(self) -> None:
        """Take connections, on the same port as before."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self._port)
        self._port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Reset every connection, and refuse those to come."""
        assert self._server is not None
        self._server.close()
        for writer in list(self._open):
            writer.transport.abort()
        await asyncio.gather(*self._pumps, return_exceptions=True)

    async def _connected(self, near: asyncio.StreamReader, back: asyncio.StreamWriter) -> None:
        try:
            far, on = await asyncio.open_connection(self._to.hostname, self._to.port)
        except ConnectionError:  # the server is gone
            return back.transport.abort()
        self._open |= {back, on}
        pumps = {asyncio.create_task(_pump(near, on)), asyncio.create_task(_pump(far, back))}
        self._pumps |= pumps
        await asyncio.gather(*pumps, return_exceptions=True)
        self._pumps -= pumps
        self._open -= {back, on}
        return None


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while chunk := await source.read(65536):
            target.write(chunk)
            await target.drain()
    target.close()


@asynccontextmanager
async def wired(url: str) -> AsyncIterator[Wire]:
    wire = Wire(url)
    await wire.heal()
    try:
        yield wire
    finally:
        await wire.cut()
