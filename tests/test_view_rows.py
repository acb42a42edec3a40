"""The rows of a view: tools, handoffs, stages and questions, each step once and in its place; and damaged snapshots."""

from __future__ import annotations

from typing import Any

import pytest

from agents_progress.errors import BadSnapshot
from agents_progress.view import RunView
from tests.logs import RUN, USAGE, Log, older


def shown(log: Log, run_id: str = RUN) -> RunView:
    view = RunView(run_id)
    for step in log.envelopes:
        view.feed(step)
    return view


# Tools.


@pytest.mark.parametrize(
    ("type_", "more"),
    [
        ("tool.started", {}),
        ("tool.finished", {}),
        ("tool.failed", {}),
        ("tool.rejected", {"reason": "x"}),
        ("tool.skipped", {"reason": "x"}),
        ("tool.progress", {"message": "m", "current": None, "total": None}),
        ("tool.arguments.delta", {"index": 0, "text": "{"}),
        ("tool.arguments.completed", {"arguments": "{}"}),
    ],
)
def test_what_is_said_of_a_tool_nobody_requested_is_an_issue(type_: str, more: dict[str, Any]) -> None:
    view = shown(Log().start().say(type_, call_id="c9", **more))
    assert (view.issues, view.tools) == (["bad_payload_or_transition"], {})


@pytest.mark.parametrize("again", ["tool.started", "tool.finished", "tool.failed"])
def test_a_settled_tool_does_nothing_more(again: str) -> None:
    log = Log().start().request().say("tool.started", call_id="c1").say("tool.finished", call_id="c1")
    view = shown(log.say(again, call_id="c1"))
    assert (view.issues, view.tools) == (["bad_payload_or_transition"], {"c1": "returned"})


def test_a_call_is_requested_and_started_once() -> None:
    assert shown(Log().start().request().request()).issues == ["bad_payload_or_transition"]
    twice = Log().start().request().say("tool.started", call_id="c1").say("tool.started", call_id="c1")
    assert shown(twice).issues == ["bad_payload_or_transition"]


def test_a_tool_row_says_what_the_tool_said_of_itself() -> None:
    log = Log().start().request(title="Look it up").say("tool.started", call_id="c1")
    log.say("tool.progress", call_id="c1", message="half", current=1, total=2)
    (row,) = shown(log).activities
    assert (row.title, row.state, row.message, row.current, row.total) == ("Look it up", "running", "half", 1, 2)
    assert row.since == log.envelopes[2].occurred_at
    log.say("tool.failed", call_id="c1", code="tool_error", message="A tool failed")
    (row,) = shown(log).activities
    assert (row.state, row.note, row.summary, row.duration_ms) == ("failed", "tool_error", "A tool failed", None)


def test_argument_deltas_are_counted() -> None:
    log = Log().start().request()
    log.say("tool.arguments.delta", call_id="c1", index=0, text="{").say(
        "tool.arguments.delta", call_id="c1", index=2, text="}"
    )
    assert shown(log).issues == ["bad_payload_or_transition"]


def test_a_tool_event_never_touches_a_handoff_or_a_stage() -> None:
    handoff = Log().start().say("handoff.requested", from_agent="A", to_agent="B")
    assert shown(handoff.say("tool.finished", call_id="handoff:1")).status == "unknown"
    stage = Log().start().say("stage.started", stage_id="s", title="S").say("tool.finished", call_id="stage:s")
    assert shown(stage).status == "unknown"


def test_a_handoff_never_hides_an_open_tool() -> None:
    log = Log().start().request("handoff:1").say("handoff.requested", from_agent="A", to_agent="B").end().check()
    assert shown(log).status == "unknown"


# Handoffs, stages, questions, and the rest.


def test_a_handoff_is_one_row_and_no_tool() -> None:
    log = Log().start("A").say("handoff.requested", from_agent="A", to_agent="B")
    (row,) = shown(log).activities
    assert (row.kind, row.name, row.state) == ("handoff", "B", "running")
    view = shown(log.say("handoff.completed", from_agent="A", to_agent="B").say("agent.changed", agent="B"))
    (row,) = view.activities
    assert (row.state, row.title, view.tools, view.agent) == ("returned", "A → B", {}, "B")


