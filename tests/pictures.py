"""How the eleven statuses look in a terminal, 80 and 20 cells wide: ``python -m tests.pictures`` writes them anew.

Look at the difference before you commit it: this is what people see.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from agents_progress.events import Envelope, check_payload
from agents_progress.messages import LANGUAGES, Language, Status
from agents_progress.render import render
from agents_progress.view import RunView

FOLDER: Final = Path(__file__).parent / "golden" / "terminal"
WIDTHS: Final = (80, 20)
Event = tuple[str, dict[str, Any]]

OUTPUT: Final = "Order 4711: 12 EUR refunded, receipt R-0815.\n订单已退款 ✓"


def told(language: Language, english: str, chinese: str) -> str:
    return {"en": english, "zh": chinese}[language]


def call(call_id: str, title: str, *steps: Event, kind: str = "function") -> Iterator[Event]:
    yield "tool.requested", {"call_id": call_id, "name": "f", "kind": kind, "title": title}
    for type_, more in steps:
        yield type_, {"call_id": call_id, **more}


def ended(outcome: str, output: str | None = None, **more: Any) -> Event:
    return "run.ended", {"outcome": outcome, "final_output": output, **more}


def spoken(text: str, *, whole: bool) -> Iterator[Event]:
    yield "text.delta", {"item_id": "m", "index": 0, "text": text}
    if whole:
        yield "text.completed", {"item_id": "m"}


def used(status: str) -> Event:
    counted = {"requests": 2, "input_tokens": 1100, "output_tokens": 134, "total_tokens": 1234}
    return "usage.updated", {**counted, "cached_tokens": None, "reasoning_tokens": None, "status": status}


def begun(language: Language) -> list[Event]:
    title = told(language, "Refund a broken cup", "为碎杯退款")
    start = {"agent": "Clerk", "task_id": "t", "parent": None, "resumed_from": None, "title": title}
    returned: Event = ("tool.finished", {"duration_ms": 320, "summary": told(language, "one blue cup", "一只蓝色杯子")})
    gone: Event = ("tool.failed", {"code": "timeout", "message": told(language, "took too long", "超时")})
    found = [
        step
        for n in range(1, 5)
        for step in call(f"f{n}", f"{told(language, 'Check shelf', '检查货架')} {n}", returned)
    ]
    return [
        ("run.started", start),
        *call("look", told(language, "Look up order", "查询订单"), ("tool.started", {}), returned),
        *found,
        *call("price", told(language, "Ask for the price", "询价"), ("tool.started", {}), gone),
    ]


def at_work(language: Language) -> list[Event]:
    progress = {"message": told(language, "shelf", "货架"), "current": 2, "total": 3}
    return [
        *call("ask", told(language, "Ask the store", "询问仓库"), ("tool.started", {}), kind="agent"),
        *call(
            "ask/stock", told(language, "Check stock", "检查库存"), ("tool.started", {}), ("tool.progress", progress)
        ),
    ]


def asked(language: Language) -> list[Event]:
    questions = (
        (told(language, "Refund", "退款"), "refund"),
        (told(language, "Tell the customer", "通知顾客"), "tell"),
    )
    shown = {"details": '{"order": 4711, "eur": 12}', "expires_at": "2026-10-08T08:00:00Z"}
    return [
        (
            "approval.wait",
            {"interaction_id": f"ask-{n}", "call_id": None, "tool": tool, "title": title, **(shown if n == 1 else {})},
        )
        for n, (title, tool) in enumerate(questions, 1)
    ]


def answered(language: Language) -> list[Event]:
    title = told(language, "Terms of return", "退货条款")
    return [
        *spoken(OUTPUT, whole=True),
        (
            "artifact.created",
            {"artifact_id": "a", "name": "receipt.pdf", "media_type": "application/pdf", "bytes": 4096},
        ),
        ("source.cited", {"item_id": "m", "kind": "url", "title": title, "url": "https://shop.example/terms"}),
        used("reported"),
    ]


def checked(*, ok: bool, **more: str) -> Event:
    digest = hashlib.sha256(OUTPUT.encode()).hexdigest()
    return "app.checked", {"digest": digest, "ok": ok, "check": "matches", **more}


def story(status: Status, language: Language) -> list[Event]:
    """A run that has this status, with as much to show as such a run may have."""
    start, work, answer = begun(language), at_work(language), answered(language)
    said = list(spoken(told(language, "I am sorry about the cup. I look", "杯子碎了，很抱歉。我先"), whole=False))
    failure = {"code": "model_error", "message": "The model could not answer.", "retryable": True, "phase": "model"}
    cancel: Event = ("cancel.requested", {"actor": "terminal"})
    endings: dict[Status, list[Event]] = {
        "accepted": [("run.accepted", {"task_id": "t", "title": told(language, "Refund a broken cup", "为碎杯退款")})],
        "running": [*start, *work, *said, used("partial")],
        "waiting": [*start, *asked(language), used("reported"), ended("paused")],
        "cancelling": [*start, *work, *said, cancel],
        "checking": [*start, *answer, ended("succeeded", OUTPUT)],
        "done": [*start, *answer, ended("succeeded", OUTPUT), checked(ok=True)],
        "rejected": [*start, *answer, ended("succeeded", OUTPUT), checked(ok=False, reason="no total")],
        "cancelled": [*start, *work, *said, cancel, ended("cancelled", requested_by="terminal")],
        "failed": [*start, *work, *said, used("partial"), ended("failed", error=failure, partial=True)],
        "incomplete": [*start, *said, used("reported"), ended("incomplete", reason="max_turns")],
        "unknown": [*start, *work, *said, ("run.lost", {"reason": "lease_expired"})],
    }
    return endings[status]


def seen(events: list[Event], language: Language) -> RunView:
    view = RunView("run-1", language)
    for seq, (type_, payload) in enumerate(events, 1):
        envelope = Envelope(f"run-1:{seq}", "run-1", seq, type_, "2026-10-07T08:00:01Z", payload)
        check_payload(envelope)
        view.feed(envelope)
    return view


def picture(language: Language, width: int) -> str:
    """The eleven statuses below each other."""
    statuses: tuple[Status, ...] = Status.__args__  # type: ignore[attr-defined]
    return "".join(f"== {name}\n{render(seen(story(name, language), language), width)}\n" for name in statuses)


def file_of(language: Language, width: int) -> Path:
    return FOLDER / f"{language}-{width}.txt"


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    for language in LANGUAGES:
        for width in WIDTHS:
            file_of(language, width).write_text(picture(language, width), encoding="utf-8")
