"""The run around the code that asks: what tools and bodies use to report their own progress."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from agents_progress.run import Run
from agents_progress.sdk.intercept import run_here
from agents_progress.sdk.slots import call_here, slot_here, text_here


class CurrentRun:
    """What code inside a run may say about it. Outside a run every report is accepted and goes nowhere, so that a tool
    works in a test, in a plain run, and with ``AGENTS_PROGRESS=off``.
    """

    def __init__(self, run: Run | None) -> None:
        self._run = run

    @property
    def id(self) -> str | None:
        """The run's id, None outside a run."""
        return None if self._run is None else self._run.id

    @property
    def task_id(self) -> str | None:
        """The task's id, None outside a run."""
        return None if self._run is None else self._run.task_id

    @property
    def call_id(self) -> str | None:
        """The call id of the tool whose body asks, as events name it; None outside a function tool."""
        slot = slot_here()
        return call_here() if slot is not None and slot.run is self._run else None

    @property
    def answer(self) -> str | None:
        """What the person who approved the call of the tool whose body asks answered to it: a clarification, the option
        of a choice, or a word on a recovery. None where nothing was said, and outside a function tool.
        """
        return None if self.call_id is None else text_here()

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """A stage of the work around a block of code. It is completed only when the block ends without an exception."""
        if self._run is None:
            yield
            return
        stage_id = self._run.stage_started(title)
        yield
        self._run.stage_completed(stage_id, title)

    def report(self, message: str, current: float | None = None, total: float | None = None) -> None:
        """Progress of the tool whose body asks, from the loop or from a thread. ``current`` and ``total`` are counts it
        made.
        """
        if self._run is None:
            return
        call_id = self.call_id
        if call_id is None:
            self._run.logger.warning("a progress report came from outside a function tool")
        else:
            self._run.tool_progress(call_id, message, current, total)


def current_run() -> CurrentRun:
    """The run around the calling code; one that goes nowhere when there is none."""
    return CurrentRun(run_here())
