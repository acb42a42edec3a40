"""What the tests of the server share: an app over a journal, callers of two tenants, and logs written by hand."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the extra `server` is not installed")
pytest.importorskip("uvicorn", reason="the extra `server` is not installed")

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request

from agents_progress.events import Envelope
from agents_progress.journal import Journal, Origin
from agents_progress.journal.base import RunRow
from agents_progress.server import Principal, runs_app
from agents_progress.server.principal import Action
from agents_progress.server.service import Service
from agents_progress.sse import Decoder, Frame
from agents_progress.testing.contract.logs import Log
from tests.staging import scripted

ADA = Principal("ada", owner="ada", tenant="north")
BOB = Principal("bob", owner="bob", tenant="south")
EVE = Principal("eve", owner="ada", tenant="south")
"""Has an owner's name of another tenant."""
OPS = Principal("ops")
PEOPLE = {person.name: person for person in (ADA, BOB, EVE, OPS)}


def by_token(request: Request, action: Action, run: RunRow | None) -> Principal | None:
    """Whoever gives a name as the token is that person."""
    return PEOPLE.get(request.headers.get("authorization", "").removeprefix("Bearer "))


def service_of(app: Starlette) -> Service:
    service: Service = app.state.service
    return service


def caller(app: Starlette, name: str | None = "ada", **settings: Any) -> httpx.AsyncClient:
    """A client that is this person, without a network. An exception of the app is raised here."""
    headers = {} if name is None else {"authorization": f"Bearer {name}"}
    return httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://runs.test", headers=headers, **settings
    )


@asynccontextmanager
async def living(app: Starlette) -> AsyncIterator[Starlette]:
    """An app within its lifespan."""
    async with app.router.lifespan_context(app):
        yield app


@asynccontextmanager
async def listening(app: Starlette, **settings: Any) -> AsyncIterator[str]:
    """The app behind a real server on the loopback interface; gives its URL."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        config = uvicorn.Config(app, lifespan="on", log_level="warning", **{"timeout_graceful_shutdown": 2, **settings})
        server = uvicorn.Server(config)
        server.capture_signals = quiet  # type: ignore[method-assign]
        task = asyncio.create_task(server.serve(sockets=[bound]))
        while not server.started:
            await asyncio.sleep(0)
        try:
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            server.should_exit = True
            await task


class quiet:
    """Leaves signals to pytest."""

    def __enter__(self) -> None: ...
    def __exit__(self, *raised: object) -> None: ...


async def write(journal: Journal, log: Log, person: Principal = ADA, *, sealed: bool = True, **labels: str) -> str:
    """Store a log as the run of somebody."""
    await journal.append(log.envelopes, origin=Origin(owner=person.owner, tenant=person.tenant, labels=labels))
    if sealed:
        await journal.seal(log.run_id)
    return log.run_id


def begun(run_id: str) -> Log:
    return Log(run_id).start(task_id=run_id.partition(".")[0])


def done(run_id: str) -> Log:
    return begun(run_id).say("text.delta", item_id="m1", index=0, text="hi").end().check()


def paused(run_id: str, **question: str) -> Log:
    log = begun(run_id).request()
    log.say("approval.wait", interaction_id="ask-1", call_id="c1", tool="look", title="May I?", **question)
    return log.end("paused")


def live(run_id: str) -> Log:
    return begun(run_id).request().say("tool.started", call_id="c1")


def code(response: httpx.Response) -> str:
    """The code of a refusal, whose form is held on the way."""
    assert response.headers["content-type"] == "application/json", response.text
    error = response.json()["error"]
    assert isinstance(error["message"], str)
    assert error["message"]
    return str(error["code"])


async def frames(response: httpx.Response, until: int | None = None) -> list[Frame]:
    """What a feed gives, strictly decoded, until it ends or so many frames came."""
    decoder, found = Decoder(), list[Frame]()
    async for chunk in response.aiter_raw():
        found += decoder.feed(chunk)
        if until is not None and len(found) >= until:
            return found[:until]
    decoder.finish()
    return found


async def feed(client: httpx.AsyncClient, path: str, until: int | None = None, **more: Any) -> list[Frame]:
    async with client.stream("GET", path, **more) as response:
        assert response.status_code == 200, await response.aread()
        return await frames(response, until)


def envelopes(found: list[Frame]) -> list[dict[str, Any]]:
    return [json.loads(frame.data) for frame in found if frame.event == "message"]


JSON: Mapping[str, str] = {"content-type": "application/json"}

__all__ = ["Envelope", "runs_app", "scripted"]
