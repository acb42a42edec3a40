"""The process that is killed around an approval: at a named step, by its own hand.

It starts a run that asks, or answers one that paused elsewhere, or finishes what others left. The bank is that of
:mod:`tests.bars.payer`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from agents import Agent, Runner, RunResultStreaming, function_tool, set_tracing_disabled

from agents_progress import progress
from agents_progress.claim import follower, next_run_id
from agents_progress.decorate import Decorated
from agents_progress.effects.entry import DidNotHappen, Finding, Happened
from agents_progress.effects.ledger import Ledger
from agents_progress.effects.ledger.memory import MemoryLedger
from agents_progress.effects.once import once
from agents_progress.effects.places import ledger_beside
from agents_progress.errors import AlreadyResumed, NotPaused
from agents_progress.events import Envelope
from agents_progress.journal import Journal, MemoryJournal
from agents_progress.run import Run
from agents_progress.testing import ScriptedAPI, call, text, turn

from .payer import paid, pay
from .places import Place
from .stories import Mortal, alone

ASKING: Final = (
    "before what the pause leaves behind is stored",
    "after what the pause leaves behind is stored",
    "before the pause is known",
    "when the pause is known",
    "when the owner of the pause is gone",
)
"""The steps of the process that asks."""
ANSWERING: Final = (
    "before what was left behind is read",
    "when it was read",
    "before the claim of the run that goes on",
    "after the claim of the run that goes on",
    "before what was used is erased",
    "after what was used is erased",
    "in the tool, before its effect",
    "in the tool, after its effect",
    "when the tool has returned",
    "before the ending is known",
    "when the run has ended",
)
"""The steps of the process that answers."""


ASKED: Final = 7
EDITED: Final = 8
"""The order that the model wants paid, and the one that is paid where the person who approves edits it."""


def orders(bank: Path) -> list[int]:
    """What the bank was told to pay for, once each time that it was."""
    told = bank.with_suffix(".orders")
    return [int(order) for order in told.read_text().split()] if told.exists() else []


class Life(Mortal):
    """One process: what it does, and where it ends."""

    def work(self, journal: Journal, ledger: Ledger, asks: bool) -> Decorated[...]:
        def ask_bank(key: str, arguments: Mapping[str, Any]) -> Finding:
            return Happened(f"paid {arguments['order']}") if key in paid(self.bank) else DidNotHappen()

        @once(key="{order}", ledger=ledger, name="pay", reconcile=ask_bank)
        def pay_once(order: int) -> str:
            self.reached(ANSWERING[6])
            with self.bank.with_suffix(".orders").open("a") as told:
                told.write(f"{order}\n")
            pay(self.bank)
            self.reached(ANSWERING[7])
            return f"paid {order}"

        tool = function_tool(pay_once, name_override="pay", needs_approval=True)
        said = (turn(text("Paid.")),)
        asked = (turn(call("pay", {"order": ASKED}, call_id="c1")),)

        @progress(journal=journal, keep_pauses=True, owner="ada", tenant="shop")
        def work() -> RunResultStreaming:
            model = ScriptedAPI(asked if asks else said).model()
            return Runner.run_streamed(Agent(name="Clerk", model=model, tools=[tool]), "Pay order 7.")

        return work

    def watch(self, journal: Any) -> None:
        """Know the steps by what the journal is asked."""
        keep, append, drop, find = journal.keep_pause, journal.append, journal.drop_pause, journal.pause

        async def keep_pause(*args: Any, **more: Any) -> None:
            self.reached(ASKING[0])
            await keep(*args, **more)
            self.reached(ASKING[1])

        async def appended(batch: Any, **more: Any) -> None:
            steps = [step for envelope in batch if (step := _step_of(envelope))]
            for before, _ in steps:
                self.reached(before)
            await append(batch, **more)
            for _, after in steps:
                self.reached(after)

        async def drop_pause(run_id: str) -> None:
            self.reached(ANSWERING[4])
            await drop(run_id)
            self.reached(ANSWERING[5])

        async def pause(*args: Any, **more: Any) -> Any:
            self.reached(ANSWERING[0])
            found = await find(*args, **more)
            self.reached(ANSWERING[1])
            return found

        journal.keep_pause, journal.append, journal.drop_pause, journal.pause = keep_pause, appended, drop_pause, pause

    async def live(self, journal: Journal, ledger: Ledger) -> None:
        ledger.lease_s = self.about["lease_s"]
        self.watch(journal)
        told = await getattr(self, self.about["does"])(journal, ledger)
        await journal.close()
        ledger.close()
        self.tell(told)

    async def ask(self, journal: Journal, ledger: Ledger) -> dict[str, Any]:
        """A run that pauses."""
        run = self.work(journal, ledger, asks=True).using(run_id=self.about["run_id"])()
        outcome = await run
        await run.closed()
        self.reached(ASKING[4])
        return {"kind": outcome.kind}

    async def answer(self, journal: Journal, ledger: Ledger) -> dict[str, Any]:
        """Approve what paused elsewhere."""
        return {"kind": await self._ended(await self._approved(journal, ledger, self.about["run_id"]))}

    async def _approved(self, journal: Journal, ledger: Ledger, run_id: str) -> Run:
        arguments = {"ask-1": {"order": EDITED}} if self.about.get("edited") else None
        work = self.work(journal, ledger, asks=False)
        return await work.resume(run_id, approve="all", actor="mei", arguments=arguments)

    async def finish(self, journal: Journal, ledger: Ledger) -> dict[str, Any]:
        """Approve what still waits; where nothing does, see what it came to, and ask anew."""
        first = self.about["run_id"]
        await _without_owner(journal, first, next_run_id(first))
        while True:
            try:
                return {**await self.answer(journal, ledger), "again": False}
            except NotPaused:
                break
            except AlreadyResumed:
                if (await follower(journal, first))[1] is not None:
                    break
            await journal.expire()  # whoever claimed it may have been killed before it said anything
            await asyncio.sleep(0.05)
        row = (await follower(journal, first))[1] or await journal.run(first)
        assert row is not None
        if row.standing.outcome == "succeeded":
            return {"kind": "succeeded", "again": False}
        run = self.work(journal, ledger, asks=True).using(run_id=f"{first}-again")()
        await run
        await run.closed()
        again = await self._approved(journal, ledger, run.id)
        return {"kind": await self._ended(again), "again": True, "left": row.status}

    async def _ended(self, run: Run) -> str:
        async for envelope in run:
            if envelope.type == "tool.finished":
                self.reached(ANSWERING[8])
        outcome = await run
        await run.closed()
        self.reached(ANSWERING[10])
        return outcome.kind


def _step_of(envelope: Envelope) -> tuple[str, str] | None:
    """The steps before and after an envelope is stored."""
    if envelope.type == "run.started" and envelope.payload["resumed_from"]:
        return ANSWERING[2], ANSWERING[3]
    if envelope.type == "run.ended":
        return (ASKING[2], ASKING[3]) if envelope.payload["outcome"] == "paused" else (ANSWERING[9], "")
    return None


async def _without_owner(journal: Journal, *run_ids: str) -> None:
    """Wait until those of these runs that began are closed, or were declared lost."""
    for run_id in run_ids:
        while (row := await journal.run(run_id)) is not None and not row.sealed:
            await journal.expire()
            await asyncio.sleep(0.05)


def live(about: Mapping[str, Any]) -> None:
    """The life of one child."""
    journal = Place(about["url"]).journal(about["lease_s"])
    asyncio.run(Life(about).live(journal, ledger_beside(journal)))


def warm() -> None:
    """What the first run of a process costs, every child has behind it."""
    set_tracing_disabled(True)
    import psycopg

    import agents_progress.effects.ledger.postgres
    import agents_progress.effects.ledger.sqlite
    import agents_progress.journal.postgres
    import agents_progress.journal.sqlite

    assert psycopg and agents_progress
    about = {"bank": os.devnull, "step": "", "does": "ask", "lease_s": 5.0, "run_id": "warm", "told": os.devnull}
    asyncio.run(Life(about).live(MemoryJournal(), MemoryLedger()))
    alone()
