"""What is decided about a run before it starts."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from agents_progress.answers import Edit, restated
from agents_progress.caps import Caps
from agents_progress.claim import Claim, claim
from agents_progress.clock import Clock
from agents_progress.coalesce import Coalesce
from agents_progress.disclosure import Disclosure, Draft, Screen
from agents_progress.events import Envelope
from agents_progress.journal.base import Journal, Origin
from agents_progress.journal.rules import accepted
from agents_progress.messages import Language
from agents_progress.pausing import Pausing
from agents_progress.payloads import Parent
from agents_progress.unicode import name_of
from agents_progress.verify import Verifier

Sink: TypeAlias = Callable[[Envelope], Awaitable[None] | None]


@dataclass(frozen=True, slots=True)
class Plan:
    """Everything about a run that is decided before it starts. Times are in seconds.

    ``given`` says that the application chose the run id, so that the journal may know it already; ``shared`` that it
    named the journal, so that others may ask something of the run. ``pausing`` is how it is left behind when it pauses,
    None when only this process may go on with it.
    """

    run_id: str
    task_id: str
    title: str
    journal: Journal
    origin: Origin
    verify: Verifier | None = None
    verify_timeout: float = 60.0
    disclosure: Disclosure = field(default_factory=Disclosure)
    sinks: Sequence[Sink] = ()
    coalesce: Coalesce | None = field(default_factory=Coalesce)
    caps: Caps = field(default_factory=Caps)
    deadline: float | None = None
    settle: float = 30.0
    patience: float = 60.0
    language: Language = "en"
    clock: Clock = field(default_factory=Clock)
    attempt: int | None = None
    parent: Parent | None = None
    exclusive: str | None = None
    unread: float | None = None
    given: bool = False
    shared: bool = False
    claim: Claim | None = None
    pausing: Pausing | None = None

    async def claimed(self, *, wait: float = 0.0, patience: float = 0.0, anew: bool = False) -> Plan:
        """The same plan with the run in hand, as what the journal knew of it. Arguments and errors as :func:`claim`."""
        taken = await claim(
            self.journal, self.run_id, exclusive=self.exclusive, wait=wait, patience=patience, anew=anew
        )
        plan = replace(self, run_id=taken.run_id, attempt=taken.attempt or self.attempt, claim=taken)
        if (known := taken.known) is None:
            return plan
        whose = known.origin
        origin = replace(self.origin, owner=whose.owner, tenant=whose.tenant, labels=whose.labels)
        return replace(plan, task_id=known.task_id, title=known.title or self.title, origin=origin)

    async def announced(self) -> Plan:
        """The same plan, once every node knows its claimed run as accepted; one that was reserved is known already."""
        taken = self.claim
        if taken is None or taken.said:
            return self
        first = accepted(self.run_id, self.task_id, Screen(self.disclosure).mask(self.title))
        try:
            lease = await taken.tenure.begin()
            await self.journal.append([first], origin=self.origin, claim=True, lease=lease)
        except BaseException:
            taken.tenure.leave()
            raise
        return replace(self, claim=replace(taken, said=(first,)))

    def started(self, agent: str, resumed_from: str | None = None) -> Draft:
        """What a run says first when it really begins."""
        payload: dict[str, Any] = {"agent": agent, "task_id": self.task_id, "parent": self.parent}
        payload |= {"resumed_from": resumed_from, "title": self.title}
        if self.attempt is not None:
            payload["attempt"] = self.attempt
        return "run.started", payload

    def continued(self, run_id: str) -> Plan:
        """The plan of the run that continues this one after a pause. A person's time to think is not the run's."""
        return replace(self, run_id=run_id, deadline=None, given=False, claim=None)


@dataclass(frozen=True, slots=True)
class Beginning:
    """What a continuing run says first: whom it continues, what was pending there, and what was decided.

    ``actor`` is who decided, or who decided each; ``edits`` are the arguments that somebody approved instead of those
    of the call, by the question about it. ``underway`` says that the SDK's run was started already, by the
    application's own code.
    """

    resumed_from: str
    agent: str
    drafts: Sequence[Draft]
    decisions: Mapping[str, str]
    actor: str | Mapping[str, str] | None = None
    underway: bool = False
    edits: Mapping[str, Edit] = field(default_factory=dict)

    def said_first(self, plan: Plan) -> Iterator[Draft]:
        """The beginning of the log."""
        yield plan.started(self.agent, self.resumed_from)
        yield from restated(self.drafts, self.edits)
        actors = self.actor if isinstance(self.actor, Mapping) else dict.fromkeys(self.decisions, self.actor)
        for interaction_id, decision in self.decisions.items():
            by = {} if (actor := actors.get(interaction_id)) is None else {"actor": name_of(actor)}
            edit = self.edits.get(interaction_id)
            edited = {} if edit is None else {"x": {"edited_from": edit.before}}
            yield "approval.resolved", {"interaction_id": interaction_id, "decision": decision, **by, **edited}
