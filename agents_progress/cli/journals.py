"""``runs`` and ``show``: what a journal holds."""

from __future__ import annotations

import argparse
import shutil
import sys
from typing import Any

from agents_progress.cli.listing import table
from agents_progress.cli.printing import FINE, say, say_json
from agents_progress.cli.stored import asked, continuation, stored_view
from agents_progress.glance import Glance
from agents_progress.journal import Journal, RunRow
from agents_progress.journal.base import continued
from agents_progress.labels import label
from agents_progress.messages import Language, sentence
from agents_progress.plaintext import clean
from agents_progress.render import render
from agents_progress.view import RunView


def runs(chosen: argparse.Namespace) -> int:
    async def question(journal: Journal) -> tuple[list[RunRow], dict[str, str]]:
        rows = await journal.runs(status=chosen.status, before=chosen.before, limit=chosen.limit)
        return rows, await continued(journal, rows)

    rows, later = asked(chosen.journal, question)
    if chosen.json:
        say_json([_run_fields(row, later.get(row.run_id), chosen.language) for row in rows])
        return FINE
    width = shutil.get_terminal_size((80, 24)).columns if sys.stdout.isatty() else None
    for line in table(rows, later, chosen.language, width) if rows else ():
        say(line)
    if not rows:
        such = "such " if chosen.status or chosen.before else ""
        say(f"no {such}runs in {clean(chosen.journal)}")
    return FINE


def _run_fields(row: RunRow, continued_as: str | None, language: Language) -> dict[str, Any]:
    glance = row.glance or Glance()
    return {
        "run_id": row.run_id,
        "task_id": row.task_id,
        "title": row.title,
        "status": row.status,
        "message": sentence(row.status, language),
        "seq": row.seq,
        "started_at": row.started_at,
        "updated_at": row.updated_at,
        "last_event_age": row.silent_s,
        "labels": dict(row.labels),
        "continued_as": continued_as,
        "activity": glance.activity,
        "usage": glance.usage,
        "cost": glance.cost,
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
