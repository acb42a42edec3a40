"""What an application gives for a reaction: where the record is read, who prepares a result, and where it goes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, runtime_checkable

from agents_progress.disclosure import Disclosure
from agents_progress.effects.keys import canonical
from agents_progress.effects.reactions.grant import Grant
from agents_progress.effects.reactions.inbox import FRESH_S
from agents_progress.errors import UsageError
from agents_progress.messages import Language


@dataclass(frozen=True, slots=True)
class Record:
    """What the authority holds of a resource now. ``version`` is compared with the notification's."""

    version: str
    content: Any = field(repr=False)


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the target holds under a key: the ``result`` that arrived, and its own name for it."""

    key: str
    result: Any = field(repr=False)
    reference: str = ""


class Source(Protocol):
    """The authority of a record."""

    async def read(self, resource: str) -> Record | None:
        """The record as it is now; None when it is closed or gone. What it raises is tried again."""


class Target(Protocol):
    """Where results go. The same key is the same effect, however often it comes."""

    async def submit(self, key: str, result: Any) -> object:
        """Have the effect. Whatever it returns or raises proves nothing; the receipt does."""

    async def receipt(self, key: str) -> Receipt | None:
        """What arrived under a key; None when nothing did so far."""


@dataclass(frozen=True, slots=True)
class Case:
    """What a result is prepared from. ``content`` is the record's, read back from its source; ``text`` and ``label``
    are the notification's, and material only.
    """

    task_id: str
    resource: str
    version: str
    action: str
    content: Any = field(repr=False)
    text: str = field(default="", repr=False)
    label: str = ""


Prepare: TypeAlias = Callable[[Case], Any | Awaitable[Any]]


@runtime_checkable
class Decorated(Protocol):
    """A function under ``@progress``: its run becomes a part of the task."""

    def using(self, **options: Any) -> Callable[[Case], Awaitable[Any]]: ...


@dataclass(frozen=True)
class Reaction:
    """How one kind of outside change is answered.

    ``prepare(case)`` gives the result, plain or awaited, as something with a JSON form; it only prepares. It may be a
    function under ``@progress``, whose output is the result if the run succeeded and its check, if it has one, passed.

    ``fresh_s`` is how old a notification may be, ``patience_s`` how long a source that raises is tried again,
    ``resubmit_after`` how long after a submission without a receipt it is made again under the same key, all in
    seconds; None leaves that to a person. ``disclosure`` opens what a page shows: ``approval_details={"submit"}`` lets
    it show the result that is to be approved. ``title`` is the one of its runs where a notification has no label.
    """

    name: str
    grant: Grant
    source: Source
    target: Target
    prepare: Prepare | Decorated
    title: str | None = None
    fresh_s: float = FRESH_S
    patience_s: float = 60.0
    resubmit_after: float | None = 60.0
    disclosure: Disclosure = field(default_factory=Disclosure)
    language: Language = "en"


def same(receipt: Receipt, key: str, result: str | None) -> bool:
    """Whether a receipt is that of a stored result."""
    try:
        return receipt.key == key and canonical(receipt.result) == result
    except UsageError:
        return False
