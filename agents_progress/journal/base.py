"""What every journal promises, and the one rule by which a batch may join a log."""

from __future__ import annotations

import os
import secrets
import socket
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from agents_progress.errors import AppendConflict, AppendGap, UsageError
from agents_progress.events import Envelope
from agents_progress.glance import Glance
from agents_progress.journal.pauses import Pause
from agents_progress.messages import Status
from agents_progress.standing import Standing


@cache
def installed_versions() -> tuple[tuple[str, str], ...]:
    """The releases that decide how a run behaves, as installed here."""
    found: list[tuple[str, str]] = []
    for package in ("agents-progress", "openai-agents", "openai", "pydantic"):
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            continue
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Origin:
    """What is stored beside a run and never travels on the wire."""

    owner: str | None = None
    tenant: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    host: str = field(default_factory=socket.gethostname)
    pid: int = field(default_factory=os.getpid)
    versions: Mapping[str, str] = field(default_factory=lambda: dict(installed_versions()))


@dataclass(frozen=True, slots=True)
class RunRow:
    """What a journal knows of one run without reading its log. ``status`` is what its owner wrote; only the whole log
    shows an inconsistency.

    Seconds are by the store's own clock: ``silent_s`` since the last append (None when an older release made it, which
    noted no time), ``unread_s`` since the last :meth:`Journal.touch` (None before the first), ``lease_left_s`` until
    the lease or reservation ends (below 0 when it ran out and nobody asked :meth:`Journal.expire`; None when there is
    neither). ``sealed``: nothing more comes. ``generation`` is that of the newest lease, 0 when there never was one;
    being lost counts as one more. ``glance`` is None when an older release, which keeps none, wrote of the run.
    """

    run_id: str
    task_id: str
    title: str | None
    seq: int
    standing: Standing
    started_at: str
    updated_at: str
    origin: Origin
    sealed: bool
    silent_s: float | None
    unread_s: float | None
    generation: int
    lease_left_s: float | None
    glance: Glance | None

    @property
    def status(self) -> Status:
        """Derived from the standing, by the same table as a view's."""
        return self.standing.status

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels given by the application."""
        return self.origin.labels


@dataclass(frozen=True, slots=True)
class Scope:
    """Whose runs a caller may see: those of this owner, of this tenant, or of both; None restricts nothing.

    A backend puts it into its query. A run outside the scope is, to the caller, a run that does not exist.
    """

    owner: str | None = None
    tenant: str | None = None


EVERYTHING: Final = Scope()


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to append to a run. A newer lease of the same run has a higher ``generation`` and fences this one."""

    run_id: str
    generation: int


@dataclass(frozen=True, slots=True)
class Request:
    """What somebody asks of the owner of a run, wherever that is. ``key`` says what: of one key a run has one request.

    ``request_id`` tells two requests of the same content apart. ``body`` may hold what a person wrote: no repr has it.
    """

    run_id: str
    key: str
    body: Mapping[str, Any] = field(repr=False)
    request_id: str = field(default_factory=lambda: secrets.token_hex(8))


@dataclass(frozen=True, slots=True)
class Erased:
    """What an erasure removed."""

    runs: int = 0
    envelopes: int = 0
    snapshots: int = 0


