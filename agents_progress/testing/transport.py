"""The HTTP side of the scripted API: a body that plays frames and steps, and the errors of a broken connection.

Imported only when a client is made, because it imports the HTTP library of the installed openai client: openai 3
uses httpx2, earlier ones use httpx. Both have the same names for everything that is used here.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast
from unittest.mock import patch

import openai

from .steps import JSON, Cut, Delivery, Frame, HangUp, Pause, Reached, Wait

if TYPE_CHECKING or int(openai.__version__.partition(".")[0]) >= 3:
    import httpx2 as httpx
else:
    import httpx

_ASKS_A_MODEL: Final = ("/responses", "/chat/completions")

Answerer = Callable[[str, JSON], "httpx.Response"]


def client(answerer: Answerer) -> httpx.AsyncClient:
    """An HTTP client that opens no socket: `answerer(path, body)` answers every request."""

    async def answer(request: httpx.Request) -> httpx.Response:
        body = json.loads(await request.aread() or b"{}")
        await asyncio.sleep(0)  # a real request is never answered within the same step of the event loop
        return answerer(request.url.path, body)

    responder: Callable[[httpx.Request], Coroutine[None, None, httpx.Response]] = answer
    return httpx.AsyncClient(transport=httpx.MockTransport(responder))


@contextmanager
def taken_over(answerer: Answerer) -> Iterator[None]:
    """Let `answerer(path, body)` answer every request that asks a model, of every client of httpx and httpx2."""
    refusals: dict[bytes, Callable[[], httpx.Response]] = {}

    async def answer(request: Any) -> httpx.Response:
        content = await request.aread()
        await asyncio.sleep(0)  # as in `client`
        if request.headers.get("x-stainless-retry-count", "0") == "0" or content not in refusals:
            try:
                response = answerer(request.url.path, json.loads(content or b"{}"))
            except httpx.ConnectError:
                refusals[content] = _unreachable_again
            else:
                if response.is_success:
                    return response
                refusals[content] = partial(_refused_again, response.status_code, response.content)
        return refusals[content]()

    with ExitStack() as patches:
        for library in filter(None, map(sys.modules.get, ("httpx", "httpx2"))):
            patches.enter_context(_taken_over(library, answer))
        yield


def _taken_over(library: Any, answer: Callable[[Any], Coroutine[None, None, httpx.Response]]) -> Any:
    real = library.AsyncHTTPTransport.handle_async_request

    async def handle(self: Any, request: Any) -> Any:
        if request.method != "POST" or not request.url.path.endswith(_ASKS_A_MODEL):
            return await real(self, request)
        try:
            response = await answer(request)
        except httpx.TransportError as error:
            raise _as_of(library, error) from None
        return response if library is httpx else _relayed(library, response)

    return patch.object(library.AsyncHTTPTransport, "handle_async_request", handle)


def _relayed(library: Any, response: httpx.Response) -> Any:
    """The response as one of the other library: a client may be given another's, which it takes for its own."""

    class Relayed(library.AsyncByteStream):  # type: ignore[misc]
        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for chunk in cast("AsyncIterator[bytes]", response.stream):
                    yield chunk
            except httpx.TransportError as error:
                raise _as_of(library, error) from None

        async def aclose(self) -> None:
            await response.aclose()

    return library.Response(response.status_code, headers=response.headers.multi_items(), stream=Relayed())


def _as_of(library: Any, error: httpx.TransportError) -> Exception:
    """The same error as one of another HTTP library."""
    cls: type[Exception] = getattr(library, type(error).__name__)
    return cls(str(error))


def stream(frames: Iterator[Frame | Delivery], encode: Callable[[Frame], bytes]) -> httpx.Response:
    """A 200 whose body is the frames as server-sent events."""
    return httpx.Response(200, headers={"content-type": "text/event-stream"}, stream=_Body(play(frames, encode)))


def plain(frames: Iterator[Frame | Delivery]) -> httpx.Response:
    """A 200 whose body is one JSON object, sent after the steps that come before it."""

    def encode(frame: Frame) -> bytes:
        return json.dumps(frame, ensure_ascii=False).encode()

    return httpx.Response(200, headers={"content-type": "application/json"}, stream=_Body(play(frames, encode)))


def refused(status: int, error: JSON) -> httpx.Response:
    """An HTTP error with the API's error object."""
    return httpx.Response(status, json={"error": error})


def _refused_again(status: int, content: bytes) -> httpx.Response:
    """A refusal that keeps a client which tries again waiting for a millisecond only."""
    headers = {"content-type": "application/json", "retry-after-ms": "1"}
    return httpx.Response(status, headers=headers, content=content)


def _unreachable_again() -> httpx.Response:
    raise unreachable()


def unreachable() -> Exception:
    """The error of a connection that could not be opened."""
    return httpx.ConnectError("the script says that the API cannot be reached")


async def play(frames: Iterator[Frame | Delivery], encode: Callable[[Frame], bytes]) -> AsyncGenerator[bytes, None]:
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
