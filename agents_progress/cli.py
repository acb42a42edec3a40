"""The command ``agents-progress``: look at recorded runs, at a journal, at the protocol, and at what is installed.

A command prints what it found, or one sentence on the error stream that says what to do; a traceback is a fault of this
package. Foreign text is escaped before it reaches the screen, and JSON is printed in ASCII for the same reason.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import platform
import shutil
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final, TypeVar

from agents_progress.errors import CursorExpired, JournalUnavailable, ProgressError, RunNotFound, UsageError
from agents_progress.events import PROTOCOL, is_run_id, json_schema
from agents_progress.journal import DEFAULT_URL, Journal, RunRow, open_journal
from agents_progress.labels import label
from agents_progress.messages import LANGUAGES, Language, sentence
from agents_progress.plaintext import clean, cut, printable
from agents_progress.recordings import Recording, built_in, load
from agents_progress.render import render
from agents_progress.view import RunView

T = TypeVar("T")

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
_PAGE: Final = 1000
_PACKAGES: Final = ("agents-progress", "openai-agents", "openai", "pydantic", "rich")


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


def _say(text: str) -> None:
    """Print rows that are clean already; only what the output's encoding lacks is replaced."""
    print(printable(text, sys.stdout.encoding))


def _say_json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=True))


# Recorded runs.


def _replay(chosen: argparse.Namespace) -> int:
    if chosen.list or chosen.source is None:
        for name in built_in():
            _say(clean(name))
        return FINE
    recordings = load(chosen.source)
    for recording in recordings:
        if len(recordings) > 1:
            _say(f"== {cut(clean(recording.name), 120)}")
        _replay_one(recording, chosen.language)
    return FINE


def _replay_one(recording: Recording, language: Language) -> None:
    """One line per envelope, with what a reader may show after it; then the same after the input has ended."""
    view = RunView(recording.run_id, language)

    def step(number: object, what: object) -> None:
        _say(f"{cut(clean(number), 8):>8}  {cut(clean(what), 64):<24}  {view.status:<10}  {view.message}")

    for event in recording.events:
        view.feed(event)
        fields = event if isinstance(event, dict) else {}
        seq = fields.get("seq")
        step(seq if isinstance(seq, int) and abs(seq) < 10**15 else "-", fields.get("type", "-"))
    view.close_transport()
    step("end", "of input")
    counted = {"duplicates": view.duplicates, "foreign": view.foreign}
    remarks = [*view.issues, *(f"{name} {count}" for name, count in counted.items() if count)]
    if remarks:
        _say(f"{'':>8}  {', '.join(remarks)}")


# The protocol.


def _schema(chosen: argparse.Namespace) -> int:
    if chosen.check is None:
        _say_json(json_schema())
        return FINE
    try:
        same = json.loads(Path(chosen.check).read_bytes()) == json.loads(json.dumps(json_schema()))
    except (ValueError, RecursionError):
        raise UsageError(f"{chosen.check} is no JSON; write it with `agents-progress schema`") from None
    verdict = "is the schema of" if same else "differs from the schema of"
    _say(f"{clean(chosen.check)} {verdict} {PROTOCOL}")
    return FINE if same else DIFFERS


# Journals.


def _asked(url: str, question: Callable[[Journal], Awaitable[T]]) -> T:
    """What a journal answers; one that does not exist is refused and not made."""

    async def ask() -> T:
        journal = open_journal(url, create=False)
        try:
            with suppress(JournalUnavailable):  # it may be readable only
                await journal.expire()  # a run whose owner is gone is not running
            return await question(journal)
        finally:
            await journal.close()

    return asyncio.run(ask())


