"""One run in the events of another protocol: the stream of one reader, and where in it a reader was.

A frame has the id ``{run_id}:{seq}.{n}``: the n-th event of that envelope; or ``{run_id}:{seq}+{n}``: the n-th of those
that brought the reader to where the run was. Two comments tell a reader that looks for them what no protocol here can:
``over``, there is no more, and ``bye``, this server cannot go on, and what follows is for those who do not come back.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from agents_progress import telemetry
from agents_progress.bridges.base import Bridge, Cut, Event, Projection
from agents_progress.server.feeds import Ending, Hub
from agents_progress.server.frames import envelopes_of, is_snapshot
from agents_progress.server.stream import HEADERS, EventStream
from agents_progress.sse import comment
from agents_progress.view import RunView

logger = logging.getLogger("agents_progress")

OVER: Final = comment("over")
BYE: Final = comment("bye")
CUTS: Final[dict[Ending, Cut]] = {
    Ending.SEALED: "unknown",
    Ending.ERASED: "erased",
    Ending.BYE: "try_again",
    Ending.CLOSED: "forbidden",
}
"""Why a stream is cut that had no ending yet. A log that is closed after a success was `not_checked`."""

_CURSOR = re.compile(r"([A-Za-z0-9._-]{1,64}):([0-9]{1,15})([.+])([0-9]{1,9})", re.ASCII)


class Cursor(NamedTuple):
    """The last event that a reader had: the n-th of an envelope, or of those with which it ``joined`` after one."""

    run_id: str
    seq: int
    joined: bool = True
    events: int = 0

    @property
    def joins_at(self) -> int:
        """After which envelope whoever goes on from here has to join."""
        return self.seq if self.joined else max(self.seq - 1, 0)

    @property
    def text(self) -> str:
        """As it travels, with the last frame and, for a reader that has none yet, in the header ``x-cursor``."""
        return f"{self.run_id}:{self.seq}{'+' if self.joined else '.'}{self.events}"


def cursor_of(text: str) -> Cursor | None:
    """The id of a frame, None for what is none."""
    found = _CURSOR.fullmatch(text)
    if found is None:
        return None
    run_id, seq, sign, events = found.groups()
    return Cursor(run_id, int(seq), sign == "+", int(events))


class BridgeStream(EventStream):
    """What one reader sees of a run through a bridge, from ``view`` on, or after ``cursor``, for which ``view``
    is the one at :attr:`Cursor.joins_at`. ``earlier`` is that of :meth:`Projection.join`, the other arguments are those
    of :class:`EventStream`.

    It ends with a terminal event of the protocol, unless the connection breaks: readers take silence for success.
    """

    def __init__(
        self,
        hub: Hub,
        bridge: Bridge,
        projection: Projection,
        view: RunView,
        cursor: Cursor | None = None,
        earlier: Sequence[RunView] = (),
        **more: Any,
    ) -> None:
        super().__init__(hub, view.run_id, view.seq, **more)
        self.init_headers({**HEADERS, **bridge.headers, "x-cursor": (cursor or Cursor(view.run_id, view.seq)).text})
        self._bridge = bridge
        self._projection = projection
        self._views: tuple[RunView, Sequence[RunView]] | None = view, earlier
        self._name = f"id: {view.run_id}:".encode()
        self._succeeded = view.standing.outcome == "succeeded"
        self._joined_before = cursor is not None and not cursor.joined
        self._had = cursor.events if cursor else 0

    def opening(self) -> bytes:
        """The events that bring the reader to where it joins, those it had already left out."""
        assert self._views is not None
        (view, earlier), self._views = self._views, None
        try:
            events = self._projection.join(view, earlier)
            return self._ended() if self._joined_before else self._framed(events, b"%d+" % view.seq)
        except Exception as error:  # noqa: BLE001 - whatever it was, no reader may take it for success
            return self._failed(error)

    def said(self, frames: bytes) -> bytes:
        """The events of the next envelopes."""
        if is_snapshot(frames):  # what this reader missed is not kept any more
            return self.closing(Ending.BYE)
        told = bytearray()
        try:
            for envelope in envelopes_of(frames):
                if envelope.type == "run.ended":
                    self._succeeded = envelope.payload["outcome"] == "succeeded"
                told += self._framed(self._projection.feed(envelope), b"%d." % envelope.seq)
                if self.over:
                    break
        except Exception as error:  # noqa: BLE001 - as above
            told += self._failed(error)
        return bytes(told)

    def closing(self, ending: Ending | None) -> bytes:
        """An ending that is none of the run's, unless there was one."""
        if ending is None or self.over:
            return b""
        code = "not_checked" if ending is Ending.SEALED and self._succeeded else CUTS[ending]
        return (BYE if ending is Ending.BYE else b"") + self._cut(code)

    def _framed(self, events: Sequence[Event], place: bytes) -> bytes:
        had, self._had = self._had, 0
        frame, told = self._bridge.frame, b""
        for n, event in enumerate(events, 1):
            if n > had:
                told += b"%b%b%d\n%b" % (self._name, place, n, frame(event))
        return told + self._ended() if self._projection.over else told

    def _ended(self) -> bytes:
        if not self._projection.over or self.over:
            return b""
        self.over = True
        return self._bridge.last + OVER

    def _cut(self, code: Cut) -> bytes:
        self.over = True
        return b"".join(map(self._bridge.frame, self._projection.cut(code))) + self._bridge.last + OVER

    def _failed(self, error: Exception) -> bytes:
        logger.error(
            "agents_progress: run %s cannot be told through %s: %s",
            self.run_id,
            self._bridge.name,
            type(error).__name__,
            extra=telemetry.about(self.run_id),
        )
        return self._cut("internal")
