"""A server of the tests: a real one on the loopback interface, over a journal in a file. It counts who holds a feed."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from agents_progress import RunView
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
TAB = "x-tab"
"""The header by which a tab of the tests says which one it is."""


class Node(SQLiteJournal):
    """A journal whose runs are lost soon after their owner."""

    lease_s = 1.5


@dataclass
class Counted:
    """An app, and what it was asked: how many feeds each tab holds, and held at most."""

    app: ASGIApp
    feeds: Counter[str] = field(default_factory=Counter)
    most: Counter[str] = field(default_factory=Counter)
    most_at_once: int = 0
    requests: list[tuple[str, str]] = field(default_factory=list)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        self.requests.append((scope["method"], scope["path"]))
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
        return None


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

    async def over(self, run_id: str) -> None:
        """Come back when nothing more will be said of a run."""
        async with asyncio.timeout(20):
            async for _ in self.journal.tail(run_id):
                pass

    def at(self, path: str) -> str:
        return self.url + path


@asynccontextmanager
async def hosting(folder: Path, *, token: str | None = None) -> AsyncIterator[Host]:
    """A server until the block ends. With a token, whoever does not give it is nobody."""

    def authorize(request: Request, action: Action, run: RunRow | None) -> Principal | None:
        given = request.headers.get("authorization")
        return PERSON if token is None or given == f"Bearer {token}" else None

    gates, journal = Gates(), Node(folder / "runs.db")
    app = runs_app(journal, authorize, functions=Script(gates).functions(), drain_s=0.5)
    counted = Counted(app)
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    async with listening(counted) as url, httpx.AsyncClient(base_url=url, headers=headers) as client:  # type: ignore[arg-type]
        try:
            yield Host(url, journal, gates, counted, client)
        finally:
            gates.open_all()
    await journal.close()
