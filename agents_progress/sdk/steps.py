"""What each SDK event says: one step per kind of event, from its shape to our drafts. Which step an event takes stands
in :mod:`agents_progress.sdk.events`.

Sources: openai-agents 0.18 to 0.24 `agents.stream_events`, openai 2.54 to 3.57 `openai.types.responses`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from agents_progress.disclosure import Draft
from agents_progress.outcome import ResponseEvent, ResponseQuality
from agents_progress.prices import Price
from agents_progress.sdk import verdicts
from agents_progress.sdk.calls import Calls
from agents_progress.sdk.hosted import Hosted
from agents_progress.sdk.items import field, is_hosted
from agents_progress.sdk.text import Ids, Texts, message_texts
from agents_progress.sdk.usage import Usage
from agents_progress.unicode import name_of

Drafts: TypeAlias = Iterable[Draft]


class Steps:
    """The steps of one run, and the facts that only the raw events tell: how the last model response ended, with which
    status, and whether the last message was a refusal.
    """

    def __init__(
        self,
        agent: str,
        *,
        title_of: Callable[[str], str] = str,
        monotonic: Callable[[], float] = time.monotonic,
        hooked: bool = True,
        block_unknown: bool = True,
        prices: Mapping[str, Price] = MappingProxyType({}),
    ) -> None:
        self.agent = agent
        self.calls = Calls(monotonic, title_of, hooked)
        self.hosted = Hosted(self.calls)
        self.usage = Usage(prices)
        self.last_event: ResponseEvent = "none"
        self.last_reason: str | None = None
        self.last_code: str | None = None
        self.last_quality: ResponseQuality = "ok"
        self.refusal: str | None = None
        self.texts = Texts()
        self.response_id: str | None = None
        self._responses = Ids("resp")
        self._pending_handoffs: list[tuple[str, str]] = []
        self._handoff_tools: Collection[str] = ()
        self._block_unknown = block_unknown
        self._noted: set[str] = set()

    def unsupported(self, what: str, name: str) -> Drafts:
        """Something this release does not know, which may change what the run means."""
        payload = {"what": what, "name": name_of(name)[:128]}
        return (("adapter.unsupported" if self._block_unknown else "note.unsupported", payload),)

    # Model responses.

    def response_created(self, data: Any) -> Iterator[Draft]:
        if self.response_id is not None:  # the one before was given up, and is tried again
            yield from self.hosted.response_ended(completed=False)
            self.usage.doubts += 1
        self.texts.begin_response()
        self.hosted.begin_response()
        self.response_id = self._responses.take(getattr(data.response, "id", None))
        self.usage.begun = max(self.usage.begun, self.usage.ended + 1)
        yield "model.started", {"response_id": self.response_id}

    def response_terminal(self, data: Any) -> Iterator[Draft]:
        response = getattr(data, "response", None)
        self.last_event = _TERMINALS[data.type]
        self.last_reason = getattr(getattr(response, "incomplete_details", None), "reason", None)
        error = getattr(response, "error", None) if response is not None else data
        self.last_code = getattr(error, "code", None)
        self.last_quality = _quality(self.last_event, response)
        payload: dict[str, Any] = {
            "response_id": self.response_id or self._responses.take(getattr(response, "id", None))
        }
        if self.last_reason:
            payload["reason"] = name_of(self.last_reason)[:128]
        if self.last_code:
            payload["code"] = name_of(self.last_code)[:128]
        self.response_id = None
        output = getattr(response, "output", None) or ()
        yield from self.hosted.response_ended(self.last_quality == "ok", output)
        yield _MODEL_ENDS[self.last_quality], payload
        self.usage.add(getattr(response, "usage", None), getattr(response, "model", None))
        yield "usage.updated", self.usage.payload()

    # Text.

    def text_delta(self, data: Any) -> Drafts:
        return self.texts.answer_deltas([data])

    def refusal_delta(self, data: Any) -> Drafts:
        return (self.texts.delta(data.output_index, data.item_id, data.delta, "refusal"),)

    def reasoning_delta(self, data: Any) -> Drafts:
        return (self.texts.delta(data.output_index, data.item_id, data.delta, "reasoning"),)

    def transcript_delta(self, data: Any) -> Drafts:
        return (self.texts.delta(_SOUND, None, data.delta, "transcript"),)

    def text_done(self, data: Any) -> Drafts:
        return self.texts.part_done(data.output_index, data.item_id, data.content_index, data.text, "answer")

    def refusal_done(self, data: Any) -> Drafts:
        return self.texts.part_done(data.output_index, data.item_id, data.content_index, data.refusal, "refusal")

    def reasoning_done(self, data: Any) -> Drafts:
        part = self.texts.summary(data.summary_index) if "summary" in data.type else data.content_index
        return self.texts.part_done(data.output_index, data.item_id, part, data.text, "reasoning")

    def reasoning_part_added(self, data: Any) -> Drafts:
        return self.texts.summary_begun(data.output_index, data.item_id, data.summary_index)

    def transcript_done(self, data: Any) -> Drafts:
        return self.texts.said(_SOUND, "transcript")

    def annotation_added(self, data: Any) -> Drafts:
        return self.texts.cited(
            data.output_index, data.item_id, data.content_index, data.annotation_index, data.annotation
        )

    # Items of a response.

    def message_done(self, data: Any) -> Drafts:
        return self.texts.item_done(data.output_index, data.item)

    def reasoning_item_done(self, data: Any) -> Drafts:
        return self.texts.reasoning_item_done(data.output_index, data.item)

    def item_added(self, data: Any) -> Drafts:
        return self.hosted.begun(data.output_index, data.item) if is_hosted(data.item) else ()

    def call_done(self, data: Any) -> Drafts:
        if is_hosted(data.item):
            return self.hosted.done(data.output_index, data.item)
        if field(data.item, "name") not in self._handoff_tools:
            self.calls.seen_raw(data.item)
        return ()

    def answer_done(self, data: Any) -> Drafts:
        return self.hosted.answered(data.item)

    def hosted_progress(self, data: Any) -> Drafts:
        return self.hosted.progress(data.output_index)

    def hosted_failed(self, data: Any) -> Drafts:
        self.hosted.failing(data.output_index)
        return ()

    def hosted_argument(self, data: Any) -> Drafts:
        return self.hosted.argument(data.output_index, data.delta)

    def mcp_arguments(self, data: Any) -> Drafts:
        return self.hosted.arguments(data.output_index, data.arguments)

    def code_written(self, data: Any) -> Drafts:
        return self.hosted.arguments(data.output_index, data.code)

    # Items of the run, and agents.

    def message_created(self, item: Any) -> Drafts:
        raw = item.raw_item
        if getattr(raw, "type", None) != "message":
            return self.unsupported("item", str(getattr(raw, "type", type(raw).__name__)))
        self.refusal = message_texts(raw)["refusal"] or None
        return self.texts.message_created(raw)

    def tool_called(self, item: Any) -> Drafts:
        raw = item.raw_item
        if is_hosted(raw):
            return self.hosted.claimed(raw)
        if field(raw, "name") in _handoff_names(item.agent):
            self.calls.handed_off(field(raw, "call_id"))
            return ()
        return self.calls.claimed(raw, verdicts.kind_of_item(item))

    def tool_output(self, item: Any) -> Drafts:
        raw_id = field(item.raw_item, "call_id")
        call = self.calls.awaiting(raw_id)
        if call is None:
            return ()
        tool = verdicts.tool_behind(item, call.name)
        failed, guarded = verdicts.failure_of_output(item, tool), verdicts.guarded(item, tool)
        return self.calls.returned(raw_id, item.output, from_hook=False, failed=failed, guarded=guarded)

    def handoff_requested(self, item: Any) -> Iterator[Draft]:
        name = field(item.raw_item, "name")
        self.calls.handed_off(field(item.raw_item, "call_id"))
        source = name_of(item.agent.name)
        target = name_of(_handoff_names(item.agent).get(name, name or "agent"))
        # Of the handoffs of one turn the SDK makes the first and ignores the others.
        type_ = "note.handoff_ignored" if self._pending_handoffs else "handoff.requested"
        if not self._pending_handoffs:
            self._pending_handoffs.append((source, target))
        yield type_, {"from_agent": source, "to_agent": target}

    def handoff_done(self, item: Any) -> Iterator[Draft]:
        self.calls.handed_off(field(item.raw_item, "call_id"))
        source, target = name_of(item.source_agent.name), name_of(item.target_agent.name)
        self._pending_handoffs.clear()
        yield "handoff.completed", {"from_agent": source, "to_agent": target}

    def agent_updated(self, agent: Any) -> Iterator[Draft]:
        name = name_of(agent.name)
        self._handoff_tools = _handoff_names(agent).keys()
        for source, target in self._pending_handoffs:
            if target == name:  # an input filter swallowed the item that says so
                yield "handoff.completed", {"from_agent": source, "to_agent": target}
        self._pending_handoffs.clear()
        if name != self.agent:
            self.agent = name
            yield "agent.changed", {"agent": name}


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
        field(item, "status") for item in getattr(response, "output", None) or () if field(item, "type") == "message"
    }
    if "failed" in statuses or "cancelled" in statuses:
        return "failed"
    return "incomplete" if "incomplete" in statuses else "ok"


_SOUND: Final = -1
"""The place of what is spoken: its events name no item. There is one transcript in a response."""

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
