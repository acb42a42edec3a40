"""``prune``: runs that were over long ago are made small or forgotten, and no other run is touched."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agents_progress.cli import prune
from agents_progress.errors import CursorExpired, RunErased
from agents_progress.journal import Journal, open_journal
from tests.commands import Command, refused
from tests.feed_server import story
from tests.logs import Log

SECONDS = {
    "run-done": story("run-done"),
    "run-failed": story("run-failed", outcome="failed"),
    "run-running": Log("run-running").start(task_id="t-running").envelopes,
    "run-waiting": Log("run-waiting").start(task_id="t-waiting").end("paused").envelopes,
    "run-went-on": Log("run-went-on").start(task_id="t-went-on").end("paused").envelopes,
    "run-went-on.2": Log("run-went-on.2").start(task_id="t-went-on", resumed_from="run-went-on").envelopes,
}
OPEN = {"run-running", "run-went-on.2"}
OVER = ["run-went-on", "run-failed", "run-done"]
"""What may be pruned, newest first."""


@pytest.fixture
def url(tmp_path: Path) -> str:
    where = f"sqlite:///{tmp_path}/runs.db"

    async def fill(journal: Journal) -> None:
        for run_id, log in SECONDS.items():
            await journal.append(log)
            if run_id not in OPEN:
                await journal.seal(run_id)

    asked(where, fill)
    return where


def asked(url: str, question: Callable[[Journal], Awaitable[Any]]) -> Any:
    async def ask() -> Any:
        journal = open_journal(url)
        try:
            return await question(journal)
        finally:
            await journal.close()

    return asyncio.run(ask())


def logs(url: str) -> dict[str, str]:
    """Run id to what is left of it."""

    async def look(journal: Journal) -> dict[str, str]:
        found = {}
        for run_id in SECONDS:
            try:
                found[run_id] = "whole" if await journal.read(run_id) else "nothing"
            except CursorExpired as pruned:
                found[run_id] = f"snapshot of {pruned.snapshot['seq']}"
            except RunErased:
                found[run_id] = "erased"
        return found

    left: dict[str, str] = asked(url, look)
    return left


def test_old_runs_that_are_over_become_snapshots_and_all_others_stay(command: Command, url: str) -> None:
    count = sum(len(SECONDS[run_id]) for run_id in OVER)
    printed = command("prune", "--older-than", "0s", "--journal", url)
    assert printed == (0, f"3 runs were pruned, with {count} envelopes\n", "")
    assert logs(url) == {
        run_id: f"snapshot of {len(log)}" if run_id in OVER else "whole" for run_id, log in SECONDS.items()
    }
    assert "done" in command("show", "run-done", "--journal", url).out.casefold()
    assert command("prune", "--older-than", "0s", "--journal", url).out == "0 runs were pruned, with 0 envelopes\n"


def test_old_runs_that_are_over_are_erased_when_that_is_asked_for(command: Command, url: str) -> None:
    count = sum(len(SECONDS[run_id]) for run_id in OVER)
    printed = command("prune", "--older-than", "0s", "--erase", "--journal", url)
    assert printed == (0, f"3 runs were erased, with {count} envelopes\n", "")
    assert logs(url) == {run_id: "erased" if run_id in OVER else "whole" for run_id in SECONDS}


def test_pruned_runs_can_be_erased_later(command: Command, url: str) -> None:
    command("prune", "--older-than", "0s", "--journal", url)
    assert command("prune", "--older-than", "0s", "--erase", "--journal", url).out.startswith("3 runs were erased")


@pytest.mark.parametrize("more", [[], ["--erase"]])
def test_a_dry_run_names_the_runs_and_touches_nothing(command: Command, url: str, more: list[str]) -> None:
    printed = command("prune", "--older-than", "0s", "--dry-run", "--journal", url, *more)
    assert printed.code == 0
    assert [row.split()[0] for row in printed.rows[:-1]] == OVER
    assert printed.rows[-1].startswith("3 runs would be " + ("erased" if more else "pruned"))
    assert set(logs(url).values()) == {"whole"}


def test_a_run_that_was_over_a_moment_ago_is_not_old(command: Command, url: str) -> None:
    for age in ("1h", "30d", "90m", "86400s"):
        assert command("prune", "--older-than", age, "--journal", url).out.startswith("0 runs were pruned")
    assert set(logs(url).values()) == {"whole"}


def test_ages_are_counted_in_days_hours_minutes_and_seconds() -> None:
    assert [prune.age(text) for text in ("30d", "12h", "90m", "5s")] == [2592000, 43200, 5400, 5]


@pytest.mark.parametrize("age", ["", "30", "d", "-1d", "1.5h", "1w", "30 d", "9999999d", "３d"])
def test_another_age_is_refused(command: Command, age: str) -> None:
    printed = command("prune", f"--older-than={age}")
    assert (printed.code, printed.out) == (2, "") and "write one like 30d, 12h, 90m or 5s" in printed.err
    assert command("prune").code == 2


def test_a_journal_that_does_not_exist_is_not_made(command: Command, tmp_path: Path) -> None:
    refused(command("prune", "--older-than", "1d"), "there is no journal at")
    assert list(tmp_path.iterdir()) == []
