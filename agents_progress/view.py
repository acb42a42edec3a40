"""RunView: the display state of one run, a fold over its envelopes.

The view never says more than the envelopes prove. It accepts anything and raises for nothing: what does not fit is an
issue, and any issue makes the status `unknown`. Status and sentence are computed from facts
(:mod:`agents_progress.standing`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any, Final, Literal, NamedTuple, NotRequired, TypeAlias

from pydantic import TypeAdapter
from pydantic_core import SchemaValidator, to_json
from typing_extensions import TypedDict

from agents_progress.errors import BadEnvelope, BadPayload, BadSnapshot, UnknownEventType
from agents_progress.events import Envelope, check_payload, parse_envelope, parse_known
from agents_progress.fold import FOLDS, STEADY, Contradiction
from agents_progress.messages import Language, Status, refuse_unspoken, sentence
from agents_progress.payloads import NOTE_PREFIX
from agents_progress.prices import Cost, cost_of
from agents_progress.rows import Activity, Interaction, Message
from agents_progress.standing import UPDATES, Standing

IssueCode: TypeAlias = Literal[
    "bad_envelope",
    "bad_payload_or_transition",
    "event_after_terminal",
    "id_conflict",
    "sequence_gap_or_reorder",
    "unknown_event",
]

REMEMBERED: Final = 1024
"""Sequence numbers back to which content is compared when an envelope comes again; older ones are known by number
alone.
"""
_SNAPSHOT_VERSION: Final = 1


class _Seen(NamedTuple):
    """What stands for an envelope in a snapshot: its place, and 128 bits of the SHA-256 of its content."""

    seq: int
    fingerprint: str


class RunView:
    """What a reader may show about one run.

    Feed it envelopes in any form and order they arrive; read ``status`` and ``message``. Memory grows with the text and
    the rows, not with the number of events. Not thread-safe: one reader, one view.
    """

    def __init__(self, run_id: str, language: Language = "en") -> None:
        refuse_unspoken(language)
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
        self.responses: list[int] = []
        self._issues: dict[IssueCode, int] = {}
        self._recent: dict[str, Envelope | _Seen] = {}

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
    def cost(self) -> Cost | None:
        """What the tokens of :attr:`usage` cost, where the application has prices; None when nothing is known of it."""
        return cost_of(self.usage)

    @property
    def issues(self) -> list[IssueCode]:
        """Codes of what did not fit, in order of first appearance. Any of them makes the status `unknown`."""
        return list(self._issues)

    # Feeding it.

    def feed(self, source: object) -> None:
        """Take in one envelope: an :class:`Envelope`, its fields as a dict, or its JSON. Never raises.

        An ``Envelope`` is taken as already checked; everything else is validated strictly.
        """
        parsed = source if type(source) is Envelope else parse_known(source)
        checked = parsed is not None
        try:
            envelope = parsed or parse_envelope(source)
        except BadEnvelope:
            return self._issue("bad_envelope")
        event_id, run_id, seq, _, _, _ = envelope
        if run_id != self.run_id:
            self.foreign += 1
            return None
        known = self._recent.get(event_id)
        if seq <= self.seq or (known is not None and self._remembers(known)):
            return self._again(envelope)
        if seq != self.seq + 1:
            self._issue("sequence_gap_or_reorder", seq)
        self.seq = seq
        self._recent[event_id] = envelope
        self._forget()
        return self._take(envelope, checked)

    def feed_all(self, envelopes: Sequence[Envelope]) -> None:
        """Take in what this process just appended: the same as feeding each, quicker when they are simply the next
        ones.
        """
        first, last = envelopes[0], envelopes[-1]
        if first.run_id != self.run_id or first.seq != self.seq + 1 or last.seq != self.seq + len(envelopes):
            for envelope in envelopes:
                self.feed(envelope)
            return
        standing = self.standing
        steady = standing.moved and not standing.ended
        for envelope in envelopes:
            step = STEADY.get(envelope.type) if steady else None
            if step is None:
                self._take(envelope, checked=True)
                steady = standing.moved and not standing.ended
                continue
            try:
                step(self, envelope)
            except Contradiction:
                self._issue("bad_payload_or_transition", envelope.seq)
        self.seq = last.seq
        self._recent.update({envelope.event_id: envelope for envelope in envelopes})
        self._forget()

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
            elif (standing.outcome is None and standing.lost is None) or (
                type_ == "app.checked" and self.verdict is None
            ):
                fold(self, envelope)
                if type_ in UPDATES or not standing.moved:
                    standing.observe(type_, envelope.payload)
            else:
                self._issue("event_after_terminal", envelope.seq)
        except UnknownEventType:
            self._issue("unknown_event", envelope.seq)
        except (BadPayload, Contradiction, LookupError, TypeError, AttributeError):
            # The last three are what an unchecked payload of a damaged journal runs into.
            self._issue("bad_payload_or_transition", envelope.seq)

    def _forget(self) -> None:
        if len(self._recent) > 2 * REMEMBERED:
            oldest = self.seq - REMEMBERED
            self._recent = {name: seen for name, seen in self._recent.items() if seen.seq > oldest}

    def _remembers(self, seen: Envelope | _Seen) -> bool:
        return seen.seq > self.seq - REMEMBERED

    def _again(self, envelope: Envelope) -> None:
        """An id that was seen, or a sequence number that has passed."""
        known = self._recent.get(envelope.event_id)
        if known is None or not self._remembers(known):
            if envelope.event_id == f"{envelope.run_id}:{envelope.seq}":
                self.duplicates += 1
            else:
                self._issue("sequence_gap_or_reorder", envelope.seq)
        elif known is envelope or _seen(known) == _seen(envelope):
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
            "plain": {name: _copied(getattr(self, name)) for name in _Plain.__annotations__},
            "rows": [asdict(row) for row in self.rows.values()],
            "interactions": [asdict(row) for row in self.interactions.values()],
            "texts": [message.to_dict() for message in self.texts.values()],
            "issues": dict(self._issues),
            "recent": [[event_id, *_seen(known)] for event_id, known in self._recent.items() if self._remembers(known)],
        }

    @classmethod
    def from_snapshot(cls, snapshot: Mapping[str, Any], language: Language = "en") -> RunView:
        """A view that continues after ``snapshot["seq"]`` as if it had seen everything before.

        A snapshot from the journal replaces a view and so heals a gap. Raises :exc:`BadSnapshot` when it is of another
        form.
        """
        if not isinstance(snapshot, Mapping) or snapshot.get("version") != _SNAPSHOT_VERSION:
            raise BadSnapshot("not a snapshot of this version; read the run from its first envelope instead")
        try:
            # As JSON, because only there rows may be objects and everything else be held to its exact type.
            stored = _snapshot_validator().validate_json(to_json(snapshot), strict=True)
        except ValueError as error:
            raise BadSnapshot("the snapshot is damaged; read the run from its first envelope instead") from error
        view = cls(stored["run_id"], language)
        view.seq = stored["seq"]
        view.standing = stored["standing"]
        for name, value in stored["plain"].items():
            setattr(view, name, value)
        view.rows = {row.activity_id: row for row in stored["rows"]}
        view.interactions = {row.interaction_id: row for row in stored["interactions"]}
        view.texts = {(message.item_id, message.channel): message for message in stored["texts"]}
        view._issues = stored["issues"]
        view._recent = {event_id: _Seen(seq, fingerprint) for event_id, seq, fingerprint in stored["recent"]}
        return view


class _Plain(TypedDict):
    """The attributes of a view that are JSON as they stand."""

    task_id: str | None
    title: str | None
    agent: str | None
    usage: dict[str, Any] | None
    terminal: dict[str, Any] | None
    verdict: dict[str, Any] | None
    duplicates: int
    foreign: int
    artifacts: list[dict[str, Any]]
    sources: list[dict[str, Any]]
    guardrails: list[dict[str, Any]]
    handoffs: list[str]
    responses: NotRequired[list[int]]


class _Snapshot(TypedDict):
    version: int
    run_id: str
    seq: int
    standing: Standing
    plain: _Plain
    rows: list[Activity]
    interactions: list[Interaction]
    texts: list[Message]
    issues: dict[IssueCode, int]
    recent: list[tuple[str, int, str]]


@cache
def _snapshot_validator() -> SchemaValidator:
    return TypeAdapter(_Snapshot).validator  # type: ignore[return-value]


def _copied(value: Any) -> Any:
    return list(value) if isinstance(value, list) else value


def _seen(known: Envelope | _Seen) -> _Seen:
    """An envelope by its place and content, whatever order its keys came in."""
    if isinstance(known, _Seen):
        return known
    content = json.dumps(known, sort_keys=True, separators=(",", ":"), default=repr)
    return _Seen(known.seq, hashlib.sha256(content.encode()).hexdigest()[:32])
