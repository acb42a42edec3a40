"""Reactions that end with their process: for tests."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from threading import RLock

from agents_progress.effects.entry import Hold
from agents_progress.effects.reactions.store import Document, Line, ReactionStore, Rule, T
from agents_progress.errors import JournalClosed
from agents_progress.journal.base import EVERYTHING, Scope


class MemoryReactionStore(ReactionStore):
    """Documents in a dictionary. ``now`` gives the time in seconds; tests may turn it."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        super().__init__()
        self._now = now
        self._documents: dict[str, Document] = {}
        self._lines: list[Line] = []
        self._lock = RLock()
        self._closed = False

    def change(self, names: Sequence[str], rule: Rule[T], beside: Sequence[str] = ()) -> T:
        with self._opened():
            answer, writing = rule([self._documents.get(name) for name in (*names, *beside)], self._now())
            for document in writing.documents:
                self._documents[document.name] = replace(document, body=json.loads(json.dumps(document.body)))
            self._lines = [
                replace(line, actor=None, owner=None, tenant=None)
                if line.task_id in writing.forget or line.owner in writing.forget_owners
                else line
                for line in self._lines
            ]
            self._lines.extend(writing.lines)
            return answer

    def look(self, name: str) -> tuple[Document | None, float]:
        with self._opened():
            return self._documents.get(name), self._now()

    def due(self, reactions: Collection[str], limit: int) -> list[str]:
        with self._opened():
            now = self._now()
            found = [
                (document.due_at, name)
                for name, document in self._documents.items()
                if document.due_at is not None and document.due_at <= now and document.reaction in reactions
            ]
        return [name for _, name in sorted(found)[:limit]]

    def renew(self, holds: Sequence[Hold], ttl: float) -> list[Hold]:
        gone: list[Hold] = []
        with self._opened():
            now = self._now()
            for hold in holds:
                found = self._documents.get(hold.entry)
                if found is None or found.generation != hold.generation or not found.due_at or found.due_at <= now:
                    gone.append(hold)
                else:
                    self._documents[hold.entry] = replace(found, due_at=now + ttl)
        return gone

    def documents(
        self,
        *,
        state: str | None = None,
        reaction: str | None = None,
        limit: int = 100,
        scope: Scope = EVERYTHING,
    ) -> list[Document]:
        with self._opened():
            found = [
                document
                for document in self._documents.values()
                if document.kind == "reaction"
                and state in (None, document.state)
                and reaction in (None, document.reaction)
                and _within(document, scope)
            ]
        found.sort(key=lambda document: (document.at, document.name), reverse=True)
        return found[: max(limit, 0)]

    def names(self, states: Collection[str], reactions: Collection[str] | None = None) -> list[str]:
        with self._opened():
            return [
                document.name
                for document in self._documents.values()
                if document.kind == "reaction"
                and document.state in states
                and (reactions is None or document.reaction in reactions)
            ]

    def audit(
        self, *, task_id: str | None = None, what: str | None = None, limit: int = 1000, scope: Scope = EVERYTHING
    ) -> list[Line]:
        with self._opened():
            found = [
                line
                for line in self._lines
                if task_id in (None, line.task_id) and what in (None, line.what) and _within(line, scope)
            ]
        return found[-limit:] if limit > 0 else []

    def exists(self) -> bool:
        with self._opened():
            return bool(self._documents)

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        self.end_thread()
        self._closed = True

    def wipe(self) -> None:
        """There are no files."""

    def _opened(self) -> RLock:
        if self._closed:
            raise JournalClosed("the reactions were closed; open them again")
        return self._lock


def _within(it: Document | Line, scope: Scope) -> bool:
    return scope.owner in (None, it.owner) and scope.tenant in (None, it.tenant)
