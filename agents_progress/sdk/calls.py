"""Tool calls of a run: one row a call, whatever the model does to its ids.

A call is claimed by whichever comes first of the run item, the tool hook or, for hosted tools, the raw item; only a
hook or a hosted tool's own in-progress event is a start. Function calls that appear in a raw response and are never
claimed were not run, and the end of the run says so. A handoff is never a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from agents_progress.disclosure import Draft
from agents_progress.sdk.text import Ids
from agents_progress.unicode import name_of, valid

State: TypeAlias = Literal["raw", "requested", "running", "closed"]

KINDS: Final[Mapping[str, tuple[str, str | None]]] = {
    "function_call": ("function", None),
    "custom_tool_call": ("custom", None),
    "computer_call": ("computer", "computer"),
    "shell_call": ("shell", "shell"),
    "local_shell_call": ("shell", "local_shell"),
    "apply_patch_call": ("patch", "apply_patch"),
    "mcp_call": ("mcp", None),
    "mcp_list_tools": ("mcp", "list_tools"),
    "web_search_call": ("hosted", "web_search"),
    "file_search_call": ("hosted", "file_search"),
    "code_interpreter_call": ("hosted", "code_interpreter"),
    "image_generation_call": ("hosted", "image_generation"),
    "tool_search_call": ("hosted", "tool_search"),
}
"""Raw item type to the kind of its row, and the tool's name where the item carries none."""

HOSTED: Final = frozenset(name for name, (kind, _) in KINDS.items() if kind in ("hosted", "mcp"))
"""Items whose tool runs on the model's side: their raw item is their only evidence."""


@dataclass(slots=True)
class Call:
    """One call. ``call_id`` is ours; ``raw_id`` is the model's and may be missing or repeated.

    ``has_raw`` and ``has_item`` say which of its announcements have come: hooks run ahead of the events that are still
    queued, so a call may be over before its raw item and its run item are seen, and they must not make a second row
    then.
    """

    call_id: str
    raw_id: str | None
    name: str
    kind: str
    arguments: str | None = None
    state: State = "raw"
    started: float | None = None
    hosted: bool = False
    has_raw: bool = False
    has_item: bool = False


