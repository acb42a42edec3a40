"""What is known of how a tool's call ended, beyond that it gave an output.

The SDK hands the errors of tools to the model as text, and says `tool_output` whatever happened. The evidence, best
first, on openai-agents 0.18 to 0.24:

- the status of the output item: shell and patch tools say `failed` there;
- the tool's own tracing span, which holds the error when the run is traced;
- the output itself, when it is word for word what the SDK's own error or timeout function writes;
- for a failure that ends the run, the span or the exception, which names the tool.

What nobody can see: with tracing disabled, an error that the application's own failure function (or, since 0.24, its
error formatter) put into words, and an error of a custom tool, whose text is the exception's alone; traced or not, a
timeout that the application's own timeout function put into words, and an error result of a local MCP server's tool. A
call of this kind is shown as returned, which is all that is known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agents_progress.sdk import compat
from agents_progress.sdk.items import field, timed_out

LOCAL: Final[Mapping[str, str]] = {
    "computer": "computer",
    "computer_use_preview": "computer",
    "shell": "shell",
    "local_shell": "shell",
    "apply_patch": "patch",
}
"""Tool name to kind of the tools whose hooks do not say which call they belong to."""

_ORIGINS: Final[Mapping[str, str]] = {"agent_as_tool": "agent", "mcp": "mcp"}
_UNSEEN_STARTS: Final = frozenset(
    {"computer_call_output", "shell_call_output", "local_shell_call_output", "apply_patch_call_output"}
)
_ENDS_THE_RUN: Final = frozenset({"tool_error", "tool_timeout", "tool_guardrail", "hook_error"})


def kind_of_item(item: Any) -> str | None:
    """The kind that a call's run item tells, None when it tells no more than its raw item."""
    return _ORIGINS.get(compat.origin_of(getattr(item, "tool_origin", None)))


def kind_of_tool(tool: Any) -> str:
    """The kind of a tool that a hook names."""
    if not hasattr(tool, "params_json_schema"):
        return "custom"
    return "agent" if compat.is_agent_tool(tool) else _ORIGINS.get(compat.origin_of_tool(tool), "function")


def failure_of_return(tool: Any, span: object, output: Any) -> str | None:
    """The code of the failure behind what a tool's hook was given as output; None when there is no sign of one."""
    if isinstance(output, str) and output == compat.timeout_text(tool):
        return "tool_timeout"
    if compat.span_failed(span) or (isinstance(output, str) and compat.is_error_text(tool, output)):
        return "tool_error"
    return None


def failure_of_item(raw: Any) -> str | None:
    """The code of the failure that an output item tells."""
    if timed_out(raw):
        return "tool_timeout"
    return "tool_error" if field(raw, "status") in ("failed", "incomplete") else None


def failure_of_output(item: Any, tool: Any) -> str | None:
    """The code of the failure that a run item of an output tells, by itself or by what its tool would write."""
    found = failure_of_item(item.raw_item)
    return found if found is not None or tool is None else failure_of_return(tool, None, item.output)


def tool_behind(item: Any, name: str) -> Any:
    """The tool of the item's agent with a name; None when it has none, such as a tool of an MCP server."""
    tools = getattr(getattr(item, "agent", None), "tools", None) or ()
    return next((tool for tool in tools if getattr(tool, "name", None) == name), None)


def guarded(item: Any, tool: Any) -> bool | None:
    """Whether the tool behind an output item has input guardrails. None when the item is of a kind whose starts are not
    seen, so that a missing start proves nothing.
    """
    if field(item.raw_item, "type") in _UNSEEN_STARTS:
        return None
    return bool(getattr(tool, "tool_input_guardrails", None))


def blamed(error: BaseException | None, code: str, running: Mapping[str, tuple[Any, object]]) -> dict[str, str]:
    """Call id to code of those running calls whose own failure is known when the run has ended.

    ``running`` gives the tool and its span for each.
    """
    found = [call_id for call_id, (_, span) in running.items() if compat.span_failed(span)]
    if not found and error is not None:
        named = [call_id for call_id, (tool, _) in running.items() if _names(error, tool)]
        found = named if len(named) == 1 else []
    return dict.fromkeys(found, code if code in _ENDS_THE_RUN and error is not None else "tool_error")


def _names(error: BaseException, tool: Any) -> bool:
    """Whether an exception names a tool: by its name, or by the output guardrail that stopped its result."""
    return (
        getattr(error, "tool_name", None) == tool.name
        or (error.__cause__ is not None and str(error).startswith(f"Error running tool {tool.name}: "))
        or getattr(error, "guardrail", error) in (getattr(tool, "tool_output_guardrails", None) or ())
    )
