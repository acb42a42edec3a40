"""What a `RunAgentInput` asks for, and what is said of one that is not understood."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, RunResultStreaming

from agents_progress import progress
from agents_progress.bridges.ag_ui import AgUI
from agents_progress.bridges.ag_ui_projection import CODES
from agents_progress.bridges.base import CUTS, Answered, BadBody
from agents_progress.errors import BridgeExtraMissing, UsageError
from agents_progress.sse import Decoder
from agents_progress.view import RunView
from tests.logs import RUN, Log


@progress(language="zh")
def chat(message: str) -> RunResultStreaming:
    return Runner.run_streamed(Agent("A"), message)


@progress
def needs_two(question: str, fee: float) -> RunResultStreaming:
    return Runner.run_streamed(Agent("A"), question)


USER = {"id": "u1", "role": "user", "content": "Where is my parcel?"}
HALF = {"id": "r:m1", "role": "assistant", "content": "It is"}
SECRET = "hunter2"


def body(**more: Any) -> dict[str, Any]:
    sent = {"threadId": "t1", "runId": "k1", "protocolVersion": "1.0", "messages": [USER], "tools": [], "context": []}
    return {**sent, "state": {}, **more}


def resumed(*entries: dict[str, Any]) -> dict[str, Any]:
    return body(resume=[{"interruptId": "r/ask-1/ab", **entry} for entry in entries])


def test_the_last_message_of_the_user_is_what_the_function_gets_and_the_key_is_the_clients_run_id() -> None:
    asked = AgUI(chat).asked(body(messages=[{**USER, "id": "u0", "content": "Hi"}, HALF, USER]))
    assert (asked.conversation, asked.key, asked.answers) == ("t1", "k1", ())
    assert asked.arguments == {"message": "Where is my parcel?"}


def test_the_same_request_with_half_an_answer_asks_for_the_same() -> None:
    bridge = AgUI(chat)
    first, again = bridge.asked(body()), bridge.asked(body(messages=[USER, HALF]))
    assert (first.conversation, first.key, first.arguments) == (again.conversation, again.key, again.arguments)
    assert again.history == (USER, HALF)


def test_text_parts_are_one_text() -> None:
    parts = [{"type": "text", "text": "Where is "}, {"type": "text", "text": "it?"}]
    assert AgUI(chat).asked(body(messages=[{**USER, "content": parts}])).arguments == {"message": "Where is it?"}


def test_an_application_may_take_more_than_the_last_message() -> None:
    bridge = AgUI(needs_two, arguments=lambda body: {"question": body["messages"][0]["content"], "fee": body["state"]})
    assert bridge.asked(body(state=2.5)).arguments == {"question": "Where is my parcel?", "fee": 2.5}


@pytest.mark.parametrize(
    ("entry", "answer"),
    [
        ({"status": "resolved", "payload": {"approved": True}}, ("approved", None, "")),
        ({"status": "resolved", "payload": {"approved": False, "reason": "too much"}}, ("rejected", "too much", "")),
        ({"status": "resolved", "payload": {"approved": True, "text": "blue"}}, ("approved", None, "blue")),
        (
            {"status": "resolved", "payload": {"approved": True, "editedArgs": {"n": 1}}},
            ("approved", None, "", {"n": 1}),
        ),
        ({"status": "cancelled"}, ("rejected", None)),
    ],
)
def test_what_came_back_for_an_interrupt_is_an_answer_and_starts_nothing(entry: dict[str, Any], answer: Any) -> None:
    asked = AgUI(chat).asked(resumed(entry))
    assert asked.arguments is None
    assert asked.answers == (Answered("r/ask-1/ab", *answer),)


@pytest.mark.parametrize(
    ("wrong", "place"),
    [
        ({}, "threadId"),
        (body(messages=[{**USER, "role": SECRET}]), "messages.0"),
        (body(messages=[]), "messages"),
        (body(messages=[HALF]), "messages"),
        (body(runId=[SECRET]), "runId"),
        (body(runId=""), "runId"),
        (
            body(messages=[{**USER, "content": [{"type": "image", "source": {"type": "url", "value": SECRET}}]}]),
            "messages.0.content.0",
        ),
        (resumed({"status": "resolved", "payload": SECRET}), "resume.0.payload.approved"),
        (resumed({"status": "resolved", "payload": {"approved": "yes"}}), "resume.0.payload.approved"),
        (resumed({"status": "resolved", "payload": {"approved": 1}}), "resume.0.payload.approved"),
        (resumed({"status": "resolved", "payload": {"approved": True, "reason": 5}}), "resume.0.payload.reason"),
        (resumed({"status": "resolved", "payload": {"approved": True, "text": 5}}), "resume.0.payload.text"),
        (
            resumed({"status": "resolved", "payload": {"approved": True, "editedArgs": SECRET}}),
            "resume.0.payload.editedArgs",
        ),
        (resumed({"status": "resolved", "payload": {"approved": True, SECRET: 1}}), "resume.0.payload"),
        (resumed({"status": SECRET}), "resume.0.status"),
    ],
)
def test_what_is_not_understood_is_refused_by_its_place_and_never_quoted(wrong: dict[str, Any], place: str) -> None:
    with pytest.raises(BadBody) as refused:
        AgUI(chat).asked(wrong)
    assert str(refused.value).startswith(f"{place}: ") or str(refused.value).startswith(f"{place}.")
    assert SECRET not in str(refused.value)


def test_a_function_that_one_message_does_not_serve_is_refused_where_it_is_mounted() -> None:
    with pytest.raises(UsageError, match="arguments="):
        AgUI(needs_two)


def test_without_the_protocols_package_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ag_ui.core", None)
    with pytest.raises(BridgeExtraMissing, match=r"agents-progress\[ag-ui\]"):
        AgUI(chat)


DOCS = (Path(__file__).parent.parent / "docs" / "bridges.md").read_text(encoding="utf-8")
ABOUT = DOCS[DOCS.index("## AG-UI") :]


def test_the_docs_name_every_code_with_which_a_stream_may_end() -> None:
    told = ABOUT[: ABOUT.index("**Answering.**")]
    assert [code for code in {*CODES.values(), *CUTS} - {"waiting"} if f"`{code}`" not in told] == []


def test_the_server_of_the_docs_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found: dict[str, Any] = {}
    exec(re.findall(r"```python\n(.*?)```", ABOUT, re.DOTALL)[0], found)
    assert {"/ag-ui", "/ag-ui/{conversation:path}/stream"} <= {route.path for route in found["app"].routes}


def test_an_event_is_one_frame_whatever_its_text_holds() -> None:
    bridge = AgUI(chat)
    event = {"type": "TEXT_MESSAGE_CONTENT", "messageId": "m", "delta": "a\n\ndata: b\r\u2028\x00 工"}
    (frame,) = Decoder().feed(bridge.frame(event))
    assert frame.data.count("\n") == 0
    assert bridge.frame(event).count(b"\n\n") == 1


ENDED = {
    "cancelled": Log().start().say("cancel.requested").end("cancelled").envelopes,
    "waiting": Log().start().request().ask().end("paused").envelopes,
}


@pytest.mark.parametrize("status", sorted(ENDED))
def test_a_client_that_declares_no_version_gets_an_error_where_it_would_read_an_outcome_as_success(status: str) -> None:
    bridge = AgUI(chat)
    old = {name: value for name, value in body().items() if name != "protocolVersion"}
    for sent, ends in ((body(), "RUN_FINISHED"), (old, "RUN_ERROR")):
        asked = bridge.asked(sent)
        projection = bridge.projection(asked.conversation, asked.key, asked.history)
        events = projection.join(RunView(RUN))
        for step in ENDED[status]:
            events += projection.feed(step)
        assert events[-1]["type"] == ends
        assert events[-1].get("code") == (status if ends == "RUN_ERROR" else None)


def test_a_stream_speaks_the_language_of_the_function() -> None:
    projection = AgUI(chat).projection("t1", "k1")
    projection.join(RunView(RUN))
    (status,) = projection.feed(Log().start().envelopes[0])
    assert status["content"]["message"] == "正在运行，还没有结束"
