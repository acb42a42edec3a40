"""Where the Redis journal keeps what, and what it keeps of a run beside the envelopes.

Everything of one run carries its id as a hash tag, so that a script stays within one slot. The lists of runs (sorted
sets, newest last) lie elsewhere, so no script keeps them in step: they only say where to look, before the run exists,
and the run itself says what is true.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, NoReturn

from agents_progress.errors import BadEnvelope, JournalUnreadable
from agents_progress.events import Envelope, parse_envelope, parse_known
from agents_progress.journal import rules
from agents_progress.journal.base import Lease, Origin, RunRow
from agents_progress.journal.facts import Facts, stored_facts


@dataclass(frozen=True, slots=True)
class Keys:
    """The names of all keys."""

    prefix: str

    def of(self, run_id: str) -> tuple[str, str]:
        """The hash and the stream of a run."""
        return f"{self.prefix}:{{{run_id}}}:run", f"{self.prefix}:{{{run_id}}}:log"

    def run_of(self, stream: str) -> str:
        """The hash beside a stream."""
        return f"{stream.removesuffix(':log')}:run"

    def exclusive(self, key: str) -> str:
        """The holder of an exclusive key."""
        return f"{self.prefix}:key:{key}"

    @property
    def born(self) -> str:
        """Counts the runs that began."""
        return f"{self.prefix}:born"

    @property
    def due(self) -> str:
        """Runs with a deadline, by the moment at which to look at them, which is never late."""
        return f"{self.prefix}:due"

    @property
    def pauses(self) -> str:
        """The runs that may have a pause stored: each is added before, and the run itself says what is true."""
        return f"{self.prefix}:pauses"

    @property
    def asked(self) -> str:
        """A stream that grows whenever something is asked of an owner."""
        return f"{self.prefix}:asked"

    def index(self, *, task_id: str | None = None, owner: str | None = None, tenant: str | None = None) -> str:
        """The narrowest list that holds all runs of these."""
        for kind, value in (("task", task_id), ("owner", owner), ("tenant", tenant)):
            if value is not None:
                return f"{self.prefix}:{kind}:{value}"
        return f"{self.prefix}:runs"

    def indexes(self, task_id: str, origin: Origin) -> list[str]:
        """Every list that a run is in."""
        named = [self.index(), self.index(task_id=task_id)]
        if origin.owner is not None:
            named.append(self.index(owner=origin.owner))
        if origin.tenant is not None:
            named.append(self.index(tenant=origin.tenant))
        return named


def first_row(first: Envelope, origin: Origin) -> dict[str, Any]:
    """What stays the same in the row of a run, from its first envelope."""
    return {
        "task_id": first.payload.get("task_id", first.run_id),
        "title": first.payload.get("title"),
        "started_at": first.occurred_at,
        "origin": {**asdict(origin), "labels": dict(origin.labels), "versions": dict(origin.versions)},
    }


def stored_row(run_id: str, answer: list[Any]) -> RunRow:
    """A row from what the script ROW says of a run that is there."""
    row, head, updated, stored, sealed, generation, now, *moments = answer
    written, read, deadline = moments
    first, moment, facts = json.loads(row), int(now), facts_of(head, *stored)
    seq, _, written_at = (written or b"0 0").partition(b" ")
    return RunRow(
        run_id=run_id,
        task_id=first["task_id"],
        title=first["title"],
        seq=head,
        standing=facts.standing,
        started_at=first["started_at"],
        updated_at=updated.decode(),
        origin=Origin(**first["origin"]),
        sealed=bool(sealed),
        silent_s=(moment - int(written_at)) / 1000 if int(seq) == head else None,
        unread_s=None if read is None else (moment - int(read)) / 1000,
        generation=generation,
        lease_left_s=None if deadline is None else (int(deadline) - moment) / 1000,
        glance=facts.glance,
    )


def facts_of(head: int, standing: bytes | None, glance: bytes | None) -> Facts:
    """What is kept of a log, from its fields: that of the glance is the number it holds up to, a space and the rest."""
    seq, _, text = (glance or b"0").partition(b" ")
    return stored_facts(head, standing, text or None, int(seq))


def stored_envelope(body: bytes, shown: str) -> Envelope:
    """A stored envelope. Its payload is the reader's to judge, so that a damaged one shows as an issue and hides
    nothing.
    """
    try:
        return parse_known(body) or parse_envelope(body)
    except BadEnvelope as error:
        raise JournalUnreadable(f"{shown} is damaged: {error}") from error


def matches(row: RunRow, task_id: str | None, labels: Mapping[str, str], status: str | None) -> bool:
    """Whether a run is one of those that were asked for."""
    return task_id in {None, row.task_id} and labels.items() <= row.labels.items() and status in {None, row.status}


def right(run_id: str, lease: Lease | None) -> str:
    """A lease as an argument of a script: its generation; none that can be for the lease of another run."""
    if lease is None:
        return ""
    return str(lease.generation if lease.run_id == run_id else -1)


def refuse(word: str, run_id: str) -> NoReturn:
    """Raise what a script's word means."""
    if word == "erased":
        raise rules.erased(run_id)
    if word == "not_found":
        raise rules.not_found(run_id)
    if word == "exists":
        raise rules.exists(run_id)
    if word == "held":
        rules.refuse_lease(run_id, generation=1, deadline=0.0, sealed=False)
    fenced = word == "fenced"
    rules.refuse_write(run_id, generation=int(fenced), sealed=True, lease=None)
    raise AssertionError(word)
