"""What took time in a task, as plain rows: spans, their moments, their order, and the tokens of a model response."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple, TypeAlias

SpanKind: TypeAlias = Literal["agent", "response", "tool", "wait", "handoff", "stage", "guardrail", "check", "gap"]
NOT_ENDED: Final = frozenset({"requested", "running", "waiting"})
TOKENS: Final = ("input_tokens", "output_tokens", "total_tokens", "cached_tokens", "reasoning_tokens")


class Moment(NamedTuple):
    """Milliseconds since the first event of the task; ``run`` is the number of the run whose clock gave them, None
    where a wall clock did.
    """

    ms: int
    run: int | None


@dataclass(slots=True)
class Span:
    """One thing that took time. ``name``, ``note`` and ``summary`` are foreign texts, not cleaned.

    It starts when it is requested; ``begun`` is when a tool's execution began, None where that was not seen. ``start``
    is None when its events were pruned, ``end`` while no end was seen. ``stated_ms`` is the duration that a tool's own
    report gave. ``above`` is the call it belongs under: the outer one of a nested call, the one that waits for
    approval. ``reused``: the tool gave what an earlier call had stored. ``edited``: other arguments were approved than
    those that were asked about. ``tokens`` are those of a model response, each null when not known. ``whole`` is false
    for what was only heard of at its end.
    """

    kind: SpanKind
    span_id: str
    run_id: str
    name: str
    state: str
    start: Moment | None
    begun: Moment | None = None
    end: Moment | None = None
    stated_ms: int | None = None
    above: str | None = None
    note: str | None = None
    summary: str | None = None
    reused: bool = False
    edited: bool = False
    tokens: dict[str, int | None] | None = None
    whole: bool = True

    @property
    def open(self) -> bool:
        """Whether no end was seen."""
        return self.state in NOT_ENDED

    def until(self, last: Moment) -> Moment | None:
        """Its end, or the last event as long as no end was seen; None when its events were pruned."""
        return last if self.open else self.end

    def duration_ms(self, last: Moment) -> int | None:
        """What the tool reported; else from its begin, or request, to its end or ``last``; None when not known."""
        begin, until = self.begun or self.start, self.until(last)
        if self.stated_ms is not None or begin is None or until is None or not self.whole:
            return self.stated_ms
        return max(until.ms - begin.ms, 0)

    def approximate(self, last: Moment) -> bool:
        """Whether its duration is the difference of two clocks."""
        begin, until = self.begun or self.start, self.until(last)
        if self.duration_ms(last) is None or self.stated_ms is not None or begin is None or until is None:
            return False
        return begin.run is None or begin.run != until.run


def tokens_between(before: Mapping[str, Any], now: Mapping[str, Any]) -> dict[str, int | None]:
    """What was counted between two `usage.updated`; null, never 0, for a count that did not arrive.

    No difference is a zero only where every response has reported its usage.
    """
    found: dict[str, int | None] = {}
    for name in TOKENS:
        difference = -1 if now[name] is None else now[name] - (before.get(name) or 0)
        known = difference > 0 or (difference == 0 and now["status"] == "reported")
        found[name] = difference if known else None
    return found


def outer(call_id: str) -> str | None:
    """The call inside which a nested one was made."""
    return call_id.rpartition("/")[0] or None


def in_order(spans: Iterable[Span], calls: Mapping[tuple[str, str], Span]) -> Iterator[tuple[Span, int]]:
    """Spans in the order given, each followed by those under it, and how deep each lies. ``calls`` are by run and id.

    Without recursion: calls may be nested as deep as an id is long.
    """
    below: dict[int, list[Span]] = {}
    for span in spans:
        below.setdefault(id(_nearest(span, calls)), []).append(span)
    waiting = [(span, 0) for span in reversed(below.get(id(None), []))]
    while waiting:
        span, depth = waiting.pop()
        yield span, depth
        waiting.extend((under, depth + 1) for under in reversed(below.get(id(span), [])))


def _nearest(span: Span, calls: Mapping[tuple[str, str], Span]) -> Span | None:
    """The innermost call that is known of those a span belongs under."""
    above = span.above
    while above is not None:
        found = calls.get((span.run_id, above))
        if found is not None:
            return found
        above = outer(above)
    return None
