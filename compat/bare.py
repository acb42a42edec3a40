"""Play scenarios on the bare SDK and say what a caller can see of how they ended.

`python -m compat.bare [NAME ...]` prints one line for each scenario (all of them when no name is given);
`python -m compat.bare --write` also keeps the lines as `compat/measured/<SDK version>.tsv`.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Iterable
from dataclasses import astuple, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

from agents import RunResultStreaming, set_tracing_disabled

from . import scenarios as _all_scenarios  # noqa: F401  (importing them fills the table)
from .registry import SCENARIOS, Scenario
from .stage import Stage

PATIENCE = 5.0
"""Seconds that a run may go on after its scenario returned, before it counts as pending."""

HANGING = 0.5
"""The same for a run that is known to hang."""

LIMIT = 10.0
"""Seconds that a scenario itself may take."""

AT_ONCE = 16
"""Scenarios that are played at the same time."""


@dataclass(frozen=True)
class Facts:
    """What can be seen of the last run of a scenario once it has settled; every value is as it stands in the TSV."""

    scenario: str
    outcome: str
    body: str
    """How the scenario's own code ended: `returned`, or `raised` and the class."""
    iterator: str
    """How the last iteration ended: `ended`, `raised` and the class, `closed`, `left`, or `never` begun."""
    is_complete: str
    interruptions: str
    final_output: str
    run_loop_exception: str
    task: str
    cancel_mode: str
    turn: str
    responses: str
    """Model responses that the SDK received to the end (`usage.requests`), nested agents included."""
    requests: str
    """HTTP requests that the model servers received."""
    agent_ended: str
    """Whether on_agent_end fired for the agent that the run ended with."""


COLUMNS = tuple(field.name for field in fields(Facts))


class _Watched:
    """The SDK's own iterator, with a note of how it ended."""

    def __init__(self, events: Any, endings: list[str]) -> None:
        self._events = events
        self._endings = endings
        endings.append("left")

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._events.__anext__()
        except StopAsyncIteration:
            self._endings.append("ended")
            raise
        except BaseException as error:
            self._endings.append(f"raised {type(error).__name__}")
            raise

    async def aclose(self) -> None:
        await self._events.aclose()
        self._endings.append("closed")


async def measure(scenario: Scenario) -> Facts:
    """Play one scenario and read its facts after its run has settled."""
    endings: list[str] = []

    def watch(result: RunResultStreaming) -> None:
        original: Any = result.stream_events
        endings.clear()
        result.stream_events = lambda: _Watched(original(), endings)  # type: ignore[method-assign]

    stage = Stage(watch)
    body = "returned"
    try:
        # In a task of its own: a scenario that ends in a CancelledError must not look like a cancelled harness.
        await asyncio.wait_for(asyncio.create_task(_play(scenario, stage)), LIMIT)
    except Exception as error:  # noqa: BLE001  (whatever it is, it is what the caller sees)
        body = f"raised {type(error).__name__}"
    result = stage.results[-1]
    tasks = [each.run_loop_task for each in stage.results if each.run_loop_task is not None]
    await asyncio.wait(tasks, timeout=HANGING if scenario.outcome == "none" else PATIENCE)
    facts = _read(scenario, stage, result, body, endings[-1] if endings else "never")
    for each in stage.results:  # a run that hangs must not outlive its measurement
        if each.run_loop_task is not None and not each.run_loop_task.done():
            each.cancel()
    await asyncio.wait(tasks, timeout=PATIENCE)
    return facts


async def _play(scenario: Scenario, stage: Stage) -> None:
    await scenario.play(stage)


def _read(scenario: Scenario, stage: Stage, result: RunResultStreaming, body: str, iterator: str) -> Facts:
    failure = result.run_loop_exception
    return Facts(
        scenario=scenario.name,
        outcome=scenario.outcome,
        body=body,
        iterator=iterator,
        is_complete=str(result.is_complete),
        interruptions=str(len(result.interruptions)),
        final_output=_shown(result.final_output),
        run_loop_exception="-" if failure is None else type(failure).__name__,
        task=_state(result.run_loop_task),
        cancel_mode=result._cancel_mode,  # no public attribute tells it
        turn=str(result.current_turn),
        responses=str(result.context_wrapper.usage.requests),
        requests=str(sum(len(api.requests) for api in stage.apis)),
        agent_ended="yes" if result.last_agent.name in stage.ended else "-",
    )


def _shown(output: Any) -> str:
    return "None" if output is None else f"{type(output).__name__}:{output!r}"


def _state(task: asyncio.Task[Any] | None) -> str:
    if task is None or not task.done():
        return "pending"
    if task.cancelled():
        return "cancelled"
    failure = task.exception()
    return "done" if failure is None else f"raised {type(failure).__name__}"


async def measure_all(names: Iterable[str]) -> list[Facts]:
    """The facts of these scenarios, in their order; several are played at a time."""
    turnstile = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> Facts:
        async with turnstile:
            return await measure(SCENARIOS[name])

    return await asyncio.gather(*(one(name) for name in names))


def measured_file() -> Path:
    """Where the facts of the installed SDK are kept."""
    return Path(__file__).parent / "measured" / f"{version('openai-agents')}.tsv"


def as_tsv(measured: Iterable[Facts]) -> str:
    """The facts as they are kept: a header, then one line for each scenario."""
    rows = [COLUMNS, *(astuple(facts) for facts in measured)]
    return "".join("\t".join(row) + "\n" for row in rows)


def main(arguments: list[str]) -> int:
    set_tracing_disabled(True)  # the SDK's default exporter would try to reach the network
    write = "--write" in arguments
    names = [name for name in arguments if name != "--write"] or sorted(SCENARIOS)
    unknown = [name for name in names if name not in SCENARIOS]
    if unknown or (write and len(names) != len(SCENARIOS)):
        print(f"no such scenario: {', '.join(unknown)}" if unknown else "--write takes no names", file=sys.stderr)
        return 2
    table = as_tsv(asyncio.run(measure_all(names)))
    if write:
        measured_file().write_text(table, encoding="utf-8")
    print(table, end="")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
