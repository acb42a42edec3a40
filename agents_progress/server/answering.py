"""Answers to the questions of a run, as whoever asks, however they came in."""

from __future__ import annotations

from collections.abc import Sequence

from agents_progress import asking
from agents_progress.errors import AnswerNotUsed
from agents_progress.journal.base import RunRow
from agents_progress.server.principal import Principal
from agents_progress.server.refusals import Refusal
from agents_progress.server.service import Service
from agents_progress.server.starts import Starter


async def answered(
    service: Service,
    starter: Starter,
    principal: Principal,
    row: RunRow,
    given: Sequence[asking.Answer],
    *,
    again: bool = False,
) -> str | None:
    """Answer questions of a run that the caller may answer; the run that goes on from it, None when none does yet.

    ``again`` is that of :func:`asking.answer_all`. Raises :class:`Refusal` for an answer that is not used.
    """
    journal, scope = service.journal, principal.scope
    try:
        later = await asking.answer_all(journal, row, given, scope=scope, within=service.limits.answer_s, again=again)
    except AnswerNotUsed as error:
        raise Refusal(error.code, **error.facts) from None
    if later is None:  # its owner is gone
        waiting = await journal.newest({row.task_id}, scope=scope)
        later = await starter.abandoned.take_up(waiting[row.task_id])
    return later
