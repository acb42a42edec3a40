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
        raise BadBody(f"{place}: answers nothing that was asked; send a message of the user, or answer an approval")
    if len({each.interaction for each in answers}) != len(answers):
        raise BadBody(f"{place}: answers one approval twice; answer each once")
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
    said = [[each.interaction, each.decision] for each in answers] or _parts(message, place)
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
    for number, part in enumerate(_parts(message, place)):
        if part.get("state") != "approval-responded":
            continue
        where, approval = f"{place}.parts[{number}].approval", part.get("approval")
        if not isinstance(approval, Mapping) or not isinstance(approval.get("approved"), bool):
            raise BadBody(f"{where}: has no `approved` that is true or false")
        reason = approval.get("reason")
        if reason is not None and len(_string(reason, f"{where}.reason")) > MOST_TEXT:
            raise BadBody(f"{where}.reason: longer than {MOST_TEXT} characters")
        name = _string(approval.get("id"), f"{where}.id")
        if len(name) > 3 * MAX_ID:
            raise BadBody(f"{where}.id: too long for one of ours")
        yield Answered(name, "approved" if approval["approved"] else "rejected", reason)


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
