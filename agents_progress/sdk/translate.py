"""SDK events in, our drafts out: the only place that knows the shapes of SDK events. No I/O, no clock of its own, no
SDK import.

Dispatch is on `type` strings and never on classes: the openai client parses unknown raw events and items into classes
they are not (openai 3.57: `ResponseAudioDeltaEvent`, `ResponseOutputMessage`). Two tables say what happens to each raw
event type and each run item name; what stands in neither is counted as unknown. An unknown raw event is a note; an
unknown run item or stream event blocks success unless the application allowed it.

Sources: openai-agents 0.18 to 0.24 `agents.stream_events`, openai 2.54 to 3.57 `openai.types.responses`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias

from agents_progress.disclosure import Draft
from agents_progress.outcome import ResponseEvent, ResponseQuality
from agents_progress.sdk.calls import HOSTED, KINDS, Calls
from agents_progress.sdk.text import Ids, Texts, message_texts
from agents_progress.sdk.usage import Usage
from agents_progress.unicode import name_of

Drafts: TypeAlias = Iterable[Draft]


class Translator:
    """Translates one run. Besides the drafts it keeps the facts that only the raw events tell: how the last model
    response ended, with which status, and whether the last message was a refusal.
    """

    def __init__(
        self,
        agent: str,
        *,
        title_of: Callable[[str], str] = str,
        monotonic: Callable[[], float] = time.monotonic,
        hooked: bool = True,
        block_unknown: bool = True,
    ) -> None:
        self.agent = agent
        self.calls = Calls(monotonic, title_of, hooked)
        self.usage = Usage()
        self.last_event: ResponseEvent = "none"
        self.last_reason: str | None = None
        self.last_code: str | None = None
        self.last_quality: ResponseQuality = "ok"
        self.refusal: str | None = None
        self._texts = Texts()
        self._responses = Ids("resp")
        self._response_id: str | None = None
        self._pending_handoffs: list[tuple[str, str]] = []
        self._block_unknown = block_unknown
        self._noted: set[str] = set()

    def translate(self, events: Iterator[Any]) -> Drafts:
        """The drafts of SDK stream events, in order. Answer deltas that follow each other, most of what most runs say,
        are taken together.
        """
        deltas: list[Any] = []
        for event in events:
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                deltas.append(event.data)
                continue
            if deltas:
                yield from self._texts.answer_deltas(deltas)
                deltas = []
            yield from self._one(event)
        if deltas:
            yield from self._texts.answer_deltas(deltas)

    def _one(self, event: Any) -> Drafts:
        if event.type == "raw_response_event":
            step = RAW_EVENTS.get(event.data.type)
            if step is None:
                return self._unknown_raw(event.data.type)
            return step(self, event.data) if callable(step) else ()
        if event.type == "run_item_stream_event":
            about = RUN_ITEMS.get(event.name)
            if about is None:
                return self.unsupported("run_item", str(event.name))
            return about(self, event.item) if callable(about) else ()
        if event.type == "agent_updated_stream_event":
            return self._agent_updated(str(event.new_agent.name))
        return self.unsupported("stream_event", str(event.type))

    def unsupported(self, what: str, name: str) -> Drafts:
        """Something this release does not know, which may change what the run means."""
        payload = {"what": what, "name": name_of(name)[:128]}
        return (("adapter.unsupported" if self._block_unknown else "note.unsupported", payload),)

    def llm_started(self) -> Drafts:
        """The hook before a model call: one more call whose usage must arrive."""
        self.usage.begun += 1
        return ()

    def run_ended(self, kind: str) -> Iterator[Draft]:
        """What is said last: rows that were never executed, and the usage that never arrived."""
        if self._response_id is not None:
            yield from self.calls.response_ended(completed=False)
        yield from self.calls.run_ended(kind)
        if self.usage.begun > self.usage.ended:
            yield "usage.updated", self.usage.payload()

    # Raw events of model responses.

    def _response_created(self, data: Any) -> Iterator[Draft]:
        self._texts.begin_response()
        self._response_id = self._responses.take(getattr(data.response, "id", None))
        self.usage.begun = max(self.usage.begun, self.usage.ended + 1)
        yield "model.started", {"response_id": self._response_id}

    def _response_terminal(self, data: Any) -> Iterator[Draft]:
        response = getattr(data, "response", None)
        self.last_event = _TERMINALS[data.type]
        self.last_reason = getattr(getattr(response, "incomplete_details", None), "reason", None)
        error = getattr(response, "error", None) if response is not None else data
        self.last_code = getattr(error, "code", None)
        self.last_quality = _quality(self.last_event, response)
        payload: dict[str, Any] = {
            "response_id": self._response_id or self._responses.take(getattr(response, "id", None))
        }
        if self.last_reason:
            payload["reason"] = name_of(self.last_reason)[:128]
        if self.last_code:
            payload["code"] = name_of(self.last_code)[:128]
        self._response_id = None
        yield from self.calls.response_ended(completed=self.last_quality == "ok")
        yield _MODEL_ENDS[self.last_quality], payload
        self.usage.add(getattr(response, "usage", None))
        yield "usage.updated", self.usage.payload()

    def _text_delta(self, data: Any) -> Drafts:
        return self._texts.answer_deltas([data])

    def _refusal_delta(self, data: Any) -> Drafts:
        return (self._texts.delta(data.output_index, data.item_id, data.delta, "refusal"),)

    def _reasoning_delta(self, data: Any) -> Drafts:
        return (self._texts.delta(data.output_index, data.item_id, data.delta, "reasoning"),)

    def _text_done(self, data: Any) -> Drafts:
        return self._texts.part_done(data.output_index, data.item_id, data.content_index, data.text, "answer")

    def _refusal_done(self, data: Any) -> Drafts:
        return self._texts.part_done(data.output_index, data.item_id, data.content_index, data.refusal, "refusal")

    def _reasoning_done(self, data: Any) -> Drafts:
        part: int = data.summary_index if "summary" in data.type else data.content_index
        return self._texts.part_done(data.output_index, data.item_id, part, data.text, "reasoning")

    def _item_added(self, data: Any) -> Drafts:
        return self.calls.hosted_begun(data.item) if data.item.type in HOSTED else ()

    def _item_done(self, data: Any) -> Drafts:
        item, kind = data.item, data.item.type
        if kind == "message":
            return self._texts.item_done(data.output_index, item)
        if kind in HOSTED:
            return self.calls.hosted_done(item)
        if kind in KINDS:
            self.calls.seen_raw(item)
        return ()

    def _hosted_progress(self, data: Any) -> Drafts:
        return self.calls.hosted_progress(data.item_id)

    def _unknown_raw(self, type_: str) -> Drafts:
        name = name_of(type_)[:128]
        if name in self._noted or len(self._noted) >= _NOTED_AT_MOST:
            return ()
        self._noted.add(name)
        return (("note.unknown_raw", {"name": name}),)

    # Run items and agents.

    def _message_created(self, item: Any) -> Drafts:
        raw = item.raw_item
        if getattr(raw, "type", None) != "message":
            return self.unsupported("item", str(getattr(raw, "type", type(raw).__name__)))
        self.refusal = message_texts(raw)["refusal"] or None
        return self._texts.message_created(raw)

    def _tool_called(self, item: Any) -> Drafts:
        raw = item.raw_item
        if _field(raw, "name") in _handoff_names(item.agent):
            self.calls.handed_off(_field(raw, "call_id"))
            return ()
        return self.calls.claimed(raw)

    def _tool_output(self, item: Any) -> Drafts:
        raw_id = _field(item.raw_item, "call_id")
        return self.calls.returned(raw_id, item.output, from_hook=False)

    def _handoff_requested(self, item: Any) -> Iterator[Draft]:
        name = _field(item.raw_item, "name")
        self.calls.handed_off(_field(item.raw_item, "call_id"))
        source = name_of(item.agent.name)
        target = name_of(_handoff_names(item.agent).get(name, name or "agent"))
        self._pending_handoffs.append((source, target))
        yield "handoff.requested", {"from_agent": source, "to_agent": target}

    def _handoff_done(self, item: Any) -> Iterator[Draft]:
        self.calls.handed_off(_field(item.raw_item, "call_id"))
        source, target = name_of(item.source_agent.name), name_of(item.target_agent.name)
        self._pending_handoffs.clear()
        yield "handoff.completed", {"from_agent": source, "to_agent": target}

    def _agent_updated(self, name: str) -> Iterator[Draft]:
        name = name_of(name)
        for source, target in self._pending_handoffs:
            if target == name:  # an input filter swallowed the item that says so
                yield "handoff.completed", {"from_agent": source, "to_agent": target}
        self._pending_handoffs.clear()
        if name != self.agent:
            self.agent = name
            yield "agent.changed", {"agent": name}


def _field(raw: Any, name: str) -> Any:
    return raw.get(name) if isinstance(raw, dict) else getattr(raw, name, None)


def _handoff_names(agent: Any) -> dict[str, str]:
    """Tool name to agent name of every handoff an agent may make. Source: `agents.Handoff`,
    `Handoff.default_tool_name`.
    """
    names: dict[str, str] = {}
    handoffs: list[Any] = getattr(agent, "handoffs", None) or []
    for handoff in handoffs:
        target: str = getattr(handoff, "agent_name", None) or handoff.name
        tool = getattr(handoff, "tool_name", None) or "transfer_to_" + "".join(
            letter if letter.isalnum() else "_" for letter in target
        )
        names[tool] = names[tool.lower()] = target
    return names


def _quality(event: ResponseEvent, response: Any) -> ResponseQuality:
    """The worst of a response's event, its status and its messages' statuses: gateways send `completed` around a cut
    answer.
    """
    statuses = {event, getattr(response, "status", None)}
    statuses |= {
        _field(item, "status") for item in getattr(response, "output", None) or () if _field(item, "type") == "message"
    }
    if "failed" in statuses or "cancelled" in statuses:
        return "failed"
    return "incomplete" if "incomplete" in statuses else "ok"


_NOTED_AT_MOST: Final = 32
_TERMINALS: Final[Mapping[str, ResponseEvent]] = {
    "response.completed": "completed",
    "response.incomplete": "incomplete",
    "response.failed": "failed",
    "error": "failed",
}
_MODEL_ENDS: Final[Mapping[ResponseQuality, str]] = {
    "ok": "model.completed",
    "incomplete": "model.incomplete",
    "failed": "model.failed",
}

Step: TypeAlias = Callable[[Translator, Any], Drafts]

RAW_EVENTS: Final[Mapping[str, Step | str]] = {
    "response.queued": "not started yet",
    "response.created": Translator._response_created,
    "response.in_progress": "says no more than created",
    "response.completed": Translator._response_terminal,
    "response.incomplete": Translator._response_terminal,
    "response.failed": Translator._response_terminal,
    "error": Translator._response_terminal,
    "response.output_item.added": Translator._item_added,
    "response.output_item.done": Translator._item_done,
    "response.content_part.added": "its deltas and its end say it",
    "response.content_part.done": "its text event says it",
    "response.output_text.delta": Translator._text_delta,
    "response.output_text.done": Translator._text_done,
    "response.output_text.annotation.added": "citations: not translated yet",
    "response.refusal.delta": Translator._refusal_delta,
    "response.refusal.done": Translator._refusal_done,
    "response.reasoning_text.delta": Translator._reasoning_delta,
    "response.reasoning_text.done": Translator._reasoning_done,
    "response.reasoning_summary_part.added": "its deltas say it",
    "response.reasoning_summary_part.done": "its text event says it",
    "response.reasoning_summary_text.delta": Translator._reasoning_delta,
    "response.reasoning_summary_text.done": Translator._reasoning_done,
    "response.function_call_arguments.delta": "arguments are said whole, when the call is claimed",
    "response.function_call_arguments.done": "the finished item says it",
    "response.custom_tool_call_input.delta": "arguments are said whole, when the call is claimed",
    "response.custom_tool_call_input.done": "the finished item says it",
    "response.mcp_call_arguments.delta": "arguments of hosted calls: not translated yet",
    "response.mcp_call_arguments.done": "arguments of hosted calls: not translated yet",
    "response.mcp_call.in_progress": Translator._hosted_progress,
    "response.mcp_call.completed": "the finished item says it",
    "response.mcp_call.failed": "the finished item says it",
    "response.mcp_list_tools.in_progress": Translator._hosted_progress,
    "response.mcp_list_tools.completed": "the finished item says it",
    "response.mcp_list_tools.failed": "the finished item says it",
    "response.web_search_call.in_progress": Translator._hosted_progress,
    "response.web_search_call.searching": Translator._hosted_progress,
    "response.web_search_call.completed": "the finished item says it",
    "response.file_search_call.in_progress": Translator._hosted_progress,
    "response.file_search_call.searching": Translator._hosted_progress,
    "response.file_search_call.completed": "the finished item says it",
    "response.code_interpreter_call.in_progress": Translator._hosted_progress,
    "response.code_interpreter_call.interpreting": Translator._hosted_progress,
    "response.code_interpreter_call.completed": "the finished item says it",
    "response.code_interpreter_call_code.delta": "arguments of hosted calls: not translated yet",
    "response.code_interpreter_call_code.done": "arguments of hosted calls: not translated yet",
    "response.image_generation_call.in_progress": Translator._hosted_progress,
    "response.image_generation_call.generating": Translator._hosted_progress,
    "response.image_generation_call.partial_image": "previews never travel in an event",
    "response.image_generation_call.completed": "the finished item says it",
    "response.shell_call_command.added": "arguments of shell calls: not translated yet",
    "response.shell_call_command.delta": "arguments of shell calls: not translated yet",
    "response.shell_call_command.done": "arguments of shell calls: not translated yet",
    "response.shell_call_output_content.delta": "outputs of hosted shells: not translated yet",
    "response.shell_call_output_content.done": "outputs of hosted shells: not translated yet",
    "response.compaction.compacting": "changes the context, not the run",
    "response.audio.delta": "sound never travels in an event",
    "response.audio.done": "sound never travels in an event",
    "response.audio.transcript.delta": "transcripts: not translated yet",
    "response.audio.transcript.done": "transcripts: not translated yet",
}
"""Every raw type of openai 3.57: what translates it, or why it is dropped."""

RUN_ITEMS: Final[Mapping[str, Step | str]] = {
    "message_output_created": Translator._message_created,
    "reasoning_item_created": "its raw events say it",
    "tool_called": Translator._tool_called,
    "tool_output": Translator._tool_output,
    "handoff_requested": Translator._handoff_requested,
    "handoff_occured": Translator._handoff_done,
    "handoff_occurred": Translator._handoff_done,
    "tool_search_called": "its raw item says it",
    "tool_search_output_created": "its raw item says it",
    "mcp_list_tools": "its raw item says it",
    "mcp_approval_requested": "the interruptions after the drain say it",
    "mcp_approval_response": "the interruptions after the drain say it",
}
"""Every run item name of openai-agents 0.24, and the right spelling of the misspelt one."""
