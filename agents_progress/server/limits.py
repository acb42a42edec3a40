"""Every cap of the server, with its unit. What lies over a cap is refused with a sentence; no run ends for it."""

from __future__ import annotations

from dataclasses import dataclass, fields

from agents_progress.errors import UsageError


@dataclass(frozen=True, slots=True)
class Limits:
    """What callers may take of one process. Each process counts for itself.

    An owner is that of the :class:`Principal`, or its name where it has none.
    """

    runs_per_owner: int = 20
    """Runs in flight that one owner started here; one more is answered 429."""
    readers_per_owner: int = 50
    """Open feeds of one owner; one more is answered 429."""
    readers: int = 5_000
    """Open feeds of everybody; one more is answered 503."""
    listed: int = 200
    """Runs of one list, at most."""
    body_bytes: int = 1024 * 1024
    """Of one request; more is answered 413 before it was read to its end."""
    body_s: float = 10.0
    """Until a body has arrived, in seconds; a slower one is answered 408."""
    body_depth: int = 32
    """Objects and lists within one another in a body."""
    heartbeat_s: float = 15.0
    """Silence of an open feed after which a comment is sent, in seconds."""
    stall_s: float = 30.0
    """How long a reader may take no byte before its feed is closed, in seconds."""
    again_s: float = 60.0
    """How often an open feed is authorised again, in seconds."""
    answer_s: float = 2.0
    """How long an accepted answer waits to learn the id of the run that goes on, in seconds."""
    retry_after_s: int = 5
    """When somebody who was refused for now may come back, in seconds."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if not getattr(self, field.name) > 0:
                raise UsageError(f"the limit {field.name} is {getattr(self, field.name)!r}; give a number above 0")
