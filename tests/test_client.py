"""The client's feeds: every envelope once and in order, whatever the network does, and no end that is none."""

from __future__ import annotations

import asyncio
import gzip
import logging
import random
from collections.abc import Iterator
from contextlib import aclosing
from typing import Any

import pytest

from agents_progress import sse
from agents_progress.client import Client, pace
from agents_progress.client.pace import LONGEST_WAIT_S, Pace
from agents_progress.errors import BadSnapshot, CursorExpired, Refused, RunErased, Unreachable, UsageError
from agents_progress.events import Envelope
from agents_progress.testing.contract.logs import Log, envelope
from agents_progress.view import RunView
from tests.feed_server import (
    FEED,
    Asked,
    Handle,
    chunked,
    frames,
    head,
    honest,
    in_turn,
    row,
    serving,
    snapshot_frame,
    story,
    view_of,
)

LOG = story()
SHORT = story(words=1, outcome="failed")[:2]
CHUNKED = {**FEED, "transfer-encoding": "chunked"}


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "FIRST_WAIT_S", 0.001)


async def taken(handle: Handle, after_seq: int = 0, **options: Any) -> tuple[list[Envelope], list[int]]:
    """What a client makes of a server, and the cursors it came with."""
    async with serving(handle) as server, Client(server.url, **options) as client:
        got = [envelope async for envelope in client.events(LOG[0].run_id, after_seq)]
        return got, server.cursors


async def followed(handle: Handle, **options: Any) -> RunView:
    async with serving(handle) as server, Client(server.url, **options) as client:
        return [view async for view in client.follow(LOG[0].run_id)][-1]


def saying(*pieces: bytes, status: int = 200, headers: dict[str, str] = FEED) -> Handle:
    """One answer, and the connection ends."""

    async def handle(asked: Asked) -> None:
        await asked.send(head(status, headers), *pieces)

    return handle


# Whole logs, cut connections.


async def test_a_log_comes_whole_and_ends_with_its_204() -> None:
    assert await taken(honest(LOG)) == (LOG, [0, len(LOG)])


async def test_a_feed_goes_on_after_the_cursor_it_is_given() -> None:
    assert await taken(honest(LOG), 5) == (LOG[5:], [5, len(LOG)])
    assert await taken(honest(LOG), len(LOG)) == ([], [len(LOG)])


async def test_a_cut_at_every_byte_loses_and_doubles_nothing() -> None:
    body = frames(SHORT)
    answer = head(200, CHUNKED) + chunked(body)
    count = 0
    cut_at = 0

    async def handle(asked: Asked) -> None:
        nonlocal count
        count += 1
        if count == 1:
            await asked.send(answer[:cut_at])
            if cut_at % 2:
                asked.cut()
        else:
            await honest(SHORT)(asked)

    async with serving(handle) as server, Client(server.url) as client:
        for cut_at in range(len(answer) + 1):
            count = 0
            assert [envelope async for envelope in client.events("run-1")] == SHORT, cut_at


async def test_two_hundred_random_cuts_give_exactly_the_log() -> None:
    chance = random.Random(20260)
    log = story(words=900)
    cuts = 200

    async def handle(asked: Asked) -> None:
        """Repeats some, splits anywhere, ends lines this way or that, and breaks off, but for the last time."""
        nonlocal cuts
        rest = log[max(asked.cursor - chance.randrange(4), 0) :]
        if asked.cursor == len(log):
            await asked.answer(204)
            return
        body = b"".join(sse.encode_envelope(item) * chance.choice([1, 1, 2]) + sse.comment() for item in rest)
        body = body.replace(b"\n", chance.choice([b"\n", b"\r\n", b"\r"]))
        if cuts:
            cuts -= 1
            body = body[: chance.randrange(300, 2600)]
        await asked.send(head(200, FEED), *_split(body, chance))
        if cuts and chance.random() < 0.5:
            asked.cut()

    got, cursors = await taken(handle)
    assert got == log
    assert cuts == 0 and len(cursors) > 200


def _split(body: bytes, chance: random.Random) -> Iterator[bytes]:
    while body:
        size = chance.choice([1, 2, 7, 400])
        yield body[:size]
        body = body[size:]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
