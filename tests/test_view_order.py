"""Order, repeats and text: what a view does with envelopes that come twice, late, from elsewhere, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from agents_progress.view import REMEMBERED, RunView
from tests.logs import RUN, Log, envelope


def shown(log: Log, run_id: str = RUN) -> RunView:
    view = RunView(run_id)
    for step in log.envelopes:
        view.feed(step)
    return view


def delta(index: int, text: str = "a", item_id: str = "m1") -> dict[str, Any]:
    return {"item_id": item_id, "index": index, "text": text}


# Repeats.


def test_the_same_envelope_again_only_counts_duplicates() -> None:
    log = Log().start().say("text.delta", **delta(0, "Hel")).say("text.delta", **delta(1, "lo")).end().check()
    view = shown(log)
    for step in log.envelopes:
        view.feed(step)
        view.feed(step.to_dict())
        view.feed(step.to_json())
    assert (view.status, view.text, view.duplicates, view.issues) == ("done", "Hello", 15, [])


def test_the_same_content_in_another_key_order_is_the_same_envelope() -> None:
    first = envelope(1, "note.a", {"a": 1, "b": {"c": 2, "d": 3}})
    again = envelope(1, "note.a", {"b": {"d": 3, "c": 2}, "a": 1})
    view = RunView(RUN)
    view.feed(first)
    restored = RunView.from_snapshot(view.snapshot())
    for either in (view, restored):
        either.feed(again)
        assert (either.issues, either.duplicates) == ([], 1)


@pytest.mark.parametrize(
    "other",
    [
        {"type": "note.b"},
        {"payload": {"a": 2}},
        {"payload": {"a": True}},
        {"occurred_at": "2026-10-07T09:00:00Z"},
        {"seq": 2},
    ],
    ids=["type", "payload", "true for one", "occurred_at", "seq"],
)
@pytest.mark.parametrize("restored", [False, True])
def test_the_same_id_with_other_content_is_a_conflict(other: dict[str, Any], restored: bool) -> None:
    view = RunView(RUN)
    view.feed(envelope(1, "note.a", {"a": 1}))
    if restored:
        view = RunView.from_snapshot(view.snapshot())
    view.feed({**envelope(1, "note.a", {"a": 1}).to_dict(), **other})
    assert (view.status, view.issues, view.duplicates, view.seq) == ("unknown", ["id_conflict"], 0, 1)


def test_an_old_envelope_beyond_memory_is_known_by_its_number() -> None:
    view = shown(Log().start())
    for seq in range(2, REMEMBERED + 50):
        view.feed(envelope(seq, "note.tick"))
    view.feed(envelope(1, "run.started", {"agent": "other", "task_id": "t", "parent": None, "resumed_from": None}))
    assert (view.duplicates, view.issues, view.agent) == (1, [], "Clerk")
    view.feed({**envelope(1, "note.tick").to_dict(), "event_id": "foreign-form-1"})
    assert view.issues == ["sequence_gap_or_reorder"]


def test_memory_does_not_grow_with_the_number_of_events() -> None:
    view = shown(Log().start())
    for seq in range(2, 5 * REMEMBERED):
        view.feed(envelope(seq, "note.tick"))
    assert len(view.snapshot()["recent"]) == REMEMBERED


# Order.


def test_a_hole_is_an_issue_that_stays_when_the_missing_one_arrives() -> None:
    first, second, third = Log().start().say("note.a").say("note.b").envelopes
    view = RunView(RUN)
    for step in (first, third, second):
        view.feed(step)
    assert (view.status, view.issues) == ("unknown", ["sequence_gap_or_reorder"])


def test_a_log_that_begins_in_the_middle_has_a_gap() -> None:
    view = RunView(RUN)
    view.feed(envelope(4, "note.a"))
    assert view.issues == ["sequence_gap_or_reorder"]


def test_an_old_number_under_a_new_id_is_a_reorder() -> None:
    view = shown(Log().start().say("note.a"))
    view.feed({**envelope(2, "note.a").to_dict(), "event_id": "run-A:other"})
    assert (view.issues, view.duplicates) == (["sequence_gap_or_reorder"], 0)


def test_wall_time_never_decides_the_order() -> None:  # ORD-1
    view = RunView(RUN)
    for seq, moment in enumerate(("08:01:40", "08:01:41", "07:00:40", "07:00:41"), start=1):
        step = envelope(seq, "text.delta", delta(seq - 1, str(seq)))
        view.feed(step._replace(occurred_at=f"2026-10-07T{moment}Z"))
    assert (view.text, view.issues, view.seq) == ("1234", [], 4)


def test_a_snapshot_heals_a_gap_and_nothing_else_does() -> None:
    log = Log().start().say("note.a").say("note.b").end().check()
    holed = RunView(RUN)
    for step in log.envelopes[:1] + log.envelopes[2:]:
        holed.feed(step)
    assert holed.status == "unknown"
    for step in log.envelopes:
        holed.feed(step)
    assert holed.status == "unknown"
    healed = RunView.from_snapshot(shown(Log().start().say("note.a").say("note.b")).snapshot())
    for step in log.envelopes[3:]:
        healed.feed(step)
    assert (healed.status, healed.issues) == ("done", [])
    assert RunView.from_snapshot(holed.snapshot()).status == "unknown"


def test_a_kept_snapshot_does_not_change_when_the_view_goes_on() -> None:
    artifact = {"artifact_id": "a1", "name": "n", "media_type": "text/plain", "bytes": 1}
    view = shown(Log().start())
    kept = view.snapshot()
    for seq, (type_, payload) in enumerate(
        [
            ("artifact.created", artifact),
            ("source.cited", {"item_id": "m", "kind": "url"}),
            ("guardrail.tripped", {"stage": "input", "name": "n"}),
            ("handoff.requested", {"from_agent": "A", "to_agent": "B"}),
            ("approval.wait", {"interaction_id": "ask-1", "call_id": None, "tool": "t", "title": "T"}),
        ],
        start=2,
    ):
        view.feed(envelope(seq, type_, payload))
    assert kept == shown(Log().start()).snapshot()


# Other runs, bad envelopes, unknown types.


def test_another_runs_envelope_only_counts_foreign() -> None:
    view = shown(Log().start())
    view.feed(envelope(2, "run.ended", {"outcome": "succeeded", "final_output": "x"}, run_id="run-B"))
    view.feed(envelope(9, "nonsense.type", {}, run_id="run-B").to_dict())
    view.feed(envelope(2, "text.delta", {"wrong": 1}, run_id="run-B").to_json())
    assert (view.status, view.foreign, view.issues, view.seq) == ("running", 3, [], 1)


FIELDS = ("protocol", "event_id", "run_id", "seq", "type", "occurred_at", "payload")


@pytest.mark.parametrize("field", FIELDS)
def test_a_missing_envelope_field_is_a_bad_envelope(field: str) -> None:
    view = RunView(RUN)
    source = envelope(1, "note.a").to_dict()
    del source[field]
    view.feed(source)
    assert (view.status, view.issues, view.seq) == ("unknown", ["bad_envelope"], 0)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("extra", 1),
        ("protocol", "agents-progress/2"),
        ("event_id", "a b"),
        ("event_id", ""),
        ("run_id", "r\n"),
        ("run_id", "x" * 65),
        ("seq", 0),
        ("seq", -1),
        ("seq", "1"),
        ("seq", True),
        ("seq", 1.0),
        ("type", "Note.a"),
        ("type", "note"),
        ("type", "note.a\n"),
        ("occurred_at", "yesterday"),
        ("occurred_at", "2026-10-07T08:00:01+02:00"),
        ("occurred_at", "٢٠٢٦-١٠-٠٧T08:00:01Z"),
        ("payload", None),
        ("payload", []),
        ("payload", "{}"),
    ],
)
def test_an_envelope_field_of_a_wrong_form_is_a_bad_envelope(field: str, value: object) -> None:
    view = RunView(RUN)
    view.feed({**envelope(1, "note.a").to_dict(), field: value})
    assert (view.status, view.issues) == ("unknown", ["bad_envelope"])


def test_an_unknown_type_is_an_issue_and_an_unknown_note_is_none() -> None:
    assert shown(Log().start().say("run.completed")).issues == ["unknown_event"]
    assert shown(Log().start().say("notes.a")).issues == ["unknown_event"]
    assert shown(Log().start().say("note.brand_new", a=1)).issues == []


def test_issues_are_named_once_and_stay() -> None:
    log = Log().start().say("brand.new").say("brand.newer").say("tool.started", call_id="c9").end().check()
    view = shown(log)
    assert (view.status, view.issues) == ("unknown", ["unknown_event", "bad_payload_or_transition"])


# Text.


def test_the_newest_answer_is_the_text_and_other_channels_are_not() -> None:
    log = Log().start().say("text.delta", **delta(0, "first")).say("text.delta", **delta(0, "second", "m2"))
    log.say("text.delta", **delta(0, "no", "m3"), channel="refusal")
    log.say("text.delta", **delta(0, "hm", "m4"), channel="reasoning")
    view = shown(log)
    assert view.text == "second"
    assert [(m.item_id, m.channel, m.text) for m in view.messages] == [
        ("m1", "answer", "first"),
        ("m2", "answer", "second"),
        ("m3", "refusal", "no"),
        ("m4", "reasoning", "hm"),
    ]


def test_two_channels_of_one_item_are_counted_apart() -> None:
    log = Log().start().say("text.delta", **delta(0, "a")).say("text.delta", **delta(0, "r"), channel="refusal")
    view = shown(log.say("text.delta", **delta(1, "b"), channel="answer"))
    assert (view.issues, [m.text for m in view.messages]) == ([], ["ab", "r"])


def test_the_completed_text_takes_the_place_of_the_deltas() -> None:
    log = Log().start().say("text.delta", **delta(0, "Helo")).say("text.completed", item_id="m1", text="Hello")
    view = shown(log)
    assert (view.text, view.messages[0].complete) == ("Hello", True)
    plain = shown(Log().start().say("text.delta", **delta(0, "Hi")).say("text.completed", item_id="m1"))
    assert (plain.text, plain.messages[0].complete) == ("Hi", True)
    empty = shown(Log().start().say("text.delta", **delta(0, "Hi")).say("text.completed", item_id="m1", text=""))
    assert empty.text == ""


def test_a_completed_text_without_deltas_is_a_message() -> None:
    assert shown(Log().start().say("text.completed", item_id="m1", text="Hello")).text == "Hello"


def test_replaying_a_half_built_message_does_not_double_it() -> None:  # REPL-2
    log = Log().start().say("note.a").say("note.b")
    log.say("text.delta", **delta(0, "Hel")).say("text.delta", **delta(1, "lo")).say("text.completed", item_id="m1")
    whole = Log().start()
    whole.envelopes = log.envelopes[:]
    whole.end().check()
    replayed = RunView(RUN)
    for step in whole.envelopes[:6] + whole.envelopes[:6] + whole.envelopes[6:]:
        replayed.feed(step)
    once = shown(whole)
    assert (replayed.text, replayed.status, replayed.duplicates) == ("Hello", "done", 6)
    assert _without_counter(replayed) == _without_counter(once)


def test_a_message_whose_start_was_never_seen_says_so() -> None:  # REPL-2
    view = RunView(RUN)
    view.feed(envelope(4, "text.delta", delta(2, "lo")))
    view.feed(envelope(5, "text.delta", delta(3, "!")))
    (message,) = view.messages
    assert (message.text, message.missing_start, view.status) == ("lo!", True, "unknown")
    assert shown(Log().start().say("text.delta", **delta(0))).messages[0].missing_start is False


def test_a_missing_or_repeated_delta_is_an_issue() -> None:
    for index in (0, 2):
        view = shown(Log().start().say("text.delta", **delta(0, "a")).say("text.delta", **delta(index, "b")))
        assert (view.status, view.messages[0].missing_start) == ("unknown", False)


def test_a_hundred_thousand_deltas_are_joined_exactly() -> None:
    view = RunView(RUN)
    for index in range(100_000):
        view.feed(envelope(index + 1, "text.delta", delta(index, str(index % 10))))
        if index % 20_000 == 0:
            assert view.text.endswith(str(index % 10))
    assert view.text == "0123456789" * 10_000


# A run that continues a paused one.


def test_a_resumed_run_folds_alone() -> None:
    log = Log("run-A.2").start(resumed_from=RUN).request("c1", "publish").ask("ask-1", "c1", "publish")
    view = shown(log, "run-A.2")
    assert (view.status, view.tools, view.issues) == ("waiting", {"c1": "requested"}, [])
    log.say("approval.resolved", interaction_id="ask-1", decision="approved", actor="mei")
    log.say("tool.started", call_id="c1").say("tool.finished", call_id="c1").end().check()
    view = shown(log, "run-A.2")
    assert (view.status, view.tools, view.issues) == ("done", {"c1": "returned"}, [])
    assert view.interactions["ask-1"].decision == "approved"
    assert view.task_id == "task-1"


def test_a_cancelled_pause_is_a_run_that_ends_at_once() -> None:
    log = Log("run-A.2").start(resumed_from=RUN).request().ask()
    log.say("approval.resolved", interaction_id="ask-1", decision="cancelled").say("cancel.requested", actor="mei")
    view = shown(
        log.say("tool.skipped", call_id="c1", reason="not_run").end("cancelled", requested_by="mei"), "run-A.2"
    )
    assert (view.status, view.tools, view.issues) == ("cancelled", {"c1": "skipped"}, [])


def test_a_tool_that_had_started_stays_running_in_a_cancelled_run() -> None:
    log = Log().start().request().say("tool.started", call_id="c1").say("cancel.requested").end("cancelled")
    view = shown(log)
    assert (view.status, view.tools, view.issues) == ("cancelled", {"c1": "running"}, [])
    assert view.message == "Cancelled; check what tools already did"


def _without_counter(view: RunView) -> dict[str, Any]:
    kept = view.snapshot()
    kept["plain"]["duplicates"] = 0
    return kept
