"""The cases from the field about approvals, cancels, order, usage, odd outputs, speed and packaging, each with its
exact right values.
"""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import itertools
import json
import logging
import os
import re
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import openai
import pytest
import respx
from agents import Agent, ToolOutputImage, function_tool
from openai.types.responses.response_usage import InputTokensDetails, OutputTokensDetails, ResponseUsage
from staging import (
    OPEN,
    Prebuilt,
    add,
    arguments_delta,
    call_item,
    item_done,
    log_of,
    message_item,
    reach,
    response_completed,
    response_created,
    scripted,
    started,
    stored,
    strict,
    text_delta,
)

from agents_progress import Disclosure, Envelope
from agents_progress.clock import Clock
from agents_progress.journal import MemoryJournal, open_journal
from agents_progress.terminal import render
from agents_progress.testing import (
    NetworkReached,
    call,
    completed,
    no_network,
    text,
    turn,
    wait,
)

# Approvals, cancels, order.


async def test_appr_1_a_run_that_waits_for_answers_has_not_succeeded() -> None:
    @function_tool(needs_approval=True)
    def danger() -> str:
        return "D"

    @function_tool
    def safe() -> str:
        return "S1"

    calls = call("danger", call_id="d1"), call("safe", call_id="s1"), call("danger", call_id="d2")
    log = await log_of(started(scripted(turn(*calls), tools=[danger, safe]), disclosure=OPEN))
    assert (log.ending["outcome"], log.view.status) == ("paused", "waiting")
    assert [question["call_id"] for question in log.of("approval.wait")] == ["d1", "d2"]
    assert log.view.tools == {"d1": "requested", "s1": "returned", "d2": "requested"}
    assert log.view.rows["s1"].output == "S1"


@pytest.mark.parametrize("way", ["break", "exception", "aclose"])
async def test_canc_1_a_reader_that_leaves_does_not_end_the_run(way: str, journal: MemoryJournal) -> None:
    left, finished = asyncio.Event(), []

    @function_tool
    async def work() -> str:
        await left.wait()
        finished.append(True)
        return "ok"

    run = started(scripted(turn(call("work")), turn(text("fine")), tools=[work]), journal=journal)
    reader = aiter(run)
    if way == "aclose":
        await anext(reader)
        await reader.aclose()  # type: ignore[attr-defined]
    else:
        with suppress(KeyError):
            async for _ in reader:
                if way == "break":
                    break
                raise KeyError
    left.set()
    outcome = await run
    log = await stored(journal, run.id)
    assert finished == [True] and outcome.kind == log.ending["outcome"] == "succeeded"
    assert log.ending["final_output"] == "fine"


async def test_canc_3a_a_cancel_after_the_last_text_is_a_cancel() -> None:
    # The server holds the connection, as gateways do: the run is not over although its only response is.
    run = started(scripted(turn(text("hello world"), completed(), wait(asyncio.Event()))))
    await reach(run, "model.completed")
    assert run.cancel() == "accepted"
    log = await log_of(run)
    assert (log.ending["outcome"], log.ending["final_output"]) == ("cancelled", None)
    assert log.view.text == "hello world" and log.view.status == "cancelled"


async def test_canc_3bc_a_cancel_during_a_tool_leaves_its_row_running_and_ends_the_run_once() -> None:
    @function_tool
    async def work() -> str:
        await asyncio.Event().wait()
        return "never"

    run = started(scripted(turn(call("work", call_id="w")), tools=[work]))
    await reach(run, "tool.started")
    assert [run.cancel(), run.cancel()] == ["accepted", "already_cancelling"]
    log = await log_of(run)
    assert log.ending["outcome"] == "cancelled" and len(log.of("cancel.requested")) == 1
    assert log.view.tools == {"w": "running"}
    assert log.view.message == "Cancelled; check what tools already did"


async def test_canc_3d_a_cancel_after_the_end_changes_nothing() -> None:
    run = started(scripted(turn(text("hello world"))))
    await run
    assert run.cancel() == "already_ended"
    log = await log_of(run)
    assert (log.ending["outcome"], log.ending["final_output"]) == ("succeeded", "hello world")
    assert run.view.status == "checking" and "cancel.requested" not in log.types