async def test_line_ends_of_every_kind_are_read(end: bytes) -> None:
    assert (await taken(in_turn(saying(frames(LOG).replace(b"\n", end)), honest(LOG))))[0] == LOG


async def test_a_proxy_that_packs_the_feed_is_understood() -> None:
    packed = saying(gzip.compress(frames(LOG)), headers={**FEED, "content-encoding": "gzip"})
    async with serving(in_turn(packed, honest(LOG))) as server, Client(server.url) as client:
        assert [envelope async for envelope in client.events("run-1")] == LOG
        assert server.asked[0].headers["accept-encoding"] == "identity"


async def test_a_connection_that_ends_without_a_204_is_never_an_end() -> None:
    one_by_one = [saying(frames([envelope])) for envelope in LOG]
    assert await taken(in_turn(*one_by_one, honest(LOG))) == (LOG, list(range(len(LOG) + 1)))


async def test_frames_without_a_meaning_here_are_passed_over() -> None:
    extra = sse.encode("{}", event="brand-new", id="77") + sse.comment("beat") + sse.encode("bye", event="bye")
    assert (await taken(honest(LOG, prelude=extra)))[0] == LOG


async def test_a_server_that_is_restarted_loses_no_reader() -> None:
    got: list[Envelope] = []
    held = asyncio.Event()

    async def first(asked: Asked) -> None:
        await asked.send(head(200, FEED), frames(LOG[:7]))
        await held.wait()

    async def read(client: Client) -> None:
        async for event in client.events("run-1"):
            got.append(event)
            if len(got) == 7:
                seven.set()

    seven = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        async with serving(first) as server:
            client = Client(server.url)
            reading = group.create_task(read(client))
            await seven.wait()
        port = int(server.url.rpartition(":")[2])
        async with serving(honest(LOG), port) as again:
            await reading
        await client.close()
    assert got == LOG and again.cursors == [7, len(LOG)]


async def test_a_reader_that_leaves_closes_its_connection() -> None:
    gone = asyncio.Event()

    async def handle(asked: Asked) -> None:
        await asked.send(head(200, FEED), frames(LOG[:2]))
        try:
            while True:
                await asked.send(sse.comment())
                await asyncio.sleep(0)
        finally:
            gone.set()

    async with serving(handle) as server, Client(server.url) as client:
        async with aclosing(client.events("run-1")) as events:
            async for _ in events:
                break
        await gone.wait()


# Silence, refusals, patience.


@pytest.mark.parametrize("pieces", [[], [head(200, FEED)], [head(200, FEED), frames(LOG[:3])]], ids=len)
async def test_a_connection_that_says_nothing_for_two_heartbeats_is_dead(pieces: list[bytes]) -> None:
    async def silent(asked: Asked) -> None:
        await asked.send(*pieces)
        await asyncio.Event().wait()

    got, cursors = await taken(in_turn(silent, honest(LOG)), heartbeat_s=0.05)
    assert got == LOG
    assert cursors == [0, 3 if len(pieces) == 2 else 0, len(LOG)]


async def test_heartbeats_keep_a_quiet_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    progress = asyncio.Event()
    monkeypatch.setattr(Pace, "progress", lambda self: progress.set())

    async def quiet(asked: Asked) -> None:
        await asked.send(head(200, FEED))
        while not progress.is_set():  # said by the client, after more than one heartbeat
            await asked.send(sse.comment())
            await asyncio.sleep(0.01)
        await asked.send(frames(LOG))

    assert await taken(in_turn(quiet, honest(LOG)), heartbeat_s=0.2) == (LOG, [0, len(LOG)])


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """How long a client would have waited, without chance."""
    found: list[float] = []
    real = Pace.failed

    def failed(self: Pace, least_s: float | None = None) -> float | None:
        self._chance = lambda: 0.0
        wait = real(self, least_s)
        if wait is not None:
            found.append(wait)
        return None if wait is None else 0.0

    monkeypatch.setattr(Pace, "failed", failed)
    return found


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
async def test_what_a_proxy_says_for_a_while_is_waited_for(status: int, waits: list[float]) -> None:
    async def away(asked: Asked) -> None:
        await asked.send(head(status, {"content-type": "text/html", "retry-after": "7"}), b"<h1>down</h1>")

    assert (await taken(in_turn(away, honest(LOG))))[0] == LOG
    assert waits == [7.0]


