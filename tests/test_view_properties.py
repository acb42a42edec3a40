"""Properties of the fold over logs of every type: replay, repeats, and no input that raises."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents_progress.errors import ProtocolError
from agents_progress.events import Envelope, parse
from agents_progress.messages import MESSAGES
from agents_progress.view import REMEMBERED, RunView
from tests.logs import RUN, envelope, json_values, logs

steady = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)


def shown(log: list[Envelope]) -> RunView:
    view = RunView(RUN)
    for step in log:
        view.feed(step)
    return view


def stored(view: RunView) -> dict[str, Any]:
    """The snapshot as a store would give it back."""
    kept: dict[str, Any] = json.loads(json.dumps(view.snapshot()))
    return kept


@steady
@given(logs())
def test_a_valid_log_has_no_issue(log: list[Envelope]) -> None:
    view = shown(log)
    assert (view.issues, view.duplicates, view.foreign, view.seq) == ([], 0, 0, len(log))


@steady
@given(logs())
def test_json_and_envelopes_fold_to_the_same_snapshot(log: list[Envelope]) -> None:
    as_bytes, as_text, as_object = RunView(RUN), RunView(RUN), RunView(RUN)
    for step in log:
        as_bytes.feed(step.to_json())
        as_text.feed(json.dumps(step.to_dict(), ensure_ascii=True))
        as_object.feed(json.loads(step.to_json()))
    snapshot = shown(log).snapshot()
    assert as_bytes.snapshot() == snapshot
    assert as_text.snapshot() == snapshot
    assert as_object.snapshot() == snapshot


@steady
@given(logs())
def test_replay_from_any_snapshot_equals_replay_from_the_start(log: list[Envelope]) -> None:
    whole = stored(shown(log))
    for cut in range(len(log) + 1):
        view = RunView.from_snapshot(stored(shown(log[:cut])))
        for step in log[cut:]:
            view.feed(step.to_json())
        assert stored(view) == whole
        assert view.status == shown(log).status


@steady
@given(logs(), st.data())
def test_replay_that_overlaps_a_snapshot_changes_only_the_counter(log: list[Envelope], data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(log)))
    back = data.draw(st.integers(0, cut))
    view = RunView.from_snapshot(stored(shown(log[:cut])))
    for step in log[back:]:
        view.feed(step.to_json())
    assert view.duplicates == cut - back
    view.duplicates = 0
    assert stored(view) == stored(shown(log))


@steady
@given(logs(), st.data())
def test_repeats_at_random_places_change_nothing_but_their_counter(log: list[Envelope], data: st.DataObject) -> None:
    fed: list[Envelope] = []
    for place, step in enumerate(log):
        fed.append(step)
        fed += data.draw(st.lists(st.sampled_from(log[: place + 1]), max_size=3))
    view = RunView(RUN)
    for number, step in enumerate(fed):
        view.feed((step, step.to_json(), step.to_dict())[number % 3])
    assert view.duplicates == len(fed) - len(log)
    view.duplicates = 0
    assert view.snapshot() == shown(log).snapshot()


@settings(max_examples=15, deadline=None)
@given(logs(), st.lists(st.integers(0, 2000), min_size=1, max_size=30))
def test_repeats_from_beyond_memory_change_nothing_but_their_counter(log: list[Envelope], places: list[int]) -> None:
    ended = any(step.type == "run.ended" for step in log)
    long = log + [envelope(len(log) + n, "note.tick", {"n": n}) for n in range(1, REMEMBERED + 200)]
    view, once = shown(long), shown(long)
    for place in places:
        view.feed(long[place % len(long)].to_json())
    assert view.duplicates == len(places)
    view.duplicates = 0
    assert view.snapshot() == once.snapshot()
    assert bool(once.terminal) == ended or once.standing.lost is not None


# Input of any kind.

odd_text = st.text(alphabet=st.characters(), max_size=20) | st.sampled_from(["\ud800", "a\udfff", "\x00", "\u2028"])
odd_number = (
    st.floats() | st.integers() | st.sampled_from([10**400, -(10**4000), float("nan"), float("inf"), 2**64, True])
)
odd_values = st.recursive(
    st.none() | st.booleans() | odd_number | odd_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(odd_text, inner, max_size=4),
    max_leaves=12,
)


def is_valid(source: object) -> bool:
    """Judged apart from the view: an envelope of the protocol whose content has a strict JSON form."""
    try:
        if not isinstance(source, (str, bytes)):
            text = json.dumps(source, allow_nan=False, ensure_ascii=False)
            text.encode()
            source = text
        parse(source)
    except (ProtocolError, ValueError, TypeError, RecursionError):
        return False
    return True


def fed_quietly(*sources: object) -> RunView:
    view = RunView(RUN)
    for source in sources:
        view.feed(source)
        assert view.status in MESSAGES
        assert view.message
    view.snapshot()
    view.close_transport()
    assert (view.text, view.messages, view.activities, view.tools, view.issues) is not None
    return view


@steady
@given(odd_values)
def test_any_json_value_is_taken_quietly_and_never_as_an_envelope(value: object) -> None:
    texts = [json.dumps(value), json.dumps(value, ensure_ascii=False)]
    for source in (value, *texts, *(text.encode("utf-8", "surrogatepass") for text in texts)):
        assert fed_quietly(source).issues == ["bad_envelope"]


@steady
@given(st.text(alphabet=st.characters()) | st.binary())
def test_any_text_and_any_bytes_are_taken_quietly(source: str | bytes) -> None:
    assert fed_quietly(source).status == "unknown"


@steady
@given(logs(max_steps=6), st.data())
def test_a_valid_envelope_with_one_part_replaced_is_taken_quietly(log: list[Envelope], data: st.DataObject) -> None:
    source: dict[str, Any] = copy.deepcopy(data.draw(st.sampled_from(log)).to_dict())
    place: dict[str, Any] = source
    if data.draw(st.booleans()) and source["payload"]:
        place = source["payload"]
    name = data.draw(st.sampled_from(sorted(place)) | odd_text)
    place[name] = data.draw(odd_values | json_values)
    source["seq"] = 1 if place is source["payload"] else source["seq"]
    view = fed_quietly(source, source, {**source, "occurred_at": "2026-01-01T00:00:00Z"})
    if not is_valid(source):
        assert view.status == "unknown"
        assert view.issues


@steady
@given(logs(max_steps=8), st.data())
def test_shuffled_and_damaged_logs_never_raise(log: list[Envelope], data: st.DataObject) -> None:
    sources: list[object] = [step.to_json() for step in data.draw(st.permutations(log))]
    for _ in range(data.draw(st.integers(0, 3))):
        sources.insert(data.draw(st.integers(0, len(sources))), data.draw(odd_values | st.binary()))
    fed_quietly(*sources)


DEEP: Any = {}
for _ in range(50_000):
    DEEP = {"a": DEEP}


def note(payload: object) -> dict[str, object]:
    return {**envelope(1, "note.a").to_dict(), "payload": payload}


@pytest.mark.parametrize(
    "payload",
    [
        {"a": float("nan")},
        {"a": float("inf")},
        {"a": "\ud800"},
        {"\udfff": 1},
        {"a": object()},
        {"a": {1, 2}},
        {"a": b"\xff"},
        DEEP,
    ],
    ids=["nan", "inf", "lone surrogate", "lone surrogate name", "object", "set", "bytes", "deep"],
)
def test_an_object_that_has_no_strict_json_form_is_no_envelope(payload: object) -> None:
    bad, other = note(payload), note({"b": 1})
    assert fed_quietly(bad).issues in (["bad_envelope"], ["bad_payload_or_transition"])
    for sources in ((bad, note(payload)), (bad, other), (other, bad)):
        assert fed_quietly(*sources).status == "unknown"


@pytest.mark.parametrize("type_", ["text.delta", "run.ended"])
def test_a_lone_surrogate_in_an_objects_text_is_an_issue(type_: str) -> None:
    payload = {"item_id": "m", "index": 0, "text": "\ud800"}
    if type_ == "run.ended":
        payload = {"outcome": "succeeded", "final_output": "\ud800"}
    verdict = envelope(2, "app.checked", {"digest": "a" * 64, "ok": True})
    assert fed_quietly({**envelope(1, type_).to_dict(), "payload": payload}, verdict.to_dict()).status == "unknown"


@pytest.mark.parametrize(
    "source",
    [
        b'{"a":' * 100_000,
        b"[" * 1_000_000,
        "[" * 1_000_000,
        b"9" * 200_000,
        b'{"seq":' + b"9" * 100_000 + b"}",
        "x" * (17 * 1024 * 1024),
        b"\xff\xfe",
        "\ud800",
        '"\\ud800"',
        "NaN",
        "",
        b"",
        memoryview(b"{}"),
        {"a"},
        object(),
        (1, 2),
        range(3),
        DEEP,
    ],
    ids=lambda source: type(source).__name__,
)
def test_huge_deep_and_foreign_things_are_bad_envelopes(source: object) -> None:
    assert fed_quietly(source).issues == ["bad_envelope"]


def test_an_integer_too_long_for_python_to_write_is_taken_quietly() -> None:
    assert fed_quietly(10**5000).issues == ["bad_envelope"]
    fed_quietly(note({"a": 10**5000}), note({"a": 10**5000}), note({"a": 1}))
    fed_quietly(note({"a": 1}), note({"a": 10**5000}))
    text = json.dumps(note({"a": 1})).replace('"a": 1', '"a": ' + "9" * 5000)
    assert fed_quietly(text, text.encode()).issues == ["bad_envelope"]
