"""An outside change leads to an effect, once, approved and confirmed. :mod:`.engine` tells how.

As with the package itself nothing is loaded before it is used: whoever only lists or erases reactions needs no SDK.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents_progress.effects.reactions.engine import Reactions as Reactions
    from agents_progress.effects.reactions.entry import Entry as Entry
    from agents_progress.effects.reactions.grant import Grant as Grant
    from agents_progress.effects.reactions.inbox import Accepted as Accepted
    from agents_progress.effects.reactions.inbox import Ignored as Ignored
    from agents_progress.effects.reactions.inbox import Known as Known
    from agents_progress.effects.reactions.inbox import Quarantined as Quarantined
    from agents_progress.effects.reactions.notice import Notification as Notification
    from agents_progress.effects.reactions.terms import Case as Case
    from agents_progress.effects.reactions.terms import Reaction as Reaction
    from agents_progress.effects.reactions.terms import Receipt as Receipt
    from agents_progress.effects.reactions.terms import Record as Record
    from agents_progress.effects.reactions.terms import Source as Source
    from agents_progress.effects.reactions.terms import Target as Target

_HOMES = {
    "Reactions": "engine",
    "Reaction": "terms",
    "Grant": "grant",
    "Source": "terms",
    "Target": "terms",
    "Record": "terms",
    "Receipt": "terms",
    "Case": "terms",
    "Notification": "notice",
    "Accepted": "inbox",
    "Known": "inbox",
    "Ignored": "inbox",
    "Quarantined": "inbox",
    "Entry": "entry",
}

__all__ = [  # noqa: PLE0604 - computed from the one table
    *_HOMES
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
