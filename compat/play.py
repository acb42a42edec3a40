"""Play scenarios inside `@progress.inside`, on the SDK of this interpreter, and give back every envelope they made.

`python -m compat.play [NAME ...]` prints one JSON line for each scenario as soon as it is over (all of them when no
name is given). Times and ids come from a frozen clock, so that the same SDK gives the same lines again.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
import warnings
from collections.abc import AsyncIterator, Iterable
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from agents import set_tracing_disabled

from agents_progress import progress
from agents_progress.disclosure import Disclosure
from agents_progress.journal import MemoryJournal
from agents_progress.testing import frozen_clock, no_network

from . import scenarios as _all_scenarios  # noqa: F401  (importing them fills the table)
from .registry import SCENARIOS, Scenario
from .stage import Stage

LIMIT = 30.0
"""Seconds that a scenario's own code may take before it counts as hanging."""

PATIENCE = 15.0
"""Seconds that a run may go on after its scenario's own code returned."""

HANGING = 0.5
"""The same for a run that is known to hang."""

AT_ONCE = 16
"""Scenarios that are played at the same time."""

OPEN = Disclosure(arguments="all", outputs="all", approval_details="all", reasoning=True)
"""Nothing is held back, so that nothing can change unseen."""

_ONE_TIME_ID = re.compile(r"call_[0-9a-f]{32}")

UNSTEADY = {
    "as_tool_two_parallel_on_stream": "which of two nested agents asks first, and so gets the first answer, is chance",
}
"""Scenarios whose envelopes are not the same each time, and why: of them only the types are compared."""

Line = tuple[str, dict[str, Any]]
"""An envelope without what the clock and the journal give it: its type and its payload."""


@dataclass(frozen=True)
class Performance:
    """One scenario as it was played."""

    scenario: str
    body: str
    """How the scenario's own code ended: `returned`, `hung`, or `raised` and the class."""
    runs: list[list[Line]]
    """The log of each run that it started, in their order."""

    def same_as(self, other: Performance | None) -> bool:
        """Whether another performance of this scenario has the same envelopes."""
        if self.scenario not in UNSTEADY or other is None:
            return self == other
        return [_types(run) for run in self.runs] == [_types(run) for run in other.runs]


def _types(run: list[Line]) -> list[str]:
    return sorted(type_ for type_, _ in run)


async def play(scenario: Scenario) -> Performance:
    """Play one scenario, wait until its runs have ended, and read their logs."""
    journal = MemoryJournal()
    stage = Stage()

    @progress.inside(journal=journal, clock=frozen_clock(), coalesce=None, disclosure=OPEN)
    async def body() -> None:
        await scenario.play(stage)

    ended = await _body_of(body())
    await _settled(journal, HANGING if scenario.outcome == "none" else PATIENCE)
    logs = [await journal.read(row.run_id, limit=100_000) for row in await journal.runs()]
    for result in stage.results:  # a run that hangs must not outlive its performance
        if result.run_loop_task is not None and not result.run_loop_task.done():
            result.cancel()
    logs.sort(key=lambda log: log[0].run_id)
    lines = [[(envelope.type, _steady(envelope.payload)) for envelope in log] for log in logs]
    return Performance(scenario.name, ended, lines)


async def _body_of(body: Any) -> str:
    # In a task of its own: a scenario that ends in a CancelledError must not look like a cancelled player.
    task = asyncio.ensure_future(body)
    done, _ = await asyncio.wait({task}, timeout=LIMIT)
    if not done:
        task.cancel()
        return "hung"
    failure = asyncio.CancelledError() if task.cancelled() else task.exception()
    return "returned" if failure is None else f"raised {type(failure).__name__}"


async def _settled(journal: MemoryJournal, patience: float) -> None:
    """Wait until every run has an ending, within a bound: what is missing then is seen in the logs."""
    for _ in range(int(patience / 0.01)):
        rows = await journal.runs()
        if rows and all(row.standing.ended for row in rows):
            return
        await asyncio.sleep(0.01)


def _steady(payload: dict[str, Any]) -> Any:
    """A payload as plain JSON values, with the ids that a scenario makes up afresh each time under one name."""
    return json.loads(_ONE_TIME_ID.sub("call_fresh", json.dumps(payload, ensure_ascii=False)))


async def play_all(names: Iterable[str]) -> AsyncIterator[Performance]:
    """The performances of these scenarios, as they are over; several are played at a time."""
    await play(SCENARIOS["plain"])  # what is loaded and built once costs nobody else's time
    turnstile = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> Performance:
        async with turnstile:
            return await play(SCENARIOS[name])

    for performance in asyncio.as_completed([asyncio.create_task(one(name)) for name in names]):
        yield await performance


def as_line(performance: Performance) -> str:
    """A performance as one line of JSON."""
    return json.dumps(asdict(performance), ensure_ascii=False, sort_keys=True)


def of_line(line: str) -> Performance:
    """The performance in a line of JSON."""
    fields = json.loads(line)
    runs = [[(type_, payload) for type_, payload in run] for run in fields["runs"]]
    return Performance(fields["scenario"], fields["body"], runs)


@cache
def played() -> dict[str, Performance]:
    """Every scenario on the installed SDK, played once a process."""

    async def collect() -> dict[str, Performance]:
        return {each.scenario: each async for each in play_all(sorted(SCENARIOS))}

    set_tracing_disabled(True)
    with no_network(loopback=True):
        return asyncio.run(collect())


async def _print_all(names: list[str]) -> None:
    async for performance in play_all(names):
        print(as_line(performance), flush=True)


def main(arguments: list[str]) -> int:
    set_tracing_disabled(True)  # the SDK's default exporter would try to reach the network
    warnings.simplefilter("ignore")  # a release that is still to be verified says so
    with no_network(loopback=True):
        asyncio.run(_print_all(arguments or sorted(SCENARIOS)))
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
