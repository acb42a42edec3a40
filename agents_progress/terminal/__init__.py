"""A run in the terminal: :func:`show` follows it to its end, and lets a person answer what it asks; :func:`watch` shows
one that lives elsewhere; :func:`render` gives a view as text, with no I/O.

Where the output is a terminal, the lines of :mod:`agents_progress.render` are redrawn in place (package rich, the extra
``terminal``). Anywhere else there is one plain line per change of state, without any control character.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterable, AsyncIterator, Generator, Mapping, Sequence
from io import StringIO
from typing import Any, Final, Protocol, TextIO

from agents_progress.answers import CARRIED
from agents_progress.errors import AlreadyResumed, TerminalExtraMissing, UsageError
from agents_progress.events import Envelope
from agents_progress.interrupts import STEPS, Interrupts
from agents_progress.labels import label
from agents_progress.messages import Language
from agents_progress.outcome import Outcome
from agents_progress.payloads import CancelAnswer, CancelMode
from agents_progress.plaintext import clean
from agents_progress.render import Line, lines, open_questions, render
from agents_progress.terminal.displays import REFRESH_SECONDS, Steady, display
from agents_progress.terminal.prompt import AnsweredElsewhere, Decided, Prompt, can_ask, until
from agents_progress.view import RunView

__all__ = ["REFRESH_SECONDS", "Line", "TerminalExtraMissing", "Watched", "clean", "lines", "render", "show", "watch"]

_ACTOR: Final = "terminal"
_DECISIONS: Final = ("approved", "rejected")
_LOOK_S: Final = 0.1
"""How often it is looked whether somebody else answered meanwhile."""


class Watched(Protocol):
    """What :func:`show` needs of a run."""

    @property
    def id(self) -> str:
        """The run's id."""

    @property
    def view(self) -> RunView:
        """The owner's view; only its language is read here."""

    @property
    def continued(self) -> Watched | None:
        """The run that goes on from this one after a pause, None while there is none."""

    def __aiter__(self) -> AsyncIterator[Envelope]:
        """Every envelope from the first to the closing of the log."""

    def __await__(self) -> Generator[Any, Any, Outcome]:
        """The outcome."""

    def cancel(self, mode: CancelMode = "immediate", actor: str | None = None) -> CancelAnswer:
        """Ask the run to stop."""

    def resume(
        self,
        approve: str | Sequence[str] = (),
        reject: str | Sequence[str] = (),
        actor: str | None = None,
        *,
        arguments: Mapping[str, Mapping[str, Any]] | None = None,
        text: str | Mapping[str, str] | None = None,
        reason: str | Mapping[str, str] | None = None,
    ) -> Watched:
        """Answer its questions, and continue it."""


async def show(
    run: Watched,
    *,
    ask: bool = False,
    file: TextIO | None = None,
    width: int | None = None,
    language: Language | None = None,
) -> Outcome:
    """Show a run until its log is closed, and give its outcome; failures of the run are values.

    ``file`` is the standard output by default; where it is a terminal the display is live. ``width`` in cells
    defaults to the terminal's, or 80; ``language`` to that of the run's view.

    With ``ask`` a pause is not the end where a person sees ``file`` and types at the standard input: each question is
    put to them with exactly what it asks, and the run that goes on is shown as well; the outcome is that of the last
    one. It is off by default, because a program that answers pauses itself must not find them answered.

    Ctrl-C asks the run to stop after its turn, and a second one at once; it is shown until it has ended, and then the
    interrupt has its effect. A third one leaves. A cancelled task asks the run to stop at once, shows it until it has
    ended and raises then; a second time it leaves. A display that fails is logged and changes nothing for the run.
    Raises :exc:`TerminalExtraMissing` before anything is shown when a live display has no package to draw it.
    """
    out = file or sys.stdout or StringIO()
    language = _language_for(run, language)
    prompt = Prompt(out, width, language) if ask and can_ask(out) else None
    left_to_others: set[str] = set()
    while True:
        view = RunView(run.id, language)
        outcome = await _shown(run, view, Steady(display(out, width), view))
        if prompt is None or outcome.kind != "paused":
            return outcome
        try:
            later = await _answered(run, view, prompt, left_to_others)
            if later is None:
                return outcome
            await _begun(later)
        except AlreadyResumed:  # by another process
            prompt.say("refusal_answered")
            return outcome
        run = later


