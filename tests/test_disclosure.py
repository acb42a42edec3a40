"""What may leave the process: closed by default, opened by name, and masked however a secret is split."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_progress.disclosure import CUT, Disclosure, Draft, Screen
from agents_progress.errors import UsageError
from agents_progress.events import parse, private_fields
from agents_progress.masks import MASKED
from agents_progress.payloads import PAYLOADS
from tests.logs import envelope, logs
from tests.test_events import full

SECRET = "sk-4f9a-77c2"


def passed(disclosure: Disclosure, *drafts: Draft) -> list[Draft]:
    screen = Screen(disclosure)
    left = [draft for type_, payload in drafts for draft in screen.pass_on(type_, payload)]
    return left + list(screen.release())


def told(drafts: list[Draft], item_id: str = "m1", channel: str = "answer") -> str:
    """The text of one item as a reader joins it."""
    return "".join(
        payload["text"]
        for type_, payload in drafts
        if type_ == "text.delta" and payload["item_id"] == item_id and payload.get("channel", "answer") == channel
    )


def delta(text: str, item_id: str = "m1", **more: Any) -> Draft:
    return "text.delta", {"item_id": item_id, "text": text, **more}


def one(disclosure: Disclosure, type_: str, /, **payload: Any) -> dict[str, Any]:
    ((_, left),) = passed(disclosure, (type_, payload))
    return left


# Closed.

CLOSED = [type_ for type_ in PAYLOADS if private_fields(type_)]


def test_the_closed_types_are_those_of_the_design() -> None:
    assert set(CLOSED) == {
        "tool.requested",
        "tool.arguments.delta",
        "tool.arguments.completed",
        "tool.finished",
        "approval.wait",
        "artifact.created",
        "app.checked",
    }


@pytest.mark.parametrize("type_", CLOSED)
def test_everything_private_is_closed_by_default(type_: str) -> None:
    payload = full(type_)
    for name in private_fields(type_):
        payload[name] = SECRET
    left = passed(Disclosure(), (type_, payload))
    assert SECRET not in json.dumps(left)
    if not type_.startswith("tool.arguments."):
        ((_, kept),) = left
        assert kept == {name: value for name, value in payload.items() if name not in private_fields(type_)}
    else:
        assert left == []


@settings(max_examples=80, deadline=None)
@given(logs())
def test_no_private_field_of_any_log_leaves_by_default_and_the_rest_stays_whole(log: list[Any]) -> None:
    left = passed(Disclosure(), *((step.type, step.payload) for step in log))
    assert not any(private_fields(type_) & payload.keys() for type_, payload in left)
    assert not any(payload.get("channel") == "reasoning" for type_, payload in left if type_.startswith("text."))
    expected = [
        (step.type, {name: value for name, value in step.payload.items() if name not in private_fields(step.type)})
        for step in log
        if not step.type.startswith("tool.arguments.")
        and not (step.type.startswith("text.") and step.payload.get("channel") == "reasoning")
    ]
    assert left == expected


def test_reasoning_leaves_only_when_it_was_opened() -> None:
    drafts = (
        delta("hm", channel="reasoning"),
        ("text.completed", {"item_id": "m1", "channel": "reasoning", "text": "hm."}),
    )
    assert passed(Disclosure(), *drafts) == []
    assert passed(Disclosure(mask=["x"]), *drafts) == []
    assert passed(Disclosure(reasoning=True), *drafts) == list(drafts)


def test_closing_a_field_leaves_the_callers_own_object_alone() -> None:
    payload = {"call_id": "c1", "name": "look", "kind": "function", "arguments": SECRET}
    passed(Disclosure(mask=[SECRET]), ("tool.requested", payload))
    assert payload["arguments"] == SECRET


# Opened.


def call(name: str, call_id: str = "c1") -> tuple[Draft, Draft, Draft]:
    return (
        ("tool.requested", {"call_id": call_id, "name": name, "kind": "function", "arguments": "ARGS"}),
        ("tool.arguments.completed", {"call_id": call_id, "arguments": "MORE"}),
        ("tool.finished", {"call_id": call_id, "output": "OUT"}),
    )


def opened(disclosure: Disclosure, name: str) -> set[str]:
    text = json.dumps(passed(disclosure, *call(name)))
    return {word for word in ("ARGS", "MORE", "OUT") if word in text}


def test_arguments_and_outputs_are_opened_by_tool_name() -> None:
    assert opened(Disclosure(arguments={"look"}), "look") == {"ARGS", "MORE"}
    assert opened(Disclosure(outputs=["look"]), "look") == {"OUT"}
    assert opened(Disclosure(arguments={"look"}, outputs={"look"}), "other") == set()
    assert opened(Disclosure(arguments="all", outputs="all"), "other") == {"ARGS", "MORE", "OUT"}


def test_the_output_of_a_call_nobody_requested_stays_closed() -> None:
    assert "OUT" not in json.dumps(passed(Disclosure(outputs={"look"}), call("look")[2]))


def test_a_bare_text_never_opens_a_tool_whose_name_is_part_of_it() -> None:
    try:
        disclosure = Disclosure(arguments="look_up", outputs="look_up")  # type: ignore[arg-type]
    except UsageError:
        return
    assert opened(disclosure, "look") == set()
    assert passed(disclosure, call("look")[2])[0][1] == {"call_id": "c1"}


def test_details_and_reasons_are_opened_by_name() -> None:
    wait = {"interaction_id": "ask-1", "call_id": None, "tool": "pay", "title": "Pay?", "details": "4 EUR"}
    assert "details" not in one(Disclosure(approval_details={"look"}), "approval.wait", **wait)
    assert one(Disclosure(approval_details={"pay"}), "approval.wait", **wait)["details"] == "4 EUR"
    checked = {"digest": "a" * 64, "ok": False, "check": "sum", "reason": "too high"}
    assert "reason" not in one(Disclosure(), "app.checked", **checked)
    assert one(Disclosure(verdict_reasons=True), "app.checked", **checked)["reason"] == "too high"


def test_an_opened_text_is_capped_and_marked() -> None:
    disclosure = Disclosure(arguments="all", outputs="all", max_chars=5)
    assert one(disclosure, "tool.finished", call_id="c", output="12345")["output"] == "12345"
    assert one(disclosure, "tool.finished", call_id="c", output="123456")["output"] == "12345" + CUT


def test_a_secret_across_the_cap_is_masked_before_it_is_cut() -> None:
    disclosure = Disclosure(outputs="all", mask=[SECRET], max_chars=8)
    output = one(disclosure, "tool.finished", call_id="c", output="1234" + SECRET)["output"]
    assert SECRET[:4] not in output


# Masked.


@pytest.mark.parametrize(
    ("type_", "payload"),
    [
        ("run.accepted", {"task_id": "t", "title": SECRET}),
        ("tool.requested", {"call_id": "c", "name": SECRET, "kind": "function", "title": f"of {SECRET}"}),
        ("tool.progress", {"call_id": "c", "message": f"at {SECRET}", "current": 1, "total": None}),
        ("tool.finished", {"call_id": "c", "summary": SECRET}),
        ("tool.failed", {"call_id": "c", "message": SECRET, "code": SECRET}),
        ("stage.started", {"stage_id": "s", "title": SECRET}),
        ("approval.wait", {"interaction_id": "ask-1", "call_id": None, "tool": SECRET, "title": SECRET}),
        ("approval.resolved", {"interaction_id": "ask-1", "decision": "approved", "actor": SECRET}),
        ("source.cited", {"item_id": "m", "kind": "url", "title": SECRET, "url": f"https://x/?k={SECRET}"}),
        ("artifact.created", {"artifact_id": "a", "name": SECRET, "media_type": "text/plain", "bytes": 1}),
        ("handoff.requested", {"from_agent": SECRET, "to_agent": SECRET}),
        ("text.completed", {"item_id": "m", "text": f"a {SECRET} b"}),
        (
            "run.ended",
            {"outcome": "succeeded", "final_output": f"a {SECRET} b", "reason": SECRET, "requested_by": SECRET},
        ),
        (
            "run.ended",
            {"outcome": "failed", "final_output": None, "evidence": {"a": [{"b": SECRET}], "status": SECRET}},
        ),
        ("agent.changed", {"agent": "A", "x": {"deep": [[{"er": f"{SECRET}{SECRET}"}]], "kind": SECRET}}),
        ("note.mine", {"free": SECRET, "channel": SECRET, "more": {"status": SECRET, "call_id": SECRET}}),
        ("note.mine", {SECRET: 1}),
    ],
)
def test_a_mask_finds_its_secret_in_every_free_text(type_: str, payload: dict[str, Any]) -> None:
    left = json.dumps(passed(Disclosure(mask=[SECRET]), (type_, payload)))
    assert SECRET not in left
    assert MASKED in left


def test_identities_and_closed_lists_are_not_masked() -> None:
    disclosure = Disclosure(mask=["run-A", "c1", "ask-1", "answer", "succeeded", "function", "approved"])
    drafts: list[Draft] = [
        ("tool.requested", {"call_id": "c1", "name": "look", "kind": "function"}),
        ("approval.resolved", {"interaction_id": "ask-1", "decision": "approved"}),
        ("run.ended", {"outcome": "succeeded", "final_output": None}),
    ]
    assert passed(disclosure, *drafts) == drafts
    started = {"agent": "A", "task_id": "c1", "parent": {"run_id": "run-A", "call_id": "c1"}, "resumed_from": "run-A"}
    assert one(disclosure, "run.started", **started) == started


def test_a_compiled_mask_keeps_its_flags_and_groups() -> None:
    masks = [
        re.compile(r"(x)y"),
        re.compile("geheim", re.IGNORECASE),
        re.compile(r"(\d)\1\1"),
        re.compile("a.b", re.DOTALL),
    ]
    text = "xy GEHEIM 777 a\nb rest"
    assert told(passed(Disclosure(mask=masks), delta(text))) == " ".join([MASKED] * 4 + ["rest"])


def test_masks_that_share_group_names_or_inline_flags_work_together() -> None:
    masks = [re.compile(r"(?P<n>k1)"), re.compile(r"(?P<n>k2)"), re.compile("(?i)k3")]
    assert told(passed(Disclosure(mask=masks), delta("k1 k2 K3"))) == " ".join([MASKED] * 3)


@pytest.mark.parametrize("masks", [["abc", "abcdef"], ["abcdef", "abc"]])
def test_a_short_mask_never_uncovers_the_rest_of_a_longer_one(masks: list[str]) -> None:
    assert told(passed(Disclosure(mask=masks), delta("1 abcdef 2"))) == f"1 {MASKED} 2"


def test_an_empty_mask_masks_nothing() -> None:
    assert passed(Disclosure(mask=[""]), delta("abc")) == [delta("abc")]


@pytest.mark.parametrize("chars", [1, 2, 5])
def test_a_growing_match_is_held_until_it_stops_growing(chars: int) -> None:
    text = "key " + "7" * 700 + " rest"
    parts = [delta(text[place : place + chars]) for place in range(0, len(text), chars)]
    assert told(passed(Disclosure(mask=[re.compile(r"\d{4,}")], hold=16), *parts)) == f"key {MASKED} rest"


def test_text_that_no_secret_can_need_is_not_held_back() -> None:
    screen = Screen(Disclosure(mask=["x" * 8], hold=16))
    left = [draft for _ in range(10) for draft in screen.pass_on(*delta("0123456789"))]
    assert len(told(left)) >= 100 - 16


def test_a_mask_longer_than_the_hold_is_found_all_the_same() -> None:
    secret = "".join(chr(ord("a") + number % 26) for number in range(700))
    parts = [delta(letter) for letter in f"<{secret}>"]
    assert told(passed(Disclosure(mask=[secret]), *parts)) == f"<{MASKED}>"


secrets = st.lists(st.text(alphabet="ab1", min_size=2, max_size=9), min_size=1, max_size=3, unique=True)
harmless = st.text(alphabet="xyz ", max_size=12)


@settings(max_examples=300, deadline=None)
@given(secrets, st.lists(harmless, min_size=2, max_size=5), st.data())
def test_a_secret_is_found_at_every_split_and_the_rest_stays_whole(
    masks: list[str], around: list[str], data: st.DataObject
) -> None:
    chosen = [data.draw(st.sampled_from(masks)) for _ in around[1:]]
    text = around[0] + "".join(f" {secret} {rest}" for secret, rest in zip(chosen, around[1:], strict=True))
    expected = around[0] + "".join(f" {MASKED} {rest}" for rest in around[1:])
    cuts = sorted(data.draw(st.sets(st.integers(1, max(len(text) - 1, 1)), max_size=12)))
    bounds = [0, *cuts, len(text)]
    drafts = [delta(text[start:end]) for start, end in zip(bounds, bounds[1:], strict=False)]
    left = passed(Disclosure(mask=masks, hold=data.draw(st.integers(9, 40))), *drafts)
    assert told(left) == expected


def test_a_secret_is_found_at_every_single_split_among_other_events() -> None:
    text = f"before {SECRET} after"
    for place in range(len(text) + 1):
        for gap in range(place, len(text) + 1):
            drafts: list[Draft] = []
            for part in (text[:place], text[place:gap], text[gap:]):
                drafts += [
                    delta(part),
                    delta("other ", "m2"),
                    delta("no ", channel="refusal"),
                    ("tool.requested", {"call_id": f"c{len(drafts)}", "name": "look", "kind": "function"}),
                    ("note.tick", {}),
                ]
            left = passed(Disclosure(mask=[SECRET], hold=16), *drafts, ("text.completed", {"item_id": "m1"}))
            assert told(left) == f"before {MASKED} after"
            assert told(left, "m2") == "other " * 3
            assert told(left, channel="refusal") == "no " * 3
            assert SECRET not in json.dumps(left)


def test_held_text_is_released_before_its_item_or_its_run_ends() -> None:
    for last in (("text.completed", {"item_id": "m1"}), ("run.ended", {"outcome": "failed", "final_output": None})):
        screen = Screen(Disclosure(mask=[SECRET]))
        left = [draft for step in (delta("abc"), last) for draft in screen.pass_on(*step)]
        assert left == [delta("abc"), last]
        assert list(screen.release()) == []


def test_a_secret_split_over_argument_deltas_never_leaves() -> None:
    request = call("look")[0]
    for place in range(1, len(SECRET)):
        parts = [("tool.arguments.delta", {"call_id": "c1", "text": part}) for part in (SECRET[:place], SECRET[place:])]
        done = ("tool.arguments.completed", {"call_id": "c1", "arguments": SECRET})
        left = passed(Disclosure(arguments="all", mask=[SECRET]), request, *parts, done)
        joined = "".join(payload["text"] for type_, payload in left if type_ == "tool.arguments.delta")
        assert SECRET not in joined + json.dumps(left)


@pytest.mark.parametrize("type_", ["tool.finished", "tool.failed", "tool.rejected", "tool.skipped"])
def test_held_arguments_leave_before_their_row_closes(type_: str) -> None:
    last = (type_, {"call_id": "c1"})
    piece = ("tool.arguments.delta", {"call_id": "c1", "text": "abc"})
    left = passed(Disclosure(arguments="all"), call("look")[0], piece, last, ("run.ended", {"outcome": "failed"}))
    assert left[1:3] == [piece, last] and len(left) == 4


def test_held_arguments_are_capped_like_the_others() -> None:
    pieces = [("tool.arguments.delta", {"call_id": "c1", "text": "x" * 300})] * 3
    last = ("tool.arguments.completed", {"call_id": "c1", "arguments": "x" * 900})
    left = passed(Disclosure(arguments="all", max_chars=700), call("look")[0], *pieces, last)
    assert sum(len(payload["text"]) for name, payload in left if name == "tool.arguments.delta") == 700


@settings(max_examples=60, deadline=None)
@given(logs())
def test_what_leaves_under_masks_still_fits_the_protocol(log: list[Any]) -> None:
    disclosure = Disclosure(
        arguments="all", outputs="all", approval_details="all", verdict_reasons=True, mask=["a", "0"]
    )
    for type_, payload in passed(disclosure, *((step.type, step.payload) for step in log)):
        parse(envelope(1, type_, payload).to_json())
