"""What every command asks a journal for: the journal itself, a run's log, its view, and the run that continues it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import Final, TypeVar

from agents_progress.errors import CursorExpired, JournalUnavailable, RunNotFound
from agents_progress.events import Envelope, is_run_id
from agents_progress.journal import Journal, RunRow, open_journal
from agents_progress.messages import Language
from agents_progress.view import RunView

T = TypeVar("T")

_PAGE: Final = 1000


def asked(url: str, question: Callable[[Journal], Awaitable[T]]) -> T:
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


async def pages(journal: Journal, run_id: str, after_seq: int = 0) -> AsyncGenerator[list[Envelope], None]:
    """The log of a run as far as it is stored. Raises as a journal does, and :exc:`RunNotFound`."""
    page = await journal.read(run_id, after_seq, _PAGE) if is_run_id(run_id) else []
    if not page and not after_seq:
        raise _not_held(run_id)
    while page:
        yield page
        page = await journal.read(run_id, page[-1].seq, _PAGE)


async def row_of(journal: Journal, run_id: str) -> RunRow:
    """What the journal knows of a run. Raises as a journal does, and :exc:`RunNotFound`."""
    row = await journal.run(run_id) if is_run_id(run_id) else None
    if row is None:
        raise _not_held(run_id)
    return row


def _not_held(run_id: str) -> RunNotFound:
    return RunNotFound(f"the journal holds no run {run_id}; `agents-progress runs` lists those it has")


async def stored_view(journal: Journal, run_id: str, language: Language) -> RunView:
    """The run as far as the journal has it. A run without an ending is still open as far as anybody here knows."""
    view = RunView(run_id, language)
    try:
        await _feed(view, journal)
    except CursorExpired as pruned:
        view = RunView.from_snapshot(pruned.snapshot, language)
        await _feed(view, journal)
    return view


async def _feed(view: RunView, journal: Journal) -> None:
    async for page in pages(journal, view.run_id, view.seq):
        for envelope in page:
            view.feed(envelope.to_dict())  # checked again: a file may have been written by anybody


async def continuation(journal: Journal, view: RunView) -> RunRow | None:
    """The newest run of the task, where that goes on from a paused one."""
    if view.standing.outcome != "paused" or view.task_id is None:
        return None
    (newest,) = await journal.runs(task_id=view.task_id, limit=1) or (None,)
    return None if newest is None or newest.run_id == view.run_id else newest
