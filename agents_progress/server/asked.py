"""What a GET asks for: cursors, filters, counts. Everything that is not understood is refused, nothing is guessed."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Final, get_args
from urllib.parse import parse_qsl

from starlette.requests import Request

from agents_progress.events import is_run_id
from agents_progress.messages import Status
from agents_progress.server.refusals import Refusal

MOST: Final = 2**53
"""The greatest sequence number there is."""
LABEL: Final = "label."
"""What a query parameter that filters by a label begins with."""
MOST_LABELS: Final = 32
"""Labels that a run is given or that a list is filtered by, at most."""
DEFAULT_LIMIT: Final = 50

_NUMBER = re.compile(r"[0-9]{1,16}", re.ASCII)
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\ufffd]")
_STATUSES: Final = frozenset(get_args(Status))


@dataclass(frozen=True, slots=True)
class Filters:
    """Which runs a list asks for."""

    status: Status | None
    task_id: str | None
    labels: dict[str, str]
    before: str | None
    limit: int


@dataclass(frozen=True, slots=True)
class Position:
    """From where a feed is read. ``snapshot``: a view of everything so far is wanted first."""

    after_seq: int
    snapshot: bool


def nothing(request: Request) -> None:
    """Refuse any query parameter."""
    _parameters(request, ())


def filters(request: Request, most: int) -> Filters:
    """``?status=&task_id=&label.K=V&before=&limit=``, each at most once."""
    given = _parameters(request, ("status", "task_id", "before", "limit"), LABEL)
    status, before, limit = given.get("status"), given.get("before"), given.get("limit")
    labels = {name.removeprefix(LABEL): value for name, value in given.items() if name.startswith(LABEL)}
    if status is not None and status not in _STATUSES:
        raise Refusal("bad_query", f"status is one of {', '.join(get_args(Status))}")
    for name in ("task_id", "before"):
        if name in given and not is_run_id(given[name]):
            raise Refusal("bad_query", f"{name} is an id")
    count = min(DEFAULT_LIMIT, most) if limit is None else _number(limit)
    if count is None or not 1 <= count <= most:
        raise Refusal("bad_query", f"limit is a number from 1 to {most}")
    if len(labels) > MOST_LABELS or any(map(_UNPRINTABLE.search, (*labels, *labels.values()))):
        raise Refusal("bad_query", f"labels are printable text, and at most {MOST_LABELS}")
    return Filters(status, given.get("task_id"), labels, before, count)  # type: ignore[arg-type]  # one of them


def position(request: Request) -> Position:
    """The header ``Last-Event-ID``, else ``?after_seq=``, else the beginning; and ``?snapshot=1``."""
    given = _parameters(request, ("after_seq", "snapshot"))
    if given.get("snapshot", "0") not in ("0", "1"):
        raise Refusal("bad_query", "snapshot is 0 or 1")
    cursors = request.headers.getlist("last-event-id") or [given.get("after_seq", "0")]
    after_seq = _number(cursors[0]) if len(cursors) == 1 else None
    if after_seq is None or after_seq > MOST:
        raise Refusal("bad_cursor")
    return Position(after_seq, given.get("snapshot") == "1")


def _number(text: str) -> int | None:
    return int(text) if _NUMBER.fullmatch(text) else None


def _parameters(request: Request, names: Collection[str], prefix: str | None = None) -> dict[str, str]:
    pairs = parse_qsl(request.scope.get("query_string", b"").decode("latin-1"), keep_blank_values=True)
    known = [name for name, _ in pairs if name in names or (prefix is not None and name.startswith(prefix))]
    if len(known) != len(pairs):
        raise Refusal(
            "bad_query",
            f"known here are {', '.join((*names, *([f'{prefix}NAME'] if prefix else [])))}"
            if names
            else "no parameters are known here",
        )
    if len(set(known)) != len(known):
        raise Refusal("bad_query", "a parameter stands twice")
    return dict(pairs)
