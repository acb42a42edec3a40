"""Bodies: read within a bound of bytes and time, and taken as JSON by the strictest reading."""

from __future__ import annotations

import asyncio
import json
from math import isfinite
from typing import Any

from pydantic_core import from_json
from starlette.requests import Request
from starlette.types import Message, Receive

from agents_progress.server.limits import Limits
from agents_progress.server.refusals import Refusal


class Bounded:
    """The same source of a request's body, whoever reads it, that refuses one that is too large or too slow."""

    def __init__(self, receive: Receive, limits: Limits) -> None:
        self._receive = receive
        self._limits = limits
        self._until = 0.0
        self._size = 0
        self._ended = False

    @property
    def transport(self) -> Any:
        """The connection itself, where the server shows it: the answer may be a feed."""
        return transport_of(self._receive)

    async def receive(self) -> Message:
        """The next message, as ASGI has it."""
        if self._ended:
            return await self._receive()  # waits for the caller to hang up, for as long as it takes
        self._until = self._until or asyncio.get_running_loop().time() + self._limits.body_s
        try:
            async with asyncio.timeout_at(self._until):
                message = await self._receive()
        except TimeoutError:
            raise Refusal("slow_body") from None
        self._size += len(message.get("body", b""))
        if self._size > self._limits.body_bytes:
            raise Refusal("body_too_large")
        self._ended = not message.get("more_body", False)
        return message


def transport_of(receive: Receive) -> Any:
    """The connection itself, for which ASGI has no word: uvicorn's ``receive`` belongs to an object that has it."""
    return getattr(getattr(receive, "__self__", None), "transport", None)


async def json_object(request: Request, limits: Limits) -> dict[str, Any]:
    """The body as a JSON object: strict UTF-8, no name twice, no NaN, no lone surrogate, no endless nesting."""
    body = await request.body()
    try:
        from_json(body, allow_inf_nan=False)  # the stricter one: numbers, surrogates, depth
        parsed = json.loads(body, object_pairs_hook=_each_name_once, parse_float=_finite)
    except (ValueError, RecursionError):
        raise Refusal("bad_json") from None
    if not isinstance(parsed, dict) or not _within(parsed, limits.body_depth):
        raise Refusal("bad_json")
    return parsed


def _finite(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise ValueError("a number is too large")
    return number


def _each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) != len(pairs):
        raise ValueError("a name stands twice")
    return fields


def _within(value: Any, depth: int) -> bool:
    """Whether objects and lists are nested no deeper than this."""
    level = [value]
    for _ in range(depth):
        inner = [list(node.values()) if isinstance(node, dict) else node for node in level]
        level = [each for nodes in inner for each in nodes if isinstance(each, dict | list)]
        if not level:
            return True
    return False
