"""Answer paused runs through our own doors with the installed SDK, and print a line for each that comes to another end.

The scenarios continue a run as the application's own code does. Here it is continued by the process that paused and by
one that only has its journal, with and without a context of the tools, approved as it is asked and edited.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field
from typing import Any, Final

from agents import Agent, RunContextWrapper, Runner, RunResultStreaming, function_tool, set_tracing_disabled

from agents_progress import progress
from agents_progress.journal import MemoryJournal
from agents_progress.testing import ScriptedAPI, call, text, turn

ASKED: Final = {"order": 7}
EDITED: Final = {"order": 8}


@dataclass
class Shop:
    """What the tool gets, as an object of the application's own."""

    paid: list[int] = field(default_factory=list)


@dataclass(frozen=True)
class Case:
    """One way of going on."""

    elsewhere: bool
    with_context: bool
    edited: bool

    def __str__(self) -> str:
        where = "in another process" if self.elsewhere else "in the same process"
        how = "edited" if self.edited else "as asked"
        return f"{where}, {'with a' if self.with_context else 'without'} context, {how}"

    async def come_to(self) -> tuple[str, list[int]]:
        """How the run that goes on ended, and what was paid."""
        shop, journal = Shop(), MemoryJournal()
        api = ScriptedAPI([turn(call("pay", ASKED)), turn(text("done"))])

        @function_tool(needs_approval=True)
        def pay(context: RunContextWrapper[Any], order: int) -> str:
            assert (context.context is shop) is self.with_context
            shop.paid.append(order)
            return "paid"

        @progress(journal=journal, keep_pauses=True)
        def work(order: str) -> RunResultStreaming:
            agent: Agent[Any] = Agent(name="A", model=api.model(), tools=[pay])
            return Runner.run_streamed(agent, order, context=shop if self.with_context else None)

        run, arguments = work("pay 7"), {"ask-1": EDITED} if self.edited else None
        assert (await run).kind == "paused"
        if self.elsewhere:
            await run.closed()
            again = await work.resume(run.id, approve="ask-1", actor="ann", arguments=arguments)
        else:
            again = run.resume(approve="ask-1", actor="ann", arguments=arguments)
        return (await again).kind, shop.paid

    async def fault(self) -> str | None:
        """What is not as it must be."""
        wanted = "succeeded", [(EDITED if self.edited else ASKED)["order"]]
        try:
            found = await asyncio.wait_for(self.come_to(), 20)
        except Exception as error:  # noqa: BLE001 - told as what it is
            return f"resumed {self}: {type(error).__name__}: {error}"
        return None if found == wanted else f"resumed {self}: came to {found}, not to {wanted}"


async def main() -> None:
    for flags in itertools.product((False, True), repeat=3):
        if (fault := await Case(*flags).fault()) is not None:
            print(fault)


if __name__ == "__main__":
    set_tracing_disabled(True)
    asyncio.run(main())
