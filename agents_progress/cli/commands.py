"""The table of the commands and their options."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Final, get_args

from agents_progress.cli import reactions as reacting
from agents_progress.cli.answering import answer, cancel
from agents_progress.cli.doctor import doctor
from agents_progress.cli.effects import effects, resolve
from agents_progress.cli.export import export
from agents_progress.cli.followed import ACTOR
from agents_progress.cli.journals import runs, show
from agents_progress.cli.prune import age, prune
from agents_progress.cli.replay import replay
from agents_progress.cli.report import report
from agents_progress.cli.schema import schema
from agents_progress.cli.serve import serve
from agents_progress.cli.tail import TOKEN, tail
from agents_progress.cli.why import why
from agents_progress.effects.entry import State
from agents_progress.effects.reactions.entry import State as ReactionState
from agents_progress.journal import DEFAULT_URL
from agents_progress.messages import LANGUAGES, Status
from agents_progress.payloads import CancelMode
from agents_progress.unicode import name_of


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


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number <= 65535:
        raise ValueError
    return number


def _json(text: str) -> object:
    try:
        found: object = json.loads(text)
    except RecursionError:
        raise ValueError from None
    return found


def _seconds(text: str) -> float:
    number = float(text)
    if not 0 <= number <= 86_400:
        raise ValueError
    return number


_at_least_one.__name__ = "count"  # argparse says "invalid count value"
_port.__name__, _seconds.__name__ = "port", "seconds"

_RUN_ID: Final = _option("run_id", metavar="RUN_ID")
_LANGUAGE: Final = _option("--language", choices=LANGUAGES, default="en", help="of the sentences (default: en)")
_JOURNAL: Final = _option(
    "--journal", metavar="URL", default=DEFAULT_URL, help=f"where the runs are (default: {DEFAULT_URL})"
)
_OUTPUT: Final = _option("--output", "-o", metavar="FILE", help="write a new file instead")
_ACTOR: Final = _option("--actor", type=name_of, default=ACTOR, metavar="NAME", help=f"who decides (default: {ACTOR})")
_JSON: Final = _option("--json", action="store_true", help="print JSON")


def _decision(parser: argparse.ArgumentParser) -> None:
    one = parser.add_mutually_exclusive_group(required=True)
    one.add_argument("--approve", action="store_true", help="let it be done")
    one.add_argument("--reject", action="store_true", help="let it not be done")


def _found_out(parser: argparse.ArgumentParser) -> None:
    either = parser.add_mutually_exclusive_group(required=True)
    either.add_argument("--happened", action="store_true", help="it did; further calls get its output")
    either.add_argument(
        "--did-not-happen", action="store_true", help="it did not and cannot any more; the next call runs it"
    )


def _looked_up(parser: argparse.ArgumentParser) -> None:
    one = parser.add_mutually_exclusive_group(required=True)
    one.add_argument("--look", action="store_true", help="have a worker read its receipt now")
    one.add_argument("--not-submitted", action="store_true", help="it certainly did not arrive; submit it again")
    one.add_argument("--give-up", action="store_true", help="nobody will find out; it stops")


def _actions(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="ACTION", help="of one of them; without it they are listed")
    for action in REACTIONS:
        own = actions.add_parser(action.name, help=action.about, description=action.about)
        for add in action.options:
            add(own)
        own.set_defaults(run=action.run)


def _demo(chosen: argparse.Namespace) -> int:
    demo: Any = import_module("agents_progress.demo")
    code: int = asyncio.run(demo.main(chosen.journal, chosen.fast, chosen.language, ask=chosen.ask))
    return code


_TASK_ID: Final = _option("task_id", metavar="TASK_ID")
_SAME_JOURNAL: Final = _option("--journal", metavar="URL", default=argparse.SUPPRESS, help="where the reactions are")

REACTIONS: Final = (
    Command(
        "show",
        reacting.show,
        "show one reaction and its audit log",
        (
            _TASK_ID,
            _option("--bodies", action="store_true", help="its notification's words and its result, too"),
            _option("--json", action="store_true", default=argparse.SUPPRESS, help="print JSON"),
            _SAME_JOURNAL,
        ),
    ),
    Command(
        "approve",
        reacting.approve,
        "approve exactly what a reaction asks",
        (
            _TASK_ID,
            _option("--digest", metavar="HEX", required=True, help="of what was shown to you: `asked` in `show`"),
            _ACTOR,
            _SAME_JOURNAL,
        ),
    ),
    Command("reject", reacting.reject, "reject what a reaction asks", (_TASK_ID, _ACTOR, _SAME_JOURNAL)),
    Command("cancel", reacting.cancel, "stop a reaction that was not submitted", (_TASK_ID, _ACTOR, _SAME_JOURNAL)),
    Command(
        "resolve",
        reacting.resolve,
        "say more about an uncertain reaction, after somebody looked",
        (_TASK_ID, _looked_up, _ACTOR, _SAME_JOURNAL),
    ),
)
"""What can be done about one reaction."""

COMMANDS: Final = (
    Command(
        "replay",
        replay,
        "feed recorded envelopes to a view, step by step",
        (
            _option("source", nargs="?", metavar="FILE|VECTOR", help="a file, FILE#CASE, a built-in case, or -"),
            _option("--list", action="store_true", help="list the built-in cases, as without a FILE"),
            _LANGUAGE,
        ),
    ),
    Command(
        "schema",
        schema,
        "print the JSON Schema of an envelope",
        (_option("--check", metavar="FILE", help="say whether a file holds this schema instead"),),
    ),
    Command(
        "runs",
        runs,
        "list the newest runs of a journal",
        (
            _JOURNAL,
            _option("--status", choices=get_args(Status), metavar="STATUS", help="those of this status, as running"),
            _option("--before", metavar="RUN_ID", help="those that began before this one"),
            _option("--limit", type=_at_least_one, default=20, metavar="N", help="at most so many (default: 20)"),
            _JSON,
            _LANGUAGE,
        ),
    ),
    Command(
        "show",
        show,
        "show one run of a journal",
        (_RUN_ID, _JOURNAL, _JSON, _LANGUAGE),
    ),
    Command(
        "why",
        why,
        "say what a run's status rests on: evidence, verdict, lease, owner, silence",
        (_RUN_ID, _JOURNAL, _JSON, _LANGUAGE),
    ),
    Command(
        "tail",
        tail,
        "follow one run live, until its log is closed",
        (
            _option(
                "run_id", metavar="URL|RUN_ID", help="https://HOST/runs/RUN_ID of a server, or a run of the journal"
            ),
            _JOURNAL,
            _option("--continued", action="store_true", help="after a pause, follow the run that goes on"),
            _option("--answer", action="store_true", help="ask you what the run asks, and follow the run that goes on"),
            _option(
                "--token-file", metavar="FILE", help=f"where the server's token is (default: the variable {TOKEN})"
            ),
            _LANGUAGE,
        ),
    ),
    Command(
        "answer",
        answer,
        "approve or reject what a paused run asks",
        (
            _RUN_ID,
            _option("interaction_id", metavar="ASK", help="the question, as ask-1"),
            _decision,
            _option("--digest", metavar="HEX", help="of what was shown to you; without it, --approve shows that"),
            _option("--arguments", type=_json, metavar="JSON", help="approve these instead: one object"),
            _option("--text", metavar="TEXT", help="what answers a clarification, or the option that you choose"),
            _option("--reason", metavar="TEXT", help="why; the model is told why you reject"),
            _ACTOR,
            _JOURNAL,
            _LANGUAGE,
        ),
    ),
    Command(
        "cancel",
        cancel,
        "ask a run to stop; a paused one ends at once",
        (
            _RUN_ID,
            _option("--mode", choices=get_args(CancelMode), default="immediate", help="(default: immediate)"),
            _ACTOR,
            _JOURNAL,
        ),
    ),
    Command(
        "export",
        export,
        "print the log of a run, one envelope a line, for replay",
        (_RUN_ID, _JOURNAL, _OUTPUT),
    ),
    Command(
        "report",
        report,
        "write one page about a run and those that continue it: ending, timeline, tokens, evidence",
        (_RUN_ID, _OUTPUT, _JSON, _JOURNAL, _LANGUAGE),
    ),
    Command(
        "prune",
        prune,
        "replace the logs of old runs by snapshots; runs that go on or wait are left alone",
        (
            _option(
                "--older-than", type=age, required=True, metavar="AGE", help="silent for longer: 30d, 12h, 90m or 5s"
            ),
            _option("--erase", action="store_true", help="remove everything about them instead"),
            _option("--dry-run", action="store_true", help="only say which they are"),
            _JOURNAL,
        ),
    ),
    Command(
        "effects",
        effects,
        "list what tools that act once did, the newest first",
        (
            _JOURNAL,
            _option("--state", choices=get_args(State), metavar="STATE", help="those in this state, as uncertain"),
            _option("--task", metavar="ID", help="those of this task"),
            _option("--limit", type=_at_least_one, default=20, metavar="N", help="at most so many (default: 20)"),
            _JSON,
        ),
    ),
    Command(
        "resolve",
        resolve,
        "say what became of an uncertain effect, after somebody looked",
        (
            _option("entry", metavar="ENTRY", help="the first 8 or more digits that `effects` lists"),
            _found_out,
            _option("--output", metavar="JSON", help="what the tool is to return for it (default: null)"),
            _option("--by", type=name_of, required=True, metavar="NAME", help="who found it out"),
            _JOURNAL,
        ),
    ),
    Command(
        "reactions",
        reacting.reactions,
        "list what outside changes led to, the newest first; show, approve, reject, cancel or resolve one",
        (
            _JOURNAL,
            _option("--state", choices=get_args(ReactionState), metavar="STATE", help="those in this state, as ready"),
            _option("--limit", type=_at_least_one, default=20, metavar="N", help="at most so many (default: 20)"),
            _JSON,
            _actions,
        ),
    ),
    Command(
        "serve",
        serve,
        "serve a decorated function on this machine, behind a token",
        (
            _option("target", metavar="MODULE:FUNCTION"),
            _JOURNAL,
            _option("--host", default="127.0.0.1", help="where to listen (default: 127.0.0.1)"),
            _option("--port", type=_port, default=8080, metavar="N", help="0 takes a free one (default: 8080)"),
            _option("--authorize", metavar="MODULE:FUNCTION", help="who may do what; in place of the token"),
            _option("--allow-host", action="append", default=[], metavar="NAME", help="another name it is reached by"),
            _option("--certificate", metavar="FILE", help="for TLS, in PEM"),
            _option("--key", metavar="FILE", help="of the certificate, in PEM"),
            _option("--drain", type=_seconds, default=20.0, metavar="S", help="how long runs may end (default: 20)"),
        ),
    ),
    Command(
        "doctor",
        doctor,
        "say what is installed, whether it was verified, and what differs",
        (
            _option(
                "--pending",
                nargs="+",
                metavar="MODULE:FUNCTION",
                help="say instead which paused runs of the journal these functions could not go on with",
            ),
            _JOURNAL,
        ),
    ),
    Command(
        "demo",
        _demo,
        "play some runs without a model or a network",
        (
            _JOURNAL,
            _option("--fast", action="store_true", help="do not pause between events"),
            _option("--ask", action="store_true", help="let you answer what the run asks"),
            _LANGUAGE,
        ),
    ),
)
