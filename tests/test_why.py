"""``agents-progress why``: what a status rests on, row by row."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import pytest
from agents import function_tool
from hypothesis import given
from hypothesis import strategies as st
from staging import reach, scripted, started

from agents_progress import RunView, cli
from agents_progress.journal import Journal, MemoryJournal, open_journal
from agents_progress.outcome import RULES, Evidence, Raised, ResponseEvent, ResponseQuality, owner_finished
from agents_progress.testing import call, http_error, text, turn, wait
from agents_progress.testing.contract.logs import RUN, Log
from agents_progress.verify import digest
from agents_progress.why import Fact, decision, explain


def told(facts: Sequence[Fact]) -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for fact in facts:
        assert fact.name not in found.setdefault(fact.about, {}), fact
        found[fact.about][fact.name] = fact.value
    return found


def decided(facts: Sequence[Fact]) -> set[str]:
    return {fact.name for fact in facts if fact.decided}


def viewed(log: Log) -> RunView:
    view = RunView(log.run_id)
    for envelope in log.envelopes:
        view.feed(envelope)
    return view


flags = st.booleans()
evidences = st.builds(
    Evidence,
    raised=st.sampled_from(get_args(Raised)),
    last_response_event=st.sampled_from(get_args(ResponseEvent)),
    response=st.sampled_from(get_args(ResponseQuality)),
    reason=st.none() | st.text(max_size=3),
    **dict.fromkeys(
        (
            "guardrail_tripped",
            "over_turn_limit",
            "drained",
            "settled",
            "is_complete",
            "interrupted",
            "cancel_requested",
            "task_cancelled",
            "has_output",
        ),
        flags,
    ),
)


@given(evidences)
def test_the_row_that_is_named_is_the_one_that_decided(evidence: Evidence) -> None:
    rule, read = decision(evidence)
    outcome = owner_finished(evidence)
    assert (rule.number, rule.kind) == (outcome.rule, outcome.kind)
    assert read <= set(evidence.to_dict()) and bool(read) is (rule.number != 11)


@given(evidences)
def test_a_row_decides_by_the_fields_that_are_marked_alone(evidence: Evidence) -> None:
    rule, read = decision(evidence)
    other = Evidence(**{name: value for name, value in evidence.to_dict().items() if name in read})
    assert rule.holds(other)


@pytest.mark.parametrize("rule", [rule for rule in RULES if rule.kind == "unknown"], ids=lambda rule: str(rule.number))
def test_a_lost_run_names_the_row_that_knew_no_ending(rule: Any) -> None:
    log = Log().start().say("run.lost", reason=rule.reason(Evidence()))
    facts = told(explain(viewed(log), None))
    assert facts["ending"] == {"lost": rule.reason(Evidence()), "row": rule.number}
    assert facts["run"]["status"] == "unknown" and "evidence" not in facts


def test_a_run_that_was_lost_for_another_reason_names_no_row() -> None:
    facts = told(explain(viewed(Log().start().say("run.lost", reason="lease_expired")), None))
    assert facts["ending"] == {"lost": "lease_expired"}


def test_an_ending_that_the_table_does_not_give_is_told_apart() -> None:
    log = Log().start().end(evidence=Evidence(interrupted=True).to_dict())
    facts = told(explain(viewed(log), None))
    assert facts["ending"] == {"outcome": "succeeded", "row": 7, "table_says": "paused"}


@pytest.mark.parametrize("evidence", [{}, {"brand_new": 1}, {**Evidence().to_dict(), "brand_new": 1}])
def test_evidence_of_another_release_is_shown_and_not_judged(evidence: dict[str, Any]) -> None:
    facts = explain(viewed(Log().start().end(evidence=evidence)), None)
    assert told(facts)["ending"] == {"outcome": "succeeded"} and decided(facts) == set()
    assert told(facts).get("evidence", {}) == evidence


def test_what_does_not_fit_in_a_log_is_named() -> None:
    log = Log().start().end().say("run.ended", outcome="failed", final_output=None)
    facts = told(explain(viewed(log), None))
    assert facts["run"]["issues"] == ["event_after_terminal"] and facts["run"]["status"] == "unknown"


def test_a_run_of_which_nothing_came_yet_is_explained_too() -> None:
    facts = told(explain(RunView(RUN), None))
    assert facts["ending"] == {"outcome": None} and facts["verdict"] == {"ok": None}


# Real runs.


async def explained(journal: Journal, run_id: str, newest: str | None = None) -> tuple[dict[str, Any], set[str]]:
    view = RunView(run_id)
    for envelope in await journal.read(run_id):
        view.feed(envelope.to_json())
    later = None if newest is None else await journal.run(newest)
    facts = explain(view, await journal.run(run_id), later)
    return told(facts), decided(facts)


async def test_a_run_that_is_done_is_explained_to_the_last_row(journal: MemoryJournal) -> None:
    whose = {"owner": "ann", "labels": {"conversation": "c"}, "task_id": "t"}
    run = started(scripted(turn(text("hello"))), journal=journal, verify=lambda output: True, **whose)
    await run.closed()
    facts, by = await explained(journal, run.id)
    assert facts["run"]["status"] == "done" and facts["run"]["issues"] == []
    assert facts["ending"] == {"outcome": "succeeded", "row": 10} and by == {"has_output"}
    assert facts["evidence"] == Evidence(last_response_event="completed", has_output=True).to_dict()
    verdict = {"ok": True, "check": "<lambda>", "digest": digest("hello"), "digest_matches": True}
    assert facts["verdict"] == verdict
    assert facts["origin"]["owner"] == "ann" and facts["origin"]["pid"] > 0 and facts["origin"]["host"]
    assert facts["labels"] == {"conversation": "c"} and "openai-agents" in facts["versions"]
    assert facts["lease"]["sealed"] is True and facts["lease"]["left_s"] is None and facts["silence"]["silent_s"] < 60


async def test_a_run_that_is_at_work_shows_its_lease_its_silence_and_its_open_rows(journal: MemoryJournal) -> None:
    gate = asyncio.Event()

    @function_tool
    async def look_up() -> str:
        await gate.wait()
        return "ok"

    run = started(scripted(turn(call("look_up", call_id="c1")), turn(text("ok")), tools=[look_up]), journal=journal)
    await reach(run, "tool.started")
    facts, by = await explained(journal, run.id)
    assert facts["ending"] == {"outcome": None} and by == set() and facts["run"]["status"] == "running"
    assert facts["open"] == {"c1": "running: Look up"} and facts["lease"]["sealed"] is False
    assert 0 <= facts["silence"]["silent_s"] < 60
    gate.set()
    await run


async def test_a_lease_that_ran_out_is_told() -> None:
    journal = MemoryJournal()
    await journal.reserve("r", -3.0)
    facts, _ = await explained(journal, "r")
    assert facts["lease"]["ran_out"] is True and facts["lease"]["left_s"] <= -3.0
    assert facts["run"]["status"] == "accepted"


async def test_a_failure_and_a_cancel_name_their_rows(journal: MemoryJournal) -> None:
    failed = started(scripted(http_error(400)), journal=journal)
    await failed
    facts, by = await explained(journal, failed.id)
    assert facts["ending"]["row"] == 3 and facts["ending"]["error"]["code"] == "bad_request" and by == {"raised"}
    run = started(scripted(turn(text("hel", wait(asyncio.Event())))), journal=journal)
    await reach(run, "text.delta")
    run.cancel(actor="ann")
    await run
    facts, by = await explained(journal, run.id)
    assert facts["ending"]["row"] == 8 and facts["ending"]["requested_by"] == "ann" and by == {"cancel_requested"}
    assert facts["run"]["cancel_requested"] is True


async def test_a_pause_names_the_run_that_goes_on(journal: MemoryJournal) -> None:
    @function_tool(needs_approval=True)
    def refund() -> str:
        return "ok"

    run = started(scripted(turn(call("refund")), turn(text("ok")), tools=[refund]), journal=journal)
    await run
    facts, by = await explained(journal, run.id)
    assert facts["ending"]["row"] == 7 and by == {"interrupted"} and "continued" not in facts
    assert facts["open"]["ask-1"] == "waits for an answer: Refund"
    again = run.resume(approve="all")
    await again
    facts, _ = await explained(journal, run.id, again.id)
    assert facts["continued"] == {"as": again.id, "status": "checking"}


# The command.


@pytest.fixture
async def url(tmp_path: Path) -> str:
    """A journal with a run that is done, and one that was reserved and never started."""
    url = f"sqlite:///{tmp_path}/runs.db"
    journal = open_journal(url)
    labels = {"room": "\x1b[2J"}
    run = started(scripted(turn(text("hello"))), journal=journal, run_id="r", verify=lambda output: True, labels=labels)
    await run.closed()
    await journal.reserve("late", 0.0)
    await journal.close()
    return url


def why(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(["why", *arguments]) == 0
    printed = capsys.readouterr()
    assert printed.err == "" and "\x1b" not in printed.out
    return printed.out


def test_the_command_prints_every_fact_and_marks_what_decided(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [" ".join(row.split()) for row in why(capsys, "r", "--journal", url).splitlines()]
    assert rows[0] == "run status done" and "message Done: the run ended and the check passed" in rows
    assert {"row 10", "has_output true <- decided", "drained true", "digest_matches true", "sealed true"} <= set(rows)
    assert "labels room \\x1b[2J" in rows and any(row.startswith("silence started_at 20") for row in rows)
    assert sum("<- decided" in row for row in rows) == 1


def test_the_command_speaks_chinese_where_there_are_sentences(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert "已完成：运行结束，应用检查通过" in why(capsys, "r", "--journal", url, "--language", "zh")


def test_the_command_prints_json_by_what_it_is_about(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    facts = json.loads(why(capsys, "r", "--journal", url, "--json"))
    assert facts["ending"] == {"outcome": "succeeded", "row": 10} and facts["decided_by"] == ["has_output"]
    assert facts["evidence"]["raised"] == "nothing" and facts["labels"] == {"room": "\x1b[2J"}


def test_a_run_that_never_started_is_lost_with_the_reason(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    facts = json.loads(why(capsys, "late", "--journal", url, "--json"))
    assert facts["ending"] == {"lost": "never_started"} and facts["run"]["status"] == "unknown"
    assert facts["lease"]["sealed"] is True and facts["lease"]["left_s"] is None


def test_an_unknown_run_is_one_sentence(url: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["why", "nobody", "--journal", url]) == 2
    assert "holds no run nobody" in capsys.readouterr().err
