"""`REPORT.md`: version by scenario, with the SDK's differences by name. It holds no time and no place, so that it only
changes when a fact does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from . import matrix
from .differences import DIFFERENCES, MEANING, Difference, Kind
from .matrix import Row
from .runner import Result
from .seen import expected

FILE = Path(__file__).parent / "REPORT.md"

LETTERS: dict[Kind | None, str] = {None: "✓", "erased": "E", "differs": "D", "fault": "F"}


def table(results: Iterable[Result]) -> Iterator[str]:
    """One line a row of the matrix."""
    yield "| openai-agents | openai | Python | pydantic | scenarios | the truth | E | D | F | hangs | |"
    yield "|---|---|---|---|---|---|---|---|---|---|---|"
    for result in results:
        row = result.row
        kinds = Counter(result.standing(name) for name in result.performances)
        counts = [len(result.performances), *(kinds[kind] for kind in LETTERS), result.hangs]
        cells = [row.agents, row.openai, row.python, row.pydantic, *map(str, counts), result.verdict]
        yield f"| {' | '.join(cells)} |"


def text(results: Sequence[Result], refused: str) -> str:
    """The whole report."""
    floor = matrix.below_the_floor()
    by_row = {result.row: result for result in results}
    lines = [
        "# What was verified",
        "",
        "Made by `python -m compat --all --write`. Every scenario was driven through the real client inside",
        "`@progress.inside`, on each of these environments. The truth is `expected.tsv`; whatever else is shown is",
        "named below.",
        "",
        *table(results),
        "",
        *(f"- **{LETTERS[kind]}**: {meaning}." for kind, meaning in MEANING.items()),
        "- **hangs**: scenarios without an end, but for the one that never ends in truth.",
        "- Each run with a known ending has exactly one `run.ended`. No tool is left open after a success.",
        "",
        f"openai-agents {floor.agents} is refused: “{refused}”",
        "",
        "## Differences",
        "",
        "| | scenario | releases | shown instead of the truth | why |",
        "|---|---|---|---|---|",
        *(_difference(each, by_row) for kind in MEANING for each in DIFFERENCES if each.kind == kind),
        "",
        "## Version by scenario",
        "",
        "`✓` is the truth, `✓=` the truth in the very same envelopes as on the newest release.",
        "",
        *_scenarios(by_row),
    ]
    return "\n".join(lines) + "\n"


def _difference(difference: Difference, by_row: dict[Row, Result]) -> str:
    names = ", ".join(f"`{name}`" for name in difference.scenarios)
    shown = ", ".join(f"{column} `{value}`" for column, value in difference.shown.items())
    seen_at = [
        release
        for release in matrix.releases()
        if difference.concerns(release)
        and any(by_row[matrix.kept(release)].standing(name) is not None for name in difference.scenarios)
    ]
    releases = difference.releases if seen_at else f"{difference.releases}; no longer seen"
    return f"| {LETTERS[difference.kind]} | {names} | {releases} | {shown} | {difference.why} |"


def _scenarios(by_row: dict[Row, Result]) -> Iterator[str]:
    releases = matrix.releases()[::-1]
    columns = [by_row[matrix.kept(release)] for release in releases]
    yield f"| scenario | ends | {' | '.join(releases)} |"
    yield f"|---|---|{'---|' * len(releases)}"
    for name, truth in expected().items():
        cells = [_cell(result, columns[0], name) for result in columns]
        yield f"| {name} | {truth.endings.replace(' ', ', ')} | {' | '.join(cells)} |"


def _cell(result: Result, newest: Result, name: str) -> str:
    kind = result.standing(name)
    same = kind is None and result is not newest and result.performances[name].same_as(newest.performances[name])
    return LETTERS[kind] + ("=" if same else "")
