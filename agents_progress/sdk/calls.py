"""Tool calls of a run: one row a call, whatever the model does to its ids.

A call is claimed by whichever comes first of the run item, the tool hook or, for hosted tools, the raw item; only a
hook or a hosted tool's own in-progress event is a start. Function calls that appear in a raw response and are never
claimed were not run, and the end of the run says so. A handoff is never a row.

A tool's output item says too little: it comes as well when the tool raised, when a person refused the call, and when a
guardrail did. What else is known of it, :mod:`agents_progress.sdk.verdicts` says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

from agents_progress.disclosure import Draft
from agents_progress.sdk.files import Files, files_of, shown
from agents_progress.sdk.items import KINDS, arguments_of, raw_id_of
from agents_progress.sdk.items import field as part_of
from agents_progress.sdk.text import Ids
from agents_progress.unicode import name_of, valid

State: TypeAlias = Literal["raw", "requested", "running", "closed"]

STARTS_SEEN: Final = frozenset({"function", "custom", "agent", "mcp"})
"""Kinds whose tool hooks name their call, so that a call without a start was never executed."""


REUSED: Final = "reused"
"""What the ledger says of a call that was given the stored result of another one."""


@dataclass(slots=True)
class Call:
    """One call. ``call_id`` is ours; ``raw_id`` is the model's and may be missing or repeated.

    ``has_raw`` and ``has_item`` say which of its announcements have come: hooks run ahead of the events that are still
    queued, so a call may be over before its raw item and its run item are seen, and they must not make a second row
    then. ``entered`` says that the tool had started in the run that this one continues.
    """

    call_id: str
    raw_id: str | None
    name: str
    kind: str
    arguments: str | None = None
    state: State = "raw"
    started: float | None = None
    stopped: float | None = None
    entered: bool = False
    hosted: bool = False
    has_raw: bool = False
    has_item: bool = False


@dataclass(slots=True)
class Calls:
    """The calls of one run in order; ``hooked`` says whether starts can be seen at all.

    ``book`` holds what is open or still to be announced, so it stays short however many calls a run makes.
    ``effects`` is what the ledger said of a running call: `reused`, or the code of an effect that was not had.
    ``refused(tool, raw_id)`` says whether a person's decision, or a standing one, refused a call.
    """

    monotonic: Callable[[], float]
    title_of: Callable[[str], str]
    hooked: bool = True
    book: list[Call] = field(default_factory=list)
    rejected: set[str] = field(default_factory=set)
    handoffs: set[str] = field(default_factory=set)
    effects: dict[str, str] = field(default_factory=dict)
    refused: Callable[[str, Any], bool] = lambda tool, raw_id: False
    files: Files = field(default_factory=Files)
    ids: Ids = field(default_factory=lambda: Ids("call"))

    # What is seen.

    def seen_raw(self, raw: Any) -> None:
        """A function call in a raw response, complete but claimed by nobody yet."""
        raw_id = raw_id_of(raw)
        call = self._announced(raw_id, "has_raw") or self.add(raw, raw_id)
        call.has_raw = True
        self._tidy()

    def claimed(self, raw: Any, kind: str | None = None) -> Iterator[Draft]:
        """The run item of a call; ``kind`` is what the SDK says of its origin."""
        raw_id = raw_id_of(raw)
        if raw_id in self.handoffs:
            return
        call = self._announced(raw_id, "has_item") or self.add(raw, raw_id)
        call.has_item = True
        if call.state == "raw":
            call.kind = kind or call.kind
            yield from self.request(call)
        self._tidy()

    def started(
        self, raw_id: str | None, name: str, arguments: str | None = None, kind: str = "function"
    ) -> Iterator[Draft]:
        """The tool hook at the tool's entry."""
        call = self._find(raw_id, "requested", "raw")
        if call is None:
            call = Call(self.ids.take(raw_id), raw_id, name, kind, arguments)
            self.book.append(call)
        elif call.state == "raw":
            call.kind = kind
        yield from self._start(call)

    def started_alone(self, kind: str) -> Iterator[Draft]:
        """The hook of a tool that does not say which call it works on: a start where only one can be meant."""
        waiting = [call for call in self.book if call.kind == kind and call.state in ("raw", "requested")]
        if len(waiting) == 1 and not waiting[0].hosted:
            yield from self._start(waiting[0])

    def stopped_alone(self, kind: str) -> str | None:
        """The hook at the end of such a tool. Only its output item will say how it ended; this says when, and of which
        call.
        """
        running = [call for call in self.book if call.kind == kind and call.state == "running"]
        if len(running) != 1:
            return None
        running[0].stopped = self.monotonic()
        return running[0].call_id

    def returned(
        self,
        raw_id: str | None,
        output: Any,
        *,
        from_hook: bool,
        failed: str | None = None,
        guarded: bool | None = None,
    ) -> Iterator[Draft]:
        """The tool hook at the tool's exit, or the run item of its output, whichever comes first.

        ``failed`` is the code of a failure that was found. ``guarded`` says whether the tool has input guardrails; it
        is None for outputs of tools whose starts are not seen.
        """
        call = self.awaiting(raw_id)
        if call is None:
            return
        unrun = self._unrun(call, guarded) if call.state == "requested" else None
        if unrun is not None:
            yield from self.close(call, unrun[0], {"reason": unrun[1]})
            return
        payload = self._timed(call, from_hook)
        if self.effects.get(call.call_id) == REUSED:
            payload["reused"] = True
        failed = self._code(call.call_id, failed)
        if failed is not None:
            yield from self.close(call, "tool.failed", {"code": failed})
            return
        yield from self.files.made(files_of(output), call.call_id)
        yield from self.close(call, "tool.finished", {"output": shown(output), **payload})

    def awaiting(self, raw_id: str | None) -> Call | None:
        """The call that an output with this model-made id belongs to."""
        return None if raw_id in self.handoffs else self._find(raw_id, "running", "requested")

    def failed(self, call_id: str, code: str) -> Iterator[Draft]:
        """A running call of which the end of the run says that it raised."""
        call = next((call for call in self.book if call.call_id == call_id and call.state == "running"), None)
        if call is not None:
            yield from self.close(call, "tool.failed", {"code": self._code(call_id, code)})

    def handed_off(self, raw_id: str | None) -> None:
        """The call is a handoff's: it is no tool row, and neither is its output."""
        if raw_id is not None:
            self.handoffs.add(raw_id)
        call = self._announced(raw_id, "has_item")
        if call is not None and call.state == "raw":
            self.book.remove(call)

    # The end, and what a pause carries over.

    def run_ended(self, kind: str) -> Iterator[Draft]:
        """Close every row of which it is known that it was never executed."""
        for call in list(self.book):
            if call.state == "raw":
                yield from self.request(call)
                yield from self.close(call, "tool.skipped", {"reason": "not_run"})
            elif call.state == "requested" and kind != "paused":
                if self.hooked and call.kind in STARTS_SEEN and not call.hosted:
                    yield from self.close(call, "tool.skipped", {"reason": "not_run"})
                elif kind == "succeeded":
                    yield from self.close(call, "tool.skipped", {"reason": "no_output"})

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
            again.entered = call.entered or call.started is not None
            self.ids.used.add(call.call_id)
            self.book.append(again)
            yield from self.request(again)

    def restated(self, calls: Iterable[Call]) -> Iterator[Draft]:
        """Waiting calls as requests, for the log of a continuing run."""
        for call in calls:
            yield from self.request(call)

    def _code(self, call_id: str, code: str | None) -> str | None:
        """The code of a failure; what the ledger said of it says more."""
        effect = self.effects.get(call_id, REUSED)
        return code if effect == REUSED else effect

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

    def _unrun(self, call: Call, guarded: bool | None) -> tuple[str, str] | None:
        """How a call ended that gave an output although its tool was not seen to start; None when it may have run."""
        if call.call_id in self.rejected or self.refused(call.name, call.raw_id):
            return "tool.rejected", "approval_rejected"
        if guarded is None or call.entered or not self.hooked or call.kind not in STARTS_SEEN:
            return None
        return ("tool.rejected", "tool_guardrail") if guarded else ("tool.skipped", "not_run")

    def _timed(self, call: Call, from_hook: bool) -> dict[str, Any]:
        stopped = self.monotonic() if from_hook else call.stopped
        if call.started is None or stopped is None:
            return {}
        return {"duration_ms": max(0, round((stopped - call.started) * 1000))}

    def _start(self, call: Call) -> Iterator[Draft]:
        if call.state == "raw":
            yield from self.request(call)
        call.state, call.started = "running", self.monotonic()
        yield "tool.started", {"call_id": call.call_id}

    # What hosted calls share with the others.

    def add(self, raw: Any, raw_id: Any) -> Call:
        """A row for a call's item, not said yet."""
        kind, fixed_name = KINDS.get(part_of(raw, "type") or "", ("function", None))
        name = name_of(fixed_name or part_of(raw, "name") or "tool")
        call = Call(self.ids.take(raw_id), raw_id, name, kind, arguments_of(raw))
        self.book.append(call)
        return call

    def request(self, call: Call) -> Iterator[Draft]:
        """Say the call."""
        call.state = "requested"
        payload = {"call_id": call.call_id, "name": call.name, "kind": call.kind, "title": self.title_of(call.name)}
        if call.arguments is not None:
            payload["arguments"] = valid(call.arguments)
        yield "tool.requested", payload

    def close(self, call: Call, type_: str, payload: dict[str, Any]) -> Iterator[Draft]:
        """Say how the call ended, once."""
        call.state = "closed"
        self.effects.pop(call.call_id, None)
        self._tidy()
        yield type_, {"call_id": call.call_id, **payload}
