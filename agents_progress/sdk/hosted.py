"""Calls of tools that run on the model's side: their request, start and end are in the raw items and events alone.

They are known by their place in the current response, never by the model's id for the item, which may be missing or
repeated. A shell in a container and a program only ask with their own item; another item, with the same call id,
answers. A program's answer may come in a later response, after calls that the program makes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, Final

from agents_progress.disclosure import Draft
from agents_progress.sdk.calls import Call, Calls
from agents_progress.sdk.files import files_of_item
from agents_progress.sdk.items import ANSWERED, arguments_of, field, is_hosted, timed_out
from agents_progress.unicode import valid

_FAILED: Final = frozenset({"failed", "incomplete"})
_ERROR: Final = "hosted_tool_failed"


class Hosted:
    """The hosted calls of one run, in the same book as its other calls."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._here: dict[Any, Call] = {}
        self._asking: dict[Any, Call] = {}
        self._failing: set[str] = set()
        self._unclaimed: Counter[str] = Counter()

    def begin_response(self) -> None:
        """A new model response starts; places count from its beginning again."""
        self._here.clear()
        self._unclaimed.clear()

    def begun(self, place: Any, raw: Any) -> Iterator[Draft]:
        """A call's item appeared at a place of the response."""
        if place in self._here:
            return
        kind = field(raw, "type")
        call = self._calls.add(raw, field(raw, "id"))
        call.hosted = call.has_raw = call.has_item = True
        self._here[place] = call
        self._unclaimed[kind] += 1
        if kind in ANSWERED:
            self._asking[ANSWERED[kind], field(raw, "call_id")] = call
        yield from self._calls.request(call)

    def progress(self, place: Any) -> Iterator[Draft]:
        """A call's own in-progress event."""
        call = self._here.get(place)
        if call is not None and call.state == "requested":
            call.state = "running"
            yield "tool.started", {"call_id": call.call_id}

    def failing(self, place: Any) -> None:
        """A call's own failure event; its finished item comes next, and may not repeat it."""
        if place in self._here:
            self._failing.add(self._here[place].call_id)

    def argument(self, place: Any, text: str) -> Iterator[Draft]:
        """A piece of what a call is given."""
        call = self._here.get(place)
        if call is not None and call.state != "closed":
            yield "tool.arguments.delta", {"call_id": call.call_id, "text": valid(text)}

    def arguments(self, place: Any, text: str | None) -> Iterator[Draft]:
        """All of what a call is given, unless that was said."""
        call = self._here.get(place)
        text = None if text is None else valid(text)
        if call is None or call.state == "closed" or text is None or text == call.arguments:
            return
        call.arguments = text
        yield "tool.arguments.completed", {"call_id": call.call_id, "arguments": text}

    def done(self, place: Any, raw: Any) -> Iterator[Draft]:
        """A call's finished item; its status and error tell a failure."""
        yield from self.begun(place, raw)
        yield from self.arguments(place, arguments_of(raw))
        call = self._here[place]
        if field(raw, "type") not in ANSWERED:
            yield from self._end(call, raw, _failure(raw))

    def answered(self, raw: Any) -> Iterator[Draft]:
        """The item that says how a call ended which another item asked for. Local calls are answered elsewhere."""
        call = self._asking.pop((field(raw, "type"), field(raw, "call_id")), None)
        if call is not None:
            yield from self._end(call, raw, _failure(raw))

    def claimed(self, raw: Any) -> Iterator[Draft]:
        """The run item of a call, which is news only where its raw item never came."""
        kind = field(raw, "type")
        if self._unclaimed[kind]:
            self._unclaimed[kind] -= 1
            return
        yield from self.done(object(), raw)
        self._unclaimed[kind] = 0

    def response_ended(self, completed: bool, output: Iterable[Any] = ()) -> Iterator[Draft]:
        """A model response ended: none of its calls stays open, but for a program, which may wait for other calls."""
        for place, raw in enumerate(output):
            call = self._here.get(place)
            if call is not None and call.state != "closed" and is_hosted(raw) and call.raw_id == field(raw, "id"):
                yield from self.done(place, raw)
        for call in self._here.values():
            if call.state == "closed" or (completed and call.name == "program"):
                continue
            if call.call_id in self._failing:
                yield from self._end(call, None, _ERROR)
            elif completed:
                yield from self._end(call, None, None)
            else:
                yield from self._calls.close(call, "tool.skipped", {"reason": "response_ended"})

    def _end(self, call: Call, raw: Any, failure: str | None) -> Iterator[Draft]:
        if call.state == "closed":
            return
        if failure is None and call.call_id in self._failing:
            failure = _ERROR
        if failure is not None:
            yield from self._calls.close(call, "tool.failed", {"code": failure})
            return
        output = _output_of(raw)
        yield from self._calls.files.made(files_of_item(raw), call.call_id)
        yield from self._calls.close(call, "tool.finished", {} if output is None else {"output": output})


def _failure(raw: Any) -> str | None:
    """The code of the failure that an item tells, None when it tells none. What a command exits with is its result."""
    if timed_out(raw):
        return "tool_timeout"
    return _ERROR if field(raw, "status") in _FAILED or field(raw, "error") else None


def _output_of(raw: Any) -> str | None:
    """What a finished item says its tool gave, where that is text."""
    kind = field(raw, "type")
    if kind == "code_interpreter_call":
        logs = [field(part, "logs") for part in field(raw, "outputs") or () if field(part, "type") == "logs"]
        return valid("\n".join(filter(None, logs))) if logs else None
    if kind == "shell_call_output":
        parts = [field(part, name) for part in field(raw, "output") or () for name in ("stdout", "stderr")]
        return valid("\n".join(filter(None, parts)))
    output = field(raw, {"mcp_call": "output", "program_output": "result"}.get(str(kind), ""))
    return valid(output) if isinstance(output, str) else None
