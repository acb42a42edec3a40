"""The table of the bars, and its runner: `python -m tests.bars [--only NAME ...] [--list]`."""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[2]


class Bar(NamedTuple):
    """A command of this package, what it proves, and how long it takes on two cores, in minutes."""

    name: str
    what: str
    arguments: str
    minutes: float


BARS: Final = (
    Bar("kill", "an owner killed at 200 random points leaves whole logs, lost once, on every durable backend", "", 6),
    Bar(
        "kill_pooled", "the same through PgBouncer in transaction mode, 50 points", "--backend pgbouncer --points 50", 1
    ),
    Bar("effects", "a tool killed at every step of its call has paid once, or is uncertain and comes to once", "", 4),
    Bar("approvals", "an approval whose processes are killed at every step comes to one payment, never two", "", 2),
    Bar("reactions", "a reaction killed at every step arrives once, and 1,000 through 4 processes do", "", 10),
    Bar("frozen", "a process stopped for longer than its lease acts no second time when it goes on", "", 4),
    Bar("outage", "20 runs lose nothing to a store that is frozen or crashed for 10 s", "", 4),
    Bar("blocked", "a tool that blocks the loop for 20 s loses no lease", "", 2),
    Bar("locked", "a foreign write lock on a SQLite journal delays, and never makes a hole", "", 4),
    Bar("nodes", "a run is watched, controlled and told as lost by another server process, on every backend", "", 2),
    Bar("rolling", "100 runs and their readers come through a rolling restart of two servers with the truth", "", 1.5),
    Bar("bridges", "AG-UI, ai 6 and 7 in Node and Chromium never say success when our view does not", "", 1.5),
    Bar("fuzz_sse", "100,000 inputs are decoded as the standard says, or refused", "", 1),
    Bar("fuzz_routes", "100,000 requests to every route: no exception, no 500, nothing of another tenant", "", 3),
    Bar("fanout", "one run reaches 1,200 readers over HTTP from one core", "", 2),
    Bar("resume", "a reader at the end of a run of 100,000 events sees something within 50 ms", "", 1),
    Bar("million", "a million events with ten readers take the memory of their text and 50 MB", "", 4),
    Bar("million_http", "the same with ten readers over HTTP: the memory of the server", "", 4),
    Bar("readers", "200 readers over HTTP that leave and return at random all end with the view of the log", "", 2),
    Bar("stuck", "500 sockets that never read, and 100 that are worse, change nothing for a run", "", 1),
    Bar("crowd", "500 runs at 50 events/s on PostgreSQL: every reader gets everything", "", 2),
)


def run(bar: Bar) -> bool:
    module = bar.name.removesuffix("_pooled")
    print(f"\n== {bar.name}: {bar.what}", flush=True)
    done = subprocess.run([sys.executable, "-m", f"tests.bars.{module}", *bar.arguments.split()], cwd=ROOT, check=False)
    return done.returncode == 0


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bars", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=[bar.name for bar in BARS], help="these bars")
    parser.add_argument("--list", action="store_true", help="print the table and run nothing")
    chosen = parser.parse_args(arguments)
    bars = [bar for bar in BARS if not chosen.only or bar.name in chosen.only]
    if chosen.list:
        for bar in bars:
            print(f"{bar.name:12} {bar.minutes:4g} min  {bar.what}")
        return 0
    began = time.monotonic()
    failed = [bar.name for bar in bars if not run(bar)]
    print(f"\n{len(bars) - len(failed)} of {len(bars)} bars hold, {time.monotonic() - began:.0f} s", end="")
    print(f"; FAILED: {', '.join(failed)}" if failed else "")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
