"""An SDK run that the user's code awaits, `Runner.run` or `Runner.run_sync`, as a source: hooks and the result's facts,
no deltas.

Source of the facts: `RunResult`, openai-agents 0.18 to 0.24.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from agents_progress.outcome import Evidence
from agents_progress.payloads import CancelMode
from agents_progress.sdk.base import Carried, SDKSource, raised_as
from agents_progress.sdk.hooks import RecordingHooks
from agents_progress.sdk.part import Reading
from agents_progress.sdk.slots import Slot
from agents_progress.sdk.unstreamed import Unstreamed
from agents_progress.source import Emit, Ending, Take


class AwaitedSource(SDKSource["AwaitedSource"]):
    """One call of `Runner.run`, in a task of its own, so that it can be cancelled without its caller."""

    def __init__(
        self,
        agent: str,
        reading: Reading,
        *,
        hooks: RecordingHooks,
        again: Callable[[Any, Carried], AwaitedSource],
        carried: Carried | None = None,
    ) -> None:
        super().__init__(agent, reading, hooks=hooks, again=again, carried=carried, slot=Slot())
        self._told = Unstreamed(self.part)
        self._loop = asyncio.get_running_loop()
        self._task: asyncio.Future[Any] = self._loop.create_future()  # until it is started
        self._given_up: asyncio.Future[None] = self._loop.create_future()
        self._concluded: asyncio.Future[None] = self._loop.create_future()
        self._after_turn = False
        self._bound = 0.0
        hooks.attach(self._hook)

    def begin(self, call: Coroutine[Any, Any, Any]) -> None:
        """Start the SDK's call."""
        self._task = self._loop.create_task(call)

    async def returned(self) -> Any:
        """What the call returns or raises, as the SDK alone does, after the run's ending is recorded.

        A caller that is cancelled cancels the run, and does not wait for its record.
        """
        try:
            answer = await self._task
        except asyncio.CancelledError:
            if self._task.cancelled() and not _cancelling():
                await asyncio.shield(self._concluded)  # the run was cancelled, not its caller
            raise
        except Exception:
            await asyncio.shield(self._concluded)
            raise
        await asyncio.shield(self._concluded)
        return answer

    # What the owner asks.

    @property
    def live(self) -> bool:
        return not self._task.done()

    def belongs_to(self, run: object) -> None:
        self.slot.run = run

    def attach(self, emit: Emit, cancel_seen: Callable[[CancelMode], None]) -> None:
        self.part.attach(emit)

    async def drain(self, take: Take, breathe: Callable[[], None], bound: float) -> bool:
        self._bound = bound
        await asyncio.wait({self._task, self._given_up}, return_when=asyncio.FIRST_COMPLETED)
        if not self._task.done():
            return False
        if not self._task.cancelled():
            self.result = self._task.result()
        return True

    def flush(self) -> None:
        """Nothing waits: hooks are told as they are called."""

    def cancel(self, mode: CancelMode) -> None:
        if mode == "after_turn":
            self._after_turn = True
            return
        self._task.cancel()
        self._loop.call_later(self._bound, self._give_up)

    async def settle(self, timeout: float) -> bool:
        if self.live:
            await asyncio.wait({self._task}, timeout=timeout)
        return not self.live

    def conclude(self, *, drained: bool, settled: bool, raised: BaseException | None, cancelled: bool) -> Ending:
        result, translator = self.result, self.part.translator
        over = result if result is not None else getattr(raised, "run_data", None)
        closing = list(self._told.items(getattr(over, "new_items", None) or ()))
        output = None if result is None else result.final_output
        guardrails = getattr(over, "input_guardrail_results", None) or ()
        evidence = Evidence(
            raised=raised_as(raised),
            last_response_event=translator.last_event,
            guardrail_tripped=any(item.output.tripwire_triggered for item in guardrails),
            drained=drained,
            settled=settled,
            is_complete=self._task.done(),
            interrupted=result is not None and bool(result.interruptions),
            cancel_requested=cancelled,
            task_cancelled=self._task.done() and self._task.cancelled(),
            has_output=result is not None and (self.part.observer.agent_ended or output is not None),
            response=self._response_quality(),
        )
        return Ending(
            evidence=evidence,
            output=output,
            error=raised,
            failure=self._failure(raised, evidence),
            partial=translator.last_event != "completed",
            closing=lambda kind: [*closing, *self._closing(raised, kind)],
        )

    def concluded(self) -> None:
        if not self._concluded.done():
            self._concluded.set_result(None)

    def release(self) -> None:
        if self._hooks is not None:
            self._hooks.detach()
        self.concluded()

    def _hook(self, name: str, args: tuple[Any, ...]) -> None:
        if name == "on_llm_start" and self._after_turn:
            self._task.cancel()  # the turn before is over, and this one has not begun
        self.part.say("observe", self._told.observe(name, args))

    def _give_up(self) -> None:
        if not self._given_up.done():
            self._given_up.set_result(None)


def _cancelling() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
