"""What a server of runs answers, held to its form."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, NotRequired, TypeVar

from pydantic import TypeAdapter, ValidationError
from typing_extensions import TypedDict

from agents_progress.effects.entry import State
from agents_progress.errors import Refused
from agents_progress.messages import Status
from agents_progress.prices import Cost

T = TypeVar("T")


class OpenCall(TypedDict):
    """What a run works on. ``for_s`` is how long so far, in seconds, where that is known."""

    call_id: str
    name: str
    title: str
    for_s: NotRequired[float]


class RemoteRun(TypedDict):
    """What a server says of one run without its log.

    ``sealed``: nothing more comes. ``last_event_age`` is the silence so far, in seconds. ``continued_as`` is the newest
    run of the task of a paused one. ``open_call`` is told of a single run, and not of those in a list. ``activity``
    is the title of what is being worked on, ``usage`` the payload of the newest `usage.updated`, and ``cost`` what its
    tokens cost: None where nothing is known, and absent when the server is of an older release.
    """

    run_id: str
    task_id: str
    title: str | None
    status: Status
    message: str
    seq: int
    started_at: str
    updated_at: str
    labels: dict[str, str]
    sealed: bool
    last_event_age: float | None
    continued_as: str | None
    open_call: NotRequired[OpenCall | None]
    activity: NotRequired[str | None]
    usage: NotRequired[dict[str, Any] | None]
    cost: NotRequired[Cost | None]


class RemoteEffect(TypedDict):
    """What a server knows of an effect of a tool that acts once; its ``entry`` is the digest that names it.

    ``key`` is the application's, as far as it is shown. ``generation`` counts the attempts, of which the newest
    ``began_at``. ``settled_by`` is `body`, `reconcile` or a person's name, None while nobody knows what became of it.
    """

    entry: str
    state: State
    tool: str
    key: str
    run_id: str | None
    task_id: str | None
    call_id: str | None
    generation: int
    began_at: str
    settled_at: str | None
    settled_by: str | None


@cache
def _shape(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def row(answer: object) -> RemoteRun:
    """One run. Raises :exc:`Refused` for what is none."""
    found: RemoteRun = _of(RemoteRun, answer)
    return found


def effect(answer: object) -> RemoteEffect:
    """One effect. Raises :exc:`Refused` for what is none."""
    found: RemoteEffect = _of(RemoteEffect, answer)
    return found


def _of(kind: Any, answer: object) -> Any:
    """An answer of this shape. Fields that a newer server adds are left out."""
    try:
        return _shape(kind).validate_python(answer, strict=True)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        raise _unreadable(".".join(map(str, first["loc"]))) from None


def part(answer: Mapping[str, Any], name: str, kind: type[T]) -> T:
    """One field of an answer, of the type it must have; raises :exc:`Refused` otherwise."""
    value = answer.get(name)
    if not isinstance(value, kind):
        raise _unreadable(name)
    return value


def _unreadable(place: str) -> Refused:
    return Refused(200, "unreadable", f"the server answered without a proper {place}; is it of another release?")
