"""What a request of the AI SDK's chat transport asks for: ``{id, messages, trigger, messageId}``, read strictly.

Only the last message counts, or the assistant's message that the request names: what was said before is in the journal.
Nothing that a client sends is taken for a fact but the text of the user, and which question got which answer.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from pydantic_core import to_json

from agents_progress.answers import MOST_TEXT
from agents_progress.bridges.base import Answered, BadBody
from agents_progress.bridges.vercel_parts import IN_WORDS

MAX_ID: Final = 256
MAX_MESSAGES: Final = 10_000
MAX_PARTS: Final = 10_000

ANSWERS: Final = "answer-"
"""What the key of a request begins with that goes on with a message the client has."""


def conversation_of(body: Mapping[str, Any]) -> str:
    """The id of the chat."""
    return _id(body.get("id"), "id")


def answers_of(body: Mapping[str, Any]) -> tuple[Answered, ...]:
    """The answers of the assistant's message that the request goes on with; none for a message of the user."""
    place, message = _meant(body)
    if message["role"] != "assistant":
        return ()
    answers = tuple(_answers(message, place))
    if not answers:
        raise BadBody(f"{place}: answers nothing that was asked; send a message of the user, or answer a question")
    if len({each.interaction for each in answers}) != len(answers):
        raise BadBody(f"{place}: answers one question twice; answer each once")
    return answers


def text_of(body: Mapping[str, Any]) -> str:
    """The text of the user's last message."""
    place, message = _meant(body)
    texts = []
    for number, part in enumerate(_parts(message, place)):
        if part.get("type") == "text":
            texts.append(_string(part.get("text"), f"{place}.parts[{number}].text"))
        elif part.get("type") == "file":
            raise BadBody(f"{place}.parts[{number}]: a file is not taken here; send text")
    text = "".join(texts)
    if not text.strip():
        raise BadBody(f"{place}: has no text; send some")
    return text


def key_of(body: Mapping[str, Any], answers: tuple[Answered, ...]) -> str:
    """The same for the same request again; empty for `regenerate`, of which each is meant, though all look alike."""
    if not answers and body["trigger"] == "regenerate-message":
        return ""
    place, message = _meant(body)
    said = [[each.interaction, each.decision, each.text] for each in answers] or _parts(message, place)
    content = to_json([body["id"], body.get("messageId"), message.get("id"), said])
    return f"{ANSWERS if answers else 'message-'}{hashlib.sha256(content).hexdigest()}"


def _meant(body: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The message that a request is about, with its place for errors."""
    trigger, named, messages = body.get("trigger"), body.get("messageId"), body.get("messages")
    if trigger not in ("submit-message", "regenerate-message"):
        raise BadBody("trigger: neither `submit-message` nor `regenerate-message`")
    if named is not None:
        _id(named, "messageId")
    if not isinstance(messages, list) or not 0 < len(messages) <= MAX_MESSAGES:
        raise BadBody(f"messages: not a list of 1 to {MAX_MESSAGES}")
    for number, message in enumerate(messages):
        if not isinstance(message, Mapping) or message.get("role") not in ("user", "assistant", "system"):
            raise BadBody(f"messages[{number}]: not a message of the user, the assistant or the system")
    last = len(messages) - 1
    goes_on = trigger == "submit-message" and named is not None
    number = next((n for n in range(last, -1, -1) if goes_on and messages[n].get("id") == named), last)
    if messages[number]["role"] != "assistant":
        number = last
    place, message = f"messages[{number}]", messages[number]
    _id(message.get("id"), f"{place}.id")
    if message["role"] == "system" or (message["role"] == "assistant" and trigger == "regenerate-message"):
        raise BadBody(f"{place}: not a message of the user; send the one to answer last")
    return place, message


def _answers(message: Mapping[str, Any], place: str) -> Iterator[Answered]:
    parts = _parts(message, place)
    outputs = dict[str, tuple[str, Mapping[str, Any]]]()
    for number, part in enumerate(parts):
        where, call_id = f"{place}.parts[{number}]", part.get("toolCallId")
        if part.get("state") == "approval-responded":
            yield _approval(part.get("approval"), f"{where}.approval")
        elif part.get("state") in ("output-available", "output-error") and isinstance(call_id, str):
            outputs[call_id] = where, part
    for number, part in enumerate(parts):
        asked = part.get("data")
        if part.get("type") == "data-question" and isinstance(asked, Mapping) and asked.get("call_id") in [*outputs]:
            yield from _in_words(asked, f"{place}.parts[{number}].data", *outputs[asked["call_id"]])


def _approval(approval: object, where: str) -> Answered:
    if not isinstance(approval, Mapping) or not isinstance(approval.get("approved"), bool):
        raise BadBody(f"{where}: has no `approved` that is true or false")
    name = _question(approval.get("id"), f"{where}.id")
    reason = _words(approval.get("reason"), f"{where}.reason")
    return Answered(name, "approved" if approval["approved"] else "rejected", reason)


def _in_words(asked: Mapping[str, Any], place: str, where: str, part: Mapping[str, Any]) -> Iterator[Answered]:
    """The answer that a client gave as the output of a call: ours it is only once the question has a decision."""
    if asked.get("decision") is not None or asked.get("text") not in IN_WORDS:
        return
    name = _question(asked.get("question_id"), f"{place}.question_id")
    if part["state"] == "output-error":
        yield Answered(name, "rejected", _words(part.get("errorText"), f"{where}.errorText"))
    else:
        yield Answered(name, "approved", text=_words(part.get("output"), f"{where}.output") or "")


def _question(value: object, place: str) -> str:
    name = _string(value, place)
    if len(name) > 3 * MAX_ID:
        raise BadBody(f"{place}: too long for one of ours")
    return name


def _words(value: object, place: str) -> str | None:
    if value is None:
        return None
    text = _string(value, place)
    if len(text) > MOST_TEXT:
        raise BadBody(f"{place}: longer than {MOST_TEXT} characters")
    return text


def _parts(message: Mapping[str, Any], place: str) -> list[Mapping[str, Any]]:
    parts = message.get("parts")
    if not isinstance(parts, list) or len(parts) > MAX_PARTS or not all(isinstance(part, Mapping) for part in parts):
        raise BadBody(f"{place}.parts: not a list of at most {MAX_PARTS} objects")
    return parts


def _string(value: object, place: str) -> str:
    if not isinstance(value, str):
        raise BadBody(f"{place}: not a text")
    return value


def _id(value: object, place: str) -> str:
    text = _string(value, place)
    if not 0 < len(text) <= MAX_ID:
        raise BadBody(f"{place}: not a text of 1 to {MAX_ID} characters")
    return text
