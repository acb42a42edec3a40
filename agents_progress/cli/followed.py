"""Where a followed run lives, a journal or a server: its views, the run that goes on from it, and answers to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Protocol, Self

from agents_progress import asking
from agents_progress.cli.stored import continuation, stored_view
from agents_progress.errors import AnswerNotUsed, CursorExpired, JournalUnavailable, Unreachable
from agents_progress.journal import Journal
from agents_progress.messages import Language
from agents_progress.rows import Interaction
from agents_progress.terminal.prompt import Decided
from agents_progress.view import RunView

if TYPE_CHECKING:
    from agents_progress.client import Client

LOOK_S: Final = 1.0
"""How often what tells nobody is looked for: a lost owner, the run that continues, a journal that is back."""
PATIENCE_S: Final = 300.0
"""How long a journal or a server may be away."""
ACTOR: Final = "terminal"
_WITHIN_S: Final = 5.0
"""How long to wait for the run that goes on with an answer, before it is said that it did not yet."""


class Followed(Protocol):
    """Runs that can be followed."""

    def views(self, run_id: str) -> AsyncGenerator[RunView, None]:
        """The view of a run as it is, and again whenever something happened, until its log is closed."""

    async def continuation(self, view: RunView) -> str:
        """The run that goes on from a paused one, as soon as there is one."""

    async def answer(self, view: RunView, question: Interaction, decided: Decided) -> bool:
        """Answer a question; whether a run went on with it at once. Raises what says that the answer was not used."""


class ServerRuns:
    """The runs of a server."""

    def __init__(self, client: Client, language: Language) -> None:
        self._client = client
        self._language: Language = language

    def views(self, run_id: str) -> AsyncGenerator[RunView, None]:
        return self._client.follow(run_id, language=self._language)

    async def continuation(self, view: RunView) -> str:
        patience = _Patience()
        while True:
            try:
                later = (await self._client.run(view.run_id))["continued_as"]
            except Unreachable as error:
                patience.tried(error)
            else:
                patience = _Patience()
                if later is not None:
                    return later
            await asyncio.sleep(LOOK_S)

    async def answer(self, view: RunView, question: Interaction, decided: Decided) -> bool:
        later = await self._client.answer(
            view.run_id,
            question.interaction_id,
            "approve" if decided.decision == "approved" else "reject",
            reason=decided.reason,
            digest=question.digest,
            arguments=decided.arguments,
            text=decided.text,
        )
        return later is not None


class JournalRuns:
    """The runs of a journal. Used in ``async with``, so that their owners know that somebody reads them."""

    def __init__(self, journal: Journal, language: Language) -> None:
        self._journal = journal
        self._language: Language = language
        self._reading: list[str] = []

    async def __aenter__(self) -> Self:
        self._attending = asyncio.create_task(self._attend())
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._attending.cancel()
        await asyncio.gather(self._attending, return_exceptions=True)

    async def _attend(self) -> None:
        """Say that somebody reads these runs, and notice when an owner is gone."""
        while True:
            with suppress(JournalUnavailable):  # it may be away, or readable only
                await self._journal.expire()
                await self._journal.touch(self._reading)
            await asyncio.sleep(LOOK_S)

    async def views(self, run_id: str) -> AsyncGenerator[RunView, None]:
        """What is stored, then what comes, over outages of the journal."""
        self._reading.append(run_id)
        view = await stored_view(self._journal, run_id, self._language)
        patience = _Patience()
        yield view
        while True:
            try:
                async for envelope in self._journal.tail(run_id, view.seq):
                    patience = _Patience()
                    view.feed(envelope.to_dict())
                    yield view
                return
            except CursorExpired as pruned:
                view = RunView.from_snapshot(pruned.snapshot, view.language)
                yield view
            except JournalUnavailable as error:
                try:
                    patience.tried(error)
                except JournalUnavailable:
                    view.close_transport()
                    raise
                await asyncio.sleep(LOOK_S)

    async def continuation(self, view: RunView) -> str:
        while True:
            with suppress(JournalUnavailable):
                later = await continuation(self._journal, view)
                if later is not None:
                    return later.run_id
            await asyncio.sleep(LOOK_S)

    async def answer(self, view: RunView, question: Interaction, decided: Decided) -> bool:
        row = await self._journal.run(view.run_id)
        if row is None:
            raise AnswerNotUsed("not_waiting")
        given = asking.Answer(
            question.interaction_id,
            decided.decision,
            ACTOR,
            decided.reason,
            question.digest,
            decided.arguments,
            decided.text,
        )
        return await asking.answer(self._journal, row, given, within=_WITHIN_S) is not None


class _Patience:
    """Raises what keeps failing, once it has for too long."""

    def __init__(self) -> None:
        self._since: float | None = None

    def tried(self, error: Exception) -> None:
        """It failed again."""
        self._since = self._since or time.monotonic()
        if time.monotonic() - self._since > PATIENCE_S:
            raise error
