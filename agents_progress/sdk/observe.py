"""What the SDK's hooks say that its events do not: real starts and ends of tools, model calls, an agent's own end."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from agents_progress.disclosure import Draft
from agents_progress.errors import EffectBusy, EffectConflict, EffectErased, EffectUncertain
from agents_progress.sdk import compat, verdicts
from agents_progress.sdk.calls import REUSED
from agents_progress.sdk.steps import Drafts
from agents_progress.sdk.translate import Translator
from agents_progress.unicode import name_of


class Observer:
    """Translates the hook calls of one run. ``agent_ended`` says whether its final agent said that it is done."""

    def __init__(self, translator: Translator) -> None:
        self._translator = translator
        translator.blame = self._blame
        self._tool_spans: dict[int, str] = {}
        self._running: dict[str, tuple[Any, object]] = {}
        self._failure: tuple[BaseException | None, str] = None, ""
        self.agent_ended = False

    def call_of_span(self, span: object) -> str | None:
        """The call id of the tool whose tracing span this is."""
        return self._tool_spans.get(id(span))

    def mark_effect(self, span: object, word: str) -> None:
        """What the ledger said to the tool whose tracing span this is, from whichever thread. Of several effects that
        one call had, the row says the worst.
        """
        call_id, effects = self._tool_spans.get(id(span)), self._translator.calls.effects
        if call_id is not None:
            effects[call_id] = max(effects.get(call_id, word), word, key=_EVER_WORSE.index)

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

    def run_failed(self, error: BaseException | None, code: str) -> None:
        """What ended the run, for the calls that never said how they ended."""
        self._failure = error, code

    def _blame(self, kind: str) -> Iterator[Draft]:
        if kind in _UNFINISHED:
            for call_id, code in verdicts.blamed(*self._failure, self._running).items():
                yield from self._translator.calls.failed(call_id, code)

    def _on_tool_start(self, args: tuple[Any, ...]) -> Iterator[Draft]:
        context, _, tool = args[:3]
        name, calls = name_of(tool.name), self._translator.calls
        raw_id = getattr(context, "tool_call_id", None)
        if raw_id is None:  # computer, shell and patch tools: their hooks do not say which call they belong to
            drafts = list(calls.started_alone(verdicts.LOCAL.get(name, "")))
        else:
            arguments = getattr(context, "tool_arguments", None)
            drafts = list(calls.started(raw_id, name, arguments, verdicts.kind_of_tool(tool)))
        yield from drafts
        if drafts:
            call_id, span = drafts[-1][1]["call_id"], compat.current_span()
            self._running[call_id] = tool, span
            if compat.is_tool_span(span):
                self._tool_spans[id(span)] = call_id

    def _on_tool_end(self, args: tuple[Any, ...]) -> Drafts:
        context, _, tool, output = args[:4]
        span, calls = compat.current_span(), self._translator.calls
        call_id = self._tool_spans.pop(id(span), None)
        raw_id = getattr(context, "tool_call_id", None)
        if raw_id is None:
            call_id = calls.stopped_alone(verdicts.LOCAL.get(name_of(tool.name), "")) or call_id
        self._running.pop(call_id or "", None)
        if raw_id is None:
            return ()
        return calls.returned(raw_id, output, from_hook=True, failed=verdicts.failure_of_return(tool, span, output))


_UNFINISHED: Final = frozenset({"failed", "incomplete", "cancelled"})

_EVER_WORSE: Final = (
    REUSED,
    "tool_error",
    EffectErased.code,
    EffectConflict.code,
    EffectBusy.code,
    EffectUncertain.code,
)
"""What the ledger may say to a tool: last what may have happened, which nothing else must hide."""

_OBSERVERS: Final[Mapping[str, Callable[[Observer, tuple[Any, ...]], Drafts]]] = {
    "on_llm_start": Observer._on_llm_start,
    "on_agent_end": Observer._on_agent_end,
    "on_tool_start": Observer._on_tool_start,
    "on_tool_end": Observer._on_tool_end,
}
"""The hooks that say something the events do not."""
