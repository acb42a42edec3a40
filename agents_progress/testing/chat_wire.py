"""A turn as the Chat Completions API sends it: the chunks of a stream, or the body of a plain answer.

Hosted items have no form in Chat Completions: a turn with a `raw_item` cannot be played here. Reasoning is sent as
`reasoning_content`, the field that the gateways with reasoning models have agreed on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .steps import JSON, Frame, Step
from .turns import Call, Ending, Message, RawEvent, RawItem, Reasoning, Turn, Usage

_FINISH = {"max_output_tokens": "length", "content_filter": "content_filter"}


def encode(frame: Frame) -> bytes:
    """One SSE frame; a str is the data field as it is."""
    data = frame if isinstance(frame, str) else json.dumps(frame, ensure_ascii=False)
    return f"data: {data}\n\n".encode()


def unplayable(turn: Turn) -> str | None:
    """Why this turn has no chat form, or None when it has one."""
    items = [piece.item for piece in turn.pieces if isinstance(piece, RawItem)]
    return f"a {items[0].get('type')} item cannot be sent over Chat Completions" if items else None


def events(turn: Turn, number: int, request: JSON) -> Iterator[Frame | Step]:
    """The frames and steps of the stream that answers request `number` (from 1)."""
    return _Completion(turn, number, request).events()


def body(turn: Turn, number: int, request: JSON) -> Iterator[Frame | Step]:
    """The steps of the same turn, then the JSON body that answers a request without `stream`."""
    completion = _Completion(turn, number, request)
    for frame in completion.events():
        if not isinstance(frame, dict | str):
            yield frame
    yield completion.whole()


@dataclass
class _Completion:
    """One chat completion while it is being written."""

    turn: Turn
    number: int
    request: JSON
    text: str | None = None
    refusal: str | None = None
    calls: list[JSON] = field(default_factory=list)
    finish: str | None = None
    begun: bool = False

    def events(self) -> Iterator[Frame | Step]:
        for piece in self.turn.played():
            match piece:
                case Message():
                    yield from self.message(piece)
                case Reasoning():
                    for summary in piece.summaries:
                        yield self.chunk({"reasoning_content": summary})
                case Call():
                    yield from self.call(piece)
                case RawEvent():
                    yield piece.event
                case Ending():
                    yield from self.ending(piece)
                case RawItem():
                    raise AssertionError(unplayable(self.turn))
                case _:
                    yield piece
        if self.turn.framed:
            yield "[DONE]"

    def object(self, kind: str, **fields: Any) -> JSON:
        head = {"id": f"chatcmpl-{self.number}", "object": kind, "created": 1_700_000_000 + self.number}
        return {**head, "model": self.request.get("model", "scripted"), **fields}

    def chunk(self, delta: JSON, finish: str | None = None) -> JSON:
        if not self.begun:  # the first chunk carries the role; a stream cut before it has no chunk at all
            self.begun = True
            delta = {"role": "assistant", **delta}
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return self.object("chat.completion.chunk", choices=[choice])

    def message(self, piece: Message) -> Iterator[JSON | Step]:
        for content in piece.contents:
            name = "refusal" if content.kind == "refusal" else "content"
            for delta in content.deltas():
                yield self.chunk({name: delta}) if isinstance(delta, str) else delta
            if content.kind == "refusal":
                self.refusal = (self.refusal or "") + content.whole
            else:
                self.text = (self.text or "") + content.whole

    def call(self, piece: Call) -> Iterator[JSON | Step]:
        index = len(self.calls)
        call_id = piece.call_id or f"call_{self.number}_{index}"
        function = {"name": piece.name, "arguments": piece.whole}
        self.calls.append({"id": call_id, "type": "function", "function": function})
        opening = {"index": index, "id": call_id, "type": "function", "function": {**function, "arguments": ""}}
        yield self.chunk({"tool_calls": [opening]})
        for delta in piece.deltas():
            if isinstance(delta, str):
                yield self.chunk({"tool_calls": [{"index": index, "function": {"arguments": delta}}]})
            else:
                yield delta

    def ending(self, piece: Ending) -> Iterator[JSON]:
        if piece.kind in ("failed", "error"):
            yield {"error": {"message": piece.message, "type": "server_error", "param": None, "code": piece.code}}
            return
        self.finish = "tool_calls" if self.calls else "stop"
        if piece.kind == "incomplete":
            self.finish = _FINISH.get(piece.reason or "", "length")
        yield self.chunk({}, self.finish)
        options = self.request.get("stream_options") or {}
        if options.get("include_usage") and self.turn.usage is not None:
            yield self.object("chat.completion.chunk", choices=[], usage=_usage(self.turn.usage))

    def whole(self) -> JSON:
        answer: JSON = {"role": "assistant", "content": self.text, "refusal": self.refusal}
        if self.calls:
            answer["tool_calls"] = self.calls
        choice = {"index": 0, "message": answer, "logprobs": None, "finish_reason": self.finish or "stop"}
        return self.object("chat.completion", choices=[choice], usage=_usage(self.turn.usage))


def _usage(usage: Usage | None) -> JSON | None:
    if usage is None:
        return None
    return {
        "prompt_tokens": usage.input_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "completion_tokens": usage.output_tokens,
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
