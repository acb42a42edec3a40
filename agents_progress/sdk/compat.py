"""Which SDK releases this package knows, and the one place for what is not plainly public there."""

from __future__ import annotations

import asyncio
import json
import warnings
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from agents_progress.errors import SDKTooOld

FLOOR: Final = (0, 18)
"""Older releases install broken today or hide endings (a pause that looks like success, a cancel that hangs)."""

VERIFIED: Final = ("0.18.3", "0.19.4", "0.20.0", "0.21.1", "0.22.3", "0.23.1", "0.24.0")
"""Releases on which the whole ending table was driven through the real client."""


class UnverifiedSDK(UserWarning):
    """The installed SDK release was never run against the ending table; it is used all the same."""


def installed() -> str | None:
    """The installed release of openai-agents, None when there is none."""
    try:
        return version("openai-agents")
    except PackageNotFoundError:
        return None


def release(text: str) -> tuple[int, ...]:
    """The leading numbers of a version, such as ``(0, 24, 0)``."""
    numbers: list[int] = []
    for part in text.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


@cache
def require_supported() -> None:
    """Refuse a release below the floor; warn once about one that was not verified."""
    found = installed() or "none"
    if release(found) < FLOOR:
        raise SDKTooOld(
            f"openai-agents {found} hides how a run ends; "
            f"install openai-agents>={FLOOR[0]}.{FLOOR[1]} to use agents_progress"
        )
    if found not in VERIFIED:
        warnings.warn(
            f"openai-agents {found} was not verified with agents_progress (verified: {', '.join(VERIFIED)}); "
            "run `agents-progress doctor` to see what differs",
            UnverifiedSDK,
            stacklevel=2,
        )


def run_task(result: Any) -> asyncio.Task[Any] | None:
    """The task that runs the agent loop: `RunResultStreaming.run_loop_task`, public from 0.8 to 0.24.

    Read afresh each time: the SDK replaces it when a sandbox must be cleaned up.
    """
    task: asyncio.Task[Any] | None = result.run_loop_task
    return task


def decision(state: Any, item: Any, tool: str, raw_id: str) -> bool | None:
    """How an interruption was answered in a `RunState`, None while it is not.

    The answers are in the state's `_context` (private, 0.18 to 0.24); those of an interruption inside an agent's tool
    in that of the nested state, which `_find_nested_approval_state` (private, 0.23 and 0.24) finds.
    """
    find = getattr(state, "_find_nested_approval_state", None)
    owner = find(item) if find is not None else None
    context = getattr(state if owner is None else owner[0], "_context", None)
    answer: bool | None = None if context is None else context.is_tool_approved(tool, raw_id)
    return answer


def event_queue(result: Any) -> asyncio.Queue[Any] | None:
    """The queue between the agent loop and `stream_events`: `RunResultStreaming._event_queue`, private, from 0.18 to
    0.24. None in a release that has none; its events are taken from the stream then, which loses some when it fails.
    """
    queue = getattr(result, "_event_queue", None)
    return queue if isinstance(queue, asyncio.Queue) else None


def current_span() -> object:
    """The tracing span around the code that asks; the SDK gives each function tool one of its own, traced or not."""
    from agents.tracing import get_current_span  # versions can be told without loading the SDK

    return get_current_span()


def is_tool_span(span: object) -> bool:
    """Whether a span is a tool's own: `FunctionSpanData.type`, public from 0.18 to 0.24."""
    return getattr(getattr(span, "span_data", None), "type", None) == "function"


def span_failed(span: object) -> bool:
    """Whether a tool's own span holds an error: `Span.error`, public from 0.18 to 0.24. An untraced one never does."""
    return is_tool_span(span) and getattr(span, "error", None) is not None


def is_agent_tool(tool: object) -> bool:
    """Whether `Agent.as_tool` made a tool: `FunctionTool._is_agent_tool`, 0.18 to 0.24; False where it is missing."""
    return bool(getattr(tool, "_is_agent_tool", False))


def origin_of(origin: object) -> str:
    """What an item's public `tool_origin` says, 0.18 to 0.24: function, mcp or agent_as_tool; empty when it is None."""
    kind = getattr(origin, "type", "")
    return str(getattr(kind, "value", kind))


def origin_of_tool(tool: object) -> str:
    """The same of a tool itself: `FunctionTool._tool_origin`, 0.18 to 0.24; empty where it is missing."""
    return origin_of(getattr(tool, "_tool_origin", None))


def timeout_text(tool: object) -> str | None:
    """What the SDK returns for a tool that took too long, None when it would not be the SDK's own words.

    Source: `FunctionTool.timeout_seconds`, `timeout_error_function`, `tool.default_tool_timeout_error_message`, 0.18 to
    0.24.
    """
    from agents import tool as sdk

    seconds = getattr(tool, "timeout_seconds", None)
    make = getattr(sdk, "default_tool_timeout_error_message", None)
    if seconds is None or make is None or getattr(tool, "timeout_error_function", None) is not None:
        return None
    return str(make(tool_name=getattr(tool, "name", ""), timeout_seconds=seconds))


def is_context(value: object) -> bool:
    """Whether an argument is the context that the SDK gives a tool: `RunContextWrapper`, public from 0.18 to 0.24."""
    from agents import RunContextWrapper

    return isinstance(value, RunContextWrapper)


def error_text(context: Any, error: Exception) -> str:
    """What the SDK tells the model of a tool that raised: `default_tool_error_function`, public from 0.18 to 0.24."""
    from agents import default_tool_error_function

    return default_tool_error_function(context, error)


def is_error_text(tool: object, output: str) -> bool:
    """Whether an output is what the SDK's default error function writes, for a tool that uses it.

    Up to 0.22 that is a sentence with the exception's text, since 0.23 a fixed one. Source:
    `default_tool_error_function`, public; `FunctionTool._use_default_failure_error_function` and
    `_failure_error_function`, 0.18 to 0.24.
    """
    from agents import default_tool_error_function

    uses_it = getattr(tool, "_use_default_failure_error_function", True)
    if not uses_it and getattr(tool, "_failure_error_function", None) is not default_tool_error_function:
        return False
    return any(output.startswith(text) if open_ended else output == text for text, open_ended in _error_texts())


_MARK: Final = "\x00"


@cache
def _error_texts() -> tuple[tuple[str, bool], ...]:
    """What the default error function writes, up to the exception's own text, and whether it writes that text."""
    from agents import default_tool_error_function as write
    from agents.exceptions import ModelBehaviorError

    bad_json = ModelBehaviorError("Invalid JSON input for tool")
    bad_json.__cause__ = json.JSONDecodeError(_MARK, "", 0)
    texts: list[tuple[str, bool]] = []
    for error in (Exception(_MARK), bad_json):
        text, mark, _ = str(write(None, error)).partition(_MARK)  # type: ignore[arg-type]
        texts.append((text, bool(mark)))
    return tuple(texts)
