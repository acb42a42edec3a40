"""Seeing the SDK calls that a decorated function makes, without a change in its body.

`Runner.run_streamed` asks the process's default runner. On entering a scope, ours is put around whichever runner is the
default then, unless it is ours already; somebody else's is never taken away, and other libraries may swap it before,
during and after. Outside a scope every call is forwarded verbatim. The SDK's run itself is started outside the scope,
so that what its tools start is theirs.

Source: `agents.run.get_default_agent_runner`, `set_default_agent_runner`, `AgentRunner`, openai-agents 0.18 to 0.24.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from agents import RunState
from agents.lifecycle import RunHooksBase
from agents.run import AgentRunner, get_default_agent_runner, set_default_agent_runner

from agents_progress.sdk.hooks import RecordingHooks
from agents_progress.sdk.source import Carried, Reading, Slot, StreamedSource


@dataclass(slots=True)
class Scope:
    """One run of a decorated function's body, and the streamed runs it started.

    ``started`` is told of each as soon as it exists. ``carried_by(state)`` gives what the paused run behind an input
    carries, None for an input that continues none. ``run`` is the newest owned run, once there is one.
    """

    reading: Reading
    retain: bool
    run: Any = None
    started: Callable[[StreamedSource, bool], None] = lambda source, resumed: None
    carried_by: Callable[[Any], Carried | None] = lambda state: None
    sources: list[StreamedSource] = field(default_factory=list)

    def run_streamed(self, inner: Any, agent: Any, input: Any, kwargs: dict[str, Any]) -> Any:
        """Make the intercepted call with our hooks beside the user's, and remember how to repeat it."""
        carried = self.carried_by(input) if isinstance(input, RunState) else None
        source = _call(inner, agent, input, kwargs, self.reading, self.retain, carried)
        if source is None:
            return inner.run_streamed(agent, input, **kwargs)
        self.sources.append(source)
        self.started(source, carried is not None)
        return source.result

    def source_of(self, result: Any) -> StreamedSource | None:
        """The intercepted source behind a result that the body returned."""
        return next((source for source in self.sources if source.result is result), None)


_scope: ContextVar[Scope | None] = ContextVar("agents_progress_scope", default=None)
_slot: ContextVar[Slot | None] = ContextVar("agents_progress_slot", default=None)
"""Inherited by the SDK's run task, its tools and their threads: whose run they are part of."""
_installing = Lock()


@contextmanager
def entered(scope: Scope | None) -> Iterator[None]:
    """Run a piece of code inside a scope, or outside any with None.

    Set and put back by value: a generator's steps may run in different contexts, where a token would be refused.
    """
    if scope is not None:
        _install()
    before = _scope.get()
    _scope.set(scope)
    try:
        yield
    finally:
        _scope.set(before)


@contextmanager
def _within(slot: Slot) -> Iterator[None]:
    before = _slot.get()
    _slot.set(slot)
    try:
        with entered(None):
            yield
    finally:
        _slot.set(before)


def outside() -> Context:
    """A copy of the caller's context that is outside every scope, for a task of our own."""
    context = copy_context()
    context.run(_scope.set, None)
    return context


def run_here() -> Any:
    """The owned run around the calling code: of the body that is executing, or of the SDK run whose tool is."""
    scope, slot = _scope.get(), _slot.get()
    if scope is not None and scope.run is not None:
        return scope.run
    return None if slot is None else slot.run


def _install() -> None:
    with _installing:
        current = get_default_agent_runner()
        if not isinstance(current, InterceptingRunner):
            set_default_agent_runner(InterceptingRunner(current))


class InterceptingRunner(AgentRunner):
    """The default runner, which asks before each streamed call whether it is inside a scope."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def run(self, *args: Any, **kwargs: Any) -> Any:
        return await self._inner.run(*args, **kwargs)

    def run_sync(self, *args: Any, **kwargs: Any) -> Any:
        return self._inner.run_sync(*args, **kwargs)

    def run_streamed(self, starting_agent: Any, input: Any, **kwargs: Any) -> Any:
        scope = _scope.get()
        if scope is None:
            return self._inner.run_streamed(starting_agent, input, **kwargs)
        return scope.run_streamed(self._inner, starting_agent, input, kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def _call(
    inner: Any,
    agent: Any,
    input: Any,
    kwargs: dict[str, Any],
    reading: Reading,
    retain: bool,
    carried: Carried | None,
) -> StreamedSource | None:
    users = kwargs.get("hooks")
    if users is not None and not isinstance(users, RunHooksBase):
        return None  # the SDK refuses it with its own words
    hooks = RecordingHooks(users)
    slot = Slot()
    with _within(slot):
        result = inner.run_streamed(agent, input, **{**kwargs, "hooks": hooks})

    def again(state: Any, carried: Carried) -> StreamedSource:
        source = _call(inner, agent, state, kwargs, reading, retain, carried)
        assert source is not None, "the first call had valid hooks"
        return source

    return StreamedSource(result, reading, hooks=hooks, again=again, retain=retain, carried=carried, slot=slot)
