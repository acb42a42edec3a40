"""Where a run stands: the few facts a status is derived from, and the derivation.

The view folds every envelope and keeps a :class:`Standing` beside its rows; a journal keeps only the standing of each
run, so that a list of runs costs nothing to show. Facts are stored, words are derived.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final

from agents_progress.events import Envelope
from agents_progress.messages import Status
from agents_progress.payloads import NOTE_PREFIX


@dataclass(slots=True)
class Standing:
    """Facts about one run. ``issues`` and ``closed`` are a reader's own; the others come from envelopes."""

    accepted: bool = False
    moved: bool = False
    cancel_requested: bool = False
    open_interactions: list[str] = field(default_factory=list)
    unsupported: bool = False
    outcome: str | None = None
    lost: str | None = None
    verdict: bool | None = None
    issues: bool = False
    closed: bool = False

    @property
    def ended(self) -> bool:
        """Whether a `run.ended` or `run.lost` was seen."""
        return self.outcome is not None or self.lost is not None

    @property
    def status(self) -> Status:
        """The first line of the derivation table that holds."""
        for holds, status in DERIVATION:
            if holds(self):
                return status
        return "running"

    def observe(self, type_: str, payload: Mapping[str, Any]) -> None:
        """Take in one accepted envelope."""
        if type_ in UPDATES:
            UPDATES[type_](self, payload)
        if not self.moved and type_ != "run.accepted" and not type_.startswith(NOTE_PREFIX):
            self.moved = True

    def observe_all(self, envelopes: Iterable[Envelope]) -> None:
        """Take in many envelopes, most of which change nothing."""
        for envelope in envelopes:
            if envelope.type in UPDATES or not self.moved:
                self.observe(envelope.type, envelope.payload)

    def copy(self) -> Standing:
        """The same facts, to be changed apart."""
        return replace(self, open_interactions=list(self.open_interactions))

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for storage."""
        return asdict(self)


DERIVATION: Final[tuple[tuple[Callable[[Standing], bool], Status], ...]] = (
    (lambda s: s.issues, "unknown"),
    (lambda s: s.outcome == "cancelled", "cancelled"),
    (lambda s: s.outcome == "failed", "failed"),
    (lambda s: s.outcome == "incomplete", "incomplete"),
    (lambda s: s.outcome == "paused", "waiting"),
    (lambda s: s.outcome == "succeeded" and s.unsupported, "unknown"),
    (lambda s: s.outcome == "succeeded" and s.verdict is None, "checking"),
    (lambda s: s.outcome == "succeeded" and s.verdict is True, "done"),
    (lambda s: s.outcome == "succeeded", "rejected"),
    (lambda s: s.lost is not None or s.closed, "unknown"),
    (lambda s: bool(s.open_interactions), "waiting"),
    (lambda s: s.cancel_requested, "cancelling"),
    (lambda s: s.moved, "running"),
    (lambda s: s.accepted, "accepted"),
)
"""First match wins; a view that saw nothing is running."""


def _set(name: str, value: object) -> Callable[[Standing, Mapping[str, Any]], None]:
    def update(standing: Standing, payload: Mapping[str, Any]) -> None:
        setattr(standing, name, value)

    return update


def _copy(name: str, source: str) -> Callable[[Standing, Mapping[str, Any]], None]:
    def update(standing: Standing, payload: Mapping[str, Any]) -> None:
        setattr(standing, name, payload[source])

    return update


def _open(standing: Standing, payload: Mapping[str, Any]) -> None:
    standing.open_interactions.append(payload["interaction_id"])


def _resolve(standing: Standing, payload: Mapping[str, Any]) -> None:
    if payload["interaction_id"] in standing.open_interactions:
        standing.open_interactions.remove(payload["interaction_id"])


UPDATES: Final[Mapping[str, Callable[[Standing, Mapping[str, Any]], None]]] = {
    "run.accepted": _set("accepted", True),
    "run.started": _set("moved", True),
    "cancel.requested": _set("cancel_requested", True),
    "approval.wait": _open,
    "approval.resolved": _resolve,
    "adapter.unsupported": _set("unsupported", True),
    "run.ended": _copy("outcome", "outcome"),
    "run.lost": _copy("lost", "reason"),
    "app.checked": _copy("verdict", "ok"),
}
"""What an envelope type changes; every type that is not here changes nothing but ``moved``."""
