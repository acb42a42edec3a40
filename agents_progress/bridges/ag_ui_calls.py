"""The calls of a run as AG-UI has them: tool calls and their results, how they go, the sub-agents inside them, and the
questions about them as interrupts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic_core import to_json

from agents_progress.answers import MOST_TEXT, TEXTS, options_offered
from agents_progress.bridges.ag_ui_events import OURS, Json, noted
from agents_progress.bridges.base import CallNames, Event, json_of, question_id, told_of
from agents_progress.labels import label
from agents_progress.messages import Language, sentence
from agents_progress.rows import Activity, Interaction
from agents_progress.view import RunView

TOOL: Final = f"{OURS}.tool"
"""The type of the activity that tells how a call of a tool goes."""

EDITED: Final = "editedArgs"
"""What AG-UI calls the arguments that are approved instead of those that were asked about."""
_NO: Final[Json] = {"const": False}

NO_CALLS: Final = ("handoff", "stage")
"""Kinds of rows that are no calls of tools."""


@dataclass(slots=True)
class Call:
    """One call of a tool: its row in the view, and what a client was told of it.

    ``wire_id`` is its id there (:class:`~agents_progress.bridges.base.CallNames`). ``agent`` is the call whose
    sub-agent made it, None for the run's own; ``restated``: the client has its arguments; ``asking``: they are still
    awaited; ``delegates``: a sub-agent of it is open; ``shown`` is how it was said to go, None when nothing was;
    ``settled``: its result was told.
    """

    row: Activity
    wire_id: str
    agent: Call | None
    restated: bool
    asking: bool = False
    delegates: bool = False
    shown: Json | None = None
    settled: bool = False

    @property
    def arguments(self) -> str:
        """Its arguments as AG-UI wants them, JSON: a free text becomes a JSON string."""
        text = self.row.arguments or ""
        return to_json(text).decode() if text and json_of(text) is text else text

    def corrected(self, messages: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
        """Messages of a client, with the arguments with which this call goes on in the place of those it had."""
        found: list[Mapping[str, Any]] = []
        for message in messages:
            calls = [
                {**each, "function": {**each["function"], "arguments": self.arguments}}
                if each["id"] == self.wire_id and self.arguments
                else each
                for each in message.get("toolCalls") or ()
            ]
            found.append({**message, "toolCalls": calls} if calls else message)
        return found

    def tagged(self, event: Event) -> Event:
        """An event of this call, under the sub-agent that made it."""
        return event if self.agent is None else {**event, "subagentRunId": self.agent.wire_id}

    def started(self) -> Event:
        """Asked for."""
        self.asking = True
        return self.tagged(
            {
                "type": "TOOL_CALL_START",
                "toolCallId": self.wire_id,
                "toolCallName": self.row.name,
                "metadata": noted(title=self.row.title, kind=self.row.kind),
            }
        )

    def given(self) -> list[Event]:
        """No more arguments come; AG-UI's end of a call says that, and nothing of its execution."""
        if not self.asking:
            return []
        self.asking = False
        end: Event = {"type": "TOOL_CALL_END", "toolCallId": self.wire_id}
        if self.restated or not self.arguments:
            return [end]
        return [{"type": "TOOL_CALL_ARGS", "toolCallId": self.wire_id, "delta": self.arguments}, end]

    def activity(self) -> list[Event]:
        """How it goes, where there is more to say than that it was asked for, and that was not said yet."""
        row = self.row
        going = row.state == "running" or (row.open and row.message is not None)
        content = {
            "toolCallId": self.wire_id,
            "name": row.name,
            "title": row.title,
            "state": row.state,
            "message": row.message,
            "current": row.current,
            "total": row.total,
        }
        known = {name: value for name, value in content.items() if value is not None}
        if known == self.shown or (self.shown is None and not going):
            return []
        self.shown = known
        event = {
            "type": "ACTIVITY_SNAPSHOT",
            "messageId": f"{self.wire_id}:state",
            "activityType": TOOL,
            "content": known,
        }
        return [self.tagged(event)]

    def result(self, language: Language) -> Event:
        """Settled: what it gave as far as that is disclosed, or how else it ended, in words."""
        return self.tagged(
            {
                "type": "TOOL_CALL_RESULT",
                "messageId": f"{self.wire_id}:result",
                "toolCallId": self.wire_id,
                "role": "tool",
                "content": self._told(language),
                "metadata": self._noted(),
            }
        )

    def _noted(self) -> Json:
        row = self.row
        return noted(state=row.state, code=row.note, duration_ms=row.duration_ms, reused=row.reused or None)

    def _told(self, language: Language) -> str:
        row = self.row
        if row.state == "returned":
            return row.summary or "" if row.output is None else row.output
        return told_of(row, language)

    def messages(self, language: Language) -> Iterator[Json]:
        """The call, and its result when there is one, as messages of a snapshot."""
        row, tag = self.row, {} if self.agent is None else {"subagentRunId": self.agent.wire_id}
        function = {"name": row.name, "arguments": self.arguments}
        noting = noted(title=row.title, kind=row.kind)
        call = {"id": self.wire_id, "type": "function", "function": function, "metadata": noting}
        yield {"id": self.wire_id, "role": "assistant", "toolCalls": [call], **tag}
        if not row.open:
            told = self._told(language)
            error = {} if row.state == "returned" else {"error": told}
            yield {
                "id": f"{self.wire_id}:result",
                "role": "tool",
                "toolCallId": self.wire_id,
                "content": told,
                "metadata": self._noted(),
                **error,
                **tag,
            }

    # Its sub-agent.

    def delegated(self) -> list[Event]:
        """A nested run works for it; nothing when that was told already."""
        if self.delegates:
            return []
        self.delegates = True
        start: Event = {
            "type": "SUBAGENT_STARTED",
            "subagentRunId": self.wire_id,
            "name": self.row.title,
            "parentToolCallId": self.wire_id,
        }
        if self.agent is not None:
            start["parentSubagentRunId"] = self.agent.wire_id
        return [start]

    def undelegated(self, language: Language, suspended_by: list[str] | None = None) -> list[Event]:
        """The nested run is over, as the call is; or it waits, for these questions of its own."""
        if not self.delegates:
            return []
        self.delegates = False
        if suspended_by is not None:
            how: Json = {"type": "SUBAGENT_FINISHED", "outcome": {"type": "suspended", "interruptIds": suspended_by}}
        elif self.row.state == "returned":
            how = {"type": "SUBAGENT_FINISHED", "outcome": {"type": "success"}}
        else:
            told = sentence("unknown", language) if self.row.open else self._told(language)
            how = {"type": "SUBAGENT_ERROR", "message": told, "code": "unknown" if self.row.open else self.row.state}
        return [{**how, "subagentRunId": self.wire_id}]


