"""A turn as the Responses API sends it: the events of a stream, or the body of a plain answer.

Both are generators of frames and steps without any input or output of their own, so that one player
(`transport.play`) serves both wires. Event names, their order and their fields follow openai 3.57
`openai.types.responses`; fields that the SDK or the client never reads are present all the same, because
an application may read them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from .steps import JSON, Frame, Step
from .turns import Call, Content, Ending, Message, RawEvent, RawItem, Reasoning, Turn, Usage


def encode(frame: Frame) -> bytes:
    """One SSE frame; a str is the data field as it is."""
    if isinstance(frame, str):
        return f"data: {frame}\n\n".encode()
    name = f"event: {frame['type']}\n" if "type" in frame else ""
    return f"{name}data: {json.dumps(frame, ensure_ascii=False)}\n\n".encode()


def events(turn: Turn, number: int, request: JSON) -> Iterator[Frame | Step]:
    """The frames and steps of the stream that answers request `number` (from 1)."""
    numbers = count()
    for frame in _Response(turn, number, request).events():
        if isinstance(frame, dict) and "sequence_number" not in frame:
            yield {**frame, "sequence_number": next(numbers)}
        else:
            yield frame


def body(turn: Turn, number: int, request: JSON) -> Iterator[Frame | Step]:
    """The steps of the same turn, then the JSON body that answers a request without `stream`."""
    last: JSON | None = None
    for frame in events(turn, number, request):
        if isinstance(frame, dict):
            last = frame.get("response", last)
        elif not isinstance(frame, str):
            yield frame
    if last is not None:
        yield last


@dataclass
class _Response:
    """One response while it is being written."""

    turn: Turn
    number: int
    request: JSON
    output: list[JSON] = field(default_factory=list)

    def events(self) -> Iterator[Frame | Step]:
        if self.turn.framed:
            yield {"type": "response.created", "response": self.object("in_progress")}
            yield {"type": "response.in_progress", "response": self.object("in_progress")}
        for piece in self.turn.played():
            match piece:
                case Message():
                    yield from self.message(piece)
                case Reasoning():
                    yield from self.reasoning(piece)
                case Call():
                    yield from self.call(piece)
                case RawItem():
                    yield from self.raw(piece)
                case RawEvent():
                    yield piece.event
                case Ending():
                    yield self.ending(piece)
                case _:
                    yield piece

    def object(self, status: str, **changes: Any) -> JSON:
        """The response object in its present state."""
        fixed = {
            "id": f"resp_{self.number}",
            "object": "response",
            "created_at": 1_700_000_000 + self.number,  # fixed: recorded streams must not change from run to run
            "status": status,
            "background": False,
            "error": None,
            "incomplete_details": None,
            "instructions": self.request.get("instructions"),
            "max_output_tokens": self.request.get("max_output_tokens"),
            "model": self.request.get("model", "scripted"),
            "output": [],
            "parallel_tool_calls": True,
            "previous_response_id": self.request.get("previous_response_id"),
            "temperature": 1.0,
            "text": {"format": {"type": "text"}},
            "tool_choice": "auto",
            "tools": [],
            "top_p": 1.0,
            "truncation": "disabled",
            "usage": None,
            "metadata": {},
        }
        return {**fixed, **changes}

    def ending(self, piece: Ending) -> JSON:
        if piece.kind == "error":
            return {"type": "error", "code": piece.code, "message": piece.message, "param": None}
        output = list(self.output) if piece.output is None else list(piece.output)
        changes: JSON = {"output": output, "usage": _usage(self.turn.usage)}
        if piece.kind == "incomplete":
            changes["incomplete_details"] = {"reason": piece.reason}
        if piece.kind == "failed":
            changes["error"] = {"code": piece.code, "message": piece.message}
        return {"type": f"response.{piece.kind}", "response": self.object(piece.status or piece.kind, **changes)}

    def item(self, added: JSON, done: JSON, between: Iterator[JSON | Step]) -> Iterator[JSON | Step]:
        """An output item: added, what happens in between, done. Only a finished item joins the output."""
        index = len(self.output)
        yield {"type": "response.output_item.added", "output_index": index, "item": added}
        for frame in between:
            place = {"item_id": done.get("id"), "output_index": index}
            yield {**place, **frame} if isinstance(frame, dict) else frame
        yield {"type": "response.output_item.done", "output_index": index, "item": done}
        self.output.append(done)

    def item_id(self, prefix: str, given: str | None) -> str:
        return given or f"{prefix}_{self.number}_{len(self.output)}"

    def message(self, piece: Message) -> Iterator[JSON | Step]:
        shape = {"id": self.item_id("msg", piece.item_id), "type": "message", "role": "assistant"}
        added = {**shape, "status": "in_progress", "content": []}
        contents = [_part(content) for content in piece.contents]
        done = {**shape, "status": piece.status or "completed", "content": contents}

        def between() -> Iterator[JSON | Step]:
            for index, content in enumerate(piece.contents):
                for frame in _content(content):
                    yield {"content_index": index, **frame} if isinstance(frame, dict) else frame

        return self.item(added, done, between())

    def reasoning(self, piece: Reasoning) -> Iterator[JSON | Step]:
        shape: JSON = {"id": self.item_id("rs", piece.item_id), "type": "reasoning"}
        summaries = [{"type": "summary_text", "text": summary} for summary in piece.summaries]

        def between() -> Iterator[JSON | Step]:
            for index, part in enumerate(summaries):
                place = {"summary_index": index}
                yield {"type": "response.reasoning_summary_part.added", **place, "part": {**part, "text": ""}}
                for delta in Content("text", (part["text"],)).deltas():
                    yield {"type": "response.reasoning_summary_text.delta", **place, "delta": delta}
                yield {"type": "response.reasoning_summary_text.done", **place, "text": part["text"]}
                yield {"type": "response.reasoning_summary_part.done", **place, "part": part}

        return self.item({**shape, "summary": []}, {**shape, "summary": summaries}, between())

    def call(self, piece: Call) -> Iterator[JSON | Step]:
        item_id = self.item_id("fc", piece.item_id)
        call_id = piece.call_id or f"call_{self.number}_{len(self.output)}"
        shape = {"id": item_id, "type": "function_call", "call_id": call_id, "name": piece.name}
        added = {**shape, "status": "in_progress", "arguments": ""}
        done = {**shape, "status": piece.status or "completed", "arguments": piece.whole}

        def between() -> Iterator[JSON | Step]:
            for delta in piece.deltas():
                if isinstance(delta, str):
                    yield {"type": "response.function_call_arguments.delta", "delta": delta}
                else:
                    yield delta
            # `name` is what the API sends beside what the client's type declares.
            done = {"type": "response.function_call_arguments.done", "arguments": piece.whole, "name": piece.name}
            yield done

        return self.item(added, done, between())

    def raw(self, piece: RawItem) -> Iterator[JSON | Step]:
        added = piece.added
        if added is None:
            added = {**piece.item, "status": "in_progress"} if "status" in piece.item else piece.item
        return self.item(added, piece.item, iter(piece.between))


def _part(content: Content, text: str | None = None) -> JSON:
    """A content part of a message, empty while it is being added."""
    whole = content.whole if text is None else text
    if content.kind == "refusal":
        return {"type": "refusal", "refusal": whole}
    annotations = list(content.annotations) if text is None else []
    return {"type": "output_text", "annotations": annotations, "logprobs": [], "text": whole}


def _content(content: Content) -> Iterator[JSON | Step]:
    yield {"type": "response.content_part.added", "part": _part(content, "")}
    name = "response.refusal" if content.kind == "refusal" else "response.output_text"
    logprobs: JSON = {} if content.kind == "refusal" else {"logprobs": []}
    for delta in content.deltas():
        yield {"type": f"{name}.delta", "delta": delta, **logprobs} if isinstance(delta, str) else delta
    for index, annotation in enumerate(content.annotations):
        place = {"annotation_index": index, "annotation": annotation}
        yield {"type": "response.output_text.annotation.added", **place}
    whole = {"refusal": content.whole} if content.kind == "refusal" else {"text": content.whole}
    yield {"type": f"{name}.done", **whole, **logprobs}
    yield {"type": "response.content_part.done", "part": _part(content)}


def _usage(usage: Usage | None) -> JSON | None:
    if usage is None:
        return None
    return {
        "input_tokens": usage.input_tokens,
        # Clients since openai 2.45 refuse a report without `cache_write_tokens`.
        "input_tokens_details": {"cached_tokens": usage.cached_tokens, "cache_write_tokens": 0},
        "output_tokens": usage.output_tokens,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
        "total_tokens": usage.input_tokens + usage.output_tokens,
    }
