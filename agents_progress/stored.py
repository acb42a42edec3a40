"""The view of a run as far as a journal has it."""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from agents_progress.errors import BadSnapshot, CursorExpired
from agents_progress.journal.base import Journal, Scope
from agents_progress.view import RunView

_PAGE: Final = 1000


async def view_of(journal: Journal, run_id: str, scope: Scope) -> RunView:
    """Everything that is stored of a run, folded: from its newest snapshot where there is one that can be read."""
    view = RunView(run_id)
    with suppress(BadSnapshot):  # of a newer release, perhaps; what it stands for is read again
        if stored := await journal.snapshot(run_id, scope=scope):
            view = RunView.from_snapshot(stored)
    return await caught_up(journal, view, scope)


async def view_at(journal: Journal, run_id: str, seq: int, scope: Scope) -> RunView:
    """The view of a run as it was at a sequence number. Raises :exc:`CursorExpired` where that cannot be had any more.

    A number beyond the end gives the view of what there is.
    """
    view = RunView(run_id)
    with suppress(BadSnapshot):
        stored = await journal.snapshot(run_id, scope=scope)
        if stored and stored["seq"] <= seq:
            view = RunView.from_snapshot(stored)
    while view.seq < seq and (page := await journal.read(run_id, view.seq, min(_PAGE, seq - view.seq), scope=scope)):
        for envelope in page:
            view.feed(envelope)
    return view


async def caught_up(journal: Journal, view: RunView, scope: Scope) -> RunView:
    """A view with everything that was stored since, or the one that replaces it."""
    while True:
        try:
            page = await journal.read(view.run_id, view.seq, _PAGE, scope=scope)
        except CursorExpired as pruned:
            view = RunView.from_snapshot(pruned.snapshot)
            continue
        for envelope in page:
            view.feed(envelope)
        if len(page) < _PAGE:
            return view
