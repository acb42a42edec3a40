"""Playing a script: a function under `@progress` or a bare agent, run to its end by the real SDK with a scripted model.

The model is scripted where the bytes come in (`ScriptedAPI.answering`), so that the application's agents, models and
clients stay as they are. Ids and times are frozen and text is not coalesced, so that the same script gives the same
envelopes again.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, ParamSpec, TypeAlias, Unpack, overload
from unittest.mock import patch

from agents_progress.clock import Clock
from agents_progress.events import Envelope
from agents_progress.outcome import Outcome
from agents_progress.view import RunView

from .answers import Answer, Prompter
from .network import no_network, untraced
from .scripted import ScriptedAPI, ScriptNotPlayed
from .steps import JSON
from .turns import Turn

if TYPE_CHECKING:
    from agents import Agent, TResponseInputItem

    from agents_progress.decorate import Decorated
    from agents_progress.options import Given
    from agents_progress.run import Run

P = ParamSpec("P")
Script: TypeAlias = "ScriptedAPI | Iterable[Turn | Answer]"
"""Turns of the model with the answers of people between them, or an API that has turns of its own."""

LIMIT: Final = 30.0
"""Seconds after which a run that has not ended is given up."""

_PLAYING: Final = Lock()


class NotOver(AssertionError):
    """The run did not end while a test could wait for it."""


@dataclass(frozen=True, kw_only=True)
class Played:
    """A task as it was played: how its newest run ended, and the logs of all its runs."""

    outcome: Outcome
    """How the newest run ended, with its output and the verdict of the application's check."""
    view: RunView
    """What a reader sees of the newest run."""
    envelopes: tuple[Envelope, ...]
    """Every envelope, of the first run and of those that continue it after an answer."""
    requests: tuple[JSON, ...]
    """The JSON bodies that the model was asked with, in order."""
    error: BaseException | None
    """The real exception behind a failed run."""
    unplayed: str | None
    """What of the script did not come about, as a sentence; None when all did."""
    frames: tuple[int, ...]
    """How many frames of a stream answered each request."""

    def __repr__(self) -> str:
        return f"<Played {self.view.run_id} {self.view.status}, {len(self.envelopes)} envelopes>"

    @property
    def types(self) -> list[str]:
        """The types of the envelopes, in order."""
        return [envelope.type for envelope in self.envelopes]

    def assert_played(self) -> None:
        """Raise `ScriptNotPlayed` unless everything in the script came about, and nothing beyond it."""
        if self.unplayed is not None:
            raise ScriptNotPlayed(self.unplayed)


