"""``runs`` and ``show``: what a journal holds."""

from __future__ import annotations

import argparse
import asyncio
import shutil
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, TypeVar

from agents_progress.cli.printing import FINE, say, say_json
from agents_progress.errors import CursorExpired, JournalUnavailable, RunNotFound
from agents_progress.events import is_run_id
from agents_progress.journal import Journal, RunRow, open_journal
from agents_progress.labels import label
from agents_progress.messages import Language, sentence
from agents_progress.plaintext import clean, cut
from agents_progress.render import render
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


def runs(chosen: argparse.Namespace) -> int:
    rows = asked(chosen.journal, lambda journal: journal.runs(limit=chosen.limit))
    newest = {row.task_id: row.run_id for row in reversed(rows)}  # they come newest first
    later = {row.run_id: newest[row.task_id] for row in rows if row.standing.outcome == "paused"}
    continued = {run_id: other for run_id, other in later.items() if run_id != other}
    if chosen.json:
        say_json([_run_fields(row, continued.get(row.run_id), chosen.language) for row in rows])
        return FINE
    width = max((len(row.run_id) for row in rows), default=0)
    for row in rows:
        remark = f"(continued as {continued[row.run_id]})" if row.run_id in continued else ""
        title = cut(clean(row.title or ""), 60)
        columns = (f"{row.run_id:<{width}}", f"{row.status:<10}", f"{row.seq:>6}", row.updated_at, title, remark)
        say(clean("  ".join(columns).rstrip()))
    if not rows:
        say(f"no runs in {clean(chosen.journal)}")
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


def show(chosen: argparse.Namespace) -> int:
    async def question(journal: Journal) -> tuple[RunView, RunRow | None]:
        view = await _view(journal, chosen.run_id, chosen.language)
        return view, await _continuation(journal, view)

    view, later = asked(chosen.journal, question)
    if chosen.json:
        more = {"status": view.status, "message": view.message, "continued_as": later.run_id if later else None}
        say_json({**view.snapshot(), **more})
        return FINE
    if later is not None:  # first, for the questions below are answered
        words = {"run_id": later.run_id, "sentence": sentence(later.status, chosen.language)}
        say(clean(label("continued", chosen.language, **words)))
    width = shutil.get_terminal_size((80, 24)).columns
    say(render(view, width).removesuffix("\n"))
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
