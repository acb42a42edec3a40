"""Questions of a paused run at the prompt of a terminal: what is asked, exactly, and what a person types.

The terminal stays as it is, with its own line editing; while somebody thinks, the event loop goes on.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from collections.abc import Awaitable, Coroutine, Iterator, Mapping, Sequence
from typing import Any, Final, Literal, NamedTuple, TextIO, TypeAlias, TypeVar, cast

from agents_progress.answers import TEXTS, Reply, Wanted, options_offered, refuse, refuse_arguments
from agents_progress.errors import AnswerNotUsed
from agents_progress.labels import Label, label, refusal
from agents_progress.messages import Language
from agents_progress.payloads import Decision
from agents_progress.plaintext import clean, printable
from agents_progress.render import laid_out, question_text, wrapped
from agents_progress.rows import Interaction
from agents_progress.terminal.displays import columns
from agents_progress.view import RunView

T = TypeVar("T")
_Choice: TypeAlias = Literal["approved", "edited", "rejected", "skipped"]

_CHOICES: Final[dict[str, _Choice]] = {
    **dict.fromkeys(("a", "approve"), "approved"),
    **dict.fromkeys(("e", "edit"), "edited"),
    **dict.fromkeys(("r", "reject"), "rejected"),
    **dict.fromkeys(("s", "skip"), "skipped"),
}
_OFFERS: Final[dict[Label, frozenset[_Choice]]] = {
    "prompt_answer": frozenset({"approved", "rejected", "skipped"}),
    "prompt_edit": frozenset({"approved", "edited", "rejected", "skipped"}),
    "prompt_reject": frozenset({"rejected", "skipped"}),
}
"""What is asked to what may be answered."""
_TEXT_PROMPTS: Final[dict[Wanted, Label | None]] = {
    "refused": None,
    "optional": "prompt_text_optional",
    "required": "prompt_text",
    "option": "prompt_option",
}
_MOST_TYPED: Final = 4096
_MOST_REASON: Final = 500


class Decided(NamedTuple):
    """What a person decided about one question, why, where that was asked, and what the answer carries."""

    decision: Decision
    reason: str | None = None
    arguments: Mapping[str, Any] | None = None
    text: str | None = None


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

    def refused(self, code: str, facts: Mapping[str, object]) -> None:
        """Tell why an answer was not used."""
        self._write(self._rows(clean(refusal(code, self._language, facts))))

    async def ask(self, view: RunView, question: Interaction, *, with_reason: bool) -> Decided | None:
        """What a person decides, None where they leave it to somebody else. Raises :exc:`EOFError` when they are gone.

        What is not shown cannot be approved, unless the application says that this may be.
        """
        self._write(self._shown(view, question))
        choice = await self._chosen(_offered(question))
        if choice == "skipped":
            return None
        arguments = await self._edited(question) if choice == "edited" else None
        text = None if choice == "rejected" else await self._text(question, arguments)
        reason = await self._asked("prompt_reason") if with_reason or choice == "rejected" else ""
        decision: Decision = "rejected" if choice == "rejected" else "approved"
        return Decided(decision, reason[:_MOST_REASON] or None, arguments, text)

    async def _chosen(self, name: Label) -> _Choice:
        while True:
            choice = _CHOICES.get((await self._asked(name)).casefold())
            if choice is not None and choice in _OFFERS[name]:
                return choice
            self.say("prompt_again")

    async def _edited(self, question: Interaction) -> Mapping[str, Any] | None:
        """Other arguments that the question takes; None where they are left as they are."""
        while typed := await self._asked("prompt_arguments"):
            try:
                found = json.loads(typed)
                refuse_arguments(question, found)
            except (ValueError, RecursionError):
                self.refused("arguments_not_object", {})
            except AnswerNotUsed as error:
                self.refused(error.code, error.facts)
            else:
                return cast("Mapping[str, Any]", found)
        return None

    async def _text(self, question: Interaction, arguments: Mapping[str, Any] | None) -> str | None:
        """The text that an approval of this question carries, until it is one that may."""
        prompt = _TEXT_PROMPTS[wanted := TEXTS.get(question.kind, "refused")]
        if prompt is None:
            return None
        options = options_offered(question, arguments) if wanted == "option" else ()
        for number, option in enumerate(options, 1):
            self._write(self._rows(clean(option), f"  {number}. "))
        while True:
            typed = await self._asked(prompt)
            text = _option(options, typed) if wanted == "option" else typed or None
            try:
                refuse(question, Reply(True, arguments=arguments, text=text))
            except AnswerNotUsed as error:
                self.refused(error.code, error.facts)
            else:
                return text

    async def _asked(self, name: Label) -> str:
        return (await self._line(label(name, self._language))).strip()

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


def _offered(question: Interaction) -> Label:
    """What a person may do with a question that is shown as it is here."""
    if not question.approvable or (TEXTS.get(question.kind) == "option" and not options_offered(question)):
        return "prompt_reject"
    return "prompt_answer" if question.details is None or question.takes is None else "prompt_edit"


def _option(options: Sequence[str], typed: str) -> str:
    """The option behind its number. Behind what is no number of one there is nothing."""
    chosen = int(typed) if typed.isdecimal() and len(typed) < 9 else 0
    return options[chosen - 1] if 1 <= chosen <= len(options) else ""


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