async def test_ord_1_a_clock_that_steps_back_changes_neither_order_nor_ids_nor_durations(
    journal: MemoryJournal,
) -> None:
    steps, passed = itertools.cycle([100.0, 100.5, 40.0, 40.1]), itertools.count(7.0, 0.25)
    clock = Clock(wall=lambda: next(steps), monotonic=lambda: next(passed))
    run = started(
        scripted(turn(call("add")), turn(text("one two")), tools=[add]), clock=clock, journal=journal, coalesce=None
    )
    log = await log_of(run)
    assert [envelope.seq for envelope in log.envelopes] == list(range(1, len(log.envelopes) + 1))
    assert [envelope.event_id for envelope in log.envelopes] == [f"{run.id}:{n + 1}" for n in range(len(log.envelopes))]
    moments = [datetime.datetime.fromisoformat(envelope.occurred_at).timestamp() for envelope in log.envelopes]
    assert moments == sorted(moments)
    assert moments[0] == 100.0 and {(later - 100.0) % 0.25 for later in moments} == {0.0}
    assert [envelope.seq for envelope in await journal.read(run.id, 2, 2)] == [3, 4]
    assert all(payload["duration_ms"] % 250 == 0 < payload["duration_ms"] for payload in log.of("tool.finished"))
    assert log.view.status == "checking" and log.view.issues == []


# Usage and text.


async def test_use_1a_usage_that_never_arrived_is_not_zero() -> None:
    run = started(scripted(turn(text("some text", wait(asyncio.Event())))))
    await reach(run, "text.delta")
    run.cancel()
    log = await log_of(run)
    usage = log.of("usage.updated")[-1]
    assert usage["status"] == "unavailable"
    assert usage["total_tokens"] is usage["input_tokens"] is usage["output_tokens"] is None


async def test_use_1b_usage_of_the_turns_that_ended_survives_a_failure() -> None:
    details = {
        "input_tokens_details": InputTokensDetails.model_construct(cached_tokens=0, cache_write_tokens=0),
        "output_tokens_details": OutputTokensDetails(reasoning_tokens=0),
    }
    usage = ResponseUsage(input_tokens=10, output_tokens=5, total_tokens=15, **details)
    item = call_item("add", "{}", "c1")
    play = [response_created(), item_done(item), response_completed(item, usage=usage)]
    model = Prebuilt(play, RuntimeError("turn 2 is broken"))
    run = started(Agent(name="A", model=model, tools=[add]))
    log = await log_of(run)
    assert log.ending["outcome"] == "failed" and str(run.error) == "turn 2 is broken"
    last = log.of("usage.updated")[-1]
    assert (last["total_tokens"], last["status"]) == (15, "partial")


@dataclasses.dataclass
class Point:
    x: int


IMAGE = "data:image/png;base64," + "QUJD" * 100
ODD_OUTPUTS = {
    "nul": "a\x00b",
    "nan": float("nan"),
    "bytes": b"\xff\x00",
    "datetime": datetime.datetime(2026, 10, 7, tzinfo=datetime.UTC),
    "dataclass": Point(1),
    "image": ToolOutputImage(image_url=IMAGE),
}


async def test_txt_2_any_tool_output_gives_strict_json_live_and_replayed(tmp_path: Path) -> None:
    def tool(name: str, output: Any) -> Any:
        return function_tool(name_override=name)(lambda: output)

    tools = [tool(name, output) for name, output in ODD_OUTPUTS.items()]
    calls = [call(name, call_id=name) for name in ODD_OUTPUTS]
    journal = open_journal(f"sqlite:///{tmp_path}/runs.db")
    log = await log_of(
        run := started(scripted(turn(*calls), turn(text("ok")), tools=tools), disclosure=OPEN, journal=journal)
    )
    bodies = [envelope.to_json() for envelope in log.envelopes]
    assert all(strict(body) for body in bodies)
    assert log.ending["outcome"] == "succeeded" and log.view.issues == []
    replayed = [envelope.to_json() for envelope in await journal.read(run.id)]
    assert [json.loads(body) for body in replayed] == [json.loads(body) for body in bodies]
    await journal.close()
    outputs = {payload["call_id"]: payload["output"] for payload in log.of("tool.finished")}
    assert outputs["nul"] == "a\x00b"
    assert b"QUJDQUJD" not in b"".join(bodies)
    assert re.search(r"bytes", outputs["bytes"]) and re.search(r"\b2\b", outputs["bytes"]), "its type and its size"
    assert re.search(r"[Ii]mage", outputs["image"]) and re.search(r"\d", outputs["image"]), "its type and its size"


