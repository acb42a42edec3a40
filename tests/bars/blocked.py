"""An async tool that blocks the event loop for 20 s loses no lease, at the lease every journal has by default."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Sequence

from agents import Agent, Runner, RunResultStreaming, function_tool, set_tracing_disabled

from agents_progress import progress
from agents_progress.testing import ScriptedAPI, call, text, turn

from .figures import Figures
from .places import BACKENDS, stores


async def blocked(name: str, seconds: float, lease_s: float | None, figures: Figures) -> None:
    """Another node looks for lost runs all the while, from a thread of its own."""

    @function_tool
    async def block() -> str:
        time.sleep(seconds)
        return "ok"

    with stores(name) as places:
        place = places()
        journal, lost = place.journal(lease_s), list[str]()
        over = asyncio.Event()

        async def look() -> None:
            other = place.journal(lease_s)
            while not over.is_set():
                lost.extend(await other.expire())
                await asyncio.sleep(0.1)
            await other.close()

        looking = asyncio.create_task(asyncio.to_thread(asyncio.run, look()))

        @progress(journal=journal, verify=lambda output: output == "fine")
        def work() -> RunResultStreaming:
            turns = turn(call("block")), turn(text("fine"))
            return Runner.run_streamed(Agent(name="A", model=ScriptedAPI(turns).model(), tools=[block]), "go")

        run = work()
        outcome = await run
        await run.closed()
        over.set()
        await looking
        lease = f"a lease of {journal.lease_s:g} s"
        await journal.close()
    figures.hold(
        not lost and outcome.accepted,
        f"{name}: blocked for {seconds:g} s with {lease}: {outcome.kind}, view {run.view.status}, {len(lost)} lost",
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bars.blocked", description=__doc__)
    parser.add_argument("--seconds", type=float, default=20.0)
    chosen = parser.parse_args(arguments)
    set_tracing_disabled(True)
    figures = Figures("blocked")
    for name in (*BACKENDS, "pgbouncer"):
        asyncio.run(blocked(name, chosen.seconds, None, figures))
    return figures.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
