"""Tool calls: one row a call, whatever the model does to its ids and whichever report comes first."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_progress.disclosure import Draft
from agents_progress.events import parse
from agents_progress.sdk.calls import Calls
from agents_progress.view import RunView
from tests.logs import RUN, envelope


class Ticker:
    """A monotonic clock that is moved by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def calls(hooked: bool = True, clock: Ticker | None = None) -> Calls:
    return Calls(clock or Ticker(), str.title, hooked)


def function(call_id: str | None = "c1", name: str = "look", arguments: str = "{}") -> Any:
    return SimpleNamespace(type="function_call", call_id=call_id, id="i1", name=name, arguments=arguments)


def story(drafts: list[Draft]) -> list[str]:
    """`type call_id` of each draft."""
    return [f"{type_.removeprefix('tool.')} {payload['call_id']}" for type_, payload in drafts]


def shown(drafts: list[Draft]) -> RunView:
    """The drafts as a reader sees them after they went through JSON."""
    view = RunView(RUN)
    for seq, (type_, payload) in enumerate(drafts, start=1):
        step = envelope(seq, type_, payload)
        parse(step.to_json())
        view.feed(step.to_json())
    return view


# The usual order, and hooks that run ahead.


def test_an_ordinary_call_is_requested_started_and_finished_once() -> None:
    book = calls()
    book.seen_raw(function())
    left = [*book.claimed(function()), *book.started("c1", "look"), *book.returned("c1", "out", from_hook=True)]
    left += book.returned("c1", "out", from_hook=False)
    assert story(left) == ["requested c1", "started c1", "finished c1"]
    assert left[0][1] == {"call_id": "c1", "name": "look", "kind": "function", "title": "Look", "arguments": "{}"}
    assert shown(left).tools == {"c1": "returned"}
    assert book.book == []


STEPS = {
    "raw": lambda book: book.seen_raw(function()) or (),
    "item": lambda book: book.claimed(function()),
    "start": lambda book: book.started("c1", "look", "{}"),
    "end": lambda book: book.returned("c1", "out", from_hook=True),
    "late": lambda book: book.returned("c1", "out", from_hook=False),
}
ORDERS = [
    ["raw", "item", "start", "end", "late"],
    ["raw", "start", "item", "end", "late"],
    ["raw", "start", "end", "item", "late"],
    ["start", "end", "raw", "item", "late"],
    ["start", "raw", "end", "item", "late"],
    ["start", "raw", "item", "end", "late"],
]


@pytest.mark.parametrize("order", ORDERS, ids="-".join)
def test_hooks_that_run_ahead_of_the_items_make_no_second_row(order: list[str]) -> None:
    book = calls()
    left = [draft for step in order for draft in STEPS[step](book)]
    left += book.run_ended("succeeded")
    assert story(left) == ["requested c1", "started c1", "finished c1"]
    assert shown(left).issues == []
    assert book.book == []


def test_without_hooks_no_start_is_claimed_and_no_duration() -> None:
    book = calls(hooked=False)
    book.seen_raw(function())
    left = [*book.claimed(function()), *book.returned("c1", "out", from_hook=False)]
    assert story(left) == ["requested c1", "finished c1"]
    assert "duration_ms" not in left[-1][1]


def test_a_duration_is_measured_between_the_hooks_of_its_own_call() -> None:  # TOOL-7
    clock = Ticker()
    book = calls(clock=clock)
    left = [*book.started("slow", "slow"), *book.started("fast", "fast")]
    clock.now += 0.05
    left += book.returned("fast", "f", from_hook=True)
    clock.now += 0.45
    left += book.returned("slow", "s", from_hook=True)
    left += [*book.returned("slow", "s", from_hook=False), *book.returned("fast", "f", from_hook=False)]
    assert [(p["call_id"], p["duration_ms"]) for t, p in left if t == "tool.finished"] == [("fast", 50), ("slow", 500)]


def test_a_duration_is_never_negative() -> None:  # ORD-1
    clock = Ticker()
    book = calls(clock=clock)
    list(book.started("c1", "look"))
    clock.now -= 50
    assert next(iter(book.returned("c1", "x", from_hook=True)))[1]["duration_ms"] == 0


# Ids that are repeated or missing.


@pytest.mark.parametrize("raw_id", ["c1", "", None, "é", "x" * 200])
def test_calls_that_share_an_id_are_two_rows_that_were_not_run(raw_id: str | None) -> None:  # TOOL-1, TOOL-3
    book = calls()
    for arguments in ('{"a":1}', '{"a":2}'):
        book.seen_raw(function(raw_id, arguments=arguments))
    left = list(book.run_ended("failed"))
    view = shown(left)
    assert list(view.tools.values()) == ["skipped", "skipped"]
    assert "" not in view.tools
    assert [row.arguments for row in view.activities] == ['{"a":1}', '{"a":2}']
    assert view.issues == []


@pytest.mark.parametrize("raw_id", ["c1", "", None])
def test_calls_that_share_an_id_run_and_return_one_by_one(raw_id: str | None) -> None:
    book = calls()
    for _ in range(2):
        book.seen_raw(function(raw_id))
    left: list[Draft] = []
    for _ in range(2):
        left += book.claimed(function(raw_id))
    for _ in range(2):
        left += book.started(raw_id, "look")
    for _ in range(2):
        left += book.returned(raw_id, "out", from_hook=True)
    view = shown(left)
    assert (len(view.tools), set(view.tools.values()), view.issues) == (2, {"returned"}, [])