async def test_what_a_server_of_runs_refuses_for_now_is_waited_for(waits: list[float]) -> None:
    async def draining(asked: Asked) -> None:
        await asked.refuse(503, "draining", headers={"retry-after": "5"})

    assert (await taken(in_turn(draining, draining, honest(LOG))))[0] == LOG
    assert waits == [5.0, 5.0]


@pytest.mark.parametrize(
    ("status", "code"), [(401, "unauthenticated"), (404, "not_found"), (400, "cursor_ahead"), (500, "internal")]
)
async def test_what_is_refused_for_good_is_raised_at_once(status: int, code: str) -> None:
    async with serving(lambda asked: asked.refuse(status, code, "say so")) as server, Client(server.url) as client:
        with pytest.raises(Refused, match=f"say so .{status} {code}") as refused:
            await anext(client.events("run-1"))
        assert (refused.value.status, refused.value.code, len(server.asked)) == (status, code, 1)


async def test_a_page_that_is_no_feed_is_refused() -> None:
    with pytest.raises(Refused, match="is it a server of runs"):
        await taken(saying(b"<html>", headers={"content-type": "text/html"}))


async def test_the_server_says_after_how_long_to_come_back(waits: list[float]) -> None:
    bye = sse.encode("", event="bye", retry_ms=1500)
    assert (await taken(in_turn(saying(frames(LOG[:4]), bye), saying(), honest(LOG))))[0] == LOG
    assert waits == [3.0] or waits == [1.5]  # nothing is waited for after progress, then the asked for time


async def test_a_reader_gives_up_when_patience_is_over() -> None:
    with pytest.raises(Unreachable, match="run-1 does not go on after 3 .*ask again from there"):
        await taken(in_turn(saying(frames(LOG[:3])), saying()), patience=0.01)


async def test_an_address_where_nobody_answers_is_unreachable() -> None:
    async with serving(honest(LOG)) as server:
        pass
    async with Client(server.url, patience=0.01) as client:
        with pytest.raises(Unreachable, match="ConnectError"):
            await anext(client.events("run-1"))


async def test_an_outage_is_logged_once_until_there_is_progress(caplog: pytest.LogCaptureFixture) -> None:
    async def down(asked: Asked) -> None:
        asked.cut()

    with caplog.at_level(logging.WARNING, "agents_progress"):
        await taken(in_turn(down, down, down, saying(frames(LOG[:2])), saying(), down, honest(LOG)))
    assert [record.args[:2] for record in caplog.records if record.args] == [("run-1", 0)]


# What cannot be had in order.


HOLE = frames([*LOG[:3], *LOG[4:]])
FOREIGN = frames([*LOG[:3], envelope(4, "note.x", run_id="run-2")])
MALFORMED = frames(LOG[:3]) + sse.encode('{"protocol": "agents-progress/2"}', id="4")
WRONG_PAYLOAD = frames([*LOG[:3], LOG[3]._replace(payload={"call_id": 5})])
NOT_UTF8 = frames(LOG[:3]) + b"\n" * 3000 + b"data: \xff\n\n"
ODD = {
    "a hole": HOLE,
    "another run": FOREIGN,
    "no envelope": MALFORMED,
    "a wrong payload": WRONG_PAYLOAD,
    "bytes that are not UTF-8": NOT_UTF8,
}
by_oddity = pytest.mark.parametrize("body", ODD.values(), ids=ODD)


async def _parted(asked: Asked, body: bytes) -> None:
    """So that what is good comes in a chunk of its own."""
    good = frames(LOG[:3])
    await asked.send(head(200, FEED), good if body.startswith(good) else b"")
    await asyncio.sleep(0.01)
    await asked.send(body.removeprefix(good))


@by_oddity
async def test_what_does_not_come_in_order_is_asked_for_once_more(body: bytes) -> None:
    got, cursors = await taken(in_turn(lambda asked: _parted(asked, body), honest(LOG)))
    assert (got, cursors) == (LOG, [0, 3, len(LOG)])