class Calls:
    """The calls of one run, as far as a client was told of them. ``earlier`` are the runs that it continues, oldest
    first; ``first`` is the first run of its task. One that continues another is ``restating`` at first: the client has
    those calls and their arguments.
    """

    def __init__(self, run_id: str, language: Language, earlier: Sequence[RunView] = ()) -> None:
        stem, dot, number = run_id.rpartition(".")
        self.restating = bool(dot) and number.isdigit()
        self.first = stem if self.restating else run_id
        self._names = CallNames(run_id, earlier)
        self._language: Language = language
        self._calls: dict[str, Call] = {}

    def __getitem__(self, call_id: str | None) -> Call | None:
        return self._calls.get(call_id or "")

    def restored(self, row: Activity) -> list[Event]:
        """A call of the view, and the sub-agent that it is in, opened where they are open; what is settled comes in a
        snapshot.
        """
        if row.kind in NO_CALLS:
            return []
        events: list[Event] = []
        call = self._added(row.activity_id, row, restated=False)
        self.restating = self.restating and row.state == "requested"
        if call.agent is not None and call.agent.row.open:
            events += call.agent.delegated()
        if row.state == "requested" and row.arguments is None:
            events.append(call.started())
        call.settled = not row.open
        return [*events, *(self._going(call) if row.open else ())]

    def open_ids(self) -> set[str]:
        """The ids of those whose arguments are awaited."""
        return {call.wire_id for call in self._calls.values() if call.asking}

    def messages(self, call_id: str) -> Iterator[Json]:
        """A call, and its result when there is one, as messages of a snapshot."""
        if call_id in self._calls:
            yield from self._calls[call_id].messages(self._language)

    def told(self, view: RunView, call_id: str) -> list[Event]:
        """How a call stands in the view, where that was not told."""
        row, call, events = view.rows.get(call_id), self._calls.get(call_id), []
        if row is None or row.kind in NO_CALLS:
            return []
        if call is None:
            call = self._added(call_id, row, self.restating)
            events = [] if call.agent is None else call.agent.delegated()
            events.append(call.started())
        if row.arguments is not None or row.state != "requested":
            events += call.given()
        return [*events, *(self._going(call) if row.open else self._settled(call))]

    def closed(self, asked: Iterable[tuple[str, Interaction]] | None) -> list[Event]:
        """Whatever is open, closed. ``asked`` are the questions that a pause leaves, by their ids in the stream; None
        when this is no pause.
        """
        events: list[Event] = []
        waiting = None if asked is None else [(name, self[question.call_id]) for name, question in asked]
        for call in reversed(self._calls.values()):
            own = None if waiting is None else [name for name, by in waiting if by is not None and by.agent is call]
            events += [*call.given(), *call.undelegated(self._language, own)]
        return events

    def _added(self, call_id: str, row: Activity, restated: bool) -> Call:
        outer = self._calls.get(call_id.rpartition("/")[0])
        call = self._calls[call_id] = Call(row, self._names(call_id), outer, restated)
        return call

    def _going(self, call: Call) -> list[Event]:
        """The tool of an agent is a sub-agent while it runs."""
        runs = call.row.kind == "agent" and call.row.state == "running"
        return [*call.activity(), *(call.delegated() if runs else ())]

    def _settled(self, call: Call) -> list[Event]:
        """It is over, and with it the sub-agents inside it."""
        if call.settled:
            return []
        call.settled = True
        events: list[Event] = []
        inside = f"{call.row.activity_id}/"
        for name, inner in reversed(self._calls.items()):
            if name.startswith(inside):
                events += inner.undelegated(self._language)
        return [*events, *call.undelegated(self._language), *call.activity(), call.result(self._language)]


