"""The guard against the network: it refuses, it reports what was swallowed, and it can be lifted for this machine."""

from __future__ import annotations

import socket
import urllib.request
from contextlib import suppress

import pytest

from agents_progress.testing import NetworkReached, no_network


def test_no_network_refuses_lookups_and_connections_with_a_sentence() -> None:
    with pytest.raises(NetworkReached, match=r"tried to look up 'example\.org'"), no_network():
        socket.create_connection(("example.org", 80), timeout=1)
    with (
        socket.socket() as sock,
        pytest.raises(NetworkReached, match=r"tried to connect to '192\.0\.2\.1'"),
        no_network(),
    ):
        sock.connect_ex(("192.0.2.1", 80))


def test_no_network_reports_an_attempt_that_was_swallowed() -> None:
    with pytest.raises(NetworkReached, match=r"example\.org"), no_network(), suppress(Exception):
        urllib.request.urlopen("http://example.org", timeout=1)


def test_no_network_can_let_this_machine_through_and_is_undone() -> None:
    before = socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo
    with socket.create_server(("127.0.0.1", 0)) as server, no_network(loopback=True):
        socket.create_connection(server.getsockname(), timeout=1).close()
    assert (socket.socket.connect, socket.socket.connect_ex, socket.getaddrinfo) == before


def test_no_network_knows_a_host_that_is_given_as_bytes() -> None:
    with pytest.raises(NetworkReached, match=r"tried to look up 'example\.org'"), no_network():
        socket.getaddrinfo(b"example.org", 80)
    with no_network(loopback=True):
        assert socket.getaddrinfo(b"localhost", 80)
