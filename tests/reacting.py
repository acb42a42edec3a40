"""A small world for reactions: a source, a target and a clock that tests may turn."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from typing import Any

from agents_progress.effects.reactions import Accepted, Entry, Grant, Reaction, Reactions, Receipt, Record
from agents_progress.effects.reactions.memory import MemoryReactionStore
from agents_progress.effects.reactions.store import ReactionStore
from agents_progress.journal import Journal, MemoryJournal


@dataclass
class Comments:
    """The authority of comments. ``fails`` counts the reads that will raise."""

    version: str = "v1"
    closed: bool = False
    fails: int = 0
    reads: int = 0

    async def read(self, resource: str) -> Record | None:
        self.reads += 1
        if self.fails:
            self.fails -= 1
            raise ConnectionError("the source is away")
        return None if self.closed else Record(self.version, {"comment": "please rename it"})


@dataclass
class Changes:
    """Where changes go. It forbids no second one, so that every double shows. ``loses`` and ``denies`` say that an
    acknowledgement gets lost and that no receipt is given; ``holds`` stands for what it took.
    """

    taken: list[tuple[str, Any]] = field(default_factory=list)
    loses: bool = False
    drops: bool = False
    denies: bool = False
    holds: Any = None

    async def submit(self, key: str, result: Any) -> None:
        if not self.drops:
            self.taken.append((key, result))
        if self.loses or self.drops:
            raise ConnectionError("no answer came")

    async def receipt(self, key: str) -> Receipt | None:
        if self.denies:
            raise ConnectionError("the target is away")
        found = [result for taken, result in self.taken if taken == key]
        return Receipt(key, self.holds or found[0], "change 1") if found else None


class Turned:
    """A clock."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


class World:
    """One engine over a source and a target, and what tests ask of it."""

    def __init__(self, journal: Journal | None = None, store: ReactionStore | None = None, **options: Any) -> None:
        self.clock = Turned()
        self.source, self.target = Comments(), Changes()
        self.result: Any = {"rename": "b"}
        now = time.time()
        self.grant = Grant("g", "ada", {"doc/*"}, {"rename"}, now + 1000, owner="ada", tenant="shop")
        self.options = {"patience_s": 5.0, "prepare": lambda case: self.result, **options}
        self.journal = journal or MemoryJournal()
        self.store = store or MemoryReactionStore(self.clock)
        self.engine = self.begun()

    def begun(self) -> Reactions:
        """A new engine on the same store, as another process has it."""
        reaction = Reaction("review", self.grant, self.source, self.target, **self.options)
        return Reactions(self.journal, [reaction], store=self.store)

    def event(self, **fields: Any) -> dict[str, Any]:
        said = {"event_id": "e1", "reaction": "review", "who": "ada", "resource": "doc/1", "version": "v1"}
        return {**said, "action": "rename", "occurred_at": self.clock(), **fields}

    async def received(self, **fields: Any) -> str:
        answer = await self.engine.receive(self.event(**fields))
        assert isinstance(answer, Accepted), answer
        return answer.task_id

    async def ready(self, **fields: Any) -> Entry:
        """A reaction that asks for approval."""
        task_id = await self.received(**fields)
        entry = await self.moved(task_id)
        assert entry.state == "ready", entry
        return entry

    async def approved(self, **fields: Any) -> str:
        entry = await self.ready(**fields)
        assert entry.asked is not None
        await self.engine.approve(entry.task_id, entry.asked, "ann")
        return entry.task_id

    async def moved(self, task_id: str) -> Entry:
        """A reaction after everything that is due was done."""
        await self.engine.settle()
        return await self.engine.look(task_id)

    async def statuses(self, task_id: str) -> list[str]:
        """The status of each run of a task, from the first."""
        return [row.status for row in reversed(await self.journal.runs(task_id=task_id))]

    async def narrowed(self, **changes: Any) -> None:
        """Another revision of the grant."""
        self.grant = replace(self.grant, revision=self.grant.revision + 1, **changes)
        await self.engine.permit(self.grant)