@overload
def run_script(function: Decorated[P], script: Script, /, *args: P.args, **kwargs: P.kwargs) -> Played: ...
@overload
def run_script(
    agent: Agent[Any], script: Script, /, input: str | list[TResponseInputItem], **options: Unpack[Given]
) -> Played: ...
def run_script(target: Any, script: Script, /, *args: Any, **kwargs: Any) -> Played:
    """Play a function under `@progress`, with its own arguments, over a script to its end.

    A bare `Agent` takes its input, and the options of `progress`: `run_script(agent, [...], "hi", verify=...)`.
    It runs in an event loop of its own, without a network, with a journal in memory and the frozen clock in place of
    the function's; within a loop, await `run_script_async`. Whatever asks a model is answered by the script; an agent
    with a model of a `ScriptedAPI` of its own keeps that. A paused run gets the answer that comes next in the script,
    and is the end where none does.

    How the run ended is for `assert_ending` to judge. Raised is what the function raises before there is a run,
    `NotOver` for a run that does not end within 30 s, `ScriptNotPlayed` for an answer that nobody asked for, and
    `NetworkReached`.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(run_script_async(target, script, *args, **kwargs))
    raise RuntimeError("an event loop is running here; write `await run_script_async(...)`")


@overload
async def run_script_async(function: Decorated[P], script: Script, /, *args: P.args, **kwargs: P.kwargs) -> Played: ...
@overload
async def run_script_async(
    agent: Agent[Any], script: Script, /, input: str | list[TResponseInputItem], **options: Unpack[Given]
) -> Played: ...
async def run_script_async(target: Any, script: Script, /, *args: Any, **kwargs: Any) -> Played:
    """What `run_script` does, within the running loop. One script is played at a time in a process."""
    prompter = Prompter(script)
    function, kwargs = _playable(target, kwargs)
    with _alone(prompter.api):
        run = await _started(function, args, kwargs)
        runs = [run]
        prompter.api.cancelled = lambda step: runs[-1].cancel(step.mode, step.actor)
        async with _limited(runs):
            outcome = await run
            while outcome.kind == "paused" and (answer := prompter.answer()) is not None:
                run = answer.to(run)
                runs.append(run)
                outcome = await run
            envelopes = [envelope for each in runs async for envelope in each]
            for each in runs:
                await each.closed()
    return Played(
        outcome=outcome,
        view=run.view,
        envelopes=tuple(envelopes),
        requests=tuple(prompter.api.requests),
        error=run.error,
        unplayed=prompter.unplayed(),
        frames=tuple(prompter.api.frames),
    )


def frozen_clock() -> Clock:
    """A clock that stands still at 1970-01-01T00:00:00Z and names runs `run-1`, `run-2` and so on."""
    numbers = itertools.count(1)
    return Clock(wall=lambda: 0.0, monotonic=lambda: 0.0, new_id=lambda: f"run-{next(numbers)}")


def _playable(target: Any, kwargs: dict[str, Any]) -> tuple[Decorated[Any], dict[str, Any]]:
    """The function to play with options of its own, and what is left of the keywords for it."""
    from agents import Agent, Runner, RunResultStreaming

    from agents_progress.decorate import Decorated, progress
    from agents_progress.journal import MemoryJournal

    still: Given = {"journal": MemoryJournal(), "clock": frozen_clock(), "coalesce": None, "unread": None}
    if isinstance(target, Decorated):
        return target.using(**still), kwargs
    if not isinstance(target, Agent):
        raise TypeError(
            f"a script is played by a function under @progress or by an Agent, not by {target!r:.80}; call anything "
            "else yourself, with `with ScriptedAPI([...]).answering():` around it"
        )

    def run(input: Any) -> RunResultStreaming:
        return Runner.run_streamed(target, input)

    options: Any = {name: value for name, value in kwargs.items() if name != "input"}
    return progress(**{**still, **options})(run), {name: kwargs[name] for name in kwargs if name == "input"}


async def _started(function: Decorated[Any], args: Any, kwargs: Any) -> Run:
    if function.options.exclusive is not None:
        return await function.start(*args, **kwargs)
    return function(*args, **kwargs)


@contextmanager
def _alone(api: ScriptedAPI) -> Iterator[None]:
    """Nothing but the script answers, nothing is traced, and nothing leaves this process."""
    if not _PLAYING.acquire(blocking=False):
        raise RuntimeError("another script is being played in this process; await it first")
    environment = {"OPENAI_API_KEY": os.environ.get("OPENAI_API_KEY") or "scripted", "AGENTS_PROGRESS": "on"}
    try:
        with untraced(), no_network(), patch.dict(os.environ, environment), api.answering():
            yield
    finally:
        _PLAYING.release()


@asynccontextmanager
async def _limited(runs: list[Run]) -> AsyncIterator[None]:
    """Raise `NotOver` for a run that goes on for too long, and ask it to stop."""
    try:
        async with asyncio.timeout(LIMIT) as limit:
            yield
    except TimeoutError:
        if not limit.expired():
            raise
        run = runs[-1]
        run.cancel(actor="test")
        raise NotOver(
            f"the run did not end within {LIMIT:.0f} s: it is {run.view.status} after envelope {run.view.seq}; "
            "look for a wait() that nobody ends, or for a tool that hangs"
        ) from None
