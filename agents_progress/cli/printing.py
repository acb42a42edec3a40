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
  0    what was asked for was printed or done; of a followed run: it is done
  1    the answer is no: the schema differs, the installed SDK cannot be used, or a followed run is not done
  2    it could not be done: a wrong option, a bad or unknown file, run, journal or server, or the output was closed
  130  interrupted
"""


def say(text: str) -> None:
    """Print rows that are clean already; only what the output's encoding lacks is replaced."""
    print(printable(text, sys.stdout.encoding))


def say_json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=True))
