"""One run as a UI message stream: which parts each envelope becomes, and how the stream ends.

The status is that of a :class:`~agents_progress.view.RunView` over the same envelopes, so that no stream says more than
our own displays. Measured on `ai` 6.0.326 and 7.0.173, `useChat` reads these as a normal end: a stream that simply
stops, `abort`, and `finish` with whatever reason.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, TypeAlias, cast

from agents_progress.bridges import vercel_facts as facts
from agents_progress.bridges.base import CUTS, CallNames, Cut, Event, Response, in_order, question_id, unsaid_of
from agents_progress.bridges.vercel_facts import Item, Payload
from agents_progress.bridges.vercel_parts import (
    IN_WORDS,
    Abort,
    ApprovalRequest,
    ApprovalResponse,
    ErrorPart,
    Finish,
    Major,
    Part,
    Start,
    StartStep,
    ToolDenied,
)
from agents_progress.events import Envelope
from agents_progress.messages import Language, Status
from agents_progress.rows import Activity, Interaction, Message
from agents_progress.standing import UPDATES
from agents_progress.view import RunView

REPLACED: Final[Mapping[Language, str]] = {
    "en": "A text shown here was corrected; load it again to see the right one",
    "zh": "此处显示的文本已被更正；请重新加载以查看正确内容",
}

Emitter: TypeAlias = "Callable[[VercelStream, Payload], Iterable[Part]]"
_OUTPUT: Final[Item] = ("output", "answer")
_TEXTS: Final = frozenset({"text.delta", "text.completed"})


class VercelStream:
    """A projection: see :class:`~agents_progress.bridges.base.Projection`.

    ``continues`` says that the client has the message that this run goes on with: it sent an answer of it.
    """

    def __init__(self, major: Major, language: Language = "en", *, continues: bool = False) -> None:
        self.over = False
        self.major = major
        self.language: Language = language
        self.continues = continues
        self.view = RunView("")
        self.names = CallNames("")
        self.runs: list[tuple[CallNames, RunView]] = []
        # The text that an envelope is about, as it was before: its row, whether it was open, what a client shows of it.
        self.item: Item = ("", "")
        self.message: Message | None = None
        self.was_open = False
        self.said = ""
        self._status: Status | None = None

    def join(self, view: RunView, earlier: Sequence[RunView] = ()) -> list[Event]:
        """The parts that bring a client which knows nothing to the state of this view, which is copied.

        ``earlier`` are the runs of the task that this one continues, oldest first. Texts come as one delta each.
        """
        self.view = RunView.from_snapshot(view.snapshot(), self.language)
        runs = [*earlier, self.view]
        self.runs = [(CallNames(run.run_id, runs[:place]), run) for place, run in enumerate(runs)]
        self.names = self.runs[-1][0]
        if self.view.seq == 0:
            return []
        return _events([*self._begun(), *self._replayed(), *self._standing(), *self._ended()])

    def feed(self, envelope: Envelope) -> list[Event]:
        """The parts of the next envelope; none for one that came before, or of another run."""
        if self.over:
            return []
        view, type_ = self.view, envelope.type
        seq, moved, issues, task_id = view.seq, view.standing.moved, view.standing.issues, view.task_id
        if type_ in _TEXTS:
            self.item = _item(envelope.payload)
            self.message = view.texts.get(self.item)
            self.was_open = self.message is not None and not self.message.complete
            self.said = self.message.text if self.message is not None and type_ == "text.completed" else ""
        view.feed(envelope)
        emit = EMITTERS.get(type_)
        if moved and type_ not in UPDATES and view.standing.issues is issues:  # most of a run
            return [] if emit is None or view.seq == seq else _events(emit(self, envelope.payload))
        parts: list[Part] = []
        if view.seq != seq:
            parts += self._begun() if task_id is None and view.task_id is not None else ()
            parts += () if emit is None else emit(self, envelope.payload)
        return _events([*parts, *self._standing(), *self._ended()])

    def cut(self, code: Cut) -> list[Event]:
        """An ending for a feed that cannot go on: an error, whatever was seen."""
        if self.over:
            return []
        return _events([facts.run(self.view, self.view.status, code), *self.stopped(CUTS[code][self.language])])

    # Beginning, standing, ending.

    def _begun(self) -> Iterator[Part]:
        if self.view.task_id is None or self.continues:
            yield Start(type="start")  # the message is the client's own
        else:
            yield Start(type="start", messageId=self.view.task_id)

    def _standing(self) -> Iterator[Part]:
        status = self.view.status
        if status != self._status and not self.over:
            self._status = status
            yield facts.run(self.view, status)

    def _ended(self) -> Iterator[Part]:
        status = self.view.status
        if self.view.terminal is not None and status != "checking" and not self.over:
            yield from ENDINGS.get(status, _failed)(self)
            self.over = True

    def stopped(self, sentence: str) -> Iterator[Part]:
        """The end as an error, after which a client reads nothing."""
        yield from () if self.view.terminal is not None else _closed(self.view)
        yield ErrorPart(type="error", errorText=sentence)
        self.over = True

    # What is there at a join.

    def _replayed(self) -> Iterator[Part]:
        """Everything so far, in the order in which it began."""
        view = self.view
        if view.agent is not None:
            yield facts.agent(view.agent)
        yield from self._placed()
        yield from chain.from_iterable(facts.found(*run) for run in self.runs)
        yield from () if view.usage is None else _usage(self, view.usage)
        yield from () if view.terminal is None else _output(view)
        yield from () if view.verdict is None else _check(self, view.verdict)

    def _placed(self) -> Iterator[Part]:
        """What has a place among the rest; what a later run restates stands where it began, as it is in the later one.
        Open calls stay in the last step, because what a client sends by itself depends on the calls of that one.
        """
        calls = {names(name): row for names, run in self.runs for name, row in run.rows.items()}
        asked = {name: (names, each) for names, run in self.runs for name, each in run.interactions.items()}
        is_open = False
        for names, run in self.runs:
            for each in in_order(run):
                match each:
                    case Response():
                        if not is_open:
                            yield StartStep(type="start-step")
                    case Message():
                        yield from facts.text(each)
                    case Activity(kind="handoff" | "stage"):
                        yield facts.moved(run, each)
                    case Activity(activity_id=name) if names(name) in calls:
                        row = calls.pop(names(name))
                        is_open = is_open or row.open
                        yield from _call(self, names, row)
                    case Interaction(interaction_id=name) if name in asked:
                        yield facts.question(*asked.pop(name))  # it is answered in the newest run that states it
            yield from _closed(run) if run is not self.view or run.terminal is not None else ()


def _events(parts: Iterable[Part]) -> list[Event]:
    return cast("list[Event]", parts if isinstance(parts, list) else list(parts))


def _item(payload: Payload) -> Item:
    return payload["item_id"], payload.get("channel", "answer")


# What the types of our events become. An emitter runs after the view took the envelope in; a call or a question that is
# not there then contradicted what was said before, and a client would fail for it.


def _agent(stream: VercelStream, payload: Payload) -> Iterator[Part]:
    yield facts.agent(payload["agent"])


def _model_started(stream: VercelStream, payload: Payload) -> Iterator[Part]:
    yield StartStep(type="start-step")


def _text_delta(stream: VercelStream, payload: Payload) -> list[Part]:
    item = stream.item
    part = facts.text_delta(item, payload["text"])
    if stream.was_open:
        return [part]
    begun = [facts.text_start(item), part]
    return begun if stream.message is None else [*begun, facts.text_end(item)]


def _text_completed(stream: VercelStream, payload: Payload) -> Iterator[Part]:
    """A part cannot take back a text that was wrong: the stream stops, and whoever joins again gets the right one."""
    item, said, was_open = stream.item, stream.said, stream.was_open
    text = stream.view.texts[item].text
    if not text.startswith(said):
        yield from (facts.text_end(each) for each in (item,) if was_open)
        yield from stream.stopped(REPLACED[stream.language])
        return
    rest = text[len(said) :]
    if rest and not was_open:
        yield facts.text_start(item)
    if rest:
        yield facts.text_delta(item, rest)
    if rest or was_open:
        yield facts.text_end(item)


def _requested(stream: VercelStream, payload: Payload) -> Iterator[Part]:
    for row in _row(stream, payload):
        yield from _call(stream, stream.names, row)


def _moved(stream: VercelStream, payload: Payload) -> Iterator[Part]:
    yield from (facts.tool(stream.names, row) for row in _row(stream, payload))


def _arguments(stream: VercelStream, payload: Payload) -> Iterator[Part]:
    for row in _row(stream, payload):
        if row.open:
            yield facts.tool_input(stream.names, row, row.arguments)


def _settled(stream: VercelStream, payload: Payload) -> Iterator[Part]:
    for row in _row(stream, payload):
        yield from _result(stream, stream.names, row)
        yield facts.tool(stream.names, row)


def _row(stream: VercelStream, payload: Payload) -> list[Activity]:
    row = stream.view.rows.get(payload["call_id"])
    return [] if row is None else [row]


def _call(stream: VercelStream, names: CallNames, row: Activity) -> Iterator[Part]:
    """All of a call, as far as it came."""
    yield facts.tool_input(names, row, row.arguments)
    yield from _result(stream, names, row)
    yield facts.tool(names, row)


def _result(stream: VercelStream, names: CallNames, row: Activity) -> Iterator[Part]:
    if row.state == "rejected":
        yield from _refused(stream, names(row.activity_id))
    yield from facts.tool_result(names, row, stream.language)


def _refused(stream: VercelStream, call: str) -> Iterator[Part]:
    """A denied call has an approval in the client's types, and whoever joins later never had it: it is said first."""
    asked = ((names, each) for names, run in reversed(stream.runs) for each in run.interactions.values())
    of_it = (question_id(names.run_id, each) for names, each in asked if each.call_id and names(each.call_id) == call)
    name = next(of_it, None)
    if name is not None:
        yield ApprovalRequest(type="tool-approval-request", approvalId=name, toolCallId=call)
        if stream.major >= 7:
            yield ApprovalResponse(type="tool-approval-response", approvalId=name, approved=False)
    yield ToolDenied(type="tool-output-denied", toolCallId=call)


