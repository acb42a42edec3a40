"""Hosted calls: request, start, arguments, end and failure from their raw items and events, and none left open."""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from staging import log_of, scripted, started

from agents_progress.disclosure import Disclosure, Draft
from agents_progress.events import parse
from agents_progress.sdk.calls import Calls
from agents_progress.sdk.failures import CODES
from agents_progress.sdk.hosted import Hosted
from agents_progress.sdk.items import ANSWERED, HOSTED, KINDS, is_hosted
from agents_progress.sdk.translate import Translator
from agents_progress.testing import raw_item, text, turn
from agents_progress.view import RunView
from tests.logs import RUN, envelope


def make() -> tuple[Calls, Hosted]:
    calls = Calls(lambda: 0.0, str.title)
    return calls, Hosted(calls)


def item(item_id: str | None = "ws1", type_: str = "web_search_call", status: str = "completed", **more: Any) -> Any:
    return SimpleNamespace(type=type_, id=item_id, status=status, **more)


def story(drafts: list[Draft]) -> list[str]:
    """`type call_id` of each draft."""
    return [f"{type_.removeprefix('tool.')} {payload['call_id']}" for type_, payload in drafts]


def shown(drafts: list[Draft]) -> RunView:
    """The drafts as a reader sees them after they went through JSON."""
    view, said = RunView(RUN), Counter[str]()
    for seq, (type_, payload) in enumerate(drafts, start=1):
        if type_ == "tool.arguments.delta":
            payload = {**payload, "index": said[payload["call_id"]]}
            said[payload["call_id"]] += 1
        step = envelope(seq, type_, payload)
        parse(step.to_json())
        view.feed(step.to_json())
    return view


SHELL = {"type": "shell_call", "id": "sh1", "call_id": "k", "status": "completed", "action": {"commands": ["ls"]}}
IN_CONTAINER = {**SHELL, "environment": {"type": "container_reference", "container_id": "c"}}


def answer(type_: str = "shell_call_output", **more: Any) -> dict[str, Any]:
    return {"type": type_, "id": "o1", "call_id": "k", "status": "completed", **more}


@pytest.mark.parametrize("type_", sorted(HOSTED - set(ANSWERED)))
def test_a_hosted_call_of_every_kind_is_told_from_its_raw_items_once(type_: str) -> None:
    _, hosted = make()
    left = [*hosted.begun(0, item("i", type_, "in_progress", name="n")), *hosted.progress(0), *hosted.progress(0)]
    left += [*hosted.done(0, item("i", type_, name="n")), *hosted.response_ended(True)]
    left += hosted.claimed(item("i", type_, name="n"))
    assert story(left) == ["requested i", "started i", "finished i"]
    assert (left[0][1]["kind"], left[0][1]["name"]) == (KINDS[type_][0], KINDS[type_][1] or "n")
    assert shown(left).issues == []


@pytest.mark.parametrize("type_", sorted(HOSTED - set(ANSWERED)))
@pytest.mark.parametrize("ill", [{"status": "failed"}, {"status": "incomplete"}, {"error": "boom: sk-1"}])
def test_a_hosted_item_that_says_failed_has_failed_with_a_listed_code(type_: str, ill: dict[str, str]) -> None:
    left = list(make()[1].done(0, item("i", type_, **ill)))
    assert story(left) == ["requested i", "failed i"]
    assert left[-1][1]["code"] in CODES
    assert "sk-1" not in repr(left)


@pytest.mark.parametrize("way", ["item", "response"])
def test_a_failure_event_counts_even_when_the_item_does_not_repeat_it(way: str) -> None:
    _, hosted = make()
    left = [*hosted.begun(0, item("i", "mcp_call", name="n")), *hosted.progress(0)]
    hosted.failing(0)
    left += hosted.done(0, item("i", "mcp_call", name="n")) if way == "item" else hosted.response_ended(True)
    assert shown(left).tools == {"i": "failed"}


@pytest.mark.parametrize(("completed", "state"), [(True, "returned"), (False, "skipped")])
def test_no_hosted_call_stays_open_when_its_response_ends(completed: bool, state: str) -> None:
    _, hosted = make()
    left = [*hosted.begun(0, item("a")), *hosted.begun(1, item("b")), *hosted.progress(1)]
    left += hosted.response_ended(completed)
    assert shown(left).tools == {"a": state, "b": state}


