"""Reactions: an outside change leads to an effect, once, approved and confirmed.

```python
review = Reaction("review", grant, source=Comments(), target=Changes(), prepare=write_change)
reactions = Reactions("sqlite:///runs.db", [review])
await reactions.receive(notification)      # from a webhook; material, never permission
await reactions.work()                     # in any number of workers
await reactions.approve(task_id, digest, actor="ann")
```

What is done, and when: the notification is validated and deduplicated (:mod:`.inbox`), the record read back
from its source, the grant checked, a result prepared and held (:mod:`.worker`). A person approves exactly
that result. Then everything is checked again, the submission is written down before it is made, and only the receipt,
read back and compared, makes it done. The rules stand in :mod:`.entry`.

**At most once.** The same key goes with every submission of a reaction. A worker that dies leaves `uncertain`, and what
happened then is read from the receipt. Nothing is submitted again while a receipt may still come
(``Reaction.resubmit_after``). A worker that was frozen for longer than its lease and goes on is the one case that only
the target can see: for it the same key must be the same effect.

Every reaction is a task in the journal: its runs show each step, with an ending that says what is known.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeVar, get_args

from agents_progress.clock import Clock
from agents_progress.effects.places import reactions_beside
from agents_progress.effects.reactions import entry as rules
from agents_progress.effects.reactions.entry import Entry, Finding, entry_of
from agents_progress.effects.reactions.erasing import erase_task
from agents_progress.effects.reactions.grant import Grant, permitted, revoked
from agents_progress.effects.reactions.heard import Heard, heard
from agents_progress.effects.reactions.inbox import Ignored, Quarantined, Receipted, names, received
from agents_progress.effects.reactions.notice import Notification, checked
from agents_progress.effects.reactions.reading import objection, read
from agents_progress.effects.reactions.store import Line, ReactionStore
from agents_progress.effects.reactions.terms import Reaction
from agents_progress.effects.reactions.worker import Worker
from agents_progress.errors import (
    GrantConflict,
    JournalError,
    JournalUnavailable,
    ReactionError,
    ReactionNotFound,
    ReactionRefused,
    UsageError,
)
from agents_progress.journal import Journal, open_journal
from agents_progress.journal.base import EVERYTHING, Scope
from agents_progress.journal.threads import outcome_of

logger = logging.getLogger("agents_progress")

T = TypeVar("T")

IDLE_S: Final = 0.5
"""How long a worker that found nothing due waits, in seconds."""


class Reactions:
    """Some reactions over one store and one journal. Any number of processes may have the same.

    ``journal`` is a URL or a journal; ``store`` is one of reactions, by default the one beside the journal. Methods
    raise :exc:`JournalUnavailable` and its kin as the journal does. ``scope`` limits what a caller sees and may touch;
    what lies outside is not found.
    """

    def __init__(
        self, journal: Journal | str, reactions: Sequence[Reaction], *, store: ReactionStore | None = None
    ) -> None:
        self.journal = open_journal(journal) if isinstance(journal, str) else journal
        self.store = store or reactions_beside(self.journal)
        self._reactions: Mapping[str, Reaction] = {reaction.name: reaction for reaction in reactions}
        if len(self._reactions) != len(reactions):
            raise UsageError("two reactions have the same name; name each one")
        self._worker = Worker(self.store, self.journal, self._reactions)
        self._new_id = Clock().new_id
        self._ready = False
        self._refused: set[str] = set()

    # What comes in.

    async def receive(self, notification: Notification | Mapping[str, Any], *, scope: Scope = EVERYTHING) -> Receipted:
        """Take in a notification: a new task, a known one, nothing, or quarantine.

        Raises :exc:`BadNotification` before anything is stored or compared. Whether its sender is who it says has to be
        established before (a signature, for example): nothing in it proves that.
        """
        notice = checked(notification)
        await self._permit()
        reaction = self._reactions.get(notice.reaction)
        if reaction is None or not _within(reaction.grant, scope):
            return Ignored("reaction_unknown")
        task_id = self._new_id()
        named = names(notice, reaction.grant, task_id)
        answer = await self._asked(
            lambda: self.store.change(
                named,
                lambda found, now: received(found, named, notice, task_id, reaction.fresh_s, now),
                beside=[reaction.grant.name],
            )
        )
        if isinstance(answer, Quarantined):
            logger.warning("a notification was quarantined: its event is known with other content")
        return answer

    # Workers.

    async def step(self) -> bool:
        """Move one reaction on, if one is due; whether there was one."""
        await self._permit()
        return await self._worker.step()

    async def settle(self) -> None:
        """Move reactions on until none is due now and nothing more was answered."""
        while await self.step() or await self.hear():
            pass

    async def hear(self) -> bool:
        """Use what people answered on a page, at a prompt or through another node; whether something was used.

        What the server's ``authorize`` let pass is the word of its principal here, with the digest that was shown.
        """
        still_open = await self._asked(lambda: self.store.names(rules.OPEN, self._reactions))
        waiting = await self._asked(lambda: self.store.names(["ready"], self._reactions))
        said = await heard(self.journal, waiting, still_open)
        new = [one for one in said if one.request_id not in self._refused]
        self._refused &= {one.request_id for one in said}
        # An approval reads a source, which may take long: the others come first.
        used = [await self._used(one) for one in sorted(new, key=lambda one: one.decision == "approved")]
        return any(used)

    async def _used(self, said: Heard) -> bool:
        """Use an answer; False when it has to be heard again. One that waits for its source keeps none from others."""
        try:
            await self._use(said)
        except ReactionError as error:
            self._refused.add(said.request_id)
            logger.warning("reaction %s: an answer was not used: %s", said.task_id, error)
        except JournalError:
            raise
        except Exception as error:  # noqa: BLE001 - the application's own
            logger.warning("reaction %s: an answer waits: %s", said.task_id, type(error).__name__)
            return False
        return True

    async def _use(self, said: Heard) -> None:
        match said.decision:
            case "approved":
                await self.approve(said.task_id, said.digest, said.actor)
            case "rejected":
                await self.reject(said.task_id, said.actor)
            case "cancelled":
                await self.cancel(said.task_id, said.actor)

    async def work(self, at_once: int = 4) -> None:
        """Move reactions on, ``at_once`` of them, until cancelled. A store or a journal that is away is waited for;
        what fails is tried again when its lease has run out.
        """
        await self._permit()
        async with asyncio.TaskGroup() as workers:
            for _ in range(at_once):
                workers.create_task(self._again(self.step))
            workers.create_task(self._again(self.hear))

    async def _again(self, work: Callable[[], Awaitable[bool]]) -> None:
        while True:
            try:
                busy = await work()
            except JournalUnavailable as error:
                logger.warning("reactions wait: %s", type(error).__name__)
                busy = False
            except Exception as error:  # noqa: BLE001 - a fault in one must not keep the others waiting
                logger.error("a reaction was left for later: %s", type(error).__name__)
                busy = False
            if not busy:
                await asyncio.sleep(IDLE_S)

    # People.

    async def approve(self, task_id: str, digest: str, actor: str, *, scope: Scope = EVERYTHING) -> None:
        """Approve exactly what ``digest`` stands for (:attr:`Entry.asked`), once its source was read again.

        ``actor`` is whom trusted code knows to be answering. Raises :exc:`ReactionRefused`, after which nothing was
        approved: with `source_closed`, `source_changed`, `result_differs` or what the grant objects it was stopped
        instead.
        """
        entry = await self.look(task_id, scope=scope)
        reaction = self._reactions.get(entry.reaction)
        if reaction is None:
            raise UsageError(f"there is no reaction {entry.reaction!r:.80} here; answer where it is")
        if entry.state == "ready" and entry.asked == digest:
            reason = objection(await read(reaction.source, entry.resource, reaction.patience_s), entry)
            if reason is not None:
                await self._asked(
                    lambda: self.store.change([task_id], lambda found, now: (None, rules.withdrawn(found, reason, now)))
                )
                raise ReactionRefused(reason)
        await self._said(entry, lambda found, now: rules.approved(found, digest, _name(actor), now))

    async def reject(self, task_id: str, actor: str, *, scope: Scope = EVERYTHING) -> None:
        """Reject what is asked. Raises :exc:`ReactionRefused` when nothing is."""
        entry = await self.look(task_id, scope=scope)
        await self._said(entry, lambda found, now: rules.rejected(found, _name(actor), now))

    async def cancel(self, task_id: str, actor: str, *, scope: Scope = EVERYTHING) -> None:
        """Stop what was not submitted. Raises :exc:`ReactionRefused`: `may_have_happened` when it was, and then it is
        not submitted again; `already_ended`.
        """
        entry = await self.look(task_id, scope=scope)
        await self._said(entry, lambda found, now: rules.cancelled(found, _name(actor), now))

    async def resolve(self, task_id: str, finding: Finding, actor: str, *, scope: Scope = EVERYTHING) -> None:
        """Say more about an uncertain reaction: `look` at the receipt now, `not_submitted` (it certainly did not arrive
        and is submitted again, unless it was cancelled), or `give_up`. Only a receipt makes it done.
        """
        if finding not in get_args(Finding):
            raise UsageError(f"a finding is one of {', '.join(get_args(Finding))}")
        entry = await self.look(task_id, scope=scope)
        await self._said(entry, lambda found, now: rules.resolved(found, finding, _name(actor), now))

    # Grants.

    async def permit(self, grant: Grant) -> None:
        """Give a grant, or a changed one under a higher revision; what was begun under another one stops.

        The grants of the reactions are given by themselves. Raises :exc:`GrantConflict` for a grant that was cancelled
        and for other content under a revision that is known.
        """
        await self._given(grant, "conflict", "cancelled")

    async def revoke(self, grant: Grant, actor: str) -> bool:
        """Cancel a grant for good: nothing that was not submitted is. False when it was cancelled before."""
        return await self._asked(
            lambda: self.store.change([grant.name], lambda found, now: revoked(found[0], _name(actor), now))
        )

    # What is known.

    async def look(self, task_id: str, *, scope: Scope = EVERYTHING) -> Entry:
        """A reaction as it is. Raises :exc:`ReactionNotFound`."""
        document, _ = await self._asked(lambda: self.store.look(task_id))
        entry = entry_of(document)
        if entry is None or not _within(entry, scope):
            raise ReactionNotFound(f"there is no reaction {task_id!r:.80}; check the task id")
        return entry

    async def list(
        self, *, state: rules.State | None = None, limit: int = 100, scope: Scope = EVERYTHING
    ) -> list[Entry]:
        """Reactions, the newest first."""
        found = await self._asked(lambda: self.store.documents(state=state, limit=limit, scope=scope))
        return [entry for entry in map(entry_of, found) if entry is not None]

    async def audit(
        self, *, task_id: str | None = None, what: str | None = None, limit: int = 1000, scope: Scope = EVERYTHING
    ) -> Sequence[Line]:
        """Lines of the audit log: moves, repeats, what was ignored or quarantined, grants; never a body."""
        return await self._asked(lambda: self.store.audit(task_id=task_id, what=what, limit=limit, scope=scope))

    async def erase(self, task_id: str) -> bool:
        """Remove what is stored of a reaction, and stop it. That there was one stays, so that its notification does not
        begin it again. :func:`agents_progress.retention.erase` erases its runs with it.
        """
        return bool(await self._asked(lambda: erase_task(self.store, task_id)))

    # How.

    async def _said(self, entry: Entry, rule: Callable[[rules.Found, float], Any]) -> None:
        code = await self._asked(lambda: self.store.change([entry.task_id], rule, beside=[entry.grant]))
        if code is not None:
            raise ReactionRefused(code)

    async def _permit(self) -> None:
        """Give the grants that stand in the code. One that was cancelled stays so."""
        if not self._ready:
            for reaction in self._reactions.values():
                await self._given(reaction.grant, "conflict")
            self._ready = True

    async def _given(self, grant: Grant, *refused: str) -> None:
        answer = await self._asked(
            lambda: self.store.change([grant.name], lambda found, now: permitted(found[0], grant, now))
        )
        if answer in refused:
            raise GrantConflict(f"grant {grant.id!r:.80} ({answer}); give it a new id, or a higher revision")

    async def _asked(self, work: Callable[[], T]) -> T:
        return await outcome_of(self.store.submit(work))


def _within(it: Grant | Entry, scope: Scope) -> bool:
    return scope.owner in (None, it.owner) and scope.tenant in (None, it.tenant)


def _name(actor: object) -> str:
    if not isinstance(actor, str) or not actor.strip():
        raise UsageError("an actor is a name that trusted code knows")
    return actor
