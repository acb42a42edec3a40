"""A guard for tests: no real connection is opened while it is on."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

_LOOPBACK = ("127.", "::1", "localhost")


class NetworkReached(RuntimeError):
    """Code under `no_network()` tried to look up a host or to open a connection."""


@contextmanager
def no_network(*, loopback: bool = False) -> Iterator[None]:
    """Make every attempt to look up a host or to open an internet connection raise `NetworkReached`.

    An attempt also raises at the end of the block when the code swallowed the first error, as HTTP clients do, unless
    another exception is on its way. With `loopback` connections to this machine are let through, for tests
    with a server of their own. Sockets between processes of this machine (AF_UNIX) are never touched. It covers
    everything that connects through Python's `socket` module, in every thread; not uvloop or other native code.
    Use it in a fixture: `with no_network(): yield`.
    """
    attempts: list[str] = []

    def refuse(host: object, what: str) -> None:
        if loopback and str(host).startswith(_LOOPBACK):
            return
        attempts.append(f"{what} {host!r}")
        raise NetworkReached(f"this code may not use the network, but it tried to {attempts[-1]}")

    connect, connect_ex, lookup = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo

    def guarded(real: Callable[[socket.socket, Any], Any]) -> Callable[[socket.socket, Any], Any]:
        def attempt(self: socket.socket, address: Any) -> Any:
            if self.family in (socket.AF_INET, socket.AF_INET6):
                refuse(address[0], "connect to")
            return real(self, address)

        return attempt

    def guarded_lookup(host: Any, *args: Any, **kwargs: Any) -> Any:
        refuse(host, "look up")
        return lookup(host, *args, **kwargs)

    with (
        patch.object(socket.socket, "connect", guarded(connect)),
        patch.object(socket.socket, "connect_ex", guarded(connect_ex)),
        patch.object(socket, "getaddrinfo", guarded_lookup),
    ):
        yield
    if attempts:
        raise NetworkReached(f"this code may not use the network, but it tried to {', '.join(attempts)}")
