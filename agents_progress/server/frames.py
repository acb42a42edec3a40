"""Encoded frames: joined for writing, and the newest ones of a run kept for all of its readers."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final, NamedTuple, TypeAlias

from pydantic_core import from_json, to_json

from agents_progress.events import Envelope
from agents_progress.sse import encode_envelope

WRITE_BYTES: Final = 32 * 1024
"""Frames are joined up to this size, in bytes. A frame that is larger is a chunk by itself."""
JOINS: Final = 8
"""Places after which joined frames are remembered; readers who are near are at the same two or three."""


class Chunk(NamedTuple):
    """Frames joined for one write, and the number of the last one."""

    frames: bytes
    seq: int


Page: TypeAlias = tuple[Chunk, ...]

_DATA: Final = b"\ndata: "
_in_order: Final = itemgetter(*Envelope._fields)


def snapshot_frame(snapshot: Mapping[str, Any]) -> bytes:
    """The frame of a :meth:`RunView.snapshot`, whose id is the cursor to go on from."""
    # JSON has no line ends of its own; looking for them would take most of the time that a resume may take.
    return b"id: %d\nevent: snapshot\ndata: %b\n\n" % (snapshot["seq"], to_json(snapshot, inf_nan_mode="null"))


def page_of(envelopes: Sequence[Envelope], after_seq: int) -> Page:
    """What was read after a cursor, encoded."""
    return tuple(_chunks([encode_envelope(envelope) for envelope in envelopes], after_seq))


def envelopes_of(frames: bytes) -> Iterator[Envelope]:
    """What was encoded here, for the few readers who need more than bytes. Cheaper than keeping all of it twice."""
    # JSON has no line ends of its own; read as one list it costs half of what it costs one by one.
    texts = [frame.partition(_DATA)[2] for frame in frames.split(b"\n\n") if frame]
    for fields in from_json(b"[%b]" % b",".join(texts)):
        yield Envelope(*_in_order(fields))


def is_snapshot(frames: bytes) -> bool:
    """Whether this is the frame of a snapshot, which is always alone."""
    return b"\nevent: " in frames[:40]


def _chunks(frames: Sequence[bytes], seq: int) -> Iterator[Chunk]:
    """The frames that follow a number, joined into as many writes as they need."""
    start = size = 0
    for place, frame in enumerate(frames):
        if size and size + len(frame) > WRITE_BYTES:
            yield Chunk(b"".join(frames[start:place]), seq + place)
            start, size = place, 0
        size += len(frame)
    if size:
        yield Chunk(b"".join(frames[start:]), seq + len(frames))


class Kept:
    """The newest frames of a run, at most ``most`` of them and ``most_bytes``; over either, the older half goes.

    ``first`` and ``head`` are the numbers of the oldest frame that is kept and of the newest one. Before :meth:`begin`
    both are out of reach.
    """

    def __init__(self, most: int, most_bytes: int) -> None:
        self.first = self.head = sys.maxsize
        self._most = most
        self._most_bytes = most_bytes
        self._frames: list[bytes] = []
        self._bytes = 0
        self._joined: dict[int, Chunk] = {}

    @property
    def begun(self) -> bool:
        """Whether it is known where the run is."""
        return self.head < sys.maxsize

    def begin(self, seq: int) -> None:
        """Keep what comes after a number, and nothing else."""
        self._frames.clear()
        self._joined.clear()
        self._bytes = 0
        self.first, self.head = seq + 1, seq

    def add(self, envelope: Envelope) -> None:
        """Encode the next envelope, once for everybody."""
        frame = encode_envelope(envelope)
        self._frames.append(frame)
        self._bytes += len(frame)
        self.head = envelope.seq
        self._joined.clear()
        if len(self._frames) > self._most or self._bytes > self._most_bytes:
            self._halve()

    def after(self, seq: int) -> Chunk:
        """The next frames after a cursor that is not before ``first - 1``, joined once for all who are there."""
        chunk = self._joined.get(seq)
        if chunk is None:
            if len(self._joined) >= JOINS:
                self._joined.clear()
            frames = self._frames[max(seq + 1 - self.first, 0) :]
            chunk = self._joined[seq] = next(_chunks(frames, seq), Chunk(b"", seq))
        return chunk

    def _halve(self) -> None:
        """Seldom, and many at once: a list serves then, whose slices cost nothing."""
        gone = 0
        while len(self._frames) - gone > self._most // 2 or self._bytes > self._most_bytes // 2:
            self._bytes -= len(self._frames[gone])
            gone += 1
        del self._frames[:gone]
        self.first += gone