def test_the_items_of_the_response_itself_tell_how_calls_ended_whose_own_items_never_came() -> None:
    _, hosted = make()
    left = [*hosted.begun(0, item("a")), *hosted.begun(1, item("b"))]
    left += hosted.response_ended(True, [item("a", status="failed"), item("b")])
    left += [*hosted.claimed(item("a")), *hosted.claimed(item("b"))]
    assert shown(left).tools == {"a": "failed", "b": "returned"}


@pytest.mark.parametrize("item_id", [None, "", "__fake_id__"])
def test_hosted_calls_without_a_usable_id_are_one_row_each(item_id: str | None) -> None:
    _, hosted = make()
    left: list[Draft] = []
    for _ in range(2):
        hosted.begin_response()
        for place in (0, 1):
            left += [*hosted.begun(place, item(item_id)), *hosted.done(place, item(item_id))]
        left += hosted.response_ended(True)
        for _ in range(2):
            left += hosted.claimed(item(item_id))
    view = shown(left)
    assert (list(view.tools.values()), view.issues) == (["returned"] * 4, [])


def test_a_call_whose_raw_item_never_came_is_told_from_its_run_item() -> None:
    _, hosted = make()
    assert story(list(hosted.claimed(item("a")))) == ["requested a", "finished a"]
    assert story(list(hosted.claimed(item("b", status="failed")))) == ["requested b", "failed b"]


def test_a_hosted_call_and_a_function_with_one_id_stay_apart() -> None:
    calls, hosted = make()
    function = SimpleNamespace(type="function_call", call_id="c1", id="i1", name="look", arguments="{}")
    left = [*hosted.begun(0, item("c1")), *calls.claimed(function), *calls.started("c1", "look")]
    left += calls.returned("c1", "x", from_hook=True)
    assert shown(left).tools == {"c1": "requested", "c1#2": "returned"}


# Arguments and outputs.


def test_arguments_are_passed_on_as_they_come_and_completed_once() -> None:
    _, hosted = make()
    whole = '{"page": "\ud800"}'
    left = [*hosted.begun(0, item("i", "mcp_call", name="read", arguments="")), *hosted.progress(0)]
    left += [*hosted.argument(0, '{"page": '), *hosted.argument(0, '"\ud800"}')]
    left += [*hosted.arguments(0, whole), *hosted.done(0, item("i", "mcp_call", name="read", arguments=whole))]
    assert story(left)[2:] == ["arguments.delta i"] * 2 + ["arguments.completed i", "finished i"]
    view = shown(left)
    assert view.rows["i"].arguments == '{"page": "\ufffd"}' and view.issues == []
    assert list(hosted.argument(0, "late")) == list(hosted.arguments(0, "late")) == []


@pytest.mark.parametrize(
    ("type_", "given", "text"),
    [
        ("web_search_call", {"action": {"type": "search", "query": "x"}}, '{"type": "search", "query": "x"}'),
        ("file_search_call", {"queries": ["a", "é"]}, '["a", "é"]'),
        ("code_interpreter_call", {"code": "print(1)"}, "print(1)"),
        ("tool_search_call", {"arguments": {"query": "q"}}, '{"query": "q"}'),
        ("mcp_call", {"name": "n", "arguments": "{}"}, "{}"),
        ("program", {"call_id": "k", "code": "x()"}, "x()"),
    ],
)
def test_what_a_tool_was_given_is_said_by_its_finished_item(type_: str, given: Any, text: str) -> None:
    _, hosted = make()
    left = [*hosted.begun(0, item("i", type_, name="n")), *hosted.done(0, item("i", type_, **given))]
    assert shown(left).rows["i"].arguments == text


def test_arguments_that_cannot_be_written_are_left_out() -> None:
    left = list(make()[1].done(0, item("i", action={"odd": object()})))
    assert "arguments" not in left[0][1] and story(left) == ["requested i", "finished i"]


@pytest.mark.parametrize(
    ("raw", "output"),
    [
        (item("i", "mcp_call", name="n", output="the page"), "the page"),
        (item("i", "code_interpreter_call", outputs=[{"type": "logs", "logs": "1"}]), "1"),
        (item("i", "code_interpreter_call", outputs=None), None),
        (item("i", "web_search_call"), None),
        (item("i", "image_generation_call", result="aW1n"), None),
    ],
)
def test_an_output_that_is_text_is_said(raw: Any, output: str | None) -> None:
    assert list(make()[1].done(0, raw))[-1][1].get("output") == output


