"""A streamed SDK run as a source: its events, its hooks, and the evidence of its ending from public attributes, read
afresh.

Source of the facts: `RunResultStreaming`, openai-agents 0.18 to 0.24, as measured on 190 situations.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from agents.exceptions import MaxTurnsExceeded

from agents_progress.disclosure import Draft
from agents_progress.outcome import Evidence, Raised, ResponseQuality
from agents_progress.payloads import CancelMode, Failure
from agents_progress.sdk import compat
from agents_progress.sdk.calls import Call
from agents_progress.sdk.failures import CODES, code_of, failure
from agents_progress.sdk.hooks import RecordingHooks
from agents_progress.sdk.observe import Observer
from agents_progress.sdk.pump import Pump
from agents_progress.sdk.questions import Question, Questions
from agents_progress.sdk.tee import Tee
from agents_progress.sdk.translate import Translator
from agents_progress.source import Emit, Ending, Source, Take
from agents_progress.unicode import name_of

NUDGE_AFTER_S: Final = 0.5
"""A run task that was cancelled before its first step leaves the SDK's iterator waiting for ever; it is woken after so
long.
"""

_NO_ERROR: Final = (asyncio.CancelledError, GeneratorExit)


@dataclass(frozen=True, slots=True)
class Reading:
    """How SDK events are read: the application's titles, what an unknown item means, and the clock for durations."""

    title_of: Callable[[str], str]
    block_unknown: bool
    monotonic: Callable[[], float]


@dataclass(slots=True)
class Carried:
    """What a paused run hands to the run that continues it."""

    calls: list[Call] = field(default_factory=list)
    questions: list[Question] = field(default_factory=list)
    asked: int = 0


@dataclass(slots=True)
class Slot:
    """Where code inside an SDK run finds the run that owns it; filled as soon as there is one."""

    run: Any = None