# Sinks, speed, packaging.


async def test_ren_1_a_sink_that_raises_changes_neither_the_run_nor_other_sinks(
    caplog: pytest.LogCaptureFixture,
) -> None:
    seen: list[Envelope] = []
    calls = itertools.count(1)

    def broken(envelope: Envelope) -> None:
        if next(calls) == 3:
            raise ValueError("[/] closing tag without an opening one")

    @function_tool
    def brackets() -> str:
        return "[1, 2]"

    run = started(
        scripted(turn(call("brackets")), turn(text("[/typ] [a: /m?id=1]")), tools=[brackets]),
        sinks=[broken, seen.append],
        disclosure=OPEN,
    )
    log = await log_of(run)
    await run.closed()
    assert log.ending["outcome"] == "succeeded" and log.view.status == "checking"
    assert seen == list(log.envelopes) and next(calls) == len(seen) + 1
    assert [record.levelno for record in caplog.records if "sink" in record.message] == [logging.ERROR]
    assert "[/typ] [a: /m?id=1]" in render(log.view)


def long_text(count: int) -> Any:
    text_event = text_delta("x")
    item = message_item("x" * count)
    yield response_created()
    yield from itertools.repeat(text_event, count)
    yield item_done(item)
    yield response_completed(item)


def long_arguments(count: int) -> Any:
    one = arguments_delta("x")
    item = call_item("take", '{"a": "' + "x" * count + '"}', "c1")
    yield response_created()
    yield from itertools.repeat(one, count)
    yield item_done(item)
    yield response_completed(item)


@pytest.mark.parametrize("kind", ["message", "arguments"])
async def test_perf_1_time_grows_no_faster_than_the_number_of_deltas(kind: str) -> None:
    @function_tool
    def take(a: str) -> str:
        return str(len(a))

    async def seconds(count: int) -> float:
        plays = [long_text(count)] if kind == "message" else [long_arguments(count), long_text(1)]
        agent = Agent(name="A", model=Prebuilt(*plays), tools=[take])
        begun = time.process_time()
        log = await log_of(started(agent, disclosure=Disclosure(arguments="all", outputs="all", max_chars=10**6)))
        spent = time.process_time() - begun
        assert log.ending["outcome"] == "succeeded"
        if kind == "message":
            assert log.view.text == "x" * count
        else:
            assert log.view.rows["c1"].output == str(count)
        return spent

    await seconds(1_000)  # warm
    turns = [(await seconds(50_000), await seconds(100_000)) for _ in range(3)]
    half, whole = (min(times) for times in zip(*turns, strict=True))
    print(f"{kind}: 50k {half:.2f} s, 100k {whole:.2f} s")
    assert whole <= 3 * half and whole < 8


def test_pkg_1_respx_does_not_stop_the_default_client_and_the_guard_does() -> None:
    with pytest.raises(NetworkReached), no_network(), respx.mock(assert_all_called=False) as mock:
        mock.route()
        with openai.OpenAI(api_key="none", max_retries=0) as client, suppress(openai.APIConnectionError):
            client.models.list()


def test_pkg_1_the_package_needs_neither_httpx_nor_respx() -> None:
    code = """
import sys
sys.modules["httpx"] = sys.modules["respx"] = None
import agents_progress
for name in agents_progress.__all__: getattr(agents_progress, name)
import agents_progress.testing, agents_progress.terminal, agents_progress.cli
agents_progress.testing.ScriptedAPI([]).model()
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False, env=dict(os.environ)
    )
    assert done.returncode == 0, done.stderr


def test_pkg_1_whoever_uses_respx_gives_the_client_a_legacy_transport() -> None:
    here = Path(__file__)
    wrong = [
        path.name
        for folder in (here.parent, here.parent.parent / "examples")
        for path in folder.rglob("*.py")
        if path != here and "import respx" in (code := path.read_text()) and "httpx.AsyncClient(" not in code
    ]
    assert wrong == []
