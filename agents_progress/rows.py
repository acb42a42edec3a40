"""What a view shows: messages, activities and interactions, as plain rows that can be stored and restored.

The ``seq`` of each is that of the envelope that began it, from which the order among all of them can be told; 0 where a
snapshot was stored before it was kept.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, Literal, TypeAlias

ToolState: TypeAlias = Literal["requested", "running", "returned", "failed", "rejected", "skipped"]
ActivityKind: TypeAlias = Literal[
    "function", "hosted", "mcp", "agent", "computer", "shell", "patch", "custom", "handoff", "stage"
]

OPEN_STATES: Final[frozenset[str]] = frozenset({"requested", "running"})
JOIN_AT: Final = 512
"""So many deltas become one piece: memory stays near the text's own, and appending stays linear."""


@dataclass(slots=True)
class Message:
    """One text item of one channel. ``missing_start`` says that its first delta was never seen.

    It begins with what is first said of it: one that was complete before that has no ``seq`` yet.
    """

    item_id: str
    channel: str
    seq: int = 0
    pieces: list[str] = field(default_factory=list)
    newest: list[str] = field(default_factory=list)
    deltas: int = 0
    complete: bool = False
    missing_start: bool = False

    def append(self, text: str) -> None:
        """Add one delta."""
        self.newest.append(text)
        self.deltas += 1
        if len(self.newest) == JOIN_AT:
            self.join()

    def join(self) -> None:
        """Make one piece of the newest deltas."""
        self.pieces.append("".join(self.newest))
        self.newest.clear()

    def replace(self, text: str) -> None:
        """Put the authoritative text in the place of the deltas."""
        self.pieces = [text]
        self.newest.clear()

    @property
    def begun(self) -> bool:
        """Whether anything was said of it."""
        return self.seq > 0 or self.deltas > 0 or bool(self.text)

    def begin(self, seq: int) -> None:
        """Something is said of it, perhaps for the first time."""
        if not self.begun:
            self.seq = seq

    @property
    def text(self) -> str:
        """All of the text so far."""
        if self.newest or len(self.pieces) != 1:
            self.replace("".join([*self.pieces, *self.newest]))
        return self.pieces[0]

    def to_dict(self) -> dict[str, Any]:
        """Plain values; the text is one string."""
        return {
            "item_id": self.item_id,
            "channel": self.channel,
            "seq": self.seq,
            "pieces": [self.text],
            "deltas": self.deltas,
            "complete": self.complete,
            "missing_start": self.missing_start,
        }


@dataclass(slots=True)
class Activity:
    """One row of visible work: a tool call, a handoff or a stage.

    ``state`` is a tool state; handoffs and stages are `running` or `returned`. ``note`` is the code or reason of a row
    that did not return. ``current`` and ``total`` are counts the tool reported itself; nothing here is estimated.
    """

    activity_id: str
    kind: ActivityKind
    name: str
    title: str
    state: ToolState = "requested"
    seq: int = 0
    since: str = ""
    note: str | None = None
    summary: str | None = None
    duration_ms: int | None = None
    message: str | None = None
    current: float | None = None
    total: float | None = None
    arguments: str | None = None
    argument_deltas: int = 0
    output: str | None = None
    reused: bool = False

    @property
    def open(self) -> bool:
        """Whether the row is still requested or running."""
        return self.state in OPEN_STATES


@dataclass(slots=True)
class Interaction:
    """A question to a person. ``decision`` is None while it waits.

    ``details`` are exactly what is asked, None where the application discloses none; ``approve_blind`` says that it
    lets people approve even so. ``takes`` and ``options_in`` say what an answer may carry, as in
    :class:`~agents_progress.answers.Asked`. ``edited_from`` is the digest of what was asked before somebody put other
    arguments in its place.
    """

    interaction_id: str
    call_id: str | None
    tool: str
    title: str
    kind: str = "approval"
    seq: int = 0
    digest: str | None = None
    details: str | None = None
    expires_at: str | None = None
    decision: str | None = None
    actor: str | None = None
    approve_blind: bool = False
    takes: dict[str, bool] | None = None
    options_in: str | None = None
    edited_from: str | None = None

    @property
    def edited(self) -> bool:
        """Whether other arguments were approved than those that were asked about."""
        return self.decision is not None and self.edited_from is not None

    @property
    def approvable(self) -> bool:
        """Whether whoever sees this row may approve what it asks. Rejecting is always possible."""
        return self.details is not None or self.approve_blind
