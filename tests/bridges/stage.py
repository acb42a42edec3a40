"""A server with every bridge, and the pages of the front ends beside it; what our view says of each conversation."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from starlette.applications import Starlette
from starlette.responses import HTMLResponse, Response
from starlette.routing import Mount, Route

from agents_progress import RunView
from agents_progress.bridges.ag_ui import AgUI
from agents_progress.bridges.base import Bridge
from agents_progress.bridges.vercel import Vercel
from agents_progress.journal.sqlite import SQLiteJournal
from agents_progress.messages import Status
from agents_progress.server import Principal, runs_app
from agents_progress.server.limits import Limits
from tests.page.scripts import Gates
from tests.serving import listening

from .faults import Faulty
from .functions import Chat
from .lying import Lying

WITHIN_S: Final = 20.0
"""How long a run may take to come to a status, in seconds; a loaded machine needs some."""
LEASE_S: Final = 5.0
"""How long a dead owner keeps its runs, in seconds."""
PERSON: Final = Principal("ada")
CROWD: Final = Limits(runs_per_owner=500, readers_per_owner=500)
"""All front ends play at once, and all are one person's."""
POLICY: Final = "default-src 'none'; script-src 'self'; connect-src 'self'; img-src 'self'"
PAGE: Final = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>{front}</title><link rel="icon" href="/page/icon.svg"></head>
<body><script type="module" src="/front/{front}.mjs"></script></body></html>
"""
LABELS: Final[Mapping[str, str]] = {
    "ag-ui": "ag-ui.conversation",
    "ai-6": "vercel.conversation",
    "ai-7": "vercel.conversation",
}
"""Under which label a front end's conversation is kept."""
PATHS: Final[Mapping[str, str]] = {"ag-ui": "/ag-ui", "ai-6": "/api/chat6", "ai-7": "/api/chat7"}


def bridges(chat: Chat) -> list[Bridge]:
    """Each once for the chat, once below ``/hidden`` where what is asked is hidden, and once as a liar."""
    shown, hidden = chat.functions()["chat"], chat.functions()["hidden"]

    def all_for(function: Any, before: str = "") -> list[Bridge]:
        return [
            AgUI(function, path=before + PATHS["ag-ui"]),
            Vercel(function, major=6, path=before + PATHS["ai-6"]),
            Vercel(function, major=7, path=before + PATHS["ai-7"]),
        ]

    return [*all_for(shown), *all_for(hidden, "/hidden"), *map(Lying, all_for(shown))]


@dataclass
class Stage:
    """A server under ``url``, whose runs stop at ``gates``."""

    url: str
    file: Path
    journal: SQLiteJournal
    gates: Gates

    def open(self, key: str, *gates: str) -> None:
        """Open gates of one conversation."""
        self.gates.open(*(f"{gate}/{key}" for gate in gates))

    async def views(self, front: str, conversation: str) -> list[RunView]:
        """What Python's view makes of each run of a conversation, oldest first."""
        rows = await self.journal.runs(labels={LABELS[front]: conversation})
        return [await self._view(row.run_id) for row in reversed(rows)]

    async def _view(self, run_id: str) -> RunView:
        view = RunView(run_id)
        for envelope in await self.journal.read(run_id, limit=1_000_000):
            view.feed(envelope.to_json())
        return view

    async def comes_to(self, front: str, conversation: str, *statuses: Status) -> bool:
        """Come back when the newest run of a conversation has one of these statuses; false when it never has."""
        with suppress(TimeoutError):
            async with asyncio.timeout(WITHIN_S):
                while True:
                    rows = await self.journal.runs(labels={LABELS[front]: conversation}, limit=1)
                    if rows and rows[0].status in statuses:
                        return True
                    await asyncio.sleep(0.05)
        return False


@asynccontextmanager
async def staged(file: Path, scripts: Mapping[str, Path]) -> AsyncIterator[Stage]:
    """A server until the block ends; ``scripts`` are the bundles of the front ends' pages."""
    gates, journal = Gates(), SQLiteJournal(file)
    journal.lease_s = LEASE_S
    chat = Chat(gates)
    app = runs_app(
        journal,
        lambda *asked: PERSON,
        functions=chat.functions(),
        bridges=bridges(chat),
        limits=CROWD,
        drain_s=0.5,
    )
    pages = [route for front, script in scripts.items() for route in _page(front, script)]
    outer = Starlette(routes=[*pages, Mount("/", app)], lifespan=lambda _: app.router.lifespan_context(app))
    async with listening(Faulty(outer)) as url:  # type: ignore[arg-type]
        yield Stage(url, file, journal, gates)
    await journal.close()


def _page(front: str, script: Path) -> list[Route]:
    """Two documents: the page of a front end, and its code."""
    page = HTMLResponse(PAGE.format(front=front), headers={"content-security-policy": POLICY})
    code = Response(script.read_bytes(), media_type="text/javascript")
    return [Route(f"/front/{front}", page), Route(f"/front/{front}.mjs", code)]
