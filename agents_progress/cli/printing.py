"""What every command prints with, and the exit codes of all of them."""

from __future__ import annotations

import json
import sys
from typing import Final

from agents_progress.plaintext import printable

FINE: Final = 0
DIFFERS: Final = 1
REFUSED: Final = 2
INTERRUPTED: Final = 130

EXIT_CODES: Final = """exit codes:
  0    what was asked for was printed
  1    the answer is no: the schema differs, or the installed SDK cannot be used
  2    it could not be done: a wrong option, a bad or unknown file, run or journal, or the output was closed
  130  interrupted
"""


def say(text: str) -> None:
    """Print rows that are clean already; only what the output's encoding lacks is replaced."""
    print(printable(text, sys.stdout.encoding))


def say_json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=True))
