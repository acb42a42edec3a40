"""The display state: the thirty vectors step by step, the eleven statuses, and every rule of the fold by name."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest

from agents_progress.messages import MESSAGES, Language, Status
from agents_progress.standing import Standing
from agents_progress.view import RunView
from tests.logs import OUTPUT, RUN, USAGE, Log, envelope

CASES: list[dict[str, Any]] = json.loads(
    files("agents_progress").joinpath("vectors/progress_cases.json").read_text(encoding="utf-8")
)


def shown(log: Log, run_id: str = RUN) -> RunView:
    view = RunView(run_id)
    for step in log.envelopes:
        view.feed(step)
    return view


def feed(view: RunView, seq: int, type_: str, /, **payload: Any) -> RunView:
    view.feed(envelope(seq, type_, payload))
    return view


# Vectors.


def test_all_thirty_vector_cases_are_here() -> None:
    assert len(CASES) == 30
    assert len({case["name"] for case in CASES}) == 30


@pytest.mark.parametrize("form", ["dict", "str", "bytes"])
@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_a_vector_shows_every_step_and_its_end(case: dict[str, Any], language: Language, form: str) -> None:
    view = RunView(case["run_id"], language)
    for source, status in zip(case["events"], case["expected_steps"], strict=True):
        text = json.dumps(source, ensure_ascii=False)
        view.feed({"dict": source, "str": text, "bytes": text.encode()}[form])
        assert (view.status, view.message) == (status, MESSAGES[status][language])
    view.close_transport()
    final: Status = case["expected_final"]
    assert (view.status, view.message) == (final, MESSAGES[final][language])
    assert {name: getattr(view, name) for name in case["expected"]} == case["expected"]


# The eleven statuses.

STATUSES: dict[Status, Log] = {
    "accepted": Log().say("run.accepted", task_id="t"),
    "running": Log().start(),
    "waiting": Log().start().request().ask(),
    "cancelling": Log().start().say("cancel.requested"),
    "checking": Log().start().end(),
    "done": Log().start().end().check(),
    "rejected": Log().start().end().check(ok=False),
    "cancelled": Log().start().end("cancelled", requested_by=None),
    "failed": Log().start().end("failed"),
    "incomplete": Log().start().end("incomplete", reason="max_turns"),
    "unknown": Log().start().say("run.lost", reason="lease_expired"),
}


def test_every_status_has_its_case() -> None:
    assert set(STATUSES) == set(MESSAGES)
    assert len(STATUSES) == 11


@pytest.mark.parametrize("status", STATUSES)
def test_every_status_is_reached_by_a_clean_log(status: Status) -> None:
    view = shown(STATUSES[status])
    assert (view.status, view.issues) == (status, [])


def test_an_empty_view_is_running() -> None:
    assert RunView(RUN).status == "running"


def test_a_note_does_not_move_an_accepted_run() -> None:
    assert shown(Log().say("run.accepted", task_id="t").say("note.queue", place=3)).status == "accepted"


CLOSED: dict[Status, Status] = {
    status: "unknown" if status in ("accepted", "running", "waiting", "cancelling") else status for status in STATUSES
}


@pytest.mark.parametrize("status", CLOSED)
def test_closing_the_transport_takes_away_only_what_was_not_ended(status: Status) -> None:
    view = shown(STATUSES[status])
    before = view.terminal, view.issues
    view.close_transport()
    assert (view.status, (view.terminal, view.issues)) == (CLOSED[status], before)


def test_a_paused_run_stays_waiting_when_the_transport_closes() -> None:
    view = shown(Log().start().request().ask().end("paused"))
    view.close_transport()
    assert view.status == "waiting"


def test_an_issue_outranks_every_ending() -> None:
    for outcome in ("succeeded", "paused", "cancelled", "failed", "incomplete"):
        assert Standing(outcome=outcome, issues=True).status == "unknown"


def test_something_unsupported_withholds_success_and_nothing_else() -> None:
    start = Log().start().say("adapter.unsupported", what="item", name="brand_new_thing")
    assert shown(start).status == "running"
    view = shown(start.end().check())
    assert (view.status, view.issues) == ("unknown", [])
    failed = Log().start().say("adapter.unsupported", what="item", name="brand_new_thing").end("failed")
    assert shown(failed).status == "failed"


# The sentences of the issue.


def test_one_response_ended_is_not_a_run_ended() -> None:
    log = Log().start()
    for number in (1, 2, 3):
        log.say("model.started", response_id=f"r{number}").say("model.completed", response_id=f"r{number}")
        view = shown(log)
        assert (view.status, view.terminal) == ("running", None)
    view.close_transport()
    assert view.status == "unknown"


def test_a_tool_item_claims_no_start() -> None:
    view = shown(Log().start().request())
    assert view.tools == {"c1": "requested"}
    view = shown(Log().start().request().say("tool.finished", call_id="c1"))
    assert (view.tools, view.issues) == ({"c1": "returned"}, [])


@pytest.mark.parametrize("kind", ["model.failed", "model.incomplete"])
def test_a_raw_failure_alone_is_not_an_ending(kind: str) -> None:
    view = shown(Log().start().say(kind, response_id="r1", code="server_error"))
    assert (view.status, view.terminal) == ("running", None)
    view.close_transport()
    assert view.status == "unknown"


def test_a_verdict_binds_the_output() -> None:
    assert shown(Log().start().end().check(output=OUTPUT)).status == "done"
    other = shown(Log().start().end().check(output=OUTPUT + " "))
    assert (other.status, other.issues, other.verdict) == ("unknown", ["bad_payload_or_transition"], None)


# Verdicts.


def test_a_verdict_counts_once() -> None:
    view = shown(Log().start().end().check(ok=False).check(ok=True))
    assert (view.status, view.issues) == ("unknown", ["event_after_terminal"])
    assert view.verdict is not None and view.verdict["ok"] is False


@pytest.mark.parametrize("outcome", ["paused", "cancelled", "failed", "incomplete"])
def test_a_verdict_counts_only_after_success(outcome: str) -> None:
    view = shown(Log().start().end(outcome, OUTPUT).check())
    assert (view.status, view.verdict) == ("unknown", None)


def test_a_verdict_before_the_end_or_after_a_loss_is_void() -> None:
    assert shown(Log().start().check()).issues == ["bad_payload_or_transition"]
    lost = shown(Log().start().say("run.lost", reason="x").check())
    assert (lost.status, lost.verdict) == ("unknown", None)
    assert lost.issues


def test_no_verdict_can_bind_an_output_that_is_none() -> None:
    log = Log().start()
    log.say("run.ended", outcome="succeeded", final_output=None)
    view = shown(log.check(output="null"))
    assert (view.status, view.verdict) == ("unknown", None)


# Successes that contradict themselves.


@pytest.mark.parametrize("kind", ["function", "hosted", "mcp", "agent", "computer", "shell", "patch", "custom"])
@pytest.mark.parametrize("started", [False, True])
def test_success_with_an_open_tool_contradicts_itself(started: bool, kind: str) -> None:
    log = Log().start().request(kind=kind)
    if started:
        log.say("tool.started", call_id="c1")
    view = shown(log.end().check())
    assert (view.status, view.issues) == ("unknown", ["bad_payload_or_transition"])


def test_success_with_an_open_question_contradicts_itself() -> None:
    view = shown(Log().start().ask(call_id=None).end())
    assert (view.status, view.issues) == ("unknown", ["bad_payload_or_transition"])
    answered = Log().start().ask(call_id=None).say("approval.resolved", interaction_id="ask-1", decision="approved")
    assert shown(answered.end()).status == "checking"


def test_success_after_a_cancel_request_contradicts_itself() -> None:
    assert shown(Log().start().say("cancel.requested").end()).issues == ["bad_payload_or_transition"]


@pytest.mark.parametrize("settled", ["finished", "failed", "rejected", "skipped"])
def test_success_with_settled_tools_is_clean(settled: str) -> None:
    reason = {"reason": "x"} if settled in ("rejected", "skipped") else {}
    view = shown(Log().start().request().say(f"tool.{settled}", call_id="c1", **reason).end().check())
    assert (view.status, view.issues) == ("done", [])


# After the ending.


@pytest.mark.parametrize(
    "late", ["model.started", "text.delta", "tool.finished", "run.ended", "run.lost", "usage.updated"]
)
def test_anything_but_a_note_after_the_end_is_an_issue(late: str) -> None:
    payloads: dict[str, dict[str, Any]] = {
        "model.started": {"response_id": "r"},
        "text.delta": {"item_id": "m", "index": 0, "text": "late"},
        "tool.finished": {"call_id": "c1"},
        "run.ended": {"outcome": "succeeded", "final_output": OUTPUT},
        "run.lost": {"reason": "x"},
        "usage.updated": USAGE,
    }
    log = Log().start().request().say("tool.started", call_id="c1").end("failed")
    ending = log.envelopes[-1].payload
    view = shown(log.say(late, **payloads[late]))
    assert (view.status, view.issues, view.terminal) == ("unknown", ["event_after_terminal"], ending)
    assert (view.text, view.tools, view.usage) == ("", {"c1": "running"}, None)


def test_notes_after_the_end_and_after_the_verdict_change_nothing() -> None:
    view = shown(Log().start().end().say("note.late", a=1).check().say("note.later", b=2))
    assert (view.status, view.issues) == ("done", [])


def test_the_first_ending_wins_when_a_failed_run_is_called_succeeded() -> None:  # END-9
    view = shown(Log().start().end("failed").end("succeeded"))
    assert view.terminal is not None and view.terminal["outcome"] == "failed"
    assert (view.status, view.issues) == ("unknown", ["event_after_terminal"])


def test_a_run_that_fails_twice_is_an_issue() -> None:  # END-9
    view = shown(Log().start().end("failed", reason="first").end("failed", reason="second"))
    assert view.terminal is not None and view.terminal["reason"] == "first"
    assert (view.status, view.issues) == ("unknown", ["event_after_terminal"])


def test_nothing_follows_a_lost_run() -> None:
    view = shown(Log().start().say("run.lost", reason="lease_expired").end("cancelled"))
    assert (view.status, view.issues, view.terminal) == (
        "unknown",
        ["event_after_terminal"],
        {"reason": "lease_expired"},
    )
