"""Logs of every situation a front end meets, each with the status our own view shows, and their streams for each major.

``python -m tests.vercel_logs`` writes the streams to ``tests/golden/vercel``; a test compares.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, get_args

from agents_progress.bridges.base import CallNames, Cut, Event
from agents_progress.bridges.vercel_parts import Major
from agents_progress.bridges.vercel_stream import VercelStream
from agents_progress.events import Envelope
from agents_progress.messages import Status
from agents_progress.view import RunView
from tests.logs import OUTPUT, RUN, USAGE, Log

GOLDEN = Path(__file__).parent / "golden" / "vercel"
MAJORS: tuple[Major, ...] = get_args(Major)
DIGEST = "d" * 64
C1 = CallNames(RUN)("c1")
"""The call of these logs, as a client is told of it."""
ERROR = {"code": "model_error", "message": "The model did not answer.", "retryable": True, "phase": "model"}


class Situation(NamedTuple):
    """One log. ``cut`` is how a feed ends that goes on to no ending; ``earlier`` is the log of the run that it goes on
    with, whose message the client has.
    """

    name: str
    envelopes: list[Envelope]
    status: Status
    cut: Cut | None = None
    earlier: Sequence[Envelope] = ()

    def stream(self, major: Major) -> list[Event]:
        """What a client gets that was there from the start."""
        stream = VercelStream(major, continues=bool(self.earlier))
        events = stream.join(RunView(self.envelopes[0].run_id), [viewed(self.earlier)] if self.earlier else [])
        for envelope in self.envelopes:
            events += stream.feed(envelope)
        return events + (stream.cut(self.cut) if self.cut else [])

    def view(self) -> RunView:
        return viewed(self.envelopes)


def viewed(envelopes: Iterable[Envelope]) -> RunView:
    """Our own view of the same."""
    envelopes = list(envelopes)
    view = RunView(envelopes[0].run_id)
    for envelope in envelopes:
        view.feed(envelope)
    return view


def say(log: Log, text: str = OUTPUT, item_id: str = "m1", channel: str | None = None, ends: bool = True) -> Log:
    more = {} if channel is None else {"channel": channel}
    for index, piece in enumerate((text[:4], text[4:])):
        log.say("text.delta", item_id=item_id, index=index, text=piece, **more)
    return log.say("text.completed", item_id=item_id, **more) if ends else log


def begin(run_id: str = RUN) -> Log:
    return (
        Log(run_id).say("run.accepted", task_id="task-1", title="Total").start().say("model.started", response_id="r1")
    )


def asked(
    log: Log,
    *,
    call_id: str = "c1",
    name: str = "ask-1",
    shown: bool = True,
    blind: bool = False,
    kind: str = "approval",
    **call: Any,
) -> Log:
    more: dict[str, Any] = {"details": '{"eur": 12}'} if shown else {}
    more |= {"x": {"approve_blind": True}} if blind else {}
    ask = {"interaction_id": name, "call_id": call_id, "tool": "refund", "title": "Refund", "digest": DIGEST}
    return log.request(call_id, "refund", title="Refund", **call).say("approval.wait", **ask, kind=kind, **more)


def choosing(log: Log, call_id: str = "c1") -> Log:
    log.request(call_id, "choose", title="Choose")
    ask = {"interaction_id": "ask-2", "call_id": call_id, "tool": "choose", "title": "Choose", "digest": DIGEST}
    more = {"details": '{"of": ["cup", "plate"]}', "x": {"options_in": "of"}}
    return log.say("approval.wait", **ask, kind="choice", **more)


def answered(decision: str, kind: str = "approval") -> Log:
    log = Log(f"{RUN}.2").start(resumed_from=RUN)
    asked(log, kind=kind).say("approval.resolved", interaction_id="ask-1", decision=decision)
    if decision == "approved":
        log.say("tool.started", call_id="c1").say("tool.finished", call_id="c1", output="paid")
    else:
        log.say("tool.rejected", call_id="c1", reason="rejected")
    return say(log.say("model.started", response_id="r2"), item_id="m2")


def called(log: Log) -> Log:
    log.request("c1", "look", title="Look up", arguments='{"order": 4711}').say("tool.started", call_id="c1")
    log.say("tool.progress", call_id="c1", message="asking", current=1, total=2)
    return log.say("tool.finished", call_id="c1", duration_ms=1000, output="2 items")


def everything() -> Log:
    log = say(begin(), "Weighing it", "r1", "reasoning").say("model.completed", response_id="r1")
    log.request("c1", "expert", "agent", title="Expert").say("tool.started", call_id="c1")
    log.request("c1/c9", "look", title="Look up").say("tool.arguments.delta", call_id="c1/c9", index=0, text='{"n":')
    log.say("tool.arguments.completed", call_id="c1/c9", arguments='{"n":1}')
    log.say("tool.skipped", call_id="c1/c9", reason="not_run").say("tool.finished", call_id="c1", summary="short")
    log.request("w1", "web_search", "hosted").say("tool.started", call_id="w1").say("tool.finished", call_id="w1")
    log.request("w2", "web_search", "hosted").say("tool.failed", call_id="w2", code="server_error")
    log.say("handoff.requested", from_agent="Clerk", to_agent="Payer")
    log.say("handoff.completed", from_agent="Clerk", to_agent="Payer").say("agent.changed", agent="Payer")
    log.say("stage.started", stage_id="s1", title="Check").say("stage.completed", stage_id="s1", title="Check")
    log.say("guardrail.tripped", stage="input", name="on_topic").say("usage.updated", **USAGE)
    log.say("source.cited", item_id="m1", kind="url_citation", title="News", url="https://example.org/news")
    log.say("source.cited", item_id="m1", kind="file_citation", title="prices.pdf")
    log.say("source.cited", item_id="m1", kind="url_citation", url="javascript:alert(1)")
    log.say("artifact.created", artifact_id="a1", name="chart.png", media_type="image/png", bytes=12, call_id="c1")
    return say(log.say("note.mood", good=True).say("model.started", response_id="r2"))


def two_parts() -> Log:
    """A message whose first part was completed before its second began."""
    log = say(begin(), "One. ")
    for index, piece in enumerate(("Tw", "o.", " Three."), 2):
        log.say("text.delta", item_id="m1", index=index, text=piece)
    return log.say("text.completed", item_id="m1", text="One. Two. Three.")


def two_runs(decision: str) -> tuple[list[Envelope], list[Envelope]]:
    """A task whose runs have texts and calls in turn, and items of the same name."""
    first = say(called(say(begin(), "Let me look. ")).say("model.started", response_id="r2"), "I ask. ", "m2")
    asked(first, call_id="c2").end("paused")
    second = asked(Log(f"{RUN}.2").start(resumed_from=RUN), call_id="c2")
    second.say("approval.resolved", interaction_id="ask-1", decision=decision)
    if decision == "approved":
        second.say("tool.started", call_id="c2").say("tool.finished", call_id="c2", output="paid")
    else:
        second.say("tool.rejected", call_id="c2", reason="rejected")
    say(second.say("model.started", response_id="r3"), "One more. ", "m2").request("c3").say(
        "tool.started", call_id="c3"
    )
    say(second.say("tool.finished", call_id="c3").say("model.started", response_id="r4"), item_id="m3")
    return first.envelopes, second.end().check().envelopes


def repeating() -> list[list[Envelope]]:
    """Three runs of a task whose provider numbers the calls of each response anew."""
    runs = [Log(run_id).start(resumed_from=before) for run_id, before in ((RUN, None), (f"{RUN}.2", RUN))]
    runs.append(Log(f"{RUN}.3").start(resumed_from=f"{RUN}.2"))
    first, second, third = runs
    first.request("c1", arguments="1").say("tool.finished", call_id="c1", output="one")
    asked(first, call_id="c2", arguments="2").end("paused")
    asked(second, call_id="c2", arguments="2").say("approval.resolved", interaction_id="ask-1", decision="approved")
    second.say("tool.finished", call_id="c2", output="two")
    asked(second, call_id="c1", name="ask-2", arguments="3").end("paused")
    asked(third, call_id="c1", name="ask-2", arguments="3")
    third.say("approval.resolved", interaction_id="ask-2", decision="approved")
    third.say("tool.finished", call_id="c1", output="three").request("c2", arguments="4")
    third.say("tool.finished", call_id="c2", output="four").end().check()
    return [log.envelopes for log in runs]


WAITED = asked(begin()).end("paused").envelopes
"""The log of the run that :func:`answered` goes on with."""


def contradictory() -> Log:
    """Says success while a call is open: the stream of a naive bridge would end well."""
    return say(begin().request()).end().check()


SITUATIONS: tuple[Situation, ...] = (
    Situation("plain", say(begin()).end().check().envelopes, "done"),
    Situation("tools", say(called(begin()).say("model.started", response_id="r2")).end().check().envelopes, "done"),
    Situation(
        "failed_tool",
        say(begin().request().say("tool.failed", call_id="c1", code="timeout", message="No reply in time."))
        .end()
        .check()
        .envelopes,
        "done",
    ),
    Situation("everything", everything().end().check().envelopes, "done"),
    Situation(
        "tool_output_is_answer", called(begin()).end(final_output="2 items").check(output="2 items").envelopes, "done"
    ),
    Situation(
        "json_answer",
        say(begin(), '{"eur": 12}').end(final_output='{"eur":12}').check(output='{"eur":12}').envelopes,
        "done",
    ),
    Situation(
        "two_parts", two_parts().end(final_output="One. Two. Three.").check(output="One. Two. Three.").envelopes, "done"
    ),
    Situation(
        "never_streamed", begin().say("text.completed", item_id="m1", text=OUTPUT).end().check().envelopes, "done"
    ),
    Situation("paused", asked(begin()).end("paused").envelopes, "waiting"),
    Situation("paused_blind", asked(begin(), shown=False, blind=True).end("paused").envelopes, "waiting"),
    Situation("paused_hidden", asked(begin(), shown=False).end("paused").envelopes, "waiting"),
    Situation("paused_for_words", asked(begin(), kind="clarification").end("paused").envelopes, "waiting"),
    Situation(
        "paused_for_words_blind",
        asked(begin(), shown=False, blind=True, kind="clarification").end("paused").envelopes,
        "waiting",
    ),
    Situation("paused_for_a_choice", choosing(begin()).end("paused").envelopes, "waiting"),
    Situation("paused_for_both", choosing(asked(begin()), "c2").end("paused").envelopes, "waiting"),
    Situation("approved", answered("approved").end().check().envelopes, "done", earlier=WAITED),
    Situation("rejected", answered("rejected").end().check().envelopes, "done", earlier=WAITED),
    Situation(
        "answered_in_words", answered("approved", "clarification").end().check().envelopes, "done", earlier=WAITED
    ),
    Situation("declined", answered("rejected", "clarification").end().check().envelopes, "done", earlier=WAITED),
    Situation("approved_elsewhere", answered("approved").end().check().envelopes, "done"),
    Situation("rejected_elsewhere", answered("rejected").end().check().envelopes, "done"),
    Situation(
        "cancelled",
        say(begin(), ends=False)
        .say("cancel.requested", mode="immediate")
        .end("cancelled", requested_by=None)
        .envelopes,
        "cancelled",
    ),
    Situation(
        "cancelled_anyway_complete",
        say(begin()).say("cancel.requested").end("cancelled", OUTPUT, completed_anyway=True).envelopes,
        "cancelled",
    ),
    Situation("incomplete", say(begin(), ends=False).end("incomplete", reason="max_turns").envelopes, "incomplete"),
    Situation("failed", say(begin(), ends=False).end("failed", error=ERROR).envelopes, "failed"),
    Situation("refused", say(begin()).end().check(ok=False).envelopes, "rejected"),
    Situation("lost", say(begin(), ends=False).say("run.lost", reason="owner_gone").envelopes, "unknown"),
    Situation(
        "lost_while_reasoning",
        say(begin(), channel="reasoning", ends=False).say("run.lost", reason="owner_gone").envelopes,
        "unknown",
    ),
    Situation(
        "failed_while_reasoning",
        say(begin(), channel="reasoning", ends=False).end("failed", error=ERROR).envelopes,
        "failed",
    ),
    Situation("not_checked", say(begin()).end().envelopes, "checking", cut="not_checked"),
    Situation("server_goes", say(begin(), ends=False).envelopes, "running", cut="try_again"),
    Situation(
        "unsupported", say(begin()).say("adapter.unsupported", what="item", name="X").end().check().envelopes, "unknown"
    ),
    Situation(
        "corrected",
        say(begin(), "Wrong", ends=False).say("text.completed", item_id="m1", text=OUTPUT).end().check().envelopes,
        "done",
    ),
    Situation("contradictory", contradictory().envelopes, "unknown", cut="unknown"),
    Situation(
        "gap", [step for step in say(begin()).end().check().envelopes if step.seq != 4], "unknown", cut="unknown"
    ),
)


def written(events: Iterable[Event]) -> str:
    return "".join(f"{json.dumps(event, ensure_ascii=False)}\n" for event in events)


def main() -> None:
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for situation in SITUATIONS:
        for major in MAJORS:
            (GOLDEN / f"{situation.name}.{major}.jsonl").write_text(written(situation.stream(major)), encoding="utf-8")


if __name__ == "__main__":
    main()
