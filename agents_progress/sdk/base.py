"""What every owned SDK run has in common, streamed or not: its reading, its questions, and the facts of its ending.

Source of the facts: `RunResultBase`, openai-agents 0.18 to 0.24, as measured on 190 situations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

from agents.exceptions import MaxTurnsExceeded

from agents_progress.answers import Edit, Reply
from agents_progress.disclosure import Draft
from agents_progress.outcome import Evidence, Raised, ResponseQuality
from agents_progress.payloads import Failure
from agents_progress.sdk import compat
from agents_progress.sdk.calls import Call
from agents_progress.sdk.failures import code_of, code_of_response, failure
from agents_progress.sdk.hooks import RecordingHooks
from agents_progress.sdk.origins import origin_of
from agents_progress.sdk.part import Part, Reading
from agents_progress.sdk.questions import Question, Questions, Taken
from agents_progress.sdk.slots import Slot
from agents_progress.sdk.states import edited, stored, taken
from agents_progress.unicode import name_of


@dataclass(slots=True)
class Carried:
    """What a paused run hands to the run that continues it; ``calls`` are by the call they are inside."""

    calls: dict[str, list[Call]] = field(default_factory=dict)
    questions: list[Question] = field(default_factory=list)
    asked: int = 0


S = TypeVar("S", bound="SDKSource[Any]")


class SDKSource(Generic[S]):
    """One run of the SDK. ``hooks`` is None when the call was not intercepted: then no tool start can be seen.

    ``again`` repeats the intercepted call with another input, and gives the new source; ``begun_with`` is the agent of
    that call.
    """

    result: Any = None
    begun_with: Any = None

    def __init__(
        self,
        agent: str,
        reading: Reading,
        *,
        hooks: RecordingHooks | None,
        again: Callable[[Any, Carried], S] | None,
        carried: Carried | None,
        slot: Slot,
    ) -> None:
        self.part = slot.part = Part(agent, reading, hooked=hooks is not None)
        self.slot = slot
        self.translate = self.part.translator.translate
        self.part.translator.calls.refused = self._refused
        self._hooks = hooks
        self._again = again
        self._questions = Questions(
            reading.title_of, reading.approve_blind, reading.expires_at, reading.kinds, reading.choices
        )
        if carried is not None:
            self.part.carried = carried.calls
            list(self.part.translator.calls.restate(carried.calls.get("", [])))
            self._questions.open, self._questions.asked = list(carried.questions), carried.asked

    @property
    def agent(self) -> str:
        return self.part.translator.agent

    @property
    def repeatable(self) -> bool:
        return self._again is not None

    @property
    def questions(self) -> Mapping[str, Question]:
        return {question.interaction_id: question for question in self._questions.open}

    # Pauses.

    def restated(self) -> Iterator[Draft]:
        yield from self.part.restated()
        for question in self._questions.open:
            yield question.wait()

    def carried(self) -> Carried:
        """What the continuing run must know."""
        return Carried(self.part.waiting(), list(self._questions.open), self._questions.asked)

    def left(self) -> Mapping[str, Any]:
        from agents_progress.sdk.keeping import left  # which needs the words of this module

        left_behind = left(self.result.to_state(), self.carried())
        context, as_json = self.result.context_wrapper.context, self.part.reading.context_json
        return left_behind if as_json is None or context is None else left_behind | {"context": dict(as_json(context))}

    def decided(self, state: Any) -> dict[str, bool]:
        """The decisions in the state with which the user's own code continues the run."""
        found: dict[str, bool] = {}
        for question in self._questions.open:
            if question.raw_id is not None:
                answer = compat.decision(state, question.item, question.tool, question.raw_id)
                if answer is not None:
                    found[question.interaction_id] = answer
        return found

    def rejected(self, decisions: Mapping[str, bool]) -> None:
        """Remember which waiting calls were rejected, so that their output item is not taken for a result."""
        for question in self._questions.open:
            if decisions.get(question.interaction_id) is False and question.call_id is not None:
                self.part.translator.calls.rejected.add(question.call_id)

    def replied(self, replies: Mapping[str, Reply]) -> None:
        """Remember what people answered to the calls that this run goes on with."""
        self.rejected({name: reply.approved for name, reply in replies.items()})
        for question in self._questions.open:
            reply = replies.get(question.interaction_id)
            if reply is not None and reply.text is not None and question.call_id is not None:
                self.part.texts[question.call_id] = reply.text

    async def repeat(self, replies: Mapping[str, Reply], edits: Mapping[str, Edit]) -> S:
        assert self._again is not None, "asked for before"
        state, carried = self.result.to_state(), self.carried()
        if edits:
            context = self.result.context_wrapper.context
            state, carried = await edited(stored(state), carried, edits, self.begun_with, context)
        decide(state, carried, replies)
        source = self._again(state, carried)
        source.replied(replies)
        return source

    # Facts of the ending.

    def _refused(self, tool: str, raw_id: Any) -> bool:
        return self.result is not None and refused(self.result, tool, raw_id)

    def _response_quality(self) -> ResponseQuality:
        refusal = self.part.translator.refusal
        if refusal is not None and self.result is not None and self.result.final_output in ("", refusal):
            return "refused"
        return self.part.translator.last_quality

    def _failure(self, error: BaseException | None, evidence: Evidence) -> Failure:
        found = self._named_failure(error, evidence)
        self.part.observer.run_failed(error, found["code"])
        return found

    def _named_failure(self, error: BaseException | None, evidence: Evidence) -> Failure:
        response_code = self.part.translator.last_code if evidence.last_response_event == "failed" else None
        if error is not None:
            hooks = self._hooks
            raised_by_hook = hooks is not None and hooks.raised is not None and _among(hooks.raised, error)
            return failure(code_of(error, response_code, from_hook=raised_by_hook))
        if evidence.guardrail_tripped:
            return failure("input_guardrail")
        if evidence.response == "refused":
            return failure("refusal")
        return failure(code_of_response(response_code))

    def _closing(self, error: BaseException | None, kind: str) -> Iterator[Draft]:
        for stage, name in dict.fromkeys([*self._tripped(), *_tripwire(error)]):
            yield "guardrail.tripped", {"stage": stage, "name": name_of(name)[:128]}
        yield from self.part.closed(kind)
        if kind == "paused":
            state = _stored_or_none(self.result)

            def taken_by(item: Any, call_id: str | None) -> Taken:
                return taken(item, state) if call_id is not None and self.part.may_edit(call_id) else None

            yield from self._questions.ask(self.result.interruptions, self.part.call_waiting, taken_by)

    def _tripped(self) -> Iterator[tuple[str, str]]:
        for stage in ("input", "output"):
            for item in getattr(self.result, f"{stage}_guardrail_results", ()):
                if item.output.tripwire_triggered:
                    yield stage, item.guardrail.get_name()


