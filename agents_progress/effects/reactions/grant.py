"""A grant: the standing permission under which a reaction may act. Nothing else permits anything."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, fields, replace
from math import isnan
from typing import Any, Final

from agents_progress.effects.keys import digest
from agents_progress.effects.reactions.store import Document, Line, Writing
from agents_progress.errors import UsageError


@dataclass(frozen=True, slots=True)
class Grant:
    """Who may have what done, and until when.

    ``who`` is the identity that a notification must be about. ``resources`` are names, or beginnings of names with a
    ``*`` at the end; ``actions`` are names. ``until`` is in seconds since 1970. Whoever changes a grant gives it a
    higher ``revision``: what was begun under another one stops. ``owner`` and ``tenant`` say whose it is, and whose all
    is that comes of it.
    """

    id: str
    who: str
    resources: Collection[str]
    actions: Collection[str]
    until: float
    revision: int = 1
    owner: str | None = None
    tenant: str | None = None

    def __post_init__(self) -> None:
        for name in ("resources", "actions"):
            given: Collection[str] = getattr(self, name)
            if isinstance(given, str) or not given or not all(isinstance(one, str) and one for one in given):
                raise UsageError(f"{name} of a grant are names; write {{'...'}}, with at least one in it")
            object.__setattr__(self, name, frozenset(given))
        if isinstance(self.until, bool) or not isinstance(self.until, int | float) or isnan(self.until):
            raise UsageError("until of a grant is a time in seconds since 1970")
        if type(self.revision) is not int or self.revision < 1:
            raise UsageError("the revision of a grant is a number from 1")

    @property
    def name(self) -> str:
        """Under which it is stored."""
        return f"grant:{digest(self.tenant, self.id)}"

    def covers(self, resource: str) -> bool:
        """Whether it is about a resource."""
        return any(resource.startswith(one[:-1]) if one.endswith("*") else resource == one for one in self.resources)


@dataclass(frozen=True, slots=True)
class Held:
    """A grant as it is stored."""

    grant: Grant
    cancelled_by: str | None = None

    def document(self, now: float) -> Document:
        grant = self.grant
        body = {item.name: getattr(grant, item.name) for item in fields(grant)}
        body |= {"resources": sorted(grant.resources), "actions": sorted(grant.actions)}
        body["cancelled_by"] = self.cancelled_by
        return Document(grant.name, "grant", body, owner=grant.owner, tenant=grant.tenant, at=now)


def held(document: Document | None) -> Held | None:
    """What a document says of a grant."""
    if document is None:
        return None
    body = dict(document.body)
    cancelled_by = body.pop("cancelled_by")
    return Held(Grant(**body), cancelled_by)


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is to be done, by the name of whom, and under which revision of the grant; None before there is one."""

    who: str
    resource: str
    action: str
    revision: int | None


_RULES: Final[tuple[tuple[str, Callable[[Held, Wanted, float], bool]], ...]] = (
    ("grant_cancelled", lambda held, wanted, now: held.cancelled_by is not None),
    ("grant_expired", lambda held, wanted, now: held.grant.until <= now),
    ("who_differs", lambda held, wanted, now: held.grant.who != wanted.who),
    ("resource_not_granted", lambda held, wanted, now: not held.grant.covers(wanted.resource)),
    ("action_not_granted", lambda held, wanted, now: wanted.action not in held.grant.actions),
    ("grant_changed", lambda held, wanted, now: wanted.revision not in (None, held.grant.revision)),
)
"""Why a grant permits something not; the first that holds."""


def objection(found: Held | None, wanted: Wanted, now: float) -> str | None:
    """Why a grant does not permit something; None when it does."""
    if found is None:
        return "grant_unknown"
    return next((reason for reason, holds in _RULES if holds(found, wanted, now)), None)


# The rules of storing one.


def permitted(found: Document | None, grant: Grant, now: float) -> tuple[str, Writing]:
    """A grant is given: `given`, `known` (as it is, or outdated by a later revision), `cancelled` or `conflict`."""
    known = held(found)
    if known is not None and known.cancelled_by is not None:
        return "cancelled", Writing()
    if known is not None and known.grant.revision >= grant.revision:
        same = known.grant.revision > grant.revision or known.grant == grant
        return ("known" if same else "conflict"), Writing()
    return "given", Writing([Held(grant).document(now)], [_line(grant, "grant_given", None, now)])


def revoked(found: Document | None, actor: str, now: float) -> tuple[bool, Writing]:
    """A grant is cancelled, for good. False when there is none, or it was."""
    known = held(found)
    if known is None or known.cancelled_by is not None:
        return False, Writing()
    cancelled = replace(known, cancelled_by=actor)
    return True, Writing([cancelled.document(now)], [_line(known.grant, "grant_cancelled", actor, now)])


def _line(grant: Grant, what: str, actor: str | None, now: float) -> Line:
    about: dict[str, Any] = {"owner": grant.owner, "tenant": grant.tenant, "actor": actor}
    return Line(now, what, reason=str(grant.revision), **about)
