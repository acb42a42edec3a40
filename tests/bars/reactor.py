"""The process that is killed while it moves a reaction on: at a named step, by its own hand.

The bank is a file: a line for each submission that really arrived. It forbids no second one, so that every double
shows; it is the receipt, too.
"""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import Any, Final

from agents_progress.effects.places import reactions_beside
from agents_progress.effects.reactions import Case, Grant, Reaction, Reactions, Receipt, Record, engine
from agents_progress.effects.reactions import entry as rules
from agents_progress.effects.reactions.store import ReactionStore
from agents_progress.journal import Journal, MemoryJournal

from .places import Place
from .stories import Mortal, alone

_RULES: Final = {
    "taken": "take",
    "prepared": "hold the result",
    "approved": "approve",
    "submitting": "say that it may happen",
    "confirmed": "say that it happened",
    "later": "let go",
}
_MOMENTS: Final = "within the transaction of", "before the commit of", "after"


def _around(*changes: str) -> tuple[str, ...]:
    return tuple(f"{moment}: {change}" for change, moment in product(changes, _MOMENTS))


def _in_log(run: int, *types: str) -> tuple[str, ...]:
    return tuple(
        f"{moment} the journal has {type_} of run {run}" for type_, moment in product(types, ("before", "when"))
    )


EFFECT: Final = "before the effect", "after the effect, before its acknowledgement"
RECEIPT: Final = "before the receipt is read", "when the receipt was read"
SUBMITTED: Final = "after: say that it may happen (approved)"

FIRST: Final = (
    *_around("receive ()", "take (received)"),
    *_in_log(1, "run.started"),
    *("before the record is read (1)", "when the record was read (1)", "in prepare"),
    *_around("hold the result (received)"),
    *_in_log(1, "approval.wait", "run.ended"),
    *_around("let go (ready)"),
    *("before the record is read (2)", "when the record was read (2)"),
    *_around("approve (ready)", "take (approved)"),
    *_in_log(2, "run.started"),
    *("before the record is read (3)", "when the record was read (3)"),
    *_around("say that it may happen (approved)"),
    *EFFECT,
    *RECEIPT,
    *_around("say that it happened (uncertain)"),
    *_in_log(2, "run.ended", "app.checked"),
    *_around("let go (done)"),
)
"""The steps from a notification to its end."""

AGAIN: Final = (
    *_around("take (uncertain)"),
    *RECEIPT,
    *_around("say that it happened (uncertain)"),
    *_in_log(3, "run.started", "run.ended", "app.checked"),
    *_around("let go (done)"),
)
"""Those of a process that finds one that may have happened, and did."""

ONCE_MORE: Final = (*_around("let go (uncertain)", "say that it may happen (uncertain)"), *EFFECT, *RECEIPT)
"""Those of a process that finds one that may have happened, and did not."""


def arrived(bank: Path) -> list[str]:
    """The keys that arrived at the bank, once each time that one did."""
    return [json.loads(line)[0] for line in bank.read_text().splitlines()] if bank.exists() else []


