"""Answers of an AG-UI front end that carry something: a text, a choice, other arguments; and those that are refused."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from agents import Runner, RunResultStreaming, function_tool
from jsonschema import Draft202012Validator
from serving import caller, code, living, scripted

from agents_progress import Disclosure, current_run, progress
from agents_progress.bridges.ag_ui import AgUI
from agents_progress.bridges.ag_ui_calls import answer_schema
from agents_progress.bridges.ag_ui_projection import AgUiProjection
from agents_progress.journal import MemoryJournal
from agents_progress.rows import Interaction
from agents_progress.server import runs_app
from agents_progress.sse import Decoder
from agents_progress.testing import call, text, turn
from agents_progress.testing.ag_ui_screen import Screen
from agents_progress.view import RunView
from tests.logs import RUN, Log
from tests.serving import by_token

DID: list[Any] = []


@function_tool(needs_approval=True)
def refund(order: int, note: str = "") -> str:
    DID.append((order, note))
    return f"refunded {order}"


@function_tool(needs_approval=True)
def ask(question: str) -> str:
    DID.append(current_run().answer)
    return "asked"


@function_tool(needs_approval=True)
def pick(slots: list[str]) -> str:
    DID.append(current_run().answer)
    return "picked"


SHOWN = Disclosure(approval_details=["refund", "ask", "pick"], arguments=["refund"])
ASKING = {
    "refund": call("refund", {"order": 7, "note": "late"}, call_id="c1"),
    "ask": call("ask", {"question": "which?"}, call_id="c1"),
    "pick": call("pick", {"slots": ["mon", "tue"]}, call_id="c1"),
}


class Front:
    """A front end in one thread, which keeps what it is sent as AG-UI's client does."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.messages: list[dict[str, Any]] = [{"id": "u1", "role": "user", "content": "go"}]
        self.screen = Screen(self.messages)
        self.asked: list[dict[str, Any]] = []
        self.said = 0

    async def post(self, **more: Any) -> Any:
        self.said += 1
        body = {"threadId": "t1", "runId": f"k{self.said}", "protocolVersion": "1.0", "messages": self.messages, **more}
        return await self._client.post("/ag-ui", json=body)

    async def runs(self, **more: Any) -> None:
        answer = await self.post(**more)
        assert answer.status_code == 200, answer.text
        for frame in Decoder().feed(answer.content):
            event = json.loads(frame.data)
            self.screen.take(event)
            self.asked = event.get("outcome", {}).get("interrupts", [])
        self.messages = [
            *self.messages[:1],
            *(
                {
                    "id": name,
                    "role": "assistant",
                    "toolCalls": [{"id": name, "type": "function", "function": {"name": "x", "arguments": given}}],
                }
                for name, given in self.screen.arguments.items()
            ),
        ]

    def resume(self, payload: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [{"interruptId": each["id"], "status": "resolved", "payload": payload} for each in self.asked]


@asynccontextmanager
async def paused(journal: MemoryJournal, tool: str) -> AsyncIterator[Front]:
    DID.clear()
    agent = scripted(turn(ASKING[tool]), turn(text("done")), tools=[refund, ask, pick])
    kinds: Any = {"approval_kinds": {"ask": "clarification"}, "choices": {"pick": "slots"}}

    @progress(verify=lambda output: True, disclosure=SHOWN, **kinds)
    def chat(message: str) -> RunResultStreaming:
        return Runner.run_streamed(agent, message)

    app = runs_app(journal, by_token, bridges=[AgUI(chat)], drain_s=0.1)
    async with living(app) as served, caller(served) as client:
        front = Front(client)
        await front.runs()
        assert front.screen.ended == "interrupt"
        yield front


CARRIED: dict[str, tuple[str, dict[str, Any], Any]] = {
    "a text": ("ask", {"approved": True, "text": "the blue one"}, "the blue one"),
    "a choice": ("pick", {"approved": True, "text": "tue"}, "tue"),
    "other arguments": ("refund", {"approved": True, "editedArgs": {"order": 8, "note": "other"}}, (8, "other")),
    "nothing": ("refund", {"approved": True}, (7, "late")),
}


@pytest.mark.parametrize("name", sorted(CARRIED))
async def test_what_an_answer_carries_reaches_the_tool_and_its_schema_lets_it(
    journal: MemoryJournal, name: str
) -> None:
    tool, payload, did = CARRIED[name]
    async with paused(journal, tool) as front:
        Draft202012Validator(front.asked[0]["responseSchema"]).validate(payload)
        await front.runs(resume=front.resume(payload))
        assert (front.screen.success, DID) == (True, [did])


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "no text": ("ask", {"approved": True}, "answer_missing"),
    "no option": ("pick", {"approved": True, "text": "sun"}, "not_an_option"),
    "a text that nobody asked for": ("refund", {"approved": True, "text": "well"}, "answer_unexpected"),
    "arguments that the tool does not have": (
        "refund",
        {"approved": True, "editedArgs": {"order": 8, "eur": 1}},
        "arguments_unknown",
    ),
    "arguments that lack one": ("refund", {"approved": True, "editedArgs": {"note": ""}}, "arguments_missing"),
    "what would not be used": ("refund", {"approved": True, "arguments": {"order": 8}}, "bad_fields"),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
async def test_an_answer_that_does_not_fit_is_an_error_and_the_question_stays(
    journal: MemoryJournal, name: str
) -> None:
    tool, payload, why = REFUSED[name]
    async with paused(journal, tool) as front:
        assert not Draft202012Validator(front.asked[0]["responseSchema"]).is_valid(payload)
        assert code(await front.post(resume=front.resume(payload))) == why
        await front.runs(resume=front.resume({"approved": False}))
        assert DID == []


async def test_a_call_that_was_approved_with_other_arguments_is_shown_with_those(journal: MemoryJournal) -> None:
    async with paused(journal, "refund") as front:
        assert [json.loads(given) for given in front.screen.arguments.values()] == [{"order": 7, "note": "late"}]
        await front.runs(resume=front.resume({"approved": True, "editedArgs": {"order": 8, "note": "other"}}))
        assert [json.loads(given) for given in front.screen.arguments.values()] == [{"order": 8, "note": "other"}]
        assert front.screen.texts["u1"] == "go"


def test_a_client_that_is_told_of_the_pause_too_has_the_arguments_that_were_approved() -> None:
    first, again = RunView(RUN), AgUiProjection("thread")
    for step in Log().start().request(arguments='{"order":7}').ask().end("paused").envelopes:
        first.feed(step)
    screen = Screen()
    goes_on = Log(f"{RUN}.2").start(resumed_from=RUN).request(arguments='{"order":8}').ask()
    begun, *rest = goes_on.say("approval.resolved", interaction_id="ask-1", decision="approved").envelopes
    view = RunView(f"{RUN}.2")
    view.feed(begun)
    events = again.join(view, [first])
    for step in rest:
        events += again.feed(step)
    for event in events:
        screen.take(event)
    assert screen.arguments == {f"{RUN}:c1": '{"order":8}'}


HIDDEN = Interaction("ask-1", "c1", "pick", "Pick?", kind="choice", approve_blind=True, options_in="slots")


@pytest.mark.parametrize("question", [HIDDEN, Interaction("ask-1", "c1", "pay", "Pay?", takes={"eur": True})])
def test_what_nobody_was_shown_can_only_be_refused(question: Interaction) -> None:
    schema = Draft202012Validator(answer_schema(question))
    assert schema.is_valid({"approved": False, "reason": "no"})
    assert not schema.is_valid({"approved": True})