def decide(state: Any, carried: Carried, replies: Mapping[str, Reply]) -> None:
    """Tell a state what was decided. A reason for a refusal is what the model gets as the tool's result."""
    for question in carried.questions:
        reply = replies.get(question.interaction_id)
        if reply is not None and reply.approved:
            state.approve(question.item)
        elif reply is not None:
            state.reject(question.item, rejection_message=reply.reason)


def _stored_or_none(result: Any) -> Any:
    """The state of a paused run as JSON, None when the SDK cannot write it."""
    try:
        return stored(result.to_state())
    except Exception:  # noqa: BLE001 - then its calls cannot be edited
        return None


TRIPWIRES: Final[Mapping[str, str]] = {
    "InputGuardrailTripwireTriggered": "input",
    "OutputGuardrailTripwireTriggered": "output",
    "ToolInputGuardrailTripwireTriggered": "tool_input",
    "ToolOutputGuardrailTripwireTriggered": "tool_output",
}
"""Exception of `agents.exceptions` to the stage of the guardrail that it names."""


def _tripwire(error: BaseException | None) -> Iterator[tuple[str, str]]:
    """The guardrail that an exception names, for results that do not hold it (those of tools, and of awaited runs)."""
    stage = TRIPWIRES.get(type(error).__name__)
    if stage is not None:
        held: Any = getattr(error, "guardrail_result", error)
        yield stage, held.guardrail.get_name()


def refused(result: Any, tool: str, raw_id: Any) -> bool:
    """Whether an approval, asked now or given for always, refused a call."""
    return isinstance(raw_id, str) and result.context_wrapper.is_tool_approved(tool, raw_id) is False


def raised_as(error: BaseException | None) -> Raised:
    """What kind of exception, if any, ended a run."""
    if error is None:
        return "nothing"
    # The same class may come from a run of the application's own, in a guardrail or a session.
    return "max_turns" if isinstance(error, MaxTurnsExceeded) and origin_of(error) is None else "other"


def _among(wanted: BaseException, error: BaseException | None) -> bool:
    """Whether an exception is another one or among its causes: the SDK wraps what a tool hook raises."""
    while error is not None:
        if error is wanted:
            return True
        error = error.__cause__ or error.__context__
    return False