def _handoff(stream: VercelStream, payload: Payload) -> Iterator[Part]:
    rows = [stream.view.rows[name] for name in stream.view.handoffs]
    yield from (facts.moved(stream.view, row) for row in rows if row.name == payload["to_agent"])


def _stage(stream: VercelStream, payload: Payload) -> Iterator[Part]:
    row = stream.view.rows.get(f"stage:{payload['stage_id']}")
    if row is not None:
        yield facts.moved(stream.view, row)


def _asked(stream: VercelStream, payload: Payload) -> Iterator[Part]:
    question = stream.view.interactions.get(payload["interaction_id"])
    if question is not None:
        yield facts.question(stream.names, question)


def _guardrail(stream: VercelStream, payload: Payload) -> Iterator[Part]:
    yield facts.guardrail(stream.view, len(stream.view.guardrails), payload)


def _cited(stream: VercelStream, payload: Payload) -> Iterator[Part]:
    yield facts.source(stream.view, len(stream.view.sources), payload)


def _made(stream: VercelStream, payload: Payload) -> Iterator[Part]:
    yield facts.artifact(stream.names, payload)


def _usage(stream: VercelStream, payload: Payload) -> Iterator[Part]:
    yield facts.usage(payload)


def _over(stream: VercelStream, payload: Payload) -> Iterator[Part]:
    if stream.view.terminal is payload:
        yield from _closed(stream.view)
        yield from _output(stream.view)


