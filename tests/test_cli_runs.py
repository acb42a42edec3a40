"""The list of runs at a glance: its columns, what fits, its filters and pages, and how quick it is."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import Command, refused

from agents_progress.cli.listing import table
from agents_progress.glance import Glance, cost_text
from agents_progress.journal import Journal, RunRow, open_journal
from agents_progress.messages import LANGUAGES, Language
from agents_progress.plaintext import cell_count
from agents_progress.prices import amount_text
from agents_progress.standing import Standing
from agents_progress.testing.contract.logs import Log
from tests.older import SQLITE_TABLES, sqlite_append

COUNTS = {"requests": 1, "input_tokens": 900, "output_tokens": 100, "total_tokens": 1000, "status": "reported"}
COST: Any = {"amount": "0.01230001", "currency": "USD", "at_least": True}
WORKING = Glance(running={"c1": "Look up the order"}, usage=COUNTS, cost=COST)


async def some(journal: Journal) -> None:
    log = Log("a").start().request("c1", title="Look up").say("usage.updated", **COUNTS, x={"cost": COST})
    await journal.append(log.envelopes)
    await journal.append(Log("b").start().end("failed").envelopes)
    await journal.append(Log("c").start().envelopes)


def filled(path: Path, fill: Any = some) -> str:
    url = f"sqlite:///{path}"

    async def main() -> None:
        journal = open_journal(url)
        await fill(journal)
        await journal.close()

    asyncio.run(main())
    return url


def row(run_id: str = "f" * 32, **fields: Any) -> RunRow:
    async def main() -> RunRow:
        journal = open_journal("memory://")
        await journal.append(Log("r").start().envelopes)
        (made,) = await journal.runs()
        return made

    made = asyncio.run(main())
    known: dict[str, Any] = {"silent_s": 65.0, "title": "Refund a broken cup", "glance": WORKING}
    return replace(made, run_id=run_id, **{**known, **fields})


def lines(rows: list[RunRow], width: int | None = None, language: Language = "en") -> list[str]:
    return table(rows, {}, language, width)


# What a row says.


def test_a_row_says_status_age_tokens_cost_activity_and_title() -> None:
    heading, line = lines([row()])
    assert heading.split() == ["Run", "Status", "Age", "Tokens", "Cost", "Activity", "Title"]
    assert line == f"{'f' * 32}  running  1 min  1000    0.0124+ USD  Look up the order  Refund a broken cup"


def test_what_is_not_known_is_a_dash_and_never_a_zero() -> None:
    unknown = row(glance=None, silent_s=None, title=None)
    assert lines([row(), unknown])[2].split() == ["f" * 32, "running", "-", "-", "-"]
    assert [line.split() for line in lines([unknown])] == [["Run", "Status"], ["f" * 32, "running"]]


def test_a_count_of_which_a_part_is_missing_is_marked() -> None:
    partial = Glance(usage={**COUNTS, "status": "partial"}, cost=COST)
    assert lines([row(glance=partial)])[1].split()[4:7] == ["1000+", "0.0124+", "USD"]


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ("0.0123", "0.0123 USD"),
        ("0.01230001", "0.0124 USD"),
        ("0.00000001", "0.0001 USD"),
        ("0", "0.0000 USD"),
        ("12", "12.0000 USD"),
        ("1" * 40, f"{'1' * 40}.0000 USD"),
    ],
)
def test_a_cost_is_never_shown_as_less_than_it_is(stored: str, shown: str) -> None:
    assert amount_text({"amount": stored, "currency": "USD", "at_least": False}) == shown
    assert amount_text({"amount": stored, "currency": "USD", "at_least": True}) == shown.replace(" ", "+ ")
    assert cost_text({"amount": stored, "currency": "USD", "at_least": True}, "en") == f"at least {shown}"
    assert cost_text({"amount": stored, "currency": "USD", "at_least": False}, "zh") == shown


def test_a_paused_run_that_was_continued_names_the_run_that_goes_on() -> None:
    paused = row("a", standing=Standing(moved=True, outcome="paused"), glance=Glance())
    assert "Continued as a.2" in table([paused], {"a": "a.2"}, "en", None)[1]


# What fits.


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 300])
@pytest.mark.parametrize("run_id", ["r1", "f" * 32, "f" * 32 + ".12"])
def test_no_row_is_wider_than_the_terminal_and_ids_and_numbers_are_whole(
    run_id: str, width: int, language: Language
) -> None:
    long = row(run_id, title="退款 " * 40, glance=replace(WORKING, running={"c1": "查询订单状态 " * 40}))
    shown = lines([long, row(run_id), row(run_id, glance=None)], width, language)
    assert max(map(cell_count, shown)) <= max(width, len(run_id) + len("  running"))
    assert all(line.split()[:2] == [run_id, "running"] for line in shown[1:])
    for column, number in (("tokens", " 1000 "), ("cost", " 0.0124+ USD")):
        assert (number in shown[1]) == (number in shown[2]), column


def test_eighty_cells_hold_whole_ids_what_is_worked_on_and_what_it_cost() -> None:
    heading, line = lines([row()], 80)
    assert heading.split() == ["Run", "Status", "Age", "Cost", "Activity"]
    assert line == f"{'f' * 32}  running  1 min  0.0124+ USD  Look up the order"
    free = row(glance=replace(WORKING, cost=None))
    assert lines([free], 80)[1] == f"{'f' * 32}  running  1 min  1000    Look up t…  Refund a…"
    assert lines([row("order-4711")], 80)[0].split() == ["Run", "Status", "Age", "Tokens", "Cost", "Activity", "Title"]


def test_an_id_that_is_wider_than_the_terminal_stays_whole() -> None:
    assert lines([row()], 20)[1].startswith("f" * 32)


def test_texts_of_others_write_nothing_of_their_own() -> None:
    evil = "\x1b[2Jdone\n\u202egnp.exe"
    (line,) = lines([row(title=evil, glance=Glance(running={"c": evil}))])[1:]
    assert "\x1b" not in line and "\n" not in line and "\u202e" not in line
    assert line.index("running") < line.index("done")


# The command.


def test_rows_are_cut_only_where_the_output_is_a_terminal(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fill(journal: Journal) -> None:
        await journal.append(Log("f" * 32).start().request("c1", title="long " * 60).envelopes)

    url = filled(tmp_path / "j.db", fill)
    assert len(command("runs", "--journal", url).rows[1]) > 300
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert max(map(cell_count, command("runs", "--journal", url).rows)) <= 80


def test_runs_are_filtered_by_status_and_go_on_after_a_run(command: Command, tmp_path: Path) -> None:
    url = filled(tmp_path / "j.db")

    def ids(*more: str) -> list[str]:
        return [found["run_id"] for found in json.loads(command("runs", "--json", "--journal", url, *more).out)]

    assert ids() == ["c", "b", "a"]
    assert ids("--status", "running") == ["c", "a"]
    assert ids("--status", "failed") == ["b"]
    assert ids("--before", "c") == ["b", "a"]
    assert ids("--before", "c", "--status", "running", "--limit", "1") == ["a"]
    assert command("runs", "--journal", url, "--status", "done")[:2] == (0, f"no such runs in {url}\n")
    refused(command("runs", "--journal", url, "--before", "never"), "there is no run never")
    assert command("runs", "--journal", url, "--status", "happy").code == 2


def test_runs_as_json_say_what_rows_over_http_say(command: Command, tmp_path: Path) -> None:
    found = json.loads(command("runs", "--json", "--journal", filled(tmp_path / "j.db")).out)[-1]
    assert (found["activity"], found["usage"], found["cost"]) == ("Look up", COUNTS, COST)
    assert found["last_event_age"] >= 0


def test_a_run_of_an_older_release_shows_no_activity(command: Command, tmp_path: Path) -> None:
    import sqlite3

    db = sqlite3.connect(tmp_path / "j.db", isolation_level=None)
    db.executescript(SQLITE_TABLES)
    sqlite_append(db, Log("old").start().request("c1", title="Look up").envelopes)
    db.close()
    (found,) = json.loads(command("runs", "--json", "--journal", f"sqlite:///{tmp_path}/j.db").out)
    assert (found["status"], found["activity"], found["usage"], found["cost"]) == ("running", None, None, None)


@pytest.mark.parametrize("arguments", [[], ["--status", "failed"]], ids=["all", "of one status"])
def test_a_thousand_runs_are_listed_in_half_a_second(command: Command, tmp_path: Path, arguments: list[str]) -> None:
    async def fill(journal: Journal) -> None:
        for first in range(0, 1000, 100):
            logs = (Log(f"{n:032x}").start(task_id=f"t{n}").request("c1") for n in range(first, first + 100))
            await asyncio.gather(*(journal.append(log.end("failed").envelopes) for log in logs))

    url = filled(tmp_path / "j.db", fill)
    began = time.perf_counter()
    printed = command("runs", "--limit", "1000", "--journal", url, *arguments)
    took = time.perf_counter() - began
    assert len(printed.rows) == 1001
    print(f"runs --limit 1000 {' '.join(arguments)}: {took * 1000:.0f} ms")
    assert took < 2.5, "five times what is aimed at, for a machine with other work"
