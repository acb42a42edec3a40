"""The envelopes of every scenario on every verified release, as files that are read without installing anything.

`golden/<release>.jsonl` has a line for each scenario, `[name, body]`, and after it one for each envelope of its runs,
`[name, run, type, payload]`. The newest release has every scenario; the file of another one has only those that differ
from the newest, so that it is short and says what that release does in another way.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from .play import Performance

FOLDER = Path(__file__).parent / "golden"


def path(release: str) -> Path:
    """Where the envelopes of a release are kept."""
    return FOLDER / f"{release}.jsonl"


def lines(performance: Performance) -> Iterator[str]:
    """One performance as it is kept."""
    yield _json([performance.scenario, performance.body])
    for number, run in enumerate(performance.runs, 1):
        for type_, payload in run:
            yield _json([performance.scenario, number, type_, payload])


def write(release: str, performances: Iterable[Performance], newest: Mapping[str, Performance] | None) -> None:
    """Keep what a release did, without what the newest release does too. `newest` is None for the newest itself."""
    new = [each for each in performances if newest is None or not each.same_as(newest.get(each.scenario))]
    kept = sorted(new, key=lambda each: each.scenario)
    FOLDER.mkdir(exist_ok=True)
    path(release).write_text("".join(f"{line}\n" for each in kept for line in lines(each)), encoding="utf-8")


@cache
def own(release: str) -> Mapping[str, Performance]:
    """The performances in the file of a release."""
    found: dict[str, Performance] = {}
    for line in path(release).read_text(encoding="utf-8").splitlines():
        name, *rest = json.loads(line)
        if len(rest) == 1:
            found[name] = Performance(name, rest[0], [])
            continue
        number, type_, payload = rest
        runs = found[name].runs
        if number > len(runs):
            runs.append([])
        runs[number - 1].append((type_, payload))
    return found


def performances(release: str, newest: str) -> Mapping[str, Performance]:
    """Every scenario as a release plays it."""
    return {**own(newest), **own(release)}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
