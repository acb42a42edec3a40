"""Whose code an exception came through: the application's session, hook or guardrail, a tool, or the model.

The same `ConnectionError` may come from the model service, from the application's session store or from its guardrail,
and only the traceback tells which. It is read by public names only: the modules of the SDK that call the application,
and the methods of the interfaces that the application implements. What no row places has no origin, and none is
guessed.

Source: tracebacks of runs that fail at each of these places, openai-agents 0.18, 0.23 and 0.24.
"""

from __future__ import annotations

from itertools import pairwise
from traceback import walk_tb
from typing import Final, Literal, NamedTuple, TypeAlias

Origin: TypeAlias = Literal["session", "hook", "guardrail", "tool", "tool_server", "model"]


class Place(NamedTuple):
    """A call that leaves the SDK: from a module of ``caller`` to a function of these names, or to any outside."""

    origin: Origin
    caller: str
    called: frozenset[str] = frozenset()


PLACES: Final = (
    Place("guardrail", "agents.guardrail"),
    Place("guardrail", "agents.tool_guardrails"),
    Place("tool_server", "agents.mcp"),
    Place("tool", "agents.tool"),
    Place("session", "agents", frozenset({"get_items", "add_items", "pop_item", "clear_session"})),
    Place(
        "hook",
        "agents",
        frozenset(
            {
                "on_start",
                "on_end",
                "on_agent_start",
                "on_agent_end",
                "on_handoff",
                "on_llm_start",
                "on_llm_end",
                "on_tool_start",
                "on_tool_end",
            }
        ),
    ),
    Place("model", "agents", frozenset({"get_response", "stream_response"})),
)
"""The first that holds: a tool may have the name of a session's method. The names are those of `agents.memory.Session`,
`agents.lifecycle` and `agents.models.interface.Model`.
"""


def origin_of(error: BaseException) -> Origin | None:
    """The outermost place that an exception came through, or its cause when the SDK wrapped that."""
    return _first(error) or (None if error.__cause__ is None else _first(error.__cause__))


def _first(error: BaseException) -> Origin | None:
    frames = [(str(frame.f_globals.get("__name__")), frame.f_code.co_name) for frame, _ in walk_tb(error.__traceback__)]
    for (caller, _), (module, name) in pairwise(frames):
        for place in PLACES:
            if _within(caller, place.caller) and (name in place.called if place.called else _leaves(module, place)):
                return place.origin
    return None


def _leaves(module: str, place: Place) -> bool:
    """Whether a function is outside the part of the SDK that calls it; the SDK's own tools and sessions count too."""
    return not _within(module, place.caller)


def _within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")
