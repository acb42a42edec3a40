"""The surface of the SDK that this package stands on, as plain data, and what differs from the one that was verified.

``python -m agents_progress.sdk.surface > agents_progress/sdk/surface.json`` writes the installed surface as the
verified one. It is read by name from whatever is installed: what is not there is absent, and nothing is called.
"""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from importlib import import_module
from importlib.metadata import version
from importlib.resources import files
from types import NoneType
from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from agents_progress.sdk.failures import named

Facts: TypeAlias = Mapping[str, list[str]]

EVENTS_MODULE: Final = "openai.types.responses"
EXCEPTION_MODULES: Final = (
    "agents.exceptions",
    "agents.models.openai_responses",
    "agents.sandbox.errors",
    "agents.sandbox.session.dependencies",
    "agents.testing",
    "openai",
    "openai.lib.azure",
    "httpx",
    "httpx2",
    "mcp",
)
"""Where the exceptions of a run are defined, or handed on by the package that defines them."""

OURS: Final = ("agents.", "openai")
"""What `doctor` compares; the releases of the others come and go on their own, and not all are installed."""

ATTRIBUTES: Final[Mapping[str, tuple[str, ...]]] = {
    "agents.result": ("RunResultStreaming", "RunResult"),
    "agents.run_state": ("RunState",),
    "agents.run_context": ("RunContextWrapper",),
    "agents.tool": ("FunctionTool",),
    "agents.tool_context": ("ToolContext",),
    "agents.stream_events": ("RawResponsesStreamEvent", "RunItemStreamEvent", "AgentUpdatedStreamEvent"),
    "agents.items": ("ModelResponse", "ToolCallItem", "ToolCallOutputItem", "HandoffOutputItem", "ToolApprovalItem"),
    "agents.guardrail": ("InputGuardrailResult", "OutputGuardrailResult", "GuardrailFunctionOutput"),
    EVENTS_MODULE: ("Response", "ResponseUsage", "ResponseError"),
}
"""Classes whose public attributes count, and those private ones that are needed."""

SIGNATURES: Final[Mapping[str, tuple[str, ...]]] = {
    "agents.lifecycle": ("RunHooksBase", "AgentHooksBase"),
    "agents.result": ("RunResultStreaming",),
    "agents.run_state": ("RunState",),
    "agents.run": ("Runner", "AgentRunner", "get_default_agent_runner", "set_default_agent_runner"),
    "agents.tracing": ("get_current_span",),
}
"""Classes and functions whose parameters count."""

CONSEQUENCES: Final[Mapping[str, str]] = {
    "raw event": "ignored, as note.unknown_raw, until this library knows it",
    "run item event": "a run with it is never shown as done until this library knows it",
    "run item": "its events decide how it is shown",
    "stream event": "a run with it is never shown as done until this library knows it",
    "response code": "reported as model_failed until this library knows it",
    "limit": "reported as it is",
    "exception": "reported as {code}",
    "attribute": "not read",
    "parameter": "handed on as it is",
}
"""Section to what becomes of something new in it."""

_FACTS: Final = "it is part of how an ending is decided"
_ENDS: Final = "it says how a model response ended"
_CALL: Final = "a call is intercepted with it"
_HOOK: Final = "it says when a tool or an agent really starts or ends"

