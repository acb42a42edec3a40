"""Text of model responses: which item a delta belongs to, whether the deltas are what the model finally said, and what
it cites.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

from agents_progress.disclosure import TEXTS, Draft
from agents_progress.rows import Message
from agents_progress.sdk.items import field as part_of
from agents_progress.unicode import name_of, valid

_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_URL = re.compile(r"https?://\S{1,4096}")
_SUMMARIES: Final = 1 << 32
"""Summary parts of reasoning count from below zero: they stand before its text."""
_PARAGRAPH: Final = "\n\n"


@dataclass(slots=True)
class Ids:
    """Gives out ids that are unique in a run: the model's own where it is usable and new, else a counted one."""

    prefix: str
    used: set[str] = field(default_factory=set)
    count: int = 0

    def take(self, proposed: object) -> str:
        """An id for one more thing. A usable id that was given before comes back as ``id#2``, ``id#3``, ..."""
        usable = isinstance(proposed, str) and _ID.fullmatch(proposed) is not None
        chosen = str(proposed) if usable else self._counted()
        again = 1
        while chosen in self.used:
            again += 1
            chosen = f"{proposed}#{again}" if usable else self._counted()
        self.used.add(chosen)
        return chosen

    def _counted(self) -> str:
        self.count += 1
        return f"{self.prefix}-{self.count}"


@dataclass(slots=True)
class _Item:
    """One message or reasoning item of the current response; ``streamed`` holds its deltas by channel."""

    item_id: str
    answer: Message
    streamed: dict[str, Message] = field(default_factory=dict)
    parts: dict[tuple[str, int], str] = field(default_factory=dict)
    finished: set[str] = field(default_factory=set)
    cited: set[tuple[int, int]] = field(default_factory=set)
    ended: bool = False

    @property
    def unended(self) -> bool:
        """Whether some of a message was streamed whose end never came."""
        return not self.ended and any(
            message.text for channel, message in self.streamed.items() if channel in ("answer", "refusal")
        )

    def whole(self, channel: str) -> str:
        """The finished parts of a channel in their order; each summary is a paragraph."""
        text = ""
        for (of, part), piece in sorted(self.parts.items()):
            if of == channel:
                text += f"{_PARAGRAPH if text and part < 0 else ''}{piece}"
        return text

    def channel(self, channel: str) -> Message:
        """What was streamed on a channel, so far."""
        if channel not in self.streamed:
            self.streamed[channel] = Message(self.item_id, channel)
        return self.streamed[channel]


