"""What every command prints with, and the exit codes of all of them."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TextIO

from agents_progress.plaintext import printable

FINE: Final = 0
DIFFERS: Final = 1
REFUSED: Final = 2
INTERRUPTED: Final = 130

EXIT_CODES: Final = """exit codes:
  0    what was asked for was printed or done; of a followed run: it is done
  1    the answer is no: the schema differs, the installed SDK cannot be used, or a followed run is not done
  2    it could not be done: a wrong option, a bad or unknown file, run, journal or server, or the output was closed
  130  interrupted
"""


def say(text: str) -> None:
    """Print rows that are clean already; only what the output's encoding lacks is replaced."""
    print(printable(text, sys.stdout.encoding))


def say_json(value: object) -> None:
    print(as_json(value))


def as_json(value: object) -> str:
    """JSON as every command prints it, in ASCII."""
    return json.dumps(value, indent=2, ensure_ascii=True)


@contextmanager
def output(file: str | None) -> Iterator[TextIO]:
    """The standard output, or a new file for the eyes of its owner, which is removed when it did not become whole.

    Takes ASCII.
    """
    if file is None:
        yield sys.stdout
        return
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="ascii", newline="\n") as out:
            yield out
    except BaseException:
        Path(file).unlink()
        raise
