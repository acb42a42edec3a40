"""The streams at AG-UI's own client, in Node: what it shows of them is what the tests compute, and our check of truth
reads an end as it does.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic_core import to_json

from agents_progress.errors import UsageError
from agents_progress.testing.ag_ui_screen import Screen
from tests.browser.node import needs_node, node
from tests.test_ag_ui import Stream, asking, everything, flat, interrupts_of, kept, seen, streamed, two_parts, whole

DRIVER = Path(__file__).parent / "ag_ui" / "replay.mjs"
FOLDER = Path(os.environ.get("BRIDGES", Path(sys.prefix, "bridges"))) / "ag-ui"
"""Where .ci/browser puts the packages of npm."""

pytestmark = [
    needs_node,
    pytest.mark.skipif(
        not (FOLDER / "node_modules" / "@ag-ui" / "client").is_dir(),
        reason="@ag-ui/client is not installed; .ci/browser installs it",
    ),
]


def read(streams: Sequence[Stream], folder: Path, history: Sequence[Any] = ()) -> list[dict[str, Any]]:
    """What the client shows of each stream, sent as the bridge sends it."""
    file = folder / "streams.jsonl"
    frames = [
        "".join(f"id: r:1.{n}\ndata: {to_json(event).decode()}\n\n" for n, event in enumerate(each, 1))
        for each in streams
    ]
    file.write_text("".join(f"{json.dumps({'frames': each, 'history': list(history)})}\n" for each in frames))
    answers = [json.loads(line) for line in node(str(DRIVER), str(FOLDER), str(file)).splitlines()]
    assert len(answers) == len(streams)
    return answers


def computed(screen: Screen, asked: Sequence[str] = ()) -> dict[str, Any]:
    return {
        "ended": screen.ended,
        "code": screen.code,
        "failed": None,
        "warned": [],
        "texts": screen.texts,
        "order": screen.order,
        "arguments": screen.arguments,
        "results": screen.results,
        "activities": screen.activities,
        "asked": [*asked],
    }


def test_the_client_shows_of_every_stream_what_the_tests_compute(tmp_path: Path) -> None:
    logs = [*kept().values(), everything(), two_parts(), two_parts("reasoning")]
    streams = [whole(log, start) for log in logs for start in sorted({0, len(log) // 2})]
    for stream, found in zip(streams, read(streams, tmp_path), strict=True):
        asked = [each["id"] for each in stream[-1].get("outcome", {}).get("interrupts", ())]
        assert found == json.loads(to_json(computed(seen(stream), asked)))


def test_a_question_of_ours_is_one_that_the_client_waits_for(tmp_path: Path) -> None:
    log = asking(details="order 1", expires_at="2026-10-08T08:00:00Z")
    (found,) = read([flat(streamed(log))], tmp_path)
    assert found["asked"] == [each["id"] for each in interrupts_of(log)]


def test_a_client_that_holds_half_of_a_text_shows_the_whole_once_and_keeps_the_rest(tmp_path: Path) -> None:
    log = kept()["tool 1 accepted"]
    message = next(iter(seen(flat(streamed(log))).texts))
    history = [
        {"id": "u1", "role": "user", "content": "Hi"},
        {"id": message, "role": "assistant", "content": "half of"},
        {"id": "a0", "role": "assistant", "content": "before"},
    ]
    streams = [flat(streamed(log, start, history)) for start in range(len(log) + 1)]
    texts = {**seen(flat(streamed(log))).texts, "u1": "Hi", "a0": "before"}
    assert [found["texts"] for found in read(streams, tmp_path, history)] == [texts] * len(streams)


ENDS: list[Stream] = [
    [{"type": "RUN_FINISHED"}],
    [{"type": "RUN_FINISHED", "outcome": {"type": "success"}}],
    [{"type": "RUN_FINISHED", "outcome": {"type": "of a later version"}}],
    [{"type": "RUN_FINISHED", "outcome": {"type": "cancelled"}}],
    [{"type": "RUN_ERROR", "message": "no"}],
    [{"type": "RUN_FINISHED"}, {"type": "CUSTOM", "name": "late", "value": 1}],
    [{"type": "RUN_FINISHED"}, {"type": "RUN_ERROR", "message": "no"}],
    [{"type": "TEXT_MESSAGE_START", "messageId": "m"}, {"type": "RUN_FINISHED"}],
    [{"type": "STEP_STARTED", "stepName": "s"}, {"type": "STEP_STARTED", "stepName": "s"}],
    [{"type": "TOOL_CALL_END", "toolCallId": "c"}],
    [{"type": "SUBAGENT_FINISHED", "subagentRunId": "c"}],
    [{"type": "REASONING_MESSAGE_CONTENT", "messageId": "m", "delta": "x"}],
]


@pytest.mark.parametrize("rest", ENDS, ids=json.dumps)
def test_our_check_of_truth_reads_an_end_as_the_client_does(rest: Stream, tmp_path: Path) -> None:
    ids = {"threadId": "t", "runId": "r"}
    stream = [
        {**event, **(ids if event["type"] == "RUN_FINISHED" else {})}
        for event in [{"type": "RUN_STARTED", **ids}, *rest]
    ]
    (found,) = read([stream], tmp_path)
    screen = Screen()
    try:
        seen(stream, screen)
    except UsageError:
        assert found["failed"] is not None
    else:
        assert (found["ended"], found["failed"]) == (screen.ended, None)