def test_a_handoff_that_was_never_requested_is_one_finished_row() -> None:
    view = shown(Log().start("A").say("handoff.completed", from_agent="A", to_agent="B"))
    assert [(row.kind, row.name, row.state) for row in view.activities] == [("handoff", "B", "returned")]
    assert view.issues == []


def test_a_handoff_settles_the_row_of_its_own_target() -> None:
    log = Log().start("A").say("handoff.requested", from_agent="A", to_agent="B")
    log.say("handoff.requested", from_agent="A", to_agent="C").say("handoff.completed", from_agent="A", to_agent="B")
    assert [(row.name, row.state) for row in shown(log).activities] == [("B", "returned"), ("C", "running")]


def test_stages_begin_once_and_end_once() -> None:
    log = Log().start().say("stage.started", stage_id="s1", title="Reading")
    assert [(row.kind, row.title, row.state) for row in shown(log).activities] == [("stage", "Reading", "running")]
    view = shown(log.say("stage.completed", stage_id="s1", title="Reading"))
    assert (view.activities[0].state, view.tools, view.issues) == ("returned", {}, [])
    assert shown(log.say("stage.completed", stage_id="s1", title="Reading")).issues == ["bad_payload_or_transition"]
    unknown = Log().start().say("stage.completed", stage_id="s9", title="?")
    assert shown(unknown).issues == ["bad_payload_or_transition"]
    twice = Log().start().say("stage.started", stage_id="s1", title="A").say("stage.started", stage_id="s1", title="A")
    assert shown(twice).issues == ["bad_payload_or_transition"]


def test_a_question_waits_until_it_is_answered_once() -> None:
    log = Log().start().request().ask()
    view = shown(log)
    assert (view.status, view.interactions["ask-1"].decision) == ("waiting", None)
    log.say("approval.resolved", interaction_id="ask-1", decision="approved", actor="mei")
    view = shown(log)
    row = view.interactions["ask-1"]
    assert (view.status, row.decision, row.actor) == ("running", "approved", "mei")
    log.say("approval.resolved", interaction_id="ask-1", decision="rejected")
    assert shown(log).issues == ["bad_payload_or_transition"]
    assert shown(Log().start().ask().ask()).issues == ["bad_payload_or_transition"]
    nobody = Log().start().say("approval.resolved", interaction_id="ask-7", decision="approved")
    assert shown(nobody).issues == ["bad_payload_or_transition"]


@pytest.mark.parametrize(
    ("more", "blind", "approvable"),
    [
        ({}, False, False),
        ({"x": {}}, False, False),
        ({"x": {"approve_blind": 1}}, False, False),
        ({"x": {"approve_blind": True}}, True, True),
        ({"details": ""}, False, True),
    ],
)
def test_what_is_not_shown_is_approvable_only_where_the_application_says_so(
    more: dict[str, Any], blind: bool, approvable: bool
) -> None:
    asked = {"interaction_id": "ask-1", "call_id": None, "tool": "t", "title": "T", **more}
    view = shown(Log().start().say("approval.wait", **asked))
    for each in (view, RunView.from_snapshot(view.snapshot())):
        row = each.interactions["ask-1"]
        assert (row.approve_blind, row.approvable, each.status) == (blind, approvable, "waiting")


def test_a_snapshot_from_before_questions_could_be_marked_is_restored() -> None:
    asked = {"interaction_id": "ask-1", "call_id": None, "tool": "t", "title": "T"}
    snapshot = shown(Log().start().say("approval.wait", **asked)).snapshot()
    assert snapshot["interactions"][0].pop("approve_blind") is False
    assert RunView.from_snapshot(snapshot).interactions["ask-1"].approvable is False


# What began when.


