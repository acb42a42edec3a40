"""What a run without a stream says through its hooks and its result, told as the stream events it would have had.

`Runner.run` and an agent's tool without `on_stream` have no events; their hooks tell of model calls, tools and
handoffs, and the result holds the items. There are no deltas. Source: `RunHooksBase` and `RunResult.new_items`,
openai-agents 0.18 to 0.24.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, Final

from agents_progress.disclosure import Draft
from agents_progress.sdk.part import Part
from agents_progress.unicode import name_of

_ITEMS: Final[Mapping[str, str]] = {
    "message_output_item": "message_output_created",
    "tool_call_item": "tool_called",
    "tool_call_output_item": "tool_output",
    "handoff_call_item": "handoff_requested",
    "handoff_output_item": "handoff_occured",
}
"""Run item type to the name of its stream event; the other items add nothing to what the hooks said."""

_REQUESTS: Final = frozenset({"tool_called", "handoff_requested"})


class Unstreamed:
    """Reads one part by its hooks and its items."""

    def __init__(self, part: Part) -> None:
        self._part = part

    def observe(self, name: str, args: tuple[Any, ...]) -> Iterator[Draft]:
        """The drafts of one hook call."""
        yield from self._part.observe(name, args)
        told = _HOOKS.get(name)
        if told is not None:
            yield from told(self, args)

    def items(self, items: Iterable[Any]) -> Iterator[Draft]:
        """What the items of a run that is over add: outputs that no hook told of, because the tool was not entered.

        The items of a continued run hold those of its predecessors too, so a call that is unknown here is not ours.
        """
        calls = self._part.translator.calls
        for item in items:
            name = _ITEMS.get(str(getattr(item, "type", None)))
            raw = getattr(item, "raw_item", None)
            raw_id = raw.get("call_id") if isinstance(raw, dict) else getattr(raw, "call_id", None)
            if name is None or (name != "message_output_created" and not calls.expects(raw_id, call=name in _REQUESTS)):
                continue
            event = SimpleNamespace(type="run_item_stream_event", name=name, item=item)
            for type_, payload in self._part.translator.translate(iter((event,))):
                if not type_.startswith("handoff."):  # the hook said it when it happened
                    yield type_, payload

    def _raw(self, type_: str, **fields: Any) -> Iterable[Draft]:
        data = SimpleNamespace(type=type_, **fields)
        return self._part.translator.translate(iter((SimpleNamespace(type="raw_response_event", data=data),)))

    def _llm_started(self, args: tuple[Any, ...]) -> Iterable[Draft]:
        return self._raw("response.created", response=None)

    def _llm_ended(self, args: tuple[Any, ...]) -> Iterator[Draft]:
        answer = args[2]
        for place, item in enumerate(answer.output):
            yield from self._raw("response.output_item.done", item=item, output_index=place)
        usage = answer.usage if answer.usage.requests else None  # the SDK's stand-in for none at all
        yield from self._raw("response.completed", response=SimpleNamespace(output=answer.output, usage=usage))

    def _agent_started(self, args: tuple[Any, ...]) -> Iterable[Draft]:
        agent = args[1]
        if name_of(agent.name) == self._part.translator.agent:
            return ()
        event = SimpleNamespace(type="agent_updated_stream_event", new_agent=agent)
        return self._part.translator.translate(iter((event,)))

    def _handed_off(self, args: tuple[Any, ...]) -> Iterator[Draft]:
        _, source, target = args
        payload = {"from_agent": name_of(source.name), "to_agent": name_of(target.name)}
        yield "handoff.requested", payload
        yield "handoff.completed", dict(payload)


_HOOKS: Final[Mapping[str, Callable[[Unstreamed, tuple[Any, ...]], Iterable[Draft]]]] = {
    "on_llm_start": Unstreamed._llm_started,
    "on_llm_end": Unstreamed._llm_ended,
    "on_agent_start": Unstreamed._agent_started,
    "on_handoff": Unstreamed._handed_off,
}
"""The hooks that stand for stream events."""