# Files.


@pytest.mark.parametrize(
    ("raw", "name", "media_type"),
    [
        (item("i", "image_generation_call", result="aW1n"), "image.png", "image/png"),
        (item("i", "image_generation_call", result="aW1n", output_format="svg"), "image.svg", "image/svg+xml"),
        (
            item("i", "code_interpreter_call", outputs=[{"type": "image", "url": "data:image/webp;base64,aW1n"}]),
            "image.webp",
            "image/webp",
        ),
    ],
)
def test_an_image_is_told_by_its_type_size_and_digest_and_never_shown(raw: Any, name: str, media_type: str) -> None:
    left = list(make()[1].done(0, raw))
    (made,) = shown(left).artifacts
    assert made == {
        "artifact_id": "artifact-1", "name": name, "media_type": media_type, "bytes": 3, "call_id": "i",
        "sha256": hashlib.sha256(base64.b64decode("aW1n")).hexdigest(),
    }  # fmt: skip
    assert "aW1n" not in json.dumps(left)


@pytest.mark.parametrize("result", [None, "", "not base64!", 7])
def test_an_image_that_is_not_here_is_no_file(result: Any) -> None:
    assert story(list(make()[1].done(0, item("i", "image_generation_call", result=result)))) == [
        "requested i",
        "finished i",
    ]


def test_a_response_that_is_given_up_and_tried_again_leaves_no_hosted_call_open() -> None:
    def raw(type_: str, **more: Any) -> Any:
        return SimpleNamespace(type="raw_response_event", data=SimpleNamespace(type=type_, output_index=0, **more))

    response = SimpleNamespace(id="r", output=[], usage=None)
    attempt = [raw("response.created", response=response), raw("response.output_item.added", item=item("ws"))]
    translator = Translator("A")
    left = list(translator.translate(iter([*attempt, *attempt, raw("response.completed", response=response)])))
    left += translator.run_ended("succeeded")
    view = shown([draft for draft in left if draft[0].startswith("tool.")])
    assert (view.tools, view.issues) == ({"ws": "skipped", "ws#2": "returned"}, [])


# Calls that another item answers.


def test_a_shell_is_hosted_only_where_it_names_a_container() -> None:
    assert is_hosted(IN_CONTAINER)
    assert not is_hosted(SHELL) and not is_hosted({**SHELL, "environment": {"type": "local"}})


@pytest.mark.parametrize(
    ("outcome", "state", "note"),
    [
        ({"type": "exit", "exit_code": 0}, "returned", None),
        ({"type": "exit", "exit_code": 2}, "returned", None),
        ({"type": "timeout"}, "failed", "tool_timeout"),
    ],
)
def test_a_hosted_shell_ends_with_the_item_that_answers(outcome: Any, state: str, note: str | None) -> None:
    _, hosted = make()
    left = [*hosted.begun(0, IN_CONTAINER), *hosted.done(0, IN_CONTAINER)]
    assert shown(left).tools == {"sh1": "requested"}
    left += hosted.answered(answer(output=[{"stdout": "a.txt", "stderr": "", "outcome": outcome}]))
    left += [*hosted.response_ended(True), *hosted.claimed(IN_CONTAINER)]
    row = shown(left).rows["sh1"]
    assert (row.state, row.note, row.kind) == (state, note, "shell")


def test_an_answer_to_a_call_that_runs_here_says_nothing() -> None:
    assert list(make()[1].answered(answer())) == []


@pytest.mark.parametrize(("status", "state"), [("completed", "returned"), ("incomplete", "failed")])
def test_a_program_may_be_answered_in_a_later_response(status: str, state: str) -> None:
    calls, hosted = make()
    program = {"type": "program", "id": "p1", "call_id": "k", "code": "look()"}
    left = [*hosted.done(0, program), *hosted.response_ended(True), *hosted.claimed(program)]
    hosted.begin_response()
    assert shown(left).tools == {"p1": "requested"}
    left += hosted.answered(answer("program_output", status=status, result="3"))
    left += [*hosted.response_ended(True), *calls.run_ended("succeeded")]
    assert shown(left).tools == {"p1": state}


