"""A bridge to a protocol that nobody speaks, as small as one can be, to test what the server does with bridges.

It says "done" only after an accepted output, and holds a :class:`RunView` to know.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agents_progress.bridges.base import Answered, Asked, BadBody, Cut, Event, message_parameter, question_id
from agents_progress.decorate import Decorated
from agents_progress.events import Envelope
from agents_progress.view import RunView

TERMINAL = frozenset({"done", "asks", "error"})


class PlainProjection:
    def __init__(self, conversation: str, key: str) -> None:
        self.over = False
        self._head: Event = {"e": "begun", "chat": conversation, "key": key}
        self._view = RunView("")

    def join(self, view: RunView, earlier: Sequence[RunView] = ()) -> list[Event]:
        self._view = view
        texts = [
            {"e": "text", "of": message.item_id, "text": message.text}
            for run in (*earlier, view)
            if view.seq
            for message in run.messages
        ]
        rows = [{"e": "call", "of": row.activity_id, "state": row.state} for row in view.activities]
        return [{**self._head, "run": view.run_id}, *texts, *rows, *self._ending()]

    def feed(self, envelope: Envelope) -> list[Event]:
        self._view.feed(envelope)
        payload = envelope.payload
        match envelope.type:
            case "text.delta":
                return [{"e": "text", "of": payload["item_id"], "text": payload["text"]}]
            case "tool.requested":  # two events of one envelope
                call = {"e": "call", "of": payload["call_id"]}
                return [{**call, "state": "named"}, {**call, "state": "requested"}]
            case "note.broken":
                raise ValueError("a secret")
            case "run.ended" | "run.lost" | "app.checked":
                return self._ending()
        return []

    def cut(self, code: Cut) -> list[Event]:
        return [] if self.over else self._over({"e": "error", "code": code})

    def _ending(self) -> list[Event]:
        view = self._view
        if view.terminal is None or view.status == "checking":
            return []
        if view.status == "waiting":
            asked = [question_id(view.run_id, each) for each in view.interactions.values() if each.decision is None]
            return self._over({"e": "asks", "ids": asked})
        return self._over({"e": "done"} if view.status == "done" else {"e": "error", "code": view.status})

    def _over(self, event: Event) -> list[Event]:
        self.over = True
        return [event]


@dataclass
class Plain:
    """``{"chat", "id", "say"}`` starts, ``{"chat", "id", "answers": [{"to", "ok"}]}`` answers."""

    chat: Decorated[...]
    path: str = "/api/plain"
    name: str = "plain"
    headers: Mapping[str, str] = field(default_factory=lambda: {"x-plain": "1"})
    last: bytes = b"data: [LAST]\n\n"

    def __post_init__(self) -> None:
        self._parameter = message_parameter(self.chat)

    def asked(self, body: Mapping[str, Any]) -> Asked:
        for name, kind in (("chat", str), ("id", str)):
            if not isinstance(body.get(name), kind):
                raise BadBody(f"{name} is a text")
        answers = tuple(
            Answered(each["to"], "approved" if each["ok"] else "rejected", each.get("why"))
            for each in body.get("answers", ())
        )
        arguments = {self._parameter: body["say"]} if "say" in body else None
        return Asked(body["chat"], body["id"], arguments, answers)

    def projection(self, conversation: str, key: str, history: Sequence[Any] = ()) -> PlainProjection:
        return PlainProjection(conversation, key)

    def frame(self, event: Event) -> bytes:
        return b"data: %b\n\n" % json.dumps(event).encode()
