"""What the AI SDK's chat shows of a stream, computed: the rules of its `processUIMessageStream` and `AbstractChat`,
as far as our parts need them. The tests hold this to the real client, and our streams to this.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agents_progress.bridges.base import Event
from agents_progress.bridges.vercel_parts import IN_WORDS
from agents_progress.view import RunView

Sees: TypeAlias = Literal["streaming", "error", "question", "answered", "success"]

STATES = {
    "tool-input-available": "input-available",
    "tool-approval-request": "approval-requested",
    "tool-approval-response": "approval-responded",
    "tool-output-available": "output-available",
    "tool-output-error": "output-error",
    "tool-output-denied": "output-denied",
}


class Fatal(Exception):
    """The client fails for a part."""


@dataclass
class Seen:
    """What is on the screen. ``error`` stops the client: what follows is not read.

    ``parts`` are what the client shows, in its order: `step`; `text` with its id and what it says; `call` with its id
    and state.
    """

    error: str | None = None
    finish: str | None = None
    message: str | None = None
    parts: list[list[str]] = field(default_factory=list)
    asked: dict[str, str] = field(default_factory=dict)
    questions: dict[str, Any] = field(default_factory=dict)
    run: str | None = None
    open: dict[str, list[str]] = field(default_factory=dict)

    @property
    def texts(self) -> list[list[str]]:
        return [rest for kind, *rest in self.parts if kind == "text"]

    @property
    def calls(self) -> list[list[str]]:
        return [rest for kind, *rest in self.parts if kind == "call"]

    def take(self, part: Event) -> None:
        type_ = part["type"]
        if self.error is not None:
            return
        if type_ == "error":
            self.error = part["errorText"]
        elif type_ == "start":
            self.message = part.get("messageId", self.message)
        elif type_ == "start-step":
            self.parts.append(["step"])
        elif type_.startswith(("text-", "reasoning-")):
            self._text(type_, part)
        elif type_.startswith("tool-"):
            self._call(type_, part)
        elif type_ == "finish":
            self.finish = part["finishReason"]
        elif type_ == "data-run":
            self.run = part["data"]["status"]
        elif type_ == "data-question":
            self.questions[part["id"]] = part["data"]

    def _text(self, type_: str, part: Event) -> None:
        name, place = part["id"], f"{type_.partition('-')[0]}/{part['id']}"
        if type_.endswith("-start"):
            self.open[place] = ["text", name, ""]
            self.parts.append(self.open[place])
        elif place not in self.open:
            raise Fatal(f"{type_} of {name}, which is not open")
        elif type_.endswith("-delta"):
            self.open[place][2] += part["delta"]
        else:
            del self.open[place]

    def _call(self, type_: str, part: Event) -> None:
        if type_ == "tool-approval-response":
            if part["approvalId"] not in self.asked:
                raise Fatal("an answer to what was not asked")
            call_id = self.asked[part["approvalId"]]
        else:
            call_id = part["toolCallId"]
        known = [part for part in self.parts if part[:2] == ["call", call_id]]
        if type_ == "tool-input-available":
            known = [part for part in self._last_step() if part[:2] == ["call", call_id]]
            if not known:
                self.parts.append(["call", call_id, STATES[type_]])
        elif not known:
            raise Fatal(f"{type_} of a call that is not there")
        if type_ == "tool-approval-request":
            self.asked[part["approvalId"]] = call_id
        for call in known[-1:]:
            call[2] = STATES[type_]

    def _last_step(self) -> list[list[str]]:
        begins = [place for place, part in enumerate(self.parts) if part == ["step"]]
        return self.parts[begins[-1] :] if begins else self.parts

    @property
    def in_words(self) -> list[str]:
        """The calls whose output is a person's to give: about each a question is open that wants a text."""
        questions = (each for each in self.questions.values() if each["decision"] is None and each["approvable"])
        return [each["call_id"] for each in questions if each["text"] in IN_WORDS]

    def answer(self) -> None:
        """The user answers what is asked in words: the rule of `addToolOutput`."""
        for call_id in self.in_words:
            self.take({"type": "tool-output-available", "toolCallId": call_id})

    def sees(self, ended: bool = True) -> Sees:
        """What that says. ``ended`` is whether the stream did: one that simply ends came to rest."""
        if self.error is not None:
            return "error"
        if not ended:
            return "streaming"
        if any(state == "approval-requested" for _, state in self.calls):
            return "question"
        said = [state for call_id, state in self.calls if call_id in self.in_words]
        if not said:
            return "success"
        return "question" if "input-available" in said else "answered"


def seen(events: Iterable[Event], seen: Seen | None = None) -> Seen:
    """What is shown after these parts, on top of what was shown before. Raises :exc:`Fatal`."""
    shown = seen or Seen()
    for event in events:
        shown.take(event)
    return shown


def overclaims(shown: Seen, view: RunView) -> bool:
    """Whether a user takes for success what our own view does not."""
    return shown.sees() == "success" and view.status != "done"
