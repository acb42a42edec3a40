"""A notification of an outside change, checked field by field before anything of it is stored or compared.

Its text is material for whoever prepares a result. It permits nothing, whatever it says.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from typing import Any, Final

from agents_progress.effects.keys import digest
from agents_progress.errors import BadNotification
from agents_progress.plaintext import clean


@dataclass(frozen=True, slots=True)
class Notification:
    """Something outside changed. ``event_id`` is the sender's name of this notification, ``reaction`` what it is for,
    ``who`` did it, ``resource`` and ``version`` are what changed and to what, ``action`` is what is wanted,
    ``occurred_at`` is when, in seconds since 1970. ``label`` is for people, ``text`` for whoever prepares.
    """

    event_id: str
    reaction: str
    who: str
    resource: str
    version: str
    action: str
    occurred_at: float
    label: str = ""
    text: str = ""

    @property
    def core(self) -> str:
        """The digest of what makes it this event. Words for people and material are no part of it."""
        return digest(self.reaction, self.who, self.resource, self.version, self.action, float(self.occurred_at))


LONGEST: Final[Mapping[str, int]] = {
    "event_id": 200,
    "reaction": 100,
    "who": 200,
    "resource": 500,
    "version": 200,
    "action": 100,
    "label": 200,
    "text": 100_000,
}
"""Characters that a text may have."""

LATEST: Final = 253402300799.0
"""The last second of the year 9999."""


def checked(given: Mapping[str, Any] | Notification) -> Notification:
    """A notification all of whose fields are as they must be. Raises :exc:`BadNotification`, which quotes no value."""
    if isinstance(given, Notification):
        given = {item.name: getattr(given, item.name) for item in fields(given)}
    if not isinstance(given, Mapping):
        raise BadNotification("a notification is an object with fields")
    for item in fields(Notification):
        if item.name in given:
            _check(item.name, given[item.name])
        elif item.default is MISSING:
            raise BadNotification(f"a notification needs {item.name}")
    if len(given) > len([item for item in fields(Notification) if item.name in given]):
        raise BadNotification(f"a notification has no fields but {', '.join(i.name for i in fields(Notification))}")
    return Notification(**{**given, "occurred_at": float(given["occurred_at"])})


def _check(name: str, value: object) -> None:
    rules = _TIME if name == "occurred_at" else _MATERIAL if name == "text" else _LABEL if name == "label" else _NAME
    for what, holds in rules:
        if not holds(name, value):
            raise BadNotification(f"{name} of a notification {what}")


def _encodes(name: str, value: Any) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True


_Rules = tuple[tuple[str, Callable[[str, Any], bool]], ...]

_MATERIAL: Final[_Rules] = (
    ("is a text", lambda name, value: type(value) is str),
    ("is too long", lambda name, value: len(value) <= LONGEST[name]),
    ("has lone surrogates", _encodes),
)
_LABEL: Final[_Rules] = (
    *_MATERIAL,
    ("has control or unseen characters", lambda name, value: clean(value) == value),
)
_NAME: Final[_Rules] = (
    *_LABEL,
    ("is empty", lambda name, value: bool(value.strip())),
    ("begins or ends with a space", lambda name, value: value == value.strip()),
)
_TIME: Final[_Rules] = (
    ("is a number of seconds", lambda name, value: type(value) in (int, float)),
    ("is not a moment", lambda name, value: math.isfinite(value) and 0 < value <= LATEST),
)
