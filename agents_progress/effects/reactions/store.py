"""Where reactions are kept: the contract of their store. It knows documents, and nothing of what they mean.

A backend gives eight things: to change some documents in one durable transaction (:meth:`ReactionStore.change`), to
look at one, to name those that are due and those in some states, to prolong what is held, to list documents and lines
of the audit log, and to say whether there is anything. Nothing else can differ between backends; all rules are pure
functions over documents.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, TypeVar

from agents_progress.effects.entry import Hold
from agents_progress.effects.tables import OwnThread
from agents_progress.journal.base import EVERYTHING, Scope

T = TypeVar("T")
Kind: TypeAlias = Literal["mark", "grant", "reaction"]


@dataclass(frozen=True, slots=True)
class Document:
    """What is stored under one name: a grant, a reaction, or the mark of a notification that was received.

    ``due_at`` is from when somebody may take it, in seconds since 1970 by the store's clock; None is never. It is the
    end of a lease as well. A higher ``generation`` ends what was held under a lower one. ``body`` is plain JSON.
    """

    name: str
    kind: Kind
    body: Mapping[str, Any] = field(repr=False)
    reaction: str = ""
    state: str = ""
    due_at: float | None = None
    generation: int = 0
    owner: str | None = None
    tenant: str | None = None
    task_id: str | None = None
    at: float = 0.0


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the audit log: when, what and why, of which task, and who. There are no bodies in it."""

    at: float
    what: str
    reaction: str = ""
    task_id: str | None = None
    reason: str | None = None
    actor: str | None = None
    owner: str | None = None
    tenant: str | None = None


@dataclass(frozen=True, slots=True)
class Writing:
    """What a rule wants stored, all of it or nothing. ``forget`` are tasks whose lines in the audit log lose their
    names, as do all those of ``forget_owners``.
    """

    documents: Sequence[Document] = ()
    lines: Sequence[Line] = ()
    forget: Sequence[str] = ()
    forget_owners: Sequence[str] = ()


Rule: TypeAlias = Callable[[Sequence["Document | None"], float], tuple[T, Writing]]


class ReactionStore(OwnThread, ABC):
    """Documents and an audit log. Safe to share between threads of one process; opens nothing before its first use.

    Methods are synchronous, and raise :exc:`JournalUnavailable`, :exc:`JournalUnreadable` and :exc:`JournalClosed` as a
    journal's do.
    """

    lease_s: float = 15.0
    """How long a worker may be silent before another one takes its reaction, in seconds."""

    @abstractmethod
    def change(self, names: Sequence[str], rule: Rule[T], beside: Sequence[str] = ()) -> T:
        """Give a rule the documents of these names (None for an unknown one) and the store's time, and store what it
        wants. Nobody else changes them meanwhile, and what was stored is durable when this returns.

        Those ``beside`` it, which come after the others, a rule only looks at: nobody changes them meanwhile either,
        and others may look at them too.
        """

    @abstractmethod
    def look(self, name: str) -> tuple[Document | None, float]:
        """A document as it is now, and the store's time."""

    @abstractmethod
    def due(self, reactions: Collection[str], limit: int) -> list[str]:
        """Names of documents of these reactions that are due, those that have been so for longest first."""

    @abstractmethod
    def renew(self, holds: Sequence[Hold], ttl: float) -> Sequence[Hold]:
        """Prolong what is held (``entry`` is a document's name), and give back what is not any more. Over a connection
        of its own.
        """

    @abstractmethod
    def documents(
        self,
        *,
        state: str | None = None,
        reaction: str | None = None,
        limit: int = 100,
        scope: Scope = EVERYTHING,
    ) -> list[Document]:
        """Reactions, the newest first, at most ``limit`` of those that match."""

    @abstractmethod
    def names(self, states: Collection[str], reactions: Collection[str] | None = None) -> list[str]:
        """Names of all reactions in these states, of the ``reactions`` of these names if they are given."""

    @abstractmethod
    def audit(
        self, *, task_id: str | None = None, what: str | None = None, limit: int = 1000, scope: Scope = EVERYTHING
    ) -> list[Line]:
        """Lines of the audit log in their order, the newest ``limit`` of those that match."""

    @abstractmethod
    def exists(self) -> bool:
        """Whether anything was ever stored here. The one question that makes nothing, neither a file nor a table."""

    @property
    @abstractmethod
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the store and the thread. Further calls raise :exc:`JournalClosed`."""

    @abstractmethod
    def wipe(self) -> None:
        """Have nothing of what was overwritten left in files."""
