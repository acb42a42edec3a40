"""Every real bridge goes on after any frame it sent, wherever its reader joined, with exactly what was to follow."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

pytest.importorskip("starlette", reason="the server extra is not installed")
pytest.importorskip("ag_ui", reason="the extra `ag-ui` is not installed")

from test_bridge_stream import write
from test_bridges import sole
from test_event_stream import Peer, hub, nothing_is_left_running

from agents_progress.bridges.ag_ui import AgUI
from agents_progress.bridges.base import Bridge
from agents_progress.bridges.vercel import Vercel
from agents_progress.events import Envelope
from agents_progress.journal import MemoryJournal
from agents_progress.journal.base import EVERYTHING
from agents_progress.server.bridge_stream import BridgeStream, Cursor, cursor_of
from agents_progress.server.feeds import Hub
from agents_progress.stored import view_at
from agents_progress.testing.contract.logs import OUTPUT, Log, story

__all__ = ["hub", "nothing_is_left_running"]


def busy(run_id: str = "r") -> Log:
    """A run with something of everything that a bridge holds open."""
    log = Log(run_id).say("run.accepted", task_id="task-1").start()
    log.say("model.started", response_id="m1").say(
        "text.delta", item_id="t1", index=0, text="think", channel="reasoning"
    )
    log.say("text.delta", item_id="t2", index=0, text="Hel").say("text.delta", item_id="t2", index=1, text="lo")
    log.say("model.completed", response_id="m1").say("stage.started", stage_id="stage-1", title="Weigh")
    log.request("c1", arguments='{"a": 1}').request("c2", kind="agent").say("tool.started", call_id="c2")
    log.request("c2/c1").say("tool.started", call_id="c2/c1").say("tool.failed", call_id="c2/c1", code="timeout")
    log.say("tool.finished", call_id="c2", output="x").say("stage.completed", stage_id="stage-1", title="Weigh")
    log.say("handoff.requested", from_agent="Clerk", to_agent="B").say("agent.changed", agent="B")
    log.say("handoff.completed", from_agent="Clerk", to_agent="B").say(
        "source.cited", item_id="t2", kind="url", url="https://x.test/"
    )
    log.say("artifact.created", artifact_id="a1", name="f", media_type="text/plain", bytes=3)
    log.say("guardrail.tripped", stage="output", name="g").say("note.mood", good=True)
    counts: dict[str, Any] = dict.fromkeys(("requests", "input_tokens", "output_tokens", "total_tokens"), 3)
    return log.say("usage.updated", **counts, cached_tokens=None, reasoning_tokens=None, status="partial")


def settled(log: Log) -> Log:
    return log.say("tool.skipped", call_id="c1", reason="not_run").say("text.completed", item_id="t2", text="Hello you")


LOGS: dict[str, Sequence[Envelope]] = {
    "story": story("r"),
    "accepted": settled(busy()).end().check().envelopes,
    "refused": settled(busy()).end().check(ok=False).envelopes,
    "not checked": settled(busy()).end().envelopes,
    "paused": busy().ask().end("paused").envelopes,
    "cancelled": busy().say("cancel.requested", mode="immediate").end("cancelled").envelopes,
    "incomplete": busy().end("incomplete", reason="max_turns").envelopes,
    "failed": busy().end("failed").envelopes,
    "lost": busy().say("run.lost", reason="lease_expired").envelopes,
    "cut": busy().envelopes,
}
BRIDGES: dict[str, Bridge] = {
    "ag-ui": AgUI(sole),
    "vercel 6": Vercel(sole, major=6),
    "vercel 7": Vercel(sole, major=7),
}


@pytest.mark.parametrize("log", LOGS)
@pytest.mark.parametrize("name", BRIDGES)
async def test_after_any_frame_of_any_reader_a_stream_goes_on_with_exactly_the_rest(
    journal: MemoryJournal, hub: Hub, name: str, log: str
) -> None:
    bridge, envelopes = BRIDGES[name], LOGS[log]
    await write(journal, envelopes)

    async def read(at: int, cursor: Cursor | None = None) -> list[bytes]:
        view = await view_at(journal, "r", at, EVERYTHING)
        peer = Peer(BridgeStream(hub, bridge, bridge.projection("c1", ""), view, cursor))
        await peer.closed()
        return peer.bytes.split(b"\n\n")

    resumed = 0
    for at in range(0, len(envelopes) + 1, 3):
        whole = await read(at)
        for place, block in enumerate(whole):
            if (cursor := cursor_of(block.partition(b"\n")[0].removeprefix(b"id: ").decode())) is not None:
                assert await read(cursor.joins_at, cursor) == whole[place + 1 :], (at, cursor.text)
                resumed += 1
    assert resumed > len(envelopes)


def test_what_is_told_here_is_what_the_journals_contract_ends_with() -> None:
    assert LOGS["accepted"][-2].payload["final_output"] == OUTPUT