def interrupt(run_id: str, question: Interaction, call: Call | None, language: Language) -> Json:
    """A question as an interrupt. One that may not be approved here accepts no yes."""
    schema = answer_schema(question)
    approvable = schema["properties"]["approved"] != _NO
    found: Json = {
        "id": question_id(run_id, question),
        "reason": question.kind,
        "message": question.title if approvable else f"{question.title} ({label('not_shown', language)})",
        "responseSchema": schema,
        "metadata": noted(tool=question.tool, details=question.details, approvable=approvable),
    }
    if call is not None:
        found["toolCallId"] = call.wire_id
        if call.agent is not None:
            found["subagentRunId"] = call.agent.wire_id
    if question.expires_at is not None:
        found["expiresAt"] = question.expires_at
    return found


def answer_schema(question: Interaction) -> Json:
    """What an answer to a question may carry, as a JSON Schema: see :mod:`agents_progress.answers`."""
    wanted, options = TEXTS.get(question.kind, "refused"), options_offered(question)
    approvable = question.approvable and (wanted != "option" or bool(options))
    properties: Json = {"approved": {"type": "boolean"} if approvable else _NO, "reason": {"type": "string"}}
    schema: Json = {"type": "object", "properties": properties, "required": ["approved"], "additionalProperties": False}
    if not approvable:
        return schema
    if wanted != "refused":
        properties["text"] = {"enum": [*options]} if wanted == "option" else {"type": "string", "maxLength": MOST_TEXT}
    if wanted in ("required", "option"):
        schema |= {"if": {"properties": {"approved": {"const": True}}}, "then": {"required": ["text"]}}
    if question.takes is not None and question.details is not None:
        needed = [name for name, is_needed in question.takes.items() if is_needed]
        named: Json = {"properties": {name: {} for name in question.takes}, "additionalProperties": False}
        properties[EDITED] = {"type": "object", **named, "required": needed}
    return schema
