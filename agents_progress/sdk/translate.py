"""SDK events in, our drafts out. No I/O, no clock of its own, no SDK import.

What stands in none of the tables of :mod:`agents_progress.sdk.events` is counted as unknown. An unknown raw event is a
note; an unknown run item or stream event blocks success unless the application allowed it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from agents_progress.disclosure import Draft
from agents_progress.sdk.events import OUTPUT_ITEMS, RAW_EVENTS, RUN_ITEMS
from agents_progress.sdk.steps import Drafts, Steps
from agents_progress.unicode import name_of

_NOTED_AT_MOST: Final = 32


class Translator(Steps):
    """Translates one run. ``blame(kind)`` says at its end what is known of calls that never said how they ended."""

    blame: Callable[[str], Drafts] = staticmethod(lambda kind: ())

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
                yield from self.texts.answer_deltas(deltas)
                deltas = []
            yield from self._one(event)
        if deltas:
            yield from self.texts.answer_deltas(deltas)

    def _one(self, event: Any) -> Drafts:
        if event.type == "raw_response_event":
            return self._raw(event.data)
        if event.type == "run_item_stream_event":
            about = RUN_ITEMS.get(event.name)
            if about is None:
                return self.unsupported("run_item", str(event.name))
            return about(self, event.item) if callable(about) else ()
        if event.type == "agent_updated_stream_event":
            return self.agent_updated(event.new_agent)
        return self.unsupported("stream_event", str(event.type))

    def _raw(self, data: Any) -> Drafts:
        done = data.type == "response.output_item.done"
        step = OUTPUT_ITEMS.get(data.item.type) if done else RAW_EVENTS.get(data.type)
        if step is None:
            return self._unknown(f"item {data.item.type}" if done else data.type)
        return step(self, data) if callable(step) else ()

    def _unknown(self, type_: str) -> Drafts:
        name = name_of(type_)[:128]
        if name in self._noted or len(self._noted) >= _NOTED_AT_MOST:
            return ()
        self._noted.add(name)
        return (("note.unknown_raw", {"name": name}),)

    def llm_started(self) -> Drafts:
        """The hook before a model call: one more call whose usage must arrive."""
        self.usage.begun += 1
        return ()

    def run_ended(self, kind: str) -> Iterator[Draft]:
        """What is said last: rows that were never executed, and the usage that never arrived."""
        if self.response_id is not None:
            yield from self.hosted.response_ended(completed=False)
        yield from self.blame(kind)
        yield from self.calls.run_ended(kind)
        if self.usage.begun > self.usage.ended:
            yield "usage.updated", self.usage.payload()
