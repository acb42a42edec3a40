"""The calls among the items of a model response: what their rows are called, where their tool runs, what they were
given.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from agents_progress.unicode import valid

KINDS: Final[Mapping[str, tuple[str, str | None]]] = {
    "function_call": ("function", None),
    "custom_tool_call": ("custom", None),
    "computer_call": ("computer", "computer"),
    "shell_call": ("shell", "shell"),
    "local_shell_call": ("shell", "local_shell"),
    "apply_patch_call": ("patch", "apply_patch"),
    "mcp_call": ("mcp", None),
    "mcp_list_tools": ("mcp", "list_tools"),
    "web_search_call": ("hosted", "web_search"),
    "file_search_call": ("hosted", "file_search"),
    "code_interpreter_call": ("hosted", "code_interpreter"),
    "image_generation_call": ("hosted", "image_generation"),
    "tool_search_call": ("hosted", "tool_search"),
    "program": ("hosted", "program"),
}
"""Raw item type to the kind of its row, and the tool's name where the item carries none."""

HOSTED: Final = frozenset(name for name, (kind, _) in KINDS.items() if kind in ("hosted", "mcp"))
"""Items whose tool runs on the model's side: their raw item is their only evidence."""

ANSWERED: Final[Mapping[str, str]] = {"shell_call": "shell_call_output", "program": "program_output"}
"""Hosted items that only ask: another item, with the same call id, says how it ended."""

_ARGUMENTS: Final = ("arguments", "input", "code", "operation", "action", "actions", "queries")
"""Where an item holds what its tool was given; no item holds it in more than one of them."""


def field(raw: Any, name: str) -> Any:
    """A field of a raw item, which is an object or a dict."""
    return raw.get(name) if isinstance(raw, dict) else getattr(raw, name, None)


def is_hosted(raw: Any) -> bool:
    """Whether an item is a call whose tool runs on the model's side. A shell does when it names a container."""
    kind = field(raw, "type")
    return kind in HOSTED or (
        kind == "shell_call" and field(field(raw, "environment"), "type") == "container_reference"
    )


def raw_id_of(raw: Any) -> Any:
    """The id under which a call's announcements meet: its call id, however bad, where it has that field at all."""
    has_call_id = "call_id" in raw if isinstance(raw, dict) else hasattr(raw, "call_id")
    return field(raw, "call_id" if has_call_id else "id")


def arguments_of(raw: Any) -> str | None:
    """What a call's tool is given: a text as it is, anything else as JSON. None when the item does not say it."""
    value = next((value for name in _ARGUMENTS if (value := field(raw, name))), None)
    if value is None or isinstance(value, str):
        return None if value is None else valid(value)
    try:
        return valid(json.dumps(_plain(value), ensure_ascii=False))
    except (TypeError, ValueError):
        return None


def timed_out(raw: Any) -> bool:
    """Whether an item of a shell's output says that a command took longer than it may."""
    return field(raw, "type") == "shell_call_output" and any(
        field(field(part, "outcome"), "type") == "timeout" for part in field(raw, "output") or ()
    )


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    dump = getattr(value, "model_dump", None)
    return value if dump is None else dump(mode="json", exclude_none=True, warnings=False)
