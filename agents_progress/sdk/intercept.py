"""Seeing the SDK calls that a decorated function makes, without a change in its body.

`Runner.run_streamed` and its sisters ask the process's default runner. On entering a scope, ours is put around
whichever runner is the default then, unless it is ours already; somebody else's is never taken away, and other
libraries may swap it before, during and after. A call is forwarded verbatim unless it is made inside a scope, or by a
tool of a run that is owned. The SDK's run itself is started outside the scope, so that what its tools start is theirs.

Source: `agents.run.get_default_agent_runner`, `set_default_agent_runner`, `AgentRunner`, openai-agents 0.18 to 0.24.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field
from threading import Lock
from typing import Any, TypeAlias

from agents import RunState
from agents.lifecycle import RunHooksBase
from agents.run import AgentRunner, get_default_agent_runner, set_default_agent_runner

from agents_progress.sdk import nested
from agents_progress.sdk.awaited import AwaitedSource
from agents_progress.sdk.base import Carried
from agents_progress.sdk.hooks import RecordingHooks
from agents_progress.sdk.part import Reading
from agents_progress.sdk.slots import Slot, slot_here, within
from agents_progress.sdk.source import StreamedSource
from agents_progress.sdk.states import editable
from agents_progress.unicode import name_of

Watched: TypeAlias = StreamedSource | AwaitedSource


@dataclass(slots=True)
class Scope:
    """One run of a decorated function's body, and the SDK runs it started.

    ``retain`` says that the body reads its runs itself, awaited ones too. ``started`` is told of each as soon as it
    exists, with the state that it continues from, if any; ``carried_by(state)`` gives what the paused run behind that
    state carries, if it is one of ours. ``run`` is the newest owned run, once there is one.
    """

    reading: Reading
    retain: bool
    run: Any = None
    started: Callable[[Watched, Any], None] = lambda source, state: None
    carried_by: Callable[[Any], Carried | None] = lambda state: None
    sources: list[StreamedSource] = field(default_factory=list)

    def run_streamed(self, inner: Any, agent: Any, input: Any, kwargs: dict[str, Any]) -> Any:
        """Make the intercepted call with our hooks beside the user's, and remember how to repeat it."""
        carried = self._carried(input)
        source = _streamed(inner, agent, input, kwargs, self.reading, self.retain, carried)
        self.sources.append(source)
        self.started(source, None if carried is None else input)
        return source.result

    async def run_awaited(self, inner: Any, agent: Any, input: Any, kwargs: dict[str, Any]) -> Any:
        """The same for a run that the body awaits."""
        carried = self._carried(input)
        source = _awaited(inner, agent, input, kwargs, self.reading, carried)
        self.started(source, None if carried is None else input)
        return await source.returned()

    def _carried(self, input: Any) -> Carried | None:
        return self.carried_by(input) if isinstance(input, RunState) else None

    def source_of(self, result: Any) -> StreamedSource | None:
        """The intercepted source behind a result that the body returned."""
        return next((source for source in self.sources if source.result is result), None)


class Recalled(BaseException):
    """Carries the call of a function's body out of it, with nothing executed. No ``except Exception`` stops it."""

    def __init__(self, inner: Any, agent: Any, kwargs: dict[str, Any]) -> None:
        super().__init__("a call that is only looked at")
        self.agent = agent
        self.context = kwargs.get("context")
        self._made = inner, agent, kwargs

    def change_context(self, context: Any) -> None:
        """Have the call made with another context than the body gave."""
        inner, agent, kwargs = self._made
        self.context, self._made = context, (inner, agent, {**kwargs, "context": context})

    def go_on(self, state: Any, reading: Reading, carried: Carried) -> StreamedSource:
        """Make the call with the state of a paused run as its input."""
        inner, agent, kwargs = self._made
        return _streamed(inner, agent, state, _going_on(kwargs), reading, retain=False, carried=carried)


class Recalling(Scope):
    """A call of a body that is made to learn with what agent and options it starts its run, and that starts none."""

    def run_streamed(self, inner: Any, agent: Any, input: Any, kwargs: dict[str, Any]) -> Any:
        raise Recalled(inner, agent, kwargs)


_scope: ContextVar[Scope | None] = ContextVar("agents_progress_scope", default=None)
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


def outside() -> Context:
    """A copy of the caller's context that is outside every scope, for a task of our own."""
    context = copy_context()
    context.run(_scope.set, None)
    return context


