"""Run: the handle of one run. Await it, iterate it, look at its view, cancel it, answer its questions."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Generator, Mapping, Sequence
from contextvars import Context
from itertools import count
from math import isfinite
from types import TracebackType
from typing import Any, Self

from agents_progress.answers import Edit, Reply, by_question, edits_of, refuse
from agents_progress.claim import next_run_id
from agents_progress.control import controlled
from agents_progress.errors import (
    AlreadyResumed,
    AnswerNotUsed,
    NotPaused,
    NotRepeatable,
    UnknownInteraction,
    UsageError,
    WrongLoop,
)
from agents_progress.events import Envelope
from agents_progress.outcome import Outcome
from agents_progress.owner import Owner, Start
from agents_progress.pausing import expired
from agents_progress.payloads import CancelAnswer, CancelMode, Decision
from agents_progress.plan import Beginning, Plan
from agents_progress.source import CancelledPause, Drafts, Source
from agents_progress.telemetry import RunLogger
from agents_progress.unicode import name_of, valid
from agents_progress.view import RunView


class Run:
    """One run: awaitable for its :class:`Outcome`, iterable for its envelopes, usable with ``async with``.

    A run starts with the call that makes it and goes on whether or not anybody reads. It belongs to the event loop it
    was made in; touching it from elsewhere raises :exc:`WrongLoop`.
    """

    def __init__(self, plan: Plan, start: Start, context: Context, beginning: Beginning | None = None) -> None:
        self.id = plan.run_id
        self.continued: Run | None = None
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._stages = count(1)
        self._owner = Owner(plan, start, context, beginning)
        if plan.shared:
            controlled(self, plan.journal, () if plan.claim is None else plan.claim.asked, self._owner.finished)

    def __repr__(self) -> str:
        return f"<Run {self.id} {self.view.status}>"

    # What is known.

    @property
    def task_id(self) -> str:
        """The task that this run is a part of."""
        return self._owner.plan.task_id

    @property
    def plan(self) -> Plan:
        """What was decided about the run before it began."""
        return self._owner.plan

    @property
    def view(self) -> RunView:
        """The display state, as far as the journal has it."""
        return self._owner.view

    @property
    def outcome(self) -> Outcome | None:
        """How the run ended, None until it has. Its verdict comes with the application's check."""
        return self._owner.outcome

    @property
    def source(self) -> Source | None:
        """What is being drained, None until the application's function has started it."""
        return self._owner.source

    @property
    def result(self) -> Any:
        """The SDK's own result, None until there is one. Never leaves the process."""
        return None if self._owner.source is None else self._owner.source.result

    @property
    def error(self) -> BaseException | None:
        """The real exception behind a failed run, or the journal's or the verifier's. Never leaves the process."""
        return self._owner.error

    @property
    def logger(self) -> RunLogger:
        """Writes log records that carry the ids of this run, its task and its trace."""
        return self._owner.logger

    # Waiting and reading.

    def __await__(self) -> Generator[Any, None, Outcome]:
        """The outcome, once the log is closed. A cancelled waiter leaves the run alone; a failed run is a value.

        Raises what the application's own function raised before there was a run, and :exc:`AlreadyResumed`.
        """
        self._same_loop()
        return asyncio.shield(self._owner.finished).__await__()

    def __aiter__(self) -> AsyncIterator[Envelope]:
        """Every envelope from the first, until the log is closed. Any number of readers may do this, at any time."""
        self._same_loop()
        envelopes, audience = self._owner.log.read(), self._owner.audience
        return envelopes if audience is None else audience.reading(envelopes)

    async def __aenter__(self) -> Self:
        self._same_loop()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is not None:
            self.cancel(actor="application")
        await self

    async def closed(self) -> None:
        """Wait until the owner let go of everything, sinks included. Scripts that end their loop want this after the
        outcome.
        """
        self._same_loop()
        await asyncio.wait({self._owner.task})

    # Steering.

    def cancel(self, mode: CancelMode = "immediate", actor: str | None = None) -> CancelAnswer:
        """Ask the run to stop. Idempotent; says what became of the request, never that the run has stopped.

        ``immediate`` stops now, ``after_turn`` after the current turn. On a paused run the pause is cancelled.
        ``actor`` is who asks.
        """
        self._same_loop()
        actor = None if actor is None else name_of(actor)
        if self.continued is not None:
            return self.continued.cancel(mode, actor)
        if self.outcome is not None and self.outcome.kind == "paused" and self.source is not None:
            return self._cancel_pause(self.source, actor)
        return self._owner.cancel(mode, actor)

    def resume(
        self,
        approve: str | Sequence[str] = (),
        reject: str | Sequence[str] = (),
        actor: str | Mapping[str, str] | None = None,
        *,
        arguments: Mapping[str, Mapping[str, Any]] | None = None,
        text: str | Mapping[str, str] | None = None,
        reason: str | Mapping[str, str] | None = None,
    ) -> Run:
        """Answer a paused run's questions, and continue it as a new run of the same task.

        ``approve`` and ``reject`` take interaction ids, or ``"all"``; ``actor`` is who decides, or who decides each.
        Undecided questions stay open: the new run pauses for them again. ``arguments``, by interaction id, are what is
        approved in the place of the arguments that were asked about. ``text`` answers a question whose kind takes one;
        its tool reads it as ``current_run().answer``. It is that of the one question that is decided, or of each by its
        id. ``reason`` is why, of all or of each: the model gets that of a rejection as the tool's result. Neither is in
        an event.

        Raises :exc:`NotPaused`, :exc:`NotRepeatable`, :exc:`UnknownInteraction`, :exc:`AnswerNotUsed` for an expired
        question, an actor who may not answer and what the answer may not carry, and :exc:`AlreadyResumed` when this run
        was continued before. When another process was first, awaiting the new run raises it, and nothing was executed.
        """
        self._same_loop()
        source = self._paused()
        if not source.repeatable:
            raise NotRepeatable(f"run {self.id} was followed, not started here; decorate its function to resume it")
        replies = replies_on(source.questions, approve, reject, actor, arguments, text, reason)
        self._refuse_answer(source, replies)
        edits = edits_of(source.questions, replies)

        async def start() -> Source:
            again = await source.repeat(replies, edits)
            again.belongs_to(self.continued)
            return again

        return self._continue(start, beginning_of(self.id, source.agent, source.restated(), replies, edits))

    # Reports from inside the run; callable from any thread.

    def stage_started(self, title: str) -> str:
        """Begin a stage and give its id."""
        stage_id = f"stage-{next(self._stages)}"
        self._report("stage.started", {"stage_id": stage_id, "title": title})
        return stage_id

    def stage_completed(self, stage_id: str, title: str) -> None:
        """End a stage."""
        self._report("stage.completed", {"stage_id": stage_id, "title": title})

    def tool_progress(
        self, call_id: str, message: str, current: float | None = None, total: float | None = None
    ) -> None:
        """What a tool says of itself; counts only what it counted."""
        payload = {"call_id": call_id, "message": message, "current": current, "total": total}
        self._report("tool.progress", payload)

    def _report(self, type_: str, payload: dict[str, Any]) -> None:
        drafts = ((type_, {name: _publishable(value) for name, value in payload.items()}),)
        if _running_loop() is self._loop:
            self._owner.emit("report", drafts)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._owner.emit, "report", drafts)

    # Pauses.

    def _paused(self) -> Source:
        if self.continued is not None:
            raise AlreadyResumed(f"run {self.id} was continued as {self.continued.id}; follow that one")
        if self.source is None or self.outcome is None or self.outcome.kind != "paused":
            raise NotPaused(f"run {self.id} is {self.view.status}; only a paused run can be answered")
        return self.source

    def _continue(self, start: Start, beginning: Beginning) -> Run:
        plan = self._owner.plan.continued(next_run_id(self.id))
        self.continued = Run(plan, start, self._context, beginning)
        return self.continued

    def _refuse_answer(self, source: Source, replies: Mapping[str, Reply]) -> None:
        """Raise :exc:`AnswerNotUsed` for one that comes too late, which ends the pause, from whoever may not, or that
        carries what it may not.
        """
        plan, questions = self._owner.plan, self.view.interactions
        if any(expired(questions[name].expires_at, plan.clock.wall()) for name in source.questions):
            self._end_pause(source, "expired", None)
            raise AnswerNotUsed("expired")
        for name, reply in replies.items():
            if plan.pausing is not None:
                plan.pausing.refuse(source.questions[name].tool, reply.actor)
            refuse(source.questions[name], reply)

    def _cancel_pause(self, source: Source, actor: str | None) -> CancelAnswer:
        return self._end_pause(source, "cancelled", actor).cancel(actor=actor)

    def _end_pause(self, source: Source, decision: Decision, actor: str | None) -> Run:
        """Resolve every question without an answer, in a run that ends at once."""
        ended = CancelledPause(source.agent, tuple(source.restated()))

        async def start() -> Source:
            return ended

        words = dict.fromkeys(source.questions, decision)
        return self._continue(start, Beginning(self.id, source.agent, tuple(source.restated()), words, actor))

    def _same_loop(self) -> None:
        if _running_loop() is not self._loop:
            raise WrongLoop(
                f"run {self.id} belongs to another event loop or thread; go through loop.call_soon_threadsafe or "
                "asyncio.run_coroutine_threadsafe of the loop that started it"
            )


