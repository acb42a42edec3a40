"""One SDK run as it is read: the outermost of an owned run, or one that a tool of it started.

What a nested run does appears in the log of the outermost one, under the call of the tool that started it: its calls
are named ``outer/inner``, its tokens are counted in, and notes say when it began and ended. Its texts never join the
answer and its ending ends nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from agents_progress.answers import Kind
from agents_progress.disclosure import Draft
from agents_progress.payloads import NOTE_PREFIX, PAYLOADS
from agents_progress.prices import Price
from agents_progress.sdk.calls import Call
from agents_progress.sdk.observe import Observer
from agents_progress.sdk.translate import Translator
from agents_progress.source import Emit

ADDRESSED: Final = frozenset({type_ for type_ in PAYLOADS if type_.startswith("tool.")} | {"artifact.created"})
"""What a nested run's events may add to the outer log, under the outer call's id; beside notes and the usage of all
together. The rest says how the nested run goes, of which the outer one knows only that its tool is running.
"""

_AS_ENDING: Final = {"returned": "succeeded", "raised": "failed", "paused": "paused"}
"""How a nested run is over, to what that means for its open calls."""


@dataclass(frozen=True, slots=True)
class Reading:
    """How SDK events are read: the application's titles and prices, what an unknown item means, the clock of durations,
    the tools that may be approved by somebody who is not shown what they get, and until when a question that is asked
    now can be answered, what those about a tool are for, which of its arguments holds the options of a choice, and what
    makes JSON of the context of tools, None for none.
    """

    title_of: Callable[[str], str]
    block_unknown: bool
    monotonic: Callable[[], float]
    prices: Mapping[str, Price]
    approve_blind: frozenset[str] = frozenset()
    expires_at: Callable[[], str | None] = lambda: None
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    context_json: Callable[[Any], Mapping[str, Any]] | None = None


class Part:
    """Reads one SDK run. ``hooked`` says whether its hooks are seen; ``outer`` and ``call_id`` say inside which call it
    was started, None for the outermost run.

    ``editable``: nothing but its state holds the calls that it made. ``texts``, of the outermost run, are what people
    answered, by the call that they approved.
    """

    def __init__(
        self, agent: str, reading: Reading, *, hooked: bool = True, outer: Part | None = None, call_id: str = ""
    ) -> None:
        self.reading = reading
        self.outer = outer
        self.call_id = call_id
        self.root: Part = self if outer is None else outer.root
        self.nested: list[Part] = []
        self.translator = Translator(
            agent,
            title_of=reading.title_of,
            monotonic=reading.monotonic,
            hooked=hooked,
            block_unknown=reading.block_unknown and outer is None,
            prices=reading.prices,
        )
        self.observer = Observer(self.translator)
        self.carried: dict[str, list[Call]] = {}
        self.paused = False
        self.editable = True
        self.texts: dict[str, str] = {}
        self.loop: asyncio.AbstractEventLoop = asyncio.get_running_loop() if outer is None else self.root.loop
        self._early: list[tuple[str, Iterable[Draft]]] = []
        self.emit: Emit = lambda stage, drafts: self._early.append((stage, _read(drafts)))

    # Nested parts.

    def inside(self, call_id: str, agent: str) -> Part:
        """A run that the tool of a call, named as events name it, has started."""
        part = Part(agent, self.reading, outer=self, call_id=call_id)
        calls = part.translator.calls
        for other in self.root.nested:
            if other.call_id == call_id:
                calls.ids = other.translator.calls.ids  # several runs in one tool's body, whose ids must not meet
        list(calls.restate(self.root.carried.get(call_id, [])))
        rejected = self.root.translator.calls.rejected
        calls.rejected.update(name.removeprefix(f"{call_id}/") for name in rejected if name.startswith(f"{call_id}/"))
        self.root.nested.append(part)
        self.translator.usage.nested.append(part.translator.usage)
        return part

    def named(self, call_id: str) -> str:
        """A call of this run as events name it."""
        return f"{self.call_id}/{call_id}" if self.call_id else call_id

    def call_of_span(self, span: object) -> str | None:
        """The call id, as events name it, of the tool whose tracing span this is."""
        own = self.observer.call_of_span(span)
        return None if own is None else self.named(own)

    def shown(self, drafts: Iterable[Draft]) -> Iterator[Draft]:
        """The drafts as the outermost log has them."""
        if self.outer is None:
            yield from drafts
            return
        for type_, payload in drafts:
            if type_ in ADDRESSED:
                inner = payload.get("call_id")
                yield type_, {**payload, "call_id": self.call_id if inner is None else self.named(inner)}
            elif type_ == "usage.updated":
                yield type_, self.root.translator.usage.payload()
            elif type_ == "handoff.completed":
                yield "note.nested.handoff", {"call_id": self.call_id, **payload}
            elif type_.startswith(NOTE_PREFIX):
                yield type_, payload

    def observe(self, name: str, args: tuple[Any, ...]) -> Iterator[Draft]:
        """The drafts of one hook call.

        An agent's tool whose own run paused has not returned, whatever openai-agents 0.18 says of it.
        """
        if name != "on_tool_end" or not self._paused_inside(getattr(args[0], "tool_call_id", None)):
            yield from self.observer.observe(name, args)

    def _paused_inside(self, raw_id: str | None) -> bool:
        call = self.translator.calls.by_raw_id(raw_id)
        return call is not None and any(
            part.paused and part.call_id == self.named(call.call_id) for part in self.root.nested
        )

    # Saying it.

    def attach(self, emit: Emit) -> None:
        """Write what was said so far, then everything as it is said."""
        early, self._early, self.emit = self._early, [], emit
        for stage, drafts in early:
            emit(stage, drafts)

    def say(self, stage: str, drafts: Iterable[Draft]) -> None:
        """Write drafts of this run, from whichever thread its code runs in."""
        shown, root = self.shown(drafts), self.root
        if _running_loop() is root.loop:
            root.emit(stage, shown)
        elif not root.loop.is_closed():
            root.loop.call_soon_threadsafe(root.emit, stage, shown)

    def begun(self) -> Iterator[Draft]:
        """A nested run started."""
        yield "note.nested.started", {"call_id": self.call_id, "agent": self.translator.agent}

    def ended(self, how: str) -> Iterator[Draft]:
        """A nested run is over: it `returned`, `raised` or `paused`. What it never executed is closed."""
        self.paused = how == "paused"
        yield from self.translator.run_ended(_AS_ENDING[how])
        usage = self.translator.usage.payload()
        yield "note.nested.ended", {"call_id": self.call_id, "how": how, "usage": usage}

    def closed(self, kind: str) -> Iterator[Draft]:
        """What is said last of an outermost run and of those inside it that have not ended, or were not even begun: a
        rejected call's own run is not continued (0.18).
        """
        for part in reversed(self.nested):
            yield from part.shown(part.translator.run_ended(kind))
        yield from self.translator.run_ended(kind)
        begun = {"", *(part.call_id for part in self.nested)}
        for within in self.carried:
            if within not in begun and kind != "paused":
                yield from self.inside(within, self.translator.agent).left()

    def left(self) -> Iterator[Draft]:
        """The ends of calls that waited for a person, in a nested run that was not continued."""
        calls = self.translator.calls
        for call in list(calls.book):
            yield from self.shown(
                calls.returned(call.raw_id, "", from_hook=False) if call.call_id in calls.rejected else ()
            )
        yield from self.shown(calls.run_ended("succeeded"))

    # What waits for a person.

    def call_waiting(self, raw_id: str | None, tool: str) -> str | None:
        """The open call, of this run or one inside it, that has this model-made id; the one of this tool when several
        do, because ids of different levels are often equal.
        """
        found = [
            (part.named(call.call_id), call.name)
            for part in (self, *self.nested)
            if (call := part.translator.calls.by_raw_id(raw_id)) is not None
        ]
        return next((name for name, of in found if of == tool), found[0][0] if found else None)

    def may_edit(self, call_id: str) -> bool:
        """Whether a call, named as events name it, is one that only the state of its run holds."""
        within = call_id.rpartition("/")[0]
        return all(part.editable for part in (self, *self.nested) if part.call_id in ("", within))

    def waiting(self) -> dict[str, list[Call]]:
        """The calls that a pause leaves waiting, by the call they are inside, outermost (the empty name) first. A call
        whose nested run waits is called again by the continuing run, so it waits too.
        """
        found: dict[str, list[Call]] = {}
        for part in reversed([self, *self.nested]):
            holding = [call for call in part.translator.calls.book if part.holds(call, found)]
            if holding:
                found[part.call_id] = [*holding, *found.get(part.call_id, [])]
        return dict(sorted(found.items()))

    def holds(self, call: Call, waiting: Iterable[str]) -> bool:
        """Whether a call of this run waits itself, or one of the nested runs that wait is inside it."""
        inside = f"{self.named(call.call_id)}/"
        return call.state == "requested" or (
            call.state == "running" and any(f"{within}/".startswith(inside) for within in waiting)
        )

    def restated(self) -> Iterator[Draft]:
        """The waiting calls as requests, for the log of a continuing run."""
        for within, calls in self.waiting().items():
            part = next(part for part in (self, *self.nested) if part.call_id == within)
            yield from part.shown(part.translator.calls.restated(calls))


def _read(drafts: Iterable[Draft]) -> Iterable[Draft]:
    """Drafts that nobody takes yet, made at once: in the context of the hook that tells of them, whose span says which
    tool it is. A fault in making them is met by whoever takes them.
    """
    made: list[Draft] = []
    try:
        for draft in drafts:
            made.append(draft)  # noqa: PERF402 - what was made before a fault counts
    except Exception as error:  # noqa: BLE001 - see above
        return _ending_in(made, error)
    return made


def _ending_in(made: Iterable[Draft], error: Exception) -> Iterator[Draft]:
    yield from made
    raise error


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
