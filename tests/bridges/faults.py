"""What becomes of a stream on its way to a front end: a path that begins with the name of a fault has it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Final

from starlette.types import ASGIApp, Message, Receive, Scope, Send

TEXT: Final = re.compile(rb'"(text-delta|TEXT_MESSAGE_CONTENT)"')
ENDING: Final = re.compile(rb'"type":"(finish|error|abort|RUN_FINISHED|RUN_ERROR)"')


class Cut(OSError):
    """The connection is closed."""


def twice(frame: bytes, said: int) -> Iterator[bytes]:
    """Every frame arrives two times."""
    yield frame
    if b"data:" in frame:
        yield frame


def within_text(frame: bytes, said: int) -> Iterator[bytes]:
    """The stream ends in the middle of the second frame with text."""
    yield frame[: len(frame) // 2] if said == 2 else frame
    if said == 2:
        raise Cut


def before_the_end(frame: bytes, said: int) -> Iterator[bytes]:
    """The stream ends whole, and without its ending."""
    if ENDING.search(frame):
        raise Cut
    yield frame


FAULTS: Final[Mapping[str, tuple[Callable[[bytes, int], Iterator[bytes]], frozenset[str]]]] = {
    "twice": (twice, frozenset({"GET", "POST"})),
    "within-text": (within_text, frozenset({"POST"})),
    "before-the-end": (before_the_end, frozenset({"POST"})),
}
"""What is done to each frame, with how many frames of text came so far; and to the streams of which methods."""


class Faulty:
    """An app before which the ways are bad."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        first, _, rest = scope.get("path", "").removeprefix("/").partition("/")
        if first not in FAULTS:
            return await self._app(scope, receive, send)
        scope = {**scope, "path": f"/{rest}", "raw_path": f"/{rest}".encode()}
        damage, methods = FAULTS[first]
        if scope["method"] in methods:
            send = _damaged(damage, send)
        with suppress(Cut):
            await self._app(scope, receive, send)
        return None


def _damaged(damage: Callable[[bytes, int], Iterator[bytes]], send: Send) -> Send:
    buffer, said, over = b"", 0, False

    async def damaged(message: Message) -> None:
        nonlocal buffer, said, over
        if over:
            raise Cut
        if message["type"] != "http.response.body":
            return await send(message)
        *frames, buffer = (buffer + message.get("body", b"")).split(b"\n\n")
        for frame in frames:
            said += bool(TEXT.search(frame))
            try:
                for piece in damage(frame + b"\n\n", said):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
            except Cut:
                over = True
                await send({"type": "http.response.body"})
                raise
        if not message.get("more_body", False):
            await send({"type": "http.response.body", "body": buffer})
        return None

    return damaged
