"""What an assertion about a run says when it fails: each difference, and the evidence behind what the run shows."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from agents import Agent, function_tool
from staging import log_of, scripted, started

from agents_progress import RunView
from agents_progress.testing import (
    NotOver,
    Played,
    approve,
    assert_ending,
    assert_view,
    call,
    http_error,
    incomplete,
    run_script,
    text,
    turn,
    wait,
)
from agents_progress.verify import matches


@function_tool
def look(what: str) -> str:
    return "seen"


@function_tool(needs_approval=True)
def refund(eur: int) -> str:
    return "refunded"


clerk = Agent("Clerk", tools=[look, refund])

SCRIPTS: dict[str, list[Any]] = {
    "answers": [
        turn(call("look", {"what": "a"}, call_id="c1"), call("look", {"what": "b"}, call_id="c2")),
        turn(text("Two things.\nBoth seen.")),
    ],
    "fails": [http_error(500, "no luck")],
    "stops": [turn(text("Half of "), incomplete())],
    "asks": [turn(call("refund", {"eur": 5}))],
}


@pytest.fixture(scope="module")
def runs() -> dict[str, Played]:
    """Each script as it was played; an assertion changes nothing."""
    check = matches(r"Two things\.\nBoth seen\.")
    return {name: run_script(clerk, script, "hi", verify=check) for name, script in SCRIPTS.items()}


HOLDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "answers": (
        {"kind": "succeeded", "output": "Two things.\nBoth seen.", "accepted": True},
        {
            "status": "done",
            "message": "Done: the run ended and the check passed",
            "text": re.compile(r"Two .*\n.* seen\."),
            "agent": "Clerk",
            "tools": {"look": ["returned", "returned"]},
            "asks": [],
        },
    ),
    "fails": ({"kind": "failed", "code": "server_error", "accepted": False, "output": None}, {"text": "", "tools": {}}),
    "stops": (
        {"kind": "incomplete", "reason": "max_output_tokens"},
        {"status": "incomplete", "text": "Half of "},
    ),
    "asks": ({"kind": "paused", "code": None, "reason": None}, {"asks": ["refund"], "tools": {"refund": "requested"}}),
}


@pytest.mark.parametrize("name", HOLDS)
def test_what_is_so_is_not_complained_about(name: str, runs: dict[str, Played]) -> None:
    ending, view = HOLDS[name]
    assert_ending(runs[name], ending["kind"], **{key: ending[key] for key in ending if key != "kind"})
    assert_view(runs[name], **view)
    assert_view(runs[name].view, **view)


ENDINGS: list[tuple[str, str, dict[str, Any], list[str]]] = [
    ("answers", "failed", {}, ['outcome: expected "failed", found "succeeded"']),
    ("answers", "failed", {"code": "bad"}, ['code: expected "bad", found none']),
    ("answers", "succeeded", {"output": "Two"}, [r'output: expected "Two", found "Two things.\nBoth seen."']),
    ("answers", "succeeded", {"output": re.compile("Two")}, ["output: expected a match of 'Two', found"]),
    ("answers", "succeeded", {"output": 2}, ["output: expected 2, found"]),
    ("answers", "succeeded", {"accepted": False}, ["accepted: expected no, found yes"]),
    ("answers", "succeeded", {"output": None}, ["output: expected none, found"]),
    (
        "fails",
        "succeeded",
        {},
        ["raised: InternalServerError: Error code: 500", "raised               other  <- decided"],
    ),
    ("stops", "incomplete", {"reason": "max_turns"}, ['reason: expected "max_turns", found "max_output_tokens"']),
    ("asks", "succeeded", {}, ["interrupted          true  <- decided", "waits for an answer: Refund"]),
]


@pytest.mark.parametrize(("name", "kind", "stated", "said"), ENDINGS)
def test_another_ending_is_told_with_its_evidence(
    name: str, kind: Any, stated: Any, said: list[str], runs: dict[str, Played]
) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_ending(runs[name], kind, **stated)
    assert str(caught.value).startswith("the run ended differently:\n  ")
    for row in said:
        assert row in str(caught.value)


VIEWS: list[tuple[str, dict[str, Any], list[str]]] = [
    ("answers", {"status": "rejected"}, ['status: expected "rejected", found "done"', "| Done: the run ended"]),
    ("answers", {"message": "Done"}, ['message: expected "Done", found "Done: the run']),
    ("answers", {"agent": "Boss"}, ['agent: expected "Boss", found "Clerk"']),
    ("answers", {"text": "Two things.\nBoth lost."}, ["  text:", "- Both lost.", "+ Both seen."]),
    ("answers", {"text": re.compile("Two")}, ["text: expected a match of 'Two', found"]),
    ("answers", {"tools": {}}, ["tool look: expected none, found returned, returned"]),
    ("answers", {"tools": {"look": "returned"}}, ["tool look: expected returned, found returned, returned"]),
    ("answers", {"tools": {"c1": "failed", "c2": "returned"}}, ["tool c1: expected failed, found returned"]),
    ("answers", {"tools": {"c1": "returned"}}, ["tool look: expected none, found returned"]),
    ("answers", {"tools": {"look": ["returned"] * 2, "pay": "returned"}}, ["tool pay: expected returned, found none"]),
    ("asks", {"asks": []}, ["asks: expected none, found refund", "? Waiting for an answer: Refund"]),
    ("fails", {"status": "done"}, ["raised: InternalServerError"]),
]


@pytest.mark.parametrize(("name", "stated", "said"), VIEWS)
def test_another_view_is_told_with_what_a_person_sees(
    name: str, stated: Any, said: list[str], runs: dict[str, Played]
) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_view(runs[name], **stated)
    assert str(caught.value).startswith("the run looks different:\n  ")
    for row in said:
        assert row in str(caught.value)


def test_a_script_that_was_not_played_is_named_beside_the_differences() -> None:
    found = run_script(clerk, [turn(call("look", {"what": "a"}))], "hi")
    with pytest.raises(AssertionError, match="script: The script has 1 turn, and this is request 2") as caught:
        assert_ending(found, "succeeded")
    assert 'outcome: expected "succeeded", found "failed"' in str(caught.value)
    with pytest.raises(AssertionError, match="script: 1 turn of the script not asked for; 1 played"):
        assert_view(run_script(clerk, [turn(text("a")), turn(text("b"))], "hi"), text="b")


def test_a_view_that_contradicts_itself_says_how() -> None:
    view = RunView("r")
    view.feed(b"{}")
    with pytest.raises(AssertionError, match="issues: bad_envelope"):
        assert_view(view, status="running")


async def test_a_run_is_taken_as_it_is_and_one_without_an_ending_has_none() -> None:
    run = started(scripted(turn(text("5 ", gate := wait(asyncio.Event()), "EUR"))))
    with pytest.raises(NotOver, match=r"has no ending yet; await it first"):
        assert_ending(run, "succeeded")
    gate.event.set()
    await log_of(run)
    assert_ending(run, "succeeded", output="5 EUR", accepted=False)
    assert_view(run, status="checking", text="5 EUR")


def test_control_characters_of_a_model_do_not_reach_the_terminal() -> None:
    found = run_script(clerk, [turn(text("\x1b[2Jgone"))], "\x1b", verify=lambda output: False)
    with pytest.raises(AssertionError) as caught:
        assert_view(found, text="here")
    with pytest.raises(AssertionError) as told:
        assert_ending(found, "succeeded", output="here")
    assert "\x1b" not in f"{caught.value}{told.value}"


def test_the_view_of_a_task_is_that_of_its_newest_run() -> None:
    found = run_script(clerk, [*SCRIPTS["asks"], approve(), turn(text("Refunded."))], "hi")
    assert_view(found, status="checking", text="Refunded.", asks=[], tools={"refund": "returned"})
    assert repr(found).startswith("<Played run-1.2 checking, ")
