"""Keeps the leases of running runs and effects, from a thread of its own: a tool that blocks the event loop must not
lose them.

One thread a store and process, over the store's own connection for that; it ends with the last lease.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol
from weakref import WeakKeyDictionary, ref

from agents_progress import telemetry
from agents_progress.errors import AlreadyEnded, AppendConflict, JournalError, LeaseHeld, Sealed
from agents_progress.journal.base import Journal, Lease
from agents_progress.telemetry import RunLogger

logger = logging.getLogger("agents_progress")

TAKEN: Final = (AlreadyEnded, AppendConflict, LeaseHeld, Sealed)
"""What a journal says of a run that somebody else has claimed."""

RENEWALS: Final = 5
"""Renewals of a lease within its time to live: a store may be away for three quarters of it, and no lease is lost."""

ATTEMPTS: Final = 8
"""Attempts to reach a store that is away, within the time from one renewal to the next."""

FIRST: Final = 4
"""A lease is taken for so many times its time to live, until the keeper has it: a tool may block the loop before the
loop is told that the lease was given.
"""

FOR_GOOD: Final = 1e9
"""The time to live, in seconds, of a lease in a journal that ends with the process of its owners."""


class Store(Protocol):
    """Where leases of one kind are: a journal, or a ledger."""

    def renew(self, leases: Sequence[Any], ttl: float, /) -> Sequence[Any]:
        """Prolong leases, and give back those that are no longer held."""


class Keeper:
    """Renews what is held. ``lost`` callbacks come from its thread."""

    def __init__(self, store: Store, ttl: float) -> None:
        self.pid = os.getpid()
        self._store = ref(store)  # the one who holds a lease keeps it
        self._ttl = ttl
        self._held: dict[Any, Callable[[], None]] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._look_at = 0.0
        self._new = False

    def hold(self, lease: Any, lost: Callable[[], None]) -> None:
        """Renew a lease until it is dropped; ``lost`` is called once when it is no longer ours."""
        with self._changed:
            self._held[lease], self._new = lost, True
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._renew, name="agents-progress-leases", daemon=True)
                self._thread.start()

    def drop(self, lease: Any) -> None:
        """Let a lease be."""
        with self._changed:
            self._held.pop(lease, None)
            self._changed.notify()

    def time_to_look(self) -> bool:
        """Whether nobody in this process has looked for lost runs within a time to live; then the caller does."""
        now = time.monotonic()
        with self._changed:
            due = now >= self._look_at
            if due:
                self._look_at = now + self._ttl
        return due

    def _renew(self) -> None:
        away = False
        while True:
            with self._changed:
                pause = self._ttl / RENEWALS / (ATTEMPTS if away else 1)
                self._changed.wait_for(lambda: self._new or not self._held, pause)
                held, store, self._new = list(self._held), self._store(), False
                if not held or store is None:
                    self._thread = None
                    return
            try:
                gone = store.renew(held, self._ttl)
            except Exception as error:  # noqa: BLE001 - the next attempt may reach it again
                telemetry.tell("lease.renewal.missed", len(held))
                if not away:
                    logger.warning("agents_progress: %d leases cannot be renewed: %s", len(held), type(error).__name__)
                away = True
                continue
            finally:
                del store
            away = False
            for lease in gone:
                with self._changed:
                    lost = self._held.pop(lease, None)
                if lost is not None:
                    lost()


_keepers: WeakKeyDictionary[Store, Keeper] = WeakKeyDictionary()
_making = threading.Lock()


def keeper_of(store: Store, ttl: float) -> Keeper:
    """The keeper of a store's leases in this process; a fork begins with one of its own."""
    with _making:
        keeper = _keepers.get(store)
        if keeper is None or keeper.pid != os.getpid():
            keeper = _keepers[store] = Keeper(store, ttl)
        return keeper


async def expire(journal: Journal) -> list[str]:
    """Have lost runs declared lost, as :meth:`Journal.expire`, and count each by its reason."""
    ended = await journal.expire()
    for run_id in ended if telemetry.measured() else ():
        with suppress(JournalError):  # erased since, or out of reach
            row = await journal.run(run_id)
            telemetry.tell("run.lost", 1, reason=row.standing.lost if row else None, seen_by="expiry")
    return ended


class Tenure:
    """The time for which one owner holds one run, and the ``exclusive`` key with it. Belongs to its event loop.

    ``lost`` is called there, when another owner has the run or it counts as lost.
    """

    def __init__(self, journal: Journal, run_id: str, exclusive: str | None = None) -> None:
        self.run_id = run_id
        self.lost: Callable[[], None] = lambda: None
        self.logger = RunLogger(run_id)
        self.journal = journal
        self._exclusive = exclusive
        self._loop = asyncio.get_running_loop()
        self._lease: Lease | None = None

    @property
    def begun(self) -> bool:
        """Whether the lease was taken."""
        return self._lease is not None

    async def begin(self) -> Lease:
        """The lease of the run, taken at the first call."""
        if self._lease is None:
            ttl = self.journal.lease_s
            first = FOR_GOOD if ttl is None else FIRST * ttl
            self._lease = await self.journal.lease(self.run_id, first, exclusive=self._exclusive)
            if ttl is not None:
                keeper = keeper_of(self.journal, ttl)
                keeper.hold(self._lease, self._tell)
                if keeper.time_to_look():
                    await expire(self.journal)
        return self._lease

    def leave(self) -> None:
        """Let the lease run out, so that the run counts as lost."""
        self._drop()
        if self._lease is not None and self.journal.lease_s is None:
            with suppress(JournalError):
                self.journal.renew([self._lease], 0.0)

    async def end(self) -> None:
        """Give the lease back, with the word that nothing more comes."""
        self._drop()
        try:
            await self.journal.seal(self.run_id, lease=self._lease)
        except Exception as error:  # noqa: BLE001 - a journal that fails must not fail the run; the lease runs out
            self.logger.warning("its log was not sealed: %s", type(error).__name__)

    def _drop(self) -> None:
        if self._lease is not None and self.journal.lease_s is not None:
            keeper_of(self.journal, self.journal.lease_s).drop(self._lease)

    def _tell(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: self.lost())
