"""What a journal keeps of a paused run, so that any process which has its function can go on with it.

Never on the wire, in an event, a log record or a repr: it holds the run's whole state.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field


@dataclass(frozen=True, slots=True)
class Pause:
    """A paused run as it is stored, once a run.

    ``function`` is the qualified name of the decorated function, ``body`` the state and what belongs to it, sealed or
    not. ``expires_at`` is RFC 3339 by the clock of the owner, None for a pause that never expires. ``answerers`` gives
    the only actors who may answer a question, by its interaction id; one that is not named there may be answered by
    whoever may ask.
    """

    run_id: str
    function: str
    body: str = field(repr=False)
    expires_at: str | None = None
    answerers: Mapping[str, Sequence[str]] = field(default_factory=dict)


def pause_text(pause: Pause) -> str:
    """A pause as one line of ASCII JSON."""
    facts = asdict(pause) | {"answerers": {name: list(actors) for name, actors in pause.answerers.items()}}
    del facts["run_id"]
    return json.dumps(facts)


def stored_pause(run_id: str, text: str | bytes) -> Pause:
    """The pause of a run behind a :func:`pause_text`; fields of a newer release are passed over."""
    stored = json.loads(text)
    known = {name: stored[name] for name in ("function", "body", "expires_at", "answerers") if name in stored}
    return Pause(run_id, **known)
