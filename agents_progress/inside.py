"""``@progress.inside``: functions that consume SDK streams themselves, watched without a change for them or their
callers.
"""

from __future__ import annotations

import functools
import inspect
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

from agents_progress.claim import next_run_id
from agents_progress.errors import NotDecoratable
from agents_progress.options import Options, switched_off
from agents_progress.plan import Beginning
from agents_progress.run import Run
from agents_progress.sdk import compat
from agents_progress.sdk.base import Carried, SDKSource
from agents_progress.sdk.intercept import Scope, Watched, entered, outside
from agents_progress.source import Source

logger = logging.getLogger("agents_progress")


class Body:
    """One call of the function: a task. Its top-level runs are attempts 1, 2, ... or continue one another."""

    def __init__(self, options: Options, function: Callable[..., Any]) -> None:
        self._options = options
        self._function = function
        self._journal = options.new_journal()
        self._first_id = options.run_id or options.clock.new_id()
        self._runs: list[Run] = []
        self.scope = Scope(options.reading, retain=True, started=self._started, carried_by=self._carried)

    def _started(self, source: Watched, state: Any) -> None:
        before = None if state is None else self._paused()
        run_id = next_run_id(before.id) if before else self._first_id if not self._runs else None
        plan = self._options.plan(
            self._function,
            run_id=run_id or self._options.clock.new_id(),
            task_id=self._options.task_id or self._first_id,
            journal=self._journal,
            attempt=len(self._runs) + 1,
        )

        async def start() -> Source:
            return source

        run = Run(plan, start, outside(), _beginning(before, source, state))
        source.belongs_to(run)
        if before is not None:
            before.continued = run
        self._runs.append(run)
        self.scope.run = run

    def _paused(self) -> Run | None:
        paused = (run for run in reversed(self._runs) if run.continued is None and run.outcome is not None)
        return next((run for run in paused if run.outcome and run.outcome.kind == "paused"), None)

    def _carried(self, state: Any) -> Carried | None:
        before = self._paused()
        return before.source.carried() if before and isinstance(before.source, SDKSource) else None

    def warn_if_unseen(self) -> None:
        """Say once a call that nothing was watched."""
        if not self._runs:
            logger.warning("agents_progress: %s started no run; nothing was recorded for it", self._function.__name__)


def _beginning(before: Run | None, source: Watched, state: Any) -> Beginning | None:
    if before is None or not isinstance(before.source, SDKSource):
        return None
    decisions = before.source.decided(state)
    source.rejected(decisions)
    words = {name: "approved" if approved else "rejected" for name, approved in decisions.items()}
    return Beginning(before.id, source.agent, tuple(before.source.restated()), words, underway=True)


def inside(function: Any, options: Options) -> Any:
    """Wrap a function; see :meth:`agents_progress.decorate.Progress.inside`."""
    if inspect.isgeneratorfunction(function):
        raise NotDecoratable(
            f"{function.__name__} is a synchronous generator, which cannot wait for a run; make it an async generator"
        )
    if not callable(function):
        raise NotDecoratable(f"@progress.inside takes a function, not {type(function).__name__}")
    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        def generator(*args: Any, **kwargs: Any) -> Any:
            return _begin(function, options, args, kwargs, _steps)

        return generator
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def coroutine(*args: Any, **kwargs: Any) -> Any:
            return await _begin(function, options, args, kwargs, _awaited)

        return coroutine

    @functools.wraps(function)
    def plain(*args: Any, **kwargs: Any) -> Any:
        return _begin(function, options, args, kwargs, _whatever)

    return plain


def _begin(
    function: Callable[..., Any],
    options: Options,
    args: Any,
    kwargs: Any,
    go_on: Callable[[Body, Any], Any],
) -> Any:
    if switched_off():
        return function(*args, **kwargs)
    compat.require_supported()
    body = Body(options, function)
    with entered(body.scope):
        returned = function(*args, **kwargs)
    return go_on(body, returned)


def _whatever(body: Body, returned: Any) -> Any:
    """A plain function may still hand out something that works later."""
    if inspect.isasyncgen(returned):
        return _steps(body, returned)
    if inspect.iscoroutine(returned):
        return _awaited(body, returned)
    body.warn_if_unseen()
    return returned


async def _awaited(body: Body, returned: Awaitable[Any]) -> Any:
    with entered(body.scope):
        try:
            return await returned
        finally:
            body.warn_if_unseen()


async def _steps(body: Body, generator: AsyncGenerator[Any, Any]) -> AsyncGenerator[Any, Any]:
    """Drive the user's generator step by step, with the scope set only while a step of it runs, in whichever task takes
    it.
    """
    step, argument = generator.asend, None
    try:
        while True:
            with entered(body.scope):
                try:
                    item = await step(argument)
                except StopAsyncIteration:
                    return
            try:
                argument, step = (yield item), generator.asend
            except GeneratorExit:
                with entered(body.scope):
                    await generator.aclose()
                raise
            except BaseException as error:  # noqa: BLE001 - thrown into the generator, whose own it is
                argument, step = error, generator.athrow
    finally:
        body.warn_if_unseen()
