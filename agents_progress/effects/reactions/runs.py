"""The runs in which a reaction is seen: each step is a row, a question pauses, and the ending says what is known.

The runs of a reaction are numbered from its task id: ``ID``, ``ID.2`` and so on. One that asks is paused, and the next
one continues it with the answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from agents_progress.answers import Asked, Edit, Reply
from agents_progress.disclosure import Draft
from agents_progress.effects.reactions.entry import Entry
from agents_progress.effects.words import STEPS, STOPPED
from agents_progress.errors import EffectUncertain, NotRepeatable
from agents_progress.messages import Language
from agents_progress.outcome import Evidence
from agents_progress.payloads import CancelMode, Failure
from agents_progress.source import Drafts, Emit, Ending, Source, Take

T = TypeVar("T")

QUESTION: Final = "ask-1"
SUBMIT: Final = "submit"
"""The ids of the question and of the call that it is about."""


@dataclass(frozen=True, slots=True)
class Told:
    """How a run ends, and what it says before."""

    evidence: Evidence
    output: Any = None
    failure: Failure | None = None
    drafts: Sequence[Draft] = ()


class Silent:
    """Steps that are taken outside a run."""

    async def row(self, name: str, work: Callable[[], Awaitable[T]], code: str) -> T:
        """Take a step. One that raises has failed, with this ``code``, and raises on."""
        self.begun(name)
        try:
            value = await work()
        except Exception:
            self.over(name, code)
            raise
        self.over(name)
        return value

    def begun(self, name: str) -> None:
        """A step is being taken."""

    def over(self, name: str, code: str | None = None) -> None:
        """A step was taken, or failed with a code."""


class Steps(Silent):
    """The steps of one run, as rows of it. ``asked`` are those that will be taken, as the run has said."""

    def __init__(self, language: Language) -> None:
        self.language: Language = language
        self.asked: set[str] = set()
        self.emit: Emit = lambda stage, drafts: None
        self._began: dict[str, float] = {}

    def begun(self, name: str) -> None:
        if name not in self.asked:
            self.say(requested(name, self.language))
        self.asked.discard(name)
        self.say(("tool.started", {"call_id": name}))
        self._began[name] = time.monotonic()

    def over(self, name: str, code: str | None = None) -> None:
        if code is not None:
            self.say(("tool.failed", {"call_id": name, "code": code}))
            return
        took = int((time.monotonic() - self._began[name]) * 1000)
        self.say(("tool.finished", {"call_id": name, "duration_ms": took}))

    def say(self, *drafts: Draft) -> None:
        """Write something into the run."""
        self.emit("report", drafts)


class StepSource:
    """The source of a run that code of ours takes the steps of. ``body`` gives how it ends; ``error`` is what it raised
    instead.
    """

    result: Any = None
    repeatable = False
    questions: Mapping[str, Asked] = {}

    def __init__(self, agent: str, steps: Steps, body: Callable[[], Awaitable[Told]], rejected: bool = False) -> None:
        self.agent = agent
        self._steps = steps
        self._body = body
        self._rejected = rejected
        self._task: asyncio.Future[Told] | None = None
        self._cancelled = False
        self.error: BaseException | None = None

    @property
    def live(self) -> bool:
        """Whether a cancel still means something."""
        return self._task is None or not self._task.done()

    def belongs_to(self, run: object) -> None:
        """Nothing inside reports by itself."""

    def attach(self, emit: Emit, cancel_seen: Callable[[CancelMode], None]) -> None:
        """Say things through the owner from now on."""
        self._steps.emit = emit

    async def drain(self, take: Take, breathe: Callable[[], None], bound: float) -> bool:
        """Take all steps. What a step raises is told by :meth:`conclude`."""
        if self._task is None and not self._cancelled:
            self._task = asyncio.ensure_future(self._body())
        if self._task is not None:
            await asyncio.wait({self._task})
        return True

    def flush(self) -> None:
        """Everything is said when it happens."""

    def translate(self, events: Iterator[Any]) -> Drafts:
        """There are no events of somebody else."""
        return ()

    def cancel(self, mode: CancelMode) -> None:
        """Stop before the first step, or in the one that is being taken."""
        self._cancelled = True
        if self._task is not None:
            self._task.cancel()

    async def settle(self, timeout: float) -> bool:
        """Wait for the step that was left."""
        return self._task is None or bool((await asyncio.wait({self._task}, timeout=timeout))[0])

    def conclude(self, *, drained: bool, settled: bool, raised: BaseException | None, cancelled: bool) -> Ending:
        """How the steps ended."""
        error, told = raised, Told(Evidence(cancel_requested=cancelled, task_cancelled=self._cancelled))
        if self._task is not None and self._task.cancelled() and not self._cancelled:
            self.error = RuntimeError("a step was cancelled by itself")
        elif self._task is not None and self._task.done() and not self._task.cancelled():
            self.error = error = self._task.exception()
            told = Told(Evidence(settled=False)) if error is not None else self._task.result()

        def closing(kind: str) -> Drafts:
            yield from told.drafts
            if kind != "paused":
                yield from self._closed()

        return Ending(told.evidence, told.output, error, told.failure, False, closing)

    def _closed(self) -> Iterator[Draft]:
        for name in sorted(self._steps.asked):
            if self._rejected:
                yield "tool.rejected", {"call_id": name, "reason": "approval_rejected"}
            else:
                yield "tool.skipped", {"call_id": name, "reason": "not_run"}

    def concluded(self) -> None:
        """Nobody iterates it."""

    def release(self) -> None:
        """Let go of the owner."""
        self._steps.emit = lambda stage, drafts: None

    def restated(self) -> Drafts:
        """The next run restates what is asked from what is stored."""
        return ()

    def left(self) -> Mapping[str, Any]:
        """Refused: what it goes on with is in the store of reactions."""
        raise NotRepeatable("a reaction is kept by its own store")

    async def repeat(self, replies: Mapping[str, Reply], edits: Mapping[str, Edit]) -> Source:
        """Refused: a worker goes on with a reaction, whoever answers it."""
        raise NotRepeatable("a reaction is answered through Reactions.approve and Reactions.reject")


def requested(name: str, language: Language) -> Draft:
    """A step will be taken."""
    payload = {"call_id": name, "name": name, "kind": "custom", "title": STEPS[name][language]}
    return "tool.requested", payload


def question(entry: Entry, language: Language) -> tuple[Draft, Draft]:
    """What a person is asked: the call, and exactly what it would submit."""
    payload: dict[str, Any] = {"interaction_id": QUESTION, "call_id": SUBMIT, "tool": SUBMIT, "kind": "approval"}
    payload |= {"title": STEPS[SUBMIT][language], "digest": entry.asked, "details": entry.result}
    return requested(SUBMIT, language), ("approval.wait", payload)


def told(entry: Entry, output: Any, language: Language) -> Told:
    """The ending of a run, from how far its reaction is then. ``output`` is the result."""
    match entry.state:
        case "ready":
            return Told(Evidence(interrupted=True), drafts=question(entry, language))
        case "done":
            return Told(Evidence(has_output=True), output)
        case "stopped":
            reason = entry.reason or "other"
            words = STOPPED.get(reason, STOPPED["other"])[language]
            failure = Failure(code=reason, message=words, retryable=False, phase="reaction")
            return Told(Evidence(raised="other"), failure=failure)
        case _:  # nobody knows what became of it
            return Told(Evidence(settled=False))


UNCERTAIN: Final = EffectUncertain.code
