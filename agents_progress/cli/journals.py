"""``runs`` and ``show``: what a journal holds."""

from __future__ import annotations

import argparse
import shutil
from typing import Any

from agents_progress.cli.printing import FINE, say, say_json
from agents_progress.cli.stored import asked, continuation, stored_view
from agents_progress.journal import Journal, RunRow
from agents_progress.labels import label
from agents_progress.messages import Language, sentence
from agents_progress.plaintext import clean, cut
from agents_progress.render import render
from agents_progress.view import RunView


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
        view = await stored_view(journal, chosen.run_id, chosen.language)
        return view, await continuation(journal, view)

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