def _runs(chosen: argparse.Namespace) -> int:
    rows = _asked(chosen.journal, lambda journal: journal.runs(limit=chosen.limit))
    newest = {row.task_id: row.run_id for row in reversed(rows)}  # they come newest first
    later = {row.run_id: newest[row.task_id] for row in rows if row.standing.outcome == "paused"}
    continued = {run_id: other for run_id, other in later.items() if run_id != other}
    if chosen.json:
        _say_json([_run_fields(row, continued.get(row.run_id), chosen.language) for row in rows])
        return FINE
    width = max((len(row.run_id) for row in rows), default=0)
    for row in rows:
        remark = f"(continued as {continued[row.run_id]})" if row.run_id in continued else ""
        title = cut(clean(row.title or ""), 60)
        columns = (f"{row.run_id:<{width}}", f"{row.status:<10}", f"{row.seq:>6}", row.updated_at, title, remark)
        _say(clean("  ".join(columns).rstrip()))
    if not rows:
        _say(f"no runs in {clean(chosen.journal)}")
    return FINE


def _run_fields(row: RunRow, continued_as: str | None, language: Language) -> dict[str, Any]:
    return {
        "run_id": row.run_id,
        "task_id": row.task_id,
        "title": row.title,
        "status": row.status,
        "message": sentence(row.status, language),
        "seq": row.seq,
        "started_at": row.started_at,
        "updated_at": row.updated_at,
        "labels": dict(row.labels),
        "continued_as": continued_as,
    }


def _show(chosen: argparse.Namespace) -> int:
    async def question(journal: Journal) -> tuple[RunView, RunRow | None]:
        view = await _view(journal, chosen.run_id, chosen.language)
        return view, await _continuation(journal, view)

    view, later = _asked(chosen.journal, question)
    if chosen.json:
        more = {"status": view.status, "message": view.message, "continued_as": later.run_id if later else None}
        _say_json({**view.snapshot(), **more})
        return FINE
    if later is not None:  # first, for the questions below are answered
        words = {"run_id": later.run_id, "sentence": sentence(later.status, chosen.language)}
        _say(clean(label("continued", chosen.language, **words)))
    width = shutil.get_terminal_size((80, 24)).columns
    _say(render(view, width).removesuffix("\n"))
    return FINE


async def _continuation(journal: Journal, view: RunView) -> RunRow | None:
    """The newest run of the task, where that goes on from a paused one."""
    if view.standing.outcome != "paused" or view.task_id is None:
        return None
    (newest,) = await journal.runs(task_id=view.task_id, limit=1) or (None,)
    return None if newest is None or newest.run_id == view.run_id else newest


async def _view(journal: Journal, run_id: str, language: Language) -> RunView:
    """The run as far as the journal has it. A run without an ending is still open as far as anybody here knows."""
    view, page = RunView(run_id, language), []
    if is_run_id(run_id):
        try:
            page = await journal.read(run_id, 0, _PAGE)
        except CursorExpired as pruned:
            view = RunView.from_snapshot(pruned.snapshot, language)
            page = await journal.read(run_id, view.seq, _PAGE)
    if not page and not view.seq:
        raise RunNotFound(f"the journal holds no run {run_id}; `agents-progress runs` lists those it has")
    while page:
        for envelope in page:
            view.feed(envelope.to_dict())  # checked again: a file may have been written by anybody
        page = await journal.read(run_id, page[-1].seq, _PAGE)
    return view


# What is installed, and what it looks like.


def _doctor(chosen: argparse.Namespace) -> int:
    from agents_progress.sdk import compat

    _say(f"{'python':<16} {platform.python_version()}")
    _say(f"{'platform':<16} {clean(platform.platform())}")
    for package in _PACKAGES:
        _say(f"{package:<16} {clean(_installed(package))}")
    found, floor = compat.installed(), ".".join(map(str, compat.FLOOR))
    if found is None:
        _say(f"openai-agents is not installed; install openai-agents>={floor}")
        return DIFFERS
    if compat.release(found) < compat.FLOOR:
        _say(f"openai-agents {clean(found)} is too old to be followed; install openai-agents>={floor}")
        return DIFFERS
    verified = "verified" if found in compat.VERIFIED else "not verified, and used all the same"
    _say(f"openai-agents {clean(found)} is {verified}; verified releases are {', '.join(compat.VERIFIED)}")
    return _compared(found)


