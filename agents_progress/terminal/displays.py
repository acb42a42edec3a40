"""The two displays of a run: lines of a terminal that are redrawn in place, and plain lines for everything else."""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import sys
import time
from collections.abc import Callable
from typing import Any, Final, Protocol, TextIO

from agents_progress.errors import TerminalExtraMissing
from agents_progress.messages import Language
from agents_progress.plaintext import clean, printable
from agents_progress.render import (
    LEAST_WIDTH,
    Line,
    activity_line,
    answer_lines,
    ending_texts,
    found_texts,
    lines,
    question_lines,
    question_text,
    row_text,
    title_text,
    usage_texts,
    wrapped,
)
from agents_progress.rows import Interaction
from agents_progress.view import RunView

REFRESH_SECONDS: Final = 0.1
"""The live display is redrawn at most once in this time."""
_BEGIN, _END = "\x1b[?2026h", "\x1b[?2026l"
"""Around what a terminal shows at once, where it knows how to; others ignore it."""
_PLAIN_TERMS: Final = frozenset({"", "dumb", "unknown"})

_log = logging.getLogger(__name__)


class Display(Protocol):
    """Where a run is shown."""

    pace: float
    """Seconds between two drawings at least."""

    def draw(self, view: RunView, type_: str) -> None:
        """Show what changed; ``type_`` is that of the newest envelope."""

    def say(self, text: str) -> None:
        """Tell something that is no fact about the run; a live display shows it from its next drawing on."""

    def close(self, view: RunView) -> None:
        """Nothing more will come: leave the whole of it on the screen."""


def display(file: TextIO, width: int | None) -> Display:
    """The display that suits a stream."""
    return LiveDisplay(file, width) if is_terminal(file) else PlainDisplay(file, width)


def is_terminal(file: TextIO) -> bool:
    """Whether a stream is a terminal that moves its cursor. One that does not say what it is may do anything."""
    term = os.environ.get("TERM", "" if os.name == "posix" else "windows")
    return file.isatty() and term not in _PLAIN_TERMS


def columns(width: int | None) -> int:
    """Cells of a row: those that were asked for, else the terminal's, else 80."""
    return max(width or shutil.get_terminal_size((80, 24)).columns, LEAST_WIDTH)


class PlainDisplay:
    """One line per change of state; no redraw, no control character but the line feed."""

    pace = 0.0

    def __init__(self, file: TextIO, width: int | None) -> None:
        self._file = file
        self._width = columns(width)
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
                self._ask(question, view.language)

    def _ask(self, question: Interaction, language: Language) -> None:
        if question.decision is not None:
            self._write(question_text(question, language))
            return
        for line in question_lines(question, language, self._width):
            self._write(line.text)

    def say(self, text: str) -> None:
        for row in wrapped(text, self._width):
            self._write(row)

    def close(self, view: RunView) -> None:
        self.draw(view, "")
        for text in ending_texts(view):
            self.say(text)
        for text in (*found_texts(view), *usage_texts(view)):
            self.say(text)
        for line in answer_lines(view, self._width, None):
            self._write(line.text)

    def _is_news(self, name: str, value: str) -> bool:
        before = self._written.get(name)
        self._written[name] = value
        return before != value

    def _write(self, text: str) -> None:
        self._file.write(printable(row_text(text, self._width), self._file.encoding) + "\n")
        self._file.flush()


STYLES: Final = {
    "title": "bold",
    "status.done": "bold green",
    "status.rejected": "bold red",
    "status.failed": "bold red",
    "status.cancelled": "bold yellow",
    "status.incomplete": "bold yellow",
    "status.unknown": "bold yellow",
    "status.waiting": "bold magenta",
    "question": "bold magenta",
    "asked": "magenta",
    "open": "cyan",
    "failed": "red",
    "ended": "dim",
    "label": "bold",
    "said": "bold yellow",
}
"""Styles of the live display; a line whose name is not here is plain. Green is for `done` alone."""


class _AtOnce:
    """A stream of which a terminal shows each write as a whole, so that nobody sees half of a redraw."""

    def __init__(self, file: TextIO) -> None:
        self._file = file

    def write(self, text: str) -> int:
        return self._file.write(f"{_BEGIN}{text}{_END}" if "\x1b" in text else text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


class LiveDisplay:
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
        out: Any = _AtOnce(file)
        self._group, self._text = Group, Text
        self._console = Console(file=out, width=width, force_terminal=True, markup=False, emoji=False, highlight=False)
        self._live = Live(
            console=self._console, auto_refresh=False, transient=True, redirect_stdout=own, redirect_stderr=own
        )
        self._said: str | None = None
        self._closed = False

    def draw(self, view: RunView, type_: str) -> None:
        width, height = self._console.size
        said = self._said_rows(width)[: height - 1]
        rows = [*said, *lines(view, width, height - 1 - len(said))]
        with self._console:
            self._live.start()
            self._live.update(self._drawn(rows), refresh=True)

    def say(self, text: str) -> None:
        self._said = text
        if self._closed:
            self._console.print(self._drawn(self._said_rows(self._console.width)))

    def close(self, view: RunView) -> None:
        with self._console:  # one write: the last drawing goes as the whole of it comes
            self._live.stop()
            self._console.print(self._drawn(lines(view, self._console.width)), crop=False)
        self._closed = True

    def _said_rows(self, width: int) -> list[Line]:
        return [] if self._said is None else [Line("said", row) for row in wrapped(self._said, max(width, LEAST_WIDTH))]

    def _drawn(self, rows: list[Line]) -> Any:
        """Rows as texts, which are never read as markup."""
        encoding = self._console.encoding
        texts = [
            self._text(printable(row.text, encoding), STYLES.get(row.style, ""), no_wrap=True, overflow="crop")
            for row in rows
        ]
        return self._group(*texts)


class Steady:
    """Draws a display at its pace, and never lets a fault of it reach the run: the first is logged, or put into
    ``faults``, and ends it.
    """

    def __init__(self, display: Display, view: RunView, faults: list[Exception] | None = None) -> None:
        self.view = view
        self._display = display
        self._faults = faults
        self._type = ""
        self._next = time.monotonic()
        self._planned: asyncio.TimerHandle | None = None
        self._broken = False
        self._closed = False

    def changed(self, type_: str) -> None:
        """Draw now, or as soon as the pace allows; what comes meanwhile is drawn with it."""
        self._type = type_
        wait = self._next - time.monotonic()
        if wait <= 0:
            self._draw()
        elif self._planned is None:
            self._planned = asyncio.get_running_loop().call_later(wait, self._draw)

    def say(self, text: str) -> None:
        """Tell something that is no fact about the run."""
        self._try(lambda: self._display.say(text))
        if not self._closed:
            self.changed(self._type)

    def close(self) -> None:
        """Leave the whole of it on the screen."""
        self._closed = True
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
