"""What a function is called with, as JSON by its own signature, read strictly: for callers elsewhere, and for later.

Every named parameter has its place. One whose name begins with an underscore has none, nor ``*args`` and ``**kwargs``.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, Final, NotRequired, Required, get_type_hints

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, with_config
from pydantic_core import to_json
from typing_extensions import TypedDict

from agents_progress.errors import UsageError

_STRICT: Final = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
_TEXTS: Final[Mapping[str, str]] = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "duration": "PT1H",
    "uuid": "12345678-1234-4234-8234-123456789abc",
    "uri": "https://example.com/",
    "email": "ada@example.com",
}
"""Texts of a format of JSON Schema."""
_VARIADIC: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class Arguments:
    """The arguments of one function, which is called ``name`` in what is said of it.

    Raises :exc:`UsageError` for a function with a parameter that has neither a JSON form nor a default.
    """

    def __init__(self, name: str, function: Any) -> None:
        self._signature = inspect.signature(function)
        self._shape, names = _shape(name, function, self._signature)
        self._names = frozenset(names)

    def bind(self, arguments: Mapping[str, Any]) -> inspect.BoundArguments:
        """The call with these arguments, converted as their annotations say. Raises pydantic's ``ValidationError``."""
        return inspect.BoundArguments(self._signature, OrderedDict(self._shape.validate_json(to_json(arguments))))

    def example(self) -> dict[str, Any] | None:
        """Arguments that a call takes, as JSON: those that it needs, and no others. None where none can be made up."""
        try:
            schema = self._shape.json_schema()
            example: dict[str, Any] = _example(schema, schema.get("$defs", {}))
            self.bind(example)
        except Exception:  # noqa: BLE001 - a type of the application's own raises what it likes
            return None
        return example

    def stored(self, args: Any, kwargs: Any) -> dict[str, Any]:
        """The arguments of a call as JSON, from which :meth:`bind` makes the same call.

        Raises :exc:`UsageError` for one with an argument that has no place, and what pydantic raises for a value that
        is not of its annotation.
        """
        given = self._signature.bind(*args, **kwargs).arguments
        for name in given.keys() - self._names:
            raise UsageError(f"its argument {name} has no JSON form")
        stored: dict[str, Any] = self._shape.dump_python(dict(given), mode="json", warnings="error")
        self.bind(stored)
        return stored


def _shape(name: str, function: Any, signature: inspect.Signature) -> tuple[TypeAdapter[dict[str, Any]], list[str]]:
    try:
        given = {each: kind for each, kind in getattr(function, "__annotations__", {}).items() if each != "return"}
        hints = get_type_hints(
            SimpleNamespace(__annotations__=given), getattr(function, "__globals__", {}), include_extras=True
        )
    except NameError as error:
        raise UsageError(f"an annotation of {name} cannot be found: {error.name}; import it where it is used") from None
    shape: dict[str, Any] = {}
    for parameter in signature.parameters.values():
        if parameter.kind in _VARIADIC:
            continue
        needed = parameter.default is parameter.empty
        kind = hints.get(parameter.name, Any)
        if parameter.name.startswith("_") or not _has_json_form(kind):
            if needed:
                raise UsageError(
                    f"{name} cannot be offered: callers cannot give its parameter {parameter.name}; give it a default"
                )
            continue
        shape[parameter.name] = Required[kind] if needed else NotRequired[kind]
    typed_dict: Any = TypedDict  # called with computed fields, which no type checker follows
    return TypeAdapter(with_config(_STRICT)(typed_dict(f"arguments of {name}", shape))), list(shape)


def _example(schema: Mapping[str, Any], named: Mapping[str, Any]) -> Any:
    """A value of a JSON Schema as pydantic writes it."""
    if "$ref" in schema:
        return _example(named[schema["$ref"].rpartition("/")[2]], named)
    for choices in ("anyOf", "oneOf"):
        if choices in schema:
            return _example(schema[choices][0], named)
    given = schema.get("examples") or schema.get("enum") or [schema.get("const", schema.get("default"))]
    make: Callable[[Any, Any], Any] = _OF_TYPE.get(schema.get("type", ""), _text)
    return make(schema, named) if given[0] is None else given[0]


def _object(schema: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _example(schema["properties"][name], named) for name in schema.get("required", ())}


def _array(schema: Mapping[str, Any], named: Mapping[str, Any]) -> list[Any]:
    each = schema.get("prefixItems") or [schema.get("items", {})] * schema.get("minItems", 0)
    return [_example(item, named) for item in each]


def _number(schema: Mapping[str, Any], named: Mapping[str, Any]) -> Any:
    return schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)


def _text(schema: Mapping[str, Any], named: Mapping[str, Any]) -> str:
    return _TEXTS.get(schema.get("format", ""), "hello")


_OF_TYPE: Final[Mapping[str, Callable[[Mapping[str, Any], Mapping[str, Any]], Any]]] = {
    "object": _object,
    "array": _array,
    "integer": _number,
    "number": _number,
    "boolean": lambda schema, named: True,
    "null": lambda schema, named: None,
}


def _has_json_form(kind: Any) -> bool:
    try:
        TypeAdapter(kind)
    except (PydanticUserError, NameError, TypeError):
        return False
    return True
