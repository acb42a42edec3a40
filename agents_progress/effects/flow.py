"""The steps of one call of a once-only tool, without a word about threads or loops: what is to be done next is yielded,
and what became of it is sent back. A sync tool's driver does each step where it is, an async tool's awaits it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Protocol, TypeAlias

from agents_progress.effects.entry import Begun, Busy, Conflict, Effect, Finding, Hold, Stored, Uncertain
from agents_progress.effects.ledger import Ledger
from agents_progress.effects.tables import OwnThread
from agents_progress.errors import (
    EffectBusy,
    EffectConflict,
    EffectErased,
    EffectError,
    EffectUncertain,
    JournalUnavailable,
    UsageError,
)
from agents_progress.journal.threads import outcome_of
from agents_progress.keeper import keeper_of

logger = logging.getLogger("agents_progress")

LOOK_S: Final = 0.01
LOOK_AT_MOST_S: Final = 0.5
"""Pauses between two looks at an effect that somebody else is having; each is half as long again as the one before."""

REUSED: Final = "reused"
FAILED: Final = "tool_error"
"""What a row says of a stored result, and of a body that raised and certainly had no effect."""

PATIENCE_S: Final = 10.0
"""How long a ledger that is away is tried again, in seconds, to record what has happened."""


@dataclass(frozen=True, slots=True)
class Ended:
    """What became of a step: its value, or what it raised. ``word`` is what the tool's row is to say of it."""

    value: Any = None
    error: BaseException | None = None
    word: str | None = None

    def get(self) -> Any:
        if self.error is not None:
            raise self.error
        return self.value


class Step(Protocol):
    """Something to be done: at once, or awaited."""

    def now(self) -> Ended: ...

    async def later(self) -> Ended: ...


Flow: TypeAlias = Generator[Step, Ended, Ended]


@dataclass(frozen=True, slots=True)
class Asking:
    """Something for the thread of a ledger or a store to do. ``undo`` takes back what it gave to an async caller that
    was cancelled meanwhile.
    """

    thread: OwnThread
    work: Callable[[], Any]
    undo: Callable[[Any], None] | None = None

    def now(self) -> Ended:
        try:
            return Ended(self.work())
        except Exception as error:  # noqa: BLE001 - the flow decides
            return Ended(error=error)

    async def later(self) -> Ended:
        asked = self.thread.submit(self.work)
        try:
            return Ended(await outcome_of(asked))
        except asyncio.CancelledError:
            self.thread.submit(self._take_back, asked)  # in the same thread, so after it
            raise
        except Exception as error:  # noqa: BLE001 - the flow decides
            return Ended(error=error)

    def _take_back(self, asked: Future[Any]) -> None:
        if self.undo is not None and asked.exception() is None:
            self.undo(asked.result())


@dataclass(frozen=True, slots=True)
class Pausing:
    """Some seconds of nothing."""

    seconds: float

    def now(self) -> Ended:
        time.sleep(self.seconds)
        return Ended()

    async def later(self) -> Ended:
        await asyncio.sleep(self.seconds)
        return Ended()


@dataclass(frozen=True, slots=True)
class Running:
    """Code of the application. Whatever it raises is a value here, a cancel included; what awaits is awaited, and what
    does not goes to a thread, if ``threaded``, so that it cannot block the loop.
    """

    code: Callable[[], Any]
    threaded: bool = False

    def now(self) -> Ended:
        try:
            return Ended(_plain(self.code()))
        except BaseException as error:  # noqa: BLE001 - the flow decides
            return Ended(error=error)

    async def later(self) -> Ended:
        try:
            value = await asyncio.to_thread(self.code) if self.threaded else self.code()
            return Ended(await value if inspect.isawaitable(value) else value)
        except BaseException as error:  # noqa: BLE001 - the flow decides
            return Ended(error=error)


def _plain(value: Any) -> Any:
    """What sync code gave. An awaitable is no result: nobody awaits it, so that nothing of it happens."""
    if not inspect.isawaitable(value):
        return value
    if inspect.iscoroutine(value):
        value.close()
    raise UsageError("a function that is not async gave something to await; write `async def`, or await it inside")


def drive(flow: Flow) -> Ended:
    """Go through a flow in this thread."""
    with closing(flow):
        step = next(flow)
        while True:
            ended = step.now()
            try:
                step = flow.send(ended)
            except StopIteration as over:
                return _result(over)


async def drive_awaiting(flow: Flow) -> Ended:
    """Go through a flow in this task."""
    with closing(flow):
        step = next(flow)
        while True:
            ended = await step.later()
            try:
                step = flow.send(ended)
            except StopIteration as over:
                return _result(over)


def _result(over: StopIteration) -> Ended:
    ended: Ended = over.value
    return ended


