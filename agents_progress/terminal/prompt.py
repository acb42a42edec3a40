"""Questions of a paused run at the prompt of a terminal: what is asked, exactly, and what a person types.

The terminal stays as it is, with its own line editing; while somebody thinks, the event loop goes on.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Awaitable, Coroutine, Iterator
from typing import Any, Final, Literal, NamedTuple, TextIO, TypeAlias, TypeVar

from agents_progress.labels import Label, label
from agents_progress.messages import Language
from agents_progress.payloads import Decision
from agents_progress.plaintext import printable
from agents_progress.render import laid_out, question_text, wrapped
from agents_progress.rows import Interaction
from agents_progress.terminal.displays import columns
from agents_progress.view import RunView

T = TypeVar("T")
_Choice: TypeAlias = Literal["approved", "rejected", "skipped"]

_CHOICES: Final[dict[str, _Choice]] = {
    **dict.fromkeys(("a", "approve"), "approved"),
    **dict.fromkeys(("r", "reject"), "rejected"),
    **dict.fromkeys(("s", "skip"), "skipped"),
}
_MOST_TYPED: Final = 4096
_MOST_REASON: Final = 500


class Decided(NamedTuple):
    """What a person decided about one question, and why, where that was asked."""

    decision: Decision
    reason: str | None = None


class AnsweredElsewhere(Exception):
    """Somebody else answered the question that was being asked here."""


def can_ask(file: TextIO) -> bool:
    """Whether there is a person to ask: they see ``file``, and what they type comes here."""
    source = sys.stdin
    if source is None or source.closed or not (file.isatty() and source.isatty()):
        return False
    try:
        return os.tcgetpgrp(source.fileno()) == os.getpgrp()  # in the background nobody types
    except (AttributeError, OSError):  # there are no jobs here
        return True


class Prompt:
    """Asks the person at a terminal, in a language."""

    def __init__(self, file: TextIO, width: int | None, language: Language) -> None:
        self._file = file
        self._width = width
        self._language = language

    def say(self, name: Label) -> None:
        """Tell one sentence."""
        self._write(self._rows(label(name, self._language)))

    async def ask(self, view: RunView, question: Interaction, *, with_reason: bool) -> Decided | None:
        """What a person decides, None where they leave it to somebody else. Raises :exc:`EOFError` when they are gone.

        What is not shown cannot be approved, unless the application says that this may be.
        """
        self._write(self._shown(view, question))
        choice = await self._chosen(question.approvable)
        if choice == "skipped":
            return None
        reason = await self._line(label("prompt_reason", self._language)) if with_reason else ""
        return Decided(choice, reason.strip()[:_MOST_REASON] or None)

    async def _chosen(self, approvable: bool) -> _Choice:
        text = label("prompt_answer" if approvable else "prompt_reject", self._language)
        while True:
            choice = _CHOICES.get((await self._line(text)).strip().casefold())
            if choice is not None and (approvable or choice != "approved"):
                return choice
            self.say("prompt_again")

    def _shown(self, view: RunView, question: Interaction) -> Iterator[str]:
        language, room = self._language, columns(self._width)
        yield ""
        yield from self._rows(question_text(question, language), "? ")
        if question.details is None:
            yield from self._rows(label("not_shown_allowed" if question.approve_blind else "not_shown", language), "  ")
        else:
            yield from self._rows(label("exactly", language), "  ")
            for row in laid_out(question.details):
                indent = "    " + row[: len(row) - len(row.lstrip(" "))]
                yield from wrapped(row.lstrip(" "), room, lead=indent[: room // 2])
        yield from self._rows(label("in_tool", language, name=question.tool), "  ")
        if view.agent is not None:
            yield from self._rows(label("in_agent", language, name=view.agent), "  ")
        yield from self._rows(label("in_run", language, run_id=view.run_id), "  ")

    def _rows(self, text: str, lead: str = "") -> list[str]:
        return wrapped(text, columns(self._width), lead=lead)

    async def _line(self, text: str) -> str:
        *above, last = self._rows(text)
        _drop_typed(sys.stdin.fileno())
        self._write(above)
        self._file.write(printable(f"{last} ", self._file.encoding))
        self._file.flush()
        line = ""
        try:
            line = await _typed(sys.stdin)
        finally:
            if not line.endswith("\n"):
                self._write([""])  # what is told next begins a row
        if not line:
            raise EOFError
        return line

    def _write(self, rows: Iterator[str] | list[str]) -> None:
        self._file.write("".join(f"{printable(row, self._file.encoding)}\n" for row in rows))
        self._file.flush()


async def until(answered: Coroutine[Any, Any, object], asking: Coroutine[Any, Any, T]) -> T:
    """What is asked here, unless it is answered elsewhere first. Raises :exc:`AnsweredElsewhere`."""
    asked, elsewhere = asyncio.ensure_future(asking), asyncio.ensure_future(answered)
    try:
        await asyncio.wait((asked, elsewhere), return_when=asyncio.FIRST_COMPLETED)
        if not asked.done():
            await elsewhere
            raise AnsweredElsewhere
        return await asked
    finally:
        both: list[Awaitable[object]] = [asked, elsewhere]
        for task in (asked, elsewhere):
            task.cancel()
        await asyncio.gather(*both, return_exceptions=True)


async def _typed(source: TextIO) -> str:
    """The next line that is typed, empty at the end of the input."""
    loop, descriptor = asyncio.get_running_loop(), source.fileno()
    typed: asyncio.Future[bytes] = loop.create_future()

    def read() -> None:
        if not typed.done():
            typed.set_result(_read(descriptor))

    try:
        loop.add_reader(descriptor, read)
    except NotImplementedError:  # a loop that waits for sockets alone, as on Windows
        threading.Thread(target=lambda: loop.call_soon_threadsafe(_give, typed, _read(descriptor)), daemon=True).start()
        line = await typed
    else:
        try:
            line = await typed
        finally:
            loop.remove_reader(descriptor)
    return line.decode(source.encoding or "utf-8", "replace")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _MOST_TYPED)
    except OSError:  # the terminal is gone
        return b""


def _give(typed: asyncio.Future[bytes], line: bytes) -> None:
    if not typed.done():
        typed.set_result(line)


def _drop_typed(descriptor: int) -> None:
    """Forget what was typed ahead: whoever typed it had not seen what is asked."""
    if sys.platform != "win32":
        import termios

        termios.tcflush(descriptor, termios.TCIFLUSH)