NEEDS: Final[Mapping[str, Mapping[str, str]]] = {
    "attribute": {
        "RunResultStreaming.stream_events": "the events come from it",
        "RunResultStreaming.cancel": "a run is stopped with it",
        "RunResultStreaming.to_state": "a paused run is continued with it",
        "RunResultStreaming.run_loop_task": "it says when the run has really stopped",
        "RunResultStreaming.run_loop_exception": _FACTS,
        "RunResultStreaming.is_complete": _FACTS,
        "RunResultStreaming.interruptions": _FACTS,
        "RunResultStreaming.final_output": _FACTS,
        "RunResultStreaming.current_turn": _FACTS,
        "RunResultStreaming.max_turns": _FACTS,
        "RunResultStreaming.input_guardrail_results": _FACTS,
        "RunResultStreaming.output_guardrail_results": "it names the guardrail that stopped a run",
        "RunResultStreaming.current_agent": "it names the agent that a run starts with",
        "RunResultStreaming._event_queue": "events are taken there before a failure throws them away",
        "RunResultStreaming.context_wrapper": "it says which calls a person refused",
        "RunResult.context_wrapper": "it says which calls a person refused",
        "RunResult.to_state": "a paused run is continued with it",
        "RunResult.interruptions": _FACTS,
        "RunResult.final_output": _FACTS,
        "RunResult.input_guardrail_results": _FACTS,
        "RunResult.output_guardrail_results": "it names the guardrail that stopped a run",
        "RunResult.new_items": "it holds the outputs that no hook tells of",
        "RunState._context": "it holds the answers to approvals",
        "ModelResponse.output": "a response that is not streamed is read from it",
        "ModelResponse.usage": "tokens are counted from it",
        "RunContextWrapper.is_tool_approved": "it says which approvals were given",
        "RunState.to_json": "what a paused run leaves behind is written with it",
        "RunState.from_json": "a run that paused elsewhere is continued with it",
        "RunState.get_interruptions": "it says what a stored run waits for",
        "FunctionTool.params_json_schema": "it names the arguments that a call may be approved with",
        "RunState.approve": "an approval is given with it",
        "RunState.reject": "an approval is refused with it",
        "ToolContext.tool_call_id": "it says which call a hook is about",
        "ToolContext.tool_arguments": "it holds the arguments of a call",
        "RawResponsesStreamEvent.data": "raw events are read from it",
        "RunItemStreamEvent.name": "run items are told apart by it",
        "RunItemStreamEvent.item": "run items are read from it",
        "AgentUpdatedStreamEvent.new_agent": "handoffs are read from it",
        "ToolCallItem.raw_item": "tool calls are read from it",
        "ToolCallOutputItem.output": "tool outputs are read from it",
        "HandoffOutputItem.source_agent": "handoffs are read from it",
        "HandoffOutputItem.target_agent": "handoffs are read from it",
        "ToolApprovalItem.name": "it names the tool that waits for an approval",
        "ToolApprovalItem.arguments": "it says what is to be approved",
        "GuardrailFunctionOutput.tripwire_triggered": _FACTS,
        "Response.status": _FACTS,
        "Response.output": _FACTS,
        "Response.incomplete_details": "it names the limit that cut a response short",
        "Response.error": "it says why a response failed",
        "Response.usage": "tokens are counted from it",
    },
    "parameter": {
        "AgentRunner.run_streamed(starting_agent)": _CALL,
        "AgentRunner.run_streamed(input)": "a paused run is continued with it",
        "AgentRunner.run(starting_agent)": _CALL,
        "AgentRunner.run(input)": "a paused run is continued with it",
        "AgentRunner.run_sync(starting_agent)": _CALL,
        "RunHooksBase.on_tool_start(context)": _HOOK,
        "RunHooksBase.on_tool_end(context)": _HOOK,
        "RunHooksBase.on_agent_end(context)": _HOOK,
        "RunHooksBase.on_llm_start(context)": _HOOK,
        "RunHooksBase.on_llm_end(response)": "a response that is not streamed is read from it",
        "RunHooksBase.on_agent_start(agent)": "the agent of a run that is not streamed is read from it",
        "RunHooksBase.on_handoff(to_agent)": "handoffs of a run that is not streamed are read from it",
        "RunState.reject(rejection_message)": "a model is told with it why a call was refused",
        "RunResultStreaming.cancel(mode)": "a run is stopped after its turn with it",
        "set_default_agent_runner(runner)": "calls are intercepted with it",
    },
    "raw event": {
        "response.created": "it begins a model response",
        "response.completed": _ENDS,
        "response.incomplete": _ENDS,
        "response.failed": _ENDS,
        "error": _ENDS,
        "response.output_text.delta": "the answer is read from it",
        "response.output_text.done": "the answer is read from it",
        "response.output_item.added": "items are told apart by it",
        "response.output_item.done": "items are told apart by it",
    },
    "run item event": {
        "tool_called": "tool calls are read from it",
        "tool_output": "tool outputs are read from it",
        "message_output_created": "answers that were not streamed are read from it",
    },
    "exception": {"agents.MaxTurnsExceeded": _FACTS},
}
"""Section, fact, and what this package needs it for. Without it a run may be told wrongly."""


class Difference(NamedTuple):
    """One thing that is `new`, `gone` without harm, or `lost`: gone though this package needs it."""

    kind: Literal["lost", "new", "gone"]
    section: str
    fact: str
    about: str = ""

    def __str__(self) -> str:
        return f"{self.kind:<4}  {self.section} {self.fact}" + (f": {self.about}" if self.about else "")


def differences(verified: Facts, installed: Facts) -> list[Difference]:
    """What the installed surface has and has not, compared with the verified one; what was lost comes first."""
    found: list[Difference] = []
    for section in CONSEQUENCES:
        before, now = set(verified.get(section, ())), set(installed.get(section, ()))
        needs = NEEDS.get(section, {})
        found += [Difference("lost", section, fact, needs[fact]) for fact in needs if fact not in now]
        found += [Difference("new", section, fact, _consequence(section, fact)) for fact in now - before]
        found += [Difference("gone", section, fact) for fact in before - now - set(needs)]
    order = ("lost", "new", "gone")
    return sorted(found, key=lambda item: (order.index(item.kind), item.section, item.fact))


def _consequence(section: str, fact: str) -> str:
    if section != "exception":
        return CONSEQUENCES[section]
    code = next((named(cls)[1] for cls in exception_classes() if _full_name(cls) == fact), "unexpected")
    return CONSEQUENCES[section].format(code=code)  # a base class may have decided it