class StreamedSource:
    """One `RunResultStreaming`. ``hooks`` is None when the call was not intercepted: then no tool start can be seen.

    ``again`` repeats the intercepted call with another input, and gives the new source. With ``retain`` SDK events wait
    for the user's own loop over the result.
    """

    def __init__(
        self,
        result: Any,
        reading: Reading,
        *,
        hooks: RecordingHooks | None = None,
        again: Callable[[Any, Carried], StreamedSource] | None = None,
        retain: bool = False,
        carried: Carried | None = None,
        slot: Slot | None = None,
    ) -> None:
        self.result = result
        self._slot = slot or Slot()
        self._hooks = hooks
        self._again = again
        self._translator = Translator(
            name_of(result.current_agent.name),
            title_of=reading.title_of,
            monotonic=reading.monotonic,
            hooked=hooks is not None,
            block_unknown=reading.block_unknown,
        )
        self.translate = self._translator.translate
        self.observer = Observer(self._translator)
        self._translator.calls.refused = self._refused
        self._questions = Questions(reading.title_of)
        if carried is not None:
            list(self._translator.calls.restate(carried.calls))
            self._questions.open, self._questions.asked = list(carried.questions), carried.asked
        self._tee = Tee(retain, self._cancel_quietly)
        self._pump = Pump(result.stream_events, self._tee)
        self._sdk_cancel: Callable[..., None] = result.cancel
        self._early_cancels: list[CancelMode] = []
        self._cancel_seen: Callable[[CancelMode], None] = self._early_cancels.append
        result.cancel = self._cancelled_by_user

    # What the owner asks.

    @property
    def agent(self) -> str:
        return self._translator.agent

    @property
    def live(self) -> bool:
        task = compat.run_task(self.result)
        return task is not None and not task.done()

    @property
    def repeatable(self) -> bool:
        return self._again is not None

    def belongs_to(self, run: object) -> None:
        self._slot.run = run
        self.result.stream_events = self._tee.stream_events

    def attach(self, emit: Emit, cancel_seen: Callable[[CancelMode], None]) -> None:
        self._cancel_seen = cancel_seen
        for mode in self._early_cancels:
            cancel_seen(mode)
        task = compat.run_task(self.result)
        if task is not None:
            task.add_done_callback(self._watch)
        if self._hooks is None:
            emit("translate", (("note.unhooked", {"why": "the run was not started inside a decorated function"}),))
        else:
            self._hooks.attach(lambda name, args: emit("observe", self.observer.observe(name, args)))

    async def drain(self, take: Take, breathe: Callable[[], None], bound: float) -> bool:
        return await self._pump.drain(take, breathe, bound)

    def flush(self) -> None:
        self._pump.flush()

    def cancel(self, mode: CancelMode) -> None:
        if mode == "immediate":
            self._tee.drop_undelivered()
            self._pump.stop()
        self._sdk_cancel(mode=mode)

    async def settle(self, timeout: float) -> bool:
        task = compat.run_task(self.result)
        if task is not None and not task.done():
            await asyncio.wait({task}, timeout=timeout)
        return not self.live

    def conclude(self, *, drained: bool, settled: bool, raised: BaseException | None, cancelled: bool) -> Ending:
        result, translator = self.result, self._translator
        error = raised if raised is not None else result.run_loop_exception
        if isinstance(error, _NO_ERROR):
            error = None
        self._tee.drained(error)
        task = compat.run_task(result)
        evidence = Evidence(
            raised=_raised(error),
            last_response_event=translator.last_event,
            guardrail_tripped=any(item.output.tripwire_triggered for item in result.input_guardrail_results),
            over_turn_limit=result.max_turns is not None and result.current_turn > result.max_turns,
            drained=drained,
            settled=settled,
            is_complete=bool(result.is_complete),
            interrupted=bool(result.interruptions),
            cancel_requested=cancelled,
            task_cancelled=task is not None and task.cancelled(),
            has_output=self.observer.agent_ended or result.final_output is not None,
            response=self._response_quality(),
            reason=str(translator.last_reason)[:128] if translator.last_reason else None,
        )
        reason = self._failure(error, evidence)
        self.observer.run_failed(error, reason["code"] if reason is not None else "")
        return Ending(
            evidence=evidence,
            output=result.final_output,
            error=error,
            failure=reason,
            partial=translator.last_event != "completed",
            closing=self._closing,
        )

    def concluded(self) -> None:
        self._tee.concluded()

    def release(self) -> None:
        for name in ("stream_events", "cancel"):
            self.result.__dict__.pop(name, None)
        if self._hooks is not None:
            self._hooks.detach()
        self._pump.release()
        self._tee.drained(None)
        self._tee.concluded()

    @property
    def questions(self) -> Mapping[str, str]:
        return {question.interaction_id: question.tool for question in self._questions.open}

    def restated(self) -> Iterator[Draft]:
        yield from self._translator.calls.restated()
        for question in self._questions.open:
            yield question.wait()

    def carried(self) -> Carried:
        """What the continuing run must know."""
        return Carried(self._translator.calls.waiting, list(self._questions.open), self._questions.asked)

    def decided(self, result: Any) -> dict[str, bool]:
        """The decisions that a continuing run, started by the user's own code, was given."""
        found = {
            question.interaction_id: result.context_wrapper.is_tool_approved(question.tool, question.raw_id)
            for question in self._questions.open
            if question.raw_id is not None
        }
        return {name: decision for name, decision in found.items() if decision is not None}

    def rejected(self, decisions: Mapping[str, bool]) -> None:
        """Remember which waiting calls were rejected, so that their output item is not taken for a result."""
        for question in self._questions.open:
            if decisions.get(question.interaction_id) is False and question.call_id is not None:
                self._translator.calls.rejected.add(question.call_id)

    def repeat(self, decisions: Mapping[str, bool]) -> Source:
        assert self._again is not None, "asked for before"
        state = self.result.to_state()
        for question in self._questions.open:
            decision = decisions.get(question.interaction_id)
            if decision is not None:
                (state.approve if decision else state.reject)(question.item)
        source = self._again(state, self.carried())
        source.rejected(decisions)
        return source

    # What happens beside the events.

    def _refused(self, tool: str, raw_id: Any) -> bool:
        """Whether an approval, asked now or given for always, refused a call."""
        return isinstance(raw_id, str) and self.result.context_wrapper.is_tool_approved(tool, raw_id) is False

    def _cancelled_by_user(self, mode: CancelMode = "immediate") -> None:
        """Stands for `result.cancel`: a cancel by the application, unless the SDK calls it because our pump was
        cancelled.
        """
        if self._pump.at_work:
            self._sdk_cancel(mode=mode)
        else:
            if self.live:
                self._cancel_seen(mode)
            self.cancel(mode)

    def _cancel_quietly(self) -> None:
        self.cancel("immediate")

    def _watch(self, task: asyncio.Task[Any]) -> None:
        if task.cancelled():
            task.get_loop().call_later(NUDGE_AFTER_S, self._nudge)

    def _nudge(self) -> None:
        if not self.result.is_complete:
            self._sdk_cancel(mode="immediate")

    # Facts of the ending.

    def _response_quality(self) -> ResponseQuality:
        refusal = self._translator.refusal
        if refusal is not None and self.result.final_output in ("", refusal):
            return "refused"
        return self._translator.last_quality

    def _failure(self, error: BaseException | None, evidence: Evidence) -> Failure | None:
        response_code = self._translator.last_code if evidence.last_response_event == "failed" else None
        if error is not None:
            raised_by_hook = (
                self._hooks is not None and self._hooks.raised is not None and _among(self._hooks.raised, error)
            )
            return failure(code_of(error, response_code, from_hook=raised_by_hook))
        if evidence.guardrail_tripped:
            return failure("input_guardrail")
        if evidence.response == "refused":
            return failure("refusal")
        return failure(response_code if response_code is not None and response_code in CODES else "model_failed")

    def _closing(self, kind: str) -> Iterator[Draft]:
        yield from self._tripped()
        yield from self._translator.run_ended(kind)
        if kind == "paused":
            yield from self._questions.ask(self.result.interruptions, self._translator.calls)

    def _tripped(self) -> Iterator[Draft]:
        for stage, results in (
            ("input", self.result.input_guardrail_results),
            ("output", self.result.output_guardrail_results),
        ):
            for item in results:
                if item.output.tripwire_triggered:
                    yield "guardrail.tripped", {"stage": stage, "name": name_of(item.guardrail.get_name())[:128]}


def _raised(error: BaseException | None) -> Raised:
    if error is None:
        return "nothing"
    return "max_turns" if isinstance(error, MaxTurnsExceeded) else "other"


def _among(wanted: BaseException, error: BaseException | None) -> bool:
    """Whether an exception is another one or among its causes: the SDK wraps what a tool hook raises."""
    while error is not None:
        if error is wanted:
            return True
        error = error.__cause__ or error.__context__
    return False
