"""The AG-UI stream of a run: kept envelopes of every scenario, logs of every type, joins at every place, and the lies
that a validator lets pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from ag_ui.core import Event as AgUiEvent
from ag_ui_validate.pytest_plugin import validate_agui
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import TypeAdapter
from pydantic_core import from_json, to_json

from agents_progress.bridges.ag_ui_projection import AgUiProjection
from agents_progress.bridges.base import CUTS, unsaid_of
from agents_progress.bridges.table import AG_UI, NOTES
from agents_progress.errors import ProgressError, UsageError
from agents_progress.events import Envelope, parse
from agents_progress.messages import MESSAGES
from agents_progress.testing.ag_ui_screen import Screen, says_success
from agents_progress.verify import digest
from agents_progress.view import RunView
from compat import golden, matrix
from compat.seen import logged
from tests.ag_ui_streams import GOLDEN, stored, stream
from tests.logs import OUTPUT, RUN, USAGE, Log, logs
from tests.vercel_logs import SITUATIONS, Situation, repeating, two_runs

VECTORS = Path(__file__).parent.parent / "agents_progress" / "vectors" / "progress_cases.json"
EVENTS: TypeAdapter[Any] = TypeAdapter(AgUiEvent)

Stream = list[dict[str, Any]]


# Streams.


def checked(log: list[Envelope], ok: bool = True) -> list[Envelope]:
    """A log whose output the application judged, when it has one."""
    end = next((step.payload for step in log if step.type == "run.ended"), {})
    if end.get("outcome") != "succeeded" or any(step.type == "app.checked" for step in log):
        return log
    last = log[-1]
    verdict = {"digest": digest(end["final_output"]), "ok": ok, "check": "equals"}
    seq = last.seq + 1
    return [*log, Envelope(f"{last.run_id}:{seq}", last.run_id, seq, "app.checked", last.occurred_at, verdict)]


@cache
def kept() -> dict[str, list[Envelope]]:
    """Every run of every scenario on the newest release; one whose success the application accepted, and refused."""
    found: dict[str, list[Envelope]] = {}
    newest = matrix.newest()
    for name, performance in dict(golden.performances(newest, newest)).items():
        for number, lines in enumerate(performance.runs, 1):
            log = [parse(envelope) for envelope in logged("run-1", lines)]
            found[f"{name} {number}"] = log
            if checked(log) is not log:
                found[f"{name} {number} accepted"] = checked(log)
                found[f"{name} {number} refused"] = checked(log, ok=False)
    return found


def shown(log: Iterable[Envelope], run_id: str) -> RunView:
    view = RunView(run_id)
    for step in log:
        view.feed(step)
    return view


def streamed(
    log: list[Envelope], start: int = 0, history: Stream | None = None, earlier: Sequence[RunView] = ()
) -> Iterator[Stream]:
    """What a reader gets who comes after so many envelopes: of coming in, then of each envelope."""
    run_id = log[0].run_id if log else RUN
    projection = AgUiProjection("thread", history=history or [])
    yield projection.join(shown(log[:start], run_id), earlier)
    for step in log[start:]:
        yield projection.feed(step)


def flat(parts: Iterable[Stream]) -> Stream:
    return [event for part in parts for event in part]


def whole(log: list[Envelope], start: int = 0) -> Stream:
    """The same, cut off with an error where the log has no ending that shows."""
    projection = AgUiProjection("thread")
    run_id = log[0].run_id if log else RUN
    events = projection.join(shown(log[:start], run_id))
    for step in log[start:]:
        events += projection.feed(step)
    status = shown(log, run_id).status
    return events + projection.cut("not_checked" if status == "checking" else "unknown")


def seen(events: Iterable[dict[str, Any]], screen: Screen | None = None) -> Screen:
    screen = Screen() if screen is None else screen
    for event in events:
        screen.take(event)
    return screen


# Form.


def test_the_stream_of_every_situation_is_the_stored_one() -> None:
    assert {path.name: path.read_text(encoding="utf-8") for path in GOLDEN.iterdir()} == stored()


@pytest.mark.parametrize("name", sorted(stored()))
def test_nothing_can_be_said_against_a_stored_stream(name: str) -> None:
    report = validate_agui(stored()[name])
    assert [each for each in report.diagnostics if each.severity == "error"] == []


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda situation: situation.name)
def test_a_user_is_told_of_success_in_a_situation_exactly_where_our_view_is_done(situation: Situation) -> None:
    for start in range(len(situation.envelopes) + 1):
        assert says_success(stream(situation, start)) == (situation.status == "done")


@pytest.mark.parametrize("name", sorted(kept()))
def test_a_kept_run_makes_a_stream_that_nothing_can_be_said_against(name: str) -> None:
    events = whole(kept()[name])
    wire = [from_json(to_json(event)) for event in events]
    report = validate_agui(wire)
    assert [each for each in report.diagnostics if each.severity != "info"] == []
    assert [EVENTS.validate_python(each).model_extra or None for each in wire] == [None] * len(wire)


@pytest.mark.parametrize("name", sorted(kept()))
def test_whoever_comes_in_the_middle_gets_a_stream_that_nothing_can_be_said_against(name: str) -> None:
    log = kept()[name]
    for start in range(len(log) + 1):
        report = validate_agui([from_json(to_json(event)) for event in whole(log, start)])
        assert [each for each in report.diagnostics if each.severity == "error"] == [], start


CLOSING = {"TEXT_MESSAGE_END", "REASONING_MESSAGE_END", "REASONING_END", "TOOL_CALL_END", "STEP_FINISHED"}
CLOSING |= {"SUBAGENT_FINISHED", "SUBAGENT_ERROR", "TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT"}
CLOSING |= {"REASONING_MESSAGE_CONTENT"}
"""What may come with anything that leaves nothing open behind, and is named where it is the rule."""


def test_the_table_names_what_each_type_gives_and_nothing_else() -> None:
    given: dict[str, set[str]] = {type_: set() for type_ in AG_UI}
    had = {"id": f"{RUN}:c1", "type": "function", "function": {"name": "look", "arguments": "{}"}}
    edited = Log(f"{RUN}.2").start(resumed_from=RUN).request(arguments='{"n": 1}').envelopes
    paused = shown(Log().start().request().end("paused").envelopes, RUN)
    for log in [*kept().values(), everything(), edited]:
        history = [{"id": f"{RUN}:c1", "role": "assistant", "toolCalls": [had]}]
        parts = streamed(log, history=history, earlier=[paused] if log is edited else [])
        next(parts)
        for step, part in zip(log, parts, strict=True):
            type_ = step.type if step.type in given else NOTES
            given[type_] |= {event["type"] for event in part}
    named = {type_: set(re.findall(r"`([A-Z_]+)`", words)) for type_, words in AG_UI.items()}
    assert [type_ for type_ in named if not named[type_] <= given[type_] <= named[type_] | CLOSING] == []
    assert set(AgUiProjection.steps) == set(AG_UI) - {NOTES}


def everything() -> list[Envelope]:
    """What no kept run has: a reserved run, stages, progress, late arguments, citations, reasoning, a lost owner."""
    log = Log().say("run.accepted", task_id="task-1").start()
    log.say("stage.started", stage_id="s1", title="Look").say("stage.started", stage_id="s2", title="Look")
    log.say("text.delta", item_id="m1", index=0, text="Why", channel="reasoning")
    log.say("text.completed", item_id="m1", text="Why not", channel="reasoning")
    log.say("text.completed", item_id="m2", text="Whole at once")
    log.say("text.delta", item_id="m3", index=0, text="I ca", channel="refusal")
    log.request("c1", "delegate", "agent").say("tool.started", call_id="c1")
    log.request("c1/i1", "look").say("tool.arguments.delta", call_id="c1/i1", index=0, text="{")
    log.say("tool.arguments.completed", call_id="c1/i1", arguments="{}").say("tool.started", call_id="c1/i1")
    log.say("tool.progress", call_id="c1/i1", message="half", current=1, total=2)
    log.say("tool.skipped", call_id="c1/i1", reason="not_run").say("tool.failed", call_id="c1", code="timeout")
    log.request("c2", "again", "agent").say("tool.started", call_id="c2").request("c2/i1", arguments="free text")
    log.say("tool.rejected", call_id="c2/i1", reason="refused").say("tool.rejected", call_id="c2", reason="refused")
    log.request("c3", "wait", "agent").say("tool.started", call_id="c3").say("tool.skipped", call_id="c3", reason="x")
    log.request("c4", "late").say("tool.failed", call_id="c4", code="x").request("c5").say(
        "tool.rejected", call_id="c5", reason="x"
    )
    log.request("c8", "plain").say("tool.started", call_id="c8").request("c8/i1")
    log.say("source.cited", item_id="m3", kind="url", url="https://example.org").say("usage.updated", **USAGE)
    log.request("c6", "long", "agent").say("tool.started", call_id="c6").request("c7")
    log.say("stage.completed", stage_id="s2", title="Look").say(
        "text.delta", item_id="m4", index=0, text="so", channel="reasoning"
    )
    return log.say("run.lost", reason="lease_expired").envelopes


# Truth.


@pytest.mark.parametrize("name", sorted(kept()))
def test_a_user_is_told_of_success_exactly_where_our_view_is_done(name: str) -> None:
    log = kept()[name]
    for start in range(len(log) + 1):
        screen, view = Screen(), shown(log[:start], "run-1")
        for place, part in enumerate(streamed(log, start)):
            if place:
                view.feed(log[start + place - 1])
            seen(part, screen)
            assert screen.success == (view.status == "done")
            assert (screen.ended is not None) == (view.terminal is not None and view.status != "checking")


@pytest.mark.parametrize("name", sorted(kept()))
def test_wherever_a_user_comes_in_the_texts_and_results_are_those_of_our_view(name: str) -> None:
    log = kept()[name]
    view = shown(log, "run-1")
    texts = [text for text in (*(message.text for message in view.messages), unsaid_of(view)) if text]
    settled = {
        f"run-1:{row.activity_id}" for row in view.activities if row.kind not in ("handoff", "stage") and not row.open
    }
    for start in range(len(log) + 1):
        screen = seen(flat(streamed(log, start)))
        assert sorted(text for text in screen.texts.values() if text) == sorted(texts)
        assert set(screen.results) == settled


steady = settings(
    max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


@steady
@given(logs(), st.data())
def test_any_log_ends_for_a_user_as_it_does_for_our_view(log: list[Envelope], data: st.DataObject) -> None:
    view, parts = shown(log, RUN), list(streamed(log))
    for start in {0, data.draw(st.integers(0, len(log))), len(log)}:
        screen = seen(flat(streamed(log, start)))
        assert screen.success == (view.status == "done")
        assert (screen.ended is not None) == (view.terminal is not None and view.status != "checking")
        assert list(streamed(log, start))[1:] == parts[start + 1 :]
        for event in flat(streamed(log, start)):
            EVENTS.validate_json(to_json(event))


def order(screen: Screen) -> list[str]:
    """Texts and calls, each where it begins: the id of a later part of a text ends with what came before it."""
    return list(dict.fromkeys(re.sub(r"(:m\d(:[a-z]+)?):\d+$", r"\1", each) for each in screen.order))


@steady
@given(logs(), st.data())
def test_whoever_comes_in_anywhere_has_texts_and_calls_in_the_order_of_who_was_there(
    log: list[Envelope], data: st.DataObject
) -> None:
    parts = list(streamed(log))
    start = data.draw(st.integers(0, len(log)))
    first, *rest = streamed(log, start)
    assert order(seen(first)) == order(seen(flat(parts[: start + 1])))
    assert order(seen(flat([first, *rest]))) == order(seen(flat(parts)))


@pytest.mark.parametrize("name", sorted(kept()))
def test_whoever_comes_in_has_a_kept_run_in_the_order_of_who_was_there(name: str) -> None:
    log = kept()[name]
    parts = list(streamed(log))
    for start in range(len(log) + 1):
        assert seen(next(streamed(log, start))).order == seen(flat(parts[: start + 1])).order


@pytest.mark.parametrize("decision", ["approved", "rejected"])
def test_whoever_comes_to_a_task_of_several_runs_has_it_in_the_order_of_who_was_there(decision: str) -> None:
    first, second = two_runs(decision)
    screen = seen(flat(streamed(first)))
    projection = AgUiProjection("thread")
    seen(projection.join(RunView(f"{RUN}.2"), [shown(first, RUN)]), screen)
    for cut, step in enumerate(second, 1):
        seen(projection.feed(step), screen)
        told = seen(AgUiProjection("thread").join(shown(second[:cut], f"{RUN}.2"), [shown(first, RUN)]))
        assert (cut, told.order, told.texts) == (cut, screen.order, screen.texts)
    names = f"{RUN}:m1 {RUN}:c1 {RUN}:m2 {RUN}:c2 {RUN}.2:m2 {RUN}.2:c3 {RUN}.2:m3"
    assert screen.order == names.split()


@steady
@given(logs(), st.data())
def test_lost_repeated_and_misplaced_envelopes_are_told_as_our_view_has_them(
    log: list[Envelope], data: st.DataObject
) -> None:
    log = checked(log)
    spoilt = data.draw(st.lists(st.sampled_from(log), max_size=2 * len(log)))
    view, projection = RunView(RUN), AgUiProjection("thread")
    screen = seen(projection.join(view))
    for step in data.draw(st.sampled_from([spoilt, [*log[:1], *log], [*log, *spoilt], log[1:], [*log[:-2], *spoilt]])):
        if screen.ended is not None:
            return  # nothing can be said after it
        view.feed(step)
        seen(projection.feed(step), screen)
        told = screen.activities.get(f"{RUN}:status")
        assert screen.success == (screen.ended is not None and view.status == "done")
        if told is not None and screen.ended is None:
            assert (told["status"], told["message"]) == (view.status, view.message)


CASES = [case for case in from_json(VECTORS.read_bytes()) if case["name"] != "id_conflict"]  # no journal keeps that one


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_the_cases_that_all_readers_share_are_no_success_where_they_are_none(case: dict[str, Any]) -> None:
    view, projection = RunView(case["run_id"]), AgUiProjection("thread")
    screen = seen(projection.join(view))
    for source in case["events"]:
        view.feed(source)
        try:
            step = parse(source)
        except ProgressError:
            continue  # a journal keeps none of these
        seen(projection.feed(step), screen)
        assert not screen.success or view.status == "done"
        if screen.success:
            return  # nothing can be said after it


def test_a_cancelled_run_that_ends_like_any_other_passes_the_validator_and_not_the_truth() -> None:
    log = kept()["cancel_mid_text 1"] if "cancel_mid_text 1" in kept() else cancelled()
    honest = flat(streamed(log))
    lie = [*honest[:-1], {name: honest[-1][name] for name in ("type", "threadId", "runId")}]
    assert validate_agui(lie).summary.errors == 0
    assert shown(log, log[0].run_id).status == "cancelled"
    assert (says_success(honest), says_success(lie)) == (False, True)


def cancelled() -> list[Envelope]:
    return Log().start().say("cancel.requested").end("cancelled").envelopes


@pytest.mark.parametrize("outcome", [None, {}, {"type": "success"}, {"type": "of a later version"}])
def test_an_outcome_that_the_client_does_not_know_is_success_to_it(outcome: Any) -> None:
    assert says_success([{"type": "RUN_STARTED"}, {"type": "RUN_FINISHED", "outcome": outcome}])


def test_what_follows_the_end_makes_the_client_fail_the_whole_run() -> None:
    screen = seen([{"type": "RUN_STARTED"}, {"type": "RUN_FINISHED"}])
    with pytest.raises(UsageError, match="send nothing after"):
        screen.take({"type": "CUSTOM", "name": "late", "value": 1})


# The end.


@pytest.mark.parametrize("code", sorted(CUTS))
@pytest.mark.parametrize("name", ["run_lost", "open"])
def test_a_stream_that_is_cut_is_an_error_once(code: Any, name: str) -> None:
    projection = AgUiProjection("thread", "zh")
    view = RunView(RUN)
    events = projection.join(view)
    for step in Log().start().say("text.delta", item_id="m1", index=0, text="Ha").envelopes:
        events += projection.feed(step)
    if name == "run_lost":
        lost = projection.feed(Envelope(f"{RUN}:3", RUN, 3, "run.lost", "2026-10-07T08:00:00Z", {"reason": "x"}))
        assert lost[-1]["code"] == "unknown"
        assert (projection.over, projection.cut(code)) == (True, [])
        return
    cut = projection.cut(code)
    assert [event["type"] for event in cut] == ["TEXT_MESSAGE_END", "RUN_ERROR"]
    assert (cut[-1]["code"], cut[-1]["message"]) == (code, CUTS[code]["zh"])
    assert (projection.over, projection.cut(code)) == (True, [])


def test_success_is_held_back_until_the_application_accepted_the_output() -> None:
    log = Log().start().say("text.completed", item_id="m1", text=OUTPUT).say("usage.updated", **USAGE).end().check()
    *_, ended, accepted = streamed(log.envelopes)
    assert [event["type"] for event in ended] == ["ACTIVITY_SNAPSHOT"]
    assert ended[0]["content"] == {"status": "checking", "message": MESSAGES["checking"]["en"], "agent": "Clerk"}
    assert [event["type"] for event in accepted] == ["ACTIVITY_SNAPSHOT", "RUN_FINISHED"]
    assert accepted[-1]["result"] == OUTPUT
    assert accepted[-1]["usage"] == [{"inputTokens": 10, "outputTokens": 5, "totalTokens": 15}]
    assert accepted[-1]["metadata"]["agents-progress"]["usage"] == "partial"


def test_an_output_that_no_text_said_is_shown_too() -> None:
    log = Log().start().request("c1").say("tool.finished", call_id="c1").end(final_output="4 EUR").check(output="4 EUR")
    for start in range(len(log.envelopes) + 1):
        screen = seen(flat(streamed(log.envelopes, start)))
        assert (screen.texts, screen.success) == ({f"{RUN}:final_output": "4 EUR"}, True)


def test_a_refused_check_is_an_error_with_its_own_code() -> None:
    log = Log().start().end().check(ok=False).envelopes
    screen = seen(flat(streamed(log)))
    assert (screen.ended, screen.code) == ("error", "check_refused")


def test_a_run_that_something_unsupported_was_seen_of_is_no_success() -> None:
    log = Log().start().say("adapter.unsupported", what="item", name="X").end().check().envelopes
    assert seen(flat(streamed(log))).code == "unknown"


# Questions.


def asking(**more: Any) -> list[Envelope]:
    log = Log().start().request("c1", "refund", arguments='{"order":1}')
    question = {"interaction_id": "ask-1", "call_id": "c1", "tool": "refund", "title": "Refund?", "digest": "ab" * 32}
    return log.say("approval.wait", **question, **more).end("paused").envelopes


def interrupts_of(log: list[Envelope]) -> Stream:
    found: Stream = flat(streamed(log))[-1]["outcome"]["interrupts"]
    return found


def test_a_pause_is_an_interrupt_that_repeats_the_digest_of_what_was_shown() -> None:
    (found,) = interrupts_of(asking(details="order 1", expires_at="2026-10-08T08:00:00Z"))
    assert found["id"] == f"{RUN}/ask-1/{'ab' * 32}"
    assert (found["toolCallId"], found["expiresAt"]) == (f"{RUN}:c1", "2026-10-08T08:00:00Z")
    assert found["responseSchema"]["properties"]["approved"] == {"type": "boolean"}
    assert found["metadata"]["agents-progress"]["details"] == "order 1"


@pytest.mark.parametrize(
    ("more", "yes"), [({}, False), ({"x": {"approve_blind": True}}, True), ({"details": "d"}, True)]
)
def test_what_is_not_shown_can_only_be_refused(more: dict[str, Any], yes: bool) -> None:
    (found,) = interrupts_of(asking(**more))
    approved = found["responseSchema"]["properties"]["approved"]
    assert approved == ({"type": "boolean"} if yes else {"const": False})


def test_a_sub_agent_that_asks_is_suspended_by_its_own_question() -> None:
    log = Log().start().request("c1", "ask", "agent").say("tool.started", call_id="c1").request("c1/i1", "refund")
    log.ask("ask-1", "c1/i1", "refund").end("paused")
    events = flat(streamed(log.envelopes))
    (left,) = [event for event in events if event["type"] == "SUBAGENT_FINISHED"]
    (found,) = events[-1]["outcome"]["interrupts"]
    assert left["outcome"] == {"type": "suspended", "interruptIds": [found["id"]]}
    assert found["subagentRunId"] == left["subagentRunId"] == f"{RUN}:c1"


def test_a_run_that_continues_shows_its_calls_under_the_ids_that_the_client_has_and_their_arguments_once() -> None:
    screen = seen(flat(streamed(asking())))
    again = Log(f"{RUN}.2").start(resumed_from=RUN).request("c1", "refund", arguments='{"order":1}')
    again.ask("ask-1", "c1", "refund").say("approval.resolved", interaction_id="ask-1", decision="approved")
    again.say("tool.started", call_id="c1").say("tool.finished", call_id="c1", output="R-1").end().check()
    seen(flat(streamed(again.envelopes, earlier=[shown(asking(), RUN)])), screen)
    assert screen.arguments == {f"{RUN}:c1": '{"order":1}'}
    assert screen.results == {f"{RUN}:c1": "R-1"}
    assert [content["status"] for name, content in screen.activities.items() if name.endswith(":status")] == ["done"]
    assert screen.success


def test_whoever_comes_to_a_run_that_continues_gets_what_came_before_it_too() -> None:
    first = Log().start().say("text.delta", item_id="m1", index=0, text="I ask")
    first.request("c1", "refund", arguments="{}").ask("ask-1", "c1", "refund").end("paused")
    again = Log(f"{RUN}.2").start(resumed_from=RUN).request("c1", "refund", arguments="{}").ask("ask-1", "c1", "refund")
    again.say("approval.resolved", interaction_id="ask-1", decision="approved").say(
        "tool.finished", call_id="c1", output="R-1"
    )
    again.say("text.delta", item_id="m1", index=0, text="Done").end(final_output="Done").check(output="Done")
    for start in range(len(again.envelopes) + 1):
        told = [] if start else flat(streamed(first.envelopes))  # who comes in at the start was there before
        screen = seen(flat(streamed(again.envelopes, start, earlier=[shown(first.envelopes, RUN)])), seen(told))
        assert screen.texts == {f"{RUN}:m1": "I ask", f"{RUN}.2:m1": "Done"}
        assert (screen.arguments, screen.results) == ({f"{RUN}:c1": "{}"}, {f"{RUN}:c1": "R-1"})


def test_a_call_of_the_same_id_as_one_before_a_pause_is_a_call_of_its_own() -> None:
    views, screen = list[RunView](), Screen()
    for log in repeating():
        parts = list(streamed(log, earlier=views))
        for start in range(1, len(log) + 1):
            joined = list(streamed(log, start, earlier=views))
            assert joined[1:] == parts[start + 1 :]
            late = seen(flat(joined))
        seen(flat(parts), screen)
        assert (late.arguments, late.results) == (screen.arguments, screen.results)
        views.append(shown(log, log[0].run_id))
    ids = (f"{RUN}:c1", f"{RUN}:c2", f"{RUN}.2:c1", f"{RUN}.3:c2")
    assert screen.arguments == dict(zip(ids, "1234", strict=True))
    assert screen.results == dict(zip(ids, ("one", "two", "three", "four"), strict=True))


# Coming again.


def test_a_client_that_holds_half_of_a_text_gets_the_whole_once_and_keeps_what_is_not_ours() -> None:
    log = (
        Log()
        .start()
        .say("text.delta", item_id="m1", index=0, text="Hel")
        .say("text.delta", item_id="m1", index=1, text="lo")
    )
    log.request("c1", arguments="{}").say("tool.finished", call_id="c1", output="x")
    log.say("text.completed", item_id="m1").end(final_output="Hello").check(output="Hello")
    history = [
        {"id": "u1", "role": "user", "content": "Hi"},
        {"id": f"{RUN}:m1", "role": "assistant", "content": "Hel"},
    ]
    for start in range(len(log.envelopes) + 1):
        screen = seen(flat(streamed(log.envelopes, start, history)), Screen(history))
        assert screen.texts == {"u1": "Hi", f"{RUN}:m1": "Hello"}


@pytest.mark.parametrize("name", sorted(kept()))
def test_whoever_was_cut_off_goes_on_after_the_last_event_it_had(name: str) -> None:
    log = kept()[name]
    parts = list(streamed(log))
    for start in range(len(log) + 1):
        _, *rest = streamed(log, start)
        assert rest == parts[start + 1 :]


def two_parts(channel: str = "answer") -> list[Envelope]:
    """A message whose first part was complete before its second began, and whose end has more than its parts."""
    more = {} if channel == "answer" else {"channel": channel}
    log = Log().start()
    for index, piece in enumerate(["On", "e. ", "Tw", "o. "]):
        log.say("text.delta", item_id="m1", index=index, text=piece, **more)
        if index % 2:
            log.say("text.completed", item_id="m1", **more)
    log.say("text.completed", item_id="m1", text="One. Two. Three.", **more)
    return log.say("text.completed", item_id="m1", text="One. Two. Three.", **more).envelopes


@pytest.mark.parametrize("channel", ["answer", "reasoning", "refusal"])
def test_a_text_that_goes_on_after_it_was_complete_goes_on_in_messages_that_are_opened_once(channel: str) -> None:
    log = two_parts(channel)
    parts = list(streamed(log))
    for start in range(len(log) + 1):
        first, *rest = streamed(log, start)
        events = flat([first, *rest])
        assert "".join(seen(events).texts.values()) == "One. Two. Three."
        opened = [event["messageId"] for event in events if event["type"].endswith("MESSAGE_START")]
        assert len(opened) == len(set(opened))
        assert rest == parts[start + 1 :]


def test_whoever_has_pieces_of_a_text_and_comes_back_has_it_once() -> None:
    log = two_parts()
    for had in range(len(log) + 1):
        texts = seen(flat(streamed(log[:had]))).texts
        history = [{"id": name, "role": "assistant", "content": text} for name, text in texts.items()]
        for start in range(had, len(log) + 1):
            screen = seen(flat(streamed(log, start, history)), Screen(history))
            assert "".join(screen.texts.values()) == "One. Two. Three."


def test_a_text_that_replaces_what_was_streamed_stands_in_the_metadata_and_is_never_doubled() -> None:
    log = (
        Log()
        .start()
        .say("text.delta", item_id="m1", index=0, text="Hallo")
        .say("text.completed", item_id="m1", text="Hello")
    )
    events = flat(streamed(log.envelopes))
    assert seen(events).texts == {f"{RUN}:m1": "Hallo"}
    assert events[-1]["metadata"] == {"agents-progress": {"text": "Hello"}}
    assert seen(flat(streamed(log.envelopes, 3))).texts == {f"{RUN}:m1": "Hello"}
