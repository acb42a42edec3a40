"""What a function is called with, as JSON by its own signature, read strictly: for callers elsewhere, and for later.

Every named parameter has its place. One whose name begins with an underscore has none, nor ``*args`` and ``**kwargs``.
"""

from __future__ import annotations

import inspect
from collections import OrderedDict
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, Final, NotRequired, Required, get_type_hints

from pydantic import ConfigDict, PydanticUserError, TypeAdapter, with_config
from pydantic_core import to_json
from typing_extensions import TypedDict

from agents_progress.errors import UsageError

_STRICT: Final = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
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


def _has_json_form(kind: Any) -> bool:
    try:
        TypeAdapter(kind)
    except (PydanticUserError, NameError, TypeError):
        return False
    return True