def _language_for(run: Watched, language: Language | None) -> Language:
    if not isinstance(getattr(run, "view", None), RunView):
        raise UsageError(
            "show takes the run that a call of a function under @progress gives, or follow(...), not "
            f"{type(run).__name__}"
        )
    return language or run.view.language


async def _shown(run: Watched, view: RunView, steady: Steady) -> Outcome:
    def pressed(mode: CancelMode) -> None:
        late = run.cancel(mode, _ACTOR) == "already_ended"
        steady.say(label("stop_too_late" if late else STEPS[mode], view.language))

    with Interrupts(pressed) as interrupts:
        try:
            await _follow(run, view, steady)
            outcome = await run
        except (asyncio.CancelledError, KeyboardInterrupt):
            if not interrupts.leaving:
                run.cancel(actor=_ACTOR)
                await _follow(run, view, steady)
            raise
        finally:
            if not view.standing.ended:
                view.close_transport()
            steady.close()
            if interrupts.leaving:
                steady.say(label("left", view.language))
        if interrupts.count and outcome.kind == "paused":
            steady.say(label("still_waits", view.language))
        await interrupts.pass_on()
    return outcome


async def _follow(run: Watched, view: RunView, steady: Steady) -> None:
    """Feed the view to the end of the log. Following again repeats nothing: a view knows what it has seen."""
    async for envelope in run:
        view.feed(envelope)
        steady.changed(envelope.type)


async def _answered(run: Watched, view: RunView, prompt: Prompt, left_to_others: set[str]) -> Watched | None:
    """The run that goes on from a paused one, with what a person decides here or somebody elsewhere. None: nobody did.

    What is asked cannot change meanwhile: the log of a paused run is closed.
    """
    decisions: dict[str, Decided] = {}
    try:
        for question in open_questions(view):
            name = question.interaction_id
            if name in left_to_others:
                continue
            decided = await until(_continued(run), prompt.ask(view, question, with_reason=False))
            if decided is None:
                left_to_others.add(name)
            else:
                decisions[name] = decided
    except AnsweredElsewhere:
        prompt.say("refusal_answered")
        return run.continued
    except EOFError:
        decisions.clear()
    except BaseException:
        prompt.say("still_waits")
        raise
    if not decisions:
        prompt.say("still_waits")
        return None
    chosen = {word: [name for name, each in decisions.items() if each.decision == word] for word in _DECISIONS}
    carried: dict[str, Any] = {
        each: {name: value for name, said in decisions.items() if (value := getattr(said, each)) is not None}
        for each in CARRIED
    }
    return run.resume(approve=chosen["approved"], reject=chosen["rejected"], actor=_ACTOR, **carried)


async def _continued(run: Watched) -> None:
    while run.continued is None:  # noqa: ASYNC110 - somebody else's call sets it
        await asyncio.sleep(_LOOK_S)


async def _begun(run: Watched) -> None:
    """Wait for the first envelope of a run. Raises what starting it raised, before it is shown."""
    async for _ in run:
        return
    await run


async def watch(
    views: AsyncIterable[RunView], *, file: TextIO | None = None, width: int | None = None
) -> RunView | None:
    """Show the views of a run that lives elsewhere, as they come, until there are no more; gives the last one.

    ``file`` and ``width`` are those of :func:`show`. A view of another run is shown below the one before it. Leaving
    it leaves the run alone, and says so; therefore a display that fails may raise here. Raises
    :exc:`TerminalExtraMissing` as :func:`show` does, and what ``views`` raise, after the last view was shown.
    """
    out = file or sys.stdout or StringIO()
    faults: list[Exception] = []
    steady: Steady | None = None
    left = False
    try:
        async for view in views:
            if steady is None or steady.view.run_id != view.run_id:
                if steady is not None:
                    steady.close()
                steady = Steady(display(out, width), view, faults)
            steady.view = view
            steady.changed("")
            if faults:
                break
    except (asyncio.CancelledError, KeyboardInterrupt):
        left = True
        raise
    finally:
        if steady is not None:
            steady.close()
            if left:
                steady.say(label("left_alone", steady.view.language))
    if faults:
        raise faults[0]
    return None if steady is None else steady.view
