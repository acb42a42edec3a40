"""Which side effect ran, under which key, with which result: the contract of the ledger.

**What it is for.** A tool that pays, sends or books may be called twice for one wish: the model makes a new call id
when it tries again, a run is resumed in another process, a deploy kills the process between the effect and its record.
The ledger writes down that an effect begins before it begins, and how it ended after that. So a second call is told
that it happened, and gets what the first one returned; and where nobody can know, it says so instead of trying again.

**One call** of a tool under :func:`agents_progress.effects.once.once` goes through these steps. A process that dies
before 2 or after 4 leaves a fact; in between it leaves an entry that becomes `uncertain` when its lease runs out.

1. the arguments are bound, key and scope worked out, and the entry named by their digest
   (:mod:`agents_progress.effects.keys`);
2. :meth:`Ledger.begin`: one transaction that takes the entry, or tells why not;
3. the body, while a thread renews the lease (:mod:`agents_progress.keeper`);
4. :meth:`Ledger.succeed` with the output, or :meth:`Ledger.fail`, or :meth:`Ledger.give_up`.

**States and rules** stand in :mod:`agents_progress.effects.entry`, as pure functions over one entry. A backend gives
five things: to change one entry in a durable transaction (:meth:`Ledger.change`), to look at one, to list some, to
erase, and to say whether there is anything. Nothing else can differ between backends. Runs and what their effects left
are erased together by :func:`agents_progress.retention.erase`.

**Decisions.** A body that raises may have had its effect before: that is uncertain, unless the application names the
exception as one that proves otherwise. An entry that may have happened is never begun again on anybody's guess: only an
application's word, from the body, from `reconcile` or from a person, makes it `failed`, and only that generation. An
owner that was frozen longer than its lease and then goes on is the one case that no ledger can see: hand the key of the
effect downstream (:func:`agents_progress.effects.once.effect_key`), where the same key makes it one effect again. It
is the digest of entry and arguments, equal in every attempt.

Methods are synchronous and may be called from any thread: tools are sync as often as async, and an event loop that is
blocked must not keep a record from being written. :meth:`Ledger.submit` has them done in the ledger's own thread.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias, TypeVar

from pydantic import TypeAdapter

from agents_progress.effects import entry as rules
from agents_progress.effects.entry import Answer, DidNotHappen, Effect, Entry, Finding, Happened, Hold, State
from agents_progress.effects.outputs import stored
from agents_progress.effects.tables import OwnThread
from agents_progress.errors import UsageError
from agents_progress.journal.base import EVERYTHING, Scope

T = TypeVar("T")
Change: TypeAlias = Callable[["Entry | None", float], tuple[T, "Entry | None"]]

_ANYTHING: Final[TypeAdapter[Any]] = TypeAdapter(Any)


class Ledger(OwnThread, ABC):
    """What is known of effects. Safe to share between threads and event loops of one process.

    Nothing is opened before its first use, so a ledger may be named at import and the process forked afterwards.
    Methods raise :exc:`JournalUnavailable`, :exc:`JournalUnreadable` and :exc:`JournalClosed` as a journal's do; what
    then was under way may have been written or not.
    """

    lease_s: float = 15.0
    """How long an owner may be silent before its effect counts as uncertain, in seconds."""

    # What a backend gives.

    @abstractmethod
    def change(self, entry: str, rule: Change[T]) -> T:
        """Give a rule the entry (None for an unknown one) and the store's time, and store the entry it gives back, None
        leaving all as it is. Nobody else changes the entry meanwhile, and what was stored is durable when this returns.
        """

    @abstractmethod
    def look(self, entry: str, *, scope: Scope = EVERYTHING) -> tuple[Entry | None, float]:
        """An entry as it is now, None for an unknown one and one outside the scope, and the store's time."""

    @abstractmethod
    def renew(self, holds: Sequence[Hold], ttl: float) -> Sequence[Hold]:
        """Prolong what is held and unsettled, and give back what is not any more: its deadline passed, or it was
        settled. Over a connection of its own.
        """

    @abstractmethod
    def entries(
        self,
        *,
        state: State | None = None,
        task_id: str | None = None,
        begins: str = "",
        limit: int = 100,
        scope: Scope = EVERYTHING,
    ) -> list[Entry]:
        """The newest entries first, at most ``limit`` of those that match, erased ones left out. ``begins`` is what
        their digest begins with.
        """

    @abstractmethod
    def erase(self, *, run_id: str | None = None, task_id: str | None = None, owner: str | None = None) -> int:
        """Remove what is stored of the effects of a run, a task or an owner, outputs first of all; how many there were.

        Exactly one of the three is given. That each was there and what became of it stays, without which a later call
        would have the effect again; its result is gone.
        """

    @abstractmethod
    def exists(self) -> bool:
        """Whether anything was ever begun here. The one question that makes nothing, neither a file nor a table."""

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the store and the thread. Further calls raise :exc:`JournalClosed`."""

    # What callers ask.

    def begin(self, effect: Effect) -> Answer:
        """Take an effect for :attr:`lease_s` seconds, or tell why not."""
        known, now = self.look(effect.entry)
        if known is not None:
            answer, after = rules.begun(known, effect, now, self.lease_s)
            if after is None:  # as it is most of the time: no lock is taken, nothing is written
                return answer
        return self.change(effect.entry, lambda found, now: rules.begun(found, effect, now, self.lease_s))

    def succeed(self, hold: Hold, output: str) -> bool:
        """Say that it happened, with the output as :func:`stored` made it. False when another attempt was begun
        meanwhile, because somebody said that it had not: it may have happened twice.
        """
        return self.change(hold.entry, lambda found, now: rules.happened(found, hold, output, now))

    def fail(self, hold: Hold) -> bool:
        """Say that it certainly did not happen. False when somebody said otherwise, whose word stands."""
        return self.change(hold.entry, lambda found, now: rules.did_not_happen(found, hold, now))

    def give_up(self, hold: Hold) -> bool:
        """Say that nobody is at it any more and that it may have happened. False when somebody settled it."""
        return self.change(hold.entry, lambda found, _: rules.given_up(found, hold))

    def resolve(
        self, entry: str, generation: int, finding: Finding, by: str, adapter: TypeAdapter[Any] = _ANYTHING
    ) -> bool:
        """Settle an uncertain entry by what somebody found out; ``by`` is who, for people to read.

        ``generation`` is that of the attempt which was looked into. False when the entry is not uncertain, or of a
        newer attempt: then nothing was written, and what is there counts.
        """
        match finding:
            case Happened(output):
                text = stored(output, adapter)
                return self.change(
                    entry, lambda found, now: rules.resolved(found, generation, "happened", by, text, now)
                )
            case DidNotHappen():
                return self.change(
                    entry, lambda found, now: rules.resolved(found, generation, "did_not_happen", by, None, now)
                )
            case _:
                return False


def one_target(run_id: str | None, task_id: str | None, owner: str | None) -> tuple[str, str]:
    """The name and the value of the one thing to erase."""
    named = [(name, it) for name, it in (("run_id", run_id), ("task_id", task_id), ("owner", owner)) if it is not None]
    if len(named) != 1:
        raise UsageError("name exactly one of run_id, task_id and owner to erase")
    return named[0]
