"""A paused SDK run as JSON, and back: the state, the calls that wait and the questions about them.

Source of the facts: `RunState.to_json` and `from_json`, public in openai-agents 0.18 to 0.24. The application's context
is not in the state, nor in that of a nested run: the application's function makes it anew when it is called again, or
it is kept beside the state, as JSON of the application's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agents_progress.errors import NotResumableHere
from agents_progress.sdk.base import Carried
from agents_progress.sdk.calls import Call
from agents_progress.sdk.items import field as part_of
from agents_progress.sdk.questions import Question
from agents_progress.sdk.states import asked_in, stored
from agents_progress.sdk.states import loaded as loaded_state

_CALL = ("call_id", "raw_id", "name", "kind", "arguments")
_QUESTION = (
    "interaction_id", "call_id", "raw_id", "tool", "title", "digest", "details", "blind", "expires_at", "kind", "takes",
    "options_in",
)  # fmt: skip


def left(state: Any, carried: Carried) -> dict[str, Any]:
    """What another process needs to go on."""
    return {
        "state": stored(state),
        "calls": {
            within: [
                {name: getattr(call, name) for name in _CALL} | {"entered": call.entered or call.started is not None}
                for call in calls
            ]
            for within, calls in carried.calls.items()
        },
        "questions": [{name: getattr(question, name) for name in _QUESTION} for question in carried.questions],
        "asked": carried.asked,
    }


async def loaded(run_id: str, agent: Any, context: Any, kept: Mapping[str, Any]) -> tuple[Any, Carried]:
    """The state and what was carried, with the agent that the function has now, and a context for its tools.

    Raises :exc:`NotResumableHere` when the state cannot be loaded, a tool is missing, or a call is not what was asked.
    """
    try:
        state = await loaded_state(kept["state"], agent, context)
    except Exception as error:
        raise NotResumableHere(run_id, "state") from error
    try:
        questions = asked_in(state, [Question(**fields, item=None) for fields in kept["questions"]])
    except LookupError as error:
        raise NotResumableHere(run_id, "call_differs") from error
    for question in questions:
        await _require_tool(run_id, question, context)
    calls = {within: [Call(**call) for call in calls] for within, calls in kept["calls"].items()}
    return state, Carried(calls, questions, kept["asked"])


async def _require_tool(run_id: str, question: Question, context: Any) -> None:
    """Refuse a function call whose tool its agent has no more."""
    from agents import RunContextWrapper

    if part_of(question.item.raw_item, "type") not in ("function_call", "custom_tool_call"):
        return
    try:
        tools = await question.item.agent.get_all_tools(RunContextWrapper(context))
    except Exception as error:
        raise NotResumableHere(run_id, "tool") from error
    names = {str(getattr(tool, "name", "")) for tool in tools}
    if not {question.item.name, getattr(question.item, "tool_name", None)} & names:
        raise NotResumableHere(run_id, "tool")
