"""The functions that callers may start, and what they may give them: the function's own signature, checked strictly."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, Final

from pydantic import ValidationError

from agents_progress.arguments import Arguments
from agents_progress.decorate import Decorated
from agents_progress.errors import UsageError
from agents_progress.options import switched_off
from agents_progress.server.refusals import Refusal

_SHOWN: Final = 8
"""Fields that a refusal names, at most."""


class Offered:
    """One decorated function under the name that callers use."""

    def __init__(self, name: str, decorated: Decorated[...]) -> None:
        self.name = name
        self.decorated = decorated
        self._arguments = Arguments(name, inspect.unwrap(decorated))

    def bind(self, arguments: Mapping[str, Any]) -> inspect.BoundArguments:
        """The call with these arguments, converted as their annotations say. Raises :class:`Refusal`."""
        try:
            return self._arguments.bind(arguments)
        except ValidationError as error:
            raise Refusal("bad_fields", named(error, "arguments")) from None


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
