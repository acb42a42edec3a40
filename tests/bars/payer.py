"""The process that is killed while a tool of its run pays: at a named step of the call, by its own hand.

The bank is a file: a line for each payment that was really made. It forbids no second one, so that every double shows.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from agents import Agent, Runner, RunResultStreaming, function_tool, set_tracing_disabled

from agents_progress import progress
from agents_progress.effects.entry import DidNotHappen, Finding, Happened
from agents_progress.effects.ledger import Ledger
from agents_progress.effects.ledger.memory import MemoryLedger
from agents_progress.effects.once import effect_key, once, worded
from agents_progress.effects.places import ledger_beside
from agents_progress.journal import Journal, MemoryJournal
from agents_progress.testing import ScriptedAPI, call, text, turn

from .places import Place
from .stories import Mortal, alone

_CHANGES: Final = {"begin": "take the effect", "succeed": "record that it happened", "resolve": "record what was found"}
_MOMENTS: Final = "before", "within the transaction of", "before the commit of", "after"


def _around(change: str) -> tuple[str, ...]:
    return tuple(f"{moment}: {_CHANGES[change]}" for moment in _MOMENTS)


BODY: Final = "in the body, before its effect", "in the body, after its effect", "in the body, at its end"
ASK: Final = "before the bank is asked", "when the bank has answered"
TOLD: Final = "when the model has its answer", "when the run has ended"

FIRST: Final = (*_around("begin"), *BODY, *_around("succeed"), *TOLD)
"""The steps of a call that finds nothing."""
AGAIN: Final = (*ASK, *_around("resolve"), *FIRST)
"""The steps of a call that finds an uncertain effect; without one that is needed a process lives on to its end."""


def paid(bank: Path) -> list[str]:
    """The keys under which the bank was told to pay, once each time that it was."""
    return bank.read_text().splitlines() if bank.exists() else []


def pay(bank: Path) -> None:
    to = os.open(bank, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.write(to, f"{effect_key()}\n".encode())
    os.fsync(to)
    os.close(to)


class Life(Mortal):
    """One process: what it does, and where it ends."""

    def __init__(self, about: Mapping[str, Any]) -> None:
        super().__init__(about)
        self._doing = threading.local()

    # The tool.

    def body(self, order: int) -> str:
        self.reached(BODY[0])
        pay(self.bank)
        self.reached(BODY[1])
        receipt = f"paid {order}"
        self.reached(BODY[2])
        return receipt

    def ask_bank(self, key: str, arguments: Mapping[str, Any]) -> Finding:
        self.reached(ASK[0])
        found = Happened(f"paid {arguments['order']}") if key in paid(self.bank) else DidNotHappen()
        self.reached(ASK[1])
        return found

    def tool(self, ledger: Ledger) -> Any:
        terms: dict[str, Any] = {"key": "{order}", "ledger": ledger, "name": "pay"}
        if self.about["asks"]:
            terms["reconcile"] = self.ask_bank

        @once(**terms)
        def pay_now(order: int) -> str:
            return self.body(order)

        @once(**terms)
        async def pay_later(order: int) -> str:
            await asyncio.sleep(0)
            return self.body(order)

        chosen: Callable[..., Any] = pay_later if self.about["kind"] == "async" else pay_now
        return function_tool(chosen, name_override="pay", failure_error_function=worded)

    # The ledger, watched.

    def watch(self, ledger: Ledger) -> None:
        for name in _CHANGES:
            setattr(ledger, name, self._watched(name, getattr(ledger, name)))
        change = ledger.change

        def changed(entry: str, rule: Callable[..., Any]) -> Any:
            def ruled(*found: Any) -> Any:
                answer = rule(*found)
                self._step(1)
                return answer

            return change(entry, ruled)

        ledger.change = changed  # type: ignore[method-assign,assignment]
        module = import_module(type(ledger).__module__)
        transaction = getattr(module, "transaction", None)
        if transaction is not None:
            module.transaction = self._committing(transaction)  # type: ignore[attr-defined]

    def _step(self, moment: int) -> None:
        change = getattr(self._doing, "change", None)
        if change is not None:
            self.reached(_around(change)[moment])

    def _watched(self, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def watched(*args: Any) -> Any:
            self._doing.change = name
            self._step(0)
            answer = method(*args)
            self._step(3)
            self._doing.change = None
            return answer

        return watched

    def _committing(self, transaction: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @contextmanager
        def committing(db: Any) -> Iterator[Any]:
            with transaction(db) as within:
                yield within
                self._step(2)

        return committing

    # The run.

    async def live(self, journal: Journal, ledger: Ledger) -> None:
        ledger.lease_s = self.about["lease_s"]
        self.watch(ledger)
        turns = turn(call("pay", {"order": 7}, call_id="c1")), turn(text("Paid."))
        agent = Agent(name="Clerk", model=ScriptedAPI(turns).model(), tools=[self.tool(ledger)])

        @progress
        def work() -> RunResultStreaming:
            return Runner.run_streamed(agent, "Pay order 7.")

        run = work.using(journal=journal, run_id=self.about["run_id"], owner="ada", tenant="shop")()
        async for envelope in run:
            if envelope.type in ("tool.finished", "tool.failed"):
                self.reached(TOLD[0])
        self.reached(TOLD[1])
        row = run.view.activities[0]
        outputs = [item.output for item in run.result.new_items if item.type == "tool_call_output_item"]
        told = {"state": row.state, "note": row.note, "reused": row.reused, "output": outputs[0]}
        await run.closed()
        await journal.close()
        ledger.close()
        self.tell(told)


def live(about: Mapping[str, Any]) -> None:
    """The life of one child."""
    journal = Place(about["url"]).journal()
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
    about = {"bank": os.devnull, "step": "", "asks": True, "kind": "async", "lease_s": 5.0, "run_id": "warm"}
    asyncio.run(Life({**about, "told": os.devnull}).live(MemoryJournal(), MemoryLedger()))
    alone()