@dataclass(frozen=True, slots=True)
class Once:
    """One call of a once-only tool: the effect, where it is recorded, and the application's code and decisions.

    ``stored`` and ``restored`` turn outputs into text and back. ``reconcile`` goes to a thread if it is ``threaded``.
    ``resolve(generation, finding)`` settles the entry. ``told(code)`` is what a model is told.
    """

    ledger: Ledger
    effect: Effect
    body: Callable[[], Any]
    reconcile: Callable[[], Any] | None
    no_effect: tuple[type[BaseException], ...]
    wait: float
    stored: Callable[[Any], str]
    restored: Callable[[str], Any]
    resolve: Callable[[int, Finding], bool]
    told: Callable[[str], str]
    threaded: bool

    def flow(self) -> Flow:
        """All of its steps. Gives what the body did, or what an earlier call stored."""
        answer = yield from self._taken()
        if isinstance(answer, Stored):
            return self._reused(answer)
        hold = answer.hold
        try:
            ended = yield Running(self.body)
            if ended.error is not None:
                return (yield from self._raised(hold, ended.error))
            yield from self._happened(hold, ended.value)
            return ended
        finally:
            self._let_go(hold)

    # Taking it.

    def _taken(self) -> Generator[Step, Ended, Begun | Stored]:
        give_up, pause = time.monotonic() + self.wait, LOOK_S
        while True:
            asked = time.monotonic()
            answer = (yield Asking(self.ledger, self._begin, self._withdraw)).get()
            match answer:
                case Stored():
                    return answer
                case Begun() if time.monotonic() - asked < self.ledger.lease_s:
                    return answer
                case Begun(hold):  # this process was frozen, perhaps: is it still ours?
                    if not (yield Asking(self.ledger, partial(self._lost, hold), partial(self._left, hold))).get():
                        return answer
                case Conflict():
                    raise self._error(EffectConflict)
                case Uncertain(generation):
                    yield from self._resolved(generation)
                case Busy(left_s):
                    left = give_up - time.monotonic()
                    if left <= 0:
                        raise self._error(EffectBusy)
                    yield Pausing(min(pause, left, left_s + LOOK_S))
                    pause = min(1.5 * pause, LOOK_AT_MOST_S)

    def _begin(self) -> Any:
        """In one thread with the lease's keeping: a blocked loop must not let it run out in between."""
        answer = self.ledger.begin(self.effect)
        if isinstance(answer, Begun):
            # Whether it is lost, the record will tell: a late word counts.
            keeper_of(self.ledger, self.ledger.lease_s).hold(answer.hold, lambda: None)
        return answer

    def _lost(self, hold: Hold) -> bool:
        """Whether somebody may have taken over before the body began; then it was not begun by us."""
        try:
            gone = bool(self.ledger.renew([hold], self.ledger.lease_s))
        except BaseException:
            self._let_go(hold)
            raise
        if gone:
            self._withdraw(Begun(hold))
        return gone

    def _left(self, hold: Hold, gone: bool) -> None:
        """The caller left while it was asked whether it lost its effect."""
        if not gone:
            self._withdraw(Begun(hold))

    def _withdraw(self, answer: Any) -> None:
        """The caller left before its body began."""
        if isinstance(answer, Begun):
            self._let_go(answer.hold)
            self.ledger.fail(answer.hold)

    def _resolved(self, generation: int) -> Generator[Step, Ended, None]:
        """Ask what became of it; returns when there is an answer, or a new state to look at."""
        if self.reconcile is None:
            raise self._error(EffectUncertain, generation)
        ended = yield Running(self.reconcile, threaded=self.threaded)
        if ended.error is not None and not isinstance(ended.error, Exception):
            raise ended.error
        if ended.error is not None:
            logger.error("effect %s: reconcile failed: %s", self.effect.entry[:16], type(ended.error).__name__)
            raise self._error(EffectUncertain, generation) from ended.error
        finding = ended.value
        if not isinstance(finding, Finding):
            raise UsageError(
                f"reconcile gives Happened(output), DidNotHappen() or StillUnknown(), not {type(finding).__name__}"
            )
        settled = (yield Asking(self.ledger, lambda: self.resolve(generation, finding))).get()
        if not settled and not (yield Asking(self.ledger, lambda: self._moved(generation))).get():
            raise self._error(EffectUncertain, generation)

    def _moved(self, generation: int) -> bool:
        """Whether somebody else settled the attempt meanwhile, or began another."""
        found, now = self.ledger.look(self.effect.entry)
        return found is None or found.generation != generation or found.state(now) != "uncertain"

    # What became of it.

    def _happened(self, hold: Hold, output: Any) -> Generator[Step, Ended, None]:
        """Record it. A ledger that is away for too long leaves an entry that will be uncertain; the output is true."""
        text, give_up, pause = self.stored(output), time.monotonic() + PATIENCE_S, LOOK_S
        while True:
            ended = yield Asking(self.ledger, lambda: self.ledger.succeed(hold, text))
            if not isinstance(ended.error, JournalUnavailable) or time.monotonic() > give_up:
                break
            yield Pausing(pause)
            pause = min(1.5 * pause, LOOK_AT_MOST_S)
        if ended.error is not None:
            logger.error(
                "effect %s happened and could not be recorded: %s", hold.entry[:16], type(ended.error).__name__
            )
        elif not ended.value:
            logger.error(
                "effect %s happened after it was said that attempt %d had not; it may have happened twice",
                hold.entry[:16],
                hold.generation,
            )

    def _raised(self, hold: Hold, error: BaseException) -> Flow:
        """An exception may come after the effect, unless the application vouches that this one does not. It stays the
        application's own, with a note for whoever reads or words it.
        """
        harmless = isinstance(error, self.no_effect)
        if not harmless:
            error.add_note(self.told(EffectUncertain.code))
        settle = self.ledger.fail if harmless else self.ledger.give_up
        ended = yield Asking(self.ledger, lambda: settle(hold))
        if ended.error is not None:  # the lease runs out, and it is uncertain then
            logger.warning("effect %s: its failure was not recorded: %s", hold.entry[:16], type(ended.error).__name__)
        return Ended(error=error, word=FAILED if harmless else EffectUncertain.code)

    def _reused(self, answer: Stored) -> Ended:
        if answer.output is None:
            raise self._error(EffectErased)
        return Ended(self.restored(answer.output), word=REUSED)

    def _error(self, kind: type[EffectError], generation: int = 0) -> EffectError:
        return kind(self.told(kind.code), self.effect.entry, generation)

    def _let_go(self, hold: Hold) -> None:
        keeper_of(self.ledger, self.ledger.lease_s).drop(hold)
