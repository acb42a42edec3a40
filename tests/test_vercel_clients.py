"""The stored streams at the AI SDK itself: every part fits the schemas of its oldest and newest releases, and its own
chat shows what the tests compute.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agents_progress.bridges.base import Answered, Event
from agents_progress.bridges.vercel import Vercel
from agents_progress.bridges.vercel_parts import Major
from agents_progress.bridges.vercel_stream import VercelStream
from agents_progress.view import RunView
from tests.browser.node import needs_node, node
from tests.logs import RUN, Log
from tests.test_vercel_body import chat
from tests.vercel_logs import (
    C1,
    DIGEST,
    MAJORS,
    SITUATIONS,
    WAITED,
    Situation,
    answered,
    asked,
    begin,
    called,
    choosing,
    say,
    two_runs,
    viewed,
    written,
)
from tests.vercel_seen import Seen, overclaims, seen

DRIVERS = Path(__file__).parent / "vercel"
FOLDER = Path(os.environ.get("BRIDGES", Path(sys.prefix, "bridges")))
"""Where .ci/browser puts the packages of npm."""
RELEASES: dict[Major, tuple[str, ...]] = {6: ("ai-6.0.0", "ai-6"), 7: ("ai-7.0.0", "ai-7")}

pytestmark = needs_node
each_major = pytest.mark.parametrize("major", MAJORS)
each_release = pytest.mark.parametrize(
    ("major", "name"), [(major, name) for major, names in RELEASES.items() for name in names]
)


def release(name: str) -> Path:
    if not (FOLDER / name / "node_modules" / "ai").is_dir():
        pytest.skip(f"{name} is not installed; .ci/browser installs it")
    return FOLDER / name


@cache
def played(name: str, cases: str) -> list[dict[str, Any]]:
    with tempfile.NamedTemporaryFile("w", suffix=".jsonl", encoding="utf-8") as file:
        file.write(cases)
        file.flush()
        printed = node(str(DRIVERS / "stored.mjs"), str(release(name)), file.name)
    return [json.loads(line) for line in printed.splitlines()]


def play(major: Major, cases: Sequence[dict[str, Any]], name: str | None = None) -> list[dict[str, Any]]:
    """What the chat of a major, by default of its newest release, shows after each case; see the driver."""
    answers = played(name or RELEASES[major][-1], "".join(f"{json.dumps(case)}\n" for case in cases))
    assert len(answers) == len(cases)
    return answers


def computed(shown: Seen) -> dict[str, Any]:
    status = "error" if shown.error is not None else "ready"
    asked = [name for name, call_id in shown.asked.items() if [call_id, "approval-requested"] in shown.calls]
    return {
        "status": status,
        "error": shown.error,
        "message": shown.message,
        "texts": [text for name, text in shown.texts if not name.endswith("/reasoning")],
        "calls": shown.calls,
        "order": [["text", *rest[1:]] if kind == "text" else [kind, *rest] for kind, *rest in shown.parts],
        "asked": asked,
        "words": shown.in_words,
        "run": shown.run,
        "sees": shown.sees(),
    }


@each_release
def test_every_part_fits_the_schema_of_the_releases_of_its_major(major: Major, name: str, tmp_path: Path) -> None:
    file, unknown = tmp_path / "parts.jsonl", '{"type":"unheard-of"}\n'
    file.write_text("".join(written(each.stream(major)) for each in SITUATIONS) + unknown, encoding="utf-8")
    assert node(str(DRIVERS / "schema.mjs"), str(release(name)), str(file)) == unknown


@each_release
def test_the_chat_of_each_release_shows_of_every_situation_what_is_computed(major: Major, name: str) -> None:
    situations = [each for each in SITUATIONS if not each.earlier]
    answers = play(major, [{"streams": [each.stream(major)]} for each in situations], name)
    for situation, answer in zip(situations, answers, strict=True):
        expected = computed(seen(situation.stream(major)))
        assert (situation.name, {name: answer[name] for name in expected}) == (situation.name, expected)
        assert answer["messages"] == ["user", "assistant"]
        assert answer["writing"] == 0


@each_major
def test_what_a_user_of_each_major_sees_is_success_exactly_where_our_view_says_done(
    major: Major, tmp_path: Path
) -> None:
    situations = [each for each in SITUATIONS if not each.earlier]
    answers = play(major, [{"streams": [each.stream(major)]} for each in situations])
    seen_as_success = {
        each.name for each, answer in zip(situations, answers, strict=True) if answer["sees"] == "success"
    }
    assert seen_as_success == {each.name for each in situations if each.view().status == "done"} - {"corrected"}


@each_major
@pytest.mark.parametrize("decision", ["approved", "rejected"])
def test_the_answer_of_a_chat_goes_on_in_its_message_and_asks_no_second_time(major: Major, decision: str) -> None:
    first = Situation("paused", asked(say(begin(), "Let me see.")).end("paused").envelopes, "waiting")
    second = Situation("answered", answered(decision).end().check().envelopes, "done", earlier=WAITED)
    case = {"streams": [first.stream(major), second.stream(major)], "approved": decision == "approved"}
    (answer,) = play(major, [case])
    state = "output-available" if decision == "approved" else "output-denied"
    assert (answer["messages"], answer["calls"], answer["sees"]) == (["user", "assistant"], [[C1, state]], "success")
    assert answer["texts"] == ["Let me see.", second.view().text]
    assert [call["body"]["messageId"] if call["body"].get("messageId") else None for call in answer["sent"]] == [
        None,
        "task-1",
    ]


PAUSED = asked(say(begin(), "Let me see."), kind="clarification").end("paused").envelopes
FOR_WORDS = Situation("paused", PAUSED, "waiting")


@each_release
@pytest.mark.parametrize("decision", ["approved", "rejected"])
def test_what_a_user_says_is_sent_and_gives_way_to_what_the_call_returned(
    major: Major, name: str, decision: str
) -> None:
    second = Situation("", answered(decision, "clarification").end().check().envelopes, "done", earlier=WAITED)
    case = {"streams": [FOR_WORDS.stream(major), second.stream(major)], "approved": decision == "approved"}
    (answer,) = play(major, [{**case, "said": "The blue one"}], name)
    assert (answer["before"], answer["sees"], answer["error"]) == (["question"], "success", None)
    state = "output-available" if decision == "approved" else "output-denied"
    assert (answer["calls"], answer["words"]) == ([[C1, state]], [])
    assert answer["texts"] == ["Let me see.", second.view().text]
    (given,) = Vercel(chat, major=major).asked(answer["sent"][1]["body"]).answers
    said = {"text": "The blue one"} if decision == "approved" else {"reason": "The blue one"}
    assert given == Answered(f"{RUN}/ask-1/{DIGEST}", "approved" if decision == "approved" else "rejected", **said)


@each_release
def test_what_a_user_said_is_no_success_while_it_is_refused_and_can_be_said_anew(major: Major, name: str) -> None:
    second = Situation("", answered("approved", "clarification").end().check().envelopes, "done", earlier=WAITED)
    refused, again = [FOR_WORDS.stream(major), None], [FOR_WORDS.stream(major), None, second.stream(major)]
    stays, goes_on = play(major, [{"streams": refused}, {"streams": again}], name)
    assert (stays["sees"], stays["calls"], stays["words"]) == ("error", [[C1, "output-available"]], [C1])
    assert (goes_on["before"], goes_on["sees"]) == (["question", "error"], "success")


@each_release
def test_what_a_user_says_is_for_the_call_that_asks_though_an_earlier_run_had_one_of_the_same_id(
    major: Major, name: str
) -> None:
    """The newest releases look for a call by its id in the whole chat, and take the first."""
    earlier = Situation("", called(Log("run-B").start(task_id="task-0")).envelopes, "running").stream(major)
    told = next(event["toolCallId"] for event in earlier if "toolCallId" in event)
    part = {"type": "dynamic-tool", "toolName": "look", "toolCallId": told, "input": {}}
    done = {**part, "state": "output-available", "output": "2 items"}
    held = [
        {"id": "u0", "role": "user", "parts": [{"type": "text", "text": "?"}]},
        {"id": "task-0", "role": "assistant", "parts": [done]},
    ]
    second = Situation("", answered("approved", "clarification").end().check().envelopes, "done", earlier=WAITED)
    (answer,) = play(major, [{"streams": [FOR_WORDS.stream(major), second.stream(major)], "held": held}], name)
    assert (answer["sees"], answer["calls"]) == ("success", [[C1, "output-available"]])
    assert answer["sent"][1]["body"]["messages"][1]["parts"] == [done]


@each_release
def test_questions_of_both_kinds_are_sent_together_once_all_are_answered(major: Major, name: str) -> None:
    first = Situation("", choosing(asked(begin()), "c2").end("paused").envelopes, "waiting")
    second = answered("approved")
    choosing(second, "c2").say("approval.resolved", interaction_id="ask-2", decision="approved")
    log = second.say("tool.finished", call_id="c2").end().check().envelopes
    streams = [first.stream(major), Situation("", log, "done", earlier=first.envelopes).stream(major)]
    (answer,) = play(major, [{"streams": streams}], name)
    assert (len(answer["sent"]), answer["sees"]) == (2, "success")
    given = Vercel(chat, major=major).asked(answer["sent"][1]["body"]).answers
    assert [(each.interaction.split("/")[1], each.text) for each in given] == [("ask-1", None), ("ask-2", "cup")]


@each_release
def test_a_chat_sends_nothing_by_itself_that_answers_nothing_which_the_rules_of_the_sdk_do(
    major: Major, name: str
) -> None:
    """Why the docs name a rule of ours: a run whose last step is a call is over, and theirs send its message."""
    ended = next(each for each in SITUATIONS if each.name == "tool_output_is_answer").stream(major)
    ours, theirs = play(major, [{"streams": [ended], "rule": rule} for rule in ("ours", "theirs")], name)
    assert (ours["sees"], len(ours["sent"])) == ("success", 1)
    assert (theirs["sees"], len(theirs["sent"])) == ("error", 2)


@each_major
def test_a_chat_that_was_reloaded_sees_all_of_a_task_once(major: Major) -> None:
    first = viewed(asked(say(begin(), "Let me see.")).end("paused").envelopes)
    log = answered("approved").end().check().envelopes
    held = [
        {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "?"}]},
        {"id": "task-1", "role": "assistant", "parts": [{"type": "text", "text": "Let me"}]},
    ]
    cases = []
    for cut in range(1, len(log) + 1):
        stream = VercelStream(major)
        events: list[Event] = stream.join(viewed(log[:cut]), [first])
        for step in log[cut:]:
            events += stream.feed(step)
        cases.append({"streams": [events], "resumes": True, "held": held})
    for answer in play(major, cases):
        assert (answer["messages"], answer["sees"], answer["run"]) == (["user", "assistant"], "success", "done")
        assert (answer["texts"], answer["calls"]) == (["Let me see.", viewed(log).text], [[C1, "output-available"]])


@each_major
def test_a_chat_that_was_reloaded_shows_texts_and_calls_as_one_that_was_there(major: Major) -> None:
    first, second = two_runs("approved")
    paused, answer = Situation("paused", first, "waiting"), Situation("answered", second, "done", earlier=first)
    cases: list[dict[str, Any]] = [{"streams": [paused.stream(major), answer.stream(major)]}]
    for cut in range(1, len(second) + 1):
        stream = VercelStream(major)
        events: list[Event] = stream.join(viewed(second[:cut]), [viewed(first)])
        for step in second[cut:]:
            events += stream.feed(step)
        cases.append({"streams": [events], "resumes": True})
    there, *reloaded = play(major, cases)
    kinds = [kind for kind, *_ in there["order"]]
    assert kinds == "step text call step text call step text call step text".split()
    assert [each["order"] for each in reloaded] == [there["order"]] * len(second)


@each_major
@pytest.mark.parametrize("ending", [[], [{"type": "abort"}], [{"type": "finish", "finishReason": "length"}]])
def test_an_end_that_a_naive_bridge_would_send_is_read_as_success_and_the_check_finds_it(
    major: Major, ending: list[Event]
) -> None:
    """Why success is held back, and why a front end reads our streams through a wrapper that looks for their end."""
    log = say(begin(), ends=False)
    stream = VercelStream(major)
    stream.join(RunView("run-A"))
    events = [*(event for step in log.envelopes for event in stream.feed(step)), *ending]
    view = viewed(log.end("incomplete", reason="max_tokens").envelopes)
    (answer,) = play(major, [{"streams": [events]}])
    assert (answer["sees"], overclaims(seen(events), view)) == ("success", True)
