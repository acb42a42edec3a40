"""Plays the scenarios in the environment of each row, and says what is not as it must be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from . import environments, golden, matrix, streams
from .differences import Kind, named, still_seen, unexplained
from .environments import Broken, Missing
from .matrix import Row
from .play import Performance, of_line
from .registry import SCENARIOS
from .seen import EXPECTED as EXPECTED_FILE
from .seen import Seen, as_tsv, expected, faults, seen

AT_ONCE = 2
"""Environments that are built and played at the same time."""


@dataclass
class Result:
    """What came of one row. `skipped` says why it could not be played; `problems` are the unexplained differences."""

    row: Row
    performances: dict[str, Performance] = field(default_factory=dict)
    recordings: dict[str, streams.Recording] = field(default_factory=dict)
    skipped: str | None = None
    problems: list[str] = field(default_factory=list)

    @property
    def verdict(self) -> str:
        """In a few words."""
        return self.skipped or (f"{len(self.problems)} unexplained" if self.problems else "as expected")

    @property
    def hangs(self) -> int:
        """Scenarios of which neither the code nor the run came to its end."""
        endless = [name for name, each in self.performances.items() if seen(each).endings.split()[-1] == "none"]
        hung = [name for name, each in self.performances.items() if each.body == "hung"]
        return len({*hung, *(name for name in endless if SCENARIOS[name].outcome != "none")})

    def standing(self, scenario: str) -> Kind | None:
        """The gravest kind of difference that a scenario shows here; None when it shows the truth."""
        shown = seen(self.performances[scenario])
        truth = expected()[scenario]
        if shown == truth:
            return None
        kinds = {each.kind for each in named(scenario, self.row.agents) if still_seen(each, shown, truth)}
        return next((kind for kind in ("erased", "fault", "differs") if kind in kinds), None)


def play(row: Row) -> Result:
    """Build the environment of a row, play every scenario in it, and answer paused runs through our own doors."""
    result = Result(row)
    try:
        python = environments.build(row)
        played = environments.run(python, "-m", "compat.play").splitlines()
        result.performances = {each.scenario: each for each in map(of_line, played)}
        result.recordings = streams.read(environments.run(python, "-m", "compat.streams"))
        result.problems += environments.run(python, "-m", "compat.resumed").splitlines()
    except Missing as missing:
        result.skipped = str(missing)
    except Broken as broken:
        result.problems.append(str(broken))
    return result


def play_all(rows: Iterable[Row]) -> Iterator[Result]:
    """The results of rows, in their order; two are at work at a time."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        yield from pool.map(play, rows)


def refusal() -> str:
    """The sentence with which the release below the floor is refused. Raises `Broken` when it is not."""
    python = environments.build(matrix.below_the_floor(), package=False)
    return environments.run(python, "-m", "compat.below_the_floor").strip()


def judge(result: Result) -> None:
    """Add what is unexplained to a result."""
    if result.skipped or result.problems:
        return
    release, newest = result.row.agents, matrix.newest()
    result.problems += [f"{name}: not played" for name in SCENARIOS if name not in result.performances]
    logs = golden.performances(release, newest)
    for name, performance in sorted(result.performances.items()):
        result.problems += judged(performance, release)
        if not performance.same_as(logs.get(name)):
            result.problems.append(f"{name}: its envelopes are not those of golden/{release}.jsonl")
    recorded = streams.recordings(release, newest)
    for name, recording in sorted(result.recordings.items()):
        if streams.again(recording) != recording.drafts:
            result.problems.append(f"{name}: the recorded stream is translated in another way than the real one")
        if recording != recorded.get(name):
            result.problems.append(f"{name}: its stream is not that of streams/{release}.jsonl")


def judged(performance: Performance, release: str) -> list[str]:
    """What a scenario shows on a release that is neither the truth nor a difference that is named."""
    truth = expected().get(performance.scenario)
    if truth is None:
        return [f"{performance.scenario}: has no line in expected.tsv"]
    wrong = unexplained(seen(performance), truth, release)
    return [
        *(f"{performance.scenario}: {fault}" for fault in faults(performance)),
        *(
            f"{performance.scenario}: {column} is {value}, not {getattr(truth, column)}"
            for column, value in wrong.items()
        ),
    ]


def keep(results: Iterable[Result]) -> None:
    """Write what was played to the files: the envelopes, the streams, and each new fact of the newest release.

    A fact that is already the truth or a named difference stays as it is, so that what is true is never overwritten by
    what is known to be wrong. What changes is for a person to review.
    """
    played = {result.row: result for result in results if result.performances}
    newest = played[matrix.kept(matrix.newest())]
    for release in reversed(matrix.releases()):
        result = played[matrix.kept(release)]
        same = result is newest
        golden.write(release, result.performances.values(), None if same else newest.performances)
        streams.write(release, result.recordings.values(), None if same else newest.recordings)
    golden.own.cache_clear()
    EXPECTED_FILE.write_text(as_tsv(_facts(newest.performances, newest.row.agents)), encoding="utf-8")
    expected.cache_clear()


def _facts(performances: Mapping[str, Performance], release: str) -> Iterator[Seen]:
    known = expected() if EXPECTED_FILE.exists() else {}
    for name, performance in performances.items():
        shown, truth = seen(performance), known.get(name)
        yield shown if truth is None or unexplained(shown, truth, release) else truth
