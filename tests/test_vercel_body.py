"""What a chat of the AI SDK asks for: which text is given to which parameter, which answer came to which question, and
what is refused.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from agents import Agent, Runner, RunResultStreaming
from hypothesis import given
from hypothesis import strategies as st

from agents_progress import progress
from agents_progress.answers import MOST_TEXT
from agents_progress.bridges.base import Answered, BadBody
from agents_progress.bridges.vercel import Vercel
from agents_progress.bridges.vercel_body import MAX_ID
from agents_progress.errors import UsageError
from tests.logs import json_values

QUESTION = f"run-A/ask-1/{'d' * 64}"


@progress
def chat(message: str, polite: bool = True) -> RunResultStreaming:
    return Runner.run_streamed(Agent("A"), message)


@progress
def needs_two(question: str, fee: float) -> RunResultStreaming:
    return Runner.run_streamed(Agent("A"), f"{question} {fee}")


def user(text: str = "2 EUR plus 3 EUR?", name: str = "u1", **more: Any) -> dict[str, Any]:
    return {"id": name, "role": "user", "parts": [{"type": "text", "text": text}], **more}


def assistant(*parts: dict[str, Any], name: str = "task-1") -> dict[str, Any]:
    return {"id": name, "role": "assistant", "parts": [{"type": "step-start"}, *parts]}


def call(approved: Any = True, name: str = QUESTION, state: str = "approval-responded", **more: Any) -> dict[str, Any]:
    approval = {"id": name, "approved": approved, **more}
    return {"type": "dynamic-tool", "toolName": "pay", "toolCallId": "c1", "state": state, "approval": approval}


def said(output: Any = "The blue one", call_id: str = "c1", **more: Any) -> dict[str, Any]:
    """A call whose output a person gave."""
    part = {"type": "dynamic-tool", "toolName": "ask", "toolCallId": call_id, "state": "output-available"}
    return {**part, "output": output, **more}


def question(call_id: Any = "c1", *, name: Any = QUESTION, text: Any = "required", decision: Any = None) -> Any:
    data = {"question_id": name, "call_id": call_id, "text": text, "decision": decision}
    return {"type": "data-question", "id": "ask-1", "data": data}


def body(*messages: dict[str, Any], trigger: str = "submit-message", **more: Any) -> dict[str, Any]:
    return {"id": "chat-1", "messages": list(messages), "trigger": trigger, **more}


bridge = Vercel(chat, major=7)


def test_the_text_of_the_users_last_message_is_what_the_function_gets() -> None:
    parts = [{"type": "text", "text": "plus "}, {"type": "data-x", "data": 1}, {"type": "text", "text": "3"}]
    asked = bridge.asked(body(user("2"), assistant(), user(name="u2", parts=parts)))
    assert (asked.conversation, asked.arguments, asked.answers) == ("chat-1", {"message": "plus 3"}, ())


def test_an_application_makes_its_own_arguments_of_a_request() -> None:
    own = Vercel(needs_two, major=6, arguments=lambda sent: {"question": sent["id"], "fee": len(sent["messages"])})
    assert own.asked(body(user())).arguments == {"question": "chat-1", "fee": 1}


def test_an_application_that_makes_its_own_arguments_may_take_files() -> None:
    own = Vercel(chat, major=7, arguments=lambda sent: {"message": sent["messages"][-1]["parts"][0]["url"]})
    one, two = ({"type": "file", "mediaType": "image/png", "url": f"https://x.test/{name}"} for name in "ab")
    asked = [own.asked(body(user(parts=[part]))) for part in (one, two, one)]
    assert [each.arguments for each in asked[:2]] == [{"message": one["url"]}, {"message": two["url"]}]
    assert asked[0].key == asked[2].key != asked[1].key


def test_an_answer_starts_nothing_and_names_what_was_asked_by_the_id_it_came_with() -> None:
    done = call(state="output-available", name="run-A/ask-0/")
    asked = bridge.asked(body(user(), assistant(done, call(False, reason="Too much")), messageId="task-1"))
    assert asked.arguments is None
    assert asked.answers == (Answered(QUESTION, "rejected", "Too much"),)


DECLINED = {"state": "output-error", "output": None, "errorText": "Neither"}


@pytest.mark.parametrize("text", ["required", "option"])
@pytest.mark.parametrize(
    ("part", "answer"),
    [
        (said(), Answered(QUESTION, "approved", text="The blue one")),
        (said(""), Answered(QUESTION, "approved", text="")),
        (said(None), Answered(QUESTION, "approved", text="")),
        (said(**DECLINED), Answered(QUESTION, "rejected", "Neither")),
        (said(state="output-error"), Answered(QUESTION, "rejected")),
    ],
)
def test_the_output_that_a_client_gave_a_call_answers_the_open_question_about_it(
    text: str, part: dict[str, Any], answer: Answered
) -> None:
    asked = bridge.asked(body(user(), assistant(question(text=text), part), messageId="task-1"))
    assert (asked.arguments, asked.answers) == (None, (answer,))


@pytest.mark.parametrize(
    "parts",
    [
        [said(), question(decision="approved")],
        [said(), question(text="optional")],
        [said(), question("c2")],
        [said(), question(None)],
        [said(), {"type": "data-question", "id": "ask-1", "data": None}],
        [said(state="input-available"), question()],
        [said()],
    ],
)
def test_an_output_about_which_no_question_is_open_that_wants_a_text_is_no_answer(parts: list[dict[str, Any]]) -> None:
    with pytest.raises(BadBody, match="answers nothing that was asked"):
        bridge.asked(body(user(), assistant(*parts)))
    assert bridge.asked(body(user(), assistant(*parts, call(name="run-A/ask-2/")))).answers == (
        Answered("run-A/ask-2/", "approved"),
    )


def test_answers_of_both_kinds_come_together() -> None:
    other = question("c2", name="run-A/ask-2/")
    asked = bridge.asked(body(user(), assistant(call(), other, said(call_id="c2"))))
    assert asked.answers == (Answered(QUESTION, "approved"), Answered("run-A/ask-2/", "approved", text="The blue one"))


def test_an_answer_counts_though_the_user_wrote_on_since() -> None:
    asked = bridge.asked(body(user(), assistant(call()), user(name="u2"), messageId="task-1"))
    assert asked.answers == (Answered(QUESTION, "approved"),)


def test_a_message_of_the_user_is_not_taken_for_an_answer_of_what_stands_above_it() -> None:
    assert bridge.asked(body(user(), assistant(call()), user("Well?", "u2"))).arguments == {"message": "Well?"}


def test_the_stream_of_an_answer_goes_on_in_the_message_of_the_client_and_that_of_a_message_does_not() -> None:
    answer, message = bridge.asked(body(assistant(call()))), bridge.asked(body(user()))
    assert bridge.projection("chat-1", answer.key).continues
    assert not bridge.projection("chat-1", message.key).continues
    assert not bridge.projection("chat-1", "").continues


def test_the_same_request_again_has_the_same_key() -> None:
    for sent in (body(user()), body(assistant(call())), body(user(), messageId="u1")):
        assert bridge.asked(sent).key == bridge.asked(json.loads(json.dumps(sent))).key != ""


def test_requests_that_mean_something_else_have_keys_of_their_own() -> None:
    sent = [
        body(user()),
        body(user(name="u2")),
        body(user("3?")),
        body(user(), messageId="u1"),
        body(assistant(call())),
        body(assistant(call(False))),
        body(assistant(question(), said())),
        body(assistant(question(), said("The red one"))),
        {**body(user()), "id": "chat-2"},
    ]
    assert len({bridge.asked(each).key for each in sent}) == len(sent)


def test_each_regenerate_is_meant_though_all_look_alike() -> None:
    asked = bridge.asked(body(user(), trigger="regenerate-message"))
    assert (asked.key, asked.arguments) == ("", {"message": "2 EUR plus 3 EUR?"})


REFUSED: dict[str, tuple[Any, str]] = {
    "no id": ({**body(user()), "id": None}, "id: "),
    "long id": ({**body(user()), "id": "x" * (MAX_ID + 1)}, "id: "),
    "no trigger": (body(user(), trigger="resume-stream"), "trigger: "),
    "no messages": (body(), "messages: "),
    "messages are no list": ({**body(user()), "messages": {}}, "messages: "),
    "a message is none": (body(user(), "hello"), "messages[1]: "),  # type: ignore[arg-type]
    "unknown role": (body({**user(), "role": "tool"}), "messages[0]: "),
    "system last": (body(user(), {**user(), "role": "system"}), "messages[1]: "),
    "no id of a message": (body({**user(), "id": 7}), "messages[0].id: "),
    "odd message id": (body(user(), messageId=7), "messageId: "),
    "no parts": (body(user(parts=None)), "messages[0].parts: "),
    "a part is none": (body(user(parts=["hello"])), "messages[0].parts: "),
    "text is none": (body(user(parts=[{"type": "text", "text": 1}])), "messages[0].parts[0].text: "),
    "no text": (body(user(" ")), "messages[0]: "),
    "a file": (body(user(parts=[{"type": "file", "url": "data:,"}])), "messages[0].parts[0]: "),
    "answers nothing": (body(user(), assistant()), "messages[1]: "),
    "regenerates an answer": (body(assistant(call()), trigger="regenerate-message"), "messages[0]: "),
    "no decision": (body(assistant(call("yes"))), "messages[0].parts[1].approval: "),
    "no approval": (body(assistant({**call(), "approval": None})), "messages[0].parts[1].approval: "),
    "odd question": (body(assistant(call(name=None))), "messages[0].parts[1].approval.id: "),  # type: ignore[arg-type]
    "long question": (body(assistant(call(name="x" * 1000))), "messages[0].parts[1].approval.id: "),
    "odd reason": (body(assistant(call(reason=1))), "messages[0].parts[1].approval.reason: "),
    "long reason": (body(assistant(call(reason="x" * (MOST_TEXT + 1)))), "messages[0].parts[1].approval.reason: "),
    "answered twice": (body(assistant(call(), call(False))), "messages[0]: "),
    "odd output": (body(assistant(question(), said({"text": "cup"}))), "messages[0].parts[2].output: "),
    "long output": (body(assistant(question(), said("x" * (MOST_TEXT + 1)))), "messages[0].parts[2].output: "),
    "odd refusal": (
        body(assistant(question(), said(**{**DECLINED, "errorText": 1}))),
        "messages[0].parts[2].errorText: ",
    ),
    "odd question in words": (body(assistant(question(name=7), said())), "messages[0].parts[1].data.question_id: "),
    "long question in words": (body(assistant(question(name="x" * 1000), said())), "messages[0].parts[1].data."),
    "answered twice, in words": (body(assistant(question(), question("c2"), said(), said("", "c2"))), "messages[0]: "),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_not_understood_is_refused_by_the_name_of_the_field(name: str) -> None:
    sent, field = REFUSED[name]
    with pytest.raises(BadBody) as refused:
        bridge.asked(sent)
    assert str(refused.value).startswith(field)


GOOD = [
    body(user(), messageId="u1"),
    body(user(), assistant(call(reason="no")), messageId="task-1"),
    body(user(), assistant(question(), said(), said(call_id="c2", **DECLINED), question("c2", name="run-A/ask-2/"))),
]
secret = st.text("0123456789abcdef", min_size=24, max_size=24)


@given(st.sampled_from(GOOD), st.data(), json_values | st.builds("s3cret-{}".format, secret))
def test_whatever_is_changed_in_a_request_it_is_understood_or_refused_without_its_values(
    sent: dict[str, Any], data: st.DataObject, value: Any
) -> None:
    sent = copy.deepcopy(sent)
    places: list[Callable[[], Any]] = []

    def visit(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append(lambda node=node, key=key: node.__setitem__(key, value))  # type: ignore[misc]
            if isinstance(node[key], dict | list):
                visit(node[key])

    visit(sent)
    data.draw(st.sampled_from(places))()
    try:
        bridge.asked(sent)
    except BadBody as refused:
        assert "s3cret" not in str(refused)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"major": 5}, "majors"),
        ({"major": "7"}, "majors"),
        ({"major": 7, "language": "de"}, "language"),
        ({"major": 7, "path": "api/chat"}, "path"),
        ({"major": 7, "path": "/api/chat/"}, "path"),
    ],
)
def test_a_bridge_that_cannot_be_is_refused_when_it_is_made(options: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        Vercel(chat, **options)


def test_a_function_that_one_message_does_not_serve_is_refused_when_the_bridge_is_made() -> None:
    with pytest.raises(UsageError, match="needs_two requires"):
        Vercel(needs_two, major=7)


def test_a_frame_is_one_event_of_the_stream_and_its_text_stays_on_one_line() -> None:
    frame = bridge.frame({"type": "text-delta", "id": "m1", "delta": "a\nb\u2028c"})
    assert frame == 'data: {"type":"text-delta","id":"m1","delta":"a\\nb\u2028c"}\n\n'.encode()
