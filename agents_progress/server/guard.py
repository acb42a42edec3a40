"""What stands before every route: the host, the origin, the form of the request, and one way out for what goes wrong.

CORS is closed: nothing here allows another site to read an answer, and a page of another site cannot make a request
that changes something, because that takes JSON and an origin of ours.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agents_progress.errors import BadSnapshot, JournalError, RunErased, RunNotFound
from agents_progress.server.bodies import Bounded
from agents_progress.server.limits import Limits
from agents_progress.server.refusals import Refusal

logger = logging.getLogger("agents_progress")

SECRET_NAMES: Final = frozenset({"token", "access_token", "authorization", "api_key", "apikey", "password"})
"""Names of query parameters under which people put a token."""
HEADERS: Final = {
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
}
"""On every answer that does not say otherwise."""
_PORTS: Final = {"http": ":80", "https": ":443"}


class Guard:
    """Wraps the routes. ``hosts`` None: any host name is taken. ``direct``: forwarded requests are refused."""

    def __init__(
        self, app: ASGIApp, *, limits: Limits, hosts: Collection[str] | None, origins: Collection[str], direct: bool
    ) -> None:
        self._app = app
        self._limits = limits
        self._hosts = None if hosts is None else frozenset(host.lower() for host in hosts)
        self._origins = frozenset(origin.lower() for origin in origins)
        self._direct = direct

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "websocket":
            return await send({"type": "websocket.close"})  # nothing here speaks it
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        begun = False

        async def send_guarded(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        try:
            self._refuse_foreign(scope)
            source = Bounded(receive, self._limits).receive if scope["method"] == "POST" else receive
            await self._app(scope, source, send_guarded)
        except ClientDisconnect:
            return None
        except Exception as error:  # noqa: BLE001 - the one way out; a traceback in a log quotes private values
            refusal = _refusal(error)
            if not begun:
                await refusal.response(self._limits.retry_after_s)(scope, receive, send_guarded)
        return None

    def _refuse_foreign(self, scope: Scope) -> None:
        headers = Headers(scope=scope)
        if self._direct and any(name.startswith(("forwarded", "x-forwarded", "x-real-ip")) for name in headers):
            raise Refusal("forwarded")
        self._refuse_host(headers.getlist("host"))
        if any(name.lower() in SECRET_NAMES for name, _ in parse_qsl(_query(scope), keep_blank_values=True)):
            raise Refusal("token_in_url")
        if scope["method"] == "POST":
            _refuse_other_bodies(headers)
            self._refuse_other_sites(headers)
            if _announced(headers) > self._limits.body_bytes:
                raise Refusal("body_too_large")
        elif headers.get("content-length", "0") != "0" or "transfer-encoding" in headers:
            raise Refusal("bad_request", "only POST has a body")

    def _refuse_host(self, given: list[str]) -> None:
        if self._hosts is None and len(given) <= 1:
            return
        host = given[0].lower() if len(given) == 1 else ""
        if not self._hosts or not {host, _without_port(host)} & self._hosts:
            raise Refusal("wrong_host")

    def _refuse_other_sites(self, headers: Headers) -> None:
        """Refuse what a page of another site sent. What is no browser says neither where it is nor whence it comes."""
        if headers.get("sec-fetch-site", "none") not in ("same-origin", "none"):
            raise Refusal("cross_origin")
        given = headers.getlist("origin")
        own = headers.get("host", "").lower()
        for origin in map(str.lower, given):
            if len(given) > 1 or not (origin in self._origins or _same(origin, own)):
                raise Refusal("cross_origin")


def _refuse_other_bodies(headers: Headers) -> None:
    kinds = headers.getlist("content-type")
    kind, _, settings = (kinds[0] if len(kinds) == 1 else "").partition(";")
    settings = settings.strip().lower().replace('"', "")
    plain = headers.get("content-encoding", "identity").lower() == "identity"
    if kind.strip().lower() != "application/json" or settings not in ("", "charset=utf-8") or not plain:
        raise Refusal("not_json")


def _announced(headers: Headers) -> int:
    """The length of the body, as far as it is said; what is no number the server has refused before."""
    length = headers.get("content-length", "")
    return int(length[:20]) if length.isascii() and length.isdigit() else 0


def _same(origin: str, host: str) -> bool:
    """Whether an origin names the host that was asked. Its scheme is not compared: a proxy may end TLS."""
    scheme, _, place = origin.partition("://")
    port = _PORTS.get(scheme)
    return port is not None and bool(host) and place.removesuffix(port) == host.removesuffix(port)


def _without_port(host: str) -> str:
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
    return f"[{name}]" if ":" in name else name


def _query(scope: Scope) -> str:
    query: bytes = scope.get("query_string", b"")
    return query.decode("latin-1")


def _refusal(error: Exception) -> Refusal:
    """What is answered to whatever was raised. What nobody foresaw is logged by its type."""
    if isinstance(error, Refusal):
        return error
    if isinstance(error, RunErased | RunNotFound):
        return Refusal("not_found")
    if isinstance(error, JournalError | BadSnapshot):
        logger.warning("agents_progress: a request was not served: %s", type(error).__name__)
        return Refusal("unavailable")
    logger.error("agents_progress: a request was not served: %s", type(error).__name__)
    return Refusal("internal")
