"""The response that writes one reader's event stream: what is sent, when, and how it is let go."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the server extra is not installed")
pytest.importorskip("uvicorn", reason="the server extra is not installed")

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route

from agents_progress.errors import JournalUnavailable
from agents_progress.journal import MemoryJournal
from agents_progress.journal.sqlite import SQLiteJournal
from agents_progress.server import feeds, frames
from agents_progress.server.feeds import Hub
from agents_progress.server.stream import EventStream
from agents_progress.sse import Decoder, Frame
from agents_progress.testing.contract.logs import started, ticks, viewed
from agents_progress.view import RunView

SOON = 10.0


async def until(holds: Callable[[], object]) -> None:
    async with asyncio.timeout(SOON):
        while not holds():
            await asyncio.sleep(0.001)


class Peer:
    """The other side of ASGI: takes what is sent, or stops taking, and goes away when told to."""

    def __init__(self, stream: EventStream, method: str = "GET") -> None:
        self.sent: list[dict[str, Any]] = []
        self.taking = asyncio.Event()
        self.taking.set()
        self.gone = asyncio.Event()
        self.broken = False
        """Whether sending and receiving raise instead."""
        self.requested = False
        connection = {"type": "http", "method": method, "path": "/", "headers": [], "asgi": {"version": "3.0"}}
        self.task = asyncio.create_task(stream(connection, self.receive, self.send))

    async def receive(self) -> dict[str, Any]:
        if not self.requested:
            self.requested = True
            return {"type": "http.request", "body": b"", "more_body": False}
        await self.gone.wait()
        if self.broken:
            raise OSError("the connection was reset")
        return {"type": "http.disconnect"}

    async def send(self, message: Any) -> None:
        await self.taking.wait()
        if self.broken:
            raise OSError("the connection was reset")
        self.sent.append(dict(message))

    async def closed(self) -> list[Frame]:
        await asyncio.wait_for(self.task, SOON)
        return self.frames

    @property
    def bodies(self) -> list[bytes]:
        return [message.get("body", b"") for message in self.sent[1:]]

    @property
    def bytes(self) -> bytes:
        return b"".join(self.bodies)

    @property
    def frames(self) -> list[Frame]:
        return Decoder().feed(self.bytes)

    @property
    def seqs(self) -> list[int]:
        return [int(frame.id) for frame in self.frames if frame.event == "message"]

    @property
    def ended(self) -> bool:
        """Whether the response has its end, as every one must that is not cut off."""
        return self.sent[-1]["type"] == "http.response.body" and not self.sent[-1].get("more_body", False)


@pytest.fixture(autouse=True)
async def nothing_is_left_running() -> AsyncIterator[None]:
    before = asyncio.all_tasks()
    yield
    await until(lambda: asyncio.all_tasks() - before <= {asyncio.current_task()})


@pytest.fixture
def hub(journal: MemoryJournal) -> Hub:
    return Hub(journal)


# The beginning.


async def test_the_headers_keep_every_proxy_from_holding_frames_back(hub: Hub) -> None:  # NET-1
    peer = Peer(EventStream(hub, "r"))
    await until(lambda: len(peer.sent) >= 2)
    assert (peer.sent[0]["type"], peer.sent[0]["status"]) == ("http.response.start", 200)
    assert sorted(peer.sent[0]["headers"]) == [
        (b"cache-control", b"no-store, no-transform"),
        (b"content-type", b"text/event-stream; charset=utf-8"),
        (b"x-accel-buffering", b"no"),
    ]
    peer.gone.set()
    await peer.closed()


async def test_the_first_bytes_come_at_once_and_say_when_to_come_back(hub: Hub) -> None:
    times = set()
    for _ in range(20):
        peer, decoder = Peer(EventStream(hub, "unknown")), Decoder()
        await until(lambda: len(peer.sent) >= 2)  # noqa: B023 - waited for at once
        assert decoder.feed(peer.bytes) == []
        times.add(decoder.retry_ms)
        peer.gone.set()
        await peer.closed()
    assert all(time is not None and 1000 <= time < 3000 for time in times)
    assert len(times) > 5


async def test_head_gives_the_headers_alone(hub: Hub) -> None:
    peer = Peer(EventStream(hub, "r"), method="HEAD")
    await peer.closed()
    assert (len(peer.sent[0]["headers"]), peer.bodies, peer.ended) == (3, [b""], True)


async def test_a_snapshot_goes_first_and_the_log_goes_on_after_it(journal: MemoryJournal, hub: Hub) -> None:
    log = [started("r"), *ticks("r", 2, 10)]
    await journal.append(log)
    await journal.seal("r")
    stream = EventStream(hub, "r", 3, snapshot=viewed("r", log[:6]))
    peer = Peer(stream)
    first, *rest = await peer.closed()
    assert stream.first == b""  # what is large is not kept for as long as the stream lives
    assert (first.event, first.id) == ("snapshot", "6")
    view = RunView.from_snapshot(json.loads(first.data))
    for frame in rest:
        view.feed(frame.data)
    assert view.snapshot() == viewed("r", log)
    assert [frame.id for frame in rest] == ["7", "8", "9", "10"]


# Frames.


async def test_a_reader_gets_what_is_stored_and_what_comes_until_the_log_is_closed(
    journal: MemoryJournal, hub: Hub
) -> None:
    await journal.append(ticks("r", 1, 300))
    peer = Peer(EventStream(hub, "r", 17))
    await until(lambda: peer.seqs == list(range(18, 301)))
    for seq in range(301, 321):
        await journal.append(ticks("r", seq, seq))
    await journal.seal("r")
    await peer.closed()
    assert peer.seqs == list(range(18, 321))
    assert peer.ended
    assert [frame.event for frame in peer.frames] == ["message"] * 303


async def test_a_pruned_cursor_gets_the_snapshot_and_never_a_silent_gap(
    journal: MemoryJournal, hub: Hub
) -> None:  # REPL-1
    await journal.append([started("r"), *ticks("r", 2, 4)])
    await journal.prune("r", 2)
    await journal.seal("r")
    peer = Peer(EventStream(hub, "r", 1))
    assert [(frame.event, frame.id) for frame in await peer.closed()] == [
        ("snapshot", "2"),
        ("message", "3"),
        ("message", "4"),
    ]


async def test_no_write_is_large_however_far_a_reader_is_behind(journal: MemoryJournal, hub: Hub) -> None:
    log = [
        started("r"),
        *(ticks("r", seq, seq, text="巡检 " * (50 if seq % 500 else 20_000))[0] for seq in range(2, 2001)),
    ]
    await journal.append(log)
    await journal.seal("r")
    snapshot = {**viewed("r", log[:1]), "padding": "x" * 1_000_000}
    peer = Peer(EventStream(hub, "r", snapshot=snapshot))
    first, *rest = await peer.closed()
    assert json.loads(first.data) == snapshot
    assert [int(frame.id) for frame in rest] == list(range(2, 2001))
    assert max(map(len, peer.bodies)) <= frames.WRITE_BYTES


async def test_silence_is_filled_with_comments_that_no_reader_sees(journal: MemoryJournal, hub: Hub) -> None:
    await journal.append(ticks("r", 1, 1))
    peer = Peer(EventStream(hub, "r", 1, heartbeat_s=0.02))
    await until(lambda: peer.bodies.count(b": \n\n") >= 3)
    await journal.append(ticks("r", 2, 3))
    await until(lambda: peer.bodies.count(b": \n\n") >= 6)
    await journal.seal("r")
    await peer.closed()
    assert peer.seqs == [2, 3]


async def test_a_busy_run_needs_no_heartbeat(journal: MemoryJournal, hub: Hub) -> None:
    peer = Peer(EventStream(hub, "r", heartbeat_s=5.0))
    for seq in range(1, 100):
        await journal.append(ticks("r", seq, seq))
        await asyncio.sleep(0.001)
    await journal.seal("r")
    await peer.closed()
    assert b": \n" not in peer.bytes


# Endings.


async def test_an_erased_run_says_so_and_closes(journal: MemoryJournal, hub: Hub) -> None:
    await journal.append(ticks("r", 1, 2))
    peer = Peer(EventStream(hub, "r"))
    await until(lambda: peer.seqs == [1, 2])
    await journal.erase(run_id="r")
    *_, last = await peer.closed()
    assert (last.event, last.data) == ("erased", "{}")
    assert peer.ended


async def test_at_shutdown_every_reader_has_what_is_there_and_is_told_to_come_back_at_a_time_of_its_own(
    journal: MemoryJournal, hub: Hub
) -> None:
    await journal.append(ticks("r", 1, 5))
    peers = [Peer(EventStream(hub, "r", 2)) for _ in range(40)]
    await until(lambda: all(peer.seqs == [3, 4, 5] for peer in peers))
    await journal.append(ticks("r", 6, 7))
    await hub.close()
    times = set()
    for peer in peers:
        frames = await peer.closed()
        decoder = Decoder()
        decoder.feed(peer.bytes)
        times.add(decoder.retry_ms)
        assert frames[-1].event == "bye"
        assert frames[-1].id == "7"
        assert peer.seqs == [3, 4, 5, 6, 7]
        assert peer.ended
    assert all(time is not None and 1000 <= time < 3000 for time in times)
    assert len(times) > 10


async def test_a_journal_that_stays_away_ends_the_stream_with_a_bye(
    journal: MemoryJournal, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def away(*place: Any, **scope: Any) -> list[Any]:
        raise JournalUnavailable("away; wait")

    monkeypatch.setattr(feeds, "RETRY_S", 0.005)
    monkeypatch.setattr(journal, "read", away)
    monkeypatch.setattr(journal, "run", away)
    peer = Peer(EventStream(Hub(journal, patience=0.05), "r"))
    assert [frame.event for frame in await peer.closed()] == ["bye"]
    assert peer.ended
    assert caplog.records == []


# Authorised again.


async def no() -> bool:
    return False


async def refuse() -> bool:
    raise ConnectionError("a private reason")


async def forever() -> bool:
    await asyncio.Event().wait()
    return True


@pytest.mark.parametrize(("again", "said"), [(no, 0), (refuse, 1), (forever, 1)])
async def test_a_reader_that_is_not_allowed_any_more_is_closed(
    journal: MemoryJournal,
    hub: Hub,
    again: Callable[[], Awaitable[bool]],
    said: int,
    caplog: pytest.LogCaptureFixture,
) -> None:
    await journal.append(ticks("r", 1, 2))
    peer = Peer(EventStream(hub, "r", again=again, again_s=0.05))
    await peer.closed()
    assert (peer.seqs, peer.ended, hub.readers()) == ([1, 2], True, 0)
    assert len(caplog.records) == said
    assert "private" not in caplog.text


async def test_a_reader_that_may_stay_is_asked_again_and_again_and_misses_nothing(
    journal: MemoryJournal, hub: Hub
) -> None:
    asked: list[int] = []

    async def yes() -> bool:
        asked.append(1)
        return True

    peer = Peer(EventStream(hub, "r", again=yes, again_s=0.02))
    await journal.append(ticks("r", 1, 2))
    await until(lambda: len(asked) >= 3)
    await journal.append(ticks("r", 3, 3))
    await journal.seal("r")
    await peer.closed()
    assert peer.seqs == [1, 2, 3]


# Leaving.


async def test_a_reader_that_leaves_is_let_go_with_everything(journal: MemoryJournal, hub: Hub) -> None:
    await journal.append(ticks("r", 1, 2))
    before = asyncio.all_tasks()
    peers = [Peer(EventStream(hub, "r", again=forever, again_s=30)) for _ in range(20)]
    await until(lambda: all(peer.seqs == [1, 2] for peer in peers))
    for peer in peers:
        peer.gone.set()
    for peer in peers:
        await peer.closed()
    assert (hub.readers(), hub.watched) == (0, frozenset())
    await until(lambda: asyncio.all_tasks() <= before)


async def test_a_reader_that_leaves_in_the_middle_of_a_write_is_let_go(journal: MemoryJournal, hub: Hub) -> None:
    peer = Peer(EventStream(hub, "r"))
    await until(lambda: len(peer.sent) == 2)
    peer.taking.clear()
    await journal.append(ticks("r", 1, 2))
    peer.gone.set()
    await peer.closed()
    assert hub.readers() == 0
    assert hub.counts.stalled == 0


async def test_a_server_that_says_so_by_an_error_is_understood(
    journal: MemoryJournal, hub: Hub, caplog: pytest.LogCaptureFixture
) -> None:
    peer = Peer(EventStream(hub, "r"))
    await until(lambda: len(peer.sent) == 2)
    peer.broken = True
    peer.gone.set()
    await journal.append(ticks("r", 1, 2))
    await peer.closed()
    assert hub.readers() == 0
    gc.collect()
    assert caplog.records == []


async def test_a_reader_that_takes_nothing_is_cut_off_and_the_others_notice_nothing(
    journal: MemoryJournal, hub: Hub
) -> None:
    stuck = [Peer(EventStream(hub, "r", stall_s=0.1)) for _ in range(30)]
    well = Peer(EventStream(hub, "r", stall_s=0.1))
    await until(lambda: all(len(peer.sent) == 2 for peer in stuck))
    for peer in stuck:
        peer.taking.clear()
    for seq in range(1, 101):
        await journal.append(ticks("r", seq, seq))
        await asyncio.sleep(0)
    await until(lambda: well.seqs == list(range(1, 101)))
    for peer in stuck:
        peer.gone.set() if peer is stuck[0] else None
        await peer.closed()
    assert hub.readers() == 1
    assert hub.counts.stalled >= 29
    await journal.seal("r")
    await well.closed()
    assert well.seqs == list(range(1, 101))


async def test_a_stream_that_its_server_cancels_leaves_nothing(journal: MemoryJournal, hub: Hub) -> None:
    peer = Peer(EventStream(hub, "r"))
    await until(lambda: len(peer.sent) == 2)
    peer.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await peer.closed()
    assert hub.readers() == 0


async def test_a_reader_that_catches_up_lets_others_come_in_between(journal: MemoryJournal, hub: Hub) -> None:
    there = Peer(EventStream(hub, "r"))
    await until(lambda: len(there.sent) == 2)
    await journal.append(ticks("r", 1, 200, text="x" * 1000))  # the feed keeps all of it, for several writes
    await until(lambda: there.seqs[-1:] == [200])
    late = Peer(EventStream(hub, "r"))
    while len(late.sent) < 3:
        await asyncio.sleep(0)
    assert 0 < late.seqs[-1] < 200
    await journal.seal("r")
    assert [int(frame.id) for frame in await late.closed()] == list(range(1, 201))
    await there.closed()


# Over real sockets.


class Served:
    """A uvicorn in this event loop, and what its loggers say."""

    def __init__(self, server: uvicorn.Server, records: list[logging.LogRecord]) -> None:
        self.port: int = server.servers[0].sockets[0].getsockname()[1]
        self.connections = server.server_state.connections
        self.records = records

    async def open(self, query: str = "") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(f"GET /feed?{query} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        return reader, writer

    async def seqs(self, query: str = "") -> list[int]:
        """Read one stream to its end."""
        reader, writer = await self.open(query)
        async with asyncio.timeout(30):
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200")
            body = b""
            while size := int(await reader.readline(), 16):
                body += await reader.readexactly(size)
                assert await reader.readline() == b"\r\n"
        writer.close()
        return [int(frame.id) for frame in Decoder().feed(body)]


@asynccontextmanager
async def serving(hub: Hub, http: str = "h11", **options: Any) -> AsyncIterator[Served]:
    async def feed(request: Request) -> EventStream:
        return EventStream(hub, "r", int(request.query_params.get("after_seq", 0)), **options)

    records: list[logging.LogRecord] = []
    app = Starlette(routes=[Route("/feed", feed)])
    config = uvicorn.Config(app, host="127.0.0.1", port=0, http=http, ws="none", log_level="info", access_log=False)  # type: ignore[arg-type]
    for name in ("uvicorn", "uvicorn.error"):
        logging.getLogger(name).addFilter(lambda record: records.append(record) or False)  # type: ignore[func-returns-value]
    server = uvicorn.Server(config)
    running = asyncio.create_task(server.serve())
    try:
        await until(lambda: server.started)
        yield Served(server, records)
    finally:
        hub.say_bye()
        server.should_exit = True
        await asyncio.wait_for(running, SOON)
        for name in ("uvicorn", "uvicorn.error"):
            logging.getLogger(name).filters.clear()
    assert [record.getMessage() for record in records if record.levelno > logging.INFO] == []


def http_implementations() -> list[str]:
    from importlib.util import find_spec

    return ["h11", *(["httptools"] if find_spec("httptools") else [])]


@pytest.mark.parametrize("http", http_implementations())
async def test_over_http_every_reader_has_the_whole_log(journal: MemoryJournal, hub: Hub, http: str) -> None:
    async with serving(hub, http) as served:
        reading = [asyncio.create_task(served.seqs(f"after_seq={after}")) for after in (0, 0, 5, 99)]
        for start in range(1, 501, 5):
            await journal.append(ticks("r", start, start + 4))
            await asyncio.sleep(0.001)
        await journal.seal("r")
        for after, given in zip((0, 0, 5, 99), await asyncio.gather(*reading), strict=True):
            assert given == list(range(after + 1, 501))


@pytest.mark.parametrize("http", http_implementations())
async def test_sockets_that_take_nothing_are_cut_off_and_their_memory_is_bounded(
    journal: MemoryJournal, hub: Hub, http: str
) -> None:
    async with serving(hub, http, stall_s=0.5) as served:
        stuck = []
        for _ in range(20):
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", served.port))
            await asyncio.get_running_loop().sock_sendall(sock, b"GET /feed HTTP/1.1\r\nhost: localhost\r\n\r\n")
            stuck.append(sock)
        await until(lambda: hub.readers() == 20)
        well = asyncio.create_task(served.seqs())
        for start in range(1, 301, 10):  # 9 MB, which no socket buffers
            await journal.append(ticks("r", start, start + 9, text="x" * 30_000))
            await asyncio.sleep(0.01)
        await until(lambda: hub.readers() == 1)
        assert hub.counts.stalled == 20
        await journal.seal("r")
        assert await well == list(range(1, 301))
        for sock in stuck:
            sock.close()


@pytest.mark.parametrize("http", http_implementations())
async def test_sockets_that_do_not_take_the_end_of_a_log_are_cut_off_however_little_is_left(
    journal: MemoryJournal, hub: Hub, http: str
) -> None:
    await journal.append(ticks("r", 1, 80, text="x" * 4000))
    await journal.seal("r")
    async with serving(hub, http, stall_s=0.3) as served:
        stuck = []
        for after_seq in range(0, 80, 2):  # some take all there is, some leave more than is kept, some less
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, 1460)  # as on a network
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(sock, ("127.0.0.1", served.port))
            asked = f"GET /feed?after_seq={after_seq} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n"
            await asyncio.get_running_loop().sock_sendall(sock, asked.encode())
            stuck.append(sock)
        await until(lambda: hub.counts.stalled)
        await until(lambda: not served.connections)
        assert 0 < hub.counts.stalled < len(stuck)
        for sock in stuck:
            sock.close()


@pytest.mark.parametrize("http", http_implementations())
async def test_readers_that_vanish_leave_nothing_and_no_word_in_the_log(
    journal: MemoryJournal, hub: Hub, http: str
) -> None:
    async with serving(hub, http) as served:
        for _ in range(20):
            reader, writer = await served.open()
            await reader.readuntil(b"\n\n")
            sock = writer.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # closes by a reset
            writer.transport.abort()
        await journal.append(ticks("r", 1, 50))
        await until(lambda: hub.readers() == 0)


async def test_a_reader_at_the_end_of_a_long_run_has_its_first_byte_at_once(tmp_path: Any) -> None:
    journal = SQLiteJournal(tmp_path / "runs.db")
    last = 20_000
    for start in range(1, last, 5000):
        await journal.append(ticks("r", start, start + 4999))
    loop = asyncio.get_running_loop()
    async with serving(Hub(journal)) as served:
        times = []
        for _ in range(5):
            began = loop.time()
            reader, writer = await served.open(f"after_seq={last - 1}")
            frames: list[Frame] = []
            await reader.readuntil(b"\r\n\r\n")
            while not frames:
                frames = Decoder().feed((await reader.readuntil(b"}\n\n")).partition(b"\r\n")[2])
            times.append(loop.time() - began)
            assert frames[0].id == str(last)
            writer.close()
    await journal.close()
    assert min(times) < 0.5
