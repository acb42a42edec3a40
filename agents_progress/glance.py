"""What one row of a list shows of a run without its log: what is being worked on, the tokens, the cost.

A journal keeps a :class:`Glance` of each run beside its standing. It stays small whatever a run says: of the calls that
are open at one time the first :data:`KEPT` are kept, and so many of the stages. Where those have ended and others have
not, what is being worked on is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from agents_progress.events import Envelope
from agents_progress.labels import label
from agents_progress.messages import Language
from agents_progress.prices import Cost, amount_text, cost_of

KEPT: Final = 8
"""Open calls that are kept, and open stages, at most."""


@dataclass(slots=True)
class Glance:
    """Titles of open work by its id, in the order in which it was asked for, or began; the newest usage and cost."""

    requested: dict[str, str] = field(default_factory=dict)
    running: dict[str, str] = field(default_factory=dict)
    stages: dict[str, str] = field(default_factory=dict)
    usage: dict[str, Any] | None = None
    cost: Cost | None = None

    @property
    def activity(self) -> str | None:
        """The title of what is being worked on; None where that is nothing, or not known.

        That is the first call that runs, else the first that was requested, else the newest stage. A call with others
        open inside it stands back for them.
        """
        outer = {name[:place] for name in (*self.requested, *self.running) for place in _slashes(name)}
        for calls in (self.running, self.requested):
            for name, title in calls.items():
                if name not in outer:
                    return title
        return next(reversed(self.stages.values()), None)

    def observe_all(self, envelopes: Iterable[Envelope]) -> None:
        """Take in envelopes, most of which change nothing."""
        for envelope in envelopes:
            if envelope.type in UPDATES:
                UPDATES[envelope.type](self, envelope.payload)

    def copy(self) -> Glance:
        """The same, to be changed apart."""
        return Glance(dict(self.requested), dict(self.running), dict(self.stages), self.usage, self.cost)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for storage."""
        return asdict(self)


def cost_text(cost: Cost, language: Language) -> str:
    """A cost in words, such as `at least 0.0124 USD`; the amount as :func:`amount_text` rounds it."""
    amount = amount_text({**cost, "at_least": False})
    return label("at_least", language, amount=amount) if cost["at_least"] else amount


def _slashes(name: str) -> list[int]:
    return [place for place, letter in enumerate(name) if letter == "/"]


def _keep(rows: dict[str, str], name: Any, title: Any, others: int = 0) -> None:
    if len(rows) + others < KEPT:
        rows[name] = title


def _requested(glance: Glance, payload: Mapping[str, Any]) -> None:
    title = payload.get("title", payload["name"])
    _keep(glance.requested, payload["call_id"], title, len(glance.running))


def _started(glance: Glance, payload: Mapping[str, Any]) -> None:
    if (title := glance.requested.pop(payload["call_id"], None)) is not None:
        glance.running[payload["call_id"]] = title


def _settled(glance: Glance, payload: Mapping[str, Any]) -> None:
    glance.requested.pop(payload["call_id"], None)
    glance.running.pop(payload["call_id"], None)


def _stage_started(glance: Glance, payload: Mapping[str, Any]) -> None:
    _keep(glance.stages, payload["stage_id"], payload["title"])


def _stage_completed(glance: Glance, payload: Mapping[str, Any]) -> None:
    glance.stages.pop(payload["stage_id"], None)


def _used(glance: Glance, payload: Mapping[str, Any]) -> None:
    glance.usage = {name: count for name, count in payload.items() if name != "x"}
    glance.cost = cost_of(payload)


def _over(glance: Glance, payload: Mapping[str, Any]) -> None:
    for rows in (glance.requested, glance.running, glance.stages):
        rows.clear()


UPDATES: Final[Mapping[str, Callable[[Glance, Mapping[str, Any]], None]]] = {
    "tool.requested": _requested,
    "tool.started": _started,
    "tool.finished": _settled,
    "tool.failed": _settled,
    "tool.rejected": _settled,
    "tool.skipped": _settled,
    "stage.started": _stage_started,
    "stage.completed": _stage_completed,
    "usage.updated": _used,
    "run.ended": _over,
    "run.lost": _over,
}
"""What an envelope type changes; every type that is not here changes nothing."""
