"""A reaction as it is stored, and the whole of its rules as pure functions over documents.

| state | what is known | who moves it on |
|---|---|---|
| received | a notification that a grant covers | a worker reads the record and prepares a result |
| ready | the result is held, with the digest of what is asked | a person |
| approved | that digest was approved | a worker submits, after checking everything again |
| uncertain | it may have happened: written down before the submission begins | a worker reads the receipt; a person |
| done | the receipt was read back, and is what was approved | nobody |
| stopped | nothing more happens, for a reason | nobody |

:data:`MOVES` is the table of moves. Every rule compares the generation that its caller holds, so that what one worker
found out is never written over what another one did meanwhile.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal, TypeAlias, get_args

from agents_progress.effects.keys import digest
from agents_progress.effects.reactions.grant import Wanted, held, objection
from agents_progress.effects.reactions.store import Document, Line, Writing

State: TypeAlias = Literal["received", "ready", "approved", "uncertain", "done", "stopped"]
Verb: TypeAlias = Literal["prepare", "approve", "submit", "confirm", "not_submitted", "stop"]

MOVES: Final[Mapping[tuple[State, Verb], State]] = {
    ("received", "prepare"): "ready",
    ("received", "stop"): "stopped",
    ("ready", "approve"): "approved",
    ("ready", "stop"): "stopped",
    ("approved", "submit"): "uncertain",
    ("approved", "stop"): "stopped",
    ("uncertain", "submit"): "uncertain",
    ("uncertain", "confirm"): "done",
    ("uncertain", "not_submitted"): "approved",
    ("uncertain", "stop"): "stopped",
}
"""Where each verb leads. What does not stand here does not happen; `done` and `stopped` lead nowhere."""

OPEN: Final[tuple[State, ...]] = tuple(state for state in get_args(State) if any(state == at for at, _ in MOVES))
"""The states in which something is still to happen."""

_KIND: Final = "reaction/1"
"""Part of every digest: another way to make them would need another one."""

_COLUMNS: Final = ("reaction", "state", "due_at", "generation", "owner", "tenant")


@dataclass(frozen=True, slots=True)
class Entry:
    """One reaction: what for, how far it is, and what is bound to what. Times are seconds since 1970.

    ``result`` is JSON, ``asked`` the digest of exactly what an approval is about, ``approved`` that of what was
    approved. ``decided`` is a person's word and ``actor`` whose it is. ``submits`` counts how often a submission was
    begun. ``reason`` is why it stopped, or what keeps it uncertain; ``reference`` is the target's name of the effect.
    """

    task_id: str
    reaction: str
    grant: str
    revision: int
    who: str
    resource: str
    version: str
    action: str
    label: str
    received_at: float
    text: str = field(default="", repr=False)
    owner: str | None = None
    tenant: str | None = None
    state: State = "received"
    due_at: float | None = None
    generation: int = 0
    result: str | None = field(default=None, repr=False)
    asked: str | None = None
    approved: str | None = None
    decided: Literal["approved", "rejected", "cancelled"] | None = None
    actor: str | None = None
    submits: int = 0
    submitted_at: float | None = None
    looks: int = 0
    reason: str | None = None
    reference: str | None = None
    erased: bool = False

    @property
    def key(self) -> str:
        """The idempotency key of its submission, the same in every attempt, as 64 hex digits."""
        return digest(_KIND, self.task_id)

    @property
    def called_off(self) -> bool:
        """Whether it stopped because a person said so."""
        return self.state == "stopped" and self.reason in ("rejected", "cancelled")

    @property
    def wanted(self) -> Wanted:
        """What its grant must permit."""
        return Wanted(self.who, self.resource, self.action, self.revision)

    def bound(self, result: str | None) -> str:
        """The digest of doing exactly this with a result."""
        about = self.task_id, self.grant, self.who, self.resource, self.version, self.action
        return digest(_KIND, *about, result)

    def document(self) -> Document:
        """As it is stored."""
        columns = {name: getattr(self, name) for name in _COLUMNS}
        names = (item.name for item in fields(self) if item.name not in {*_COLUMNS, "task_id", "received_at"})
        body = {name: getattr(self, name) for name in names}
        return Document(self.task_id, "reaction", body, task_id=self.task_id, at=self.received_at, **columns)


def entry_of(document: Document | None) -> Entry | None:
    """The reaction in a document."""
    if document is None or document.kind != "reaction":
        return None
    columns = {name: getattr(document, name) for name in _COLUMNS}
    return Entry(task_id=document.name, received_at=document.at, **document.body, **columns)


# Moves.

Found: TypeAlias = Sequence["Document | None"]


def _moved(entry: Entry, verb: Verb, now: float, by: str | None = None, /, **changes: Any) -> tuple[Entry, Writing]:
    after = replace(entry, state=MOVES[entry.state, verb], **changes)
    return after, Writing([after.document()], [_line(after, verb, now, by)])


def _line(entry: Entry, what: str, now: float, actor: str | None = None) -> Line:
    whose = {"owner": entry.owner, "tenant": entry.tenant}
    return Line(now, what, entry.reaction, entry.task_id, entry.reason, actor, **whose)


# What a worker does. Each rule gives the entry as it is then, or None when it is not the worker's any more.


def taken(found: Found, now: float, ttl: float) -> tuple[Entry | None, Writing]:
    """A worker takes what is due."""
    entry = entry_of(found[0])
    if entry is None or entry.due_at is None or entry.due_at > now:
        return None, Writing()
    after = replace(entry, generation=entry.generation + 1, due_at=now + ttl)
    return after, Writing([after.document()])


def mine(found: Found, generation: int) -> Entry | None:
    """The entry, if nobody took it over."""
    entry = entry_of(found[0])
    return entry if entry is not None and entry.generation == generation else None


def later(
    found: Found, generation: int, now: float, pause: float | None, looks: int = 0
) -> tuple[Entry | None, Writing]:
    """A worker lets go of an entry; it is due after ``pause`` seconds, or, with None, not before a person acts.
    ``looks`` counts the looks for a receipt that were in vain.
    """
    entry = mine(found, generation)
    if entry is None:
        return None, Writing()
    due_at = None if pause is None else now + pause
    after = replace(entry, generation=generation + 1, due_at=due_at, looks=looks)  # a renewal under way comes too late
    return after, Writing([after.document()])


def prepared(found: Found, generation: int, result: str, now: float) -> tuple[Entry | None, Writing]:
    """A result was prepared, and is held; it stops when its grant does not permit it any more."""
    entry = mine(found, generation)
    if entry is None or entry.state != "received":
        return None, Writing()
    reason = objection(held(found[1]), entry.wanted, now)
    if reason is not None:
        return _moved(entry, "stop", now, reason=reason)
    return _moved(entry, "prepare", now, result=result, asked=entry.bound(result))


def stopped(found: Found, generation: int, reason: str, now: float) -> tuple[Entry | None, Writing]:
    """A worker found that it cannot go on. What may have happened does not stop; it says why it is uncertain."""
    entry = mine(found, generation)
    if entry is None or (entry.state, "stop") not in MOVES:
        return None, Writing()
    if entry.state == "uncertain":
        after = replace(entry, reason=reason)
        return after, Writing([after.document()], [_line(after, "uncertain", now)])
    return _moved(entry, "stop", now, reason=reason)


def submitting(found: Found, generation: int, resubmit_after: float | None, now: float) -> tuple[Entry, bool, Writing]:
    """A submission begins: that it may have happened from now on is written down first. Says whether it may be made.

    Raises :exc:`LookupError` when the entry is not the worker's any more.
    """
    entry = mine(found, generation)
    if entry is None or (entry.state, "submit") not in MOVES:
        raise LookupError
    if entry.state == "uncertain" and not may_resubmit(entry, resubmit_after, now):
        return entry, False, Writing()
    reason = objection(held(found[1]), entry.wanted, now)
    if not entry.asked == entry.approved == entry.bound(entry.result):
        reason = "result_differs"
    if reason is not None:
        after, writing = stopped(found, generation, reason, now)
        return after or entry, False, writing
    after, writing = _moved(entry, "submit", now, submits=entry.submits + 1, submitted_at=now, reason=None)
    return after, True, writing


def may_resubmit(entry: Entry, resubmit_after: float | None, now: float) -> bool:
    """Whether an uncertain entry without a receipt is submitted again, under the same key. Not where something was
    found against it once: that leaves it to a person.
    """
    if resubmit_after is None or entry.decided != "approved" or entry.reason is not None:
        return False
    return now - (entry.submitted_at or now) >= resubmit_after


def confirmed(found: Found, generation: int, reference: str, now: float) -> tuple[Entry | None, Writing]:
    """The receipt was read back, and is what was approved."""
    entry = mine(found, generation)
    if entry is None or entry.state != "uncertain":
        return None, Writing()
    return _moved(entry, "confirm", now, reference=reference, reason=None)


# What people do. Each rule gives None, or the code of a refusal.


def approved(found: Found, shown: str, actor: str, now: float) -> tuple[str | None, Writing]:
    """Somebody approves exactly what was shown. A grant or a result that changed stops it instead."""
    entry = entry_of(found[0])
    assert entry is not None, "looked up before"
    if entry.state != "ready":
        return "not_waiting", Writing()
    if entry.asked != shown:
        return "digest_differs", Writing()
    reason = "result_differs" if entry.asked != entry.bound(entry.result) else None
    reason = reason or objection(held(found[1]), entry.wanted, now)
    if reason is not None:
        return reason, _ended(entry, now, reason)
    freed = {"generation": entry.generation + 1, "due_at": now}
    _, writing = _moved(entry, "approve", now, actor, approved=shown, decided="approved", actor=actor, **freed)
    return None, writing


def rejected(found: Found, actor: str, now: float) -> tuple[str | None, Writing]:
    """Somebody rejects what is asked."""
    entry = entry_of(found[0])
    assert entry is not None, "looked up before"
    if entry.state != "ready":
        return "not_waiting", Writing()
    return None, _ended(entry, now, "rejected", actor, "rejected")


def cancelled(found: Found, actor: str, now: float) -> tuple[str | None, Writing]:
    """Somebody cancels it: what was not submitted stops, and what may have happened is not submitted again."""
    entry = entry_of(found[0])
    assert entry is not None, "looked up before"
    if entry.state in ("done", "stopped"):
        return "already_ended", Writing()
    if entry.state != "uncertain":
        return None, _ended(entry, now, "cancelled", actor, "cancelled")
    if entry.decided == "cancelled":
        return "may_have_happened", Writing()
    after = replace(entry, decided="cancelled")
    return "may_have_happened", Writing([after.document()], [_line(after, "cancel", now, actor)])


def withdrawn(found: Found, reason: str, now: float) -> Writing:
    """Somebody who wanted to approve it found that its source does not allow it."""
    entry = entry_of(found[0])
    return _ended(entry, now, reason) if entry is not None and entry.state == "ready" else Writing()


Finding: TypeAlias = Literal["look", "not_submitted", "give_up"]
"""What a person says of an uncertain reaction: look at the receipt again; it certainly did not arrive, so that it may
be submitted; or nobody will find out. None of these makes it done: only a receipt does.
"""


def resolved(found: Found, finding: Finding, actor: str, now: float) -> tuple[str | None, Writing]:
    """Somebody found out more about an uncertain entry."""
    entry = entry_of(found[0])
    assert entry is not None, "looked up before"
    if entry.state != "uncertain":
        return "not_uncertain", Writing()
    if finding == "look":
        after = replace(entry, due_at=min(entry.due_at or now, now), generation=entry.generation + 1)
        return None, Writing([after.document()], [_line(after, "look", now, actor)])
    if finding == "give_up":
        return None, _ended(entry, now, "given_up", actor)
    if entry.decided != "approved":
        return None, _ended(entry, now, "cancelled", actor, "cancelled")
    freed = {"generation": entry.generation + 1, "reason": None, "due_at": now}
    _, writing = _moved(entry, "not_submitted", now, actor, **freed)
    return None, writing


def _ended(entry: Entry, now: float, reason: str, actor: str | None = None, decided: Any = None) -> Writing:
    """Stop it, and have a worker say so to whoever watches."""
    freed = {"generation": entry.generation + 1, "due_at": now}
    said = {"decided": decided, "actor": actor} if decided else {}
    return _moved(entry, "stop", now, actor, reason=reason, **said, **freed)[1]


def erased(found: Found, now: float) -> tuple[bool, Writing]:
    """What is left of a reaction: that there was one, so that it is not begun again. What was open stops."""
    entry = entry_of(found[0])
    if entry is None or entry.erased:
        return False, Writing()
    state: State = entry.state if entry.state in ("done", "stopped") else "stopped"
    bare = Entry(entry.task_id, entry.reaction, "", 0, "", "", "", "", "", entry.received_at)
    after = replace(bare, state=state, generation=entry.generation + 1, submits=entry.submits, erased=True)
    return True, Writing([after.document()], forget=[entry.task_id])
