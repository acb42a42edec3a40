"""The owner of a run: one task that drains the source, writes the log, and decides the ending.

It drains to the end, waits until the run's own task settled, reads the evidence, appends the ending, asks the
application's verifier, and closes the log, in this order and once each. A fault of our own never reaches user code:
draining goes on, one ERROR record names the stage, and the log ends unknown.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import Context
from dataclasses import replace
from typing import Any, Final, TypeAlias

from agents_progress import telemetry
from agents_progress.disclosure import Draft, Screen
from agents_progress.errors import AlreadyResumed, JournalError, JournalUnavailable, NotPublishable
from agents_progress.keeper import TAKEN
from agents_progress.log import RunLog
from agents_progress.outcome import Evidence, Outcome, owner_finished
from agents_progress.pausing import used
from agents_progress.payloads import CancelAnswer, CancelMode
from agents_progress.plan import Beginning, Plan
from agents_progress.sinks import feed
from agents_progress.source import Drafts, Ending, Source, Take
from agents_progress.unread import Audience
from agents_progress.verify import digest, judge, publish
from agents_progress.view import RunView

Start: TypeAlias = Callable[[], Awaitable[Source]]

_held: Final[set[asyncio.Task[None]]] = set()
"""Owner tasks, held strongly: a run goes on when its handle is dropped."""


async def settled(timeout: float | None = None) -> bool:
    """Wait for every run of the running loop to be over, verdicts and sinks included; whether all are.

    For shutdown hooks and scripts: the user's own loop ends before the application's check has answered. ``timeout`` is
    in seconds.
    """
    loop = asyncio.get_running_loop()
    here = {task for task in _held if task.get_loop() is loop}
    if not here:
        return True
    _, pending = await asyncio.wait(here, timeout=timeout)
    return not pending


class Owner:
    """Owns one run from its start to the end of its log. Belongs to the running event loop."""

    _decided: Outcome

    def __init__(self, plan: Plan, start: Start, context: Context, beginning: Beginning | None) -> None:
        self.plan = plan
        self.logger = telemetry.RunLogger(plan.run_id)
        self.view = RunView(plan.run_id, plan.language)
        self.source: Source | None = None
        self.outcome: Outcome | None = None
        self.error: BaseException | None = None
        self.ended = False
        self._start, self._beginning = start, beginning
        self._fault: str | None = None
        self._early: list[tuple[str, Drafts]] = []
        self._asked = False
        self._cancel: tuple[CancelMode, str | None] | None = None
        self._first_actor: str | None = None
        self._shutdown: asyncio.CancelledError | None = None
        self._loop = asyncio.get_running_loop()
        self.finished: asyncio.Future[Outcome] = self._loop.create_future()
        self.finished.add_done_callback(lambda future: future.cancelled() or future.exception())
        self.log = RunLog(
            plan.run_id,
            plan.journal,
            self.view,
            Screen(plan.disclosure),
            clock=plan.clock,
            coalesce=plan.coalesce,
            caps=plan.caps,
            origin=plan.origin,
            patience=plan.patience,
            logger=self.logger,
            on_fault=self.fault,
        )
        self._adopt(plan)
        self.audience = None if plan.unread is None else Audience(plan.journal, plan.run_id)
        feeds = [feed(sink, self.log, self.logger) for sink in plan.sinks]
        self._sinks = [self._loop.create_task(each, context=context) for each in feeds]
        self.task = self._loop.create_task(self._own(), context=context, name=f"agents-progress {plan.run_id}")
        _held.add(self.task)
        telemetry.count_active(self.task)
        self.task.add_done_callback(self._over)

    # What the handle asks.

    def cancel(self, mode: CancelMode, actor: str | None) -> CancelAnswer:
        """Record a cancel request and pass it on, unless the run is over or is being cancelled as firmly already."""
        if self.ended or (self.source is not None and not self.source.live):
            return "already_ended"
        if self._cancel is not None and self._cancel[0] in (mode, "immediate"):
            return "already_cancelling"
        if self.source is None:
            self._cancel = mode, actor  # the application's function has not started its run yet
            return "accepted"
        self._cancel_requested(mode, actor)
        self.source.cancel(mode)
        return "accepted"

    def emit(self, stage: str, drafts: Drafts) -> None:
        """Write drafts that come from beside the stream. After the ending they are late, and dropped."""
        if self.ended:
            self.logger.info("a late report was dropped")
        elif self.source is None:
            self._early.append((stage, drafts))  # a tool may be at work while its run is still being claimed
        else:
            self.source.flush()  # what came before is said before
            self._write(stage, drafts)

    def fault(self, stage: str, error: BaseException) -> None:
        """One ERROR record names the stage; the log will end unknown."""
        self.error = self.error or error
        if self._fault is not None:
            return
        self._fault = stage
        if self._beginning is None or not isinstance(error, TAKEN):  # else somebody answered the pause first
            self.logger.error("fault in stage %s: %s; run.error holds it", stage, type(error).__name__)

    def _cancel_requested(self, mode: CancelMode, actor: str | None) -> None:
        if self._cancel is None:
            self._first_actor = actor
        self._cancel = mode, actor
        payload = {"mode": mode} if actor is None else {"mode": mode, "actor": actor}
        self.emit("report", (("cancel.requested", payload),))

    # The task.

    async def _own(self) -> None:
        deadline = self.plan.deadline
        timer = None if deadline is None else self._loop.call_later(deadline, self.cancel, "immediate", "deadline")
        looking = self._look_for_readers()
        try:
            await self._through(self._begin)
            ending = await self._drained()
            await self._through(lambda: self._conclude(ending))
        except BaseException as error:  # noqa: BLE001 - the waiter gets it
            self._shutdown = self._shutdown or (error if isinstance(error, asyncio.CancelledError) else None)
            await self._give_up(error)
        finally:
            for each in (timer, looking):
                if each is not None:
                    each.cancel()
            if self._sinks:
                await asyncio.wait(self._sinks, timeout=self.plan.settle)
        if self._shutdown is not None:
            raise self._shutdown

    def _look_for_readers(self) -> asyncio.Task[None] | None:
        if self.audience is None or self.plan.unread is None:
            return None
        gone = self.audience.gone(self.plan.unread, lambda: self.cancel("immediate", "unread"))
        return self._loop.create_task(gone)

    async def _through(self, step: Callable[[], Awaitable[None]]) -> None:
        """Finish a step even when the owner is cancelled in it: stop the run, then repeat the step within the bound."""
        if self._shutdown is None:
            try:
                await step()
            except asyncio.CancelledError as error:
                if self.source is None:
                    raise
                self._shutdown = error
                self.source.cancel("immediate")
            else:
                return
        async with asyncio.timeout(self.plan.settle):
            await step()

    async def _begin(self) -> None:
        if self._beginning is not None and not self.log.seq:
            await self._claim(self._beginning)
        if self.source is None:
            if self.plan.given and self.plan.claim is None:
                await self._take_up()
            self.source = source = await self._start()
            if self._beginning is None:
                self.emit("translate", (self.plan.started(source.agent),))
            early, self._cancel = self._cancel, None
            source.attach(self.emit, lambda mode: self._cancel_requested(mode, None))
            for said in self._early:
                self._write(*said)
            if early is not None:
                self.cancel(*early)

    def _adopt(self, plan: Plan) -> None:
        self.plan = plan
        self.logger.task_id, self.logger.labels = plan.task_id, plan.origin.labels
        if plan.claim is not None:
            self.log.adopt(plan.claim)

    async def _take_up(self) -> None:
        """Claim a run id that the application chose: it may be reserved. One that is not ours is not recorded."""
        try:
            async with asyncio.timeout(self.plan.patience):
                self._adopt(await self.plan.claimed())
        except TimeoutError:
            self.log.fail(JournalUnavailable(f"the journal gave no answer for {self.plan.patience:g} s"))
        except Exception as error:  # noqa: BLE001 - a journal that fails must not fail the run
            self.log.fail(error)

    async def _claim(self, beginning: Beginning) -> None:
        """Claim a continuing run, once only, and write its beginning. An exclusive key is waited for, and a journal."""
        taken = AlreadyResumed(f"run {beginning.resumed_from} was continued by somebody else as {self.plan.run_id}")
        if not beginning.underway:
            try:
                self._adopt(await self.plan.claimed(wait=math.inf, patience=self.plan.patience))
            except TAKEN as error:
                raise taken from error
        self._write("translate", beginning.said_first(self.plan))
        await self.log.flush()
        if self.log.broken and not beginning.underway:
            if isinstance(self.error, TAKEN):
                raise taken
            raise self.error or JournalError(f"run {self.plan.run_id} could not be recorded, so it was not continued")
        if self.plan.pausing is not None and self.plan.pausing.shared:
            await used(self.plan.journal, beginning.resumed_from, self.logger)

    async def _drained(self) -> Ending:
        """Drain to the end, wait for the run's own task, and read the facts."""
        source, raised, drained = self.source, None, False
        assert source is not None, "begun before"
        while True:
            try:
                drained = await source.drain(self._taking(source), self.log.breathe, self.plan.settle)
                break
            except asyncio.CancelledError as error:
                if self._shutdown is not None:
                    break
                self._shutdown = error  # stop the run, then read what is left of it
                source.cancel("immediate")
            except Exception as error:  # noqa: BLE001 - how a run ends is a value
                raised, drained = error, True
                break
        settled = await source.settle(self.plan.settle if drained else 0)
        try:
            return source.conclude(drained=drained, settled=settled, raised=raised, cancelled=self._cancel is not None)
        except Exception as error:  # noqa: BLE001 - evidence that cannot be read is no evidence
            self.fault("conclude", error)
            return Ending(Evidence(drained=False), None, raised, None, False, lambda kind: ())

    def _taking(self, source: Source) -> Take:
        """What is done with each burst of events. A fault costs the event it came with, never those after it."""

        def take(burst: Sequence[Any]) -> None:
            events = iter(() if self.ended else burst)  # a source that was given up may go on
            for _ in burst:
                try:
                    for type_, payload in source.translate(events):
                        self.log.write(type_, payload)
                    return
                except Exception as error:  # noqa: BLE001 - a fault of ours must not end the user's run
                    self.fault("translate", error)

        return take

    def _write(self, stage: str, drafts: Drafts) -> None:
        try:
            for type_, payload in drafts:
                self.log.write(type_, payload)
        except Exception as error:  # noqa: BLE001 - a fault of ours must not end the user's run
            self.fault(stage, error)

    # The ending.

    async def _conclude(self, ending: Ending) -> None:
        """Decide once, append the ending, ask the verifier, close the log."""
        assert self.source is not None, "begun before"
        if not self.ended:
            self.ended = True
            self.error = ending.error or self.error
            self._decided = self._decide(ending)
        if self.outcome is None:
            self._write_ending(self._decided, await self._leave_behind())
        await self.log.flush()
        self.source.concluded()
        await self._verify()
        await self.log.close()
        self.source.release()
        if self.outcome is not None and self.log.broken:
            # What could not be recorded is not claimed either.
            self.outcome = replace(self.outcome, kind="unknown", reason="journal", verdict=None)
        if not self.finished.done() and self.outcome is not None:
            self.finished.set_result(self.outcome)
        await self.log.seal()

    def _decide(self, ending: Ending) -> Outcome:
        """How it ended, after what is said before that."""
        outcome = owner_finished(ending.evidence)
        try:
            self._write("conclude", ending.closing(outcome.kind))
            return self._completed(outcome, ending)
        except Exception as error:  # noqa: BLE001 - an ending that cannot be worded is not claimed
            self.fault("conclude", error)
            return outcome

    async def _leave_behind(self) -> dict[str, Any]:
        """Store what a pause leaves behind, before it is known as one; what the ending says of it."""
        pausing, source = self.plan.pausing, self.source
        if self._decided.kind != "paused" or self._fault or pausing is None or source is None:
            return {}
        await self.log.flush()
        return await pausing.leave(source, self.log.tenure, self.plan.patience, self.logger)

    def _write_ending(self, outcome: Outcome, left: Mapping[str, Any]) -> None:
        final: Draft | None = None
        if outcome.kind != "unknown":
            final = "run.ended", {**outcome.to_payload(asked=self._cancel is not None), **left}
        if final is not None and self._fault is None:
            self._write("disclose", (final,))
            outcome = replace(outcome, final_output=self.log.final_output)  # as published
        if self._fault is not None or final is None:
            reason = f"fault_{self._fault}" if self._fault is not None else outcome.reason or "unknown"
            outcome = replace(outcome, kind="unknown", reason=reason, final_output=None, error=None)
            self.log.write_lost(reason)
        self.outcome = outcome

    def _completed(self, outcome: Outcome, ending: Ending) -> Outcome:
        """The decided outcome with its output, failure and actor."""
        extra: dict[str, Any] = {"requested_by": self._first_actor}
        if outcome.kind == "failed":
            extra |= {"error": ending.failure, "partial": ending.partial}
        elif outcome.kind == "incomplete":
            extra["partial"] = True
        if outcome.kind == "succeeded" or outcome.completed_anyway:
            extra["output"] = ending.output
            try:
                extra["final_output"] = publish(ending.output)
            except NotPublishable as error:
                self.error = error
                self.log.write("adapter.unsupported", {"what": "output", "name": type(ending.output).__name__})
        return replace(outcome, **extra)

    async def _verify(self) -> None:
        outcome, verifier = self.outcome, self.plan.verify
        if verifier is None or outcome is None or outcome.kind != "succeeded" or outcome.final_output is None:
            return
        if self.log.broken or self._asked:
            return
        self._asked = True
        try:
            verdict = await judge(verifier, outcome.output, self.plan.verify_timeout)
        except Exception as error:  # noqa: BLE001 - no verdict is no acceptance
            self.error = error
            self.logger.error("its verifier gave no verdict: %s; run.error holds it", type(error).__name__)
            return
        payload: dict[str, Any] = {"digest": digest(outcome.final_output), "ok": verdict.ok}
        payload |= {name: value for name, value in (("check", verdict.check), ("reason", verdict.reason)) if value}
        self._write("disclose", (("app.checked", payload),))
        if self._fault is None:  # a verdict that could not be written is not claimed
            self.outcome = replace(outcome, verdict=verdict)

    async def _give_up(self, error: BaseException) -> None:
        """There was no run to own, or its ending could not be established in time."""
        self.ended = True
        self.error = self.error or error
        try:
            if self.source is None and self.log.held:
                await self._say_that_nothing_began("owner_stopped" if self._shutdown is not None else "start_failed")
        finally:
            self.log.abandon()
            if self.source is not None:
                self.source.release()
            if self.finished.done():
                pass
            elif self.source is None and not isinstance(error, asyncio.CancelledError):
                self.finished.set_exception(error)
            else:
                self.finished.set_result(Outcome("unknown", 5, Evidence(settled=False), reason="owner_stopped"))

    async def _say_that_nothing_began(self, reason: str) -> None:
        """Give back a run that was claimed, so that it is not waited for."""
        if not self.log.seq:
            self.log.write("run.accepted", {"task_id": self.plan.task_id, "title": self.plan.title})
        self.log.write_lost(reason)
        with suppress(TimeoutError):
            async with asyncio.timeout(self.plan.settle):
                await self.log.close()
                await self.log.seal()

    def _over(self, task: asyncio.Task[None]) -> None:
        """Nobody owns the run any more, in this process."""
        _held.discard(task)
        if self.finished.exception() is None:
            outcome = self.finished.result()
            telemetry.tell_end(outcome.kind, outcome.error["code"] if outcome.error else outcome.reason)
        elif self.view.standing.lost is not None:
            telemetry.tell_end("unknown", self.view.standing.lost)
