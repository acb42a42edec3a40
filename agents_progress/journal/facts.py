"""What a journal keeps of a log so that nobody has to read it: where the run stands, and what a list shows of it.

Two folds, stored apart: the standing is read by every release, and decides; the glance is for the eye. A release that
does not know the glance goes on with the log and leaves it behind, so each is stored with the number of the envelope up
to which it holds. One that is behind is not known, and stays so: what it missed cannot be made good without the log.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from pydantic_core import to_json

from agents_progress import glance as glances
from agents_progress import standing as standings
from agents_progress.events import Envelope
from agents_progress.glance import Glance
from agents_progress.messages import Status
from agents_progress.standing import Standing

TELLING: Final = frozenset(standings.UPDATES) | frozenset(glances.UPDATES)
"""Types that change either; most envelopes are of none of them."""


@dataclass(frozen=True, slots=True)
class Facts:
    """Neither part is ever changed: :meth:`after` makes new ones."""

    standing: Standing = field(default_factory=Standing)
    glance: Glance | None = field(default_factory=Glance)

    def after(self, envelopes: Sequence[Envelope]) -> Facts:
        """The facts of the log with more envelopes; the same object when these change nothing."""
        if self.standing.moved and not any(envelope.type in TELLING for envelope in envelopes):
            return self
        standing, glance = self.standing.copy(), self.glance and self.glance.copy()
        standing.observe_all(envelopes)
        if glance is not None:
            glance.observe_all(envelopes)
        return Facts(standing, glance)

    @property
    def standing_text(self) -> str:
        """The standing as it is stored."""
        return to_json(self.standing.to_dict()).decode()

    @property
    def glance_text(self) -> str | None:
        """The glance as it is stored; None when it is not known."""
        return None if self.glance is None else to_json(self.glance.to_dict()).decode()


def stored_facts(head: int, standing: str | bytes | None, glance: str | bytes | None, glance_seq: int | None) -> Facts:
    """The facts of a log that ends at ``head``, from what is stored; the glance holds up to ``glance_seq``."""
    if not head:
        return Facts()
    known = glance if glance_seq == head else None
    return Facts(Standing(**json.loads(standing or "{}")), None if known is None else _glance(known))


@lru_cache(1024)
def status_of(standing: str | bytes) -> Status:
    """The status of a stored standing; most are one of a few texts."""
    return Standing(**json.loads(standing)).status


def _glance(text: str | bytes) -> Glance | None:
    try:
        return Glance(**json.loads(text))
    except TypeError:  # that of a later release, which knows more
        return None