def _compared(release: str) -> int:
    """What differs from the verified surface. What an older release does not have yet is counted and not listed."""
    from agents_progress.sdk import compat
    from agents_progress.sdk.surface import differences, surface, verified_surface

    verified = verified_surface()
    older = compat.release(release) < compat.release(verified["of"]["openai-agents"])
    against = " and ".join(f"{package} {number}" for package, number in verified["of"].items())
    try:
        found = differences(verified["facts"], surface())
    except ImportError as error:
        _say(f"openai-agents cannot be imported: {clean(error)}")
        return DIFFERS
    listed = [item for item in found if not (older and item.kind == "gone")]
    lost = sum(item.kind == "lost" for item in found)
    _say(f"compared with {against}: {_told(len(listed), len(found) - len(listed))}")
    for item in listed:
        _say(f"  {clean(item)}")
    if lost:
        _say(f"this package needs {lost} of them to tell how a run ends; install a verified release")
    return DIFFERS if lost else FINE


def _told(listed: int, not_yet: int) -> str:
    what = "nothing differs" if not listed else f"{listed} {'thing differs' if listed == 1 else 'things differ'}"
    return what + (f"; {not_yet} came later" if not_yet else "")


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _demo(chosen: argparse.Namespace) -> int:
    demo: Any = import_module("agents_progress.demo")
    code: int = asyncio.run(demo.main(chosen.journal, chosen.fast, chosen.language))
    return code


# The options.


@dataclass(frozen=True, slots=True)
class Command:
    """One command: what it does, in a line, and its options."""

    name: str
    run: Callable[[argparse.Namespace], int]
    about: str
    options: tuple[Callable[[argparse.ArgumentParser], object], ...]


def _option(*names: str, **settings: Any) -> Callable[[argparse.ArgumentParser], object]:
    return lambda parser: parser.add_argument(*names, **settings)


def _at_least_one(text: str) -> int:
    number = int(text)
    if not 1 <= number <= 1_000_000:
        raise ValueError
    return number


_at_least_one.__name__ = "count"  # argparse says "invalid count value"

_LANGUAGE: Final = _option("--language", choices=LANGUAGES, default="en", help="of the sentences (default: en)")
_JOURNAL: Final = _option(
    "--journal", metavar="URL", default=DEFAULT_URL, help=f"where the runs are (default: {DEFAULT_URL})"
)
_JSON: Final = _option("--json", action="store_true", help="print JSON")

COMMANDS: Final = (
    Command(
        "replay",
        _replay,
        "feed recorded envelopes to a view, step by step",
        (
            _option("source", nargs="?", metavar="FILE|VECTOR", help="a file, FILE#CASE, a built-in case, or -"),
            _option("--list", action="store_true", help="list the built-in cases, as without a FILE"),
            _LANGUAGE,
        ),
    ),
    Command(
        "schema",
        _schema,
        "print the JSON Schema of an envelope",
        (_option("--check", metavar="FILE", help="say whether a file holds this schema instead"),),
    ),
    Command(
        "runs",
        _runs,
        "list the newest runs of a journal",
        (
            _JOURNAL,
            _option("--limit", type=_at_least_one, default=20, metavar="N", help="at most so many (default: 20)"),
            _JSON,
            _LANGUAGE,
        ),
    ),
    Command(
        "show",
        _show,
        "show one run of a journal",
        (_option("run_id", metavar="RUN_ID"), _JOURNAL, _JSON, _LANGUAGE),
    ),
    Command("doctor", _doctor, "say what is installed, whether it was verified, and what differs", ()),
    Command(
        "demo",
        _demo,
        "play some runs without a model or a network",
        (_JOURNAL, _option("--fast", action="store_true", help="do not pause between events"), _LANGUAGE),
    ),
)


def _parser() -> argparse.ArgumentParser:
    layout = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "agents-progress",
        description="Look at runs of agents: what they do, whether they are over, and whether to trust the result.",
        epilog=EXIT_CODES,
        formatter_class=layout,
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    for command in COMMANDS:
        own = commands.add_parser(
            command.name, help=command.about, description=command.about, epilog=EXIT_CODES, formatter_class=layout
        )
        for add in command.options:
            add(own)
        own.set_defaults(run=command.run)
    return parser
