"""A child process in a pseudo-terminal: what it shows, as bytes and as a screen, and what a person types."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path
from types import TracebackType
from typing import Self

import pyte

ROOT = Path(__file__).parent.parent
PATIENCE_S = 50.0


class Terminal:
    """Runs ``python -W error ARGUMENTS`` as the foreground job of a terminal of its own."""

    def __init__(self, *arguments: str, columns: int = 80, rows: int = 24, **environment: str | None) -> None:
        self.written: list[bytes] = []
        self.screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self.screen)
        self._seen = 0
        self._master, slave = pty.openpty()
        self._size(columns, rows)
        self.modes = termios.tcgetattr(self._master)
        plain = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "COLUMNS", "LINES")}
        chosen = {**plain, "TERM": "xterm-256color", "PYTHONPATH": str(ROOT), **environment}
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={name: value for name, value in chosen.items() if value is not None},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - nothing is locked there
        )
        os.close(slave)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._master)

    @property
    def text(self) -> str:
        """Everything that was written."""
        return b"".join(self.written).decode()

    @property
    def rows(self) -> list[str]:
        """What stands on the screen, without the empty rows at its end."""
        return "\n".join(row.rstrip() for row in self.screen.display).rstrip().split("\n")

    def until(self, words: str) -> None:
        """Read until these words came, since the last time that some were waited for."""
        end = time.monotonic() + PATIENCE_S
        while (place := self.text.find(words, self._seen)) < 0:
            assert self._read(end), f"{words!r} never came:\n{self.text[self._seen :]}"
        self._seen = place + len(words)

    def show(self, text: str) -> None:
        """Have something on the screen already."""
        self._stream.feed(text.encode())

    def type(self, text: str) -> None:
        """Type something; ``\\x03`` is Ctrl-C and ``\\x04`` Ctrl-D."""
        os.write(self._master, text.encode())

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process alone."""
        self._process.send_signal(number)

    def resize(self, columns: int, rows: int) -> None:
        """Make the terminal of another size."""
        self.screen.resize(rows, columns)
        self._size(columns, rows)

    def end(self) -> int:
        """Read to the end, and give the exit code."""
        end = time.monotonic() + PATIENCE_S
        while self._read(end):
            pass
        return self._process.wait(PATIENCE_S)

    def _read(self, end: float) -> bool:
        ready, _, _ = select.select([self._master], [], [], max(end - time.monotonic(), 0))
        assert ready, f"nothing more came:\n{self.text[self._seen :]}"
        try:
            read = os.read(self._master, 1 << 16)
        except OSError:  # Linux says so at the end
            return False
        self.written.append(read)
        self._stream.feed(read)
        return bool(read)

    def _size(self, columns: int, rows: int) -> None:
        fcntl.ioctl(self._master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def child(scene: str, *more: str) -> tuple[str, ...]:
    """The arguments that play a scene of :mod:`tests.scenes`."""
    return ("-m", "tests.scenes", scene, *more)
