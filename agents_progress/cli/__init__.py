"""The command ``agents-progress``: look at recorded runs, at a journal, at the protocol, and at what is installed.

A command prints what it found, or one sentence on the error stream that says what to do; a traceback is a fault of this
package. Foreign text is escaped before it reaches the screen, and JSON is printed in ASCII for the same reason. The
table of the commands is :data:`COMMANDS`; each family of them has a module here.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from importlib.metadata import version

from agents_progress.cli.commands import COMMANDS
from agents_progress.cli.printing import EXIT_CODES, INTERRUPTED, REFUSED
from agents_progress.errors import ProgressError
from agents_progress.plaintext import clean

__all__ = ["COMMANDS", "EXIT_CODES", "main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command, of the process's own arguments by default, and give its exit code."""
    chosen = _parser().parse_args(argv)
    try:
        code: int = chosen.run(chosen)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        return _refuse("the output was closed before everything was written")
    except ProgressError as error:
        return _refuse(str(error))
    except OSError as error:
        return _refuse(f"{error.strerror or type(error).__name__}: {error.filename or 'the output'}")
    except KeyboardInterrupt:
        return INTERRUPTED


def _refuse(why: str) -> int:
    print(f"agents-progress: {clean(why)}", file=sys.stderr)
    return REFUSED


def _parser() -> argparse.ArgumentParser:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "agents-progress",
        description="Look at runs of agents: what they do, whether they are over, and whether to trust the result.",
        epilog=EXIT_CODES,
        formatter_class=layout,
    )
    parser.add_argument("--version", action="version", version=f"%(prog)s {version('agents-progress')}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        own = commands.add_parser(
            command.name, help=command.about, description=command.about, epilog=EXIT_CODES, formatter_class=layout
        )
        for add in command.options:
            add(own)
        own.set_defaults(run=command.run)
    return parser
