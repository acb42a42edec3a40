"""What a paused run waits for: the SDK's interruptions as questions with ids of ours."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from agents_progress.disclosure import Draft
from agents_progress.unicode import name_of, valid

Kind: TypeAlias = Literal["approval", "clarification", "choice", "recovery", "handoff"]
"""What a question to a person is for. However it is called, it is approved or rejected."""


@dataclass(frozen=True, slots=True)
class Question:
    """One pending approval. ``blind``: it may be approved unseen. ``item`` is the SDK's own, and never leaves the
    process.
    """

    interaction_id: str
    call_id: str | None
    raw_id: str | None
    tool: str
    title: str
    digest: str
    details: str
    blind: bool
    item: Any = field(repr=False)
    expires_at: str | None = None
    kind: Kind = "approval"

    def wait(self) -> Draft:
        """The question as an event."""
        payload = {
            "interaction_id": self.interaction_id,
            "call_id": self.call_id,
            "tool": self.tool,
            "title": self.title,
            "digest": self.digest,
            "details": self.details,
            "kind": self.kind,
        }
        if self.expires_at is not None:
            payload["expires_at"] = self.expires_at
        return "approval.wait", {**payload, "x": {"approve_blind": True}} if self.blind else payload


@dataclass(slots=True)
class Questions:
    """The questions of a task in order of asking; a question that is still open keeps its id in the continuing run."""

    title_of: Callable[[str], str]
    approve_blind: Collection[str] = ()
    expires_at: Callable[[], str | None] = lambda: None
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    open: list[Question] = field(default_factory=list)
    asked: int = 0

    def ask(self, items: Iterable[Any], call_of: Callable[[str | None, str], str | None]) -> Iterator[Draft]:
        """Take in the interruptions of a drained run; yields those that were not asked in this log before.

        ``call_of`` gives the call id, as events name it, of a model-made id and its tool.
        """
        before, self.open = self.open, []
        for item in items:
            raw_id, tool, digest = asked_by(item)
            known = next((q for q in before if q.raw_id == raw_id and q.digest == digest), None)
            if known is not None:
                self.open.append(known)
                continue
            self.asked += 1
            question = Question(
                interaction_id=f"ask-{self.asked}",
                call_id=call_of(raw_id, tool),
                raw_id=raw_id,
                tool=tool,
                title=self.title_of(tool),
                digest=digest,
                details=valid(str(item.arguments or "")),
                blind=tool in self.approve_blind,
                item=item,
                expires_at=self.expires_at(),
                kind=self.kinds.get(tool, "approval"),
            )
            self.open.append(question)
            yield question.wait()


def asked_by(item: Any) -> tuple[str | None, str, str]:
    """What an interruption is about: the model's id of the call, the tool, and the digest of what is to be done."""
    tool = name_of(item.name or "tool")
    return _raw_id(item), tool, action_digest(tool, valid(str(item.arguments or "")))


def action_digest(tool: str, arguments: str) -> str:
    """SHA-256 of exactly what is approved: the tool and its arguments, however the JSON was spaced."""
    with suppress(ValueError):  # a free text, or broken JSON, is digested as it stands
        arguments = json.dumps(json.loads(arguments), sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(json.dumps([tool, arguments], ensure_ascii=False).encode()).hexdigest()


def _raw_id(item: Any) -> str | None:
    raw = item.raw_item
    for name in ("call_id", "id"):
        found = raw.get(name) if isinstance(raw, dict) else getattr(raw, name, None)
        if found:
            return str(found)
    return None