def stubborn(body: bytes) -> Handle:
    """The same oddity at every attempt; a snapshot leads past it."""

    async def handle(asked: Asked) -> None:
        if asked.query.get("snapshot") == ["1"] or asked.cursor > 3:
            await honest(LOG)(asked)
        else:
            await _parted(asked, body)

    return handle


@by_oddity
async def test_what_cannot_be_had_in_order_is_replaced_by_a_snapshot_for_who_wants_envelopes(body: bytes) -> None:
    async with serving(stubborn(body)) as server, Client(server.url) as client:
        got = []
        with pytest.raises(CursorExpired, match="after 3; go on from the snapshot") as expired:
            async for envelope in client.events("run-1"):
                got.append(envelope)
        assert got == LOG[:3]
        assert RunView.from_snapshot(expired.value.snapshot).snapshot() == view_of(LOG).snapshot()
        assert server.cursors == [0, 3, 3]


@by_oddity
async def test_what_cannot_be_had_in_order_heals_a_view(body: bytes) -> None:
    begun = saying(snapshot_frame(view_of(LOG[:1])), frames(LOG[1:3]))
    view = await followed(in_turn(begun, stubborn(body)))
    assert view.snapshot() == view_of(LOG).snapshot()


async def test_a_hole_that_a_snapshot_does_not_fill_ends_in_patience_and_not_in_a_loop() -> None:
    async def handle(asked: Asked) -> None:
        old = snapshot_frame(view_of(LOG[:3])) if asked.query.get("snapshot") else b""
        await asked.send(head(200, FEED), old + frames([LOG[5]]))

    with pytest.raises(Unreachable):
        await taken(in_turn(saying(frames(LOG[:3])), handle), patience=0.05)


async def test_an_expired_cursor_gives_the_snapshot_that_the_server_begins_with() -> None:  # REPL-1
    async def pruned(asked: Asked) -> None:
        await asked.send(head(200, FEED), snapshot_frame(view_of(LOG[:9])), frames(LOG[9:]))

    with pytest.raises(CursorExpired) as expired:
        await taken(pruned, 1)
    assert expired.value.snapshot["seq"] == 9
    got, _ = await taken(honest(LOG), expired.value.snapshot["seq"])
    assert got == LOG[9:]


async def test_a_snapshot_that_this_release_cannot_read_is_raised_and_not_asked_for_again() -> None:
    async with serving(saying(sse.encode('{"version": 99}', event="snapshot"))) as server, Client(server.url) as client:
        with pytest.raises(BadSnapshot, match="update it"):
            await anext(client.events("run-1"))
        assert len(server.asked) == 1


async def test_an_erased_run_ends_its_feeds_with_an_error() -> None:
    with pytest.raises(RunErased, match="run-1"):
        await taken(saying(frames(LOG[:2]), sse.encode("", event="erased")))


async def test_an_event_type_of_a_newer_server_is_given_and_a_view_of_it_shows_no_success() -> None:
    log = Log("run-1").start().say("brand.new").end().check().envelopes
    got, _ = await taken(honest(log))
    assert got == log and view_of(got).status == "unknown"


async def test_a_cursor_below_zero_and_a_run_id_that_is_none_are_refused_before_anything_is_asked() -> None:
    async with serving(honest(LOG)) as server, Client(server.url) as client:
        for run_id, cursor in (("run-1", -1), ("..", 0), (".", 0), ("a/b", 0), ("", 0), ("é", 0), ("x?y", 0)):
            with pytest.raises(UsageError):
                await anext(client.events(run_id, cursor))
        assert server.asked == []


# Views.


async def test_a_view_begins_with_what_the_server_knows_and_follows_every_envelope() -> None:
    async def live(asked: Asked) -> None:
        if asked.cursor == len(LOG):
            await asked.answer(204)
            return
        assert asked.query == {"snapshot": ["1"]}
        await asked.send(head(200, FEED), snapshot_frame(view_of(LOG[:20])), frames(LOG[20:]))

    seen: list[tuple[int, str]] = []
    async with serving(live) as server, Client(server.url) as client:
        async for view in client.follow("run-1"):
            seen.append((view.seq, view.status))
    assert seen[0] == (20, "running") and seen[-1] == (len(LOG), "done")
    assert [seq for seq, _ in seen] == list(range(20, len(LOG) + 1))


