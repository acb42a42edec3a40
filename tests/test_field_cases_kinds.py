"""The cases from the field once more, each for its whole kind: every hosted tool, every ending, every sort of id."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest
from agents import Agent, function_tool
from staging import OPEN, Log, add, log_of, reach, scripted, soon, started

from agents_progress import Envelope, progress
from agents_progress.errors import AlreadyResumed, NotPaused
from agents_progress.payloads import ENDINGS as ENDINGS_OF_RUNS
from agents_progress.testing import (
    ScriptedAPI,
    Turn,
    call,
    completed,
    cut,
    error,
    event,
    failed,
    http_error,
    incomplete,
    raw_item,
    reasoning,
    refusal,
    text,
    turn,
    wait,
)
from compat import scenarios
from compat.registry import SCENARIOS
from compat.stage import Stage
from tests.test_tool_truth import LOCAL

assert scenarios

# Hosted tools, of every kind and with every ending of their response.

EVENTS = {
    "web_search_call": {"action": {"type": "search", "query": "x", "queries": ["x"]}},
    "file_search_call": {"queries": ["x"], "results": None},
    "code_interpreter_call": {"code": "1", "container_id": "c", "outputs": []},
    "image_generation_call": {"result": None},
    "mcp_call": {"name": "read", "server_label": "wiki", "arguments": "{}"},
    "mcp_list_tools": {"server_label": "wiki", "tools": []},
}
ENDINGS: dict[str, tuple[Any, str]] = {
    "completed": (completed(), "returned"),
    "incomplete": (incomplete(), "skipped"),
    "failed": (failed(), "skipped"),
    "error": (error(), "skipped"),
    "cut": (cut(), "skipped"),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("type_", EVENTS)
async def test_no_hosted_tool_of_any_kind_is_left_running_however_its_response_ends(type_: str, ending: str) -> None:
    end, state = ENDINGS[ending]
    item = {"type": type_, "id": "h1", "status": "in_progress", **EVENTS[type_]}
    pieces = [
        event({"type": "response.output_item.added", "item": item, "output_index": 0}),
        event({"type": f"response.{type_}.in_progress", "item_id": "h1", "output_index": 0}),
    ]
    log = await log_of(started(scripted(turn(*pieces, end))))
    assert log.view.tools == {"h1": state} and len(log.of("tool.started")) == 1
    assert log.view.issues == []


@pytest.mark.parametrize("status", ["failed", "incomplete"])
@pytest.mark.parametrize("type_", EVENTS)
async def test_a_hosted_tool_of_any_kind_that_failed_is_shown_failed_in_a_run_that_succeeded(
    type_: str, status: str
) -> None:
    item = {"type": type_, "id": "h1", "status": status, **EVENTS[type_]}
    if type_ == "mcp_list_tools":
        item["error"] = "no such server: sk-1"
    log = await log_of(started(scripted(turn(raw_item(item), text("sorry")))))
    assert (log.ending["outcome"], log.view.tools) == ("succeeded", {"h1": "failed"})
    assert log.of("tool.failed") == [{"call_id": "h1", "code": "hosted_tool_failed"}]
    assert "sk-1" not in repr(log.envelopes)


OPEN_AT_THE_END = {"paused", "cancelled", "failed", "incomplete"}
ENDLESS = {name for name, scenario in SCENARIOS.items() if scenario.outcome == "none"}


@pytest.mark.parametrize("name", sorted(SCENARIOS.keys() - ENDLESS))
async def test_every_situation_is_told_without_contradiction_and_leaves_no_row_open(name: str) -> None:
    seen: dict[str, list[Envelope]] = {}

    def sink(envelope: Envelope) -> None:
        seen.setdefault(envelope.run_id, []).append(envelope)

    @progress.inside(sinks=[sink], disclosure=OPEN)
    async def work() -> None:
        await SCENARIOS[name].play(Stage())

    with suppress(Exception):  # what a scenario lets through is the SDK's, and its own affair
        await work()
    await soon(lambda: seen and all(log[-1].type in ENDINGS_OF_RUNS for log in seen.values()))
    for log in map(Log, seen.values()):
        assert log.view.issues == []
        if log.endings[0].payload.get("outcome") not in OPEN_AT_THE_END:
            assert not {"requested", "running"} & set(log.view.tools.values())


# PRJ-1: placeholder ids, over and over.


async def test_prj_1_placeholder_ids_join_nothing_in_any_number_of_turns() -> None:
    turns = [turn(text(f"text {n}"), call("add", call_id=f"c{n}a"), call("add", call_id=f"c{n}b")) for n in range(4)]
    api = ScriptedAPI([*turns, turn(text("post"))])
    log = await log_of(started(Agent(name="A", model=api.chat_model(), tools=[add]), disclosure=OPEN))
    assert log.texts == [*(f"text {n}" for n in range(4)), "post"]
    assert log.view.tools == {f"c{n}{which}": "returned" for n in range(4) for which in "ab"}
    assert {row.output for row in log.view.activities} == {"r1"} and log.view.issues == []


@pytest.mark.parametrize("chat", [False, True])
async def test_an_id_that_a_later_turn_repeats_is_another_row(chat: bool) -> None:
    bodies: list[int] = []

    @function_tool
    def add_one(a: int) -> str:
        bodies.append(a)
        return "ok"

    turns = [turn(call("add_one", {"a": 1}, call_id="c")) for _ in range(2)]
    api = ScriptedAPI([*turns, turn(text("ok"))])
    agent = Agent(name="A", model=api.chat_model() if chat else api.model(), tools=[add_one])
    log = await log_of(started(agent))
    assert log.view.issues == [] and log.view.tools["c"] == "returned"
    # Some releases take a call that repeats an id and its arguments for done, and do not run it again.
    assert log.view.tools["c#2"] == ("returned" if len(bodies) == 2 else "skipped")


async def test_a_handoff_that_the_sdk_refuses_is_no_tool_that_did_not_run() -> None:
    b = scripted(turn(call("transfer_to_c", call_id="h1")), name="B", handoffs=[scripted(name="C")])
    log = await log_of(started(scripted(turn(call("transfer_to_b", call_id="h1")), handoffs=[b])))
    assert log.view.tools == {} and log.view.issues == []


# PRJ-3: a closing event that lists nothing.


@pytest.mark.parametrize(
    ("pieces", "outcome", "shown"),
    [
        ((text("hello"),), "succeeded", ["hello"]),
        ((reasoning("hmm"), text("hello")), "succeeded", ["hello"]),
        ((refusal("No."),), "failed", ["No."]),
        ((text("one"), text("two")), "succeeded", ["one", "two"]),
    ],
)
async def test_prj_3_an_empty_closing_event_erases_no_text_of_any_kind(
    pieces: Any, outcome: str, shown: list[str]
) -> None:
    log = await log_of(started(scripted(turn(*pieces, completed(output=[])))))
    assert (log.ending["outcome"], log.texts) == (outcome, shown)


@pytest.mark.parametrize("output", [None, []])
async def test_prj_3_an_empty_closing_event_erases_no_call(output: Any) -> None:
    first = turn(call("add", call_id="c"), completed(output=output))
    log = await log_of(started(scripted(first, turn(text("ok")), tools=[add])))
    assert log.view.tools == {"c": "returned"} and log.ending["final_output"] == "ok"


# PRJ-6: what is new.


@pytest.mark.parametrize("type_", ["telepathy_call", "message_v2", "mcp_call_output"])
async def test_prj_6_an_item_of_an_unknown_type_blocks_success_and_loses_no_text(type_: str) -> None:
    new = raw_item({"type": type_, "id": "n1", "status": "completed"})
    log = await log_of(started(scripted(turn(new, text("hello"))), verify=lambda output: True))
    assert log.view.text == "hello" and log.view.issues == []
    assert log.of("adapter.unsupported") == [{"what": "item", "name": type_}]
    assert log.view.status == "unknown"


# TOOL-9, as far as rows go: the model's id is no key.


async def test_tool_9_a_call_that_is_made_again_is_a_row_of_its_own() -> None:
    orders: list[int] = []

    @function_tool
    def refund(order: int) -> str:
        orders.append(order)
        return "refunded"

    turns = [turn(call("refund", {"order": order}, call_id=f"c{n}")) for n, order in enumerate((1, 1, 2), start=1)]
    log = await log_of(started(scripted(*turns, turn(text("ok")), tools=[refund]), disclosure=OPEN))
    assert log.view.tools == {"c1": "returned", "c2": "returned", "c3": "returned"} and orders == [1, 1, 2]


# HAND-1 and HAND-3: handoffs of every sort.


async def test_hand_1_a_chain_of_handoffs_and_the_way_back_are_told_one_by_one() -> None:
    a = scripted(turn(call("transfer_to_b", call_id="h1")), turn(text("x")), name="A")
    b = scripted(turn(call("transfer_to_c", call_id="h2")), name="B")
    c = scripted(turn(call("transfer_to_a", call_id="h3")), name="C", handoffs=[a])
    b.handoffs, a.handoffs = [c], [b]
    log = await log_of(started(a))
    steps = [{"from_agent": one, "to_agent": other} for one, other in ("AB", "BC", "CA")]
    assert log.of("handoff.requested") == log.of("handoff.completed") == steps
    assert log.view.agent == "A" and log.view.tools == {} and log.view.issues == []


async def test_hand_3_a_tool_beside_a_handoff_is_a_row_and_the_handoff_is_none() -> None:
    b = scripted(turn(text("x")), name="B")
    log = await log_of(
        started(scripted(turn(call("add", call_id="t"), call("transfer_to_b")), handoffs=[b], tools=[add]))
    )
    assert log.view.tools == {"t": "returned"}
    assert [(row.kind, row.state) for row in log.view.activities] == [("function", "returned"), ("handoff", "returned")]


async def test_a_handoff_that_fails_is_not_completed() -> None:
    b = scripted(http_error(400), name="B")
    log = await log_of(started(scripted(turn(call("transfer_to_b")), handoffs=[b])))
    assert log.ending["outcome"] == "failed" and log.view.tools == {}
    assert len(log.of("handoff.requested")) == len(log.of("handoff.completed")) == 1, "it is B that failed"


# APPR-1 and APPR-2: every kind of tool that can ask.


@pytest.mark.parametrize("kind", ["function", "shell", "patch", "custom"])
async def test_appr_1_a_tool_of_every_kind_waits_and_is_not_running(kind: str) -> None:
    asked, make = LOCAL[kind]
    run = started(scripted(turn(asked), turn(text("ok")), tools=[make({"needs_approval": True})]))
    log = await log_of(run)
    assert (log.ending["outcome"], log.view.status) == ("paused", "waiting")
    ((call_id, state),) = log.view.tools.items()
    assert state == "requested" and [question["call_id"] for question in log.of("approval.wait")] == [call_id]
    assert log.of("tool.started") == []
    log = await log_of(run.resume(approve="all"))
    assert list(log.view.tools.values()) == ["returned"] and len(log.of("tool.started")) == 1


async def test_appr_2_an_answer_is_used_once_also_when_the_run_fails_after_the_tool() -> None:
    bodies: list[str] = []

    @function_tool(needs_approval=True)
    def danger(what: str) -> str:
        bodies.append(what)
        return "done"

    asks = turn(call("danger", {"what": "a"}, call_id="a"), call("danger", {"what": "b"}, call_id="b"))
    run = started(scripted(asks, http_error(400), tools=[danger]))
    await run
    second = run.resume(approve="all")
    log = await log_of(second)
    assert log.ending["outcome"] == "failed" and log.view.tools == {"a": "returned", "b": "returned"}
    assert not [question for question in log.view.interactions.values() if question.decision is None]
    for late in (run, second):
        with pytest.raises((AlreadyResumed, NotPaused)):
            late.resume(approve="all")
    assert sorted(bodies) == ["a", "b"]


# USE-1: usage of responses that ended in every way, after one that reported fifteen tokens.

USED: dict[str, tuple[Turn, str, int]] = {
    "completed": (turn(text("x")), "reported", 30),
    "without a count": (turn(text("x"), usage=None), "partial", 15),
    "incomplete": (turn(text("x"), incomplete()), "reported", 30),
    "incomplete without a count": (turn(text("x"), incomplete(), usage=None), "partial", 15),
    "failed": (turn(text("x"), failed()), "reported", 30),
    "failed without a count": (turn(text("x"), failed(), usage=None), "partial", 15),
    "error": (turn(text("x"), error()), "partial", 15),
    "cut": (turn(text("x"), cut()), "partial", 15),
    "never begun": (http_error(400), "partial", 15),
}


@pytest.mark.parametrize("ending", USED)
async def test_use_1_usage_counts_where_it_arrived_and_is_unknown_where_it_did_not(ending: str) -> None:
    last, status, total = USED[ending]
    log = await log_of(started(scripted(turn(call("add")), last, tools=[add])))
    usage = log.of("usage.updated")[-1]
    assert (usage["status"], usage["total_tokens"], usage["requests"]) == (status, total, 2)


async def test_use_1_a_cancelled_response_leaves_the_count_of_those_before_it() -> None:
    run = started(scripted(turn(call("add")), turn(text("x", wait(asyncio.Event()))), tools=[add]))
    await reach(run, "text.delta")
    run.cancel()
    usage = (await log_of(run)).of("usage.updated")[-1]
    assert (usage["status"], usage["total_tokens"], usage["requests"]) == ("partial", 15, 2)
