"""AG-UI 1.0 events as plain objects in their wire form: what all of them share, texts, and stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from agents_progress.bridges.base import Event, is_on_the_web, unsaid_of
from agents_progress.rows import Activity, Message
from agents_progress.view import RunView

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

_CONTENT: Final = ("TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT")

Json: TypeAlias = dict[str, Any]
Item: TypeAlias = tuple[str, str]
"""A message of ours: its item and its channel."""
_OUTPUT: Final[Item] = ("final_output", "answer")


def noted(**facts: Any) -> Json:
    """Our own facts as the metadata of an event: those that are known."""
    return {OURS: {name: fact for name, fact in facts.items() if fact is not None}}


def custom(name: str, payload: Mapping[str, Any]) -> Event:
    """A fact that AG-UI has no event for. An address in it is one that may be followed, or left out."""
    value = {field: fact for field, fact in payload.items() if field != "x" and (field != "url" or is_on_the_web(fact))}
    return {"type": "CUSTOM", "name": f"{OURS}.{name}", "value": value}


def usage_of(usage: Mapping[str, Any] | None) -> list[Json]:
    """The tokens of a run; a count that is not known is left out, which is not 0."""
    known = {name: usage[ours] for name, ours in _TOKENS.items() if usage[ours] is not None} if usage else {}
    return [known] if known else []


# Texts.


class Texts:
    """The messages of a run, under ``RUN:ITEM``, since items are new in each run; and which of them are open.

    A message is open until the view has it complete. What comes after that, such as the second part of an item, is a
    message of its own, under ``RUN:ITEM:N`` with the number of characters before it: no message is opened twice, and
    both what is open and what an id stands for can be told from the view.
    """

    def __init__(self, run_id: str) -> None:
        self._run_id = run_id
        self._open: dict[Item, str] = {}

    def restored(self, message: Message) -> list[Event]:
        """One of the view, opened with all there is of it if it is open."""
        return [] if message.complete else self._piece((message.item_id, message.channel), message.text)

    def delta(self, view: RunView, item: Item, text: str) -> list[Event]:
        """The next piece of a message."""
        wire_id = self._open.get(item)
        if wire_id is not None:
            return [{"type": _CONTENT[item[1] == "reasoning"], "messageId": wire_id, "delta": text}] if text else []
        message = view.texts[item]
        before = len(message.text) - len(text)
        return [*self._piece(item, text, before), *(self._ended(item) if message.complete else ())]

    def completed(self, item: Item, said: str, text: str) -> list[Event]:
        """A message is over. ``said`` is what the client shows of it, ``text`` what it is.

        What there is more of is sent. What differs cannot be taken back: the right text goes into the metadata.
        """
        if item not in self._open and text == said:
            return []
        goes_on = text.startswith(said)
        events = self._piece(item, text[len(said) :] if goes_on else "", len(said))
        ended = self._ended(item)
        return [*events, *(ended if goes_on else ({**event, "metadata": noted(text=text)} for event in ended))]

    def ended(self, view: RunView) -> list[Event]:
        """Whatever is open, closed as far as it came; and of the output what no text said."""
        rest = unsaid_of(view)
        return [*self.closed(), *self._piece(_OUTPUT, rest), *self._ended(_OUTPUT)] if rest else self.closed()

    def closed(self) -> list[Event]:
        """Whatever is open, closed as far as it came."""
        return [event for item in [*self._open] for event in self._ended(item)]

    def open_ids(self) -> set[str]:
        """The ids of what is open."""
        return {*self._open.values()}

    def message(self, message: Message) -> Iterator[Json]:
        """One as a message of a snapshot, where anything was said of it. One that is open has its place there, and
        is said when it is opened.
        """
        item = message.item_id, message.channel
        if message.begun:
            role = "reasoning" if item[1] == "reasoning" else "assistant"
            content = "" if item in self._open else message.text
            yield {"id": self._id(item), "role": role, "content": content, **_channel(item)}

    def unsaid(self, view: RunView) -> Iterator[Json]:
        """What no text said of the output, as a message of a snapshot."""
        if unsaid_of(view):
            yield {"id": self._id(_OUTPUT), "role": "assistant", "content": unsaid_of(view)}

    def _piece(self, item: Item, text: str, before: int = 0) -> list[Event]:
        """A piece of a message, which is opened for it, ``before`` characters of it being told."""
        wire_id, events = self._open.get(item), list[Event]()
        if wire_id is None:
            wire_id = self._open[item] = f"{self._id(item)}:{before}" if before else self._id(item)
            events = self._started(item, wire_id)
        if text:
            events.append({"type": _CONTENT[item[1] == "reasoning"], "messageId": wire_id, "delta": text})
        return events

    def _id(self, item: Item) -> str:
        name = f"{self._run_id}:{item[0]}"
        return name if item[1] == "answer" else f"{name}:{item[1]}"

    def _started(self, item: Item, wire_id: str) -> list[Event]:
        if item[1] == "reasoning":
            start = {"type": "REASONING_MESSAGE_START", "messageId": wire_id, "role": "reasoning"}
            return [{"type": "REASONING_START", "messageId": wire_id}, start]
        return [{"type": "TEXT_MESSAGE_START", "messageId": wire_id, "role": "assistant", **_channel(item)}]

    def _ended(self, item: Item) -> list[Event]:
        wire_id = self._open.pop(item)
        kinds = ("REASONING_MESSAGE_END", "REASONING_END") if item[1] == "reasoning" else ("TEXT_MESSAGE_END",)
        return [{"type": kind, "messageId": wire_id} for kind in kinds]


def _channel(item: Item) -> Json:
    """That a text is no answer, where AG-UI has no word for what it is."""
    return {} if item[1] in ("answer", "reasoning") else {"metadata": noted(channel=item[1])}


# Stages.


class Stages:
    """The stages of a run, as steps."""

    def __init__(self) -> None:
        self._open: dict[str, str] = {}

    def told(self, view: RunView, stage: str) -> list[Event]:
        """How a stage stands in the view, where that was not told."""
        row = view.rows.get(stage)
        if row is not None and row.open and stage not in self._open:
            name = self._open[stage] = _step_name(view, row)
            return [{"type": "STEP_STARTED", "stepName": name}]
        if row is not None and not row.open and stage in self._open:
            return [{"type": "STEP_FINISHED", "stepName": self._open.pop(stage)}]
        return []

    def closed(self) -> list[Event]:
        """Those that are open, finished: AG-UI has no step that goes on after its run."""
        names, self._open = [*self._open.values()], {}
        return [{"type": "STEP_FINISHED", "stepName": name} for name in reversed(names)]


def _step_name(view: RunView, row: Activity) -> str:
    """The title; with its number where an earlier stage has the same, since open steps are told by their names."""
    alike = [each for each in view.rows.values() if each.kind == "stage" and each.title == row.title]
    place = next(place for place, each in enumerate(alike, 1) if each is row)
    return row.title if place == 1 else f"{row.title} ({place})"
