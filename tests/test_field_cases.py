"""The cases from the field that are about a run's events and its ending, each with its exact right values."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from agents import Agent, Runner, RunResultStreaming, function_tool
from agents.items import ToolCallItem
from agents.memory import SessionABC
from agents.stream_events import RunItemStreamEvent
from staging import (
    OPEN,
    Log,
    Prebuilt,
    add,
    call_item,
    item_done,
    log_of,
    on,
    response_completed,
    response_created,
    scripted,
    started,
)

from agents_progress import RunView, follow
from agents_progress.run import Run
from agents_progress.sse import Decoder, encode_envelope
from agents_progress.testing import (
    ScriptedAPI,
    call,
    completed,
    error,
    event,
    failed,
    hang_up,
    incomplete,
    raw_item,
    text,
    turn,
    wait,
)


def altered(result: RunResultStreaming, change: Callable[[Any], Iterable[Any]], **options: Any) -> Run:
    """A followed result whose events are changed as they are made, as another release of the SDK might make them."""
    run = follow(result, **options)
    queue = result._event_queue
    put = queue.put_nowait

    def put_changed(sdk_event: Any) -> None:
        for one in change(sdk_event) if hasattr(sdk_event, "type") else (sdk_event,):
            put(one)

    queue.put_nowait = put_changed  # type: ignore[method-assign]
    return run


# Endings.


async def test_end_1_a_response_that_completes_is_not_a_run_that_ends() -> None:
    b = scripted(turn(text("done")), name="B")
    run = started(scripted(turn(call("add", call_id="c1")), turn(call("transfer_to_b")), tools=[add], handoffs=[b]))
    log = await log_of(run)
    assert log.types.count("model.completed") == 3
    assert log.types[-1] == "run.ended" and len(log.endings) == 1
    assert (log.ending["outcome"], log.ending["final_output"]) == ("succeeded", "done")
    assert log.view.usage is not None and log.view.usage["requests"] == 3
    before_last = log.envelopes[: max(at for at, type_ in enumerate(log.types) if type_ == "model.completed")]
    assert Log(before_last).endings == [] and Log(before_last).view.status == "running"


@pytest.mark.parametrize(
    ("ending", "kind", "reason", "code"),
    [
        (incomplete("max_output_tokens"), "incomplete", "max_output_tokens", None),
        (failed("server_error"), "failed", None, "server_error"),
        (error("server_error"), "failed", None, "server_error"),
    ],
    ids=["a", "b", "c"],
)
async def test_end_2_a_response_that_was_cut_or_failed_is_no_answer(
    ending: Any, kind: str, reason: str | None, code: str | None
) -> None:
    shown = asyncio.Event()
    run = started(scripted(turn(text("par", wait(shown)), ending)), coalesce=None, sinks=[on("text.delta", shown.set)])
    log = await log_of(run)
    assert (log.ending["outcome"], log.ending.get("reason"), log.ending["final_output"]) == (kind, reason, None)
    assert log.ending.get("error", {}).get("code") == code
    assert log.ending["partial"] is True and log.view.text == "par"
    assert log.view.status == kind


async def test_end_3a_a_stream_that_just_stops_is_a_failure() -> None:
    shown = asyncio.Event()
    run = started(
        scripted(turn(text("par", wait(shown), hang_up()))), coalesce=None, sinks=[on("text.delta", shown.set)]
    )
    log = await log_of(run)
    assert log.ending["outcome"] == "failed" and log.ending["final_output"] is None
    assert log.ending["error"]["code"] == "model_behavior" and log.ending["partial"] is True
    assert "final response" in str(run.error)
    assert "model.completed" not in log.types


async def test_end_3b_a_feed_that_just_stops_is_unknown_and_can_be_taken_up_again() -> None:
    log = await log_of(started(scripted(turn(text("partial answer")))))
    frames = [encode_envelope(envelope) for envelope in log.envelopes]
    cut_after = log.types.index("text.delta") + 1
    view, decoder = RunView(log.envelopes[0].run_id), Decoder()
    for frame in decoder.feed(b"".join(frames[:cut_after])):
        view.feed(frame.data)
    view.close_transport()
    assert (view.status, view.terminal, view.issues) == ("unknown", None, [])
    resumed, decoder = RunView.from_snapshot(view.snapshot()), Decoder()
    for frame in decoder.feed(b"".join(frames[view.seq :])):
        resumed.feed(frame.data)
    assert resumed.status == "checking" and resumed.text == "partial answer" and resumed.issues == []


async def test_end_9_a_run_fails_once_and_a_second_ending_is_an_issue() -> None:
    @function_tool(failure_error_function=None)
    def fatal() -> str:
        raise ValueError("kaput")

    log = await log_of(started(scripted(turn(call("fatal")), turn(text("no")), tools=[fatal])))
    assert log.ending["outcome"] == "failed" and log.types[-1] == "run.ended"
    ending = log.envelopes[-1]
    for outcome in ("succeeded", "failed"):
        view, payload = log.view, {"outcome": outcome, "final_output": None}
        seq = ending.seq + 1
        view.feed(ending._replace(event_id=f"{ending.run_id}:{seq}", seq=seq, payload=payload))
        assert view.status == "unknown" and view.issues == ["event_after_terminal"]
        assert view.terminal is not None and view.terminal["outcome"] == "failed"


class Locked(SessionABC):
    """A session whose second save fails."""

    session_id = "s"

    def __init__(self) -> None:
        self.saves = 0

    async def get_items(self, limit: int | None = None) -> list[Any]:
        return []

    async def add_items(self, items: list[Any]) -> None:
        self.saves += 1
        if self.saves == 2:
            raise RuntimeError("database is locked")

    async def pop_item(self) -> Any:
        return None

    async def clear_session(self) -> None:
        self.saves = 0


async def test_end_10_an_answer_that_could_not_be_saved_is_a_failure() -> None:
    run = started(scripted(turn(text("all good"))), session=Locked())
    async with asyncio.timeout(5):
        log = await log_of(run)
    assert (log.ending["outcome"], log.ending["final_output"]) == ("failed", None)
    assert str(run.error) == "database is locked"
    assert log.ending["error"]["code"] == "session_error"
    assert b"database is locked" not in b"".join(envelope.to_json() for envelope in log.envelopes)
    assert log.view.text == "all good"


# Projection.


async def test_prj_1_messages_with_the_same_placeholder_id_are_never_joined() -> None:
    api = ScriptedAPI([turn(text("pre"), call("add", call_id="call_1")), turn(text("post"))])
    log = await log_of(started(Agent(name="A", model=api.chat_model(), tools=[add]), disclosure=OPEN))
    assert log.texts == ["pre", "post"]
    assert log.view.tools == {"call_1": "returned"} and log.view.rows["call_1"].output == "r1"
    assert log.view.duplicates == 0 and log.view.issues == []
    assert log.ending["final_output"] == "post"


async def test_prj_3_an_empty_closing_event_does_not_erase_the_message() -> None:
    part = {"type": "output_text", "text": "partial", "annotations": [], "logprobs": []}
    item = {"id": "m", "type": "message", "role": "assistant", "status": "completed", "content": [part]}
    delta = {"type": "response.output_text.delta", "content_index": 0, "delta": "par", "logprobs": []}
    log = await log_of(started(scripted(turn(raw_item(item, delta), completed(output=[])))))
    assert (log.ending["outcome"], log.ending["final_output"]) == ("succeeded", "partial")
    assert log.texts == ["partial"]


@pytest.mark.parametrize(("allowed", "status"), [("block", "unknown"), ("note", "done")])
async def test_prj_6_unknown_names_are_counted_and_lose_nothing(allowed: Any, status: str) -> None:
    unknown = event({"type": "response.brand_new.delta", "delta": "x"})
    result = Runner.run_streamed(scripted(turn(unknown, text("hello world"), unknown)), "hi")

    def add_unknown_item(sdk_event: Any) -> Iterable[Any]:
        yield sdk_event
        if sdk_event.type == "run_item_stream_event":
            yield RunItemStreamEvent(name="brand_new_thing", item=sdk_event.item)  # type: ignore[arg-type]

    run = altered(result, add_unknown_item, unknown_items=allowed, verify=lambda output: True)
    log = await log_of(run)
    assert log.of("note.unknown_raw") == [{"name": "response.brand_new.delta"}]
    counted = log.of("adapter.unsupported" if allowed == "block" else "note.unsupported")
    assert counted == [{"what": "run_item", "name": "brand_new_thing"}]
    assert log.view.text == "hello world" and log.ending["outcome"] == "succeeded"
    assert log.view.status == status


async def test_prj_6_an_unknown_raw_event_never_blocks() -> None:
    unknown = event({"type": "response.brand_new.delta", "delta": "x"})
    log = await log_of(started(scripted(turn(unknown, text("hello"))), verify=lambda output: True))
    assert log.view.status == "done" and log.view.text == "hello"


# Tools.


async def test_tool_1_two_calls_with_one_id_are_two_rows_that_never_ran() -> None:
    bodies: list[int] = []

    @function_tool
    def add_one(a: int) -> str:
        bodies.append(a)
        return "ok"

    same = [call("add_one", {"a": 1}, call_id="c1", id="i1"), call("add_one", {"a": 2}, call_id="c1", id="i2")]
    run = started(scripted(turn(*same), tools=[add_one]), disclosure=OPEN)
    log = await log_of(run)
    assert log.ending["outcome"] == "failed" and log.ending["error"]["code"] == "model_behavior"
    assert isinstance(run.error, Exception) and type(run.error).__name__ == "ModelBehaviorError"
    assert bodies == []
    assert log.view.tools == {"c1": "skipped", "c1#2": "skipped"}
    assert [row.note for row in log.view.activities] == ["not_run", "not_run"]
    assert [row.arguments for row in log.view.activities] == ['{"a": 1}', '{"a": 2}']


@pytest.mark.parametrize("missing", ["", None])
async def test_tool_3_calls_without_an_id_are_two_rows(missing: str | None) -> None:
    bodies: list[int] = []

    @function_tool
    def add_one(a: int) -> str:
        bodies.append(a)
        return "ok"

    items = [call_item("add_one", f'{{"a": {a}}}', missing, f"i{a}") for a in (1, 2)]
    play = [response_created(), *map(item_done, items, (0, 1)), response_completed(*items)]
    paced = [step for one in play for step in (one, None)]  # the SDK drops what is still queued when a run fails
    log = await log_of(started(Agent(name="A", model=Prebuilt(paced), tools=[add_one])))
    assert log.ending["outcome"] == "failed" and bodies == []
    assert log.view.tools == {"call-1": "skipped", "call-2": "skipped"}
    assert log.view.issues == []


async def test_tool_7_a_fast_tool_is_finished_before_a_slow_one_that_it_does_not_wait_for() -> None:
    fast_seen = asyncio.Event()

    @function_tool
    async def fast() -> str:
        return "f"

    @function_tool
    async def slow() -> str:
        await fast_seen.wait()  # so the slow one ends only after everybody could see the fast one end
        await asyncio.sleep(0.35)
        return "s"

    run = started(
        scripted(turn(call("slow", call_id="s"), call("fast", call_id="f")), turn(text("ok")), tools=[fast, slow]),
        sinks=[on("tool.finished", fast_seen.set)],
    )
    log = await log_of(run)
    assert [payload["call_id"] for payload in log.of("tool.finished")] == ["f", "s"]
    fast_ms, slow_ms = (payload["duration_ms"] for payload in log.of("tool.finished"))
    assert fast_ms < 300 <= slow_ms


# Handoffs.


@pytest.mark.parametrize("spelling", ["handoff_occured", "handoff_occurred"])
async def test_hand_1_a_handoff_is_seen_in_either_spelling(spelling: str) -> None:
    def respell(sdk_event: Any) -> Iterable[Any]:
        if getattr(sdk_event, "name", None) == "handoff_occured":
            sdk_event.name = spelling
        return (sdk_event,)

    a = scripted(turn(call("transfer_to_b")), handoffs=[scripted(turn(text("x")), name="B")])
    log = await log_of(altered(Runner.run_streamed(a, "hi"), respell))
    assert log.of("handoff.requested") == log.of("handoff.completed") == [{"from_agent": "A", "to_agent": "B"}]
    assert log.view.agent == "B" and log.ending["final_output"] == "x"
    assert [(row.kind, row.state) for row in log.view.activities] == [("handoff", "returned")]
    assert log.view.issues == []


async def test_hand_3_a_handoff_that_is_announced_twice_is_no_tool() -> None:
    def announce_twice(sdk_event: Any) -> Iterable[Any]:
        if getattr(sdk_event, "name", None) == "handoff_requested":
            item = ToolCallItem(agent=sdk_event.item.agent, raw_item=sdk_event.item.raw_item)
            yield RunItemStreamEvent(name="tool_called", item=item)
        yield sdk_event

    a = scripted(turn(call("transfer_to_b", call_id="h1")), handoffs=[scripted(turn(text("x")), name="B")])
    log = await log_of(altered(Runner.run_streamed(a, "hi"), announce_twice))
    assert log.view.tools == {}
    assert [(row.kind, row.state) for row in log.view.activities] == [("handoff", "returned")]
    assert log.ending["outcome"] == "succeeded" and log.view.issues == []
