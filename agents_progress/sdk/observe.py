"""What the SDK's hooks say that its events do not: real starts and ends of tools, model calls, an agent's own end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from agents_progress.disclosure import Draft
from agents_progress.sdk import compat
from agents_progress.sdk.translate import Drafts, Translator
from agents_progress.unicode import name_of


class Observer:
    """Translates the hook calls of one run. ``agent_ended`` says whether its final agent said that it is done."""

    def __init__(self, translator: Translator) -> None:
        self._translator = translator
        self._tool_spans: dict[int, str] = {}
        self.agent_ended = False

    def call_of_span(self, span: object) -> str | None:
        """The call id of the tool whose tracing span this is."""
        return self._tool_spans.get(id(span))

    def observe(self, name: str, args: tuple[Any, ...]) -> Iterator[Draft]:
        """The drafts of one hook call; often none. A fault in making them belongs to whoever writes them."""
        yield from self._observe(name, args)

    def _observe(self, name: str, args: tuple[Any, ...]) -> Drafts:
        observer = _OBSERVERS.get(name)
        return observer(self, args) if observer is not None else ()

    def _on_llm_start(self, args: tuple[Any, ...]) -> Drafts:
        return self._translator.llm_started()

    def _on_agent_end(self, args: tuple[Any, ...]) -> Drafts:
        self.agent_ended = True
        return ()

    def _on_tool_start(self, args: tuple[Any, ...]) -> Iterator[Draft]:
        context, _, tool = args[:3]
        raw_id = getattr(context, "tool_call_id", None)
        if raw_id is None:
            return  # computer, shell and patch tools: their hooks do not say which call they belong to
        yield from self._translator.calls.started(raw_id, name_of(tool.name), getattr(context, "tool_arguments", None))
        call = self._translator.calls.by_raw_id(raw_id)
        if call is not None:
            self._tool_spans[id(compat.current_span())] = call.call_id

    def _on_tool_end(self, args: tuple[Any, ...]) -> Drafts:
        context, _, _, output = args[:4]
        self._tool_spans.pop(id(compat.current_span()), None)
        raw_id = getattr(context, "tool_call_id", None)
        return () if raw_id is None else self._translator.calls.returned(raw_id, output, from_hook=True)


_OBSERVERS: Final[Mapping[str, Callable[[Observer, tuple[Any, ...]], Drafts]]] = {
    "on_llm_start": Observer._on_llm_start,
    "on_agent_end": Observer._on_agent_end,
    "on_tool_start": Observer._on_tool_start,
    "on_tool_end": Observer._on_tool_end,
}
"""The hooks that say something the events do not."""
