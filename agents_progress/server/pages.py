"""The page that people look at: its document at the root of the app, its modules and styles beside it.

The files are those that were there at the start, a closed list, and every URL in them is relative, so that the page
works under any prefix. They hold nothing private and nobody is asked who they are: whatever the page shows it asks the
routes for, as whoever looks at it.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from importlib.resources import files
from typing import Final
from urllib.parse import quote

from starlette.datastructures import Headers
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import Receive, Scope, Send

from agents_progress.server.refusals import Refusal

DOCUMENT: Final = "index.html"
PAGE_PATHS: Final = ("/", "/page/{name}")
"""The document, and what it is made of."""
MEDIA_TYPES: Final[Mapping[str, str]] = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""By the ending of the name; a file of another kind is not served."""
POLICY: Final[Mapping[str, str]] = {
    "default-src": "'none'",
    "script-src": "'self'",
    "style-src": "'self'",
    "connect-src": "'self'",
    "img-src": "'self'",
    "base-uri": "'none'",
    "form-action": "'none'",
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
    "trusted-types": "'none'",
}
"""What the page may do: run and ask for what comes from its own origin, and nothing that stands in a text."""
PAGE_HEADERS: Final[Mapping[str, str]] = {
    "cache-control": "no-cache",  # kept, and asked for again: the modules of two releases never meet
    "content-security-policy": "; ".join(f"{name} {value}" for name, value in POLICY.items()),
    "cross-origin-opener-policy": "same-origin",
    "referrer-policy": "no-referrer",
}
_METHODS: Final = ("GET", "HEAD")


def page_routes() -> list[BaseRoute]:
    """The routes of the page, over the files as they are now."""
    page = _Page()
    return [Route(path, page) for path in PAGE_PATHS]


async def page_with_slash(scope: Scope, receive: Receive, send: Send) -> None:
    """Send whoever asks for a mounted app without the last slash to the one with it, on which relative URLs rest.

    Only the last part of the path is named: what a proxy put before it is not known here.
    """
    last = scope["path"].rpartition("/")[2]
    await RedirectResponse(f"./{quote(last)}/", 308)(scope, receive, send)


class _File:
    """A file as it is sent, and the tag under which a browser keeps it."""

    def __init__(self, name: str, content: bytes) -> None:
        self._content = content
        tag = f'"{sha256(content).hexdigest()[:32]}"'
        media_type = MEDIA_TYPES[f".{name.rpartition('.')[2]}"]
        self._headers = {**PAGE_HEADERS, "etag": tag, "content-type": media_type}

    def answer(self, method: str, headers: Headers) -> Response:
        known = {tag.strip().removeprefix("W/") for tag in headers.get("if-none-match", "").split(",")}
        if self._headers["etag"] in known:
            return Response(None, 304, self._headers)
        if method == "HEAD":
            return Response(None, 200, {**self._headers, "content-length": str(len(self._content))})
        return Response(self._content, 200, self._headers)


class _Page:
    """Every file of the page, as an ASGI app."""

    def __init__(self) -> None:
        found = [file for file in files("agents_progress.server").joinpath("page").iterdir() if file.is_file()]
        served = [file for file in found if f".{file.name.rpartition('.')[2]}" in MEDIA_TYPES]
        self._files = {file.name: _File(file.name, file.read_bytes()) for file in served}
        self._document = self._files.pop(DOCUMENT)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        name = scope["path_params"].get("name")
        file = self._document if name is None else self._files.get(name)
        if file is None:
            raise Refusal("no_such_path")
        if scope["method"] not in _METHODS:
            raise Refusal("method_not_allowed", headers={"allow": ", ".join(_METHODS)})
        await file.answer(scope["method"], Headers(scope=scope))(scope, receive, send)
