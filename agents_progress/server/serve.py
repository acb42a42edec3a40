"""``agents-progress serve module:function``: one decorated function as a service on this machine.

It is reached directly and by its own name, and asks for a token that is shown once. To be seen by other machines it
takes an ``authorize`` of the application's own.
"""

from __future__ import annotations

import hmac
import inspect
import ipaddress
import json
import secrets
import shlex
import signal
import socket
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, Final

from starlette.requests import Request
from starlette.types import ASGIApp

from agents_progress.arguments import Arguments
from agents_progress.decorate import Decorated
from agents_progress.errors import NotServable, ServerExtraMissing, UsageError
from agents_progress.journal import DEFAULT_URL, redacted
from agents_progress.journal.base import RunRow
from agents_progress.server.app import runs_app
from agents_progress.server.leaving import SIGNALS
from agents_progress.server.principal import Action, Authorize, Principal
from agents_progress.server.service import Service
from agents_progress.targets import named

try:
    import uvicorn
except ModuleNotFoundError as error:
    raise ServerExtraMissing("serve needs uvicorn; install it with: pip install 'agents-progress[server]'") from error

DEFAULT_PORT: Final = 8080
STOPPED: Final = 0
INTERRUPTED: Final = 130
"""What :func:`serve` gives: everything was brought to its end, or a second signal did not wait for that."""
_EVERYWHERE: Final = ("0.0.0.0", "::")  # noqa: S104 - taken with the names of the service alone
LAST_BYTES_S: Final = 5
"""How long open connections may take to end once the runs have, in seconds."""


@dataclass(frozen=True, slots=True)
class Serving:
    """What is to be served, where, and to whom.

    ``target`` and ``authorize`` are written ``module:name``. Without ``authorize`` the service keeps to the loopback
    interface and asks for its token. ``hosts`` are further names under which it is reached. ``certificate`` and ``key``
    are PEM files for TLS. ``drain_s`` is how long runs may go on after a signal to stop, in seconds. ``port`` 0 takes a
    free one.
    """

    target: str
    journal: str = DEFAULT_URL
    host: str = "127.0.0.1"
    port: int = DEFAULT_PORT
    authorize: str | None = None
    hosts: Collection[str] = ()
    certificate: str | None = None
    key: str | None = None
    drain_s: float = 20.0


def serve(chosen: Serving, say: Callable[[str], object]) -> int:
    """Serve until a signal, and tell where with ``say``. The first SIGINT or SIGTERM ends in good order, the second at
    once.

    Raises :exc:`UsageError`, for a port that is taken too, and :exc:`NotServable`, before anything is served.
    """
    _refuse_strangers(chosen)
    function = named(chosen.target)
    if not isinstance(function, Decorated):
        raise NotServable(f"{chosen.target} is a {type(function).__name__}; put @progress over the function")
    token = secrets.token_urlsafe(32) if chosen.authorize is None else None
    authorize = bearer(token) if token is not None else named(chosen.authorize or "")
    listening = _bound(chosen.host, chosen.port)
    try:
        port = listening.getsockname()[1]
        names = _host_names(chosen, port)
        app = runs_app(
            chosen.journal,
            authorize,
            functions=[function],
            hosts=names,
            direct=True,
            drain_s=chosen.drain_s,
        )
        server = _Server(_config(app, chosen), app.state.service)
        example = Arguments(chosen.target, inspect.unwrap(function)).example()
        for line in _greeting(chosen, port, token, example):
            say(line)
        server.run(sockets=[listening])
        return INTERRUPTED if server.force_exit else STOPPED
    finally:
        listening.close()


def bearer(token: str) -> Authorize:
    """Whoever has the token may do everything; it is compared in constant time."""

    def authorize(request: Request, action: Action, run: RunRow | None) -> Principal | None:
        scheme, _, given = ",".join(request.headers.getlist("authorization")).partition(" ")
        right = scheme.lower() == "bearer" and hmac.compare_digest(given.encode("latin-1"), token.encode())
        return Principal("local") if right else None

    return authorize


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
    except OSError as error:
        listening.close()
        raise UsageError(f"nothing can listen on {host}:{port} ({error.strerror}); choose another --port") from None
    return listening


def _refuse_strangers(chosen: Serving) -> None:
    """Refuse to be seen by other machines before it is said who they are, and how they name this one."""
    if _is_loopback(chosen.host):
        return
    if chosen.authorize is None:
        raise UsageError(
            f"{chosen.host} is seen by other machines; say who may do what with --authorize module:function"
        )
    if not chosen.hosts and chosen.host in _EVERYWHERE:
        raise UsageError(f"{chosen.host} is no name; say under which ones the service is reached with --allow-host")


def _host_names(chosen: Serving, port: int) -> set[str]:
    """The host names under which the service answers: a page of another one that resolves to us gets nothing."""
    place = f"[{chosen.host}]" if ":" in chosen.host else chosen.host
    if not _is_loopback(chosen.host):
        return {place, *chosen.hosts}
    return {*(f"{name}:{port}" for name in (place, "127.0.0.1", "localhost", "[::1]")), *chosen.hosts}


def _address(chosen: Serving, port: int) -> str:
    """Where the service is reached. Every interface at once is no place: then it is the first name it answers to."""
    if chosen.host in _EVERYWHERE:
        name = next(iter(chosen.hosts))
        return name if name.rpartition(":")[2].isdigit() else f"{name}:{port}"
    return f"[{chosen.host}]:{port}" if ":" in chosen.host else f"{chosen.host}:{port}"


def _greeting(chosen: Serving, port: int, token: str | None, example: Mapping[str, Any] | None) -> Iterator[str]:
    """What is said before anything is served. ``example`` are arguments for a first run, None where none are known."""
    scheme = "https" if chosen.certificate else "http"
    url = f"{scheme}://{_address(chosen, port)}"
    yield f"serving {chosen.target} at {url}/ (open it in a browser), runs in {redacted(chosen.journal)}"
    if token is not None:
        yield f"token, shown this once: {token}"
    if scheme == "http" and not _is_loopback(chosen.host):
        yield "warning: without TLS everybody on the way can read runs and tokens; give --certificate and --key"
    yield "start a run with:" if example is not None else "start a run with, and arguments in the braces:"
    body = shlex.quote(json.dumps({"arguments": example or {}}))
    yield (
        f"  curl {url}/runs -H 'Authorization: Bearer {token or 'TOKEN'}' -H 'Content-Type: application/json' -d {body}"
    )


class _Server(uvicorn.Server):
    """Lets the app drain before it stops, and says by its exit code alone how that went.

    The app gives a signal back once it has drained (:mod:`agents_progress.server.leaving`); one that comes before that
    is the second one.
    """

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self.should_exit = True
        self.force_exit = self.force_exit or not self._service.drained

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        before = {each: signal.signal(each, self.handle_exit) for each in SIGNALS}
        try:
            yield
        finally:
            for each, effect in before.items():
                signal.signal(each, effect)


def _config(app: ASGIApp, chosen: Serving) -> uvicorn.Config:
    config = uvicorn.Config(
        app,
        ws="none",
        lifespan="on",
        log_level="warning",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        timeout_graceful_shutdown=LAST_BYTES_S,
        ssl_certfile=chosen.certificate,
        ssl_keyfile=chosen.key,
    )
    config.load()  # a certificate that cannot be read is said before anything else
    return config
