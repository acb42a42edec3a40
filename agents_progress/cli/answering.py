"""``answer`` and ``cancel``: the decisions of a person, from a terminal or a script."""

from __future__ import annotations

import argparse
import shlex

from agents_progress import asking
from agents_progress.answers import options_of
from agents_progress.cli.printing import DIFFERS, FINE, say
from agents_progress.cli.stored import asked, row_of, stored_view
from agents_progress.errors import AnswerNotUsed
from agents_progress.journal import Journal
from agents_progress.journal.base import EVERYTHING
from agents_progress.labels import Label, label, refusal
from agents_progress.messages import Language
from agents_progress.payloads import Decision
from agents_progress.plaintext import clean, clean_lines
from agents_progress.render import open_questions, question_text
from agents_progress.rows import Interaction

_WITHIN_S = 5.0
"""How long to wait for the run that goes on, in seconds."""


def answer(chosen: argparse.Namespace) -> int:
    """Approve or reject what a run asks. What is approved was shown: its digest is repeated."""

    async def question(journal: Journal) -> int:
        row = await row_of(journal, chosen.run_id)
        view = await stored_view(journal, chosen.run_id, chosen.language)
        found = {each.interaction_id: each for each in open_questions(view)}.get(chosen.interaction_id)
        digest = chosen.digest or (found.digest if found is not None and not chosen.approve else None)
        if found is not None and chosen.approve and (digest is None or not found.approvable):
            return _show(found, chosen.language)
        decision: Decision = "approved" if chosen.approve else "rejected"
        given = asking.Answer(
            chosen.interaction_id, decision, chosen.actor, chosen.reason, digest, chosen.arguments, chosen.text
        )
        try:
            later = await asking.answer(journal, row, given, within=_WITHIN_S)
        except AnswerNotUsed as error:
            say(clean(refusal(error.code, chosen.language, error.facts)))
            return DIFFERS
        return _say("answer_kept" if later is None else "answer_taken", chosen.language, FINE)

    return asked(chosen.journal, question)


def cancel(chosen: argparse.Namespace) -> int:
    """Ask a run to stop. One that is paused ends at once, wherever its owner is."""

    async def question(journal: Journal) -> int:
        row = await row_of(journal, chosen.run_id)
        said = await asking.cancel(journal, row, chosen.mode, chosen.actor, EVERYTHING)
        say(said)
        return DIFFERS if said == "already_ended" else FINE

    return asked(chosen.journal, question)


def _show(question: Interaction, language: Language) -> int:
    """What is asked, and how it is approved by somebody who has read it."""
    say(clean(question_text(question, language)))
    if not question.approvable:
        return _say("not_shown", language, DIFFERS)
    say(clean_lines(question.details) if question.details is not None else label("not_shown_allowed", language))
    for option in options_of(question.details, question.options_in):
        say(clean(f"--text {shlex.quote(option)}"))
    say(f"--digest {question.digest}")
    return DIFFERS


def _say(name: Label, language: Language, code: int) -> int:
    say(label(name, language))
    return code