class Life(Mortal):
    """One process: what it does, and where it ends. It is source and target too."""

    def __init__(self, about: Mapping[str, Any]) -> None:
        super().__init__(about)
        self._doing = threading.local()
        self._reads = 0

    # The source, the target, and who prepares.

    async def read(self, resource: str) -> Record:
        self._reads += 1
        self.reached(f"before the record is read ({self._reads})")
        record = Record("v1", "please")
        self.reached(f"when the record was read ({self._reads})")
        return record

    def prepare(self, case: Case) -> Any:
        self.reached("in prepare")
        return {"pay": 7}

    async def submit(self, key: str, result: Any) -> None:
        self.reached(EFFECT[0])
        to = os.open(self.bank, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        os.write(to, f"{json.dumps([key, result])}\n".encode())
        os.fsync(to)
        os.close(to)
        self.reached(EFFECT[1])

    async def receipt(self, key: str) -> Receipt | None:
        self.reached(RECEIPT[0])
        lines = self.bank.read_text().splitlines() if self.bank.exists() else []
        found = [result for held, result in map(json.loads, lines) if held == key]
        self.reached(RECEIPT[1])
        return Receipt(key, found[0]) if found else None

    # The store and the journal, watched.

    def watch(self, store: ReactionStore, journal: Journal) -> Callable[[], None]:
        """Watch every change; gives what stops that."""
        undo: list[Callable[[], None]] = [self._patched(engine, "received", self._watched(engine.received, "receive"))]
        undo += [
            self._patched(rules, name, self._watched(getattr(rules, name), words)) for name, words in _RULES.items()
        ]
        change, append = store.change, journal.append

        def changed(*args: Any, **more: Any) -> Any:
            self._doing.change = None
            answer = change(*args, **more)
            self._step(2)
            return answer

        async def appended(envelopes: Any, **options: Any) -> None:
            _, dot, number = envelopes[0].run_id.rpartition(".")
            run = number if dot else 1
            for envelope in envelopes:
                self.reached(f"before the journal has {envelope.type} of run {run}")
            await append(envelopes, **options)
            for envelope in envelopes:
                self.reached(f"when the journal has {envelope.type} of run {run}")

        store.change = changed  # type: ignore[method-assign]
        journal.append = appended  # type: ignore[method-assign]
        module = import_module(type(store).__module__)
        if hasattr(module, "transaction"):
            undo.append(self._patched(module, "transaction", self._committing(module.transaction)))
        return lambda: [back() for back in undo] and None

    def _patched(self, module: Any, name: str, value: Any) -> Callable[[], None]:
        before = getattr(module, name)
        setattr(module, name, value)
        return lambda: setattr(module, name, before)

    def _watched(self, rule: Callable[..., Any], words: str) -> Callable[..., Any]:
        def watched(found: Any, *args: Any) -> Any:
            state = "" if found[0] is None else found[0].state
            answer = rule(found, *args)
            self._doing.change = f"{words} ({state})"
            self._step(0)
            return answer

        return watched

    def _step(self, moment: int) -> None:
        change = getattr(self._doing, "change", None)
        if change is not None:
            self.reached(f"{_MOMENTS[moment]}: {change}")

    def _committing(self, transaction: Callable[[Any], Any]) -> Callable[[Any], Any]:
        @contextmanager
        def committing(db: Any) -> Iterator[Any]:
            with transaction(db) as within:
                yield within
                self._step(1)

        return committing

    # The reaction.

    async def live(self, journal: Journal, store: ReactionStore) -> None:
        store.lease_s = self.about["lease_s"]
        stop = self.watch(store, journal)
        grant = Grant("g", "ada", {"order/*"}, {"pay"}, self.about["now"] + 3600)
        again = 2.5 * self.about["lease_s"]  # later than the first look for a receipt
        reaction = Reaction("pay", grant, self, self, self.prepare, resubmit_after=again)
        reactions = Reactions(journal, [reaction], store=store)
        event = {"event_id": "e1", "reaction": "pay", "who": "ada", "resource": "order/7", "version": "v1"}
        await reactions.receive({**event, "action": "pay", "occurred_at": self.about["now"]})
        while True:
            await reactions.settle()
            (entry,) = await reactions.list()
            if entry.state == "ready":
                await reactions.approve(entry.task_id, entry.asked or "", "ann")
            elif entry.state in ("done", "stopped") and entry.due_at is None:
                break
            else:
                await asyncio.sleep(0.05)
        runs = [row.status for row in await journal.runs(task_id=entry.task_id)]
        told = {"state": entry.state, "reason": entry.reason, "key": entry.key, "runs": runs[::-1]}
        stop()
        store.close()
        await journal.close()
        self.tell(told)


def live(about: Mapping[str, Any]) -> None:
    """The life of one child."""
    journal = Place(about["url"]).journal(lease_s=about["lease_s"])
    asyncio.run(Life(about).live(journal, reactions_beside(journal)))


def warm() -> None:
    """What the first run of a process costs, every child has behind it."""
    import psycopg

    import agents_progress.effects.reactions.postgres
    import agents_progress.effects.reactions.sqlite
    import agents_progress.journal.postgres
    import agents_progress.journal.sqlite

    assert psycopg and agents_progress
    bank = Path(f"/tmp/reactor-{os.getpid()}")  # noqa: S108 - gone in a moment
    about = {"bank": str(bank), "step": "", "lease_s": 5.0, "told": os.devnull, "now": time.time()}
    journal = MemoryJournal()
    try:
        asyncio.run(Life(about).live(journal, reactions_beside(journal)))
    finally:
        bank.unlink(missing_ok=True)
    alone()
