"""A run in the terminal: :func:`show` follows it to its end, :func:`watch` shows one that lives elsewhere;
:func:`render` gives a view as text, with no I/O.

Where the output is a terminal, the lines of :mod:`agents_progress.render` are redrawn in place (package rich, the extra
``terminal``). Anywhere else there is one plain line per change of state, without any control character.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sys
import time
from collections.abc import AsyncIterable, AsyncIterator, Callable, Generator
from io import StringIO
from typing import Any, Final, Protocol, TextIO

from agents_progress.errors import TerminalExtraMissing
from agents_progress.events import Envelope
from agents_progress.messages import Language
from agents_progress.outcome import Outcome
from agents_progress.plaintext import clean, printable
from agents_progress.render import (
    LEAST_WIDTH,
    Line,
    activity_line,
    answer_lines,
    ending_texts,
    found_texts,
    lines,
    question_text,
    render,
    row_text,
    title_text,
    wrapped,
)
from agents_progress.view import RunView

__all__ = ["Line", "TerminalExtraMissing", "Watched", "clean", "lines", "render", "show", "watch"]

REFRESH_SECONDS: Final = 0.1
"""The live display is redrawn at most once in this time."""

_log = logging.getLogger(__name__)


class Watched(Protocol):
    """What :func:`show` needs of a run."""

    @property
    def id(self) -> str:
        """The run's id."""

    @property
    def view(self) -> RunView:
        """The owner's view; only its language is read here."""

    def __aiter__(self) -> AsyncIterator[Envelope]:
        """Every envelope from the first to the closing of the log."""

    def __await__(self) -> Generator[Any, Any, Outcome]:
        """The outcome."""

    def cancel(self, *, actor: str | None = None) -> object:
        """Ask the run to stop."""


class _Display(Protocol):
    pace: float
    """Seconds between two drawings at least."""

    def draw(self, view: RunView, type_: str) -> None:
        """Show what changed; ``type_`` is that of the newest envelope."""

    def close(self, view: RunView) -> None:
        """Nothing more will come: leave the whole of it on the screen."""


class _PlainDisplay:
    """One line per change of state; no redraw, no control character but the line feed."""

    pace = 0.0

    def __init__(self, file: TextIO, width: int | None) -> None:
        self._file = file
        self._width = max(width or shutil.get_terminal_size((80, 24)).columns, LEAST_WIDTH)
        self._written: dict[str, str] = {}

    def draw(self, view: RunView, type_: str) -> None:
        if self._is_news("title", title_text(view)):
            self._write(title_text(view))
        if self._is_news("status", view.status):
            self._write(f"{view.status:<10}  {view.message}")
        if type_.startswith("text."):  # most envelopes are, and none of them changes a row
            return
        for row in view.rows.values():
            if self._is_news(f"row {row.activity_id}", row.state):
                self._write(activity_line(row, view.language, self._width).text)
        for question in view.interactions.values():
            if self._is_news(f"question {question.interaction_id}", question.decision or "waiting"):
                self._write(question_text(question, view.language))

    def close(self, view: RunView) -> None:
        self.draw(view, "")
        for text in ending_texts(view):
            for row in wrapped(text, self._width):
                self._write(row)
        for text in found_texts(view):
            self._write(text)
        for line in answer_lines(view, self._width, None):
            self._write(line.text)

    def _is_news(self, name: str, value: str) -> bool:
        before = self._written.get(name)
        self._written[name] = value
        return before != value

    def _write(self, text: str) -> None:
        self._file.write(printable(row_text(text, self._width), self._file.encoding) + "\n")
        self._file.flush()


_STYLES: Final = {
    "title": "bold",
    "status.done": "bold green",
    "status.rejected": "bold red",
    "status.failed": "bold red",
    "status.cancelled": "bold yellow",
    "status.incomplete": "bold yellow",
    "status.unknown": "bold yellow",
    "status.waiting": "bold magenta",
    "question": "magenta",
    "open": "cyan",
    "failed": "red",
    "ended": "dim",
    "label": "bold",
}
"""Styles of the live display; a line whose name is not here is plain. Green is for `done` alone."""


class _LiveDisplay:
    """The lines of the view, redrawn in place; at the end the whole of them stays on the screen."""

    pace = REFRESH_SECONDS

    def __init__(self, file: TextIO, width: int | None) -> None:
        try:
            from rich.console import Console, Group
            from rich.live import Live
            from rich.text import Text
        except ImportError as error:
            raise TerminalExtraMissing(
                "the live display needs the package rich; run: pip install 'agents-progress[terminal]'"
            ) from error
        own = file is sys.stdout
        self._group, self._text = Group, Text
        self._console = Console(file=file, width=width, force_terminal=True, markup=False, emoji=False, highlight=False)
        self._live = Live(
            console=self._console, auto_refresh=False, transient=True, redirect_stdout=own, redirect_stderr=own
        )

    def draw(self, view: RunView, type_: str) -> None:
        self._live.start()
        width, height = self._console.size
        self._live.update(self._drawn(lines(view, width, height - 1)), refresh=True)

    def close(self, view: RunView) -> None:
        self._live.stop()
        self._console.print(self._drawn(lines(view, self._console.width)), crop=False)

    def _drawn(self, rows: list[Line]) -> Any:
        """Rows as texts, which are never read as markup."""
        encoding = self._console.encoding
        texts = [
            self._text(printable(row.text, encoding), _STYLES.get(row.style, ""), no_wrap=True, overflow="crop")
            for row in rows
        ]
        return self._group(*texts)