def _closed(view: RunView) -> Iterator[Part]:
    yield from (facts.text_end(item) for item, message in view.texts.items() if not message.complete)


def _output(view: RunView) -> Iterator[Part]:
    rest = unsaid_of(view)
    if rest:
        yield from (facts.text_start(_OUTPUT), facts.text_delta(_OUTPUT, rest), facts.text_end(_OUTPUT))


def _check(stream: VercelStream, payload: Payload) -> Iterator[Part]:
    if stream.view.verdict is payload:
        yield facts.check(payload)


EMITTERS: Final[Mapping[str, Emitter]] = {
    "run.started": _agent,
    "agent.changed": _agent,
    "model.started": _model_started,
    "text.delta": _text_delta,
    "text.completed": _text_completed,
    "tool.requested": _requested,
    "tool.arguments.completed": _arguments,
    "tool.started": _moved,
    "tool.progress": _moved,
    "tool.finished": _settled,
    "tool.failed": _settled,
    "tool.rejected": _settled,
    "tool.skipped": _settled,
    "handoff.requested": _handoff,
    "handoff.completed": _handoff,
    "approval.wait": _asked,
    "approval.resolved": _asked,
    "guardrail.tripped": _guardrail,
    "stage.started": _stage,
    "stage.completed": _stage,
    "source.cited": _cited,
    "artifact.created": _made,
    "usage.updated": _usage,
    "run.ended": _over,
    "run.lost": _over,
    "app.checked": _check,
}
"""What each type becomes, besides `start`, the `data-run` of a new status, and an ending. The others become nothing."""


# Endings.


def _done(stream: VercelStream) -> Iterator[Part]:
    yield Finish(type="finish", finishReason="stop")


def _paused(stream: VercelStream) -> Iterator[Part]:
    """Asks for what the client can answer. With none of that a `finish` would look like an end: an error says so."""
    requests = [part for each in stream.view.interactions.values() for part in _request(stream, each)]
    yield from requests
    if requests:
        yield Finish(type="finish", finishReason="tool-calls")
    else:
        yield from _failed(stream)


def _request(stream: VercelStream, question: Interaction) -> Iterator[Part]:
    """What the client can answer, asked with exactly what the question holds: by a yes or a no, or, where a text is
    needed, by the output of a call that is left to the client.
    """
    row = stream.view.rows.get(question.call_id or "")
    if row is None or not row.open or question.decision is not None or not question.approvable:
        return
    yield facts.tool_input(stream.names, row, row.arguments if question.details is None else question.details)
    if facts.wanted_of(question) not in IN_WORDS:
        name, call = question_id(stream.names.run_id, question), stream.names(row.activity_id)
        yield ApprovalRequest(type="tool-approval-request", approvalId=name, toolCallId=call)


def _cancelled(stream: VercelStream) -> Iterator[Part]:
    """`abort` for whoever reads parts, and an error because `useChat` takes no notice of it."""
    yield Abort(type="abort")
    yield from _failed(stream)


def _failed(stream: VercelStream) -> Iterator[Part]:
    yield ErrorPart(type="error", errorText=stream.view.message)


ENDINGS: Final[Mapping[Status, Callable[[VercelStream], Iterator[Part]]]] = {
    "done": _done,
    "waiting": _paused,
    "cancelled": _cancelled,
}
"""How a run that ended is told. Every other status is an error with its sentence; `checking` is no ending."""