def test_a_program_that_nothing_answered_is_not_left_open_by_a_success() -> None:
    calls, hosted = make()
    left = [*hosted.done(0, {"type": "program", "id": "p1", "call_id": "k"}), *hosted.response_ended(True)]
    assert shown([*left, *calls.run_ended("succeeded")]).tools == {"p1": "skipped"}


# Any order, and nothing private.

OPERATIONS = ["begun", "progress", "failing", "argument", "arguments", "done", "answered", "claimed", "ended", "next"]


@settings(max_examples=300, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(OPERATIONS),
            st.integers(0, 2),
            st.sampled_from(["web_search_call", "mcp_call", "program", "image_generation_call"]),
            st.booleans(),
        ),
        max_size=25,
    )
)
def test_no_order_of_events_makes_a_log_that_contradicts_itself(steps: list[tuple[str, int, str, bool]]) -> None:
    calls, hosted = make()
    left: list[Draft] = []
    for what, place, type_, well in steps:
        raw = item("i", type_, "completed" if well else "failed", call_id="k", name="n", arguments="{}")
        if what == "next":
            left += hosted.response_ended(False)  # the last one may have been given up
            hosted.begin_response()
        elif what == "ended":
            left += hosted.response_ended(well, [raw] * place)
        elif what in ("progress", "failing"):
            left += getattr(hosted, what)(place) or ()
        elif what in ("argument", "arguments"):
            left += getattr(hosted, what)(place, "x")
        elif what in ("begun", "done"):
            left += getattr(hosted, what)(place, raw)
        else:
            left += getattr(hosted, what)(answer("program_output") if what == "answered" else raw)
    left += hosted.response_ended(False)
    left += calls.run_ended("succeeded")
    view = shown(left)
    assert view.issues == [] and not {"requested", "running"} & set(view.tools.values())


SECRET = "s3cr3t-value"
GIVEN: dict[str, dict[str, Any]] = {
    "web_search_call": {"action": {"type": "search", "query": SECRET, "queries": [SECRET]}},
    "file_search_call": {"queries": [SECRET], "results": [{"text": SECRET}]},
    "code_interpreter_call": {"code": SECRET, "container_id": "c", "outputs": [{"type": "logs", "logs": SECRET}]},
    "image_generation_call": {"result": None, "revised_prompt": SECRET},
    "mcp_call": {"name": "read", "server_label": "wiki", "arguments": SECRET, "output": SECRET},
    "mcp_list_tools": {"server_label": "wiki", "tools": [], "error": SECRET},
}


@pytest.mark.parametrize("type_", GIVEN)
async def test_nothing_a_hosted_tool_was_given_or_gave_leaves_by_default(type_: str) -> None:
    raw = {"type": type_, "id": "h1", "status": "completed", **GIVEN[type_]}
    between = (
        {"type": "response.mcp_call_arguments.delta", "delta": SECRET},
        {"type": "response.mcp_call_arguments.done", "arguments": SECRET},
        {"type": "response.code_interpreter_call_code.delta", "delta": SECRET},
        {"type": "response.code_interpreter_call_code.done", "code": SECRET},
    )
    log = await log_of(started(scripted(turn(raw_item(raw, *between), text("ok")))))
    assert log.ending["outcome"] == "succeeded" and "h1" in log.view.tools
    assert SECRET not in b"".join(envelope.to_json() for envelope in log.envelopes).decode()


async def test_what_a_hosted_tool_was_given_and_gave_can_be_opened_by_its_name() -> None:
    called = raw_item(
        {"type": "mcp_call", "id": "h1", "status": "completed", **GIVEN["mcp_call"]},
        {"type": "response.mcp_call_arguments.delta", "delta": SECRET},
        {"type": "response.mcp_call_arguments.done", "arguments": SECRET},
        added={"type": "mcp_call", "id": "h1", "status": "in_progress", **GIVEN["mcp_call"], "arguments": ""},
    )
    opened = Disclosure(arguments=["read"], outputs=["read"])
    log = await log_of(started(scripted(turn(called, text("ok"))), disclosure=opened))
    assert [payload["text"] for payload in log.of("tool.arguments.delta")] == [SECRET]
    assert log.of("tool.arguments.completed") == [{"call_id": "h1", "arguments": SECRET}]
    assert (log.view.rows["h1"].arguments, log.view.rows["h1"].output) == (SECRET, SECRET)
