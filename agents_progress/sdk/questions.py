"""What a paused run waits for: the SDK's interruptions as questions with ids of ours."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from agents_progress.answers import Kind, action_digest
from agents_progress.disclosure import Draft
from agents_progress.unicode import name_of, valid

Taken: TypeAlias = Mapping[str, bool] | None
"""The arguments that a tool has, and whether it needs each; None for a call that cannot be edited."""


@dataclass(frozen=True, slots=True)
class Question:
    """One pending approval. ``blind``: it may be approved unseen. ``takes`` and ``options_in`` as in
    :class:`~agents_progress.answers.Asked`. ``item`` is the SDK's own, and never leaves the process.
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
    takes: Taken = None
    options_in: str | None = None

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
        more: dict[str, Any] = {"approve_blind": True} if self.blind else {}
        if self.takes is not None:
            more["takes"] = dict(self.takes)
        if self.options_in is not None:
            more["options_in"] = self.options_in
        return "approval.wait", {**payload, "x": more} if more else payload


@dataclass(slots=True)
class Questions:
    """The questions of a task in order of asking; a question that is still open keeps its id in the continuing run."""

    title_of: Callable[[str], str]
    approve_blind: Collection[str] = ()
    expires_at: Callable[[], str | None] = lambda: None
    kinds: Mapping[str, Kind] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    open: list[Question] = field(default_factory=list)
    asked: int = 0

    def ask(
        self,
        items: Iterable[Any],
        call_of: Callable[[str | None, str], str | None],
        taken_by: Callable[[Any, str | None], Taken],
    ) -> Iterator[Draft]:
        """Take in the interruptions of a drained run; yields those that were not asked in this log before.

        ``call_of`` gives the call id, as events name it, of a model-made id and its tool; ``taken_by`` the arguments
        with which an interruption about such a call may be approved.
        """
        before, self.open = self.open, []
        for item in items:
            raw_id, tool, digest = asked_by(item)
            known = next((q for q in before if q.raw_id == raw_id and q.digest == digest), None)
            if known is not None:
                self.open.append(known)
                continue
            self.asked += 1
            call_id = call_of(raw_id, tool)
            question = Question(
                interaction_id=f"ask-{self.asked}",
                call_id=call_id,
                raw_id=raw_id,
                tool=tool,
                title=self.title_of(tool),
                digest=digest,
                details=valid(str(item.arguments or "")),
                blind=tool in self.approve_blind,
                item=item,
                expires_at=self.expires_at(),
                kind=self.kinds.get(tool, "approval"),
                takes=taken_by(item, call_id),
                options_in=self.choices.get(tool),
            )
            self.open.append(question)
            yield question.wait()


def asked_by(item: Any) -> tuple[str | None, str, str]:
    """What an interruption is about: the model's id of the call, the tool, and the digest of what is to be done."""
    tool = name_of(item.name or "tool")
    return _raw_id(item), tool, action_digest(tool, valid(str(item.arguments or "")))


def _raw_id(item: Any) -> str | None:
    raw = item.raw_item
    for name in ("call_id", "id"):
        found = raw.get(name) if isinstance(raw, dict) else getattr(raw, name, None)
        if found:
            return str(found)
    return None
