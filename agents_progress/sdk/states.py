"""The state of a paused SDK run as JSON: what it asks, and other arguments for a call that waits, as if the model had
asked for these.

Source of the facts: `RunState.to_json` and `from_json`, public in openai-agents 0.18 to 0.24, and the form of what they
write, as measured on 0.18.3 and 0.24: each call stands in some ten places, an agent's own tool keeps the state of its
run inside that of the run that called it, and since 0.24 `tool_invocations` binds a call's id to its arguments.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agents import RunState

from agents_progress.answers import Edit
from agents_progress.sdk.calls import Call
from agents_progress.sdk.items import field as part_of
from agents_progress.sdk.questions import Question, Taken, asked_by

if TYPE_CHECKING:
    from agents_progress.sdk.base import Carried

_ELSEWHERE: Final = ("session", "conversation_id", "previous_response_id", "auto_previous_response_id")
"""Options of a run under which others than its state hold its calls: a session, or the model's own service."""
_EARLIER: Final = "original_input"
"""In a state: what came before the run. A call in there is another one, whatever its id."""


def stored(state: Any) -> dict[str, Any]:
    """A state as JSON, without what the application gave its tools, in the states of nested runs neither."""
    kept: dict[str, Any] = _without_context(state.to_json(context_serializer=lambda context: {}))
    return kept


def _without_context(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_context(each) for each in value]
    if not isinstance(value, dict):
        return value
    kept = {name: _without_context(each) for name, each in value.items()}
    if "$schemaVersion" in value and isinstance(kept.get("context"), dict):
        kept["context"]["context"] = {}
    return kept


async def loaded(state: dict[str, Any], agent: Any, context: Any) -> Any:
    """The state behind JSON, with the agent that its run was started with, and what its tools get."""
    return await RunState.from_json(agent, state, context_deserializer=lambda stored: context)


def editable(kwargs: Mapping[str, Any]) -> bool:
    """Whether a run that is started with these options keeps its calls in its state alone."""
    return not any(kwargs.get(name) for name in _ELSEWHERE)


def taken(item: Any, state: Any) -> Taken:
    """The arguments with which the call behind an interruption may be approved, by its tool's own schema, and whether
    it needs each; None for a call that cannot be edited: one that is no function's, whose tool names not all of its
    arguments, or that is not found, or more than once, in a state as JSON.
    """
    if part_of(item.raw_item, "type") != "function_call":
        return None
    raw_id, tool, _ = asked_by(item)
    if raw_id is None or _asking(state, raw_id, tool) is None:
        return None
    tools = [each for each in getattr(item.agent, "tools", ()) if getattr(each, "name", None) == item.name]
    schema = getattr(tools[0], "params_json_schema", None) if len(tools) == 1 else None
    if not isinstance(schema, Mapping) or schema.get("additionalProperties"):
        return None
    needed = schema.get("required", ())
    return {str(name): name in needed for name in schema.get("properties", {})}


async def edited(
    state: dict[str, Any], carried: Carried, edits: Mapping[str, Edit], agent: Any, context: Any
) -> tuple[Any, Carried]:
    """A state, given as JSON, and what was carried with it, with other arguments in the calls that were edited.

    ``agent`` is the one that the run was started with, ``context`` what its tools get. What the SDK raises for a state
    that it cannot load is raised.
    """
    questions = [_question(each, edits.get(each.interaction_id)) for each in carried.questions]
    for question in carried.questions:
        if question.interaction_id in edits:
            _rewrite(state, question, edits[question.interaction_id].arguments)
    again = await loaded(state, agent, context)
    texts = {edit.call_id: edit.arguments for edit in edits.values()}
    calls = {within: [_call(call, within, texts) for call in calls] for within, calls in carried.calls.items()}
    return again, replace(carried, calls=calls, questions=asked_in(again, questions))


def asked_in(state: Any, questions: list[Question]) -> list[Question]:
    """The questions with what a loaded state asks; each is about exactly the call that it was about.

    Raises :exc:`LookupError` when the state asks something else.
    """
    waiting = [(asked_by(item), item) for item in state.get_interruptions()]
    found: list[Question] = []
    for question in questions:
        wanted = question.raw_id, question.tool, question.digest
        pair = next((pair for pair in waiting if pair[0] == wanted), None)
        if pair is None:
            raise LookupError("a call differs")
        waiting.remove(pair)
        found.append(replace(question, item=pair[1]))
    if waiting:
        raise LookupError("there is a call more")
    return found


def _question(question: Question, edit: Edit | None) -> Question:
    return question if edit is None else replace(question, digest=edit.digest, details=edit.arguments)


def _call(call: Call, within: str, texts: Mapping[str | None, str]) -> Call:
    named = f"{within}/{call.call_id}" if within else call.call_id
    return replace(call, arguments=texts[named]) if named in texts else call


def _rewrite(state: dict[str, Any], question: Question, arguments: str) -> None:
    """Put other arguments into every place that holds the call of a question."""
    raw_id = question.raw_id or ""
    asking = _asking(state, raw_id, question.tool)
    if asking is None:
        raise LookupError("the call is not in the state")
    for place in list(_places(state, raw_id, question.tool)):
        if place.get("arguments") == question.details:
            place["arguments"] = arguments
    bound = asking.get("context", {}).get("tool_invocations", {})  # made anew when it is approved
    if raw_id in bound and not bound[raw_id].get("executed"):
        del bound[raw_id]


def _asking(state: Any, raw_id: str, tool: str) -> dict[str, Any] | None:
    """The state, this one or one inside it, in which the call waits; None when that is not exactly one."""
    found = [each for each in _states(state) for call in _called(each) if _is(call, raw_id, tool)]
    return found[0] if len(found) == 1 and _said_once(found[0], raw_id, tool) else None


def _said_once(state: Mapping[str, Any], raw_id: str, tool: str) -> bool:
    """Whether the model gave this id to one call of the tool only, in all of the run's turns."""
    items = state.get("generated_items") or ()
    said = [item for item in items if item.get("type") == "tool_call_item" and _is(item.get("raw_item"), raw_id, tool)]
    return len(said) == 1


def _called(state: Mapping[str, Any]) -> Iterator[Any]:
    for run in (state.get("last_processed_response") or {}).get("functions") or ():
        yield run.get("tool_call")


def _states(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if "$schemaVersion" in value:
            yield value
        for name, inner in value.items():
            yield from _states(inner) if name != _EARLIER else ()
    elif isinstance(value, list):
        for inner in value:
            yield from _states(inner)


def _places(value: Any, raw_id: str, tool: str) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        if _is(value, raw_id, tool):
            yield value
        for name, inner in value.items():
            yield from _places(inner, raw_id, tool) if name != _EARLIER else ()
    elif isinstance(value, list):
        for inner in value:
            yield from _places(inner, raw_id, tool)


def _is(value: Any, raw_id: str, tool: str) -> bool:
    return isinstance(value, dict) and value.get("call_id") == raw_id and value.get("name") == tool
