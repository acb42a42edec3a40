"""Envelopes of `agents-progress/1`: make, parse, dump, and the JSON Schema of all of it.

An :class:`Envelope` is a named tuple because one is made for every event of every run: measured against a pydantic
model it costs a twelfth (0.2 against 2.7 microseconds) and it is as immutable. What comes from outside is validated
here, strictly; what this process stamps itself is not validated again (:mod:`agents_progress.payloads` says what it
must look like, and the tests hold every producer to it).
"""

from __future__ import annotations

import re
from functools import cache
from operator import itemgetter
from typing import Annotated, Any, Final, Literal, NamedTuple, Union, get_type_hints

from pydantic import Discriminator, Field, StringConstraints, TypeAdapter, ValidationError, with_config
from pydantic_core import SchemaValidator, from_json, to_json
from typing_extensions import TypedDict

from agents_progress.errors import BadEnvelope, BadPayload, UnknownEventType
from agents_progress.payloads import NOTE_PREFIX, PAYLOADS, PRIVATE, STRICT, is_finite

PROTOCOL: Final = "agents-progress/1"
MAX_ENVELOPE_BYTES: Final = 16 * 1024 * 1024
"""A text of more bytes than this is refused before it is parsed."""

RUN_ID_PATTERN: Final = r"^[A-Za-z0-9._-]{1,64}$"
_is_run_id = re.compile(RUN_ID_PATTERN).match
_in_order = itemgetter("event_id", "run_id", "seq", "type", "occurred_at", "payload")


class Envelope(NamedTuple):
    """One fact about a run, with its identity and its place in the order.

    ``seq`` counts from 1 without holes within ``run_id``; it alone gives the order. ``occurred_at`` (RFC 3339, UTC) is
    for people. ``payload`` must not be changed by whoever receives it.
    """

    event_id: str
    run_id: str
    seq: int
    type: str
    occurred_at: str
    payload: dict[str, Any]

    @property
    def protocol(self) -> str:
        """Always `agents-progress/1`: nothing else can be parsed or made."""
        return PROTOCOL

    def to_dict(self) -> dict[str, Any]:
        """The envelope as a plain object with exactly the seven fields of the protocol."""
        event_id, run_id, seq, type_, occurred_at, payload = self
        return {
            "protocol": PROTOCOL,
            "event_id": event_id,
            "run_id": run_id,
            "seq": seq,
            "type": type_,
            "occurred_at": occurred_at,
            "payload": payload,
        }

    def to_json(self) -> bytes:
        """The envelope as strict UTF-8 JSON: no NaN, no lone surrogate."""
        return to_json(self.to_dict(), inf_nan_mode="null")


