"""Logs written by hand: one for each of the eleven statuses, and some with any text in every field of every type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from agents_progress.messages import Status
from agents_progress.testing.contract.logs import Log
from agents_progress.verify import digest

ANSWER: Final = "Order 4711: 12 EUR refunded.\n巡检完成：两项。"
ERROR: Final = {"code": "model_error", "message": "The model could not answer.", "retryable": True, "phase": "model"}
DETAILS: Final = '{"order":4711,"eur":12}'


def begun(run_id: str, title: str = "Refund a broken cup") -> Log:
    return Log(run_id).say("run.started", agent="Clerk", task_id=run_id, parent=None, resumed_from=None, title=title)


def worked(log: Log) -> Log:
    """Work of every kind that ended: returned, failed, refused, not run, under another call, a stage."""
    log.say("stage.started", stage_id="s1", title="Look up")
    log.request("c1", "look_up", title="Look up order").say("tool.started", call_id="c1")
    log.say("tool.finished", call_id="c1", duration_ms=320, summary="order 4711")
    log.request("c2", "stock", title="Check stock").say("tool.started", call_id="c2")
    log.say("tool.failed", call_id="c2", code="timeout", message="took too long")
    log.request("c3", "ask", "agent", title="Ask the shop").say("tool.started", call_id="c3")
    log.request("c3/c1", "read", title="Read mail").say("tool.started", call_id="c3/c1")
    log.say("tool.finished", call_id="c3/c1", duration_ms=1250).say("tool.finished", call_id="c3", duration_ms=1400)
    log.request("c4", "call", title="Call the customer").say("tool.rejected", call_id="c4", reason="rejected")
    return log.say("stage.completed", stage_id="s1", title="Look up")


def working(log: Log) -> Log:
    """Work that has not ended, of which one row counts."""
    log.request("w1", "refund", title="Refund order 4711").say("tool.started", call_id="w1")
    log.say("tool.progress", call_id="w1", message="sending", current=3, total=10)
    return log.request("w2", "search", "hosted", title="Search the web")


def half(log: Log) -> Log:
    return log.say("text.delta", item_id="m1", index=0, text="Order 4711: 12 EU")


def answered(log: Log) -> Log:
    return log.say("text.delta", item_id="m1", index=0, text=ANSWER).say("text.completed", item_id="m1")


def found(log: Log) -> Log:
    log.say("artifact.created", artifact_id="a1", name="table.csv", media_type="text/csv", bytes=2048)
    log.say("source.cited", item_id="m1", kind="url_citation", title="Prices", url="https://prices.test/a?b=1")
    return log.say("source.cited", item_id="m1", kind="file_citation", title="terms.pdf")


def asked(log: Log) -> Log:
    log.request("q1", "refund", title="Refund")
    return log.say(
        "approval.wait",
        interaction_id="ask-1",
        call_id="q1",
        tool="refund",
        title="Refund 12 EUR",
        digest="a" * 64,
        details=DETAILS,
        expires_at="2099-01-01T08:00:00Z",
    )


def hidden(log: Log) -> Log:
    log.request("q2", "publish", title="Publish")
    return log.say("approval.wait", interaction_id="ask-2", call_id="q2", tool="publish", title="Publish the report")


def ended(log: Log, output: str = ANSWER) -> Log:
    return found(answered(worked(log))).end(final_output=output)


STATUSES: Final[Mapping[Status, Callable[[str], Log]]] = {
    "accepted": lambda run_id: Log(run_id).say("run.accepted", task_id=run_id, title="Refund a broken cup"),
    "running": lambda run_id: half(working(worked(begun(run_id)))),
    "waiting": lambda run_id: hidden(asked(half(worked(begun(run_id))))).end("paused"),
    "cancelling": lambda run_id: working(worked(begun(run_id))).say("cancel.requested", actor="ada"),
    "checking": lambda run_id: ended(begun(run_id)),
    "done": lambda run_id: ended(begun(run_id)).check(output=ANSWER),
    "rejected": lambda run_id: ended(begun(run_id)).check(ok=False, output=ANSWER),
    "cancelled": lambda run_id: (
        half(working(worked(begun(run_id)))).say("cancel.requested", actor="ada").end("cancelled", requested_by="ada")
    ),
    "failed": lambda run_id: half(working(worked(begun(run_id)))).end("failed", error=ERROR, partial=True),
    "incomplete": lambda run_id: half(worked(begun(run_id))).end("incomplete", reason="max_turns", partial=True),
    "unknown": lambda run_id: half(working(begun(run_id))).say("run.lost", reason="lease_expired"),
}
OPEN: Final = frozenset({"accepted", "running", "cancelling"})
"""Statuses of runs to which something may still be said."""

HOSTILE: Final[Mapping[str, str]] = {
    "markup": "<img src=x onerror=alert(1)><b>bold</b><!-- --></section><style>*{display:none}</style>",
    "script": "<script>alert(1)</script></script><script src=//evil.test/x.js></script>",
    "svg": "<svg onload=alert(1)><a xlink:href='javascript:alert(1)'><text>x</text></a></svg>",
    "entities": "&lt;script&gt;&#60;img src=x onerror=alert(1)&#62;&amp;",
    "template": "${alert(1)} {{constructor.constructor('alert(1)')()}} <template><slot name=x></slot></template>",
    "attribute": '" onmouseover="alert(1)" x=" \' autofocus onfocus=\'alert(1)',
    "link": "javascript:alert(1)//https://evil.test",
    "ansi": "\x1b[2J\x1b[31mred\x1b]8;;https://evil.test\x07link\x1b]8;;\x07\x1b[0m",
    "c1": "\x9b31mred\x85next\x90q\x9c",
    "bidi": "\u202etxt.exe\u202c \u2066abc\u2069 \u200e\u200f\u061c",
    "nul": "before\x00after\x08\x7f",
    "unseen": "a\u200bb\u2060c\ufeffd\u00ade\u2028f\u2029g\U000e0041\U0001d173",
    "marks": "Z" + "\u0300\u0489\u20dd" * 3400,
    "words": "Wörter" * 2000,
    "lines": "one\ntwo\r\nthree\rfour\tfive\n\n\n",
    "words of ours": "Done: the run ended and the check passed",
}
HARMLESS: Final = "harmless"


def everything(run_id: str, text: str) -> Log:
    """A log of every event type of the protocol, with the text in every field that takes one, which is running."""
    name, key = text[:512], text[:200]
    log = Log(run_id).say("run.accepted", task_id=run_id, title=name)
    log.say("run.started", agent=name, task_id=run_id, parent=None, resumed_from=None, title=name)
    log.say("agent.changed", agent=name)
    for kind in ("started", "completed", "incomplete", "failed"):
        log.say(f"model.{kind}", response_id=key, reason=name, code=name)
    for channel in ("reasoning", "transcript", "refusal", "answer"):
        log.say("text.delta", item_id=f"1 {key}", index=0, text=text, channel=channel)
    log.say("text.delta", item_id=key, index=0, text=HARMLESS).say("text.completed", item_id=key, text=text)
    for call_id, last in SETTLED.items():
        log.request(call_id, name, title=name, arguments=text)
        log.say("tool.arguments.delta", call_id=call_id, index=0, text=text)
        log.say("tool.arguments.completed", call_id=call_id, arguments=text).say("tool.started", call_id=call_id)
        log.say("tool.progress", call_id=call_id, message=text, current=1, total=3)
        for type_, more in last.items():
            log.say(
                type_,
                call_id=call_id,
                **{key: {"name": name, "text": text}.get(kind, kind) for key, kind in more.items()},
            )
    log.say("handoff.requested", from_agent=name, to_agent=name).say(
        "handoff.completed", from_agent=name, to_agent=name
    )
    log.say("guardrail.tripped", stage=name, name=name)
    log.say("stage.started", stage_id=key, title=name).say("stage.completed", stage_id=key, title=name)
    log.say("source.cited", item_id=key, kind=name, title=name, url=text).say("source.cited", item_id=key, kind=name)
    log.say("artifact.created", artifact_id=key, name=name, media_type=name, bytes=3, ref=text)
    log.say("usage.updated", **TOKENS, status="reported").say("note.any", text=text)
    for number, decision in enumerate(("approved", "rejected", "expired", "cancelled", None), 1):
        asks = f"{number} {key}"
        more = {"tool": name, "title": name, "details": text, "kind": name, "expires_at": name}
        log.say("approval.wait", interaction_id=asks, call_id=None, **more)
        if decision is not None:
            log.say("approval.resolved", interaction_id=asks, decision=decision, actor=name)
    return log


SETTLED: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "c1": {"tool.finished": {"summary": "text", "output": "text"}},
    "c2": {"tool.failed": {"code": "name", "message": "text"}},
    "c3": {"tool.rejected": {"reason": "name"}},
    "c4": {"tool.skipped": {"reason": "name"}},
    "c5": {},
}
TOKENS: Final = dict.fromkeys(
    ("requests", "input_tokens", "output_tokens", "total_tokens", "cached_tokens", "reasoning_tokens"), 7
)


ENDINGS: Final[Mapping[str, Status]] = {
    "open": "waiting",
    "paused": "waiting",
    "failed": "failed",
    "cancelled": "cancelled",
    "lost": "unknown",
    "unsupported": "waiting",
    "rejected": "rejected",
}
"""Ends of the hostile logs, and their statuses."""


def endings(run_id: str, text: str) -> dict[str, Log]:
    """The same log with each of its ends, and the text in every field of those."""
    name = text[:512]
    error = {"code": name, "message": name, "retryable": False, "phase": name}
    failed = {"reason": name, "error": error, "partial": True, "evidence": {"text": text}}
    logs = {ending: everything(f"{run_id}-{ending}", text) for ending in ENDINGS}
    logs["paused"].end("paused", final_output=text)
    logs["failed"].end("failed", final_output=text, **failed)
    logs["cancelled"].say("cancel.requested", actor=name)
    logs["cancelled"].end("cancelled", requested_by=name, completed_anyway=True)
    logs["lost"].say("run.lost", reason=name)
    logs["unsupported"].say("adapter.unsupported", what=name, name=name)
    closed = logs["rejected"].say("tool.skipped", call_id="c5", reason=name)
    closed.say("approval.resolved", interaction_id=f"5 {text[:200]}", decision="rejected", actor=name)
    closed.end(final_output=text).say("app.checked", digest=digest(text), ok=False, check=name, reason=text)
    return logs
