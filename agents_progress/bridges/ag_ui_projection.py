"""One reader's AG-UI stream of one run: our envelopes in, AG-UI 1.0 events out, pure.

The status, and everything that is shown of a call, a stage or a question, is that of a
:class:`~agents_progress.view.RunView` over the same envelopes, so that no stream says more than our own displays. What
AG-UI's client makes of a stream, measured with @ag-ui/client 1.0.0, decides how it ends: an outcome that it does not
know is read as success, so an incomplete run is an error with a code; nothing may follow the terminal event, so success
waits for the application's check; what is open must be closed before it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final, TypeAlias

from agents_progress.bridges.ag_ui_calls import Calls, interrupt
from agents_progress.bridges.ag_ui_events import (
    OURS,
    PROTOCOL_VERSION,
    Json,
    Stages,
    Texts,
    custom,
    noted,
    usage_of,
)
from agents_progress.bridges.base import CUTS, Cut, Event, in_order, question_id
from agents_progress.events import Envelope
from agents_progress.messages import Language, Status, sentence
from agents_progress.rows import Activity, Interaction, Message
from agents_progress.standing import UPDATES
from agents_progress.view import RunView

CODES: Final[Mapping[Status, str]] = {
    "cancelled": "cancelled",
    "failed": "failed",
    "incomplete": "incomplete",
    "rejected": "check_refused",
    "unknown": "unknown",
    "waiting": "waiting",
}
"""The code of the `RUN_ERROR` of an ended run, by its status. A cancel and a pause have outcomes of their own; they are
errors to a client that would read those as success, and a pause also where it asks nothing.
"""

_TELLING: Final = frozenset({*UPDATES, "agent.changed"})
"""The types after which the status may read otherwise."""

_RESTATING: Final = frozenset({"run.accepted", "run.started", "tool.requested", "approval.wait"})
"""What a run that continues another begins with."""

_TOLD: Final = ("reason", "error", "partial", "completed_anyway", "requested_by")
"""What the metadata of a terminal event repeats of ours."""


Step: TypeAlias = "Callable[[AgUiProjection, Json], list[Event]]"


def _custom(name: str) -> Step:
    return lambda _, payload: [custom(name, payload)]


class AgUiProjection:
    """Tells one run to one client of a thread.

    ``history`` are the client's own messages, as it sent them: a snapshot of ours must repeat them, since the client
    drops every message that a snapshot does not carry. ``outcomes`` says that it knows those of AG-UI 1.0.
    """

    def __init__(
        self,
        conversation: str,
        language: Language = "en",
        history: Sequence[Mapping[str, Any]] = (),
        *,
        outcomes: bool = True,
    ) -> None:
        self.over = False
        self._outcomes = outcomes
        self._thread = conversation
        self._language: Language = language
        self._history = history
        self._view = RunView("", language)
        self._texts, self._calls, self._stages = Texts(""), Calls("", language), Stages()
        self._shown: tuple[Status, str | None] | None = None
        self._said = ""

    # Coming in.

    def join(self, view: RunView, earlier: Sequence[RunView] = ()) -> list[Event]:
        """`RUN_STARTED`, what is there as a snapshot of messages, and everything open opened again. The view is copied.

        ``earlier`` are the runs that this one continues, oldest first; who comes in at the start was told of them.
        """
        past: list[Json] = []
        for place, each in enumerate(earlier if view.seq else ()):
            past += AgUiProjection(self._thread, self._language).past(each, earlier[:place])
        opened = self._restored(RunView.from_snapshot(view.snapshot(), self._language), earlier)
        started = {
            "type": "RUN_STARTED",
            "threadId": self._thread,
            "runId": view.run_id,
            "protocolVersion": PROTOCOL_VERSION,
        }
        events = [started, *self._snapshot([*past, *self._messages()]), *opened]
        if not self._calls.restating:
            self._history = ()  # it is large, and the stream may live long
        for name in ("guardrails", "sources", "artifacts"):
            events += [custom(name.removesuffix("s"), each) for each in getattr(view, name)]
        if view.terminal is not None:
            events += self._closed()
        return [*events, *self._told()] if view.seq else events

    def past(self, view: RunView, earlier: Sequence[RunView]) -> list[Json]:
        """The messages of a run that is over, as far as they came."""
        self._restored(view, earlier)
        self._closed()
        return self._messages()

    def _restored(self, view: RunView, earlier: Sequence[RunView]) -> list[Event]:
        self._view = view
        self._texts, self._calls = Texts(view.run_id), Calls(view.run_id, self._language, earlier)
        opened: list[Event] = []
        for each in in_order(view):
            match each:
                case Message():
                    opened += self._texts.restored(each)
                case Activity(kind="stage"):
                    opened += self._stages.told(view, each.activity_id)
                case Activity():
                    opened += self._calls.restored(each)
        if view.texts or len(self._asked()) < len(view.interactions):
            self._calls.restating = False
        return opened

    def _messages(self) -> list[Json]:
        """Texts and calls in the order in which they began. What is open is among them, so that it is opened where it
        stands, unless nothing comes after it.
        """
        found: list[Json] = []
        for each in in_order(self._view):
            match each:
                case Message():
                    found += self._texts.message(each)
                case Activity():
                    found += self._calls.messages(each.activity_id)
        found += self._texts.unsaid(self._view)
        opened = self._texts.open_ids() | self._calls.open_ids()
        while found and found[-1]["id"] in opened:
            found.pop()
        return found

    def _snapshot(self, messages: Iterable[Json]) -> list[Event]:
        """The client's messages with ours put in their places; nothing when it has none of ours and there are none."""
        ours = {each["id"]: each for each in messages}
        stale = [each["id"] for each in self._history if str(each["id"]).startswith(f"{self._view.run_id}:")]
        if not ours and not stale:
            return []
        kept = [ours.pop(each["id"], each) for each in self._history if each["id"] in ours or each["id"] not in stale]
        self._history = [*kept, *ours.values()]
        return [{"type": "MESSAGES_SNAPSHOT", "messages": self._history}]

    # Going on.

    def feed(self, envelope: Envelope) -> list[Event]:
        """The events of the next envelope; none of one that came before, of another run, or after the end."""
        if self.over:
            return []
        view, type_, payload = self._view, envelope.type, envelope.payload
        seq, doubted, ended = view.seq, view.standing.issues, view.terminal is not None
        if type_ == "text.completed":
            message = view.texts.get((payload["item_id"], payload.get("channel", "answer")))
            self._said = "" if message is None else message.text
        view.feed(envelope)
        if self._calls.restating and type_ not in _RESTATING:
            self._calls.restating, self._history = False, ()
        step = None if view.seq == seq or ended else self.steps.get(type_)
        events = [] if step is None else step(self, payload)
        if type_ in _TELLING or view.standing.issues is not doubted:
            events = [*events, *self._told()]
        return events

    def cut(self, code: Cut) -> list[Event]:
        """The stream ends here, and the run perhaps not: an error, whatever is known."""
        if self.over:
            return []
        self.over = True
        error = {"type": "RUN_ERROR", "code": code, "message": CUTS[code][self._language]}
        return [*self._closed(), {**error, "metadata": noted(status=self._view.status)}]

    def _told(self) -> list[Event]:
        """The status, where it changed; and the terminal event, once everything that it rests on is known."""
        view, status = self._view, self._view.status
        events: list[Event] = []
        if (status, view.agent) != self._shown:
            self._shown = status, view.agent
            content = {"status": status, "message": view.message}
            if view.agent is not None:
                content["agent"] = view.agent
            name = f"{self._calls.first}:status"  # a run that goes on takes the place of the pause
            events.append({"type": "ACTIVITY_SNAPSHOT", "messageId": name, "activityType": OURS, "content": content})
        if view.terminal is not None and status != "checking":
            self.over = True
            events.append(self._terminal(status))
        return events

    # The steps: the view took the envelope in; what is told is how it stands there.

    def _text_delta(self, payload: Json) -> list[Event]:
        return self._texts.delta(self._view, (payload["item_id"], payload.get("channel", "answer")), payload["text"])

    def _text_completed(self, payload: Json) -> list[Event]:
        item = payload["item_id"], payload.get("channel", "answer")
        return self._texts.completed(item, self._said, self._view.texts[item].text)

    def _tool(self, payload: Json) -> list[Event]:
        events, call = self._calls.told(self._view, payload["call_id"]), self._calls[payload["call_id"]]
        if call is None or not self._calls.restating:
            return events
        messages = call.corrected(self._history)
        if messages == [*self._history]:
            return events
        self._history = messages  # approved with other arguments, which no event can put in the place of the first
        return [*events, {"type": "MESSAGES_SNAPSHOT", "messages": messages}]

    def _stage(self, payload: Json) -> list[Event]:
        return self._stages.told(self._view, f"stage:{payload['stage_id']}")

    def _end(self, payload: Json) -> list[Event]:
        return [] if self._view.terminal is None else [*self._texts.ended(self._view), *self._closed()]

    def _nothing(self, payload: Json) -> list[Event]:
        """Facts that stand in the status or in the ending, or that nobody is shown."""
        return []

    # The end.

    def _asked(self) -> list[Interaction]:
        return [each for each in self._view.interactions.values() if each.decision is None]

    def _closed(self) -> list[Event]:
        """Everything closed that is open: the terminal event comes next, and says what that means."""
        paused = self._view.standing.outcome == "paused"
        asked = [(question_id(self._view.run_id, each), each) for each in self._asked()] if paused else None
        return [*self._texts.closed(), *self._calls.closed(asked), *self._stages.closed()]

    def _terminal(self, status: Status) -> Event:
        view, end = self._view, self._view.terminal or {}
        facts = {name: end.get(name) for name in _TOLD}
        about: Event = {"metadata": noted(status=status, check=(view.verdict or {}).get("check"), **facts)}
        usage = usage_of(view.usage)
        if usage:
            about["usage"] = usage
            about["metadata"][OURS]["usage"] = (view.usage or {})["status"]
        finished: Event = {"type": "RUN_FINISHED", "threadId": self._thread, "runId": view.run_id, **about}
        if status == "done":
            return {**finished, "outcome": {"type": "success"}, "result": end["final_output"]}
        if status == "cancelled" and self._outcomes:
            return {**finished, "outcome": {"type": "cancelled"}}
        if status == "waiting" and self._outcomes and self._asked():
            return {**finished, "outcome": {"type": "interrupt", "interrupts": self._interrupts()}}
        return {"type": "RUN_ERROR", "code": CODES[status], "message": sentence(status, self._language), **about}

    def _interrupts(self) -> list[Json]:
        run_id, language = self._view.run_id, self._language
        return [interrupt(run_id, each, self._calls[each.call_id], language) for each in self._asked()]

    steps: ClassVar[Mapping[str, Step]] = {
        "run.accepted": _nothing,
        "run.started": _nothing,
        "agent.changed": _nothing,
        "model.started": _nothing,
        "model.completed": _nothing,
        "model.incomplete": _nothing,
        "model.failed": _nothing,
        "text.delta": _text_delta,
        "text.completed": _text_completed,
        "tool.requested": _tool,
        "tool.arguments.delta": _nothing,
        "tool.arguments.completed": _tool,
        "tool.started": _tool,
        "tool.progress": _tool,
        "tool.finished": _tool,
        "tool.failed": _tool,
        "tool.rejected": _tool,
        "tool.skipped": _tool,
        "handoff.requested": _nothing,
        "handoff.completed": _custom("handoff"),
        "approval.wait": _nothing,
        "approval.resolved": _custom("approval"),
        "guardrail.tripped": _custom("guardrail"),
        "stage.started": _stage,
        "stage.completed": _stage,
        "source.cited": _custom("source"),
        "artifact.created": _custom("artifact"),
        "usage.updated": _nothing,
        "cancel.requested": _nothing,
        "adapter.unsupported": _nothing,
        "run.ended": _end,
        "run.lost": _end,
        "app.checked": _nothing,
    }
    """What each type of the table gives; :data:`~agents_progress.bridges.table.AG_UI` names it."""
