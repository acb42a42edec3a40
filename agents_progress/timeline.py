"""When the work of a task began and ended: the envelopes of its runs in, spans out. Pure.

What there is and in which state is said by the view of each run; this module adds the times. Within a run they are
differences of its stamps, which a monotonic clock gave (:class:`agents_progress.clock.Stamp`). Between runs, and where
the journal itself wrote, they are wall time, and marked as approximate. The order is that of the logs, never of times.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

from agents_progress.claim import next_run_id
from agents_progress.errors import BadEnvelope
from agents_progress.events import Envelope, parse_envelope, parse_known
from agents_progress.journal.rules import LEASE_EXPIRED, NEVER_STARTED
from agents_progress.messages import Language
from agents_progress.spans import Moment, Span, SpanKind, in_order, outer, tokens_between
from agents_progress.view import RunView

_MODEL_ENDS: Final = {"model.completed": "returned", "model.incomplete": "incomplete", "model.failed": "failed"}
_1970: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TOOL_STEPS: Final = tuple(
    f"tool.{step}" for step in ("requested", "started", "finished", "failed", "rejected", "skipped")
)


@dataclass(slots=True)
class _Reading:
    """One run as it is read: its view, its clock, and which spans stand for what in it.

    ``base`` and ``newest`` are the first and the latest of its stamps in milliseconds, ``offset`` is where ``base``
    lies in the task, and ``walled`` says that the latest was the journal's. ``carried`` are the spans of the run before
    that may be restated.
    """

    view: RunView
    number: int
    sealed: bool
    pruned: bool = False
    resumed_from: str | None = None
    offset: int = 0
    base: int | None = None
    newest: int = 0
    steady: bool = True
    walled: bool = False
    rows: dict[str, Span] = field(default_factory=dict)
    questions: dict[str, Span] = field(default_factory=dict)
    carried: dict[str, Span] = field(default_factory=dict)
    handing: list[str] = field(default_factory=list)
    handed: int = 0
    responses: dict[str, Span] = field(default_factory=dict)
    uncounted: list[Span] = field(default_factory=list)
    counted: Mapping[str, Any] = field(default_factory=dict)
    agent: Span | None = None
    check: Span | None = None

    def moment(self) -> Moment:
        """When its latest event happened. Where its clock stepped back, as one of an older release may, nothing is
        exact.
        """
        return Moment(self.offset + self.newest - (self.base or 0), self.number if self.steady else None)


_Step: TypeAlias = Callable[[_Reading, Envelope, Moment], None]


class Timeline:
    """The runs of one task: :meth:`begin` each in the order in which they began, and :meth:`feed` it its log.

    Takes what a view takes and raises for nothing. Memory grows with the rows, not with the envelopes. ``last`` is the
    latest event of all, ``started_at`` the wall time of the first one in milliseconds since 1970, None before it.
    """

    def __init__(self, language: Language = "en") -> None:
        self.last = Moment(0, None)
        self.started_at: int | None = None
        self.runs: list[_Reading] = []
        self._language: Language = language
        self._spans: list[Span] = []
        self._steps: Final[Mapping[str, _Step]] = {
            "run.started": self._run_started,
            "agent.changed": self._agent,
            "model.started": self._model_started,
            **dict.fromkeys(_MODEL_ENDS, self._model_ended),
            "usage.updated": self._usage,
            **dict.fromkeys(_TOOL_STEPS, self._tool),
            **dict.fromkeys(("stage.started", "stage.completed"), self._stage),
            **dict.fromkeys(("handoff.requested", "handoff.completed"), self._handoff),
            **dict.fromkeys(("approval.wait", "approval.resolved"), self._asked),
            "guardrail.tripped": self._guardrail,
            "run.ended": self._ended,
            "app.checked": self._checked,
        }  # what an envelope adds to the times; all others only move the last event

    def spans(self) -> list[tuple[Span, int]]:
        """Everything that took time with its depth, in the order of its start; what belongs under a call follows it."""
        calls = {(run.view.run_id, name): span for run in self.runs for name, span in run.rows.items()}
        never = {id(run.check) for run in self.runs if run.sealed and run.check is not None and run.check.open}
        return list(in_order((span for span in self._spans if id(span) not in never), calls))

    # Reading.

    def begin(self, run_id: str, *, snapshot: Mapping[str, Any] | None = None, sealed: bool = False) -> None:
        """The next run: from its first envelope, or from a snapshot of what was pruned (as :meth:`RunView.snapshot`).

        ``sealed`` says that nothing more comes. Raises :exc:`BadSnapshot`.
        """
        if snapshot is None:
            self.runs.append(_Reading(RunView(run_id, self._language), len(self.runs), sealed))
            return
        before = self.runs[-1] if self.runs else None
        view = RunView.from_snapshot(snapshot, self._language)
        run = _Reading(view, len(self.runs), sealed, pruned=True, counted=view.usage or {})
        paused = before is not None and before.view.standing.outcome == "paused"
        if before is not None and paused and next_run_id(before.view.run_id) == run_id:  # what says so was pruned
            self._carry(before, run)
        self.runs.append(run)
        for activity_id in view.rows:
            self._activity(run, activity_id, None)
        for interaction_id in view.interactions:
            self._question(run, interaction_id, None)
        run.handed = len(view.handoffs)
        run.handing = [name for name in view.handoffs if run.rows[name].open]

    def feed(self, source: object) -> None:
        """Take in one envelope of the run that was begun last. An ``Envelope`` is taken as already checked."""
        run, envelope = self.runs[-1], source if type(source) is Envelope else parse_known(source)
        seq, ended, verdict = run.view.seq, run.view.standing.ended, run.view.verdict
        run.view.feed(envelope or source)
        if run.view.seq == seq:
            return
        if envelope is None:
            self._other(run, source)
            return
        at = self._stamped(run, envelope)
        step = self._steps.get(envelope.type)
        if step is not None and (not ended or run.view.verdict is not verdict):
            step(run, envelope, at)

    def _other(self, run: _Reading, source: object) -> None:
        """A note, or what does not fit: it only says that the run went on until then."""
        try:
            self._stamped(run, parse_envelope(source))
        except BadEnvelope:
            return

    def _stamped(self, run: _Reading, envelope: Envelope) -> Moment:
        passed, walled = _milliseconds(envelope.occurred_at, run.newest), _by_the_journal(envelope)
        if run.base is None:
            run.base = run.newest = passed
            self.started_at = passed if self.started_at is None else self.started_at
            run.offset = max(passed - self.started_at, 0)
        if passed < run.newest and run.walled:  # the owner's clock is behind the journal's: it goes on from there
            run.base, run.newest = run.base - run.newest + passed, passed
        run.steady = run.steady and (walled or passed >= run.newest)
        run.newest, run.walled = max(run.newest, passed), walled
        at = run.moment()._replace(run=None) if walled else run.moment()
        self._seen(at)
        return at

    def _seen(self, at: Moment) -> None:
        self.last = at if at.ms >= self.last.ms else self.last

    # Steps.

    def _run_started(self, run: _Reading, envelope: Envelope, at: Moment) -> None:
        if run.agent is not None:
            return
        resumed_from = run.resumed_from = envelope.payload["resumed_from"]
        before = next((other for other in self.runs[:-1] if other.view.run_id == resumed_from), None)
        if before is not None:
            self._carry(before, run)
        if before is not None and before.base is not None:
            run.offset = max(run.offset, before.moment().ms)  # not earlier, whatever the wall clocks say
            at = run.moment()
            self._seen(at)
            gap = Span("gap", f"gap:{run.number}", run.view.run_id, "", "over", before.moment(), end=at)
            self._spans.append(gap)
        self._agent(run, envelope, at)

    def _carry(self, before: _Reading, run: _Reading) -> None:
        """A continuing run restates what was open: that stays one span."""
        run.carried = {f"call:{name}": span for name, span in before.rows.items() if span.open}
        run.carried |= {f"ask:{name}": span for name, span in before.questions.items() if span.open}

    def _add(self, run: _Reading, kind: SpanKind, name: str, state: str, at: Moment | None, number: str = "") -> Span:
        span_id = number or f"{kind}:{len(self._spans)}"
        self._spans.append(Span(kind, span_id, run.view.run_id, name, state, at))
        return self._spans[-1]

    def _agent(self, run: _Reading, envelope: Envelope, at: Moment) -> None:
        name = envelope.payload["agent"]
        if run.agent is None or run.agent.name != name:
            self._agent_ends(run, at)
            run.agent = self._add(run, "agent", name, "running", at)

    def _agent_ends(self, run: _Reading, at: Moment) -> None:
        if run.agent is not None:
            run.agent.state, run.agent.end = "returned", at

    def _model_started(self, run: _Reading, envelope: Envelope, at: Moment) -> None:
        response_id = envelope.payload["response_id"]
        run.responses[response_id] = self._add(run, "response", run.view.agent or "", "running", at)

    def _model_ended(self, run: _Reading, envelope: Envelope, at: Moment) -> None:
        response_id = envelope.payload["response_id"]
        if response_id not in run.responses:
            self._model_started(run, envelope, at)
            run.responses[response_id].whole = False
        span = run.responses.pop(response_id)
        span.state, span.end = _MODEL_ENDS[envelope.type], at
        span.note = envelope.payload.get("reason", envelope.payload.get("code"))
        run.uncounted.append(span)

    def _usage(self, run: _Reading, envelope: Envelope, at: Moment) -> None:
        """Counts are cumulative: what one response took is the difference, if it was the only one that ended since."""
        if len(run.uncounted) == 1:
            run.uncounted[0].tokens = tokens_between(run.counted, envelope.payload)
        run.uncounted, run.counted = [], envelope.payload

    def _tool(self, run: _Reading, envelope: Envelope, at: Moment) -> None:
        self._activity(run, envelope.payload["call_id"], at)

    def _stage(self, run: _Reading, envelope: Envelope, at: Moment) -> None:
        self._activity(run, f"stage:{envelope.payload['stage_id']}", at)

    def _handoff(self, run: _Reading, envelope: Envelope, at: Moment) -> None:
        concerned = [*run.handing, *run.view.handoffs[run.handed :]]
        for activity_id in concerned:
            self._activity(run, activity_id, at)
        run.handed = len(run.view.handoffs)
        run.handing = [name for name in concerned if run.rows[name].open]

    def _activity(self, run: _Reading, activity_id: str, at: Moment | None) -> None:
        """Give the times to what the view says of a row; None where they were pruned."""
        row = run.view.rows.get(activity_id)
        if row is None:
            return
        span = run.rows.get(activity_id) or run.carried.pop(f"call:{activity_id}", None)
        if span is None:
            kind: SpanKind = row.kind if row.kind in ("handoff", "stage") else "tool"
            span = self._add(run, kind, row.title, "", at, activity_id)
            span.above, span.whole = outer(activity_id) if kind == "tool" else None, row.open
        run.rows[activity_id] = span
        if row.state != span.state:
            span.name, span.state = row.title, row.state
            if row.state == "running":
                span.begun = at
            elif not row.open:
                span.end, span.stated_ms = at, row.duration_ms
                span.note, span.summary, span.reused = row.note, row.summary, row.reused

    def _asked(self, run: _Reading, envelope: Envelope, at: Moment) -> None:
        self._question(run, envelope.payload["interaction_id"], at)

    def _question(self, run: _Reading, interaction_id: str, at: Moment | None) -> None:
        row = run.view.interactions.get(interaction_id)
        if row is None:
            return
        span = run.questions.get(interaction_id) or run.carried.pop(f"ask:{interaction_id}", None)
        if span is None:
            span = self._add(run, "wait", row.title, "waiting", at, f"wait:{interaction_id}")
            span.above = row.call_id
        run.questions[interaction_id] = span
        if row.decision is not None and span.open:
            span.state, span.end, span.note = row.decision, at, row.actor
            span.edited = row.edited

    def _guardrail(self, run: _Reading, envelope: Envelope, at: Moment) -> None:
        span = self._add(run, "guardrail", envelope.payload["name"], "tripped", at)
        span.end, span.note = at, envelope.payload["stage"]

    def _ended(self, run: _Reading, envelope: Envelope, at: Moment) -> None:
        self._agent_ends(run, at)
        if envelope.payload["outcome"] == "succeeded":
            run.check = self._add(run, "check", "", "waiting", at)

    def _checked(self, run: _Reading, envelope: Envelope, at: Moment) -> None:
        if run.check is not None:
            run.check.name, run.check.end = envelope.payload.get("check", ""), at
            run.check.state = "accepted" if envelope.payload["ok"] else "rejected"


def _milliseconds(stamp: str, otherwise: int) -> int:
    """A stamp in milliseconds since 1970; ``otherwise`` for what is no moment, though it looks like one."""
    try:
        return (datetime.fromisoformat(stamp) - _1970) // timedelta(milliseconds=1)
    except (ValueError, TypeError):
        return otherwise


def _by_the_journal(envelope: Envelope) -> bool:
    """Whether the journal wrote it, by the wall clock of whichever node asked."""
    lost = envelope.type == "run.lost" and envelope.payload.get("reason") in (LEASE_EXPIRED, NEVER_STARTED)
    return lost or envelope.type == "run.accepted"
