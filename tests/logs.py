"""Envelopes for tests: a short way to write a log by hand, and a strategy that makes valid logs of every type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import strategies as st

from agents_progress.events import Envelope
from agents_progress.testing.contract.logs import OUTPUT, RUN, Log, envelope
from agents_progress.verify import digest

__all__ = ["OUTPUT", "RUN", "USAGE", "Log", "envelope", "logs", "older"]

USAGE = {
    "requests": 1,
    "input_tokens": 10,
    "output_tokens": 5,
    "total_tokens": 15,
    "cached_tokens": None,
    "reasoning_tokens": None,
    "status": "partial",
}


def older(snapshot: dict[str, Any]) -> dict[str, Any]:
    """A snapshot as it was stored before it was kept what began when."""
    plain = {name: value for name, value in snapshot["plain"].items() if name != "responses"}
    rows = {
        kind: [{name: value for name, value in row.items() if name != "seq"} for row in snapshot[kind]]
        for kind in ("rows", "interactions", "texts")
    }
    return {**snapshot, **rows, "plain": plain}


# The strategy.

names = st.text(max_size=12)
ids = st.text(alphabet="abcXYZ019._-", min_size=1, max_size=8)
texts = st.text(max_size=40)
counts = st.integers(0, 2**40)
maybe_count = st.none() | counts
amounts = st.none() | st.integers(-5, 2**40) | st.floats(allow_nan=False, allow_infinity=False)
numbers = st.integers(-(2**70), 2**70) | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
json_objects = st.dictionaries(names, json_values, max_size=3)
digests = st.text(alphabet="0123456789abcdef", min_size=64, max_size=64)
channels = st.sampled_from(["answer", "refusal", "transcript", "reasoning"])
marks = st.sampled_from([{}, {"approve_blind": True}, {"approve_blind": False}, {"approve_blind": 1, "more": None}])
kinds = st.sampled_from(["function", "hosted", "mcp", "agent", "computer", "shell", "patch", "custom"])


class _Author:
    """Draws one valid log: what it may say next depends on what it said before."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw = draw
        self.log = Log()
        self.tools: dict[str, str] = {}
        self.arguments: dict[str, int] = {}
        self.deltas: dict[tuple[str, str], int] = {}
        self.asked: dict[str, bool] = {}
        self.stages: dict[str, bool] = {}
        self.cancelled = False

    def say(self, type_: str, /, **payload: Any) -> None:
        if self.draw(st.integers(0, 15)) == 0:
            payload["x"] = self.draw(json_objects)
        self.log.say(type_, **payload)

    def some(self, **fields: st.SearchStrategy[Any]) -> dict[str, Any]:
        """A drawn part of optional fields."""
        return {name: self.draw(value) for name, value in fields.items() if self.draw(st.booleans())}

    def step(self) -> None:
        steps: list[Callable[[], None]] = [
            self.model,
            self.delta,
            self.text_done,
            self.request,
            self.plain,
            self.handoff,
            self.stage,
            self.wait,
        ]
        if any(state != "closed" for state in self.tools.values()):
            steps += [self.tool_start, self.tool_report, self.tool_settle]
        if any(self.asked.values()):
            steps.append(self.resolve)
        self.draw(st.sampled_from(steps))()

    def model(self) -> None:
        kind = self.draw(st.sampled_from(["started", "completed", "incomplete", "failed"]))
        self.say(f"model.{kind}", response_id=self.draw(ids), **self.some(reason=names, code=names))

    def delta(self) -> None:
        item = self.draw(st.sampled_from(["m1", "m2"])), self.draw(channels)
        index = self.deltas.get(item, 0)
        self.deltas[item] = index + 1
        channel = {} if item[1] == "answer" and self.draw(st.booleans()) else {"channel": item[1]}
        self.say("text.delta", item_id=item[0], index=index, text=self.draw(texts), **channel)

    def text_done(self) -> None:
        self.say(
            "text.completed",
            item_id=self.draw(st.sampled_from(["m1", "m2"])),
            **self.some(text=texts, channel=channels),
        )

    def request(self) -> None:
        call_id = self.draw(ids)
        if call_id in self.tools:
            call_id = f"{call_id}#{len(self.tools)}"
        self.tools[call_id] = "requested"
        more = self.some(title=names, arguments=texts)
        self.say("tool.requested", call_id=call_id, name=self.draw(names), kind=self.draw(kinds), **more)

    def open_tool(self, *states: str) -> str | None:
        found = [call_id for call_id, state in self.tools.items() if state in states]
        return self.draw(st.sampled_from(found)) if found else None

    def tool_start(self) -> None:
        call_id = self.open_tool("requested")
        if call_id is not None:
            self.tools[call_id] = "running"
            self.say("tool.started", call_id=call_id)

    def tool_report(self) -> None:
        call_id = self.open_tool("requested", "running")
        what = self.draw(st.sampled_from(["progress", "delta", "completed"]))
        if what == "progress":
            message, current, total = self.draw(texts), self.draw(amounts), self.draw(amounts)
            self.say("tool.progress", call_id=call_id, message=message, current=current, total=total)
        elif what == "delta":
            index = self.arguments.get(call_id or "", 0)
            self.arguments[call_id or ""] = index + 1
            self.say("tool.arguments.delta", call_id=call_id, index=index, text=self.draw(texts))
        else:
            self.say("tool.arguments.completed", call_id=call_id, arguments=self.draw(texts))

    def tool_settle(self) -> None:
        call_id = self.open_tool("requested", "running")
        self.settle(call_id or "")

    def settle(self, call_id: str) -> None:
        self.tools[call_id] = "closed"
        how = self.draw(st.sampled_from(["finished", "failed", "rejected", "skipped"]))
        if how == "finished":
            more = self.some(duration_ms=counts, summary=texts, output=texts, reused=st.booleans())
        elif how == "failed":
            more = self.some(code=names, message=texts, retryable=st.booleans())
        else:
            more = {"reason": self.draw(names)}
        self.say(f"tool.{how}", call_id=call_id, **more)

    def handoff(self) -> None:
        kind = self.draw(st.sampled_from(["requested", "completed"]))
        self.say(f"handoff.{kind}", from_agent=self.draw(names), to_agent=self.draw(names))

    def stage(self) -> None:
        started = [stage_id for stage_id, is_open in self.stages.items() if is_open]
        if started and self.draw(st.booleans()):
            stage_id = self.draw(st.sampled_from(started))
            self.stages[stage_id] = False
            self.say("stage.completed", stage_id=stage_id, title=self.draw(names))
        else:
            stage_id = f"stage-{len(self.stages) + 1}"
            self.stages[stage_id] = True
            self.say("stage.started", stage_id=stage_id, title=self.draw(names))

    def wait(self) -> None:
        interaction_id = f"ask-{len(self.asked) + 1}"
        self.asked[interaction_id] = True
        self.say(
            "approval.wait",
            interaction_id=interaction_id,
            call_id=self.draw(st.none() | ids),
            tool=self.draw(names),
            title=self.draw(names),
            **self.some(digest=digests, details=texts, kind=names, expires_at=names, x=marks),
        )

    def resolve(self) -> None:
        self.answer(self.draw(st.sampled_from([name for name, is_open in self.asked.items() if is_open])))

    def answer(self, interaction_id: str) -> None:
        self.asked[interaction_id] = False
        decision = self.draw(st.sampled_from(["approved", "rejected", "expired", "cancelled"]))
        self.say("approval.resolved", interaction_id=interaction_id, decision=decision, **self.some(actor=names))

    def plain(self) -> None:
        """A type that depends on nothing said before."""
        draw = self.draw
        choice = draw(st.integers(0, 8))
        if choice == 0:
            self.say("agent.changed", agent=draw(names))
        elif choice == 1:
            self.say("guardrail.tripped", stage=draw(names), name=draw(names))
        elif choice == 2:
            self.say("source.cited", item_id=draw(ids), kind=draw(names), **self.some(title=names, url=texts))
        elif choice == 3:
            more = self.some(call_id=ids, sha256=digests, ref=texts)
            self.say(
                "artifact.created",
                artifact_id=draw(ids),
                name=draw(names),
                media_type=draw(names),
                bytes=draw(counts),
                **more,
            )
        elif choice == 4:
            tokens = {name: draw(maybe_count) for name in USAGE if name != "status"}
            self.say("usage.updated", **tokens, status=draw(st.sampled_from(["reported", "partial", "unavailable"])))
        elif choice == 5:
            self.cancelled = True
            more = self.some(mode=st.sampled_from(["immediate", "after_turn"]), actor=names)
            self.say("cancel.requested", **more)
        elif choice == 6:
            self.say("adapter.unsupported", what=draw(names), name=draw(names))
        else:
            self.say(f"note.{draw(st.sampled_from(['a', 'b_2', 'c.d']))}", **draw(json_objects))

    def begin(self) -> None:
        draw = self.draw
        if draw(st.booleans()):
            self.say("run.accepted", task_id=draw(ids), **self.some(title=names))
        parent = {"run_id": draw(ids), "call_id": draw(ids)} if draw(st.booleans()) else None
        self.say(
            "run.started",
            agent=draw(names),
            task_id=draw(ids),
            parent=parent,
            resumed_from=draw(st.none() | ids),
            **self.some(title=names, attempt=st.integers(1, 9)),
        )

    def finish(self, kind: str) -> None:
        draw = self.draw
        if kind == "lost":
            self.say("run.lost", reason=draw(names))
        elif kind == "succeeded":
            for call_id in [name for name, state in self.tools.items() if state != "closed"]:
                self.settle(call_id)
            for interaction_id in [name for name, is_open in self.asked.items() if is_open]:
                self.answer(interaction_id)
            output = draw(texts)
            self.say("run.ended", outcome="succeeded", final_output=output, **self.some(evidence=json_objects))
            if draw(st.booleans()):
                more = self.some(check=names, reason=texts)
                self.say("app.checked", digest=digest(output), ok=draw(st.booleans()), **more)
        else:
            error = {
                "code": draw(names),
                "message": draw(names),
                "retryable": draw(st.booleans()),
                "phase": draw(names),
            }
            more = self.some(
                reason=names,
                error=st.just(error),
                partial=st.booleans(),
                completed_anyway=st.booleans(),
                requested_by=st.none() | names,
            )
            self.say("run.ended", outcome=kind, final_output=draw(st.none() | texts), **more)
        if draw(st.booleans()):
            self.log.say("note.after", **draw(json_objects))


@st.composite
def logs(draw: Callable[[st.SearchStrategy[Any]], Any], max_steps: int = 25) -> list[Envelope]:
    """A whole valid log of one run; it may be open, and it may hold any type of the protocol."""
    author = _Author(draw)
    author.begin()
    for _ in range(draw(st.integers(0, max_steps))):
        author.step()
    endings = ["open", "lost", "paused", "cancelled", "failed", "incomplete"]
    if not author.cancelled:
        endings += ["succeeded", "succeeded"]
    kind = draw(st.sampled_from(endings))
    if kind != "open":
        author.finish(kind)
    return author.log.envelopes