def run_here() -> Any:
    """The owned run around the calling code: of the body that is executing, or of the SDK run whose tool is."""
    scope, slot = _scope.get(), slot_here()
    if scope is not None and scope.run is not None:
        return scope.run
    return None if slot is None else slot.run


def _install() -> None:
    with _installing:
        current = get_default_agent_runner()
        if not isinstance(current, InterceptingRunner):
            set_default_agent_runner(InterceptingRunner(current))


class InterceptingRunner(AgentRunner):
    """The default runner, which asks before each call whether it is inside a scope or inside a tool of an owned run."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def run(self, starting_agent: Any, input: Any, **kwargs: Any) -> Any:
        scope = _scope.get()
        if not _readable(kwargs) or (scope is not None and not scope.retain):
            return await self._inner.run(starting_agent, input, **kwargs)
        if scope is not None:
            return await scope.run_awaited(self._inner, starting_agent, input, kwargs)
        return await nested.run(self._inner, starting_agent, input, kwargs)

    def run_sync(self, starting_agent: Any, input: Any, **kwargs: Any) -> Any:
        scope = _scope.get()
        watched = nested.call_inside(kwargs) is not None if scope is None else scope.retain
        if not watched or type(self._inner).run_sync is not AgentRunner.run_sync:
            return self._inner.run_sync(starting_agent, input, **kwargs)
        # The SDK's own makes a loop and calls `run` in it: ours.
        runner = self if scope is None else _Closing(self)
        return AgentRunner.run_sync(runner, starting_agent, input, **kwargs)

    def run_streamed(self, starting_agent: Any, input: Any, **kwargs: Any) -> Any:
        scope = _scope.get()
        if not _readable(kwargs):
            return self._inner.run_streamed(starting_agent, input, **kwargs)
        if scope is not None:
            return scope.run_streamed(self._inner, starting_agent, input, kwargs)
        return nested.run_streamed(self._inner, starting_agent, input, kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


class _Closing(AgentRunner):
    """Lets a run's owner finish before the loop that `run_sync` made comes to rest."""

    def __init__(self, inner: InterceptingRunner) -> None:
        self._inner = inner

    async def run(self, starting_agent: Any, input: Any, **kwargs: Any) -> Any:
        try:
            return await self._inner.run(starting_agent, input, **kwargs)
        finally:
            scope = _scope.get()
            if scope is not None and scope.run is not None:
                await scope.run.closed()


def _readable(kwargs: Mapping[str, Any]) -> bool:
    """Whether our hooks can stand beside the user's; the SDK refuses what is no hooks object with its own words."""
    return kwargs.get("hooks") is None or isinstance(kwargs["hooks"], RunHooksBase)


def _going_on(kwargs: dict[str, Any]) -> dict[str, Any]:
    """The options with which a run goes on from its state, which has the context of its tools already. Given beside it,
    a context takes the place of what was approved, in openai-agents 0.18 (`resolve_resumed_context`).
    """
    return {**kwargs, "context": None}


def _streamed(
    inner: Any,
    agent: Any,
    input: Any,
    kwargs: dict[str, Any],
    reading: Reading,
    retain: bool,
    carried: Carried | None,
) -> StreamedSource:
    hooks = RecordingHooks(kwargs.get("hooks"))
    slot = Slot()
    with within(slot), entered(None):
        result = inner.run_streamed(agent, input, **{**kwargs, "hooks": hooks})

    def again(state: Any, carried: Carried) -> StreamedSource:
        return _streamed(inner, agent, state, _going_on(kwargs), reading, retain, carried)

    source = StreamedSource(result, reading, slot, hooks=hooks, again=again, retain=retain, carried=carried)
    source.begun_with, source.part.editable = agent, editable(kwargs)
    return source


def _awaited(
    inner: Any, agent: Any, input: Any, kwargs: dict[str, Any], reading: Reading, carried: Carried | None
) -> AwaitedSource:
    hooks = RecordingHooks(kwargs.get("hooks"))

    def again(state: Any, carried: Carried) -> AwaitedSource:
        return _awaited(inner, agent, state, _going_on(kwargs), reading, carried)

    source = AwaitedSource(name_of(agent.name), reading, hooks=hooks, again=again, carried=carried)
    source.begun_with, source.part.editable = agent, editable(kwargs)
    with within(source.slot), entered(None):
        source.begin(inner.run(agent, input, **{**kwargs, "hooks": hooks}))
    return source
