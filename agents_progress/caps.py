"""How much one run may say. Over a cap text is cut and marked, events are left out and a note says so; the run still
ends, and what is left still folds.

The stage between the screen and the log: what passes here is numbered and stored as it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Literal, TypeAlias

from pydantic_core import to_json

from agents_progress.disclosure import CUT, Draft
from agents_progress.errors import UsageError
from agents_progress.events import MAX_ENVELOPE_BYTES
from agents_progress.payloads import ENDINGS
from agents_progress.standing import UPDATES

_Item: TypeAlias = tuple[str, str]

FRAME: Final = 512
"""Bytes of an envelope without its payload, at most; and about what it takes in memory."""
ESCAPED: Final = 6
"""Bytes that JSON takes for one character, at most."""
NAME: Final = 512
"""Characters of a name or an id, at most: a longer text is free text, and may be cut."""
NUMBER: Final = 32

LEAST: Final[Mapping[str, int]] = {"delta": 16, "envelope": 32 * 1024, "text": 0, "events": 1, "pending": 64 * 1024}
"""The smallest caps: a mark fits into a delta, and all names and ids of any event into an envelope."""

ROWS: Final[Mapping[str, tuple[str, int]]] = {
    "tool.requested": ("call_id", 1),
    "tool.started": ("call_id", 0),
    "tool.finished": ("call_id", -1),
    "tool.failed": ("call_id", -1),
    "tool.rejected": ("call_id", -1),
    "tool.skipped": ("call_id", -1),
    "stage.started": ("stage_id", 1),
    "stage.completed": ("stage_id", -1),
    "handoff.requested": ("handoff", 1),
    "handoff.completed": ("handoff", -1),
}
"""What opens a row of the view, moves it on, or closes it: the field that names the row, and the step."""


@dataclass(frozen=True, slots=True)
class Caps:
    """The most that one run may say. Sizes are bytes of UTF-8.

    ``delta``: a longer delta is split. ``envelope``: free text that would make a longer one is cut and ends in
    ``… [cut]``, the final output too. ``text``: what the texts of a run hold together; what comes then is left out, and
    each cut text ends in the mark. ``events``: over it only the ending, the verdict, approvals, cancels and the ends of
    open rows are written. ``pending``: what may wait for a journal that is slow or away; over it the log is given up,
    and readers see `unknown`.
    """

    delta: int = 16 * 1024
    envelope: int = 1024 * 1024
    text: int = 32 * 1024 * 1024
    events: int = 2_000_000
    pending: int = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        for item in fields(self):
            given, least = getattr(self, item.name), LEAST[item.name]
            if not isinstance(given, int) or given < least:
                raise UsageError(f"the cap {item.name}={given!r:.40} is too small; give a whole number from {least} on")
        if self.envelope > MAX_ENVELOPE_BYTES:
            raise UsageError(f"no reader takes an envelope of {self.envelope} bytes; give {MAX_ENVELOPE_BYTES} or less")
        if self.pending < 2 * self.envelope:
            raise UsageError(f"pending={self.pending} holds no two envelopes of {self.envelope} bytes; give more")


class Quota:
    """Holds the drafts of one run to its caps, in order.

    ``bytes`` counts what passed, as an estimate that is seldom too low. ``final_output`` is that of the ending as it
    passed.
    """

    def __init__(self, caps: Caps) -> None:
        self.bytes = 0
        self.final_output: str | None = None
        self._envelope = caps.envelope - FRAME
        self._delta = min(caps.delta, self._envelope // ESCAPED)
        self._text, self._events = caps.text, caps.events
        self._sizes: dict[_Item, int] = {}
        self._marked: set[_Item] = set()
        self._rows: Counter[tuple[str, str | None]] = Counter()
        self._noted: set[str] = set()
        self._unsupported = False
        self._usage: dict[str, Any] | None = None

    def take(self, item_id: str, texts: Sequence[str]) -> bool:
        """Count deltas of an answer in, unless a cap is near: then each has to :meth:`pass_on`."""
        item, size = (item_id, "answer"), utf8("".join(texts))
        long = size > self._delta and 4 * max(map(len, texts)) > self._delta
        if long or size > self._text or len(texts) > self._events or item in self._marked:
            return False
        self._events -= len(texts)
        self._count(item, size)
        self.bytes += FRAME * len(texts)
        return True

    def pass_on(self, type_: str, payload: dict[str, Any]) -> Iterator[Draft]:
        """What may be said of one draft: all of it, pieces, a part that is marked, or nothing; and a note the first
        time that a cap is reached.
        """
        if type_ == "text.delta":
            yield from self._text_delta(payload)
        elif type_ == "tool.arguments.delta":
            for piece in pieces(payload["text"], self._delta):
                yield from self._whole(type_, {**payload, "text": piece})
        else:
            yield from self._whole(type_, payload)

    # Texts.

    def _text_delta(self, payload: dict[str, Any]) -> Iterator[Draft]:
        item, text = _item(payload), payload["text"]
        if item in self._marked:
            return
        over: Literal["text", "events"] | None = None
        parts: Sequence[str] = ()
        if utf8(text) <= self._text:
            parts = pieces(text, self._delta)
        else:
            over, text = "text", beginning(text, self._text)
            parts = pieces(text, self._delta) if text else ()
        for part in parts:
            if self._events <= 0:
                over = "events"
                break
            self._events -= 1
            self._count(item, utf8(part))
            self.bytes += FRAME
            yield "text.delta", {**payload, "text": part}
        if over is not None:
            yield from self._cut_off(over, item, payload)

    def _cut_off(self, over: Literal["text", "events"], item: _Item, payload: dict[str, Any]) -> Iterator[Draft]:
        """Nothing more is said of a text. Of one that was never begun nothing is said at all when events ran out."""
        if over == "text":
            self._text = 0
        if over == "text" or item in self._sizes:
            self._marked.add(item)
            yield "text.delta", {**payload, "text": CUT}
        yield from self._note(over)

    def _completed(self, payload: dict[str, Any]) -> dict[str, Any]:
        """A text that replaces its deltas may take the room that they had."""
        item = _item(payload)
        before = self._sizes.setdefault(item, 0)
        if "text" not in payload:
            return payload
        room = self._text + before
        text = beginning(payload["text"], room)
        self._sizes[item] = size = utf8(text)
        if text == payload["text"]:
            self._text = room - size
            self._marked.discard(item)
            return payload
        self._text = 0
        self._marked.add(item)
        return {**payload, "text": text + CUT}

    def _count(self, item: _Item, size: int) -> None:
        self._text -= size
        self.bytes += size
        self._sizes[item] = self._sizes.get(item, 0) + size

    # Everything else.

    def _whole(self, type_: str, payload: dict[str, Any]) -> Iterator[Draft]:
        if self._events <= 0 and not self._must_pass(type_, payload):
            if type_ == "usage.updated":
                self._usage = payload
            yield from self._note("events")
            return
        self._events -= 1
        payload = self._fitting(payload)
        if type_ in ROWS:
            self._move(*ROWS[type_], payload)
        elif type_ == "text.completed":
            payload, before = self._completed(payload), payload
            yield from () if payload is before else self._note("text")
        elif type_ in ENDINGS:
            self.final_output = payload.get("final_output")
            if self._usage is not None:
                yield "usage.updated", self._usage  # cumulative: an older one would say too little
        elif type_ == "adapter.unsupported":
            self._unsupported = True
        yield type_, payload

    def _must_pass(self, type_: str, payload: dict[str, Any]) -> bool:
        """What a status rests on, what moves a row that was opened, and the end of a text that was begun."""
        if type_ in ROWS:
            field, step = ROWS[type_]
            return step <= 0 and self._rows[field, payload.get(field)] > 0
        if type_ == "text.completed":
            return _item(payload) in self._sizes
        return type_ in UPDATES and not (type_ == "adapter.unsupported" and self._unsupported)

    def _move(self, field: str, step: int, payload: dict[str, Any]) -> None:
        row = field, payload.get(field)
        if step > 0 or self._rows[row] > 0:
            self._rows[row] += step
        if not self._rows[row]:
            del self._rows[row]

    def _note(self, cap: str) -> Iterator[Draft]:
        if cap not in self._noted:
            self._noted.add(cap)
            yield "note.capped", {"cap": cap}

    def _fitting(self, payload: dict[str, Any]) -> dict[str, Any]:
        """The payload, its free texts cut where the envelope would be too long; encoded only where that may be."""
        size = weight(payload)
        if ESCAPED * size > self._envelope and len(to_json(payload, inf_nan_mode="null")) > self._envelope:
            payload = cut_free(payload, self._envelope)
            size = self._envelope
        self.bytes += FRAME + size
        return payload


def _item(payload: Mapping[str, Any]) -> _Item:
    return payload["item_id"], payload.get("channel", "answer")


def utf8(text: str) -> int:
    """The bytes of a text."""
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


def beginning(text: str, limit: int) -> str:
    """The characters of a text that fit whole into so many bytes."""
    return text.encode(errors="replace")[:limit].decode(errors="ignore")


def pieces(text: str, limit: int) -> Sequence[str]:
    """A text in pieces of at most so many bytes, none of which ends inside a character."""
    if utf8(text) <= limit:
        return (text,)
    found, start = [], 0
    while start < len(text):
        piece = beginning(text[start : start + limit], limit)
        found.append(piece)
        start += len(piece)
    return found


def weight(value: Any) -> int:
    """The characters of a value's JSON; no less than a sixth of its bytes."""
    if isinstance(value, str):
        return len(value) + 2
    if isinstance(value, dict):
        return 2 + sum(len(name) + 4 + weight(part) for name, part in value.items())
    if isinstance(value, list | tuple):
        return 2 + sum(1 + weight(part) for part in value)
    return NUMBER


def cut_free(payload: dict[str, Any], limit: int) -> dict[str, Any]:
    """A payload of which the JSON takes at most so many bytes: what is longer than a name is cut to equal shares.

    Only a note may hold more than that, and loses all of it.
    """
    free = [name for name, value in payload.items() if isinstance(value, str) and len(value) > NAME]
    bare = len(to_json({**payload, **dict.fromkeys(free, CUT)}, inf_nan_mode="null"))
    if bare > limit:
        return {}
    return {**payload, **{name: _shortened(payload[name], (limit - bare) // len(free)) for name in free}}


def _shortened(text: str, room: int) -> str:
    """The beginning of a text, marked, of which the JSON takes no more than this beside the mark."""
    kept, size = text, len(to_json(text)) - 2
    while size > room:
        kept = kept[: len(kept) * room // size]
        size = len(to_json(kept)) - 2
    return kept if kept == text else kept + CUT
