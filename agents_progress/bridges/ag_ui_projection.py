"""One reader's AG-UI stream of one run: our envelopes in, AG-UI 1.0 events out, pure.

What AG-UI's client makes of a stream, measured with @ag-ui/client 1.0.0, decides how it ends here: an outcome that it
does not know is read as success, so an incomplete run is an error with a code; nothing may follow the terminal event,
so success waits for the application's check; what is open must be closed before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from agents_progress.bridges.ag_ui_calls import Calls, interrupt
from agents_progress.bridges.ag_ui_events import (
    OURS,
    PROTOCOL_VERSION,
    Doubt,
    Json,
    Stages,
    Texts,
    custom,
    noted,
    require,
    usage_of,
)
from agents_progress.bridges.base import CUTS, Cut, Event, question_id
from agents_progress.events import Envelope
from agents_progress.messages import Language, Status, sentence
from agents_progress.payloads import NOTE_PREFIX
from agents_progress.rows import Interaction, ToolState
from agents_progress.standing import UPDATES, Standing
from agents_progress.verify import digest
from agents_progress.view import RunView

CODES: Final[Mapping[Status, str]] = {
    "failed": "failed",
    "incomplete": "incomplete",
    "rejected": "check_refused",
    "unknown": "unknown",
    "waiting": "waiting",
}
"""The code of the `RUN_ERROR` of an ended run, by its status. ``waiting`` is a pause that asks nothing."""

_TELLING: Final = frozenset({*UPDATES, "agent.changed"})
"""The types after which the status may read otherwise."""

_RESTATING: Final = frozenset({"run.accepted", "run.started", "tool.requested", "approval.wait"})
"""What a run that continues another begins with."""

_TOLD: Final = ("reason", "error", "partial", "completed_anyway", "requested_by")
"""What the metadata of a terminal event repeats of ours."""


Step: TypeAlias = "Callable[[AgUiProjection, Json], list[Event]]"


def _custom(name: str) -> Step:
    return lambda _, payload: [custom(name, payload)]


def _settles(state: ToolState) -> Step:
    return lambda self, payload: self._calls.settled(payload, state)


class AgUiProjection:
    """Tells one run to one client of a thread.

    ``history`` are the client's own messages, as it sent them: a snapshot of ours must repeat them, since the client
    drops every message that a snapshot does not carry.
    """

    def __init__(self, conversation: str, language: Language = "en", history: Sequence[Mapping[str, Any]] = ()) -> None:
        self.over = False
        self._thread = conversation
        self._language: Language = language
        self._history = history
        self._run_id = ""
        self._seq = 0
        self._standing = Standing()
        self._shown: tuple[Status, str | None] | None = None
        self._agent: str | None = None
        self._texts, self._calls, self._stages = Texts(""), Calls("", language), Stages()
        self._asked: dict[str, Interaction] = {}
        self._usage: Mapping[str, Any] | None = None
        self._end: Mapping[str, Any] | None = None
        self._verdict: Mapping[str, Any] | None = None

    # Coming in.

    def join(self, view: RunView, earlier: Sequence[RunView] = ()) -> list[Event]:
        """`RUN_STARTED`, what is there as a snapshot of messages, and everything open opened again.

        ``earlier`` are the runs that this one continues, oldest first, for a client that was not told of them.
        """
        self._run_id, self._seq = view.run_id, view.seq
        self._standing, self._agent, self._usage = view.standing.copy(), view.agent, view.usage
        self._end, self._verdict = view.terminal, view.verdict
        self._asked = {name: each for name, each in view.interactions.items() if each.decision is None}
        started = {
            "type": "RUN_STARTED",
            "threadId": self._thread,
            "runId": self._run_id,
            "protocolVersion": PROTOCOL_VERSION,
        }
        opened = self._restored(view)
        past = [message for each in earlier for message in AgUiProjection(self._thread, self._language).past(each)]
        events = [started, *self._snapshot([*past, *self._messages(view)]), *opened]
        for name in ("guardrails", "sources", "artifacts"):
            events += [custom(name.removesuffix("s"), each) for each in getattr(view, name)]
        if self._standing.ended:
            events += self._closed()
        return [*events, *self._told()] if view.seq else events

    def past(self, view: RunView) -> list[Json]:
        """The messages of a run that is over, as far as they came."""
        self._restored(view)
        self._closed()
        return self._messages(view)

    def _restored(self, view: RunView) -> list[Event]:
        self._texts, self._calls, self._stages = Texts(view.run_id), Calls(view.run_id, self._language), Stages()
        stages = [row for row in view.activities if row.kind == "stage"]
        calls = [row for row in view.activities if row.kind not in ("stage", "handoff")]
        opened = [*self._calls.restored(calls), *self._texts.restored(view.messages), *self._stages.restored(stages)]
        if view.texts or len(self._asked) < len(view.interactions):
            self._calls.restating = False
        return opened

    def _messages(self, view: RunView) -> list[Json]:
        return [*self._calls.messages(), *self._texts.closed_of(view.messages)]

    def _snapshot(self, messages: Iterable[Json]) -> list[Event]:
        """The client's messages with ours put in their places; nothing when it has none of ours and there are none."""
        ours = {each["id"]: each for each in messages}
        stale = [each["id"] for each in self._history if str(each["id"]).startswith(f"{self._run_id}:")]
        if not ours and not stale:
            return []
        kept = [ours.pop(each["id"], each) for each in self._history if each["id"] in ours or each["id"] not in stale]
        return [{"type": "MESSAGES_SNAPSHOT", "messages": [*kept, *ours.values()]}]

    # Going on.

    def feed(self, envelope: Envelope) -> list[Event]:
        """The events of the next envelope; none of one that came before, of another run, or after the end."""
        _, run_id, seq, type_, _, payload = envelope
        if self.over or seq <= self._seq or run_id != self._run_id:
            return []
        standing, doubted = self._standing, self._standing.issues
        if seq != self._seq + 1:
            standing.issues = True
        self._seq = seq
        step = self.steps.get(type_)
        if self._calls.restating and type_ not in _RESTATING:
            self._calls.restating = False
        events: list[Event] = []
        try:
            if step is None:
                require(type_.startswith(NOTE_PREFIX))
            else:
                require(not standing.ended or (type_ == "app.checked" and self._verdict is None))
                events = step(self, payload)
                if type_ in UPDATES or not standing.moved:
                    standing.observe(type_, payload)
        except (Doubt, LookupError, TypeError, AttributeError):
            # The last three are what a payload of a damaged journal runs into.
            standing.issues = True
        if type_ in _TELLING or standing.issues != doubted:
            events = [*events, *self._told()]
        return events

    def cut(self, code: Cut) -> list[Event]:
        """The stream ends here, and the run perhaps not: an error, whatever is known."""
        if self.over:
            return []
        self.over = True
        error = {"type": "RUN_ERROR", "code": code, "message": CUTS[code][self._language]}
        return [*self._closed(), {**error, "metadata": noted(status=self._standing.status)}]

    def _told(self) -> list[Event]:
        """The status, where it changed; and the terminal event, once everything that it rests on is known."""
        status, events = self._standing.status, []
        if (status, self._agent) != self._shown:
            self._shown = status, self._agent
            content = {"status": status, "message": sentence(status, self._language)}
            if self._agent is not None:
                content["agent"] = self._agent
            events.append(
                {
                    "type": "ACTIVITY_SNAPSHOT",
                    "messageId": f"{self._run_id}:status",
                    "activityType": OURS,
                    "content": content,
                }
            )
        if self._standing.ended and status != "checking":
            self.over = True
            events.append(self._terminal(status))
        return events

    # The steps.

    def _run_began(self, payload: Json) -> list[Event]:
        require(not self._standing.moved and not self._standing.accepted)
        return []

    def _run_started(self, payload: Json) -> list[Event]:
        require(self._agent is None)
        self._agent = payload["agent"]
        return []

    def _agent_changed(self, payload: Json) -> list[Event]:
        self._agent = payload["agent"]
        return []

    def _approval_wait(self, payload: Json) -> list[Event]:
        name, blind = payload["interaction_id"], payload.get("x", {}).get("approve_blind") is True
        require(name not in self._asked)
        plain = {field: value for field, value in payload.items() if field != "x"}
        self._asked[name] = Interaction(**plain, approve_blind=blind)
        return []

    def _approval_resolved(self, payload: Json) -> list[Event]:
        del self._asked[payload["interaction_id"]]
        return [custom("approval", payload)]

    def _usage_updated(self, payload: Json) -> list[Event]:
        self._usage = payload
        return []

    def _nothing(self, payload: Json) -> list[Event]:
        """Facts that stand in the status or in the ending, or that nobody is shown."""
        return []

    # The end.

    def _run_ended(self, payload: Json) -> list[Event]:
        if payload["outcome"] == "succeeded":
            require(not self._standing.cancel_requested and not self._standing.open_interactions)
            require(not self._calls.open)
        self._end = payload
        return self._closed()

    def _run_lost(self, payload: Json) -> list[Event]:
        self._end = payload
        return self._closed()

    def _app_checked(self, payload: Json) -> list[Event]:
        output = self._end["final_output"] if self._end and self._standing.outcome == "succeeded" else None
        require(output is not None and digest(output) == payload["digest"])
        self._verdict = payload
        return []

    def _closed(self) -> list[Event]:
        """Everything closed that is open: the terminal event comes next, and says what that means."""
        paused = (self._end or {}).get("outcome") == "paused"
        asked = [(question_id(self._run_id, each), each) for each in self._asked.values()] if paused else None
        return [*self._texts.closed(), *self._calls.closed(asked), *self._stages.closed()]

    def _terminal(self, status: Status) -> Event:
        end = self._end or {}
        facts = {name: end.get(name) for name in _TOLD}
        about: Event = {"metadata": noted(status=status, check=(self._verdict or {}).get("check"), **facts)}
        usage = usage_of(self._usage)
        if usage:
            about["usage"] = usage
            about["metadata"][OURS]["usage"] = (self._usage or {})["status"]
        finished: Event = {"type": "RUN_FINISHED", "threadId": self._thread, "runId": self._run_id, **about}
        if status == "done":
            return {**finished, "outcome": {"type": "success"}, "result": end["final_output"]}
        if status == "cancelled":
            return {**finished, "outcome": {"type": "cancelled"}}
        if status == "waiting" and self._asked:
            return {**finished, "outcome": {"type": "interrupt", "interrupts": self._interrupts()}}
        return {"type": "RUN_ERROR", "code": CODES[status], "message": sentence(status, self._language), **about}

    def _interrupts(self) -> list[Json]:
        return [
            interrupt(self._run_id, each, self._calls[each.call_id], self._language) for each in self._asked.values()
        ]

    steps: ClassVar[Mapping[str, Step]] = {
        "run.accepted": _run_began,
        "run.started": _run_started,
        "agent.changed": _agent_changed,
        "model.started": _nothing,
        "model.completed": _nothing,
        "model.incomplete": _nothing,
        "model.failed": _nothing,
        "text.delta": lambda self, payload: self._texts.delta(payload),
        "text.completed": lambda self, payload: self._texts.completed(payload),
        "tool.requested": lambda self, payload: self._calls.requested(payload),
        "tool.arguments.delta": lambda self, payload: self._calls.told(payload),
        "tool.arguments.completed": lambda self, payload: self._calls.given(payload),
        "tool.started": lambda self, payload: self._calls.started(payload),
        "tool.progress": lambda self, payload: self._calls.progressed(payload),
        "tool.finished": _settles("returned"),
        "tool.failed": _settles("failed"),
        "tool.rejected": _settles("rejected"),
        "tool.skipped": _settles("skipped"),
        "handoff.requested": _nothing,
        "handoff.completed": _custom("handoff"),
        "approval.wait": _approval_wait,
        "approval.resolved": _approval_resolved,
        "guardrail.tripped": _custom("guardrail"),
        "stage.started": lambda self, payload: self._stages.started(payload),
        "stage.completed": lambda self, payload: self._stages.completed(payload),
        "source.cited": _custom("source"),
        "artifact.created": _custom("artifact"),
        "usage.updated": _usage_updated,
        "cancel.requested": _nothing,
        "adapter.unsupported": _nothing,
        "run.ended": _run_ended,
        "run.lost": _run_lost,
        "app.checked": _app_checked,
    }
    """What each type of the table gives; :data:`~agents_progress.bridges.table.AG_UI` names it."""
