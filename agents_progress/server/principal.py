"""Who asks, and what they may: the application's own function decides, and every journal query carries the scope.

First the caller is known, then the run is looked up inside the caller's scope, then the function is asked again about
this very run. An unknown run and one outside the scope take the same way, to the same answer.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import isawaitable
from typing import Literal, TypeAlias

from starlette.requests import Request

from agents_progress.errors import RunErased
from agents_progress.events import is_run_id
from agents_progress.journal.base import Journal, RunRow, Scope
from agents_progress.journal.rules import visible
from agents_progress.server.refusals import Refusal
from agents_progress.unicode import name_of

logger = logging.getLogger("agents_progress")

Action: TypeAlias = Literal["start", "list", "read", "cancel", "answer"]


@dataclass(frozen=True, slots=True)
class Principal:
    """Somebody who was recognised. ``name`` is who acted, in the log of a run: the actor of a cancel or an answer.

    ``owner`` and ``tenant`` are what their runs are stored under and all they see: the runs of this owner, of this
    tenant, or of both. With neither they see every run, as an operator does.
    """

    name: str
    owner: str | None = None
    tenant: str | None = None

    @property
    def actor(self) -> str:
        """The name as events carry it."""
        return name_of(self.name)

    @property
    def scope(self) -> Scope:
        """What goes into every query of a journal."""
        return Scope(self.owner, self.tenant)

    @property
    def account(self) -> tuple[str | None, str]:
        """Whom the caps count: the owner within the tenant, or the name where there is no owner."""
        return self.tenant, self.name if self.owner is None else self.owner


Authorize: TypeAlias = Callable[[Request, Action, RunRow | None], Awaitable[Principal | None] | Principal | None]
"""``authorize(request, action, run)`` gives who asks, or None when nobody is recognised.

It is asked without a run first, and a second time with the run that the action is about; then None, or a
``PermissionError``, means that this caller may not. A ``PermissionError`` without a run means that they may do this to
no run. Any other exception counts as "not known now" and grants nothing.
"""


class Gate:
    """Asks the application's function."""

    def __init__(self, authorize: Authorize, journal: Journal) -> None:
        self._authorize = authorize
        self._journal = journal

    async def admit(self, request: Request, action: Action) -> Principal:
        """Who asks. Raises :class:`Refusal`: nobody who is known, or one who may do this to no run at all."""
        try:
            principal = await self._ask(request, action, None)
        except PermissionError:
            raise Refusal("forbidden") from None
        if principal is None:
            raise Refusal("unauthenticated")
        return principal

    async def find(self, request: Request, action: Action, run_id: str) -> tuple[Principal, RunRow]:
        """Who asks about a run, and the run. One that they may not see does not exist, as far as they are told."""
        principal = await self.admit(request, action)
        row = await self._row(run_id, principal.scope)
        if row is None:
            raise Refusal("not_found")
        granted = await self._granted(request, action, row)
        if granted is None:
            seen = action != "read" and await self._granted(request, "read", row)
            raise Refusal("forbidden" if seen else "not_found")
        return granted, row

    async def still(self, request: Request, row: RunRow) -> bool:
        """Whether a feed may be open. Raises :class:`Refusal` where that cannot be found out now."""
        return await self._granted(request, "read", row) is not None

    async def _row(self, run_id: str, scope: Scope) -> RunRow | None:
        if not is_run_id(run_id):
            return None
        try:
            return await self._journal.run(run_id, scope=scope)
        except RunErased:
            return None

    async def _granted(self, request: Request, action: Action, row: RunRow) -> Principal | None:
        try:
            principal = await self._ask(request, action, row)
        except PermissionError:
            return None
        return principal if principal is not None and visible(row.origin, principal.scope) else None

    async def _ask(self, request: Request, action: Action, row: RunRow | None) -> Principal | None:
        try:
            answer = self._authorize(request, action, row)
            principal = await answer if isawaitable(answer) else answer
        except (PermissionError, Refusal):
            raise
        except Exception as error:  # noqa: BLE001 - what cannot be established is not granted
            logger.error("agents_progress: authorize failed: %s", type(error).__name__)
            raise Refusal("authorize_failed") from None
        if principal is not None and not isinstance(principal, Principal):
            logger.error("agents_progress: authorize gave a %s; give a Principal or None", type(principal).__name__)
            raise Refusal("authorize_failed")
        return principal