class Journal(ABC):
    """Append-only logs of runs, one ordered log a run. Safe to share between event loops and threads of one process.

    ``gap_s`` is how long an owner lets envelopes gather, in seconds, before it asks for the next append of a run. Times
    to live are in seconds, by the store's own clock: the clocks of the nodes need not agree.
    """

    gap_s: float = 0.0
    lease_s: float | None = 15.0
    """How long an owner may be silent before its run counts as lost, in seconds; None where a journal ends with the
    process of its owners, so that nobody is left to ask.
    """

    # Writing.

    @abstractmethod
    async def append(
        self,
        envelopes: Sequence[Envelope],
        *,
        origin: Origin | None = None,
        claim: bool = False,
        lease: Lease | None = None,
    ) -> None:
        """Store a batch of one run, wholly or not at all; when this returns it is durable.

        Identical envelopes that are stored already are accepted again. Raises :exc:`AppendConflict` when one of the
        sequence numbers holds other content, and :exc:`AppendGap` when the batch would leave a hole. With ``claim`` the
        batch must begin the run: of two claims, however alike, one raises :exc:`AppendConflict`. ``origin`` is stored
        with the first batch. Raises :exc:`Fenced` when the run has a newer lease than ``lease``, or any when there is
        none, or was declared lost; :exc:`Sealed` after :meth:`seal`; :exc:`RunErased` for an erased run. Numbers that
        were pruned are known by number alone.
        """

    @abstractmethod
    async def seal(self, run_id: str, *, lease: Lease | None = None) -> None:
        """Say that nothing more comes: live tails end, the lease is given back. Idempotent.

        Raises :exc:`Fenced` as :meth:`append` does, :exc:`RunErased`, and :exc:`RunNotFound` for an unknown run.
        """

    # Reading.

    @abstractmethod
    async def read(
        self, run_id: str, after_seq: int = 0, limit: int = 1000, *, scope: Scope = EVERYTHING
    ) -> list[Envelope]:
        """The envelopes of a run after a sequence number, in order; empty for an unknown run.

        Raises :exc:`CursorExpired`, with the snapshot to go on from, when what comes next was pruned, and
        :exc:`RunErased`.
        """

    @abstractmethod
    def tail(self, run_id: str, after_seq: int = 0, *, scope: Scope = EVERYTHING) -> AsyncIterator[Envelope]:
        """Every envelope after a sequence number, each once and in order, those still to come included.

        Ends when the run is sealed and all of it was given; waits for an unknown run to begin. Raises as :meth:`read`
        does, also when that happens while it waits.
        """

    @abstractmethod
    async def runs(
        self,
        *,
        task_id: str | None = None,
        labels: Mapping[str, str] | None = None,
        status: Status | None = None,
        before: str | None = None,
        limit: int = 100,
        scope: Scope = EVERYTHING,
    ) -> list[RunRow]:
        """The newest runs first, at most ``limit`` of those that match every given filter.

        With ``before`` the list goes on after that run, whether it matches or not. Raises :exc:`RunNotFound` where the
        scope holds no such run that has begun, and :exc:`RunErased`, instead of giving an empty list.
        """

    @abstractmethod
    async def newest(self, task_ids: Collection[str], *, scope: Scope = EVERYTHING) -> dict[str, str]:
        """The newest run of each of these tasks; a task without runs is left out."""

    @abstractmethod
    async def run(self, run_id: str, *, scope: Scope = EVERYTHING) -> RunRow | None:
        """One run that has begun, None for an unknown one. Raises :exc:`RunErased`."""

    @abstractmethod
    async def touch(self, run_ids: Sequence[str]) -> None:
        """Say that somebody reads these runs now. Unknown, erased and sealed ones are passed over."""

    @abstractmethod
    async def snapshot(self, run_id: str, *, scope: Scope = EVERYTHING) -> dict[str, Any] | None:
        """The newest stored :meth:`RunView.snapshot` of a run, None when there is none; raises :exc:`RunErased`."""

    # Ownership.

    @abstractmethod
    async def lease(self, run_id: str, ttl: float, *, exclusive: str | None = None) -> Lease:
        """Become the owner of a run, begun or not, for ``ttl`` seconds.

        Raises :exc:`LeaseHeld` while another lease of the run is live, or that of another run with the same
        ``exclusive`` key; :exc:`Sealed` and :exc:`RunErased`. An expired lease is not taken over: its run is held until
        :meth:`expire` declares it lost, while its key is free. A lease ends a reservation.
        """

    @abstractmethod
    def renew(self, leases: Sequence[Lease], ttl: float) -> list[Lease]:
        """Prolong leases, and give back those that are no longer held: expired, lost, sealed, erased. Synchronous, over
        a connection of its own: for a thread that goes on while the event loop is blocked.
        """

    @abstractmethod
    async def reserve(
        self,
        run_id: str,
        ttl: float,
        *,
        task_id: str | None = None,
        title: str | None = None,
        origin: Origin | None = None,
    ) -> None:
        """Write `run.accepted` as the first envelope of a run that somebody will lease within ``ttl`` seconds.

        Without ``task_id`` the run is a task of its own. Raises :exc:`AppendConflict` when the run exists, and
        :exc:`RunErased`.
        """

    @abstractmethod
    async def expire(self) -> list[str]:
        """Append `run.lost` to every run whose lease or reservation ran out (reason `lease_expired` or `never_started`)
        and seal it, each once, whichever node asks; the ids of those that this call ended. A run that has its ending is
        only sealed. The owner of either is fenced from then on.
        """

    # Control.

    @abstractmethod
    async def ask(self, request: Request, *, scope: Scope = EVERYTHING) -> Request:
        """Store a request to the owner of a run, unless one with its key is stored already; gives the stored one.

        Durable when it returns. A sealed run takes requests too: a pause is answered after its log was closed. Raises
        :exc:`RunNotFound` for a run that has not begun or lies outside the scope, and :exc:`RunErased`.
        """

    @abstractmethod
    async def requests(self, run_ids: Collection[str]) -> list[Request]:
        """What is stored for these runs, in the order in which it was asked of each; nothing for unknown ones."""

    @abstractmethod
    def asks(self, owned: Callable[[], Collection[str]]) -> AsyncIterator[Request]:
        """Every request to the runs that ``owned()`` names, each once: those stored before, and those still to come.

        ``owned`` is called anew each time something was asked, and at least once a second. Ends when the journal is
        closed; an outage is waited for.
        """

    # Pauses.

    @abstractmethod
    async def keep_pause(self, pause: Pause, *, lease: Lease | None = None) -> None:
        """Store what a run that is about to pause leaves behind, in the place of what was stored before.

        Raises as :meth:`append` does, and :exc:`RunNotFound` for a run that has not begun. Goes with the run when that
        is erased, and when all of it is pruned.
        """

    @abstractmethod
    async def pause(self, run_id: str, *, scope: Scope = EVERYTHING) -> Pause | None:
        """What is stored of a paused run, None when nothing is. Raises :exc:`RunErased`."""

    @abstractmethod
    async def pauses(self) -> list[str]:
        """The runs of which a pause is stored: for whoever looks after all of them."""

    @abstractmethod
    async def drop_pause(self, run_id: str) -> None:
        """Remove what is stored of a paused run, if anything is."""

    # Retention.

    @abstractmethod
    async def prune(self, run_id: str, upto_seq: int) -> int:
        """Replace the envelopes up to a sequence number by a snapshot of the view they give; how many were removed.

        A newer snapshot that is stored already serves as well. Raises :exc:`RunErased`.
        """

    @abstractmethod
    async def keep_snapshot(self, run_id: str, snapshot: Mapping[str, Any]) -> None:
        """Store a :meth:`RunView.snapshot` for readers to begin with, unless a newer one is there.

        Raises :exc:`BadSnapshot` for one of another run or ahead of the log, and :exc:`RunErased`.
        """

    @abstractmethod
    async def erase(self, *, run_id: str | None = None, task_id: str | None = None, owner: str | None = None) -> Erased:
        """Remove runs with everything stored about them, and leave a tombstone. Exactly one of the three is given.

        A tombstone is the id alone. As it has no owner, a read with a scope finds no run there; live tails raise
        whatever their scope.
        """

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""

    @abstractmethod
    async def close(self) -> None:
        """Finish what was asked for and let go; further calls raise :exc:`JournalClosed`. Live tails end."""


