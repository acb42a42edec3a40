"""The HTTP side of the scripted API: a body that plays frames and steps, and the errors of a broken connection.

Imported only when a client is made, because it imports the HTTP library of the installed openai client: openai 3
uses httpx2, earlier ones use httpx. Both have the same names for everything that is used here.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any

import openai

from .turns import JSON, Cut, Frame, HangUp, Pause, Reached, Step, Wait

if TYPE_CHECKING or int(openai.__version__.partition(".")[0]) >= 3:
    import httpx2 as httpx
else:
    import httpx

Answerer = Callable[[str, JSON], "httpx.Response"]


def client(answerer: Answerer) -> httpx.AsyncClient:
    """An HTTP client that opens no socket: `answerer(path, body)` answers every request."""

    async def answer(request: httpx.Request) -> httpx.Response:
        body = json.loads(await request.aread() or b"{}")
        await asyncio.sleep(0)  # a real request is never answered within the same step of the event loop
        return answerer(request.url.path, body)

    responder: Callable[[httpx.Request], Coroutine[None, None, httpx.Response]] = answer
    return httpx.AsyncClient(transport=httpx.MockTransport(responder))


def stream(frames: Iterator[Frame | Step], encode: Callable[[Frame], bytes]) -> httpx.Response:
    """A 200 whose body is the frames as server-sent events."""
    return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=_Body(play(frames, encode)))


def plain(frames: Iterator[Frame | Step]) -> httpx.Response:
    """A 200 whose body is one JSON object, sent after the steps that come before it."""

    def encode(frame: Frame) -> bytes:
        return json.dumps(frame, ensure_ascii=False).encode()

    return httpx.Response(200, headers={"content-type": "application/json"}, stream=_Body(play(frames, encode)))


def refused(status: int, error: JSON) -> httpx.Response:
    """An HTTP error with the API's error object."""
    return httpx.Response(status, json={"error": error})


def unreachable() -> Exception:
    """The error of a connection that could not be opened."""
    return httpx.ConnectError("the script says that the API cannot be reached")


async def play(frames: Iterator[Frame | Step], encode: Callable[[Frame], bytes]) -> AsyncGenerator[bytes, None]:
    """Send the frames one by one and do what the steps say."""
    for frame in frames:
        match frame:
            case Pause():
                await asyncio.sleep(frame.seconds)
            case Wait():
                await frame.event.wait()
            case Reached():
                frame.event.set()
            case Cut():
                raise _broken(frame)
            case HangUp():
                return
            case _:
                yield encode(frame)
                # Without this a whole body arrives within one step of the event loop, as no real one does.
                await asyncio.sleep(0)


def _broken(step: Cut) -> Exception:
    if step.kind == "protocol":
        return httpx.RemoteProtocolError("the script cut the body short")
    if step.kind == "timeout":
        return httpx.ReadTimeout("the script let the connection time out")
    return httpx.ReadError("the script broke the connection")


class _Body(httpx.AsyncByteStream):
    """A response body that stops playing as soon as the client closes it."""

    def __init__(self, chunks: AsyncGenerator[bytes, None]) -> None:
        self._chunks = chunks

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._chunks

    async def aclose(self) -> None:
        await self._chunks.aclose()