def _publishable(value: Any) -> Any:
    """What an application says of its own work, as JSON can carry it."""
    if isinstance(value, float) and not isfinite(value):
        return None
    return valid(value) if isinstance(value, str) else value


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def replies_on(
    questions: Collection[str],
    approve: str | Sequence[str],
    reject: str | Sequence[str],
    actor: str | Mapping[str, str] | None,
    arguments: Mapping[str, Mapping[str, Any]] | None,
    text: str | Mapping[str, str] | None,
    reason: str | Mapping[str, str] | None,
) -> dict[str, Reply]:
    """Interaction id to what was answered. Raises :exc:`UnknownInteraction` and :exc:`UsageError`."""
    decisions = _decisions_on(questions, approve, reject)
    edited = by_question("arguments", arguments, decisions)
    texts = by_question("text", text, decisions)
    reasons = reason if isinstance(reason, Mapping) else dict.fromkeys(decisions, reason)
    return {
        name: Reply(
            approved,
            actor.get(name) if isinstance(actor, Mapping) else actor,
            edited.get(name),
            valid(texts.get(name) or "") or None,
            valid(reasons.get(name) or "") or None,
        )
        for name, approved in decisions.items()
    }


def beginning_of(
    run_id: str, agent: str, drafts: Drafts, replies: Mapping[str, Reply], edits: Mapping[str, Edit]
) -> Beginning:
    """What the run says first that goes on from a paused one, on these answers."""
    return Beginning(
        run_id,
        agent,
        tuple(drafts),
        {name: reply.decision for name, reply in replies.items()},
        {name: reply.actor for name, reply in replies.items() if reply.actor is not None},
        edits=edits,
    )


def _decisions_on(
    questions: Collection[str], approve: str | Sequence[str], reject: str | Sequence[str]
) -> dict[str, bool]:
    """Interaction id to whether it is approved. Raises :exc:`UnknownInteraction` and :exc:`UsageError`."""
    decisions: dict[str, bool] = {}
    for names, decision in ((approve, True), (reject, False)):
        chosen = list(questions) if names == "all" else [names] if isinstance(names, str) else list(names)
        for name in chosen:
            if name not in questions:
                raise UnknownInteraction(f"{name} is no open question of this run; open are {', '.join(questions)}")
            if decisions.setdefault(name, decision) is not decision:
                raise UsageError(f"{name} is both approved and rejected; decide for one")
    if not decisions:
        raise UsageError(f"nothing was decided; approve or reject at least one of {', '.join(questions)}")
    return decisions
