"""RunView: the display state of one run, a fold over its envelopes.

The view never says more than the envelopes prove. It accepts anything and raises for nothing: what does not fit is an issue,
and any issue makes the status `unknown`. Status and sentence are computed from facts (:mod:`agents_progress.standing`).
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final, Literal, TypeAlias

from pydantic_core import to_json

from agents_progress.errors import BadEnvelope, BadPayload, BadSnapshot, UnknownEventType
from agents_progress.events import Envelope, check_payload, parse_envelope, parse_known
from agents_progress.fold import FOLDS, Contradiction
from agents_progress.messages import Language, Status, sentence
from agents_progress.payloads import NOTE_PREFIX
from agents_progress.rows import Activity, Interaction, Message
from agents_progress.standing import Standing

IssueCode: TypeAlias = Literal[
    "bad_envelope",
    "bad_payload_or_transition",
    "event_after_terminal",
    "id_conflict",
    "sequence_gap_or_reorder",
    "unknown_event",
]

REMEMBERED: Final = 1024
"""Envelopes whose content is compared when they come again; older ones are known by their sequence number alone."""
_SNAPSHOT_VERSION: Final = 1


class RunView:
    """What a reader may show about one run.

    Feed it envelopes in any form and order they arrive; read ``status`` and ``message``. Memory grows with the text and the
    rows, not with the number of events. Not thread-safe: one reader, one view.
    """

    def __init__(self, run_id: str, language: Language = "en") -> None:
        self.run_id = run_id
        self.language: Language = language
        self.standing = Standing()
        self.seq = 0
        self.task_id: str | None = None
        self.title: str | None = None
        self.agent: str | None = None
        self.usage: dict[str, Any] | None = None
        self.terminal: dict[str, Any] | None = None
        self.verdict: dict[str, Any] | None = None
        self.duplicates = 0
        self.foreign = 0
        self.artifacts: list[dict[str, Any]] = []
        self.sources: list[dict[str, Any]] = []
        self.guardrails: list[dict[str, Any]] = []
        self.rows: dict[str, Activity] = {}
        self.interactions: dict[str, Interaction] = {}
        self.texts: dict[tuple[str, str], Message] = {}
        self.handoffs: list[str] = []
        self._issues: dict[IssueCode, int] = {}
        self._recent: OrderedDict[str, Envelope | str] = OrderedDict()

    # What to show.

    @property
    def status(self) -> Status:
        """One of the eleven statuses."""
        return self.standing.status

    @property
    def message(self) -> str:
        """The sentence of the status, in the view's language."""
        return sentence(self.status, self.language)

    @property
    def text(self) -> str:
        """The newest answer message, whole or as far as it came; empty when there is none."""
        for message in reversed(self.texts.values()):
            if message.channel == "answer":
                return message.text
        return ""

    @property
    def messages(self) -> list[Message]:
        """Every text of every channel, in order of first appearance."""
        return list(self.texts.values())

    @property
    def activities(self) -> list[Activity]:
        """Every row of visible work, in order of first appearance."""
        return list(self.rows.values())

    @property
    def tools(self) -> dict[str, str]:
        """Call id to state: requested, running, returned, failed, rejected or skipped."""
        return {row.activity_id: row.state for row in self.rows.values() if row.kind not in ("handoff", "stage")}

    @property
    def issues(self) -> list[IssueCode]:
        """Codes of what did not fit, in order of first appearance. Any of them makes the status `unknown`."""
        return list(self._issues)

    # Feeding it.

    def feed(self, source: object) -> None:
        """Take in one envelope: an :class:`Envelope`, its fields as a dict, or its JSON. Never raises.

        An ``Envelope`` is taken as already checked; everything else is validated strictly.
        """
        if type(source) is Envelope:
            envelope, checked = source, True
        else:
            known = parse_known(source)
            checked = known is not None
            try:
                envelope = known or parse_envelope(source)
            except BadEnvelope:
                return self._issue("bad_envelope")
        seq = envelope.seq
        if envelope.run_id != self.run_id:
            self.foreign += 1
        elif seq <= self.seq or envelope.event_id in self._recent:
            self._again(envelope)
        else:
            if seq != self.seq + 1:
                self._issue("sequence_gap_or_reorder", seq)
            self.seq = seq
            self._recent[envelope.event_id] = envelope
            if len(self._recent) > REMEMBERED:
                self._recent.popitem(last=False)
            self._take(envelope, checked)
        return None

    def close_transport(self) -> None:
        """The input ended. Adds no fact: without an ending the status becomes `unknown`, with one nothing changes."""
        self.standing.closed = True

    def _take(self, envelope: Envelope, checked: bool) -> None:
        """Fold the next envelope, or say what is wrong with it."""
        type_, standing = envelope.type, self.standing
        fold = FOLDS.get(type_)
        try:
            if not checked:
                check_payload(envelope)
            if fold is None:
                if not type_.startswith(NOTE_PREFIX):
                    raise UnknownEventType(type_)
            elif standing.ended and (type_ != "app.checked" or self.verdict is not None):
                self._issue("event_after_terminal", envelope.seq)
            else:
                fold(self, envelope)
                standing.observe(type_, envelope.payload)
        except UnknownEventType:
            self._issue("unknown_event", envelope.seq)
        except (BadPayload, Contradiction):
            self._issue("bad_payload_or_transition", envelope.seq)

    def _again(self, envelope: Envelope) -> None:
        """An id that was seen, or a sequence number that has passed."""
        known = self._recent.get(envelope.event_id)
        if known is None:
            if envelope.event_id == f"{envelope.run_id}:{envelope.seq}":
                self.duplicates += 1
            else:
                self._issue("sequence_gap_or_reorder", envelope.seq)
        elif known == envelope or known == _fingerprint(envelope):
            self.duplicates += 1
        else:
            self._issue("id_conflict", envelope.seq)

    def _issue(self, code: IssueCode, seq: int = 0) -> None:
        self._issues.setdefault(code, seq)
        self.standing.issues = True

    # Storing it.

    def snapshot(self) -> dict[str, Any]:
        """Everything the view knows, as plain JSON values; :meth:`from_snapshot` restores it."""
        return {
            "version": _SNAPSHOT_VERSION,
            "run_id": self.run_id,
            "seq": self.seq,
            "standing": self.standing.to_dict(),
            "plain": {name: getattr(self, name) for name in _PLAIN},
            "rows": [asdict(row) for row in self.rows.values()],
            "interactions": [asdict(row) for row in self.interactions.values()],
            "texts": [message.to_dict() for message in self.texts.values()],
            "issues": dict(self._issues),
            "recent": [
                [event_id, known if isinstance(known, str) else _fingerprint(known)]
                for event_id, known in self._recent.items()
            ],
        }

    @classmethod
    def from_snapshot(cls, snapshot: Mapping[str, Any], language: Language = "en") -> RunView:
        """A view that continues after ``snapshot["seq"]`` as if it had seen everything before.

        A snapshot from the journal replaces a view and so heals a gap. Raises :exc:`BadSnapshot` when it is of another form.
        """
        if not isinstance(snapshot, Mapping) or snapshot.get("version") != _SNAPSHOT_VERSION:
            raise BadSnapshot("not a snapshot of this version; read the run from its first envelope instead")
        try:
            view = cls(snapshot["run_id"], language)
            view.seq = snapshot["seq"]
            view.standing = Standing(**snapshot["standing"])
            view.standing.open_interactions = list(view.standing.open_interactions)
            for name in _PLAIN:
                value = snapshot["plain"][name]
                setattr(view, name, list(value) if isinstance(value, list) else value)
            view.rows = {row["activity_id"]: Activity(**row) for row in snapshot["rows"]}
            view.interactions = {row["interaction_id"]: Interaction(**row) for row in snapshot["interactions"]}
            for row in snapshot["texts"]:
                message = Message(**{**row, "pieces": list(row["pieces"])})
                view.texts[message.item_id, message.channel] = message
            view._issues = dict(snapshot["issues"])
            view._recent = OrderedDict((event_id, known) for event_id, known in snapshot["recent"])
        except (KeyError, TypeError, ValueError) as error:
            raise BadSnapshot("the snapshot is damaged; read the run from its first envelope instead") from error
        return view


_PLAIN: Final = (
    "task_id",
    "title",
    "agent",
    "usage",
    "terminal",
    "verdict",
    "duplicates",
    "foreign",
    "artifacts",
    "sources",
    "guardrails",
    "handoffs",
)
"""Attributes of a view that are JSON as they stand."""


def _fingerprint(envelope: Envelope) -> str:
    """What stands for an envelope's content in a snapshot: 128 bits of the SHA-256 of its JSON."""
    return hashlib.sha256(to_json(envelope, inf_nan_mode="constants")).hexdigest()[:32]
