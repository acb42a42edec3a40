"""The AG-UI streams of every situation a front end meets, whole and for whoever comes in the middle.

``python -m tests.ag_ui_streams`` writes them to ``tests/golden/ag_ui``; a test compares, since their form is what front
ends are written to.
"""

from __future__ import annotations

from pathlib import Path

from agents_progress.bridges.ag_ui_projection import AgUiProjection
from agents_progress.bridges.base import Event
from agents_progress.view import RunView
from tests.logs import RUN
from tests.vercel_logs import SITUATIONS, Situation, asked, begin, viewed, written

GOLDEN = Path(__file__).parent / "golden" / "ag_ui"


def stream(situation: Situation, start: int = 0) -> list[Event]:
    """What a client gets that comes after so many envelopes."""
    log, projection = situation.envelopes, AgUiProjection("thread-1")
    view = RunView(log[0].run_id)
    for envelope in log[:start]:
        view.feed(envelope)
    goes_on = view.run_id != RUN  # from a pause that asked the same
    events = projection.join(view, [viewed(asked(begin()).end("paused").envelopes)] if goes_on else [])
    for envelope in log[start:]:
        events += projection.feed(envelope)
    return events + (projection.cut(situation.cut) if situation.cut else [])


def stored() -> dict[str, str]:
    """The name of every file, and what it holds."""
    found = {}
    for situation in SITUATIONS:
        found[f"{situation.name}.jsonl"] = written(stream(situation))
        found[f"{situation.name}.joined.jsonl"] = written(stream(situation, len(situation.envelopes) * 2 // 3))
    return found


def main() -> None:
    GOLDEN.mkdir(parents=True, exist_ok=True)
    for name, text in stored().items():
        (GOLDEN / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