def test_an_id_that_a_later_response_repeats_is_a_new_row() -> None:
    book = calls()
    left: list[Draft] = []
    for _ in range(3):
        left += [draft for step in ORDERS[0] for draft in STEPS[step](book)]
    assert shown(left).tools == {"c1": "returned", "c1#2": "returned", "c1#3": "returned"}
    assert book.book == []


def test_a_models_own_id_never_collides_with_a_counted_one() -> None:
    book = calls()
    for raw_id in ("call-1", "", "call-2", None):
        book.seen_raw(function(raw_id))
    view = shown(list(book.run_ended("failed")))
    assert (len(view.tools), view.issues) == (4, [])


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.sampled_from(["c1", "c2", "", None, "é"])), max_size=25))
def test_no_order_of_reports_makes_a_log_that_contradicts_itself(reports: list[tuple[str, str | None]]) -> None:
    book = calls()
    left: list[Draft] = []
    for what, raw_id in reports:
        if what == "raw":
            book.seen_raw(function(raw_id))
        elif what == "item":
            left += book.claimed(function(raw_id))
        elif what == "start":
            left += book.started(raw_id, "look")
        else:
            left += book.returned(raw_id, "out", from_hook=what == "end")
    left += book.run_ended("failed")
    assert shown(left).issues == []


# What was never run, refused, or handed off.


@pytest.mark.parametrize("kind", ["failed", "cancelled", "incomplete", "succeeded"])
def test_a_call_that_never_started_is_closed_as_not_run(kind: str) -> None:
    book = calls()
    book.seen_raw(function("raw"))
    book.seen_raw(function("item"))
    left = [*book.claimed(function("item")), *book.started("run", "look"), *book.run_ended(kind)]
    assert shown(left).tools == {"item": "skipped", "run": "running", "raw": "skipped"}
    assert {payload["reason"] for type_, payload in left if type_ == "tool.skipped"} == {"not_run"}


def test_a_paused_run_leaves_its_pending_calls_requested() -> None:
    book = calls()
    left = [*book.claimed(function("d1")), *book.run_ended("paused")]
    assert shown(left).tools == {"d1": "requested"}
    assert [call.call_id for call in book.book] == ["d1"]


def test_a_continuing_run_restates_the_pending_calls_under_their_ids() -> None:
    before = calls()
    left = [*before.claimed(function("d1", "pay", '{"n":1}')), *before.claimed(function("", "pay"))]
    left += before.run_ended("paused")
    again = calls()
    restated = list(again.restate(before.book))
    assert [payload for _, payload in restated] == [payload for type_, payload in left if type_ == "tool.requested"]
    assert story(list(before.restated(before.book))) == story(restated)
    restated += [*again.started("d1", "pay"), *again.returned("d1", "ok", from_hook=True)]
    restated += again.claimed(function("d1", "pay"))
    view = shown([*restated, *again.run_ended("cancelled")])
    assert (list(view.tools.values()), view.issues) == (["returned", "skipped", "skipped"], [])


def test_a_refused_call_is_rejected_and_not_finished() -> None:
    book = calls()
    left = list(book.claimed(function("d1")))
    book.rejected.add("d1")
    left += book.returned("d1", "Tool execution was not approved.", from_hook=False)
    assert story(left) == ["requested d1", "rejected d1"]
    assert "output" not in left[-1][1]


@pytest.mark.parametrize("order", [["raw", "off", "item", "late"], ["raw", "off", "late"]])
def test_a_handoff_is_never_a_row(order: list[str]) -> None:  # HAND-3
    book = calls()
    steps = {**STEPS, "off": lambda book: book.handed_off("c1") or ()}
    left = [draft for step in order for draft in steps[step](book)]
    assert [*left, *book.run_ended("succeeded")] == []


def test_an_output_of_a_call_nobody_made_says_nothing() -> None:
    assert list(calls().returned("c9", "x", from_hook=False)) == []


# Foreign content.


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("a\x00b", "a\x00b"),
        ("\ud800", "\ufffd"),
        (float("nan"), "nan"),
        (None, "None"),
        (True, "True"),
        (3, "3"),
    ],
)
def test_a_plain_output_is_its_text(output: object, text: str) -> None:  # TXT-2
    book = calls()
    left = [*book.started("c1", "look"), *book.returned("c1", output, from_hook=True)]
    assert left[-1][1]["output"] == text
    shown(left)


class Explosive:
    def __str__(self) -> str:
        raise RuntimeError("no")

    __repr__ = __str__


@pytest.mark.parametrize(
    "output", [b"\xff\x00secret", Explosive(), {"secret": 1}, ["secret"], SimpleNamespace(url="data:secret")]
)
def test_an_output_that_is_no_text_is_described_and_never_quoted(output: object) -> None:
    book = calls()
    left = [*book.started("c1", "look"), *book.returned("c1", output, from_hook=True)]
    assert type(output).__name__ in left[-1][1]["output"]
    assert "secret" not in left[-1][1]["output"]
    shown(left)


@pytest.mark.parametrize("name", ["n" * 10_000, "\ud800", "", "a b\n", "巡检"])
def test_a_name_of_any_form_fits_the_protocol(name: str) -> None:
    book = calls()
    book.seen_raw(function(name=name, arguments="\udfff{"))
    shown(list(book.run_ended("failed")))


def test_a_call_of_any_shape_is_taken() -> None:
    for raw in ({}, SimpleNamespace(), {"type": "brand_new_call"}, {"call_id": 3, "name": 7, "arguments": {"a": 1}}):
        book = calls()
        book.seen_raw(raw)
        shown([*book.claimed(raw), *book.run_ended("failed")])
