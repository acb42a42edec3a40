"""The functions that callers may start, and what they may give them: the function's own signature, checked strictly.

Every named parameter is offered. One whose name begins with an underscore is not, nor ``*args`` and ``**kwargs``.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from types import SimpleNamespace
from typing import Any, Final, NotRequired, Required, get_type_hints

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, ValidationError, with_config
from pydantic_core import to_json
from typing_extensions import TypedDict

from agents_progress.decorate import Decorated
from agents_progress.errors import UsageError
from agents_progress.options import switched_off
from agents_progress.server.refusals import Refusal

_STRICT: Final = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
_VARIADIC: Final = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
_SHOWN: Final = 8
"""Fields that a refusal names, at most."""


class Offered:
    """One decorated function under the name that callers use."""

    def __init__(self, name: str, decorated: Decorated[...]) -> None:
        self.name = name
        self.decorated = decorated
        function = inspect.unwrap(decorated)
        self._signature = inspect.signature(function)
        self._arguments = _arguments(name, function, self._signature)

    def bind(self, arguments: Mapping[str, Any]) -> inspect.BoundArguments:
        """The call with these arguments, converted as their annotations say. Raises :class:`Refusal`."""
        try:
            values = self._arguments.validate_json(to_json(arguments))
        except ValidationError as error:
            raise Refusal("bad_fields", named(error, "arguments")) from None
        return inspect.BoundArguments(self._signature, OrderedDict(values))


def offered(functions: Mapping[str, Decorated[...]] | Iterable[Decorated[...]]) -> dict[str, Offered]:
    """Functions by name; without a mapping each has its own. Raises :exc:`UsageError`."""
    if switched_off():
        raise UsageError("AGENTS_PROGRESS=off makes plain calls of decorated functions; unset it to serve runs")
    pairs = functions.items() if isinstance(functions, Mapping) else [(_name(each), each) for each in functions]
    found: dict[str, Offered] = {}
    for name, decorated in pairs:
        if not isinstance(decorated, Decorated):
            raise UsageError(f"{name} is a {type(decorated).__name__}; offer functions under @progress")
        if name in found:
            raise UsageError(f"two functions are called {name}; give a mapping from name to function")
        found[name] = Offered(name, decorated)
    return found


def named(error: ValidationError, within: str = "") -> str:
    """The fields that do not fit and the rule for each, never a value: values may be private."""
    faults = error.errors(include_input=False, include_url=False, include_context=False)
    told = [f"{_place(within, *fault['loc'])}: {fault['type']}" for fault in faults[:_SHOWN]]
    return "; ".join(told) + (f"; and {len(faults) - _SHOWN} more" if len(faults) > _SHOWN else "")


def _place(*parts: object) -> str:
    return ".".join(str(part)[:64] for part in parts if part != "") or "the object"


def _name(decorated: Any) -> str:
    return getattr(decorated, "__name__", type(decorated).__name__)


def _arguments(name: str, function: Any, signature: inspect.Signature) -> TypeAdapter[dict[str, Any]]:
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
    return TypeAdapter(with_config(_STRICT)(typed_dict(f"arguments of {name}", shape)))


def _has_json_form(kind: Any) -> bool:
    try:
        TypeAdapter(kind)
    except (PydanticUserError, NameError, TypeError):
        return False
    return True
