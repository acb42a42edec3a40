"""The stream of a run through a bridge: ids, going on after one, endings that are none of the run's, and faults."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the server extra is not installed")

from hypothesis import given
from hypothesis import strategies as st
from plainbridge import TERMINAL, Plain
from test_bridges import sole
from test_event_stream import Peer, hub, nothing_is_left_running, until

from agents_progress.bridges.base import CUTS
from agents_progress.events import Envelope
from agents_progress.journal import MemoryJournal
from agents_progress.journal.base import EVERYTHING
from agents_progress.server import bridge_stream
from agents_progress.server.bridge_stream import BridgeStream, Cursor, cursor_of
from agents_progress.server.feeds import Ending, Hub
from agents_progress.server.frames import envelopes_of, page_of
from agents_progress.sse import Frame
from agents_progress.stored import view_at, view_of
from agents_progress.testing.contract.logs import Log, story
from agents_progress.view import RunView

__all__ = ["hub", "nothing_is_left_running"]

BRIDGE = Plain(sole)


def told(hub: Hub, view: RunView, cursor: Cursor | None = None, **more: Any) -> Peer:
    return Peer(BridgeStream(hub, BRIDGE, BRIDGE.projection("c1", "k1"), view, cursor, **more))


def events(frames: Sequence[Frame]) -> list[dict[str, Any]]:
    return [json.loads(frame.data) for frame in frames if frame.data != "[LAST]"]


async def write(journal: MemoryJournal, log: Log | Sequence[Envelope], *, sealed: bool = True) -> str:
    envelopes = log.envelopes if isinstance(log, Log) else log
    await journal.append(envelopes)
    if sealed:
        await journal.seal(envelopes[0].run_id)
    return envelopes[0].run_id


def begun(run_id: str = "r") -> Log:
    return Log(run_id).start().say("text.delta", item_id="m1", index=0, text="Hi").request()


async def test_a_run_is_told_from_its_beginning_to_a_terminal_event_and_nothing_after(
    journal: MemoryJournal, hub: Hub
) -> None:
    await write(journal, begun().say("tool.finished", call_id="c1").end().check())
    peer = told(hub, RunView("r"))
    frames = await peer.closed()
    assert events(frames) == [
        {"e": "begun", "chat": "c1", "key": "k1", "run": "r"},
        {"e": "text", "of": "m1", "text": "Hi"},
        {"e": "call", "of": "c1", "state": "named"},
        {"e": "call", "of": "c1", "state": "requested"},
        {"e": "done"},
    ]
    assert [frame.id for frame in frames] == ["r:0+1", "r:2.1", "r:3.1", "r:3.2", "r:6.1", "r:6.1"]
    assert frames[-1].data == "[LAST]"
    assert peer.bytes.endswith(b"data: [LAST]\n\n: over\n\n")
    assert peer.ended
    headers = dict(peer.sent[0]["headers"])
    assert headers[b"x-plain"] == b"1"
    assert headers[b"content-type"].startswith(b"text/event-stream")


async def test_a_stream_is_over_with_its_terminal_event_though_the_log_is_still_open(
    journal: MemoryJournal, hub: Hub
) -> None:
    await write(journal, begun().say("tool.finished", call_id="c1").end("failed"), sealed=False)
    peer = told(hub, RunView("r"))
    assert events(await peer.closed())[-1] == {"e": "error", "code": "failed"}


async def test_success_is_held_back_until_the_check(journal: MemoryJournal, hub: Hub) -> None:
    log = begun().say("tool.finished", call_id="c1").end()
    await write(journal, log, sealed=False)
    peer = told(hub, RunView("r"))
    await until(lambda: len(peer.frames) == 4)
    await asyncio.sleep(0.02)
    assert [event["e"] for event in events(peer.frames)] == ["begun", "text", "call", "call"]
    await journal.append(log.check().envelopes[-1:])
    assert events(await peer.closed())[-1] == {"e": "done"}


# Going on after an event.


@pytest.mark.parametrize("text", ["r:1.1", "r:0+1", "a.b_c-D.2:123.45"])
def test_the_id_of_a_frame_is_a_cursor(text: str) -> None:
    cursor = cursor_of(text)
    assert cursor is not None
    assert f"{cursor.run_id}:{cursor.seq}{'+' if cursor.joined else '.'}{cursor.events}" == text


@given(st.text(max_size=20) | st.sampled_from(["r:1", "1", "r:1.1\n", "r:-1.1", "r:١.1", "r:1.1.1", f"r:{'9' * 16}.1"]))
def test_whatever_else_somebody_sends_is_none_or_an_exact_id(text: str) -> None:
    cursor = cursor_of(text)
    assert cursor is None or f"{cursor.run_id}:" == text[: len(cursor.run_id) + 1]


async def test_after_every_single_frame_a_reader_goes_on_with_the_next_one(journal: MemoryJournal, hub: Hub) -> None:
    await write(journal, story("r"))
    whole = await told(hub, RunView("r")).closed()
    assert len(whole) > 6
    for place, frame in enumerate(whole[:-1]):
        cursor = cursor_of(frame.id)
        assert cursor is not None
        view = await view_at(journal, "r", cursor.joins_at, EVERYTHING)
        rest = await told(hub, view, cursor).closed()
        assert [(each.id, each.data) for each in rest if each.data != "[LAST]"] == [
            (each.id, each.data) for each in whole[place + 1 : -1]
        ], frame.id
        assert rest[-1].data == "[LAST]"


async def test_after_every_frame_of_one_that_joined_late_a_reader_goes_on_with_the_next_one(
    journal: MemoryJournal, hub: Hub
) -> None:
    await write(journal, story("r"))
    for seq in range(len(story("r"))):
        whole = await told(hub, await view_at(journal, "r", seq, EVERYTHING)).closed()
        for place, frame in enumerate(whole[:-1]):
            cursor = cursor_of(frame.id)
            assert cursor is not None
            rest = await told(hub, await view_at(journal, "r", cursor.joins_at, EVERYTHING), cursor).closed()
            assert [each.data for each in rest] == [each.data for each in whole[place + 1 :]], (seq, frame.id)


async def test_a_view_at_a_number_is_that_of_what_was_said_by_then(journal: MemoryJournal) -> None:
    log = story("r")
    await write(journal, log)
    for seq in (0, 1, 5, len(log), len(log) + 5):
        view = RunView("r")
        for envelope in log[:seq]:
            view.feed(envelope)
        assert (await view_at(journal, "r", seq, EVERYTHING)).snapshot() == view.snapshot()


async def test_a_reader_that_joins_late_is_brought_to_where_the_run_is(journal: MemoryJournal, hub: Hub) -> None:
    log = begun()
    await write(journal, log, sealed=False)
    peer = told(hub, await view_of(journal, "r", EVERYTHING))
    await until(lambda: len(peer.frames) == 3)
    assert [frame.id for frame in peer.frames] == ["r:3+1", "r:3+2", "r:3+3"]
    await journal.append(log.say("text.delta", item_id="m1", index=1, text=" you").envelopes[-1:])
    await until(lambda: len(peer.frames) == 4)
    assert events(peer.frames)[-1] == {"e": "text", "of": "m1", "text": " you"}
    peer.gone.set()
    await peer.closed()


# Endings that are none of the run's.


async def test_a_log_that_is_closed_after_success_without_a_verdict_is_not_success(
    journal: MemoryJournal, hub: Hub
) -> None:
    log = begun().say("tool.finished", call_id="c1").end()
    await write(journal, log)
    late = await view_of(journal, "r", EVERYTHING)
    for view in (RunView("r"), late):
        assert events(await told(hub, view).closed())[-1] == {"e": "error", "code": "not_checked"}


async def test_a_log_that_is_closed_without_an_ending_is_unknown(journal: MemoryJournal, hub: Hub) -> None:
    await write(journal, begun())
    assert events(await told(hub, RunView("r")).closed())[-1] == {"e": "error", "code": "unknown"}


async def test_a_reader_is_told_when_its_run_is_erased(journal: MemoryJournal, hub: Hub) -> None:
    await write(journal, begun(), sealed=False)
    peer = told(hub, RunView("r"))
    await until(lambda: len(peer.frames) == 4)
    await journal.erase(run_id="r")
    assert events(await peer.closed())[-1] == {"e": "error", "code": "erased"}


async def test_a_reader_that_may_no_longer_read_is_told_so(journal: MemoryJournal, hub: Hub) -> None:
    await write(journal, begun(), sealed=False)

    async def again() -> bool:
        return False

    peer = told(hub, RunView("r"), again=again, again_s=0.02)
    assert events(await peer.closed())[-1] == {"e": "error", "code": "forbidden"}


async def test_a_server_that_goes_away_says_so_before_the_error_that_others_read(
    journal: MemoryJournal, hub: Hub
) -> None:
    await write(journal, begun(), sealed=False)
    peer = told(hub, RunView("r"))
    await until(lambda: len(peer.frames) == 4)
    hub.say_bye()
    assert events(await peer.closed())[-1] == {"e": "error", "code": "try_again"}
    assert b'"requested"}\n\n: bye\n\ndata: {"e": "error", "code": "try_again"}' in peer.bytes


async def test_a_reader_whose_place_was_pruned_is_sent_away_and_no_text_is_doubled(
    journal: MemoryJournal, hub: Hub
) -> None:
    await write(journal, story("r"))
    await journal.prune("r", 6)
    peer = told(hub, RunView("r"))
    assert [event["e"] for event in events(await peer.closed())] == ["begun", "error"]
    assert b": bye\n\n" in peer.bytes


async def test_a_fault_of_a_bridge_ends_the_stream_as_an_error_and_logs_no_text(
    journal: MemoryJournal, hub: Hub, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    await write(journal, begun().say("note.broken").end().check())
    frames = await told(hub, RunView("r")).closed()
    assert events(frames)[-1] == {"e": "error", "code": "internal"}
    assert [event["e"] for event in events(frames)] == ["begun", "text", "call", "call", "error"]
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text


async def test_a_bridge_that_cannot_even_join_ends_as_an_error(
    journal: MemoryJournal, hub: Hub, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write(journal, begun())
    monkeypatch.setattr(RunView, "activities", property(lambda view: 1 / 0))
    assert events(await told(hub, RunView("r")).closed()) == [{"e": "error", "code": "internal"}]


def test_every_ending_of_a_feed_is_cut_with_a_word_that_has_a_sentence() -> None:
    assert set(bridge_stream.CUTS) == set(Ending)
    assert set(bridge_stream.CUTS.values()) | {"not_checked", "internal"} == set(CUTS)


async def test_silence_is_broken_by_comments_also_where_envelopes_come_that_say_nothing(
    journal: MemoryJournal, hub: Hub
) -> None:
    log = begun()
    await write(journal, log, sealed=False)
    peer = told(hub, RunView("r"), heartbeat_s=0.05)
    await until(lambda: len(peer.frames) == 4)

    async def mumble() -> None:
        while b": \n\n" not in peer.bytes:
            await journal.append(log.say("note.hm").envelopes[-1:])
            await asyncio.sleep(0.005)

    await asyncio.wait_for(mumble(), 5)
    assert len(peer.frames) == 4
    peer.gone.set()
    await peer.closed()


def test_what_was_encoded_is_decoded_to_the_same_envelopes() -> None:
    log = Log("r").start().say("text.delta", item_id="m", index=0, text="a\n\ndata: \r\u2028{}").end().check().envelopes
    chunks = page_of(log, 0)
    assert [envelope for chunk in chunks for envelope in envelopes_of(chunk.frames)] == log


async def test_no_stream_ends_without_a_terminal_event(journal: MemoryJournal, hub: Hub) -> None:
    endings = [
        begun().end("paused"),
        begun().end("cancelled"),
        begun().end("incomplete"),
        begun().end("failed"),
        begun().say("run.lost", reason="lease_expired"),
        begun().end(),
        begun(),
    ]
    for number, log in enumerate(endings):
        run_id = f"r{number}"
        await write(
            journal,
            [envelope._replace(run_id=run_id, event_id=f"{run_id}:{envelope.seq}") for envelope in log.envelopes],
        )
        last = events(await told(hub, RunView(run_id)).closed())[-1]
        assert last["e"] in TERMINAL - {"done"}, number
