"""A guard for tests: no real connection is opened while it is on."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

_LOOPBACK = ("127.", "::1", "localhost")
_HERE = "; `@pytest.mark.loopback` or no_network(loopback=True) let it reach this machine"
_RULES = {"loopback": False}


class NetworkReached(RuntimeError):
    """Code under `no_network()` tried to look up a host or to open a connection."""


class _Attempts:
    """What was tried under one guard."""

    def __init__(self, loopback: bool) -> None:
        self._loopback = loopback
        self.made: list[str] = []

    def refuse(self, host: object, what: str) -> None:
        """Raise `NetworkReached`, unless the host is this machine and that is allowed."""
        __tracebackhide__ = True  # pytest shows the line that wanted to connect
        name = host.decode("ascii", "replace") if isinstance(host, bytes) else str(host)
        here = name.startswith(_LOOPBACK)
        if here and self._loopback:
            return
        self.made.append(f"{what} {name!r}{_HERE if here else ''}")
        raise NetworkReached(_told(self.made[-1:]))


def _told(attempts: Sequence[str]) -> str:
    return f"this code may not use the network, but it tried to {', '.join(attempts)}"


@contextmanager
def loopback_allowed() -> Iterator[None]:
    """Let `no_network()` let connections to this machine through meanwhile, where it is not told otherwise."""
    with patch.dict(_RULES, loopback=True):
        yield


@contextmanager
def no_network(*, loopback: bool | None = None) -> Iterator[None]:
    """Make every attempt to look up a host or to open an internet connection raise `NetworkReached`.

    An attempt also raises at the end of the block when the code swallowed the first error, as HTTP clients do, unless
    another exception is on its way. With `loopback` connections to this machine are let through, for tests
    with a server of their own; None means for those that are marked `@pytest.mark.loopback`. Sockets between
    processes of this machine (AF_UNIX) are never touched. It covers everything that connects through Python's
    `socket` module, in every thread; not uvloop or other native code. Use it in a fixture:
    `with no_network(): yield`.
    """
    attempts = _Attempts(_RULES["loopback"] if loopback is None else loopback)
    connect, connect_ex, lookup = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def guarded(real: Callable[[socket.socket, Any], Any]) -> Callable[[socket.socket, Any], Any]:
        def attempt(self: socket.socket, address: Any) -> Any:
            __tracebackhide__ = True
            if self.family in (socket.AF_INET, socket.AF_INET6):
                attempts.refuse(address[0], "connect to")
            return real(self, address)

        return attempt

    def guarded_lookup(host: Any, *args: Any, **kwargs: Any) -> Any:
        __tracebackhide__ = True
        attempts.refuse(host, "look up")
        return lookup(host, *args, **kwargs)

    with (
        patch.object(socket.socket, "connect", guarded(connect)),
        patch.object(socket.socket, "connect_ex", guarded(connect_ex)),
        patch.object(socket, "getaddrinfo", guarded_lookup),
    ):
        yield
    if attempts.made:
        raise NetworkReached(_told(attempts.made))


@contextmanager
def untraced() -> Iterator[None]:
    """Let the SDK trace nothing meanwhile: it would send its traces from a thread of its own, whenever it likes."""
    from agents.tracing import get_trace_provider, set_trace_provider
    from agents.tracing.provider import DefaultTraceProvider

    before, silent = get_trace_provider(), DefaultTraceProvider()
    silent.set_disabled(True)
    set_trace_provider(silent)
    try:
        yield
    finally:
        set_trace_provider(before)
