"""Answers of a chat of the AI SDK that are a person's words: what reaches the tool, and what is refused while the
question stays.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from agents import Runner, RunResultStreaming, function_tool
from serving import caller, code, living, scripted

from agents_progress import Disclosure, current_run, progress
from agents_progress.bridges.base import Event
from agents_progress.bridges.vercel import Vercel
from agents_progress.journal import MemoryJournal
from agents_progress.server import runs_app
from agents_progress.sse import Decoder
from agents_progress.testing import call, text, turn
from tests.serving import by_token
from tests.vercel_seen import Seen, seen

SAID: list[Any] = []


@function_tool(needs_approval=True)
def ask(question: str) -> str:
    SAID.append(current_run().answer)
    return f"asked: {question}"


@function_tool(needs_approval=True)
def pick(slots: list[str]) -> str:
    SAID.append(current_run().answer)
    return "picked"


SHOWN = Disclosure(approval_details=["ask", "pick"], outputs="all")
ASKING = {
    "ask": call("ask", {"question": "which?"}, call_id="c1"),
    "pick": call("pick", {"slots": ["mon", "tue"]}, call_id="c1"),
}


class Front:
    """A chat, which sends of its message what an answer is read from."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self.screen = Seen()
        self.parts: list[Event] = []

    async def post(self, message: dict[str, Any]) -> Any:
        body = {"id": "chat-1", "trigger": "submit-message", "messageId": message["id"], "messages": [message]}
        return await self._client.post("/api/chat", json=body)

    async def runs(self, message: dict[str, Any]) -> None:
        answer = await self.post(message)
        assert answer.status_code == 200, answer.text
        self.parts = [json.loads(frame.data) for frame in Decoder().feed(answer.content) if frame.data != "[DONE]"]
        seen(self.parts, self.screen)

    def says(self, *, question: dict[str, Any] | None = None, **given: Any) -> dict[str, Any]:
        """Its message with what `addToolOutput` makes of the call."""
        (asked,) = self.screen.questions.values()
        data = {"type": "data-question", "id": "ask-1", "data": {**asked, **(question or {})}}
        part = {"type": "dynamic-tool", "toolName": "x", "toolCallId": asked["call_id"], "state": "output-available"}
        return {"id": "task", "role": "assistant", "parts": [data, {**part, **given}]}


@asynccontextmanager
async def paused(journal: MemoryJournal, tool: str, shown: Disclosure = SHOWN) -> AsyncIterator[Front]:
    SAID.clear()
    agent = scripted(turn(ASKING[tool]), turn(text("done")), tools=[ask, pick])
    kinds: Any = {"approval_kinds": {"ask": "clarification"}, "choices": {"pick": "slots"}}

    @progress(verify=lambda output: True, disclosure=shown, **kinds)
    def chat(message: str) -> RunResultStreaming:
        return Runner.run_streamed(agent, message)

    app = runs_app(journal, by_token, bridges=[Vercel(chat, major=7)], drain_s=0.1)
    async with living(app) as served, caller(served) as client:
        front = Front(client)
        await front.runs({"id": "u1", "role": "user", "parts": [{"type": "text", "text": "go"}]})
        yield front


@pytest.mark.parametrize(("tool", "said"), [("ask", "the blue one"), ("pick", "tue")])
async def test_what_a_person_says_reaches_the_tool_whose_own_output_takes_its_place(
    journal: MemoryJournal, tool: str, said: str
) -> None:
    async with paused(journal, tool) as front:
        assert (front.screen.sees(), [state for _, state in front.screen.calls]) == ("question", ["input-available"])
        await front.runs(front.says(output=said))
        assert (front.screen.sees(), SAID) == ("success", [said])
        outputs = [part["output"] for part in front.parts if part["type"] == "tool-output-available"]
        assert outputs == [{"ask": "asked: which?", "pick": "picked"}[tool]]


async def test_what_a_person_declines_is_refused_with_its_reason_and_the_tool_is_not_called(
    journal: MemoryJournal,
) -> None:
    async with paused(journal, "ask") as front:
        await front.runs(front.says(state="output-error", errorText="None of them"))
        assert (front.screen.sees(), SAID) == ("success", [])
        assert [state for _, state in front.screen.calls] == ["output-denied"]


REFUSED: dict[str, tuple[str, dict[str, Any], str]] = {
    "no words": ("ask", {"output": " "}, "answer_missing"),
    "no option": ("pick", {"output": "sun"}, "not_an_option"),
    "an object": ("ask", {"output": {"text": "the blue one"}}, "bad_fields"),
    "no question": ("ask", {"output": "x", "question": {"question_id": "run-A"}}, "unknown_interaction"),
    "another run": ("ask", {"output": "x", "question": {"question_id": "run-A/ask-1/d"}}, "not_found"),
}


@pytest.mark.parametrize("name", sorted(REFUSED))
async def test_words_that_do_not_fit_are_refused_and_others_are_taken(journal: MemoryJournal, name: str) -> None:
    tool, given, why = REFUSED[name]
    async with paused(journal, tool) as front:
        assert code(await front.post(front.says(**given))) == why
        assert SAID == []
        await front.runs(front.says(output="mon"))
        assert (front.screen.sees(), SAID) == ("success", ["mon"])


async def test_words_about_something_else_than_was_shown_are_refused(journal: MemoryJournal) -> None:
    async with paused(journal, "ask") as front:
        (asked,) = front.screen.questions.values()
        run_and_question = asked["question_id"].rpartition("/")[0]
        other = {"question_id": f"{run_and_question}/{'e' * 64}"}
        assert code(await front.post(front.says(output="x", question=other))) == "digest_differs"
        assert SAID == []


async def test_the_same_words_again_stream_what_came_of_them_and_the_tool_is_called_once(
    journal: MemoryJournal,
) -> None:
    async with paused(journal, "ask") as front:
        message = front.says(output="the blue one")
        await front.runs(message)
        first = front.parts
        await front.runs(message)
        assert (front.parts, SAID) == (first, ["the blue one"])


async def test_a_question_in_words_that_hides_what_it_asks_ends_the_stream_as_an_error(journal: MemoryJournal) -> None:
    async with paused(journal, "ask", shown=Disclosure(approval_details=["pick"])) as front:
        assert (front.screen.sees(), front.screen.in_words) == ("error", [])
        assert code(await front.post(front.says(output="x"))) == "not_shown"