@with_config(STRICT)
class _WireEnvelope(TypedDict):
    protocol: Literal["agents-progress/1"]
    event_id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:-]{1,160}$")]
    run_id: Annotated[str, StringConstraints(pattern=RUN_ID_PATTERN)]
    seq: Annotated[int, Field(ge=1, le=2**53)]
    type: Annotated[str, StringConstraints(pattern=r"^[a-z0-9_]+(\.[a-z0-9_]+)+$", max_length=64)]
    occurred_at: Annotated[
        str,
        StringConstraints(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?(Z|\+00:00)$"),
    ]
    payload: dict[str, Any]


def _refusal(error: ValidationError) -> str:
    """Names the place and the rule, and never the value: values may be private."""
    first = error.errors(include_input=False, include_url=False, include_context=False)[0]
    place = ".".join(str(part) for part in first["loc"]) or "the object"
    return f"{place}: {first['type']}"


@cache
def _envelope_validator() -> SchemaValidator:
    return TypeAdapter(_WireEnvelope).validator  # type: ignore[return-value]


@cache
def _known_validator() -> SchemaValidator:
    """One validator for every type with its payload: it reads JSON in half the time of three separate steps."""
    fields = get_type_hints(_WireEnvelope, include_extras=True)
    typed_dict: Any = TypedDict  # called with computed fields, which no type checker follows
    shapes = [
        with_config(STRICT)(typed_dict(type_, {**fields, "type": Literal[type_], "payload": payload}))
        for type_, payload in PAYLOADS.items()
    ]
    union: Any = Annotated[Union[tuple(shapes)], Discriminator("type")]  # noqa: UP007 - the members are computed
    return TypeAdapter(union).validator  # type: ignore[return-value]


@cache
def _payload_validator(type_: str) -> SchemaValidator | None:
    shape = PAYLOADS.get(type_)
    return None if shape is None else TypeAdapter(shape).validator  # type: ignore[return-value]


def is_known(type_: str) -> bool:
    """Whether this protocol version defines the type; every ``note.`` type is known."""
    return type_ in PAYLOADS or type_.startswith(NOTE_PREFIX)


def is_run_id(text: str) -> bool:
    """Whether a text may serve as a run id: 1 to 64 of letters, digits, dot, underscore and hyphen."""
    return bool(_is_run_id(text)) and not text.endswith("\n")


def _text_of(source: object) -> str | bytes | bytearray:
    """The JSON of a source. An object is held to the rules of JSON text: it must be what its own JSON says."""
    if isinstance(source, str | bytes | bytearray):
        text = source
    else:
        text = to_json(source, inf_nan_mode="constants")
        if from_json(text, allow_inf_nan=False) != source:
            raise BadEnvelope(
                "the object holds what JSON cannot; send strings, finite numbers, booleans, lists and objects"
            )
    if len(text) > MAX_ENVELOPE_BYTES:
        raise BadEnvelope(f"an envelope of {len(text)} characters is over the limit of {MAX_ENVELOPE_BYTES}")
    return text


def parse_known(source: object) -> Envelope | None:
    """Read one envelope of a type this version defines, payload included; None when anything about it does not fit.

    The quick way in. Whoever needs to know what did not fit asks :func:`parse_envelope` and :func:`check_payload` then.
    """
    try:
        fields = _known_validator().validate_json(_text_of(source))
    except (ValueError, TypeError, RecursionError):
        return None
    return tuple.__new__(Envelope, _in_order(fields))


def parse_envelope(source: object) -> Envelope:
    """Read an envelope without judging its payload; the view judges that after it dealt with repeats and other runs.

    ``source`` is an object of the seven fields, or its JSON as str or bytes. Raises :exc:`BadEnvelope`, and nothing
    else, for everything that is not one.
    """
    if isinstance(source, Envelope):
        return source
    try:
        plain = from_json(_text_of(source), allow_inf_nan=False)
    except BadEnvelope:
        raise
    except (ValueError, TypeError, RecursionError) as error:
        raise BadEnvelope("this has no strict JSON form; send one envelope as UTF-8 JSON") from error
    if not is_finite(plain):
        raise BadEnvelope("a number of the envelope is larger than any float; send finite numbers")
    try:
        fields = _envelope_validator().validate_python(plain)
    except ValidationError as error:
        raise BadEnvelope(f"not an {PROTOCOL} envelope: {_refusal(error)}") from None
    except RecursionError as error:
        raise BadEnvelope("the envelope is nested too deeply") from error
    return Envelope(*_in_order(fields))


def check_payload(envelope: Envelope) -> None:
    """Raise :exc:`UnknownEventType` or :exc:`BadPayload` unless the payload fits its type exactly."""
    validator = _payload_validator(envelope.type)
    if validator is None:
        if envelope.type.startswith(NOTE_PREFIX):
            return
        raise UnknownEventType(f"{envelope.type} is not a type of {PROTOCOL}; show no success after it")
    try:
        validator.validate_python(envelope.payload)
    except ValidationError as error:
        raise BadPayload(f"{envelope.type}: {_refusal(error)}") from None
    except RecursionError as error:
        raise BadPayload(f"{envelope.type}: nested too deeply") from error


def parse(source: object) -> Envelope:
    """Read and fully check one envelope; see :func:`parse_envelope` and :func:`check_payload` for what it raises."""
    envelope = parse_envelope(source)
    check_payload(envelope)
    return envelope


@cache
def private_fields(type_: str) -> frozenset[str]:
    """The fields of a payload that stay closed unless the application opened them."""
    shape = PAYLOADS.get(type_)
    hints = {} if shape is None else get_type_hints(shape, include_extras=True)
    return frozenset(name for name, hint in hints.items() if PRIVATE in repr(hint))


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of an envelope of any type, one branch a type; ``note.`` types take any object."""
    envelope = TypeAdapter(_WireEnvelope).json_schema()
    definitions: dict[str, Any] = {}
    branches: list[dict[str, Any]] = []
    for type_, shape in PAYLOADS.items():
        body = TypeAdapter(shape).json_schema(ref_template="#/$defs/{model}")
        definitions.update(body.pop("$defs", {}))
        definitions[shape.__name__] = body
        branches.append(_branch({"const": type_}, {"$ref": f"#/$defs/{shape.__name__}"}))
    branches.append(_branch({"pattern": r"^note\."}, {"type": "object"}))
    envelope.pop("title", None)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": PROTOCOL,
        **envelope,
        "oneOf": branches,
        "$defs": dict(sorted(definitions.items())),
    }


def _branch(type_: dict[str, Any], payload: dict[str, Any]) -> dict[str, Any]:
    return {"properties": {"type": type_, "payload": payload}}
