"""What the backends have in common, as pure functions: who may write, what ends a left run, what pruning keeps.

A backend keeps these facts about a run: ``head`` (its last sequence number), ``floor`` (the last one that was pruned),
``generation`` (of its newest lease; 0 when it never had one), ``deadline`` (until when its lease or reservation holds,
None when there is neither) and ``sealed``. A log is lost when its deadline has passed; then it is sealed and its
generation grows by one, so that whoever owned it is fenced.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Mapping
from typing import Any, Final

from agents_progress.clock import rfc3339
from agents_progress.errors import (
    AppendConflict,
    BadSnapshot,
    CursorExpired,
    Fenced,
    LeaseHeld,
    RunErased,
    RunNotFound,
    Sealed,
    UsageError,
)
from agents_progress.events import Envelope
from agents_progress.journal.base import Lease, Origin, Request, Scope
from agents_progress.standing import Standing
from agents_progress.view import RunView

LEASE_EXPIRED: Final = "lease_expired"
NEVER_STARTED: Final = "never_started"


def refuse_write(run_id: str, *, generation: int, sealed: bool, lease: Lease | None) -> None:
    """Raise unless this lease, or its lack, gives the right to append to a run, or to seal it."""
    if lease != (Lease(run_id, generation) if generation else None):
        raise Fenced(f"run {run_id} has another owner, or was declared lost; stop writing to it")
    if sealed:
        raise Sealed(f"run {run_id} is sealed; begin another run instead")


def refuse_lease(run_id: str, *, generation: int, deadline: float | None, sealed: bool) -> None:
    """Raise unless a run may be leased. An owner that is late holds its lease until the run is declared lost."""
    if sealed:
        raise Sealed(f"run {run_id} is sealed; begin another run instead")
    if generation and deadline is not None:
        raise LeaseHeld(f"run {run_id} has an owner; wait for its end, or begin another run")


def held_elsewhere(key: str, run_id: str) -> LeaseHeld:
    """Another run holds the exclusive key."""
    return LeaseHeld(f"run {run_id} is running under {key!r}; wait for its end")


def exists(run_id: str) -> AppendConflict:
    """A run that was to begin has begun, or has an owner."""
    return AppendConflict(f"run {run_id} exists; choose another id")


def erased(run_id: str) -> RunErased:
    """A run of which only the tombstone is left."""
    return RunErased(f"run {run_id} was erased; nothing of it can be read or written")


def not_found(run_id: str) -> RunNotFound:
    """A run that is needed and not there."""
    return RunNotFound(f"there is no run {run_id}; check the id")


def expired(run_id: str, floor: int, snapshot: dict[str, Any]) -> CursorExpired:
    """A cursor before the kept range."""
    return CursorExpired(f"run {run_id} was pruned up to {floor}; go on from the snapshot", snapshot)


def one_target(run_id: str | None, task_id: str | None, owner: str | None) -> None:
    """Raise :exc:`UsageError` unless exactly one thing to erase is named."""
    if (run_id, task_id, owner).count(None) != 2:
        raise UsageError("name exactly one of run_id, task_id and owner to erase")


def visible(origin: Origin, scope: Scope) -> bool:
    """Whether a run is inside a scope."""
    return scope.owner in {None, origin.owner} and scope.tenant in {None, origin.tenant}


def envelope(run_id: str, seq: int, type_: str, payload: dict[str, Any]) -> Envelope:
    """An envelope that the journal itself writes, now, by the wall clock of the node that asks."""
    return Envelope(f"{run_id}:{seq}", run_id, seq, type_, rfc3339(time.time_ns() // 1_000_000), payload)


def accepted(run_id: str, task_id: str | None, title: str | None) -> Envelope:
    """The first envelope of a reserved run. A run without a task is a task of its own."""
    payload: dict[str, Any] = {"task_id": task_id or run_id}
    return envelope(run_id, 1, "run.accepted", payload if title is None else {**payload, "title": title})


def lost(run_id: str, head: int, generation: int, standing: Standing) -> Envelope | None:
    """What follows in the log of a run whose deadline has passed: nothing when it has its ending."""
    if standing.ended:
        return None
    return envelope(run_id, head + 1, "run.lost", {"reason": LEASE_EXPIRED if generation else NEVER_STARTED})


def folded(run_id: str, snapshot: Mapping[str, Any] | None, sources: Iterable[object]) -> dict[str, Any]:
    """The snapshot of the view that a snapshot and the envelopes after it give."""
    view = RunView(run_id) if snapshot is None else RunView.from_snapshot(snapshot)
    for source in sources:
        view.feed(source)
    return view.snapshot()


def snapshot_seq(run_id: str, snapshot: Mapping[str, Any], head: int) -> int:
    """How far a snapshot to keep reaches. Raises :exc:`BadSnapshot` for one that does not belong to the stored log."""
    seq = snapshot.get("seq")
    if snapshot.get("run_id") != run_id or not isinstance(seq, int) or not 0 <= seq <= head:
        raise BadSnapshot(f"this is no snapshot of what is stored of run {run_id}; take it from its view")
    return seq


def key_text(key: str) -> str:
    """The key of a request as ASCII JSON, which every store takes, odd characters included."""
    return json.dumps(key)


def opening(key: str) -> str:
    """How the text of every request with this key begins, and of no other."""
    return f'{{"key": {key_text(key)}, '


def request_text(request: Request) -> str:
    """A request as one line of ASCII JSON. Raises for a body that has no JSON form."""
    own_id, body = json.dumps(request.request_id), json.dumps(dict(request.body), allow_nan=False)
    return f'{opening(request.key)}"request_id": {own_id}, "body": {body}}}'


def stored_request(run_id: str, text: str | bytes) -> Request:
    """The request of a run behind a :func:`request_text`."""
    return Request(run_id, **json.loads(text))
