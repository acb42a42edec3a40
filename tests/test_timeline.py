"""When things began and ended: hand-written logs with hand-computed times, and logs of every kind."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_progress import Envelope, RunView
from agents_progress.spans import TOKENS, Span, tokens_between
from agents_progress.timeline import Timeline
from agents_progress.verify import digest
from tests.logs import USAGE, logs

HOUR = "2026-10-07T08:"


class Said(NamedTuple):
    at: float
    type: str
    payload: dict[str, Any]


def said(at: float, type_: str, /, **payload: Any) -> Said:
    return Said(at, type_, payload)


def began(at: float, agent: str = "A", resumed_from: str | None = None) -> Said:
    return said(at, "run.started", agent=agent, task_id="t", parent=None, resumed_from=resumed_from)


def requested(at: float, call_id: str = "c1", kind: str = "function") -> Said:
    return said(at, "tool.requested", call_id=call_id, name=f"name {call_id}", kind=kind)


def wait(at: float, call_id: str | None = "c1") -> Said:
    return said(at, "approval.wait", interaction_id="ask-1", call_id=call_id, tool="pay", title="Pay?")


def resolved(at: float, decision: str = "approved") -> Said:
    return said(at, "approval.resolved", interaction_id="ask-1", decision=decision, actor="ada")


def ended(at: float, outcome: str = "succeeded") -> Said:
    return said(at, "run.ended", outcome=outcome, final_output="out" if outcome == "succeeded" else None)


def used(at: float, **counts: Any) -> Said:
    empty = dict.fromkeys(name for name in USAGE if name != "status")
    return said(at, "usage.updated", **{**empty, "status": "reported", **counts})


def stamp(at: float) -> str:
    minute, second = divmod(at, 60)
    return f"{HOUR}{int(minute):02d}:{second:06.3f}Z"


def log(run_id: str, *steps: Said) -> list[Envelope]:
    return [
        Envelope(f"{run_id}:{seq}", run_id, seq, type_, stamp(at), payload)
        for seq, (at, type_, payload) in enumerate(steps, 1)
    ]


def line(*runs: list[Envelope], sealed: bool = True) -> Timeline:
    timeline = Timeline()
    for envelopes in runs:
        timeline.begin(envelopes[0].run_id, sealed=sealed)
        for envelope in envelopes:
            timeline.feed(envelope.to_json())
    return timeline


class Row(NamedTuple):
    """What a test says of a span. ``more`` holds ``open``, ``about`` (approximate) and ``deep``."""

    kind: str
    name: str
    state: str
    start: int | None
    end: int | None
    taken: int | None
    more: frozenset[str] = frozenset()


def row(kind: str, name: str, state: str, start: int | None, end: int | None, taken: int | None, *more: str) -> Row:
    return Row(kind, name, state, start, end, taken, frozenset(more))


def shown(timeline: Timeline) -> list[Row]:
    found = []
    for span, depth in timeline.spans():
        more = {
            *(["open"] if span.open else []),
            *(["about"] if span.approximate(timeline.last) else []),
            *["deep"] * depth,
        }
        start, end = span.start and span.start.ms, span.end and span.end.ms
        taken = span.duration_ms(timeline.last)
        found.append(Row(span.kind, span.name, span.state, start, end, taken, frozenset(more)))
    return found


R = "r"
PAUSE = "a pause is one wait and one call over two runs, and the time between is by wall clocks"
CASES: dict[str, tuple[list[list[Envelope]], list[Row]]] = {
    "a tool that was requested, began and returned": (
        [
            log(
                R,
                began(1),
                requested(1.5),
                said(1.75, "tool.started", call_id="c1"),
                said(3, "tool.finished", call_id="c1"),
            )
        ],
        [
            row("agent", "A", "running", 0, None, 2000, "open"),
            row("tool", "name c1", "returned", 500, 2000, 1250),
        ],
    ),
    "a duration that the tool's report gives is the duration": (
        [
            log(
                R,
                began(1),
                requested(1),
                said(2, "tool.started", call_id="c1"),
                said(9, "tool.finished", call_id="c1", duration_ms=6543),
            )
        ],
        [row("agent", "A", "running", 0, None, 8000, "open"), row("tool", "name c1", "returned", 0, 8000, 6543)],
    ),
    "a tool without a seen start counts from its request": (
        [log(R, began(1), requested(2), said(4, "tool.failed", call_id="c1"))],
        [row("agent", "A", "running", 0, None, 3000, "open"), row("tool", "name c1", "failed", 1000, 3000, 2000)],
    ),
    "tools in parallel stand in the order in which they were requested": (
        [
            log(
                R,
                began(0),
                requested(1, "b"),
                requested(1, "a"),
                said(2, "tool.started", call_id="a"),
                said(2, "tool.started", call_id="b"),
                said(3, "tool.finished", call_id="a"),
                said(5, "tool.finished", call_id="b"),
            )
        ],
        [
            row("agent", "A", "running", 0, None, 5000, "open"),
            row("tool", "name b", "returned", 1000, 5000, 3000),
            row("tool", "name a", "returned", 1000, 3000, 1000),
        ],
    ),
    "nested calls stand under theirs, however late": (
        [
            log(
                R,
                began(0),
                requested(1, "o", "agent"),
                requested(2, "p"),
                requested(3, "o/i"),
                requested(4, "o/i/x/y"),
                said(5, "tool.finished", call_id="o/i"),
            )
        ],
        [
            row("agent", "A", "running", 0, None, 5000, "open"),
            row("tool", "name o", "requested", 1000, None, 4000, "open"),
            row("tool", "name o/i", "returned", 3000, 5000, 2000, "deep"),
            row("tool", "name o/i/x/y", "requested", 4000, None, 1000, "open", "deep"),
            row("tool", "name p", "requested", 2000, None, 3000, "open"),
        ],
    ),
    "a nested call without its outer one stands for itself": (
        [log(R, began(0), requested(1, "o/i"))],
        [
            row("agent", "A", "running", 0, None, 1000, "open"),
            row("tool", "name o/i", "requested", 1000, None, 0, "open"),
        ],
    ),
    "agents follow each other, and a run that ends ends its agent": (
        [
            log(
                R,
                began(0),
                said(1, "handoff.requested", from_agent="A", to_agent="B"),
                said(2, "handoff.completed", from_agent="A", to_agent="B"),
                said(2, "agent.changed", agent="B"),
                said(3, "agent.changed", agent="B"),
                ended(4, "failed"),
            )
        ],
        [
            row("agent", "A", "returned", 0, 2000, 2000),
            row("handoff", "A → B", "returned", 1000, 2000, 1000),
            row("agent", "B", "returned", 2000, 4000, 2000),
        ],
    ),
    "what is only heard of at its end has no duration": (
        [
            log(
                R,
                began(0),
                said(1, "handoff.completed", from_agent="A", to_agent="B"),
                said(2, "model.completed", response_id="x"),
            )
        ],
        [
            row("agent", "A", "running", 0, None, 2000, "open"),
            row("handoff", "A → B", "returned", 1000, 1000, None),
            row("response", "A", "returned", 2000, 2000, None),
        ],
    ),
    "a response that was given up stays open, and its second try ends": (
        [
            log(
                R,
                began(0),
                said(1, "model.started", response_id="x"),
                said(2, "model.started", response_id="y"),
                said(3, "model.incomplete", response_id="y", reason="max_output_tokens"),
            )
        ],
        [
            row("agent", "A", "running", 0, None, 3000, "open"),
            row("response", "A", "running", 1000, None, 2000, "open"),
            row("response", "A", "incomplete", 2000, 3000, 1000),
        ],
    ),
    "stages and guardrails": (
        [
            log(
                R,
                began(0),
                said(1, "stage.started", stage_id="s", title="Look"),
                said(2, "guardrail.tripped", stage="output", name="pii"),
                said(4, "stage.completed", stage_id="s", title="Look"),
            )
        ],
        [
            row("agent", "A", "running", 0, None, 4000, "open"),
            row("stage", "Look", "returned", 1000, 4000, 3000),
            row("guardrail", "pii", "tripped", 2000, 2000, 0),
        ],
    ),
    "the check takes from the ending to its verdict": (
        [log(R, began(0), ended(1), said(3.5, "app.checked", digest=digest("out"), ok=False, check="matches"))],
        [row("agent", "A", "returned", 0, 1000, 1000), row("check", "matches", "rejected", 1000, 3500, 2500)],
    ),
    "a log that is closed without a verdict has no check": (
        [log(R, began(0), ended(1))],
        [row("agent", "A", "returned", 0, 1000, 1000)],
    ),
    PAUSE: (
        [
            log(R, began(0), requested(1), wait(2), ended(2, "paused")),
            log(
                "r.2",
                began(62, resumed_from=R),
                requested(62),
                wait(62),
                resolved(62.5),
                said(63, "tool.started", call_id="c1"),
                said(64, "tool.finished", call_id="c1"),
                ended(65, "failed"),
            ),
        ],
        [
            row("agent", "A", "returned", 0, 2000, 2000),
            row("tool", "name c1", "returned", 1000, 64_000, 1000),
            row("wait", "Pay?", "approved", 2000, 62_500, 60_500, "about", "deep"),
            row("gap", "", "over", 2000, 62_000, 60_000, "about"),
            row("agent", "A", "returned", 62_000, 65_000, 3000),
        ],
    ),
    "a run that goes on with an earlier wall clock begins where the other ended": (
        [
            log(R, began(100), wait(101, None), ended(102, "paused")),
            log("r.2", began(3, resumed_from=R), wait(3, None), resolved(5), ended(6, "cancelled")),
        ],
        [
            row("agent", "A", "returned", 0, 2000, 2000),
            row("wait", "Pay?", "approved", 1000, 4000, 3000, "about"),
            row("gap", "", "over", 2000, 2000, 0, "about"),
            row("agent", "A", "returned", 2000, 5000, 3000),
        ],
    ),
    "a run that was begun anew repeats nothing": (
        [
            log(R, began(0), requested(1), said(20, "run.lost", reason="lease_expired")),
            log("r.2", began(30), requested(31), said(32, "tool.finished", call_id="c1"), ended(33, "failed")),
        ],
        [
            row("agent", "A", "running", 0, None, 33_000, "open", "about"),
            row("tool", "name c1", "requested", 1000, None, 32_000, "open", "about"),
            row("agent", "A", "returned", 30_000, 33_000, 3000),
            row("tool", "name c1", "returned", 31_000, 32_000, 1000),
        ],
    ),
    "what the journal wrote is by a wall clock": (
        [log(R, began(0), requested(1), said(20, "run.lost", reason="lease_expired"))],
        [
            row("agent", "A", "running", 0, None, 20_000, "open", "about"),
            row("tool", "name c1", "requested", 1000, None, 19_000, "open", "about"),
        ],
    ),
    "a clock that stepped back makes nothing shorter than nothing, and nothing after it exact": (
        [  # ORD-1, as an older release stamped it
            log(
                R,
                began(100),
                requested(100.5),
                said(40, "tool.finished", call_id="c1"),
                requested(40.1, "c2"),
                said(101, "tool.failed", call_id="c2"),
            )
        ],
        [
            row("agent", "A", "running", 0, None, 1000, "open", "about"),
            row("tool", "name c1", "returned", 500, 500, 0, "about"),
            row("tool", "name c2", "failed", 500, 1000, 500, "about"),
        ],
    ),
    "a reservation by a clock that is ahead makes nothing of the run less exact": (
        [
            log(
                R,
                said(100, "run.accepted", task_id="t"),
                began(40),
                requested(41),
                said(43.001, "tool.finished", call_id="c1"),
                ended(43.003, "failed"),
            )
        ],
        [row("agent", "A", "returned", 0, 3003, 3003), row("tool", "name c1", "returned", 1000, 3001, 2001)],
    ),
    "a journal whose clock is behind ends nothing before it began": (
        [log(R, began(40), requested(41), said(3, "run.lost", reason="lease_expired"))],
        [
            row("agent", "A", "running", 0, None, 1000, "open", "about"),
            row("tool", "name c1", "requested", 1000, None, 0, "open", "about"),
        ],
    ),
    "what does not fit adds nothing": (
        [
            log(
                R,
                began(0),
                said(1, "tool.finished", call_id="nobody"),
                said(2, "made.up"),
                ended(3, "failed"),
                requested(4, "late"),
            )
        ],
        [row("agent", "A", "returned", 0, 3000, 3000)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_spans_are_what_was_computed_by_hand(name: str) -> None:
    runs, rows = CASES[name]
    assert shown(line(*runs)) == rows


def test_a_check_that_may_still_come_is_shown_as_open() -> None:
    (_, check) = shown(line(log(R, began(0), ended(1), said(3, "note.a")), sealed=False))
    assert check == row("check", "", "waiting", 1000, None, 2000, "open")


def test_when_execution_began_is_told_apart_from_the_request() -> None:
    spans = [span for span, _ in line(*CASES[PAUSE][0]).spans()]
    (tool,) = (span for span in spans if span.kind == "tool")
    assert tool.begun is not None and tool.begun.ms == 63_000


# Tokens.


def responses(*steps: Said) -> list[dict[str, int | None] | None]:
    return [span.tokens for span, _ in line(log(R, began(0), *steps)).spans() if span.kind == "response"]


def ends(at: float, response_id: str) -> list[Said]:
    return [said(at, "model.started", response_id=response_id), said(at, "model.completed", response_id=response_id)]


def counts(*values: int | None) -> dict[str, int | None]:
    return dict(zip(TOKENS, values, strict=True))


def test_tokens_of_a_response_are_the_difference_of_the_counts_around_it() -> None:
    one = used(1, requests=1, input_tokens=10, output_tokens=5, total_tokens=15, cached_tokens=0)
    two = used(2, requests=2, input_tokens=30, output_tokens=9, total_tokens=39, cached_tokens=0)
    assert responses(*ends(1, "x"), one, *ends(2, "y"), two) == [
        counts(10, 5, 15, 0, None),
        counts(20, 4, 24, 0, None),
    ]


def test_tokens_that_did_not_arrive_are_null_and_never_zero() -> None:
    one = used(1, input_tokens=10, output_tokens=5, total_tokens=15)
    same = used(2, input_tokens=10, output_tokens=5, total_tokens=15, status="partial")
    assert responses(*ends(1, "x"), one, *ends(2, "y"), same) == [
        counts(10, 5, 15, None, None),
        counts(None, None, None, None, None),
    ]
    assert responses(*ends(1, "x")) == [None]


def test_counts_after_two_responses_belong_to_neither() -> None:
    both = used(2, input_tokens=10)
    later = used(3, input_tokens=12)
    assert responses(*ends(1, "x"), *ends(2, "y"), both, *ends(3, "z"), later) == [
        None,
        None,
        counts(2, None, None, None, None),
    ]


def test_counts_of_a_nested_run_belong_to_no_response_outside() -> None:
    first, nested, last = (used(at, input_tokens=tokens) for at, tokens in ((1, 10), (2, 110), (3, 115)))
    found = responses(*ends(1, "x"), first, nested, *ends(3, "y"), last)
    assert [tokens and tokens["input_tokens"] for tokens in found] == [10, 5]


@pytest.mark.parametrize(
    ("before", "now", "status", "difference"),
    [
        (None, None, "reported", None),
        (None, 7, "reported", 7),
        (7, 7, "reported", 0),
        (7, 7, "partial", None),
        (7, 7, "unavailable", None),
        (7, 6, "reported", None),
        (7, None, "reported", None),
    ],
)
def test_the_difference_of_two_counts(before: int | None, now: int | None, status: str, difference: int | None) -> None:
    found = tokens_between(dict.fromkeys(TOKENS, before), {**dict.fromkeys(TOKENS, now), "status": status})
    assert set(found.values()) == {difference}


# Pruned runs.


def test_a_pruned_run_keeps_its_rows_without_times_and_goes_on_with_them() -> None:
    steps = log(R, began(0), requested(1), requested(2, "c2"), said(3, "tool.finished", call_id="c2", duration_ms=400))
    view = RunView(R)
    view.feed_all(steps)
    timeline = Timeline()
    timeline.begin(R, snapshot=view.snapshot())
    for envelope in log(
        R, *[began(0)] * 4, said(10, "tool.started", call_id="c1"), said(12, "tool.failed", call_id="c1")
    )[4:]:
        timeline.feed(envelope.to_json())
    assert shown(timeline) == [
        row("tool", "name c1", "failed", None, 2000, 2000),
        row("tool", "name c2", "returned", None, None, 400),
    ]
    assert (timeline.started_at, timeline.last.ms, timeline.runs[0].pruned) == (1791360010000, 2000, True)


def test_a_pruned_continuation_repeats_nothing_either() -> None:
    first = log(R, began(0), requested(1), wait(2), ended(2, "paused"))
    view = RunView("r.2")
    view.feed_all(log("r.2", began(62, resumed_from=R), requested(62), wait(62), resolved(62.5)))
    timeline = line(first)
    timeline.begin("r.2", snapshot=view.snapshot())
    assert shown(timeline) == [
        row("agent", "A", "returned", 0, 2000, 2000),
        row("tool", "name c1", "requested", 1000, None, 1000, "open"),
        row("wait", "Pay?", "approved", 2000, None, None, "deep"),
    ]


def test_nothing_at_all_has_no_spans() -> None:
    timeline = Timeline()
    timeline.begin(R)
    assert (timeline.spans(), timeline.last.ms, timeline.started_at) == ([], 0, None)


# Logs of every kind.


def concerned(span: Span) -> bool:
    return span.kind in ("tool", "handoff", "stage")


@settings(max_examples=60, deadline=None)
@given(logs(), st.integers(0, 40))
def test_every_activity_and_question_of_the_view_appears_exactly_once(envelopes: list[Envelope], upto: int) -> None:
    part = envelopes[: max(upto, 1)]
    timeline = line(part, sealed=False)
    view = timeline.runs[0].view
    spans = [span for span, _ in timeline.spans()]
    assert sorted(span.span_id for span in spans if concerned(span)) == sorted(view.rows)
    assert [(span.span_id, span.state, span.name) for span in spans if span.kind == "tool" and not span.above] == [
        (row.activity_id, row.state, row.title)
        for row in view.activities
        if row.kind not in ("handoff", "stage") and "/" not in row.activity_id
    ]
    assert sorted(span.span_id for span in spans if span.kind == "wait") == sorted(
        f"wait:{name}" for name in view.interactions
    )
    assert len({id(span) for span in spans}) == len(spans) == len({span.span_id for span in spans})


@settings(max_examples=60, deadline=None)
@given(logs(), st.lists(st.floats(0, 3000), min_size=60, max_size=60))
def test_no_log_raises_and_no_duration_is_negative_whatever_the_clock_says(
    envelopes: list[Envelope], moments: list[float]
) -> None:
    timeline = line(
        [envelope._replace(occurred_at=stamp(at)) for envelope, at in zip(envelopes, moments, strict=False)]
    )
    for span, depth in timeline.spans():
        taken = span.duration_ms(timeline.last)
        assert taken is None or taken >= 0
        assert depth >= 0 and (span.start is None or 0 <= span.start.ms <= timeline.last.ms)


@settings(max_examples=60, deadline=None)
@given(logs(), logs(), st.randoms())
def test_what_is_broken_or_doubled_never_raises(one: list[Envelope], two: list[Envelope], random: Any) -> None:
    sources: list[Any] = [envelope.to_dict() for envelope in [*one, *two, *one]] + [b"{", None, 7, {"seq": 1}]
    random.shuffle(sources)
    timeline = Timeline()
    for _ in range(2):
        timeline.begin(one[0].run_id)
        for source in sources:
            timeline.feed(source)
    for run in timeline.runs:
        rows = [span for span, _ in timeline.spans() if concerned(span) and span in run.rows.values()]
        assert len(rows) == len(run.view.rows)


@settings(max_examples=60, deadline=None)
@given(logs(), st.integers(1, 40))
def test_a_log_of_which_the_beginning_was_pruned_loses_no_activity(envelopes: list[Envelope], upto: int) -> None:
    view = RunView(envelopes[0].run_id)
    view.feed_all(envelopes[:upto])
    timeline = Timeline()
    timeline.begin(view.run_id, snapshot=view.snapshot(), sealed=True)
    for envelope in envelopes[upto:]:
        timeline.feed(envelope)
    whole = RunView(view.run_id)
    whole.feed_all(envelopes)
    found = [(span.span_id, span.state) for span, _ in timeline.spans() if concerned(span)]
    assert sorted(found) == sorted((row.activity_id, row.state) for row in whole.activities)