def verified_surface() -> dict[str, Any]:
    """The surface that was verified: the releases under `of`, the facts under `facts`."""
    text = files("agents_progress").joinpath("sdk/surface.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def surface() -> dict[str, list[str]]:
    """The surface of the installed SDK and client: section to its facts, sorted. Raises ImportError without an SDK."""
    import_module("agents")
    return {section: sorted(set(read())) for section, read in _READERS.items()}


def exception_classes() -> list[type[BaseException]]:
    """The public exception classes of the SDK, the client and what carries their requests."""
    found: set[type[BaseException]] = set()
    for name in EXCEPTION_MODULES:
        for member in list(vars(_module(name)).values()):
            if isinstance(member, type) and issubclass(member, Exception) and not issubclass(member, Warning):
                same = member.__module__.partition(".")[0] == name.partition(".")[0]
                found |= {member} if same and not member.__name__.startswith("_") else set()
    return sorted(found, key=_full_name)


# Reading what is installed.


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError:
        return NoneType  # has none of the names that are looked for


def _full_name(cls: type) -> str:
    """Package and class: in which of its modules a package defines a class is its own affair."""
    return f"{cls.__module__.partition('.')[0]}.{cls.__name__}"


def _members(module: str, name: str) -> Iterator[Any]:
    """The classes of a union that a module defines, however it is nested and annotated."""
    waiting = [getattr(_module(module), name, None)]
    while waiting:
        item = waiting.pop()
        if isinstance(item, type) and not get_args(item):
            yield item
        waiting += [part for part in get_args(item) if get_args(part) or isinstance(part, type)]


def _literals(annotation: Any) -> Iterator[str]:
    """The texts of a literal, however it is nested."""
    for part in get_args(annotation):
        if isinstance(part, str):
            yield part
        yield from _literals(part)


def _annotation(module: str, name: str, field: str) -> Any:
    cls: Any = getattr(_module(module), name, None)
    if hasattr(cls, "model_fields"):
        return getattr(cls.model_fields.get(field), "annotation", None)
    return inspect.get_annotations(cls, eval_str=True).get(field) if isinstance(cls, type) else None


def _raw_events() -> Iterator[str]:
    for cls in _members(EVENTS_MODULE, "ResponseStreamEvent"):
        yield from _literals(cls.model_fields["type"].annotation)


def _classes_of(module: str, name: str) -> Iterable[str]:
    return [f"{cls.__name__} ({getattr(cls, 'type', '')})" for cls in _members(module, name)]


def _attributes() -> Iterator[str]:
    for module, names in ATTRIBUTES.items():
        for name in names:
            cls: Any = getattr(_module(module), name, NoneType)
            own = cls.model_fields if hasattr(cls, "model_fields") else {*dir(cls), *_field_names(cls)}
            found = (f"{name}.{attribute}" for attribute in own)
            yield from (fact for fact in found if "._" not in fact or fact in NEEDS["attribute"])


def _field_names(cls: type) -> list[str]:
    return [item.name for item in fields(cls)] if is_dataclass(cls) else []


def _parameters() -> Iterator[str]:
    for module, names in SIGNATURES.items():
        for name in names:
            found = getattr(_module(module), name, None)
            for path, function in _functions(name, found):
                parameters = [item for item in inspect.signature(function).parameters if item != "self"]
                yield from (f"{path}({parameter})" for parameter in parameters)


def _functions(name: str, found: Any) -> Iterator[tuple[str, Any]]:
    if inspect.isclass(found):
        for method in dir(found):
            function = getattr(found, method)
            if not method.startswith("_") and (inspect.isfunction(function) or inspect.ismethod(function)):
                yield f"{name}.{method}", function
    elif found is not None:
        yield name, found


_READERS: Final[Mapping[str, Callable[[], Iterable[str]]]] = {
    "raw event": _raw_events,
    "run item event": lambda: _literals(_annotation("agents.stream_events", "RunItemStreamEvent", "name")),
    "run item": lambda: _classes_of("agents.items", "RunItem"),
    "stream event": lambda: _classes_of("agents.stream_events", "StreamEvent"),
    "response code": lambda: _literals(_annotation(EVENTS_MODULE, "ResponseError", "code")),
    "limit": lambda: _literals(_annotation(f"{EVENTS_MODULE}.response", "IncompleteDetails", "reason")),
    "exception": lambda: [_full_name(cls) for cls in exception_classes() if cls.__module__.startswith(OURS)],
    "attribute": _attributes,
    "parameter": _parameters,
}
"""Section to how its facts are read."""


if __name__ == "__main__":
    releases = {package: version(package) for package in ("openai-agents", "openai")}
    sys.stdout.write(json.dumps({"of": releases, "facts": surface()}, indent=1) + "\n")
