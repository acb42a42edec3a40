"""What erasing takes of reactions. That there was one stays, so that its notification does not begin it again."""

from __future__ import annotations

from typing import Final

from agents_progress.effects.reactions import entry as rules
from agents_progress.effects.reactions.entry import OPEN
from agents_progress.effects.reactions.store import ReactionStore, Writing
from agents_progress.journal.base import Scope

PAGE: Final = 500


def erase_task(store: ReactionStore, task_id: str) -> int:
    """Remove what is stored of the reaction of a task, and stop it; how many there were."""
    return _wiped(store, int(_erased(store, task_id)) if store.exists() else 0)


def erase_owner(store: ReactionStore, owner: str) -> int:
    """The same for all reactions of an owner, whose name leaves the audit log too. Grants stay: they are no content,
    and whatever was begun under a cancelled one must not go on.
    """
    if not store.exists():
        return 0
    count = 0
    while found := store.documents(limit=PAGE, scope=Scope(owner=owner)):
        count += sum(_erased(store, document.name) for document in found)
    store.change([], lambda found, now: (None, Writing(forget_owners=[owner])))
    return _wiped(store, count)


def open_tasks(store: ReactionStore) -> set[str]:
    """The tasks of reactions that are not over."""
    if not store.exists():
        return set()
    return set(store.names(OPEN))


def _erased(store: ReactionStore, task_id: str) -> bool:
    return store.change([task_id], rules.erased)


def _wiped(store: ReactionStore, count: int) -> int:
    if count:
        store.wipe()
    return count
