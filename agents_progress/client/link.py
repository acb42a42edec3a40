"""Requests to a server of runs: what may be repeated is, and every answer is either what was asked for or one error.

The one place that knows the HTTP package: httpx2, which the OpenAI client brings from its release 3 on, or httpx.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING, Any, Final, cast

from agents_progress.client.address import authorization, checked
from agents_progress.client.pace import Pace
from agents_progress.errors import ClientExtraMissing, Refused, Unreachable
from agents_progress.plaintext import clean

if TYPE_CHECKING:
    import httpx
else:
    try:
        import httpx2 as httpx
    except ImportError:
        try:
            import httpx
        except ImportError as error:
            raise ClientExtraMissing(
                "the client needs httpx2 or httpx; run: pip install 'agents-progress[client]'"
            ) from error

REPEATED: Final = frozenset({408, 425, 429, 500, 502, 503, 504})
"""Statuses that a server, or a proxy before it, gives for a while: the same request may be answered later."""

ANSWER_PATIENCE_S: Final = 10.0
"""A request with one answer is repeated for so long at most."""

_CONNECT_S: Final = 10.0
_ANSWER_S: Final = 30.0
_SHOWN: Final = 300
_NO_CODE: Final = "refused"


class Link:
    """One server, with one token. Redirects are not followed: a token goes where it was meant to go."""

    def __init__(self, url: str, token: str | None) -> None:
        self.url = checked(url)
        self._http = httpx.AsyncClient(
            headers=authorization(self.url, token),
            timeout=httpx.Timeout(_ANSWER_S, connect=_CONNECT_S, pool=None),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=20),
        )

    async def close(self) -> None:
        await self._http.aclose()

    async def ask(
        self,
        method: str,
        path: str,
        *,
        body: Mapping[str, Any] | None = None,
        query: Mapping[str, str] | None = None,
        key: str | None = None,
        patience: float | None = ANSWER_PATIENCE_S,
    ) -> dict[str, Any]:
        """The JSON object that the server answers with.

        A request that changes nothing, or that has an idempotency ``key``, is repeated while ``patience`` lasts; every
        other one is sent once. Raises :exc:`Refused` and :exc:`Unreachable`.
        """
        pace = Pace(patience if method == "GET" or key is not None else 0.0)
        headers = {} if key is None else {"Idempotency-Key": key}
        while True:
            try:
                response = await self._answer(method, path, json=body, params=query, headers=headers)
                return _object(response)
            except (Refused, Unreachable) as fault:
                wait = pace.failed(least_wait_s(fault))
                if wait is None:
                    raise
                await asyncio.sleep(wait)

    async def _answer(self, method: str, path: str, **more: Any) -> httpx.Response:
        try:
            return await self._http.request(method, self.url + path, **more)
        except httpx.RequestError as error:
            told = "" if method == "GET" else "; whether the request was carried out is not known"
            raise Unreachable(f"no answer from {self.url} ({_said(error)}){told}") from error

    @asynccontextmanager
    async def feed(
        self, path: str, headers: Mapping[str, str], query: Mapping[str, str], silence_s: float
    ) -> AsyncIterator[AsyncIterator[bytes] | None]:
        """The bytes of an event stream as they come, or None for the answer 204. A connection that says nothing for
        ``silence_s`` is dead.

        Raises :exc:`Refused`, and :exc:`Unreachable` also for what breaks while the stream is read.
        """
        timeout = httpx.Timeout(silence_s, connect=_CONNECT_S, pool=None)
        url, asked = self.url + path, {"Accept": "text/event-stream", "Accept-Encoding": "identity", **headers}
        try:
            async with self._http.stream("GET", url, params=query, headers=asked, timeout=timeout) as answer:
                if answer.status_code == 204:
                    yield None
                    return
                if answer.status_code != 200:
                    await answer.aread()
                    raise _refusal(answer)
                if not _is_feed(answer):
                    raise Refused(200, "no_feed", f"{self.url} gives no event stream; is it a server of runs?")
                async with aclosing(cast("AsyncGenerator[bytes, None]", answer.aiter_bytes())) as chunks:
                    yield chunks
        except httpx.RequestError as error:
            raise Unreachable(f"the feed of {self.url} broke off ({_said(error)})") from error


def least_wait_s(fault: Refused | Unreachable) -> float | None:
    """How long the server wants to be left alone, None when it did not say. Raises a refusal that is final."""
    if isinstance(fault, Unreachable):
        return None
    for_now = fault.code == _NO_CODE or fault.retry_after_s is not None  # a server of runs says when; a proxy may not
    if fault.status not in REPEATED or not for_now:
        raise fault
    return fault.retry_after_s


def _is_feed(response: httpx.Response) -> bool:
    kind: str = response.headers.get("content-type", "")
    return kind.partition(";")[0].strip().lower() == "text/event-stream"


def _object(response: httpx.Response) -> dict[str, Any]:
    if not response.is_success:
        raise _refusal(response)
    found = _json(response)
    if found is None:
        raise Refused(response.status_code, "no_answer", "this is no answer of a server of runs; look at the address")
    return found


def _refusal(response: httpx.Response) -> Refused:
    error = (_json(response) or {}).get("error")
    facts = error if isinstance(error, dict) else {}
    code, message = facts.pop("code", None), facts.pop("message", None)
    return Refused(
        response.status_code,
        clean(code)[:_SHOWN] if isinstance(code, str) else _NO_CODE,
        clean(message)[:_SHOWN] if isinstance(message, str) else f"no answer of a server of runs: {_reason(response)}",
        facts=facts,
        retry_after_s=_retry_after(response),
    )


def _reason(response: httpx.Response) -> str:
    if response.is_redirect:
        return "it sends elsewhere; give the address it sends to"
    return clean(response.reason_phrase)[:_SHOWN] or "no reason given"


def _json(response: httpx.Response) -> dict[str, Any] | None:
    try:
        found = response.json()
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _retry_after(response: httpx.Response) -> float | None:
    """In seconds; a date is passed over, for the clocks need not agree."""
    text = response.headers.get("retry-after", "").strip()
    return float(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {clean(error)[:_SHOWN]}".removesuffix(": ")