class _Steady:
    """Draws a display at its pace, and never lets a fault of it reach the run: the first is logged, or put into
    ``faults``, and ends it.
    """

    def __init__(self, display: _Display, view: RunView, faults: list[Exception] | None = None) -> None:
        self.view = view
        self._display = display
        self._faults = faults
        self._type = ""
        self._next = time.monotonic()
        self._planned: asyncio.TimerHandle | None = None
        self._broken = False

    def changed(self, type_: str) -> None:
        """Draw now, or as soon as the pace allows; what comes meanwhile is drawn with it."""
        self._type = type_
        wait = self._next - time.monotonic()
        if wait <= 0:
            self._draw()
        elif self._planned is None:
            self._planned = asyncio.get_running_loop().call_later(wait, self._draw)

    def close(self) -> None:
        self._forget_plan()
        self._try(lambda: self._display.close(self.view))

    def _draw(self) -> None:
        self._forget_plan()
        self._next = time.monotonic() + self._display.pace
        self._try(lambda: self._display.draw(self.view, self._type))

    def _forget_plan(self) -> None:
        if self._planned is not None:
            self._planned.cancel()
            self._planned = None

    def _try(self, action: Callable[[], None]) -> None:
        if self._broken:
            return
        try:
            action()
        except Exception as error:  # noqa: BLE001 - whatever a screen does, the run goes on
            self._broken = True
            if self._faults is not None:
                self._faults.append(error)
                return
            name = type(error).__name__
            _log.error("the terminal display of run %s stopped (%s); the run goes on", clean(self.view.run_id), name)


async def show(
    run: Watched, *, file: TextIO | None = None, width: int | None = None, language: Language | None = None
) -> Outcome:
    """Show a run until its log is closed, and give its outcome; failures of the run are values.

    ``file`` is the standard output by default; where it is a terminal the display is live. ``width`` in cells
    defaults to the terminal's, or 80; ``language`` to that of the run's view.

    Interrupting it (Ctrl-C, or a cancelled task) asks the run to cancel, shows it until it has ended, and then raises
    what interrupted it; a second interruption leaves at once. A display that fails is logged and changes nothing for
    the run. Raises :exc:`TerminalExtraMissing` before anything is shown when a live display has no package to draw
    it.
    """
    out = file or sys.stdout or StringIO()
    view = RunView(run.id, language or run.view.language)
    steady = _Steady(_display(out, width), view)
    try:
        await _follow(run, view, steady)
        return await run
    except (asyncio.CancelledError, KeyboardInterrupt):
        run.cancel(actor="terminal")
        await _follow(run, view, steady)
        raise
    finally:
        if not view.standing.ended:
            view.close_transport()
        steady.close()


async def _follow(run: Watched, view: RunView, steady: _Steady) -> None:
    """Feed the view to the end of the log. Following again repeats nothing: a view knows what it has seen."""
    async for envelope in run:
        view.feed(envelope)
        steady.changed(envelope.type)


async def watch(
    views: AsyncIterable[RunView], *, file: TextIO | None = None, width: int | None = None
) -> RunView | None:
    """Show the views of a run that lives elsewhere, as they come, until there are no more; gives the last one.

    ``file`` and ``width`` are those of :func:`show`. A view of another run is shown below the one before it. Leaving
    it leaves the run alone, so that a display that fails may raise here. Raises :exc:`TerminalExtraMissing` as
    :func:`show` does, and what ``views`` raise, after the last view was shown.
    """
    out = file or sys.stdout or StringIO()
    faults: list[Exception] = []
    steady: _Steady | None = None
    try:
        async for view in views:
            if steady is None or steady.view.run_id != view.run_id:
                if steady is not None:
                    steady.close()
                steady = _Steady(_display(out, width), view, faults)
            steady.view = view
            steady.changed("")
            if faults:
                break
    finally:
        if steady is not None:
            steady.close()
    if faults:
        raise faults[0]
    return None if steady is None else steady.view


def _display(file: TextIO, width: int | None) -> _Display:
    return _LiveDisplay(file, width) if _is_terminal(file) else _PlainDisplay(file, width)


def _is_terminal(file: TextIO) -> bool:
    return file.isatty() and os.environ.get("TERM") not in ("dumb", "unknown")
