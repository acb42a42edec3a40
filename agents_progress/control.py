"""Control from any node, at the owner's side: what is asked of a run in the journal reaches the run here.

One watcher a journal and event loop, for as long as runs are owned there. A run that is live is held; one that paused
is held by the application, and can be asked for as long as it is.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextvars import Context
from typing import Any, Final, Protocol, cast, get_args
from weakref import WeakKeyDictionary, WeakValueDictionary

from agents_progress.answers import CARRIED
from agents_progress.errors import JournalClosed, ProgressError, UnknownInteraction, UsageError
from agents_progress.journal.base import Journal, Request
from agents_progress.outcome import Outcome
from agents_progress.payloads import CancelMode
from agents_progress.telemetry import RunLogger
from agents_progress.view import RunView

logger = logging.getLogger("agents_progress")

AGAIN_S: Final = 5.0
"""How long to leave a journal alone that failed while it was watched, in seconds."""


class Steered(Protocol):
    """What a request needs of the handle of a run."""

    id: str

    @property
    def logger(self) -> RunLogger: ...
    @property
    def continued(self) -> Steered | None: ...
    @property
    def outcome(self) -> Outcome | None: ...
    @property
    def view(self) -> RunView: ...
    def cancel(self, mode: CancelMode = ..., actor: str | None = ...) -> object: ...
    def resume(
        self,
        approve: Sequence[str],
        reject: Sequence[str],
        actor: Mapping[str, str],
        *,
        arguments: Mapping[str, Mapping[str, Any]] = ...,
        text: Mapping[str, str] = ...,
        reason: Mapping[str, str] = ...,
    ) -> object: ...


class Watcher:
    """Applies requests to the runs that are owned in the running event loop."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._place = journal, asyncio.get_running_loop()
        self._live: dict[str, Steered] = {}
        self._paused: WeakValueDictionary[str, Steered] = WeakValueDictionary()
        self._early: dict[str, list[Request]] = {}
        self._given: WeakKeyDictionary[Steered, dict[str, Request]] = WeakKeyDictionary()
        self._verbs = {"cancel": self._cancel, "answer": self._answer}
        # It outlives the code that made it, and holds nothing of its context.
        self._task = self._place[1].create_task(self._watch(), name="agents-progress requests", context=Context())
        self._task.add_done_callback(lambda task: self._over())
        _watchers[self._place] = self

    def own(self, run: Steered, asked: Sequence[Request], finished: asyncio.Future[Outcome]) -> None:
        """Apply what is asked of a run, and what was asked before it began."""
        if self._live.setdefault(run.id, run) is not run:
            return  # one of the two is not recorded
        finished.add_done_callback(lambda future: self._finished(run))
        for request in asked:
            self._apply(run, request)

    def _finished(self, run: Steered) -> None:
        del self._live[run.id]
        if run.outcome is not None and run.outcome.kind == "paused":
            self._paused[run.id] = run
        for request in self._early.pop(run.id, ()):
            self._apply(run, request)
        self._owned()

    def _owned(self) -> Sequence[str]:
        owned = [*self._live, *self._paused]
        if not owned:
            self._over()
            self._task.cancel()
        return owned

    def _over(self) -> None:
        if _watchers.get(self._place) is self:
            del _watchers[self._place]

    async def _watch(self) -> None:
        while True:
            try:
                async for request in self._journal.asks(self._owned):
                    run = self._live.get(request.run_id) or self._paused.get(request.run_id)
                    if run is not None:
                        self._apply(run, request)
                    del run  # one that paused is held by the application alone
            except JournalClosed:
                return
            except Exception as error:  # noqa: BLE001 - a journal that fails must not fail the runs
                logger.error("agents_progress: what is asked of runs is not heard: %s", type(error).__name__)
            else:
                return  # the journal was closed
            await asyncio.sleep(AGAIN_S)

    def _apply(self, run: Steered, request: Request) -> None:
        verb, _, object_ = request.key.partition(".")
        try:
            self._verbs[verb](run, object_, request)
        except ProgressError as error:
            run.logger.warning("%.80r was dropped: %s", request.key, type(error).__name__)
        except Exception as error:  # noqa: BLE001 - a fault in one request must not keep others from being heard
            run.logger.error("%.80r failed: %s", request.key, type(error).__name__)

    def _cancel(self, run: Steered, mode: str, request: Request) -> None:
        if mode not in get_args(CancelMode):
            raise UsageError(f"{mode!r:.80} is no way to cancel")
        run.cancel(cast("CancelMode", mode), _actor(request))

    def _answer(self, run: Steered, interaction_id: str, request: Request) -> None:
        """Answer a paused run, once what was answered together is there. One that is still at work, on other answers,
        may be about to pause for this one.
        """
        while run.continued is not None:
            run = run.continued
        if run.id in self._live:
            self._early.setdefault(run.id, []).append(request)
            return
        question = run.view.interactions.get(interaction_id)
        if question is not None and request.body.get("digest") not in {None, question.digest}:
            raise UnknownInteraction(f"{interaction_id} asks for something else than what was answered")
        given = self._given.setdefault(run, {})
        given[interaction_id] = request
        if not given.keys() >= set(request.body.get("together", ())):
            return
        del self._given[run]
        decided = {name: each.body["decision"] for name, each in given.items()}
        run.resume(
            [name for name, decision in decided.items() if decision == "approved"],
            [name for name, decision in decided.items() if decision == "rejected"],
            {name: actor for name, each in given.items() if (actor := _actor(each)) is not None},
            **{each: {name: one.body[each] for name, one in given.items() if each in one.body} for each in CARRIED},
        )


def _actor(request: Request) -> str | None:
    actor = request.body.get("actor")
    return actor if isinstance(actor, str) else None


_watchers: Final[dict[tuple[Journal, asyncio.AbstractEventLoop], Watcher]] = {}


def controlled(run: Steered, journal: Journal, asked: Sequence[Request], finished: asyncio.Future[Outcome]) -> None:
    """Let other nodes ask something of a run that is owned in the running loop. ``asked`` came before it began."""
    watcher = _watchers.get((journal, asyncio.get_running_loop())) or Watcher(journal)
    watcher.own(run, asked, finished)
