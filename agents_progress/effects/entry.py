"""An entry of the ledger, and the whole of its rules as pure functions: a backend only locks, reads and writes.

What is stored is ``settled`` (what became of the effect, None while nobody knows), ``generation`` (of the newest
attempt) and ``deadline`` (until when its owner counts as alive). The state follows from them:

| settled | deadline | state | a call with the same arguments |
|---|---|---|---|
| nothing | ahead | running | waits |
| nothing | passed | uncertain | asks `reconcile`, or is refused |
| happened | | succeeded | gets the stored output |
| did not happen | | failed | runs, under the next generation |

An owner that gives up, or whose body raised, lets its deadline pass at once, so that uncertain is never a guess of
somebody else's. Only ``did not happen`` lets a body run again: as a fact that its application vouches for, from
:meth:`Ledger.fail`, ``reconcile`` or a person. A word that comes late counts as long as no newer attempt was begun, and
that it happened outweighs that it did not.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias

State: TypeAlias = Literal["running", "succeeded", "failed", "uncertain"]
Settled: TypeAlias = Literal["happened", "did_not_happen"]

is_entry: Final = re.compile(r"[0-9a-f]{64}", re.ASCII).fullmatch
"""Whether a text is the digest that names an entry."""

AT_ONCE: Final = 0.0
"""A deadline that has passed."""


@dataclass(frozen=True, slots=True)
class Effect:
    """One call of a tool that must have its effect once: what it is, whose, and who asks.

    ``entry`` is the digest of tenant, scope, tool and key: calls with the same one are the same effect. ``arguments``
    is the digest of what it is to do. The rest is for people and for erasure; ``key`` is empty where all arguments are
    the key, as these are not for people.
    """

    entry: str
    arguments: str
    name: str
    key: str
    scope: str
    owner: str | None = None
    tenant: str | None = None
    run_id: str | None = None
    task_id: str | None = None
    call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Entry:
    """What the ledger holds of one effect. Times are seconds since 1970, by the store's clock.

    ``output`` is the JSON of what the body returned, or None where it is not known, or erased. ``settled_by`` is who
    said so: the attempt itself (``body``), ``reconcile``, or a person's name.
    """

    effect: Effect
    generation: int
    began_at: float
    deadline: float
    settled: Settled | None = None
    settled_at: float | None = None
    settled_by: str | None = None
    output: str | None = field(default=None, repr=False)
    erased: bool = False

    def state(self, now: float) -> State:
        """The state at a moment."""
        if self.settled is None:
            return "running" if self.deadline > now else "uncertain"
        return "failed" if self.settled == "did_not_happen" else "succeeded"


# What a call is told.


@dataclass(frozen=True, slots=True)
class Hold:
    """The right to have the effect, and to say how it ended. A newer one of the entry has a higher generation."""

    entry: str
    generation: int


@dataclass(frozen=True, slots=True)
class Begun:
    """The caller runs the body, and nobody else does."""

    hold: Hold


@dataclass(frozen=True, slots=True)
class Stored:
    """It happened before. ``output`` is None when that is not known any more."""

    output: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class Busy:
    """Somebody else is at it, and counts as alive for ``left_s`` more seconds."""

    left_s: float


@dataclass(frozen=True, slots=True)
class Conflict:
    """The key was used with other arguments."""


@dataclass(frozen=True, slots=True)
class Uncertain:
    """It may have happened; nobody is at it. ``generation`` is what an answer must be about."""

    generation: int


Answer: TypeAlias = Begun | Stored | Busy | Conflict | Uncertain


# What somebody found out.


@dataclass(frozen=True, slots=True)
class Happened:
    """It happened, and this is what the tool returns for it."""

    output: object = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class DidNotHappen:
    """It did not happen and cannot happen any more, so that it may be tried again."""


@dataclass(frozen=True, slots=True)
class StillUnknown:
    """Whoever was asked does not know either."""


Finding: TypeAlias = Happened | DidNotHappen | StillUnknown


# The rules. Each gives the entry to store, None where nothing changes.


def begun(entry: Entry | None, effect: Effect, now: float, ttl: float) -> tuple[Answer, Entry | None]:
    """What a call is told, given the entry that is there."""
    if entry is None:
        return _taken(effect, 1, now, ttl)
    state = entry.state(now)
    if state == "failed":  # nothing happened, so other arguments do no harm
        return _taken(effect, entry.generation + 1, now, ttl)
    if not entry.erased and entry.effect.arguments != effect.arguments:
        return Conflict(), None
    if state == "succeeded":
        return Stored(entry.output), None
    return Busy(entry.deadline - now) if state == "running" else Uncertain(entry.generation), None


def _taken(effect: Effect, generation: int, now: float, ttl: float) -> tuple[Answer, Entry]:
    return Begun(Hold(effect.entry, generation)), Entry(effect, generation, now, now + ttl)


def happened(entry: Entry | None, hold: Hold, output: str | None, now: float) -> tuple[bool, Entry | None]:
    """The attempt had its effect. False when a newer one was begun: then it may have happened twice."""
    if entry is None or entry.generation != hold.generation:
        return False, None
    if entry.settled == "happened":
        return True, None
    return True, _settled(entry, "happened", "body", output, now)


def did_not_happen(entry: Entry | None, hold: Hold, now: float) -> tuple[bool, Entry | None]:
    """The attempt had no effect. False when somebody else said otherwise."""
    if entry is None or entry.generation != hold.generation or entry.settled == "happened":
        return False, None
    return True, _settled(entry, "did_not_happen", "body", None, now)


def given_up(entry: Entry | None, hold: Hold) -> tuple[bool, Entry | None]:
    """Whoever made the attempt does not know."""
    if entry is None or entry.generation != hold.generation or entry.settled is not None:
        return False, None
    return True, replace(entry, deadline=AT_ONCE)


def resolved(
    entry: Entry | None, generation: int, settled: Settled, by: str, output: str | None, now: float
) -> tuple[bool, Entry | None]:
    """Somebody found out what became of an uncertain entry. False when it is none any more, or of a newer attempt."""
    if entry is None or entry.generation != generation or entry.state(now) != "uncertain":
        return False, None
    return True, _settled(entry, settled, by, output, now)


def _settled(entry: Entry, settled: Settled, by: str, output: str | None, now: float) -> Entry:
    kept = None if entry.erased else output
    return replace(entry, settled=settled, settled_at=now, settled_by=by, output=kept)


def erased(entry: Entry) -> Entry:
    """What is left of an entry: that it was there, and what became of it, so that nothing happens twice."""
    effect = Effect(entry.effect.entry, arguments="", name="", key="", scope="")
    return replace(entry, effect=effect, output=None, settled_by=None, erased=True)