class Texts:
    """The text items of a run. Items are known by their place in the current response, never by the model's id alone:
    chat-completions models give every item the same one.
    """

    def __init__(self) -> None:
        self._ids = Ids("msg")
        self._items: dict[int, _Item] = {}
        self._unmatched = 0

    def begin_response(self) -> None:
        """A new model response starts; places count from its beginning again."""
        self._items = {}

    def answer_deltas(self, deltas: Sequence[Any]) -> Iterator[Draft]:
        """Raw deltas of answers that came one after another: one draft for those of the same item."""
        for place, group in groupby(deltas, attrgetter("output_index")):
            run = list(group)
            item = self._items.get(place) or self._begin(place, run[0].item_id)
            texts = [delta.delta for delta in run]
            whole = "".join(texts)
            if not whole.isascii():
                texts = [valid(text) for text in texts]
                whole = "".join(texts)
            item.answer.append(whole)
            yield TEXTS, {"item_id": item.item_id, "texts": texts}

    def delta(self, place: int, item_id: object, text: str, channel: str) -> Draft:
        """One raw delta of another channel, of the item at a place of the response."""
        item = self._items.get(place) or self._begin(place, item_id)
        text = valid(text)
        item.channel(channel).append(text)
        return "text.delta", {"item_id": item.item_id, "text": text, "channel": channel}

    def part_done(self, place: int, item_id: object, part: int, text: str, channel: str) -> Iterator[Draft]:
        """The authoritative text of one part of an item."""
        item = self._items.get(place) or self._begin(place, item_id)
        item.parts[channel, part] = valid(text)
        yield from self._complete(item, channel, item.whole(channel))

    @staticmethod
    def summary(index: int) -> int:
        """The part that a summary of reasoning is."""
        return index - _SUMMARIES

    def summary_begun(self, place: int, item_id: object, index: int) -> Iterator[Draft]:
        """One more summary of a reasoning item, which is a paragraph of its own."""
        item = self._items.get(place)
        if item is not None and item.channel("reasoning").text:
            yield self.delta(place, item_id, _PARAGRAPH, "reasoning")

    def said(self, place: int, channel: str) -> Iterator[Draft]:
        """The end of a channel that says no more than its deltas did."""
        item = self._items.get(place)
        if item is not None:
            yield from self._complete(item, channel, item.channel(channel).text)

    def cited(self, place: int, item_id: object, part: int, index: int, annotation: Any) -> Iterator[Draft]:
        """One citation of an item, unless it was said."""
        item = self._items.get(place) or self._begin(place, item_id)
        kind = part_of(annotation, "type")
        if (part, index) in item.cited or not isinstance(kind, str):
            return
        item.cited.add((part, index))
        payload = {"item_id": item.item_id, "kind": name_of(kind)}
        title = part_of(annotation, "title") or part_of(annotation, "filename")
        url = part_of(annotation, "url")
        if isinstance(title, str):
            payload["title"] = name_of(title)
        if isinstance(url, str) and _URL.fullmatch(url):
            payload["url"] = valid(url)
        yield "source.cited", payload

    def item_done(self, place: int, raw: Any) -> Iterator[Draft]:
        """A finished message item; says what its parts did not say yet."""
        item = self._items.get(place) or self._begin(place, getattr(raw, "id", None))
        self._unmatched += 1
        item.ended = True
        for channel, whole in message_texts(raw).items():
            if whole or item.channel(channel).text:
                yield from self._complete(item, channel, whole)
        for part, content in enumerate(part_of(raw, "content") or ()):
            for index, annotation in enumerate(part_of(content, "annotations") or ()):
                yield from self.cited(place, item.item_id, part, index, annotation)

    def reasoning_item_done(self, place: int, raw: Any) -> Iterator[Draft]:
        """A finished reasoning item; says what its parts did not say yet."""
        item = self._items.get(place) or self._begin(place, part_of(raw, "id"))
        groups = (("summary", self.summary), ("content", int))
        for name, part in groups:
            for index, content in enumerate(part_of(raw, name) or ()):
                item.parts.setdefault(("reasoning", part(index)), valid(part_of(content, "text") or ""))
        whole = item.whole("reasoning")
        if whole:
            yield from self._complete(item, "reasoning", whole)

    def message_created(self, raw: Any) -> Iterator[Draft]:
        """A message item of the run. One that was never streamed (an error handler's own answer) is said here."""
        if self._unmatched:
            self._unmatched -= 1
            return
        if any(item.unended for item in self._items.values()):
            return  # deltas came, the item's own end did not
        for channel, whole in message_texts(raw).items():
            if whole:
                yield from self._complete(self._new(getattr(raw, "id", None)), channel, whole)

    def _begin(self, place: int, item_id: object) -> _Item:
        item = self._items[place] = self._new(item_id)
        return item

    def _new(self, proposed: object) -> _Item:
        item_id = self._ids.take(proposed)
        answer = Message(item_id, "answer")
        return _Item(item_id, answer, {"answer": answer})

    def _complete(self, item: _Item, channel: str, whole: str) -> Iterator[Draft]:
        streamed = item.channel(channel).text
        if channel in item.finished and whole == streamed:
            return
        payload: dict[str, Any] = {"item_id": item.item_id}
        if channel != "answer":
            payload["channel"] = channel
        if whole != streamed:
            payload["text"] = whole
            item.channel(channel).replace(whole)
        item.finished.add(channel)
        yield "text.completed", payload


def message_texts(raw: Any) -> dict[str, str]:
    """The texts of a message item by channel: what it answers, and what it refuses."""
    texts = {"answer": "", "refusal": ""}
    for part in getattr(raw, "content", None) or ():
        kind = getattr(part, "type", None)
        if kind == "output_text":
            texts["answer"] += valid(getattr(part, "text", "") or "")
        elif kind == "refusal":
            texts["refusal"] += valid(getattr(part, "refusal", "") or "")
    return texts
