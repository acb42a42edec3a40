"""Run the scenarios on pinned releases of the SDK, each in an environment of its own: `python -m compat`.

Without options it plays the quick rows of the matrix on the Python that runs it: the lowest release, 0.23.1 and the
newest. Ends with 1 when something is unexplained, with 3 when a row could not be played, else with 0.
"""

from __future__ import annotations

import argparse
import sys

from . import matrix, report, runner
from .environments import Broken

UNEXPLAINED, SKIPPED = 1, 3


def options(arguments: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m compat", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--all", action="store_true", help="every row, and the release below the floor")
    parser.add_argument("--only", metavar="RELEASE", help="the rows of one release, such as 0.23")
    parser.add_argument("--python", metavar="X.Y", help="play on this Python instead of the rows' own")
    parser.add_argument(
        "--write", action="store_true", help="with --all: keep what was played, for review as a diff, and the report"
    )
    given = parser.parse_args(arguments)
    if given.write and (not given.all or given.only or given.python):
        parser.error("--write goes with --all alone: the files of a release say how it differs from the newest")
    return given


def main(arguments: list[str]) -> int:
    given = options(arguments)
    here = f"{sys.version_info.major}.{sys.version_info.minor}"
    python = given.python or (None if given.all or given.only else here)
    rows = matrix.chosen(given.only, given.all, python)
    if not rows:
        print(f"no row of the matrix is for {given.only}; there are {', '.join(matrix.releases())}", file=sys.stderr)
        return UNEXPLAINED
    results = []
    for result in runner.play_all(rows):
        print(f"played {result.row.name}", file=sys.stderr)
        results.append(result)
    if given.write:
        lacking = [result for result in results if not result.performances]
        if lacking:
            print("nothing was written, because these rows were not played:", file=sys.stderr)
            for result in lacking:
                print(f"{result.row.name}: {result.skipped or result.problems}", file=sys.stderr)
            return UNEXPLAINED
        runner.keep(results)
    return _said(results, given.all, given.write)


def _said(results: list[runner.Result], everything: bool, write: bool) -> int:
    for result in results:
        runner.judge(result)
    print("\n".join(report.table(results)))
    problems = [f"{result.row.name}: {problem}" for result in results for problem in result.problems]
    if everything:
        try:
            refused = runner.refusal()
        except Broken as broken:
            problems.append(f"the release below the floor was not refused: {broken}")
        else:
            print(refused)
            if write:
                report.FILE.write_text(report.text(results, refused), encoding="utf-8")
    print("\n".join(problems))
    if problems:
        return UNEXPLAINED
    return SKIPPED if any(result.skipped for result in results) else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
