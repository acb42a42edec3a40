"""A server of the tests: a real one on the loopback interface, over a journal in a file. It counts who holds a feed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from agents_progress import RunView
from agents_progress.errors import RunNotFound
from agents_progress.events import Envelope
from agents_progress.journal.base import RunRow
from agents_progress.journal.sqlite import SQLiteJournal
from agents_progress.messages import Language
from agents_progress.server import Principal, runs_app
from agents_progress.server.principal import Action
from agents_progress.testing.contract.logs import Log
from tests.serving import listening

from .scripts import Gates, Script

PERSON = Principal("ada")
POLICY = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'"
"""Of a page of somebody else's that embeds runs."""
EMBEDDING = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>A page of somebody else's</title><link rel="icon" href="/page/icon.svg">
<script type="module" src="/page/element.js"></script></head>
<body><main><h1>A page of somebody else's</h1>{elements}</main></body></html>
"""
TAB = "x-tab"
"""The header by which a tab of the tests says which one it is."""


@dataclass
class Counted:
    """An app with some documents beside it, and what it was asked: how many feeds each tab holds, and held at most."""

    app: ASGIApp
    documents: dict[str, str] = field(default_factory=dict)
    feeds: Counter[str] = field(default_factory=Counter)
    most: Counter[str] = field(default_factory=Counter)
    most_at_once: int = 0
    requests: list[tuple[str, str]] = field(default_factory=list)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        self.requests.append((scope["method"], scope["path"]))
        if scope["path"] in self.documents:
            document = HTMLResponse(self.documents[scope["path"]], headers={"content-security-policy": POLICY})
            return await document(scope, receive, send)
        if not scope["path"].endswith("/events"):
            return await self.app(scope, receive, send)
        tab = dict(scope["headers"]).get(TAB.encode(), b"").decode()
        self.feeds[tab] += 1
        self.most[tab] = max(self.most[tab], self.feeds[tab])
        self.most_at_once = max(self.most_at_once, self.feeds.total())
        try:
            await self.app(scope, receive, send)
        finally:
            self.feeds[tab] -= 1
            self._changed.set()
        return None

    async def until(self, holds: Callable[[], bool]) -> None:
        """Come back when something holds that may begin to hold as a feed ends."""
        async with asyncio.timeout(10):
            while not holds():
                self._changed.clear()
                await self._changed.wait()


@dataclass
class Host:
    """A server under ``url``; its runs stop at ``gates``."""

    url: str
    journal: SQLiteJournal
    gates: Gates
    counted: Counted
    client: httpx.AsyncClient

    async def start(self, function: str, **body: Any) -> str:
        """Start a run of a function over HTTP; gives its id."""
        response = await self.client.post("/runs", json={"function": function, **body})
        response.raise_for_status()
        run_id: str = response.json()["run_id"]
        return run_id

    async def write(self, log: Log, *, sealed: bool = True) -> str:
        """Store a log that was written by hand."""
        await self.append(log.envelopes)
        if sealed:
            await self.journal.seal(log.run_id)
        return log.run_id

    async def append(self, envelopes: Iterable[Envelope]) -> None:
        await self.journal.append(list(envelopes))

    async def view(self, run_id: str, language: Language = "en") -> RunView:
        """What Python's view makes of all that is stored of a run."""
        view = RunView(run_id, language)
        for envelope in await self.journal.read(run_id, limit=1_000_000):
            view.feed(envelope.to_json())
        return view

    async def reaches(self, run_id: str, type_: str) -> None:
        """Come back when the journal holds an envelope of a type."""
        async with asyncio.timeout(20):
            async for envelope in self.journal.tail(run_id):
                if envelope.type == type_:
                    return
        raise AssertionError(f"the log ended without {type_}")

    async def comes(self, run_id: str, tools: dict[str, str]) -> None:
        """Come back when the tools of a run, which need not be there yet, are in these states."""
        async with asyncio.timeout(20):
            while True:
                with suppress(RunNotFound):
                    if (await self.view(run_id)).tools == tools:
                        return
                await asyncio.sleep(0.05)  # another process says nothing when it has written

    async def over(self, run_id: str) -> None:
        """Come back when nothing more will be said of a run."""
        async with asyncio.timeout(20):
            async for _ in self.journal.tail(run_id):
                pass

    def page(self, run_id: str = "", *, by: str | None = None) -> str:
        """The address of the server's page: of a run, or of the list; by another way than the direct one."""
        return f"{by or self.url}/" + (f"#/{run_id}" if run_id else "")

    def embedding(self, *run_ids: str, attributes: str = "") -> str:
        """The address of a page that embeds these runs, and is served beside the runs."""
        elements = "".join(f'<agent-progress src="/runs/{run_id}" {attributes}></agent-progress>' for run_id in run_ids)
        path = f"/embedding/{len(self.counted.documents)}"
        self.counted.documents[path] = EMBEDDING.format(elements=elements)
        return self.url + path


@asynccontextmanager
async def hosting(file: Path, *, token: str | None = None, lease_s: float = 15.0) -> AsyncIterator[Host]:
    """A server until the block ends. With a token, whoever does not give it is nobody."""

    def authorize(request: Request, action: Action, run: RunRow | None) -> Principal | None:
        given = request.headers.get("authorization")
        return PERSON if token is None or given == f"Bearer {token}" else None

    gates, journal = Gates(), SQLiteJournal(file)
    journal.lease_s = lease_s
    app = runs_app(journal, authorize, functions=Script(gates).functions(), drain_s=0.5)
    counted = Counted(app)
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    async with listening(counted) as url, httpx.AsyncClient(base_url=url, headers=headers) as client:  # type: ignore[arg-type]
        try:
            yield Host(url, journal, gates, counted, client)
        finally:
            gates.open_all()
    await journal.close()
