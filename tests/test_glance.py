"""What a list shows of a run: the fold, its bound, and that Python and the browser read a cost alike."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents_progress.glance import KEPT, UPDATES, Glance
from agents_progress.journal.facts import TELLING, Facts, stored_facts
from agents_progress.payloads import PAYLOADS
from agents_progress.testing.contract.logs import Log
from agents_progress.view import RunView
from tests.browser.node import driven, needs_node

COUNTS = {
    **dict.fromkeys(("requests", "input_tokens", "output_tokens", "total_tokens", "cached_tokens"), 1),
    "reasoning_tokens": None,
    "status": "reported",
}


def seen(log: Log) -> Glance:
    glance = Glance()
    glance.observe_all(log.envelopes)
    return glance


def test_every_type_that_opens_or_settles_a_call_or_a_stage_is_folded() -> None:
    rows = {type_ for type_ in PAYLOADS if type_.startswith(("tool.", "stage.")) and "arguments" not in type_}
    assert rows - {"tool.progress"} <= UPDATES.keys() < TELLING
    assert not TELLING & {"text.delta", "text.completed", "tool.progress", "tool.arguments.delta", "model.started"}


def test_a_call_that_runs_comes_before_one_that_was_requested_and_both_before_a_stage() -> None:
    log = Log().start().say("stage.started", stage_id="s", title="Stage")
    assert seen(log).activity == "Stage"
    log.request("c1", title="First").request("c2", title="Second")
    assert seen(log).activity == "First"
    assert seen(log.say("tool.started", call_id="c2")).activity == "Second"
    assert seen(log.say("tool.skipped", call_id="c2", reason="x")).activity == "First"
    assert seen(log.say("tool.finished", call_id="c1")).activity == "Stage"


def test_a_call_stands_back_for_those_inside_it_however_deep() -> None:
    log = Log().start().request("c1", title="Outer").say("tool.started", call_id="c1")
    log.request("c1/c1", title="Middle").say("tool.started", call_id="c1/c1").request("c1/c1/c9", title="Inner")
    assert seen(log).activity == "Inner"
    assert seen(log.request("c10", title="Beside").say("tool.started", call_id="c10")).activity == "Beside"
    log.say("tool.finished", call_id="c10").say("tool.finished", call_id="c1/c1/c9")
    assert seen(log).activity == "Middle"


def test_ten_thousand_open_calls_and_stages_leave_a_small_glance_that_says_nothing_wrong() -> None:
    log = Log().start()
    for number in range(10_000):
        log.request(f"c{number}", title=f"Call {number}").say("stage.started", stage_id=f"s{number}", title="Stage")
        if number % 2:
            log.say("tool.started", call_id=f"c{number}")
    glance = seen(log)
    assert len(glance.requested) + len(glance.running) == len(glance.stages) == KEPT
    assert glance.activity == "Call 1"
    for number in range(KEPT):
        log.say("tool.finished", call_id=f"c{number}").say("stage.completed", stage_id=f"s{number}")
    assert seen(log) == Glance()
    assert seen(log.request("late", title="Late")).activity == "Late"


def test_facts_that_nothing_changes_are_the_same_object() -> None:
    facts = Facts().after(Log().start().envelopes)
    assert facts.after(Log().say("text.delta", item_id="m", index=0, text="x").envelopes) is facts
    after = facts.after(Log().request().envelopes)
    assert (facts.glance, after.glance) == (Glance(), Glance(requested={"c1": "look"}))


def test_a_glance_is_known_only_as_far_as_the_log_and_in_a_form_that_is_known() -> None:
    facts = Facts().after(Log().start().request().say("usage.updated", **COUNTS).envelopes)
    stored = facts.standing_text, facts.glance_text
    assert stored_facts(3, *stored, 3) == facts
    assert stored_facts(4, *stored, 3).glance is None
    assert stored_facts(3, stored[0], '{"work": []}', 3).glance is None
    assert stored_facts(3, stored[0], None, 3).after(Log().request().envelopes).glance is None
    assert stored_facts(0, None, None, None) == Facts()


COST = {"amount": "0.0123", "currency": "USD", "at_least": False}
READ: list[tuple[Any, bool]] = [
    ({"cost": COST}, True),
    ({"cost": {**COST, "more": 1}}, True),
    ({"cost": {**COST, "at_least": True, "amount": "12"}}, True),
    ({}, False),
    ({"cost": None}, False),
    ({"cost": []}, False),
    *(({"cost": {**COST, "amount": amount}}, False) for amount in (1, "-1", "1e5", "1\n", "\u0661", "1.", "", None)),
    *(({"cost": {**COST, "currency": currency}}, False) for currency in ("usd", "USDT", "<b>", "USD\n", None)),
    *(({"cost": {**COST, "at_least": at_least}}, False) for at_least in (1, "no", None)),
]


@pytest.mark.parametrize(("x", "readable"), READ)
def test_a_view_reads_a_cost_or_none(x: Any, readable: bool) -> None:
    view = RunView("r")
    for envelope in Log("r").start().say("usage.updated", **COUNTS, x=x).envelopes:
        view.feed(envelope.to_json())
    assert view.issues == []
    assert view.usage == {**COUNTS, "x": x}
    assert (view.cost is not None) == readable


@needs_node
def test_a_browser_reads_every_cost_as_python_does(tmp_path: Path) -> None:
    logs = [Log("r").start().say("usage.updated", **COUNTS, x=x).envelopes for x, _ in READ]
    asked = [
        {"run_id": "r", "language": "en", "cut": 0, "feeds": [{"text": step.to_json().decode()} for step in log]}
        for log in logs
    ]
    for log, answer in zip(logs, driven("view.mjs", asked, tmp_path), strict=True):
        view = RunView("r")
        for step in log:
            view.feed(step)
        assert answer["shown"]["cost"] == view.cost
