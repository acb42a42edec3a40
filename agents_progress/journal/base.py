"""What every journal promises, and the one rule by which a batch may join a log."""

from __future__ import annotations

import os
import socket
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version

from agents_progress.errors import AppendConflict, AppendGap, UsageError
from agents_progress.events import Envelope
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
    """One line of a list of runs. ``status`` is what its owner wrote; only the whole log shows an inconsistency."""

    run_id: str
    task_id: str
    title: str | None
    seq: int
    standing: Standing
    started_at: str
    updated_at: str
    origin: Origin

    @property
    def status(self) -> Status:
        """Derived from the standing, by the same table as a view's."""
        return self.standing.status

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels given by the application."""
        return self.origin.labels


class Journal(ABC):
    """Append-only logs of runs, one ordered log a run. Safe to share between event loops and threads of one process.

    ``gap_s`` is how long an owner lets envelopes gather, in seconds, before it asks for the next append of a run.
    """

    gap_s: float = 0.0

    @abstractmethod
    async def append(self, envelopes: Sequence[Envelope], *, origin: Origin | None = None, claim: bool = False) -> None:
        """Store a batch of one run, wholly or not at all; when this returns it is durable.

        Identical envelopes that are stored already are accepted again. Raises :exc:`AppendConflict` when one of the
        sequence numbers holds other content, and :exc:`AppendGap` when the batch would leave a hole. With ``claim`` the
        batch must begin the run: of two claims, however alike, one raises :exc:`AppendConflict`. ``origin`` is stored
        with the first batch.
        """

    @abstractmethod
    async def read(self, run_id: str, after_seq: int = 0, limit: int = 1000) -> list[Envelope]:
        """The envelopes of a run after a sequence number, in order; empty for an unknown run."""

    @abstractmethod
    async def runs(
        self,
        *,
        task_id: str | None = None,
        labels: Mapping[str, str] | None = None,
        status: Status | None = None,
        limit: int = 100,
    ) -> list[RunRow]:
        """The newest runs first, at most ``limit`` of those that match every given filter."""

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""

    @abstractmethod
    async def close(self) -> None:
        """Finish what was asked for and let go; further calls raise :exc:`JournalClosed`."""


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
) -> Sequence[Envelope]:
    """The part of a batch that is not stored yet, given the log's last sequence number.

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
    if list(stored(first.seq - 1, first.seq - 1 + overlap)) != list(envelopes[:overlap]):
        raise AppendConflict(f"run {first.run_id} already holds other content at {first.seq}")
    return envelopes[overlap:]
