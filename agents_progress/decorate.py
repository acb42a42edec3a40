"""``@progress``, ``@progress.inside`` and ``follow``: three ways from existing SDK code to an owned run."""

from __future__ import annotations

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar, Unpack, overload

from agents.result import RunResultStreaming

from agents_progress.current import current_run
from agents_progress.disclosure import Screen
from agents_progress.errors import NoEventLoop, NotAStreamedResult, NotDecoratable, UsageError
from agents_progress.inside import inside
from agents_progress.interrupts import STEPS, Interrupts
from agents_progress.labels import label
from agents_progress.options import Given, Options, switched_off
from agents_progress.outcome import Outcome
from agents_progress.payloads import CancelMode, Parent
from agents_progress.plan import Plan
from agents_progress.resuming import Answered, pausing, resumable, resumed
from agents_progress.run import Run
from agents_progress.sdk import compat
from agents_progress.sdk.intercept import Scope, entered, outside
from agents_progress.sdk.source import StreamedSource
from agents_progress.source import Source

P = ParamSpec("P")
Q = ParamSpec("Q")
F = TypeVar("F", bound=Callable[..., Any])


class Decorated(Generic[P]):
    """A function that returns a streamed run, wrapped: calling it starts the run and gives its :class:`Run`."""

    def __init__(self, function: Callable[P, Any], options: Options) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._options = options

    @property
    def options(self) -> Options:
        """What was decided about its runs."""
        return self._options

    @overload
    def __get__(self, instance: None, owner: type) -> Decorated[P]: ...
    @overload
    def __get__(self: Decorated[Concatenate[Any, Q]], instance: object, owner: type | None = None) -> Decorated[Q]: ...

    def __get__(self, instance: object, owner: type | None = None) -> Decorated[...]:
        """The method of an object or of a class, bound as Python binds what was decorated."""
        bind = getattr(self._function, "__get__", None)
        bound = self._function if bind is None else bind(instance, owner)
        return self if bound is self._function else Decorated(bound, self._options)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Run:
        """Start the run in the running loop.

        A synchronous body runs within the call, so that its own exceptions keep their place. Raises :exc:`NoEventLoop`
        outside a loop and :exc:`NotAStreamedResult` when the body returns something else.
        """
        if switched_off():
            return self._function(*args, **kwargs)  # type: ignore[no-any-return]
        compat.require_supported()
        _require_loop(self._function)
        _refuse_exclusive(self._options, f"`await {_name(self._function)}.start(...)`")
        return self._begun(self._options.plan(self._function, parent=_parent()), args, kwargs)

    async def reserve(self, ttl: float) -> str:
        """Say in the journal that the run which these options describe will be started within ``ttl`` seconds, here or
        elsewhere, by :meth:`start` with the same ``run_id``; gives that id. Until then readers see it as accepted.

        Raises :exc:`AppendConflict` when the run exists, and :exc:`RunErased`.
        """
        plan = self._options.plan(self._function)
        title = Screen(plan.disclosure).mask(plan.title)  # the journal writes it as it stands
        await plan.journal.reserve(plan.run_id, ttl, task_id=plan.task_id, title=title, origin=plan.origin)
        return plan.run_id

    async def start(self, *args: P.args, **kwargs: P.kwargs) -> Run:
        """Claim the run in the journal, where it is accepted from then on, and only then start it: for jobs that may be
        delivered twice, for reserved runs and for ``exclusive``.

        With ``using(run_id=...)`` one that was reserved goes on under its task, and one that was lost is begun anew as
        the next attempt of its task. Raises :exc:`LeaseHeld` for one that has an owner, or whose exclusive key another
        run holds, :exc:`AlreadyEnded`, and :exc:`JournalUnavailable`; then nothing was executed. What the function
        itself raises is raised here too, and the run is lost (`start_failed`).
        """
        if switched_off():
            returned = self._function(*args, **kwargs)
            return await returned if inspect.isawaitable(returned) else returned  # type: ignore[no-any-return]
        compat.require_supported()
        if self._options.exclusive is not None and self._options.journal is None:
            raise UsageError("runs share an exclusive key in a journal; name it with `journal=`")
        plan = self._options.plan(self._function, parent=_parent())
        plan = await plan.claimed(wait=self._options.exclusive_wait, anew=True)
        plan = await plan.announced()
        try:
            return self._begun(plan, args, kwargs)
        except BaseException:
            await Run(plan, _nothing, outside()).closed()
            raise

    def _begun(self, plan: Plan, args: Any, kwargs: Any) -> Run:
        scope = Scope(self._options.reading, retain=False)
        plan = replace(plan, pausing=pausing(self._function, self._options, scope, args, kwargs))
        with entered(scope):
            returned = self._function(*args, **kwargs)
        if inspect.isawaitable(returned):

            async def start() -> Source:
                with entered(scope):
                    source = self._source(scope, await returned)
                source.belongs_to(run)
                return source
        else:
            source = self._source(scope, returned)

            async def start() -> Source:
                return source

        scope.run = run = Run(plan, start, outside())
        if not inspect.isawaitable(returned):
            source.belongs_to(run)
        return run

    async def resume(
        self,
        run_id: str,
        approve: str | Sequence[str] = (),
        reject: str | Sequence[str] = (),
        *,
        actor: str | Mapping[str, str] | None = None,
        digest: str | Mapping[str, str] | None = None,
        arguments: Mapping[str, Mapping[str, Any]] | None = None,
        text: str | Mapping[str, str] | None = None,
        reason: str | Mapping[str, str] | None = None,
    ) -> Run:
        """Answer the questions of a run that paused in any process, and continue it here, as :meth:`Run.resume` does.

        The run is one of this function's, in the journal that it names. ``digest`` is that of what was shown to whoever
        answers, also when they edit it: of the one question, or of each by its id. The body runs again up to its
        ``Runner.run_streamed``, which goes on from the stored state. Raises :exc:`RunNotFound`, :exc:`NotPaused`,
        :exc:`AnswerNotUsed`, :exc:`NotResumableHere`, :exc:`AlreadyResumed` and as :meth:`Run.resume` does; then
        nothing was executed, and the run still waits. When another process is first meanwhile, awaiting the new run
        raises :exc:`AlreadyResumed`.
        """
        answer = Answered(approve, reject, actor, digest, arguments, text, reason)
        return await resumed(self._function, self._options, run_id, answer)

    async def resumable(self, run_id: str) -> None:
        """Find everything that :meth:`resume` needs for a paused run, and leave it as it is. Raises what that would."""
        await resumable(self._function, self._options, run_id)

    def using(self, **options: Unpack[Given]) -> Decorated[P]:
        """The same function with what belongs to one request: ``handler.using(owner=user)(question)``.

        Takes the options of ``progress``, and keeps the others.
        """
        return Decorated(self._function, self._options.using(**options))

    def run_sync(self, *args: P.args, **kwargs: P.kwargs) -> Outcome:
        """Run to the end in an event loop of its own: the door for scripts and workers.

        With a ``run_id`` or an ``exclusive`` key it claims first, and raises as :meth:`start` does. Ctrl-C asks the run
        to stop after its turn, and a second one at once; the KeyboardInterrupt is raised when it has ended, or at the
        third. Raises :exc:`NoEventLoop` inside a running loop, where the call is awaited instead.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            pass
        else:
            raise NoEventLoop(
                f"run_sync needs a thread without a loop; write `await {_name(self._function)}(...)` here"
            )

        async def main() -> Outcome:
            claimed_first = self._options.run_id is not None or self._options.exclusive is not None
            return await _to_the_end(await self.start(*args, **kwargs) if claimed_first else self(*args, **kwargs))

        return asyncio.run(main())

    def _source(self, scope: Scope, returned: Any) -> StreamedSource:
        _refuse_other_results(returned, self._function)
        owned = scope.source_of(returned) or StreamedSource(returned, self._options.reading)
        for source in scope.sources:
            if source is not owned:
                source.release()  # a run the body made for itself stays the body's
        return owned


class Progress:
    """The decorator ``progress``; see :meth:`__call__` and :meth:`inside`."""

    @overload
    def __call__(self, function: Callable[P, Awaitable[RunResultStreaming]], /) -> Decorated[P]: ...
    @overload
    def __call__(self, function: Callable[P, RunResultStreaming], /) -> Decorated[P]: ...
    @overload
    def __call__(self, /, **options: Unpack[Given]) -> _Decorator: ...

    def __call__(self, function: Callable[..., Any] | None = None, /, **options: Unpack[Given]) -> Any:
        """Wrap a function, sync or async, that returns the result of ``Runner.run_streamed``. Its body stays as it is.
        A method will do, and so will what ``@classmethod`` or ``@staticmethod`` made, with ``@progress`` above it.

        Options, all by keyword: ``journal`` (a URL or a Journal), ``verify``, ``verify_timeout`` (seconds),
        ``disclosure``, ``approve_blind`` (names of tools whose calls a person may approve without being shown their
        details), ``keep_pauses`` (whether the journal that was named keeps what another process needs to go on with a
        paused run, inputs and outputs included; a :class:`~agents_progress.sealing.Seal` seals that), ``keep_context``
        (a pair of functions that keeps the context of the tools with it: context to JSON mapping, and back; without it
        the body makes the context anew), ``approval_ttl`` (how long a question can be answered, in seconds),
        ``approval_kinds`` (tool name to what a question about it is for, "approval" by default), ``choices`` (tool name
        to the argument that lists what a person may choose from), ``answerers`` (the only actors who may answer, or a
        function that gives them for the name of a tool, None for anybody), ``titles`` (tool name to text), ``title``
        (of the run), ``sinks`` (called with each envelope), ``coalesce``, ``caps``, ``run_id``, ``task_id``, ``owner``,
        ``tenant``, ``labels``, ``deadline``, ``settle``, ``patience`` with a journal that is away (all in seconds),
        ``unknown_items`` ("block" or "note"), ``language`` ("en" or "zh"), ``clock``; ``unread`` (a run that nobody
        iterates here, or touches in the journal, for so many seconds is cancelled; to await it is not to read it);
        ``exclusive`` (a key that one live run of a tenant holds at a time, for :meth:`Decorated.start`, which waits for
        it ``exclusive_wait`` seconds).

        Without ``verify`` a succeeded run stays `checking`: nothing is done until the application says so.
        """
        decorator = _Decorator(Options().using(**options))
        return decorator if function is None else decorator(function)

    @overload
    def inside(self, function: F, /) -> F: ...
    @overload
    def inside(self, /, **options: Unpack[Given]) -> Callable[[F], F]: ...

    def inside(self, function: Any = None, /, **options: Unpack[Given]) -> Any:
        """Wrap a coroutine, an async generator or a function that consumes SDK streams itself.

        Its signature, its SDK events, their order and its exceptions stay. Each top-level run in the body, streamed or
        awaited, is a run of one task; ``current_run()`` gives the newest. Takes the options of ``progress``.
        """
        settled = Options().using(**options)
        _refuse_exclusive(settled, "a function that returns Runner.run_streamed(...), under @progress")
        return (lambda body: inside(body, settled)) if function is None else inside(function, settled)


class _Decorator:
    """``@progress(...)`` with its options, waiting for the function."""

    def __init__(self, options: Options) -> None:
        self._options = options

    @overload
    def __call__(self, function: Callable[P, Awaitable[RunResultStreaming]], /) -> Decorated[P]: ...
    @overload
    def __call__(self, function: Callable[P, RunResultStreaming], /) -> Decorated[P]: ...

    def __call__(self, function: Callable[..., Any], /) -> Any:
        if not callable(function) and not isinstance(function, classmethod):
            raise NotDecoratable(
                f"@progress takes a function that returns Runner.run_streamed(...), not {type(function).__name__}; "
                "put it on that function, and give its options by name"
            )
        if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function):
            raise NotDecoratable(
                f"{_name(function)} is a generator; @progress takes a function that returns "
                "Runner.run_streamed(...), @progress.inside an async generator that reads the stream itself"
            )
        return Decorated(function, self._options)


async def _to_the_end(run: Run) -> Outcome:
    """The outcome of a run that nobody shows, and that the keyboard may stop."""

    def pressed(mode: CancelMode) -> None:
        run.logger.warning("%s", label(STEPS[mode], run.view.language))
        run.cancel(mode, "keyboard")

    with Interrupts(pressed) as interrupts:
        try:
            outcome = await run
        except asyncio.CancelledError:
            if not interrupts.leaving:
                run.cancel(actor="keyboard")
                await run
            raise
        finally:
            if not interrupts.leaving:
                await run.closed()
        await interrupts.pass_on()
    return outcome


progress = Progress()


def follow(result: RunResultStreaming, **options: Unpack[Given]) -> Run:
    """Own a result that was started elsewhere. Tool starts cannot be seen then; the log says so once.

    Takes the options of ``progress``. Iterate the run, not the result: the owner drains it.
    """
    compat.require_supported()
    settled = Options().using(**options)
    _require_loop(follow)
    _refuse_exclusive(settled, "a function of its own, under @progress")
    _refuse_other_results(result, follow)
    source = StreamedSource(result, settled.reading)

    async def start() -> Source:
        return source

    run = Run(settled.plan("run", parent=_parent()), start, outside())
    source.belongs_to(run)
    return run


def _parent() -> Parent | None:
    """The tool call of another run inside which this one is started."""
    around = current_run()
    run_id, call_id = around.id, around.call_id
    return None if run_id is None or call_id is None else Parent(run_id=run_id, call_id=call_id)


async def _nothing() -> Source:
    """Stands for a function that raised before there was a run."""
    raise NotAStreamedResult("the function raised; there is no run")


def _name(function: Callable[..., Any]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _refuse_exclusive(options: Options, instead: str) -> None:
    if options.exclusive is not None:
        raise UsageError(f"an exclusive run asks the journal before anything is executed; use {instead}")


def _require_loop(function: Callable[..., Any]) -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise NoEventLoop(
            f"no running event loop: call {_name(function)} inside one, "
            f"or use {_name(function)}.run_sync(...) in a script"
        ) from None


def _refuse_other_results(returned: Any, function: Callable[..., Any]) -> None:
    if isinstance(returned, RunResultStreaming):
        return
    kind = type(returned).__name__
    if kind in ("RealtimeSession", "RealtimeRunner", "VoicePipeline", "StreamedAudioResult"):
        raise NotDecoratable(
            f"{_name(function)} returned a {kind}; realtime and voice runs have no ending to decide here"
        )
    raise NotAStreamedResult(
        f"{_name(function)} returned {kind}; return the result of Runner.run_streamed(...), or use @progress.inside "
        "for a function that reads the stream itself"
    )
