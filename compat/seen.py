"""What a reader of a scenario's logs sees in the end: the facts that `expected.tsv` holds, one line a scenario."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable
from dataclasses import astuple, dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from agents_progress.events import PROTOCOL
from agents_progress.payloads import ENDINGS
from agents_progress.rows import OPEN_STATES, Activity
from agents_progress.view import RunView

from .play import Line, Performance

EXPECTED = Path(__file__).parent / "expected.tsv"

MAY_STAY_OPEN = frozenset({"none", "paused", "cancelled", "failed", "incomplete"})
"""Endings after which a tool may still be shown as asked for or at work; after any other that is a contradiction."""


@dataclass(frozen=True)
class Seen:
    """The facts of one scenario, as they stand in the TSV. All but the first three are those of its last run."""

    scenario: str
    body: str
    """How the scenario's own code ended: `returned`, or `raised` and the class."""
    endings: str
    """The outcome of each run, in order; `none` for a run without an ending, `a+b` for one with two of them."""
    reason: str
    """The reason of a limit or the code of a failure."""
    status: str
    activities: str
    """Every row: its name and its state."""
    text: str
    """The newest answer message."""
    output: str
    """The final output; `-` when there is none."""


COLUMNS = tuple(field.name for field in fields(Seen))


def logged(run_id: str, lines: Iterable[Line]) -> list[dict[str, Any]]:
    """The envelopes of one run, with the fields that the clock and the journal give."""
    return [
        {
            "protocol": PROTOCOL,
            "event_id": f"{run_id}:{seq}",
            "run_id": run_id,
            "seq": seq,
            "type": type_,
            "occurred_at": "1970-01-01T00:00:00.000Z",
            "payload": payload,
        }
        for seq, (type_, payload) in enumerate(lines, 1)
    ]


def view_of(lines: Iterable[Line]) -> RunView:
    """A view that was fed with a log, envelope by envelope, as strictly as one from outside."""
    view = RunView("run-1")
    for envelope in logged(view.run_id, lines):
        view.feed(envelope)
    return view


def seen(performance: Performance) -> Seen:
    """Read the facts of a scenario off its logs."""
    view = view_of(performance.runs[-1]) if performance.runs else RunView("run-1")
    end = view.terminal or {}
    output = end.get("final_output")
    return Seen(
        scenario=performance.scenario,
        body=performance.body,
        endings=" ".join(_ending(run) for run in performance.runs) or "no run",
        reason=end.get("reason") or end.get("error", {}).get("code") or "-",
        status=view.status,
        activities=" ".join(_row(row) for row in view.activities) or "-",
        text=json.dumps(view.text, ensure_ascii=False),
        output="-" if output is None else json.dumps(output, ensure_ascii=False),
    )


def faults(performance: Performance) -> list[str]:
    """What no run of any scenario may show, whatever is expected of it."""
    found = ["its own code hangs"] if performance.body == "hung" else []
    for number, run in enumerate(performance.runs, 1):
        view = view_of(run)
        found += [f"run {number}: {issue}" for issue in view.issues]
        if sum(type_ in ENDINGS for type_, _ in run) > 1:
            found.append(f"run {number} has more than one ending")
        outcome = _ending(run)
        left = [name for name, state in view.tools.items() if state in OPEN_STATES]
        if outcome not in MAY_STAY_OPEN and left:
            found.append(f"run {number} {outcome} with {', '.join(left)} still open")
    return found


def _ending(run: Iterable[Line]) -> str:
    outcomes = [str(payload.get("outcome", "lost")) for type_, payload in run if type_ in ENDINGS]
    return "+".join(outcomes) or "none"


def _row(row: Activity) -> str:
    name = f"→{row.name}" if row.kind == "handoff" else row.name
    return f"{name}:{row.state}"


def as_tsv(facts: Iterable[Seen]) -> str:
    """The facts as they are kept: a header, then one line for each scenario in the order of their names."""
    rows = [COLUMNS, *sorted(astuple(fact) for fact in facts)]
    return "".join("\t".join(row) + "\n" for row in rows)


@cache
def expected() -> dict[str, Seen]:
    """The facts that every verified release must show, but for the differences that are named."""
    with EXPECTED.open(encoding="utf-8", newline="") as file:
        rows = csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        assert tuple(next(rows)) == COLUMNS, "the columns are those of Seen"
        return {row[0]: Seen(*row) for row in rows}
