"""Going on with a paused run in another process than the one that paused: from what its journal keeps of it.

Nothing is used up before everything is there: the arguments fit the function, its body starts a run, the state loads
with the agents of that run, their tools are there, and each call that waits is the one that was asked about. Only then
the run that goes on is claimed, once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from agents_progress.answers import Edit, Reply, edits_of, refuse
from agents_progress.arguments import Arguments
from agents_progress.claim import follower
from agents_progress.errors import AlreadyResumed, AnswerNotUsed, NotPaused, NotResumableHere, RunNotFound, UsageError
from agents_progress.journal.base import EVERYTHING, Journal, Origin, RunRow
from agents_progress.options import Options, switched_off
from agents_progress.pausing import Opened, Pausing, opened, refuse_actor
from agents_progress.plan import Plan
from agents_progress.run import Run, beginning_of, replies_on
from agents_progress.sdk import compat
from agents_progress.sdk.base import Carried, decide
from agents_progress.sdk.intercept import Recalled, Recalling, Scope, entered, outside
from agents_progress.sdk.keeping import loaded
from agents_progress.sdk.states import edited
from agents_progress.source import Source
from agents_progress.stored import view_of
from agents_progress.unanswered import refuse_expired
from agents_progress.view import RunView


@dataclass(frozen=True, slots=True)
class Answered:
    """What was decided: interaction ids or ``"all"``, by whom (or by whom each), the digests of what was shown, and
    what the answers carry.
    """

    approve: str | Sequence[str] = ()
    reject: str | Sequence[str] = ()
    actor: str | Mapping[str, str] | None = None
    digest: str | Mapping[str, str] | None = None
    arguments: Mapping[str, Mapping[str, Any]] | None = None
    text: str | Mapping[str, str] | None = None
    reason: str | Mapping[str, str] | None = None


def kept_as(function: Callable[..., Any]) -> str:
    """The name under which the pauses of a function are kept: without its module, which is `__main__` in one process
    and not in another.
    """
    return str(getattr(function, "__qualname__", type(function).__name__))


def pausing(function: Callable[..., Any], options: Options, scope: Scope, args: Any, kwargs: Any) -> Pausing:
    """How a call is left behind when its run pauses."""

    def arguments() -> Mapping[str, Any]:
        if len(scope.sources) != 1:
            raise UsageError("its body starts several streamed runs; leave it one")
        return _arguments_of(function).stored(args, kwargs)

    return _pausing(function, options, arguments)


def _pausing(function: Callable[..., Any], options: Options, arguments: Callable[[], Mapping[str, Any]]) -> Pausing:
    kept, shared = arguments if options.keep_pauses else None, options.journal is not None
    return Pausing(kept_as(function), kept, options.answerers, shared, options.keep_pauses)


def _arguments_of(function: Callable[..., Any]) -> Arguments:
    return Arguments(kept_as(function), inspect.unwrap(function))


@dataclass(frozen=True, slots=True)
class Loaded:
    """A paused run of which everything was found: nothing of it was used up yet."""

    call: Recalled
    state: Any
    carried: Carried
    kept: Opened
    answerers: Mapping[str, Sequence[str]]


async def resumed(function: Callable[..., Any], options: Options, run_id: str, answer: Answered) -> Run:
    """See :meth:`agents_progress.decorate.Decorated.resume`."""
    if switched_off() or options.journal is None:
        raise UsageError("a run is resumed from the journal that its function names; name it with `journal=`")
    compat.require_supported()
    journal = options.new_journal()
    row, view, later_id = await _paused(journal, run_id)
    await refuse_expired(journal, row, view, options.clock.wall())
    found = await load(function, options, journal, view)
    questions = {question.interaction_id: question for question in found.carried.questions}
    replies = replies_on(
        questions, answer.approve, answer.reject, answer.actor, answer.arguments, answer.text, answer.reason
    )
    _require_shown(found.carried, replies, answer.digest)
    arguments = found.kept.arguments
    again = _pausing(function, options, lambda: arguments)
    for name, reply in replies.items():
        refuse_actor(found.answerers.get(name), reply.actor)
        again.refuse(questions[name].tool, reply.actor)  # who might answer then, and may now
        refuse(questions[name], reply)
    if edits := edits_of(questions, replies):
        found = await _edited(run_id, found, edits)
    plan = _plan(options, function, journal, row, again).continued(later_id)
    return _going_on(plan, options, run_id, found, replies, edits)


async def resumable(function: Callable[..., Any], options: Options, run_id: str) -> None:
    """See :meth:`agents_progress.decorate.Decorated.resumable`."""
    compat.require_supported()
    journal = options.new_journal()
    _, view, _ = await _paused(journal, run_id)
    await load(function, options, journal, view)


async def load(function: Callable[..., Any], options: Options, journal: Journal, view: RunView) -> Loaded:
    """Find everything that a paused run needs to go on here. Raises :exc:`NotResumableHere`; executes nothing."""
    run_id = view.run_id
    pause = await journal.pause(run_id)
    if pause is None or not pause.body:
        raise NotResumableHere(run_id, "nothing_kept")
    if pause.function != kept_as(function):
        raise NotResumableHere(run_id, "other_function")
    kept = opened(pause, await _ending(journal, run_id, view.seq), options.keep_pauses)
    call = await _recalled(function, options, run_id, kept)
    if "context" in kept.left:
        call.change_context(_context(options, run_id, kept.left["context"]))
    state, carried = await loaded(run_id, call.agent, call.context, kept.left)
    asked = {each.interaction_id: each.digest for each in view.interactions.values() if each.decision is None}
    if asked != {question.interaction_id: question.digest for question in carried.questions}:
        raise NotResumableHere(run_id, "call_differs")
    return Loaded(call, state, carried, kept, pause.answerers)


async def _paused(journal: Journal, run_id: str) -> tuple[RunRow, RunView, str]:
    """A run that waits, and the id of the run that would go on from it."""
    row = await journal.run(run_id)
    if row is None:
        raise RunNotFound(f"there is no run {run_id}; check the id")
    if row.standing.outcome != "paused":
        raise NotPaused(f"run {run_id} is {row.status}; only a paused run can be answered")
    later_id, later = await follower(journal, run_id)
    if later is not None:
        raise AlreadyResumed(f"run {run_id} was continued as {later_id}; follow that one")
    return row, await view_of(journal, run_id, EVERYTHING), later_id


async def _ending(journal: Journal, run_id: str, seq: int) -> Mapping[str, Any]:
    """The payload of the last envelope of a paused run, whose log is closed."""
    (last,) = await journal.read(run_id, seq - 1, 1)
    return last.payload


async def _recalled(function: Callable[..., Any], options: Options, run_id: str, kept: Opened) -> Recalled:
    """The call that the body makes with the stored arguments."""
    try:
        call = _arguments_of(function).bind(kept.arguments)
    except (UsageError, ValidationError) as error:
        raise NotResumableHere(run_id, "arguments") from error
    with entered(Recalling(options.reading, retain=False)):
        try:
            returned = function(*call.args, **call.kwargs)
            if inspect.isawaitable(returned):
                await returned
        except Recalled as found:
            return found
    raise NotResumableHere(run_id, "no_call")


def _context(options: Options, run_id: str, kept: Mapping[str, Any]) -> Any:
    """The context of tools that was kept. Another one would not be what the run paused with."""
    if options.keep_context is None:
        raise NotResumableHere(run_id, "context")
    try:
        return options.keep_context[1](kept)
    except Exception as error:  # the application's own
        raise NotResumableHere(run_id, "context") from error


async def _edited(run_id: str, found: Loaded, edits: Mapping[str, Edit]) -> Loaded:
    """What was found of a paused run, with the arguments that somebody approved instead of those of its calls."""
    call, state = found.call, found.kept.left["state"]
    try:
        again, carried = await edited(state, found.carried, edits, call.agent, call.context)
    except Exception as error:
        raise NotResumableHere(run_id, "state") from error
    return replace(found, state=again, carried=carried)


def _require_shown(carried: Carried, decisions: Mapping[str, Reply], shown: str | Mapping[str, str] | None) -> None:
    """Refuse an answer that is about something else than what is asked."""
    if shown is None:
        return
    if isinstance(shown, str):
        if len(decisions) != 1:
            raise UsageError("one digest is of one question; give a mapping from interaction id to digest")
        shown = dict.fromkeys(decisions, shown)
    asked = {question.interaction_id: question.digest for question in carried.questions}
    if any(asked[name] != shown.get(name) for name in decisions):
        raise AnswerNotUsed("digest_differs")


def _plan(options: Options, function: Callable[..., Any], journal: Journal, row: RunRow, again: Pausing) -> Plan:
    """The plan of the run that goes on: its task, its title and whose it is are those of the paused one."""
    whose = row.origin
    plan = options.plan(function, run_id=row.run_id, task_id=row.task_id, journal=journal)
    origin = Origin(owner=whose.owner, tenant=whose.tenant, labels=whose.labels)
    return replace(plan, title=row.title or plan.title, origin=origin, pausing=again)


def _going_on(
    plan: Plan,
    options: Options,
    run_id: str,
    found: Loaded,
    replies: Mapping[str, Reply],
    edits: Mapping[str, Edit],
) -> Run:
    async def start() -> Source:
        decide(found.state, found.carried, replies)
        source = found.call.go_on(found.state, options.reading, found.carried)
        source.replied(replies)
        source.belongs_to(run)
        return source

    beginning = beginning_of(run_id, found.kept.agent, found.kept.said, replies, edits)
    run = Run(plan, start, outside(), beginning)
    return run
