"""The vocabulary of a scripted model: what one response consists of, and how it ends.

Everything here is a frozen value. A `Turn` can be written once and played any number of times; only an
`asyncio.Event` given to a step carries state. Nothing here knows how a turn looks on a wire:
`responses_wire` and `chat_wire` render it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from .steps import JSON, Cut, Frame, HangUp, Step, Stop

# --- Pieces: what a response consists of --------------------------------------------------------------------


@dataclass(frozen=True)
class Content:
    """One content part of an assistant message: an answer or a refusal."""

    kind: Literal["text", "refusal"]
    parts: tuple[str | Step, ...]
    chunk: int | None = None
    annotations: tuple[JSON, ...] = ()
    item_id: str | None = None
    status: str | None = None

    @property
    def whole(self) -> str:
        """The text as it stands in the finished item."""
        return _joined(self.parts)

    def deltas(self) -> Iterator[str | Step]:
        """The text as it is sent, with the steps in between."""
        return _deltas(self.parts, self.chunk)


@dataclass(frozen=True)
class Message:
    """One assistant message; `status` None means what the ending of the response implies."""

    contents: tuple[Content, ...]
    item_id: str | None = None
    status: str | None = None


@dataclass(frozen=True)
class Reasoning:
    """One reasoning item with its summaries."""

    summaries: tuple[str, ...]
    item_id: str | None = None


@dataclass(frozen=True)
class Call:
    """One function call."""

    name: str
    parts: tuple[str | Step, ...]
    call_id: str | None = None
    chunk: int | None = None
    item_id: str | None = None
    status: str | None = None

    @property
    def whole(self) -> str:
        """The text as it stands in the finished item."""
        return _joined(self.parts)

    def deltas(self) -> Iterator[str | Step]:
        """The text as it is sent, with the steps in between."""
        return _deltas(self.parts, self.chunk)


@dataclass(frozen=True)
class RawItem:
    """An output item given literally, with the events between its `added` and its `done`."""

    item: JSON
    between: tuple[JSON | Step, ...] = ()
    added: JSON | None = None


@dataclass(frozen=True)
class RawEvent:
    """One frame given literally: a JSON object, or the text of the SSE data field."""

    event: Frame


@dataclass(frozen=True)
class Ending:
    """The terminal event of a response."""

    kind: Literal["completed", "incomplete", "failed", "error"]
    status: str | None = None
    reason: str | None = None
    code: str | None = None
    message: str = ""
    output: tuple[JSON, ...] | None = None


Item: TypeAlias = Message | Reasoning | Call | RawItem
Piece: TypeAlias = Item | RawEvent | Ending | Step


@dataclass(frozen=True)
class Usage:
    """Token counts of one response."""

    input_tokens: int
    output_tokens: int
    cached_tokens: int = 0
    reasoning_tokens: int = 0


@dataclass(frozen=True)
class Turn:
    """One model response, which is one HTTP request. Made by `turn`, `raw_turn`, `http_error`, `connection_error`."""

    pieces: tuple[Piece, ...] = ()
    usage: Usage | None = None
    framed: bool = True
    http_status: int = 200
    error: JSON | None = None
    reachable: bool = True
    stop: Stop | None = None

    def played(self) -> tuple[Piece, ...]:
        """The pieces with the ending that was left out, and with the item statuses that the ending implies."""
        endings = [piece for piece in self.pieces if isinstance(piece, Ending)]
        if not self.framed:
            return self.pieces
        if not endings:
            return (*self.pieces, Ending("completed"))
        if endings[0].kind != "incomplete":
            return self.pieces
        # The API marks the item it was writing when it stopped; the items before it are whole.
        at = max((i for i, piece in enumerate(self.pieces) if isinstance(piece, Message | Call)), default=None)
        return tuple(_incomplete(piece) if i == at else piece for i, piece in enumerate(self.pieces))


# --- The builders: what a script is written with ------------------------------------------------------------


def text(
    *parts: str | Step,
    chunk: int | None = None,
    annotations: Sequence[JSON] = (),
    id: str | None = None,
    status: str | None = None,
) -> Message:
    """An assistant message with one answer text.

    The text is the strings joined; steps between them happen in the middle of the text. Each string is sent as
    one delta per word, or in deltas of `chunk` characters. `status` is the message's status in its final form
    (None: "completed", or "incomplete" when the response ends so).
    """
    return message(Content("text", parts, chunk, tuple(annotations)), id=id, status=status)


def refusal(*parts: str | Step, chunk: int | None = None, id: str | None = None, status: str | None = None) -> Message:
    """An assistant message in which the model refuses; the arguments are those of `text`."""
    return message(Content("refusal", parts, chunk), id=id, status=status)


def message(*contents: Message | Content, id: str | None = None, status: str | None = None) -> Message:
    """One assistant message with several contents: `message(text("Well, "), refusal("no."))`."""
    parts: list[Content] = []
    for content in contents:
        parts.extend(content.contents if isinstance(content, Message) else (content,))
    return Message(tuple(parts), id, status)


def reasoning(*summaries: str, id: str | None = None) -> Reasoning:
    """A reasoning item with one summary part per string."""
    return Reasoning(summaries, id)


def call(
    name: str,
    arguments: Mapping[str, Any] | str | Sequence[str | Step] = "{}",
    *,
    call_id: str | None = None,
    chunk: int | None = None,
    id: str | None = None,
    status: str | None = None,
) -> Call:
    """A function call.

    `arguments` is an object, the raw text (which need not be JSON), or a list of texts and steps, such as
    `['{"q": ', cut()]` for a connection that breaks inside the arguments. Without `call_id` the call gets
    one that is unique within its `ScriptedAPI`.
    """
    if isinstance(arguments, Mapping):
        parts: tuple[str | Step, ...] = (json.dumps(arguments, ensure_ascii=False),)
    else:
        parts = (arguments,) if isinstance(arguments, str) else tuple(arguments)
    return Call(name, parts, call_id, chunk, id, status)


def raw_item(item: JSON, *between: str | JSON | Step, added: JSON | None = None) -> RawItem:
    """An output item of any type, known or not, exactly as given (Responses only).

    `between` are the events between the item's `added` and `done`: an event type, an event object, or a step.
    `item_id` and `output_index` are filled in where they are absent. `added` is the item's first form; None
    means `item` with the status "in_progress" where it has a status.
    """
    events = tuple({"type": part} if isinstance(part, str) else part for part in between)
    return RawItem(item, events, added)


def event(frame: Frame) -> RawEvent:
    """One frame of any type exactly as given; a str is sent as the SSE data field without being encoded.

    In a Responses stream `sequence_number` is filled in where it is absent.
    """
    return RawEvent(frame)


def completed(*, status: str = "completed", output: Sequence[JSON] | None = None) -> Ending:
    """The response ends with `response.completed`, which is also what happens when no ending is written.

    `status` is the status *inside* the response, which some gateways set to "incomplete" or "failed".
    `output` replaces the output items that the final response lists (None: those that were sent).
    Pieces after an ending are sent after it.
    """
    return Ending("completed", status=status, output=None if output is None else tuple(output))


def incomplete(reason: str = "max_output_tokens") -> Ending:
    """The response ends with `response.incomplete`; in chat a finish_reason of "length" or "content_filter"."""
    return Ending("incomplete", reason=reason)


def failed(code: str = "server_error", message: str = "The model failed.") -> Ending:
    """The response ends with `response.failed`; in chat with an error frame."""
    return Ending("failed", code=code, message=message)


def error(code: str = "server_error", message: str = "The server had an error.") -> Ending:
    """The stream carries a top-level `error` event and no response; in chat an error frame."""
    return Ending("error", code=code, message=message)


def turn(*pieces: Piece, usage: Usage | None = Usage(10, 5)) -> Turn:
    """One model response: its items in order, what its stream does, and how it ends.

    Without an ending among the pieces the response completes. `usage=None` reports none.
    """
    return Turn(pieces, usage)


def raw_turn(*pieces: RawEvent | Step) -> Turn:
    """A stream that carries the given frames and nothing else; with no pieces, a 200 with an empty body."""
    return Turn(pieces, framed=False)


def stopped(turn: Turn, after: int, step: Cut | HangUp) -> Turn:
    """The same turn, whose stream stops after so many frames: `stopped(answer, 3, cut())`, or `hang_up()`.

    A turn that has no more frames stops behind its last one. An answer that is not streamed is not stopped.
    """
    return replace(turn, stop=Stop(after, step))


def http_error(status: int, message: str = "The request was refused.", *, code: str | None = None) -> Turn:
    """The API answers with an HTTP error status and its usual error object."""
    kind = "invalid_request_error" if status < 500 else "server_error"
    body = {"message": message, "type": kind, "param": None, "code": code}
    return Turn(http_status=status, error=body)


def connection_error() -> Turn:
    """The API cannot be reached: the request fails before any byte."""
    return Turn(reachable=False)


def _joined(parts: tuple[str | Step, ...]) -> str:
    return "".join(part for part in parts if isinstance(part, str))


def _deltas(parts: tuple[str | Step, ...], chunk: int | None) -> Iterator[str | Step]:
    for part in parts:
        if not isinstance(part, str):
            yield part
        elif chunk is None:
            yield from re.findall(r"\s*\S+\s*|\s+", part)
        else:
            yield from (part[at : at + chunk] for at in range(0, len(part), chunk))


def _incomplete(piece: Piece) -> Piece:
    if isinstance(piece, Message | Call) and piece.status is None:
        return replace(piece, status="incomplete")
    return piece
