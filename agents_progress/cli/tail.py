"""``tail``: one run, live, from a journal or from a server, until its log is closed; and its questions, answered here.

It is asked for answers with ``--answer`` alone: whoever only looks at a run must not be one key away from approving.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from contextlib import aclosing
from pathlib import Path
from typing import Final

from agents_progress.cli.followed import Followed, JournalRuns, ServerRuns
from agents_progress.cli.printing import DIFFERS, FINE
from agents_progress.cli.stored import asked
from agents_progress.errors import AnswerNotUsed, Refused, UsageError
from agents_progress.journal import Journal
from agents_progress.labels import REFUSAL_LABELS
from agents_progress.render import open_questions
from agents_progress.terminal import watch
from agents_progress.terminal.prompt import AnsweredElsewhere, Prompt, can_ask, until
from agents_progress.view import RunView

TOKEN: Final = "AGENTS_PROGRESS_TOKEN"  # noqa: S105 - the name of a variable


def tail(chosen: argparse.Namespace) -> int:
    """Leaving it leaves the run alone. No ending but `done` is fine: what follows in a script relies on it."""
    if chosen.answer and not can_ask(sys.stdout):
        raise UsageError("--answer asks a person; use it where both the input and the output are a terminal")
    if "://" in chosen.run_id:
        view = asyncio.run(_from_server(chosen))
    else:
        view = asked(chosen.journal, lambda journal: _from_journal(journal, chosen))
    return FINE if view is not None and view.status == "done" else DIFFERS


async def _from_server(chosen: argparse.Namespace) -> RunView | None:
    from agents_progress.client import Client
    from agents_progress.client.address import checked

    url, mark, run_id = checked(chosen.run_id).rpartition("/runs/")
    if not mark:
        raise UsageError("this is no address of a run; give one like https://host/prefix/runs/RUN_ID")
    async with Client(url, token=_token(chosen.token_file)) as client:
        return await _followed(ServerRuns(client, chosen.language), run_id, chosen)


def _token(file: str | None) -> str | None:
    return Path(file).read_text(encoding="ascii", errors="replace").strip() if file else os.environ.get(TOKEN)


async def _from_journal(journal: Journal, chosen: argparse.Namespace) -> RunView | None:
    async with JournalRuns(journal, chosen.language) as runs:
        return await _followed(runs, chosen.run_id, chosen)


async def _followed(runs: Followed, run_id: str, chosen: argparse.Namespace) -> RunView | None:
    """Show a run, and those that go on from it as long as that is wanted; gives the view of the last one."""
    left_to_others: set[str] = set()
    while True:
        async with aclosing(runs.views(run_id)) as views:
            view = await watch(views)
        if view is None or view.standing.outcome != "paused":
            return view
        answered = chosen.answer and await _answered(runs, view, left_to_others)
        if not answered and not chosen.continued:
            return view
        run_id = await runs.continuation(view)


async def _answered(runs: Followed, view: RunView, left_to_others: set[str]) -> bool:
    """Put the questions of a paused run to the person here, up to the first that gets an answer, here or elsewhere."""
    prompt = Prompt(sys.stdout, None, view.language)
    try:
        for question in open_questions(view):
            if question.interaction_id in left_to_others:
                continue
            decided = await until(runs.continuation(view), prompt.ask(view, question, with_reason=True))
            if decided is None:
                left_to_others.add(question.interaction_id)
            else:
                prompt.say("answer_taken" if await runs.answer(view, question, decided) else "answer_kept")
                return True
    except AnsweredElsewhere:
        prompt.say("refusal_answered")
        return True
    except (AnswerNotUsed, Refused) as error:
        if error.code not in REFUSAL_LABELS:
            raise
        prompt.refused(error.code, error.facts)
        return error.code == "already_answered"
    except EOFError:
        pass
    except BaseException:
        prompt.say("still_waits")
        raise
    prompt.say("still_waits")
    return False