@dataclass(slots=True)
class Calls:
    """The calls of one run in order; ``hooked`` says whether starts can be seen at all.

    ``book`` holds what is open or still to be announced, so it stays short however many calls a run makes.
    """

    monotonic: Callable[[], float]
    title_of: Callable[[str], str]
    hooked: bool = True
    book: list[Call] = field(default_factory=list)
    rejected: set[str] = field(default_factory=set)
    handoffs: set[str] = field(default_factory=set)
    ids: Ids = field(default_factory=lambda: Ids("call"))
    _hosted_now: dict[str | None, Call] = field(default_factory=dict)
    _hosted_said: Counter[str] = field(default_factory=Counter)

    # What is seen.

    def seen_raw(self, raw: Any) -> None:
        """A function call in a raw response, complete but claimed by nobody yet."""
        raw_id = _raw_id(raw)
        call = self._announced(raw_id, "has_raw") or self._add(raw, raw_id)
        call.has_raw = True
        self._tidy()

    def claimed(self, raw: Any) -> Iterator[Draft]:
        """The run item of a call."""
        kind = _get(raw, "type")
        if kind in HOSTED:
            if not self._hosted_said[kind]:
                yield from self.hosted_done(raw)
            self._hosted_said[kind] -= 1
            return
        raw_id = _raw_id(raw)
        if raw_id in self.handoffs:
            return
        call = self._announced(raw_id, "has_item") or self._add(raw, raw_id)
        call.has_item = True
        if call.state == "raw":
            yield from self._request(call)
        self._tidy()

    def started(self, raw_id: str | None, name: str, arguments: str | None = None) -> Iterator[Draft]:
        """The tool hook at the tool's entry."""
        call = self._find(raw_id, "requested", "raw")
        if call is None:
            call = Call(self.ids.take(raw_id), raw_id, name, "function", arguments)
            self.book.append(call)
        if call.state == "raw":
            yield from self._request(call)
        call.state, call.started = "running", self.monotonic()
        yield "tool.started", {"call_id": call.call_id}

    def returned(self, raw_id: str | None, output: Any, *, from_hook: bool) -> Iterator[Draft]:
        """The tool hook at the tool's exit, or the run item of its output, whichever comes first."""
        if raw_id in self.handoffs:
            return
        call = self._find(raw_id, "running", "requested")
        if call is None:
            return
        if call.call_id in self.rejected:
            yield from self._close(call, "tool.rejected", {"reason": "approval_rejected"})
            return
        payload: dict[str, Any] = {"output": _shown(output)}
        if from_hook and call.started is not None:
            payload["duration_ms"] = max(0, round((self.monotonic() - call.started) * 1000))
        yield from self._close(call, "tool.finished", payload)

    def handed_off(self, raw_id: str | None) -> None:
        """The call is a handoff's: it is no tool row, and neither is its output."""
        if raw_id is not None:
            self.handoffs.add(raw_id)
        call = self._announced(raw_id, "has_item")
        if call is not None and call.state == "raw":
            self.book.remove(call)

    # Hosted tools: request, start and end are in the raw items.

    def hosted_begun(self, raw: Any) -> Iterator[Draft]:
        """A hosted call's raw item appeared."""
        raw_id = _get(raw, "id")
        if raw_id not in self._hosted_now:
            self._hosted_now[raw_id] = call = self._add(raw, raw_id)
            call.hosted = call.has_raw = call.has_item = True
            yield from self._request(call)

    def hosted_progress(self, item_id: str | None) -> Iterator[Draft]:
        """A hosted call's own in-progress event."""
        call = self._hosted_now.get(item_id)
        if call is not None and call.state == "requested":
            call.state = "running"
            yield "tool.started", {"call_id": call.call_id}

    def hosted_done(self, raw: Any) -> Iterator[Draft]:
        """A hosted call's finished item; its status and error tell a failure."""
        yield from self.hosted_begun(raw)
        call = self._hosted_now[_get(raw, "id")]
        if call.state == "closed":
            return
        self._hosted_said[_get(raw, "type")] += 1
        if _get(raw, "status") in ("failed", "incomplete") or _get(raw, "error"):
            yield from self._close(call, "tool.failed", {"code": "hosted_tool_failed"})
        else:
            yield from self._close(call, "tool.finished", {})

    def response_ended(self, completed: bool) -> Iterator[Draft]:
        """A model response ended: none of its hosted calls stays open, and the ids of its items may come again."""
        self._hosted_now.clear()
        for call in list(self.book):
            if call.hosted and call.state in ("requested", "running"):
                if completed:
                    yield from self._close(call, "tool.finished", {})
                else:
                    yield from self._close(call, "tool.skipped", {"reason": "response_ended"})

    # The end, and what a pause carries over.

    def run_ended(self, kind: str) -> Iterator[Draft]:
        """Close every row of which it is known that it was never executed."""
        for call in list(self.book):
            if call.state == "raw":
                yield from self._request(call)
                yield from self._close(call, "tool.skipped", {"reason": "not_run"})
            elif call.state == "requested" and self.hooked and call.kind == "function" and kind != "paused":
                yield from self._close(call, "tool.skipped", {"reason": "not_run"})

    def expects(self, raw_id: str | None, *, call: bool) -> bool:
        """Whether the run item of a call, or else that of its output, would be news of a call that is known."""
        return any(known.raw_id == raw_id and not (call and known.has_item) for known in self.book)

    def by_raw_id(self, raw_id: str | None) -> Call | None:
        """The open call with this model-made id."""
        return self._find(raw_id, "requested", "running")

    def restate(self, pending: list[Call]) -> Iterator[Draft]:
        """Begin a continuing run with the calls that its predecessor left waiting, under the same ids."""
        for call in pending:
            again = Call(call.call_id, call.raw_id, call.name, call.kind, call.arguments, has_raw=True, has_item=True)
            self.ids.used.add(call.call_id)
            self.book.append(again)
            yield from self._request(again)

    def restated(self, calls: Iterable[Call]) -> Iterator[Draft]:
        """Waiting calls as requests, for the log of a continuing run."""
        for call in calls:
            yield from self._request(call)

    def _find(self, raw_id: str | None, *states: State) -> Call | None:
        """The oldest call with this model-made id in the first of these states that one is in."""
        own = [call for call in self.book if not call.hosted and (call.raw_id or None) == (raw_id or None)]
        return next((call for state in states for call in own if call.state == state), None)

    def _announced(self, raw_id: str | None, announcement: Literal["has_raw", "has_item"]) -> Call | None:
        """The oldest call with this model-made id that still lacks this announcement."""
        own = (call for call in self.book if not call.hosted and (call.raw_id or None) == (raw_id or None))
        return next((call for call in own if not getattr(call, announcement)), None)

    def _tidy(self) -> None:
        self.book = [call for call in self.book if call.state != "closed" or not (call.has_raw and call.has_item)]

    def _make(self, raw: Any, raw_id: Any) -> Call:
        kind, fixed_name = KINDS.get(_get(raw, "type") or "", ("function", None))
        name = fixed_name or _get(raw, "name") or "tool"
        arguments = _get(raw, "arguments") or _get(raw, "input")
        return Call(
            self.ids.take(raw_id), raw_id, name_of(name), kind, arguments if isinstance(arguments, str) else None
        )

    def _add(self, raw: Any, raw_id: Any) -> Call:
        call = self._make(raw, raw_id)
        self.book.append(call)
        return call

    def _request(self, call: Call) -> Iterator[Draft]:
        call.state = "requested"
        payload = {"call_id": call.call_id, "name": call.name, "kind": call.kind, "title": self.title_of(call.name)}
        if call.arguments is not None:
            payload["arguments"] = valid(call.arguments)
        yield "tool.requested", payload

    def _close(self, call: Call, type_: str, payload: dict[str, Any]) -> Iterator[Draft]:
        call.state = "closed"
        self._tidy()
        yield type_, {"call_id": call.call_id, **payload}


def _raw_id(raw: Any) -> Any:
    """The id under which a call's announcements meet: its call id, however bad, where it has that field at all."""
    has_call_id = "call_id" in raw if isinstance(raw, dict) else hasattr(raw, "call_id")
    return _get(raw, "call_id" if has_call_id else "id")


def _get(raw: Any, name: str) -> Any:
    """A field of a raw item, which is an object or a dict."""
    return raw.get(name) if isinstance(raw, dict) else getattr(raw, name, None)


def _shown(output: Any) -> str:
    """A tool's output as text. What is no text becomes a short description: never its bytes, never its repr."""
    if isinstance(output, str):
        return valid(output)
    if isinstance(output, bool | int | float) or output is None:
        return str(output)
    if isinstance(output, bytes | bytearray):
        return f"({type(output).__name__}, {len(output)} bytes)"
    try:
        size = f", {len(str(output))} characters"
    except Exception:  # noqa: BLE001 - an object of the application, which may do anything when asked
        size = ""
    return f"({type(output).__name__}{size})"
