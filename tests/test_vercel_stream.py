"""The UI message stream: what each event becomes, that no client is told success before its time, and that a reader who
comes later, or comes back, sees the same.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ConfigDict, TypeAdapter, with_config

from agents_progress.answers import TEXTS
from agents_progress.bridges import vercel_parts
from agents_progress.bridges.base import Event
from agents_progress.bridges.table import NOTES, VERCEL
from agents_progress.bridges.vercel_parts import IN_WORDS, PARTS, Major, Part6, Part7
from agents_progress.bridges.vercel_stream import EMITTERS, ENDINGS, REPLACED, VercelStream
from agents_progress.disclosure import CUT
from agents_progress.events import Envelope
from agents_progress.messages import MESSAGES
from agents_progress.view import RunView
from tests.logs import OUTPUT, RUN, Log, envelope, logs, older
from tests.vercel_logs import (
    C1,
    DIGEST,
    GOLDEN,
    MAJORS,
    SITUATIONS,
    WAITED,
    Situation,
    answered,
    asked,
    begin,
    choosing,
    repeating,
    say,
    two_runs,
    viewed,
    written,
)
from tests.vercel_seen import Seen, overclaims, seen

steady = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
each_situation = pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.name)
each_major = pytest.mark.parametrize("major", MAJORS)


def fed(stream: VercelStream, log: list[Envelope]) -> list[list[Event]]:
    """The events of each envelope."""
    return [stream.feed(step) for step in log]


def from_start(log: list[Envelope], major: Major = 7) -> list[list[Event]]:
    stream = VercelStream(major)
    assert stream.join(RunView(log[0].run_id)) == []
    return fed(stream, log)


def flat(events: list[list[Event]]) -> list[Event]:
    return [event for some in events for event in some]


def joined(log: list[Envelope], cut: int, major: Major = 7) -> tuple[list[Event], list[list[Event]]]:
    """What a reader gets that comes after ``cut`` envelopes: at once, and for each that follows."""
    stream = VercelStream(major)
    view = RunView(log[0].run_id)
    for step in log[:cut]:
        view.feed(step)
    return stream.join(view), fed(stream, log[cut:])


# Stored streams.


@each_situation
@each_major
def test_the_stream_of_every_situation_is_the_stored_one(situation: Situation, major: Major) -> None:
    assert written(situation.stream(major)) == (GOLDEN / f"{situation.name}.{major}.jsonl").read_text(encoding="utf-8")


def test_no_stream_is_stored_of_a_situation_that_is_gone() -> None:
    assert {path.name for path in GOLDEN.iterdir()} == {
        f"{s.name}.{major}.jsonl" for s in SITUATIONS for major in MAJORS
    }


@each_situation
def test_the_status_of_every_situation_is_that_of_our_view(situation: Situation) -> None:
    assert situation.view().status == situation.status


@each_situation
@each_major
def test_a_client_is_told_success_exactly_where_our_view_says_done(situation: Situation, major: Major) -> None:
    shown = seen(situation.stream(major))
    assert not overclaims(shown, situation.view())
    assert (shown.sees() == "success") is (situation.status == "done" and situation.name != "corrected")
    assert (shown.finish == "stop") is (shown.sees() == "success")


@each_situation
def test_a_client_that_read_only_the_beginning_was_told_no_success(situation: Situation) -> None:
    events = situation.stream(7)
    for end in range(len(events)):
        assert seen(events[:end]).finish in (None, "tool-calls")


def test_every_situation_of_the_view_that_is_an_ending_has_a_stream() -> None:
    told = {situation.status for situation in SITUATIONS}
    assert told >= set(MESSAGES) - {"accepted", "running", "cancelling"}
    assert set(ENDINGS) < told


# The table.


def named(type_: str) -> set[str]:
    """The parts that the table names for a type; those of reasoning go by those of a text."""
    return set(re.findall(r"`([a-z-]+[a-z])`", VERCEL[type_ if type_ in VERCEL else NOTES]))


def types(events: list[Event]) -> set[str]:
    return {re.sub("^reasoning-", "text-", event["type"]) for event in events}


def test_the_table_names_what_is_sent_of_every_type_and_nothing_else() -> None:
    sent: dict[str, set[str]] = {type_: set() for type_ in VERCEL}
    for situation in SITUATIONS:
        for major in MAJORS:
            stream = VercelStream(major)
            stream.join(RunView(situation.envelopes[0].run_id))
            for step in situation.envelopes:
                if situation.name != "gap":
                    sent[step.type if step.type in VERCEL else NOTES] |= types(stream.feed(step))
    assert sent == {type_: named(type_) for type_ in VERCEL}


def test_whatever_the_table_names_besides_the_standing_of_a_run_has_its_own_code() -> None:
    of_the_stream = {"run.accepted", "cancel.requested"}
    assert set(EMITTERS) == {type_ for type_, cell in VERCEL.items() if cell} - of_the_stream


@steady
@given(logs(), st.sampled_from(MAJORS))
def test_of_no_log_anything_is_sent_that_the_table_does_not_name(log: list[Envelope], major: Major) -> None:
    for step, events in zip(log, from_start(log, major), strict=True):
        assert types(events) <= named(step.type)


# Parts that a client knows.


def shapes(parts: Any) -> TypeAdapter[Any]:
    for shape in vars(vercel_parts).values():
        if isinstance(shape, type) and shape.__module__ == vercel_parts.__name__:
            with_config(ConfigDict(extra="forbid", strict=True))(shape)
    return TypeAdapter(parts)


@each_situation
@pytest.mark.parametrize(("major", "parts"), [(6, Part6), (7, Part7)])
def test_every_part_is_one_of_the_major_and_has_its_shape(situation: Situation, major: Major, parts: Any) -> None:
    for event in situation.stream(major):
        assert event["type"] in PARTS[major]
        shapes(parts).validate_python(event)


def test_an_answer_is_told_only_to_the_major_that_knows_it() -> None:
    log = answered("rejected").envelopes
    assert PARTS[7] - PARTS[6] == {"tool-approval-response"}
    assert "tool-approval-response" not in {event["type"] for event in flat(from_start(log, 6))}
    assert "tool-approval-response" in {event["type"] for event in flat(from_start(log, 7))}


# Questions.


def test_a_question_that_hides_what_it_asks_is_not_offered_to_a_client_that_answers_with_yes() -> None:
    shown = seen(flat(from_start(asked(begin(), shown=False).end("paused").envelopes)))
    assert (shown.asked, shown.sees()) == ({}, "error")


@pytest.mark.parametrize(("kind", "wanted"), TEXTS.items())
def test_a_question_whose_approval_needs_a_text_is_a_call_that_is_left_to_the_client_and_any_other_an_approval(
    kind: str, wanted: str
) -> None:
    shown = seen(flat(from_start(asked(begin(), kind=kind).end("paused").envelopes)))
    assert (shown.sees(), shown.finish) == ("question", "tool-calls")
    state = "input-available" if wanted in IN_WORDS else "approval-requested"
    assert (shown.calls, shown.in_words == [C1]) == ([[C1, state]], wanted in IN_WORDS)


def test_an_answer_finds_in_the_question_the_id_that_the_approval_of_it_would_have() -> None:
    for log in (asked(begin()), asked(begin(), kind="clarification")):
        events = flat(from_start(log.end("paused").envelopes))
        (told,) = [event["data"]["question_id"] for event in events if event["type"] == "data-question"]
        assert told == f"{RUN}/ask-1/{DIGEST}"
        assert {event["approvalId"] for event in events if event["type"] == "tool-approval-request"} <= {told}


def test_a_question_that_a_later_run_states_again_is_answered_there() -> None:
    again = asked(Log(f"{RUN}.2").start(resumed_from=RUN), kind="clarification").end("paused").envelopes
    stream = VercelStream(7)
    events = stream.join(viewed(again), [viewed(asked(begin(), kind="clarification").end("paused").envelopes)])
    (told,) = [event["data"]["question_id"] for event in events if event["type"] == "data-question"]
    assert told == f"{RUN}.2/ask-1/{DIGEST}"


def test_what_a_user_said_is_no_output_of_the_call_once_the_run_goes_on() -> None:
    shown = seen(flat(from_start(asked(begin(), kind="clarification").end("paused").envelopes)))
    shown.answer()
    assert (shown.calls, shown.sees()) == ([[C1, "output-available"]], "answered")
    stream, told = VercelStream(7, continues=True), []
    stream.join(RunView(f"{RUN}.2"), [viewed(WAITED)])
    for step in answered("approved", "clarification").end().check().envelopes:
        seen(stream.feed(step), shown)
        told.append((step.type, shown.calls[0][1]))
    assert dict(told[:2]) == {"run.started": "output-available", "tool.requested": "input-available"}
    assert next(type_ for type_, state in told[2:] if state == "output-available") == "tool.finished"
    assert shown.sees() == "success"


def test_a_choice_is_told_with_its_options() -> None:
    events = flat(from_start(choosing(begin()).end("paused").envelopes))
    (question,) = [event["data"] for event in events if event["type"] == "data-question"]
    assert (question["kind"], question["text"], question["options"]) == ("choice", "option", ["cup", "plate"])


def test_a_question_is_offered_with_exactly_what_it_asks_though_the_arguments_are_not_shown() -> None:
    events = flat(from_start(asked(begin()).end("paused").envelopes))
    assert [event["input"] for event in events if event["type"] == "tool-input-available"] == [None, {"eur": 12}]


def test_a_question_is_offered_only_when_the_run_has_paused() -> None:
    assert seen(flat(from_start(asked(begin()).envelopes))).asked == {}


def test_the_answer_of_a_client_goes_on_in_the_message_that_the_client_has() -> None:
    stream = VercelStream(7, continues=True)
    stream.join(RunView(f"{RUN}.2"), [viewed(WAITED)])
    before = seen(flat(from_start(asked(say(begin())).end("paused").envelopes)))
    after = seen(flat(fed(stream, say(answered("approved"), item_id="m3").end().check().envelopes)), before)
    assert (after.message, after.sees()) == ("task-1", "success")
    assert after.calls == [[C1, "output-available"]]
    assert [text for _, text in after.texts] == [OUTPUT, OUTPUT, OUTPUT]


def test_a_client_that_knows_nothing_is_told_the_runs_before_a_pause_too() -> None:
    first, second = asked(say(begin(), "Let me see. ")).end("paused").envelopes, answered("rejected").end().check()
    stream = VercelStream(7)
    shown = seen(stream.join(second_view := viewed(second.envelopes), [viewed(first)]))
    assert second_view.status == "done"
    assert [text for _, text in shown.texts] == ["Let me see. ", OUTPUT]
    assert (shown.calls, shown.sees(), stream.over) == ([[C1, "output-denied"]], "success", True)


# Calls.


def named_calls(events: list[Event]) -> set[str]:
    """Every id of a call that the parts hold."""
    calls = {event["toolCallId"] for event in events if "toolCallId" in event}
    calls |= {event["id"] for event in events if event["type"] == "data-tool"}
    found = [event["data"] for event in events if event["type"] in ("data-tool", "data-question", "data-artifact")]
    return calls | {data.get("inside") or data.get("call_id") for data in found} - {None}


def test_a_call_has_one_id_in_every_part_of_its_run_and_in_every_run_that_restates_it() -> None:
    made = {"artifact_id": "a1", "name": "x", "media_type": "text/plain", "bytes": 1, "call_id": "c3"}
    log = asked(begin()).request("c1/c2").request("c3").say("artifact.created", **made).end("paused")
    assert named_calls(flat(from_start(log.envelopes))) == {f"{RUN}:c1", f"{RUN}:c1/c2", f"{RUN}:c3"}
    again = Situation("", answered("approved").envelopes, "running", earlier=log.envelopes)
    assert named_calls(again.stream(7)) == {f"{RUN}:c1"}


@each_major
def test_a_call_of_the_same_id_as_one_before_a_pause_is_a_call_of_its_own(major: Major) -> None:
    views, shown = list[RunView](), Seen()
    for log in repeating():
        stream = VercelStream(major, continues=bool(views))
        stream.join(RunView(log[0].run_id), views)
        for cut, step in enumerate(log, 1):
            seen(stream.feed(step), shown)
            late = VercelStream(major)
            joined = seen(late.join(viewed(log[:cut]), views))
            seen(flat(fed(late, log[cut:])), joined)
        assert (joined.calls, joined.parts) == (shown.calls, shown.parts)
        views.append(viewed(log))
    ids = (f"{RUN}:c1", f"{RUN}:c2", f"{RUN}.2:c1", f"{RUN}.3:c2")
    assert shown.calls == [[each, "output-available"] for each in ids]


# Endings.


def test_nothing_follows_an_ending() -> None:
    stream = VercelStream(7)
    stream.join(RunView(RUN))
    log = say(begin()).end("failed").say("note.late").say("text.delta", item_id="m9", index=0, text="late").envelopes
    after = fed(stream, log)[-2:]
    assert (stream.over, after, stream.cut("unknown")) == (True, [[], []], [])


def test_a_stream_that_is_cut_ends_as_an_error_with_its_sentence_in_the_readers_language() -> None:
    stream = VercelStream(6, "zh")
    stream.join(viewed(say(begin(), ends=False).envelopes))
    standing, *ending = stream.cut("try_again")
    assert (standing["data"]["status"], standing["data"]["cut"]) == ("running", "try_again")
    assert ending == [
        {"type": "text-end", "id": "m1"},
        {"type": "error", "errorText": "服务器现在无法继续显示这次运行；请重新连接"},
    ]
    assert stream.over


def test_a_reader_who_joins_after_a_text_was_corrected_sees_the_right_one() -> None:
    log = next(situation for situation in SITUATIONS if situation.name == "corrected").envelopes
    events, _ = joined(log, len(log))
    assert ([text for _, text in seen(events).texts], seen(events).sees()) == ([OUTPUT], "success")


@pytest.mark.parametrize(
    ("text", "output", "told"),
    [
        (OUTPUT[:9], OUTPUT, [OUTPUT[:9], OUTPUT[9:]]),
        (f"{OUTPUT[:9]}{CUT}", OUTPUT, [f"{OUTPUT[:9]}{CUT}", OUTPUT[9:]]),
        (OUTPUT, f"{OUTPUT[:9]}{CUT}", [OUTPUT]),
        ("Let me see.", OUTPUT, ["Let me see.", OUTPUT]),
    ],
)
def test_of_an_output_that_the_text_began_only_the_rest_is_told(text: str, output: str, told: list[str]) -> None:
    log = say(begin(), text).end(final_output=output).check(output=output).envelopes
    assert [shown for _, shown in seen(flat(from_start(log))).texts] == told


# Every log, every prefix, every place to join.


def shown_texts(shown: Seen) -> dict[str, str]:
    whole: dict[str, str] = {}
    for name, text in shown.texts:
        whole[name] = whole.get(name, "") + text
    return {name: text for name, text in whole.items() if text and name != "output"}


def view_texts(view: RunView) -> dict[str, str]:
    return {
        each.item_id if each.channel == "answer" else f"{each.item_id}/{each.channel}": each.text
        for each in view.messages
        if each.text
    }


@steady
@given(logs(), st.sampled_from(MAJORS))
def test_what_is_seen_says_no_more_than_our_view_after_any_envelope(log: list[Envelope], major: Major) -> None:
    stream, view, shown = VercelStream(major), RunView(RUN), Seen()
    stream.join(view)
    for step in log:
        view.feed(step)
        seen(stream.feed(step), shown)
        assert shown.error is not None or shown.run in (view.status, None)
        assert (shown.finish == "stop") is (view.status == "done" and shown.error is None)
        assert stream.over is (shown.error is not None or shown.finish is not None)
    ended = view.terminal is not None and view.status != "checking"
    assert stream.over or not ended
    assert not overclaims(seen(stream.cut("unknown"), shown), view)


@steady
@given(logs())
def test_no_text_is_lost_or_doubled(log: list[Envelope]) -> None:
    stream, view, shown = VercelStream(7), RunView(RUN), Seen()
    stream.join(view)
    for step in log:
        view.feed(step)
        seen(stream.feed(step), shown)
        if stream.over:
            break
        assert shown_texts(shown) == view_texts(view)


@steady
@given(logs(), st.sampled_from(MAJORS))
def test_whoever_joins_anywhere_is_told_the_same_from_there_on(log: list[Envelope], major: Major) -> None:
    whole = from_start(log, major)
    stopped = next((n for n, events in enumerate(whole) if any("corrected" in str(e) for e in events)), len(log))
    for cut in range(1, len(log) + 1):
        at_once, after = joined(log, cut, major)
        shown, view = seen(at_once), viewed(log[:cut])
        assert shown.run == view.status
        assert shown.sees() == "error" or shown_texts(shown) == view_texts(view)
        if cut <= stopped:
            assert after == whole[cut:]


def order(shown: Seen) -> list[tuple[str, str]]:
    """Texts and calls, each where it begins."""
    return list(dict.fromkeys((kind, rest[0]) for kind, *rest in shown.parts if kind != "step"))


@steady
@given(logs(), st.sampled_from(MAJORS))
def test_whoever_joins_anywhere_sees_texts_and_calls_in_the_order_of_who_was_there(
    log: list[Envelope], major: Major
) -> None:
    whole = from_start(log, major)
    for cut in range(1, len(log) + 1):
        shown = seen(flat(whole[:cut]))
        if shown.error == REPLACED["en"]:
            return  # it shows what was said before, and nothing of what comes
        at_once, after = joined(log, cut, major)
        assert order(seen(at_once)) == order(shown)
        assert order(seen(flat(after), seen(at_once))) == order(seen(flat(whole)))


@each_major
def test_whoever_joins_a_situation_anywhere_sees_what_whoever_was_there_sees(major: Major) -> None:
    situations = [each for each in SITUATIONS if each.name != "two_parts"]  # which are one for whoever joins
    for situation in situations:
        log = situation.envelopes
        whole = from_start(log, major)
        for cut in range(1, len(log) + 1):
            at_once, _ = joined(log, cut, major)
            if "corrected" not in str(whole[:cut]):
                assert (situation.name, seen(at_once).parts) == (situation.name, seen(flat(whole[:cut])).parts)


@each_major
@pytest.mark.parametrize("decision", ["approved", "rejected"])
def test_whoever_joins_a_task_of_several_runs_sees_what_whoever_was_there_sees(major: Major, decision: str) -> None:
    first, second = two_runs(decision)
    shown = seen(flat(from_start(first, major)))
    there = VercelStream(major, continues=True)
    there.join(RunView(f"{RUN}.2"), [viewed(first)])
    for cut, step in enumerate(second, 1):
        seen(there.feed(step), shown)
        told = seen(VercelStream(major).join(viewed(second[:cut]), [viewed(first)]))
        assert cut == 1 or (cut, told.parts) == (cut, shown.parts)  # until its call is restated, one has its own answer
    assert [kind for kind, *_ in shown.parts] == "step text call step text call step text call step text".split()


def test_whoever_joins_from_a_snapshot_that_knows_no_order_misses_nothing() -> None:
    first, _ = two_runs("approved")
    shown = seen(VercelStream(7).join(RunView.from_snapshot(older(viewed(first).snapshot()))))
    assert [part[0] for part in shown.parts] == ["call", "call", "text", "text"]


@steady
@given(logs(), st.data())
def test_repeats_and_envelopes_of_other_runs_tell_nothing(log: list[Envelope], data: st.DataObject) -> None:
    stream = VercelStream(7)
    stream.join(RunView(RUN))
    for place, step in enumerate(log):
        stream.feed(step)
        again = data.draw(st.sampled_from(log[: place + 1]))
        assert stream.feed(again) == []
        assert stream.feed(envelope(step.seq, step.type, step.payload, run_id="run-B")) == []


@steady
@given(logs(), st.data())
def test_a_log_with_a_hole_or_an_unknown_event_never_ends_well(log: list[Envelope], data: st.DataObject) -> None:
    place = data.draw(st.integers(0, len(log) - 1))
    unheard_of = envelope(place + 1, "text.unheard_of", {})
    for rest in (log[place + 1 :], [unheard_of, *log[place + 1 :]]):
        stream, view, shown = VercelStream(7), RunView(RUN), Seen()
        stream.join(view)
        for step in (*log[:place], *rest):
            view.feed(step)
            seen(stream.feed(step), shown)
            if stream.over:
                break  # nothing can be said after it
        assert not overclaims(seen(stream.cut("unknown"), shown), view)
