"""What the owner of a run needs of the thing that runs: a source it drains, asks and cancels. Knows no SDK."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from agents_progress.answers import Asked, Edit, Reply
from agents_progress.disclosure import Draft
from agents_progress.errors import NotRepeatable
from agents_progress.outcome import Evidence
from agents_progress.payloads import CancelMode, Failure

Drafts: TypeAlias = Iterable[Draft]
Take: TypeAlias = Callable[[Sequence[Any]], None]
"""Takes in a burst of events that arrived together."""
Emit: TypeAlias = Callable[[str, Drafts], None]
"""Writes drafts, and names the stage when making or writing them fails."""


@dataclass(frozen=True, slots=True)
class Ending:
    """What a source knows after it was drained and settled: the evidence, and what belongs to the outcome it will have.

    ``failure_of`` words the failure for the kind that the evidence is decided to be; ``closing`` gives the last drafts
    for it.
    """

    evidence: Evidence
    output: Any
    error: BaseException | None
    failure: Failure | None
    partial: bool
    closing: Callable[[str], Drafts]


class Source(Protocol):
    """One run of some SDK, from the moment it was started."""

    result: Any
    """The SDK's own result object."""

    @property
    def agent(self) -> str:
        """The agent that works now."""

    @property
    def live(self) -> bool:
        """Whether the run's own task is not done, so that a cancel still means something."""

    @property
    def repeatable(self) -> bool:
        """Whether the call that started it was seen, so that a pause can be continued."""

    def belongs_to(self, run: object) -> None:
        """It is owned now: its events go to the owner, and the code inside, tools and their threads, reports to this
        handle.
        """

    def attach(self, emit: Emit, cancel_seen: Callable[[CancelMode], None]) -> None:
        """Start reporting what does not come through :meth:`drain`: hooks, and cancels on the SDK's own result."""

    async def drain(self, take: Take, breathe: Callable[[], None], bound: float) -> bool:
        """Give every event to ``take``, in bursts; whether the end was reached. Raises what the run raises.

        Between full bursts it calls ``breathe()`` and gives others their turn. A run that was told to stop at
        once is given up ``bound`` seconds later. A second call goes on where one was cancelled.
        """

    def flush(self) -> None:
        """Have taken at once what has arrived and would be taken at the end of this turn of the loop."""

    def translate(self, events: Iterator[Any]) -> Drafts:
        """The drafts of events, in order. After an error another call goes on with the events that are left."""

    def cancel(self, mode: CancelMode) -> None:
        """Ask the run to stop. Not reported to ``cancel_seen``."""

    async def settle(self, timeout: float) -> bool:
        """Wait up to ``timeout`` seconds for the run's own task; whether it is done."""

    def conclude(self, *, drained: bool, settled: bool, raised: BaseException | None, cancelled: bool) -> Ending:
        """Read every fact afresh, once nothing more will come."""

    def concluded(self) -> None:
        """The ending is recorded: whoever iterates the SDK's result may end."""

    def release(self) -> None:
        """Let go of the result and the hooks; late reports are dropped from now on."""

    @property
    def questions(self) -> Mapping[str, Asked]:
        """What a paused run waits for, by interaction id."""

    def restated(self) -> Drafts:
        """The pending calls and questions, to begin a continuing run with."""

    def left(self) -> Mapping[str, Any]:
        """What another process needs to go on with it after a pause, as JSON. Raises when it cannot be told."""

    async def repeat(self, replies: Mapping[str, Reply], edits: Mapping[str, Edit]) -> Source:
        """Start the continuing run, with each decided question approved, as edited, or rejected."""


class CancelledPause:
    """The source of a run that only records that a pause was cancelled: nothing runs, and it ends at once."""

    result: Any = None
    live = True
    repeatable = False
    questions: Mapping[str, Asked] = {}

    def __init__(self, agent: str, restated: Drafts) -> None:
        self.agent = agent
        self._waiting = [payload["call_id"] for type_, payload in restated if type_ == "tool.requested"]

    def belongs_to(self, run: object) -> None:
        """There is no code inside."""

    def attach(self, emit: Emit, cancel_seen: Callable[[CancelMode], None]) -> None:
        """Nothing reports."""

    async def drain(self, take: Take, breathe: Callable[[], None], bound: float) -> bool:
        """Nothing comes."""
        return True

    def flush(self) -> None:
        """Nothing came."""

    def translate(self, events: Iterator[Any]) -> Drafts:
        """Nothing came."""
        return ()

    def cancel(self, mode: CancelMode) -> None:
        """It is cancelled already."""

    async def settle(self, timeout: float) -> bool:
        """Nothing runs."""
        return True

    def conclude(self, *, drained: bool, settled: bool, raised: BaseException | None, cancelled: bool) -> Ending:
        """The pause was cancelled, on request."""

        def closing(kind: str) -> Drafts:
            return [("tool.skipped", {"call_id": call_id, "reason": "not_run"}) for call_id in self._waiting]

        return Ending(Evidence(cancel_requested=True), None, None, None, False, closing)

    def concluded(self) -> None:
        """Nobody iterates it."""

    def release(self) -> None:
        """Nothing is held."""

    def restated(self) -> Drafts:
        """Nothing is pending."""
        return ()

    def left(self) -> Mapping[str, Any]:
        """Refused: it does not pause."""
        raise NotRepeatable("a cancelled pause cannot be continued")

    async def repeat(self, replies: Mapping[str, Reply], edits: Mapping[str, Edit]) -> Source:
        """Refused: there is no call to repeat."""
        raise NotRepeatable("a cancelled pause cannot be continued")
