"""AG-UI 1.0 events as plain objects in their wire form: what all of them share, texts, and stages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeAlias

from agents_progress.bridges.base import Event
from agents_progress.rows import Activity, Message

OURS: Final = "agents-progress"
"""The key of our metadata, the type of our activities, and what the names of our custom events begin with."""
PROTOCOL_VERSION: Final = "1.0"

_TOKENS: Final[Mapping[str, str]] = {
    "inputTokens": "input_tokens",
    "outputTokens": "output_tokens",
    "totalTokens": "total_tokens",
    "cachedInputTokens": "cached_tokens",
    "reasoningTokens": "reasoning_tokens",
}

Json: TypeAlias = dict[str, Any]


class Doubt(Exception):
    """The envelope contradicts what the run said before."""


def require(holds: bool) -> None:
    """Raise :exc:`Doubt` unless it does."""
    if not holds:
        raise Doubt


def noted(**facts: Any) -> Json:
    """Our own facts as the metadata of an event: those that are known."""
    return {OURS: {name: fact for name, fact in facts.items() if fact is not None}}


def custom(name: str, payload: Mapping[str, Any]) -> Event:
    """A fact that AG-UI has no event for."""
    value = {field: fact for field, fact in payload.items() if field != "x"}
    return {"type": "CUSTOM", "name": f"{OURS}.{name}", "value": value}


def usage_of(usage: Mapping[str, Any] | None) -> list[Json]:
    """The tokens of a run; a count that is not known is left out, which is not 0."""
    known = {name: usage[ours] for name, ours in _TOKENS.items() if usage[ours] is not None} if usage else {}
    return [known] if known else []


# Texts.


@dataclass(slots=True)
class Text:
    """One message, under ``RUN:ITEM``: items are new in each run. ``pieces`` are what was sent of it while it is
    open.
    """

    message_id: str
    channel: str
    deltas: int = 0
    open: bool = False
    pieces: list[str] = field(default_factory=list)
    content: str = field(init=False)

    def __post_init__(self) -> None:
        self.content = "REASONING_MESSAGE_CONTENT" if self.channel == "reasoning" else "TEXT_MESSAGE_CONTENT"

    def started(self, text: str = "") -> list[Event]:
        """Opened, with what there is of it."""
        self.open, self.pieces = True, [text] if text else []
        events: list[Event] = []
        if self.channel == "reasoning":
            events.append({"type": "REASONING_START", "messageId": self.message_id})
            events.append({"type": "REASONING_MESSAGE_START", "messageId": self.message_id, "role": "reasoning"})
        else:
            start: Event = {"type": "TEXT_MESSAGE_START", "messageId": self.message_id, "role": "assistant"}
            if self.channel != "answer":
                start["metadata"] = noted(channel=self.channel)
            events.append(start)
        if text:
            events.append({"type": self.content, "messageId": self.message_id, "delta": text})
        return events

    def ended(self, text: str | None = None) -> list[Event]:
        """Closed; ``text`` is the authoritative one where it differs from the deltas.

        What it has more of is sent. What it has otherwise cannot be taken back: it goes into the metadata.
        """
        events: list[Event] = []
        end: Json = {"messageId": self.message_id}
        if text is not None:
            sent = "".join(self.pieces)
            if not text.startswith(sent):
                end = {**end, "metadata": noted(text=text)}
            elif text != sent:
                events.append({"type": self.content, "messageId": self.message_id, "delta": text[len(sent) :]})
        self.open, self.pieces = False, []
        kinds = ("REASONING_MESSAGE_END", "REASONING_END") if self.channel == "reasoning" else ("TEXT_MESSAGE_END",)
        return [*events, *({"type": kind, **end} for kind in kinds)]

    def message(self, text: str) -> Json:
        """All of it as a message of a snapshot."""
        role = "reasoning" if self.channel == "reasoning" else "assistant"
        noting = {} if self.channel in ("answer", "reasoning") else {"metadata": noted(channel=self.channel)}
        return {"id": self.message_id, "role": role, "content": text, **noting}


class Texts:
    """The messages of one run."""

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._texts: dict[tuple[str, str], Text] = {}

    def restored(self, messages: Iterable[Message]) -> Iterator[Event]:
        """The messages of a view; what is open among them is opened again, with all there is of it."""
        for message in messages:
            text = self._named(message.item_id, message.channel)
            text.deltas = message.deltas
            if not message.complete:
                yield from text.started(message.text)

    def closed_of(self, messages: Iterable[Message]) -> Iterator[Json]:
        """Those that are not open, as messages of a snapshot."""
        for message in messages:
            text = self._named(message.item_id, message.channel)
            if not text.open:
                yield text.message(message.text)

    def delta(self, payload: Json) -> list[Event]:
        """The next piece of a message. Raises :exc:`Doubt` after a hole."""
        item_id, channel = payload["item_id"], payload.get("channel", "answer")
        text = self._texts.get((item_id, channel)) or self._named(item_id, channel)
        index, delta = payload["index"], payload["text"]
        require(index == text.deltas)
        text.deltas += 1
        if not text.open:
            return text.started(delta)
        if not delta:
            return []
        text.pieces.append(delta)
        return [{"type": text.content, "messageId": text.message_id, "delta": delta}]

    def completed(self, payload: Json) -> list[Event]:
        """A message is over; one that had no deltas comes whole."""
        text, whole = self._named(payload["item_id"], payload.get("channel", "answer")), payload.get("text")
        if text.open:
            return text.ended(whole)
        return [*text.started(whole), *text.ended()] if whole and not text.deltas else []

    def closed(self) -> list[Event]:
        """Whatever is open, closed as far as it came."""
        return [event for text in self._texts.values() if text.open for event in text.ended()]

    def _named(self, item_id: str, channel: str) -> Text:
        text = self._texts.get((item_id, channel))
        if text is None:
            name = f"{self._run_id}:{item_id}"
            text = Text(name if channel == "answer" else f"{name}:{channel}", channel)
            self._texts[item_id, channel] = text
        return text


# Stages.


class Stages:
    """The stages of one run, as steps."""

    def __init__(self) -> None:
        self._rows: dict[str, Activity] = {}

    def restored(self, rows: Iterable[Activity]) -> Iterator[Event]:
        """The stages of a view; the open ones are started again."""
        for row in rows:
            own = self._rows[row.activity_id.partition(":")[2]] = replace(row)
            if own.open:
                yield {"type": "STEP_STARTED", "stepName": self._name(own)}

    def started(self, payload: Json) -> list[Event]:
        """One more."""
        stage_id, title = payload["stage_id"], payload["title"]
        require(stage_id not in self._rows)
        row = self._rows[stage_id] = Activity(f"stage:{stage_id}", "stage", title, title, state="running")
        return [{"type": "STEP_STARTED", "stepName": self._name(row)}]

    def completed(self, payload: Json) -> list[Event]:
        """One is over."""
        row = self._rows[payload["stage_id"]]
        require(row.open)
        row.state = "returned"
        return [{"type": "STEP_FINISHED", "stepName": self._name(row)}]

    def closed(self) -> list[Event]:
        """Those that are open, finished: AG-UI has no step that goes on after its run."""
        left = [row for row in reversed(self._rows.values()) if row.open]
        for row in left:
            row.state = "returned"
        return [{"type": "STEP_FINISHED", "stepName": self._name(row)} for row in left]

    def _name(self, row: Activity) -> str:
        """The title; with its number where an earlier stage has the same, since open steps are told by their names."""
        alike = [each for each in self._rows.values() if each.title == row.title]
        place = next(place for place, each in enumerate(alike, 1) if each is row)
        return row.title if place == 1 else f"{row.title} ({place})"