async def continued(journal: Journal, rows: Iterable[RunRow], scope: Scope = EVERYTHING) -> dict[str, str]:
    """The newest run of the task of each paused run that was continued, by the paused one's id."""
    paused = [row for row in rows if row.standing.outcome == "paused"]
    newest = await journal.newest({row.task_id for row in paused}, scope=scope) if paused else {}
    return {row.run_id: newest[row.task_id] for row in paused if newest.get(row.task_id, row.run_id) != row.run_id}


def one_run(envelopes: Sequence[Envelope]) -> str:
    """The run a batch belongs to. Raises :exc:`UsageError` for a mixed batch or one with a hole in it."""
    run_id, first = envelopes[0].run_id, envelopes[0].seq
    numbers = [envelope.seq for envelope in envelopes]
    if len({envelope.run_id for envelope in envelopes}) != 1 or numbers != list(range(first, first + len(numbers))):
        raise UsageError("a batch holds consecutive envelopes of one run; append each run by itself")
    return run_id


def fresh(
    envelopes: Sequence[Envelope],
    head: int,
    stored: Callable[[int, int], Sequence[Envelope]],
    claim: bool,
    floor: int = 0,
) -> Sequence[Envelope]:
    """The part of a batch that is not stored yet, given the log's last sequence number and the last pruned one.

    ``stored(after, upto)`` reads what the log holds in that range. Raises as :meth:`Journal.append` says.
    """
    first = envelopes[0]
    if claim and head:
        raise AppendConflict(f"run {first.run_id} exists; somebody else claimed it first")
    if first.seq > head + 1:
        raise AppendGap(f"run {first.run_id} ends at {head}; envelope {first.seq} would leave a hole")
    overlap = min(head, envelopes[-1].seq) - first.seq + 1
    if overlap <= 0:
        return envelopes
    kept = max(first.seq - 1, floor)
    if list(stored(kept, max(first.seq - 1 + overlap, kept))) != list(envelopes[kept + 1 - first.seq : overlap]):
        raise AppendConflict(f"run {first.run_id} already holds other content at {first.seq}")
    return envelopes[overlap:]
