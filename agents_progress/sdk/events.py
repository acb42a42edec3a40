"""The tables of translation: for every raw event type, every item of a response and every run item name the step that
translates it, or why it is dropped.

Dispatch is on `type` strings and never on classes: the openai client parses unknown raw events and items into classes
they are not (openai 3.57: `ResponseAudioDeltaEvent`, `ResponseOutputMessage`).

Function calls give their arguments whole, when they are claimed, because before that they have no row: the model may
still be writing a call that is never made. Hosted calls have their row from the start, so theirs are passed on as they
come.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from agents_progress.sdk.steps import Drafts, Steps

Step: TypeAlias = Callable[[Steps, Any], Drafts]

RAW_EVENTS: Final[Mapping[str, Step | str]] = {
    "response.queued": "not started yet",
    "response.created": Steps.response_created,
    "response.in_progress": "says no more than created",
    "response.completed": Steps.response_terminal,
    "response.incomplete": Steps.response_terminal,
    "response.failed": Steps.response_terminal,
    "error": Steps.response_terminal,
    "response.output_item.added": Steps.item_added,
    "response.output_item.done": "what it says stands by item, in OUTPUT_ITEMS",
    "response.content_part.added": "its deltas and its end say it",
    "response.content_part.done": "its text event says it",
    "response.output_text.delta": Steps.text_delta,
    "response.output_text.done": Steps.text_done,
    "response.output_text.annotation.added": Steps.annotation_added,
    "response.refusal.delta": Steps.refusal_delta,
    "response.refusal.done": Steps.refusal_done,
    "response.reasoning_text.delta": Steps.reasoning_delta,
    "response.reasoning_text.done": Steps.reasoning_done,
    "response.reasoning_summary_part.added": Steps.reasoning_part_added,
    "response.reasoning_summary_part.done": "its text event says it",
    "response.reasoning_summary_text.delta": Steps.reasoning_delta,
    "response.reasoning_summary_text.done": Steps.reasoning_done,
    "response.function_call_arguments.delta": "arguments are said whole, when the call is claimed",
    "response.function_call_arguments.done": "the finished item says it",
    "response.custom_tool_call_input.delta": "arguments are said whole, when the call is claimed",
    "response.custom_tool_call_input.done": "the finished item says it",
    "response.mcp_call_arguments.delta": Steps.hosted_argument,
    "response.mcp_call_arguments.done": Steps.mcp_arguments,
    "response.mcp_call.in_progress": Steps.hosted_progress,
    "response.mcp_call.completed": "the finished item says it",
    "response.mcp_call.failed": Steps.hosted_failed,
    "response.mcp_list_tools.in_progress": Steps.hosted_progress,
    "response.mcp_list_tools.completed": "the finished item says it",
    "response.mcp_list_tools.failed": Steps.hosted_failed,
    "response.web_search_call.in_progress": Steps.hosted_progress,
    "response.web_search_call.searching": Steps.hosted_progress,
    "response.web_search_call.completed": "the finished item says it",
    "response.file_search_call.in_progress": Steps.hosted_progress,
    "response.file_search_call.searching": Steps.hosted_progress,
    "response.file_search_call.completed": "the finished item says it",
    "response.code_interpreter_call.in_progress": Steps.hosted_progress,
    "response.code_interpreter_call.interpreting": Steps.hosted_progress,
    "response.code_interpreter_call.completed": "the finished item says it",
    "response.code_interpreter_call_code.delta": Steps.hosted_argument,
    "response.code_interpreter_call_code.done": Steps.code_written,
    "response.image_generation_call.in_progress": Steps.hosted_progress,
    "response.image_generation_call.generating": Steps.hosted_progress,
    "response.image_generation_call.partial_image": "previews never travel in an event",
    "response.image_generation_call.completed": "the finished item says it",
    "response.shell_call_command.added": "its commands are said whole, when the call is claimed",
    "response.shell_call_command.delta": "its commands are said whole, when the call is claimed",
    "response.shell_call_command.done": "its commands are said whole, when the call is claimed",
    "response.shell_call_output_content.delta": "the item that answers says it",
    "response.shell_call_output_content.done": "the item that answers says it",
    "response.compaction.compacting": "changes the context, not the run",
    "response.audio.delta": "sound never travels in an event",
    "response.audio.done": "sound never travels in an event",
    "response.audio.transcript.delta": Steps.transcript_delta,
    "response.audio.transcript.done": Steps.transcript_done,
}
"""Every raw type of openai 3.57: what translates it, or why it is dropped."""

OUTPUT_ITEMS: Final[Mapping[str, Step | str]] = {
    "message": Steps.message_done,
    "reasoning": Steps.reasoning_item_done,
    "function_call": Steps.call_done,
    "custom_tool_call": Steps.call_done,
    "computer_call": Steps.call_done,
    "shell_call": Steps.call_done,
    "local_shell_call": Steps.call_done,
    "apply_patch_call": Steps.call_done,
    "mcp_call": Steps.call_done,
    "mcp_list_tools": Steps.call_done,
    "web_search_call": Steps.call_done,
    "file_search_call": Steps.call_done,
    "code_interpreter_call": Steps.call_done,
    "image_generation_call": Steps.call_done,
    "tool_search_call": Steps.call_done,
    "program": Steps.call_done,
    "shell_call_output": Steps.answer_done,
    "program_output": Steps.answer_done,
    "tool_search_output": "its call says it",
    "function_call_output": "the run item of an output says it",
    "custom_tool_call_output": "the run item of an output says it",
    "computer_call_output": "the run item of an output says it",
    "local_shell_call_output": "the run item of an output says it",
    "apply_patch_call_output": "the run item of an output says it",
    "mcp_approval_request": "the interruptions after the drain say it",
    "mcp_approval_response": "the interruptions after the drain say it",
    "additional_tools": "what may be called next, and not what was done",
    "compaction": "changes the context, not the run",
}
"""Every type of a finished item of a response, openai 3.57."""

RUN_ITEMS: Final[Mapping[str, Step | str]] = {
    "message_output_created": Steps.message_created,
    "reasoning_item_created": "its raw events say it",
    "tool_called": Steps.tool_called,
    "tool_output": Steps.tool_output,
    "handoff_requested": Steps.handoff_requested,
    "handoff_occured": Steps.handoff_done,
    "handoff_occurred": Steps.handoff_done,
    "tool_search_called": Steps.tool_called,
    "tool_search_output_created": "its call says it",
    "mcp_list_tools": Steps.tool_called,
    "mcp_approval_requested": "the interruptions after the drain say it",
    "mcp_approval_response": "the interruptions after the drain say it",
}
"""Every run item name of openai-agents 0.24, and the right spelling of the misspelt one."""