def began(view: RunView) -> dict[str, int]:
    texts = {f"{message.item_id} {message.channel}": message.seq for message in view.messages}
    questions = {name: row.seq for name, row in view.interactions.items()}
    return {name: row.seq for name, row in view.rows.items()} | texts | questions


def mixed() -> Log:
    """Something of everything that has a place among the rest, twice."""
    log = Log().start().say("model.started", response_id="r1").say("text.completed", item_id="m1").request("c1")
    log.say("text.delta", item_id="m1", index=0, text="Hi").say("tool.started", call_id="c1")
    log.say("handoff.requested", from_agent="A", to_agent="B").say("stage.started", stage_id="s1", title="S")
    log.ask("ask-1", "c1").say("model.started", response_id="r2").say("text.completed", item_id="m2", text="Ho")
    return log.say("text.delta", item_id="m1", index=1, text="!").say("text.completed", item_id="m2", text="Hu")


def test_whatever_has_a_place_among_the_rest_says_which_envelope_began_it() -> None:
    view = shown(mixed())
    places = {"c1": 4, "m1 answer": 5, "handoff:1": 7, "stage:s1": 8, "ask-1": 9, "m2 answer": 11}
    assert (began(view), view.responses) == (places, [2, 10])
    assert began(RunView.from_snapshot(view.snapshot())) == places


def test_a_text_begins_with_the_first_that_is_said_of_it() -> None:
    log = Log().start().say("text.completed", item_id="m1").say("text.completed", item_id="m1", text="")
    assert began(shown(log)) == {"m1 answer": 0}
    log.say("text.completed", item_id="m1", text="Hi").say("text.completed", item_id="m1", text="")
    assert began(shown(log.say("text.completed", item_id="m1", text="Ho"))) == {"m1 answer": 4}


def test_a_snapshot_from_before_it_was_kept_what_began_when_is_restored_and_gone_on_from() -> None:
    snapshot = older(shown(mixed()).snapshot())
    view = RunView.from_snapshot(snapshot)
    assert (set(began(view).values()), view.responses) == ({0}, [])
    for step in mixed().say("text.delta", item_id="m1", index=2, text="?").request("c2").envelopes[view.seq :]:
        view.feed(step)
    assert (began(view)["m1 answer"], began(view)["c2"], view.text, view.issues) == (0, 15, "Hu", [])


def test_a_run_starts_once_and_is_accepted_before_it_starts() -> None:
    assert shown(Log().say("run.accepted", task_id="t").start()).issues == []
    assert shown(Log().start().start()).issues == ["bad_payload_or_transition"]
    assert shown(Log().start().say("run.accepted", task_id="t")).issues == ["bad_payload_or_transition"]


def test_usage_artifacts_sources_and_guardrails_are_shown_as_they_came() -> None:
    artifact = {"artifact_id": "a1", "name": "r.pdf", "media_type": "application/pdf", "bytes": 10}
    source = {"item_id": "m1", "kind": "url", "title": "T", "url": "https://example.org"}
    tripped = {"stage": "input", "name": "no_secrets"}
    log = Log().start().say("artifact.created", **artifact).say("source.cited", **source)
    view = shown(log.say("guardrail.tripped", **tripped).say("usage.updated", **USAGE))
    assert (view.artifacts, view.sources, view.guardrails, view.usage) == ([artifact], [source], [tripped], USAGE)


def test_a_damaged_snapshot_is_refused_by_name() -> None:
    good = shown(
        Log().start().request().ask().say("text.delta", item_id="m", index=0, text="a").end("paused")
    ).snapshot()
    for name in good:
        with pytest.raises(BadSnapshot):
            RunView.from_snapshot({key: value for key, value in good.items() if key != name})
    for wrong in (
        {**good, "version": 99},
        {**good, "rows": 3},
        {**good, "rows": ["x"]},
        {**good, "seq": "1"},
        [],
        None,
    ):
        with pytest.raises(BadSnapshot):
            RunView.from_snapshot(wrong)  # type: ignore[arg-type]