async def test_a_followed_run_ends_with_the_view_that_its_log_gives() -> None:
    chance = random.Random(7)

    async def handle(asked: Asked) -> None:
        body = frames(LOG[asked.cursor :])
        if asked.query.get("snapshot") == ["1"]:
            await asked.send(head(200, FEED), snapshot_frame(view_of(LOG[:2])), frames(LOG[2:4]))
        elif body:
            await asked.send(head(200, FEED), body[: chance.randrange(1, 900)])
        else:
            await asked.answer(204)

    assert (await followed(handle)).snapshot() == view_of(LOG).snapshot()


async def test_a_view_that_is_given_up_is_unknown_and_one_that_ended_stays_what_it_is() -> None:
    for upto, status in ((5, "unknown"), (len(LOG), "done")):
        views: list[RunView] = []
        broken = in_turn(saying(snapshot_frame(view_of(LOG[:upto]))), lambda asked: asked.refuse(404, "not_found"))
        async with serving(broken) as server, Client(server.url) as client:
            with pytest.raises(Refused):
                async for view in client.follow("run-1"):
                    views.append(view)
        assert views[-1].status == status


async def test_a_view_speaks_the_language_asked_for() -> None:
    async with serving(honest(LOG)) as server, Client(server.url) as client:
        assert [view.language async for view in client.follow("run-1", language="zh")] == ["zh"]


async def test_a_paused_run_is_followed_into_the_one_that_continues_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agents_progress.client._ASK_AGAIN_S", 0.001)
    paused = story(words=1, outcome="paused")
    later = Log("run-1.2").start(resumed_from="run-1").end().check().envelopes
    logs = {"/runs/run-1/events": honest(paused), "/runs/run-1.2/events": honest(later)}
    asked_for = 0

    async def handle(asked: Asked) -> None:
        nonlocal asked_for
        if asked.path in logs:
            await logs[asked.path](asked)
            return
        assert asked.path == "/runs/run-1"
        asked_for += 1
        await asked.answer(200, row(status="waiting", continued_as="run-1.2" if asked_for == 3 else None))

    async with serving(handle) as server, Client(server.url) as client:
        alone = [(view.run_id, view.status) async for view in client.follow("run-1")]
        both = [(view.run_id, view.status) async for view in client.follow("run-1", continued=True)]
    assert alone[-1] == ("run-1", "waiting")
    assert both[-1] == ("run-1.2", "done") and both[: len(alone)] == alone


# When to try again.


def test_waits_double_up_to_half_a_minute_and_start_over_after_progress() -> None:
    tries = Pace(None, clock=lambda: 0.0, chance=lambda: 0.0)
    tries.first_s = 0.25
    assert [tries.failed() for _ in range(8)] == [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, LONGEST_WAIT_S]
    for _ in range(5000):
        assert tries.failed() == LONGEST_WAIT_S
    tries.progress()
    assert tries.failed() == 0.25


def test_readers_that_fail_together_do_not_come_back_together() -> None:
    waits = {Pace(None, clock=lambda: 0.0).failed(2.0) for _ in range(100)}
    assert len(waits) > 90 and all(wait is not None and 2.0 <= wait <= 3.0 for wait in waits)


def test_what_a_server_asks_for_is_kept_to_within_an_hour() -> None:
    tries = Pace(None, clock=lambda: 0.0, chance=lambda: 0.0)
    tries.first_s = 45.0  # a retry field
    assert tries.failed() == 45.0 and tries.failed(120.0) == 120.0 and tries.failed(1e9) == 3600.0


def test_a_wait_of_nothing_still_grows() -> None:
    tries = Pace(None, clock=lambda: 0.0, chance=lambda: 0.0)
    tries.first_s = 0.0
    assert [tries.failed() for _ in range(4)] == [0.001, 0.002, 0.004, 0.008]


def test_patience_counts_from_the_first_failure_after_progress() -> None:
    now = 0.0
    tries = Pace(10.0, clock=lambda: now, chance=lambda: 0.0)
    assert tries.failed(4.0) == 4.0
    now = 7.0
    assert tries.failed(2.0) == 2.0
    assert tries.failed(4.0) is None
    tries.progress()
    assert tries.failed(4.0) == 4.0
