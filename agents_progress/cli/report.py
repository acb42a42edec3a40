"""``report``: one page about a task, for whoever was not there, or the same facts as JSON."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from typing import Any, Final

from agents_progress.cli.printing import FINE, as_json, output
from agents_progress.cli.stored import asked, pages, row_of
from agents_progress.clock import rfc3339
from agents_progress.errors import CursorExpired, UsageError
from agents_progress.journal import Journal, RunRow
from agents_progress.messages import Language
from agents_progress.report import gather, page
from agents_progress.timeline import Timeline

_RUNS: Final = 100
"""Runs of one task in a report, at most: the newest ones."""


def report(chosen: argparse.Namespace) -> int:
    """A page in a terminal is of no use to anybody, so one is refused."""
    if chosen.output is None and not chosen.json and sys.stdout.isatty():
        raise UsageError("a page is for a browser; say where it goes, as in -o run.html, or choose --json")
    with output(chosen.output) as out:
        facts = asked(chosen.journal, lambda journal: _facts(journal, chosen.run_id, chosen.language))
        out.write(f"{as_json(facts)}\n" if chosen.json else page(facts))
    return FINE


async def _facts(journal: Journal, run_id: str, language: Language) -> dict[str, Any]:
    asked_for = await row_of(journal, run_id)
    rows = await journal.runs(task_id=asked_for.task_id, limit=_RUNS + 1)
    older_runs, rows = len(rows) > _RUNS, rows[:_RUNS][::-1]
    if all(row.run_id != asked_for.run_id for row in rows):
        rows = [asked_for, *rows[1:]]
    timeline = await _read(journal, rows, language)
    return gather(timeline, rows, written_at=rfc3339(time.time_ns() // 1_000_000), older_runs=older_runs)


async def _read(journal: Journal, rows: Sequence[RunRow], language: Language) -> Timeline:
    timeline = Timeline(language)
    for row in rows:
        snapshot = None
        try:
            await journal.read(row.run_id, limit=1)
        except CursorExpired as pruned:
            snapshot = pruned.snapshot
        timeline.begin(row.run_id, snapshot=snapshot, sealed=row.sealed)
        async for found in pages(journal, row.run_id, timeline.runs[-1].view.seq):
            for envelope in found:
                timeline.feed(envelope.to_json())  # checked again: a file may have been written by anybody
    return timeline
