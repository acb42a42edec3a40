"""The protocol: the whole table of payloads, strict parsing, round trips, and the JSON Schema that says the same."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any, Final

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents_progress.errors import BadEnvelope, BadPayload, UnknownEventType
from agents_progress.events import (
    PROTOCOL,
    Envelope,
    is_known,
    is_run_id,
    json_schema,
    parse,
    parse_envelope,
    parse_known,
    private_fields,
)
from agents_progress.payloads import PAYLOADS
from tests.logs import envelope, logs

# The table as the design words it. `[x]` is optional, `x*` closed by default, `x?` may be null.
TABLE: Final = {
    "run.accepted": "task_id [title]",
    "run.started": "agent task_id parent? resumed_from? [title] [attempt]",
    "agent.changed": "agent",
    "model.started": "response_id [reason] [code]",
    "model.completed": "response_id [reason] [code]",
    "model.incomplete": "response_id [reason] [code]",
    "model.failed": "response_id [reason] [code]",
    "text.delta": "item_id index text [channel]",
    "text.completed": "item_id [text] [channel]",
    "tool.requested": "call_id name kind [title] [arguments*]",
    "tool.arguments.delta": "call_id index text*",
    "tool.arguments.completed": "call_id arguments*",
    "tool.started": "call_id",
    "tool.progress": "call_id message current? total?",
    "tool.finished": "call_id [duration_ms] [summary] [output*] [reused]",
    "tool.failed": "call_id [code] [message] [retryable]",
    "tool.rejected": "call_id reason",
    "tool.skipped": "call_id reason",
    "handoff.requested": "from_agent to_agent",
    "handoff.completed": "from_agent to_agent",
    "approval.wait": "interaction_id call_id? tool title [digest] [details*] [kind] [expires_at]",
    "approval.resolved": "interaction_id decision [actor]",
    "guardrail.tripped": "stage name",
    "stage.started": "stage_id title",
    "stage.completed": "stage_id title",
    "source.cited": "item_id kind [title] [url]",
    "artifact.created": "artifact_id name media_type bytes [call_id] [sha256] [ref*]",
    "usage.updated": "requests? input_tokens? output_tokens? total_tokens? cached_tokens? reasoning_tokens? status",
    "cancel.requested": "[mode] [actor]",
    "adapter.unsupported": "what name",
    "run.ended": "outcome final_output? [reason] [error] [partial] [completed_anyway] [requested_by?] [evidence]",
    "run.lost": "reason",
    "app.checked": "digest ok [check] [reason*]",
}

HEX: Final = "0123456789abcdef" * 4
FAILURE: Final = {"code": "timeout", "message": "m", "retryable": True, "phase": "model"}
BOOLEANS: Final = frozenset({"retryable", "reused", "partial", "completed_anyway", "ok"})
COUNTS: Final = frozenset(
    "index duration_ms bytes requests input_tokens output_tokens total_tokens cached_tokens reasoning_tokens".split()
)
CHOICES: Final = {
    "channel": ("answer", "refusal", "transcript", "reasoning"),
    "decision": ("approved", "rejected", "expired", "cancelled"),
    "mode": ("immediate", "after_turn"),
    "outcome": ("succeeded", "paused", "cancelled", "failed", "incomplete"),
    "status": ("reported", "partial", "unavailable"),
}
TOOL_KINDS: Final = ("function", "hosted", "mcp", "agent", "computer", "shell", "patch", "custom")


def rows(type_: str) -> dict[str, tuple[bool, bool, bool]]:
    """Field name to optional, closed, nullable."""
    return {word.strip("[]*?"): ("[" in word, "*" in word, "?" in word) for word in TABLE[type_].split()}


def example(type_: str, name: str) -> Any:
    if name in BOOLEANS:
        return True
    if name in COUNTS:
        return 3
    if name in CHOICES:
        return CHOICES[name][0]
    special: dict[str, Any] = {
        "attempt": 1, "current": 1.5, "total": 4, "digest": HEX, "sha256": HEX, "error": FAILURE,
        "evidence": {"a": [None]},
        "parent": {"run_id": "run-B", "call_id": "c1"}, "kind": "function",
    }  # fmt: skip
    return special.get(name, "text")


def wrong(type_: str, name: str) -> list[Any]:
    """Values that are nearly right."""
    if name in BOOLEANS:
        return [1, 0, "true"]
    if name in COUNTS:
        return [True, -1, 1.0, "1", float("nan")]
    if name in CHOICES or (name == "kind" and type_ == "tool.requested"):
        return ["other", "", 1]
    if name in ("digest", "sha256"):
        return ["abc", HEX.upper(), HEX + "0", HEX + "\n", 1]
    if name in ("current", "total"):
        return [True, "1", float("nan"), float("inf"), []]
    if name == "parent":
        return [
            "run-B",
            {},
            {"run_id": "run-B"},
            {"run_id": "run-B", "call_id": "c", "extra": 1},
            {"run_id": "r", "call_id": None},
        ]
    if name == "error":
        return ["oops", {}, {**FAILURE, "traceback": "t"}, {**FAILURE, "retryable": 1}, {**FAILURE, "code": None}]
    if name == "attempt":
        return [0, True, "1", 1.0]
    if name == "evidence":
        return ["text", [], {"a": float("nan")}]
    return [1, True, ["text"], b"text"]


def full(type_: str) -> dict[str, Any]:
    return {name: example(type_, name) for name in rows(type_)}


def fits(type_: str, payload: dict[str, Any]) -> bool:
    try:
        parse(envelope(1, type_, payload).to_dict())
    except (BadPayload, BadEnvelope):
        return False
    return True


TYPES = pytest.mark.parametrize("type_", TABLE)


def test_the_table_and_the_code_know_the_same_types() -> None:
    assert set(PAYLOADS) == set(TABLE)
    assert len(TABLE) == 33


@TYPES
def test_a_payload_has_exactly_the_fields_of_the_table(type_: str) -> None:
    fields = rows(type_)
    shape = json_schema()["$defs"][PAYLOADS[type_].__name__]
    assert set(shape["properties"]) == {*fields, "x"}
    assert set(shape.get("required", ())) == {name for name, (optional, _, _) in fields.items() if not optional}
    assert shape["additionalProperties"] is False
    assert private_fields(type_) == {name for name, (_, closed, _) in fields.items() if closed}


@TYPES
def test_required_fields_are_required_and_optional_ones_are_not(type_: str) -> None:
    whole = full(type_)
    assert fits(type_, whole)
    for name, (optional, _, _) in rows(type_).items():
        assert fits(type_, {key: value for key, value in whole.items() if key != name}) is optional, name


@TYPES
def test_null_is_allowed_only_where_it_means_something(type_: str) -> None:
    for name, (_, _, nullable) in rows(type_).items():
        assert fits(type_, {**full(type_), name: None}) is nullable, name


@TYPES
def test_a_field_of_a_wrong_type_is_refused(type_: str) -> None:
    for name in rows(type_):
        for value in wrong(type_, name):
            assert not fits(type_, {**full(type_), name: value}), (name, value)


@TYPES
def test_an_extra_field_is_refused_and_x_is_not(type_: str) -> None:
    assert not fits(type_, {**full(type_), "state": "done"})
    assert fits(type_, {**full(type_), "x": {"detail": [1, None, {"a": "b"}]}})
    for x in ("text", [], None, {"a": float("nan")}):
        assert not fits(type_, {**full(type_), "x": x})


def test_every_word_of_a_closed_list_is_accepted() -> None:
    places = {
        "channel": "text.delta",
        "decision": "approval.resolved",
        "mode": "cancel.requested",
        "outcome": "run.ended",
    }
    for name, words in CHOICES.items():
        type_ = places.get(name, "usage.updated")
        assert all(fits(type_, {**full(type_), name: word}) for word in words)
    assert all(fits("tool.requested", {**full("tool.requested"), "kind": kind}) for kind in TOOL_KINDS)


# Parsing.


@TYPES
def test_every_type_survives_a_round_trip(type_: str) -> None:
    step = envelope(7, type_, full(type_))
    assert set(step.to_dict()) == {"protocol", *Envelope._fields}
    assert step.protocol == step.to_dict()["protocol"] == PROTOCOL
    for source in (step, step.to_dict(), step.to_json(), step.to_json().decode(), bytearray(step.to_json())):
        assert parse(source) == step
        if source is not step:
            assert parse_known(source) == step


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(logs())
def test_logs_survive_a_round_trip_and_are_strict_json(log: list[Envelope]) -> None:
    def refuse(token: str) -> None:
        raise AssertionError(token)

    for step in log:
        assert json.loads(step.to_json(), parse_constant=refuse) == step.to_dict()
        assert parse(step.to_json()) == step


def test_an_unknown_type_is_refused_by_name_and_a_note_is_not() -> None:
    with pytest.raises(UnknownEventType, match=r"run\.completed"):
        parse(envelope(1, "run.completed"))
    assert parse_envelope(envelope(1, "run.completed").to_dict()).type == "run.completed"
    assert parse(envelope(1, "note.whatever", {"a": 1}).to_json()).payload == {"a": 1}
    assert [is_known(name) for name in ("note.x", "run.ended", "run.completed", "notes.x")] == [
        True,
        True,
        False,
        False,
    ]


def test_a_refusal_names_the_place_and_never_the_value() -> None:
    secret = "sk-secret-value"
    with pytest.raises(BadPayload) as refused:
        parse(envelope(1, "tool.progress", {"call_id": "c", "message": "m", "current": secret, "total": None}))
    assert "current" in str(refused.value)
    assert secret not in str(refused.value)
    with pytest.raises(BadEnvelope) as bad:
        parse_envelope({**envelope(1, "note.a").to_dict(), "seq": secret, secret: secret})
    assert f": {secret}" not in str(bad.value)


@pytest.mark.parametrize("source", [None, 3, [], "null", b"[]", "{}", "NaN", b"\xff", "\ud800", '{"a":NaN}', object()])
def test_what_is_no_envelope_raises_bad_envelope_and_nothing_else(source: object) -> None:
    with pytest.raises(BadEnvelope):
        parse(source)
    assert parse_known(source) is None


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "9" * 400 + ".0"])
@pytest.mark.parametrize(
    ("type_", "payload"),
    [
        ("note.a", {"a": [0.5]}),
        ("agent.changed", {"agent": "A", "x": {"a": [0.5]}}),
        ("run.ended", {"outcome": "failed", "final_output": None, "evidence": {"a": 0.5}}),
        ("tool.progress", {"call_id": "c1", "message": "m", "current": 0.5, "total": None}),
    ],
    ids=["note", "x", "evidence", "count"],
)
def test_a_number_that_is_not_finite_is_no_strict_json_wherever_it_stands(
    token: str, type_: str, payload: dict[str, Any]
) -> None:
    text = envelope(1, type_, payload).to_json().decode()
    assert parse(text).payload == payload
    text = text.replace("0.5", token)
    for source in (text, text.encode()):
        assert parse_known(source) is None
        with pytest.raises(BadEnvelope):
            parse(source)


def test_the_largest_exact_number_is_the_last_one() -> None:
    assert parse(envelope(2**53, "note.a").to_json()).seq == 2**53
    with pytest.raises(BadEnvelope):
        parse(envelope(2**53 + 1, "note.a").to_json())


def test_run_ids_are_plain() -> None:
    assert all(is_run_id(text) for text in ("a", "run-A.2", "_", "x" * 64, "0"))
    assert not any(is_run_id(text) for text in ("", "x" * 65, "a b", "a\n", "é-1", "a/b", "a:1", "\x00"))


# JSON Schema.

SCHEMA_FILE = files("agents_progress").joinpath("protocol-1.schema.json")


@cache
def validator() -> jsonschema.Draft202012Validator:
    schema = json.loads(SCHEMA_FILE.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def test_the_committed_schema_is_the_codes_own() -> None:
    written = json.dumps(json_schema(), indent=1, ensure_ascii=False) + "\n"
    assert SCHEMA_FILE.read_text(encoding="utf-8") == written


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(logs(max_steps=12))
def test_the_schema_accepts_every_valid_log(log: list[Envelope]) -> None:
    for step in log:
        validator().validate(step.to_dict())


@TYPES
def test_the_schema_refuses_what_the_parser_refuses(type_: str) -> None:
    whole = full(type_)
    validator().validate(envelope(1, type_, whole).to_dict())
    bad = [{**whole, "state": "done"}, {**whole, "x": []}]
    for name, (optional, _, nullable) in rows(type_).items():
        if not optional:
            bad.append({key: value for key, value in whole.items() if key != name})
        if not nullable:
            bad.append({**whole, name: None})
        bad += [{**whole, name: value} for value in wrong(type_, name) if _is_json(value)]
    for payload in bad:
        assert not validator().is_valid(envelope(1, type_, payload).to_dict()), payload


@settings(max_examples=60, deadline=None)
@given(
    field=st.sampled_from(["protocol", "event_id", "run_id", "seq", "type", "occurred_at", "payload", "extra"]),
    value=st.none()
    | st.booleans()
    | st.integers(-3, 0)
    | st.text(alphabet="ü /", max_size=5)
    | st.just("٢٠٢٦-١٠-٠٧T08:00:01Z"),
)
def test_the_schema_refuses_bad_envelopes(field: str, value: object) -> None:
    source = {**envelope(1, "note.a").to_dict(), field: value}
    assert parse_known(source) is None
    assert not validator().is_valid(source)


def test_the_schema_takes_notes_and_no_unknown_types() -> None:
    assert validator().is_valid(envelope(1, "note.brand_new", {"a": [1]}).to_dict())
    assert not validator().is_valid(envelope(1, "run.completed").to_dict())
    assert not validator().is_valid(dict.fromkeys(Envelope._fields, 1))


def _is_json(value: Any) -> bool:
    """Whether JSON can say it, and says it apart from a right value (the schema's integer takes 1.0)."""
    if isinstance(value, float) or isinstance(value, bytes):
        return False
    return not (isinstance(value, dict) and any(isinstance(part, float) for part in value.values()))
