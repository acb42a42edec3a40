"""What a scripted stream does at some point instead of sending a frame: it waits, breaks, ends, or somebody cancels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

if TYPE_CHECKING:
    import asyncio

    from agents_progress.payloads import CancelMode

JSON: TypeAlias = dict[str, Any]


@dataclass(frozen=True)
class Pause:
    """The stream is silent for `seconds`."""

    seconds: float


@dataclass(frozen=True)
class Wait:
    """The stream is silent until `event` is set."""

    event: asyncio.Event


@dataclass(frozen=True)
class Reached:
    """The stream sets `event` when it gets here, after the frames before it were taken."""

    event: asyncio.Event


@dataclass(frozen=True)
class Cut:
    """The connection breaks here."""

    kind: Literal["read", "protocol", "timeout"] = "read"


@dataclass(frozen=True)
class HangUp:
    """The body ends here, cleanly, whatever should have followed."""


@dataclass(frozen=True)
class Cancel:
    """Somebody asks the run to stop here; the stream goes on as long as it is read."""

    mode: CancelMode
    actor: str | None


Delivery: TypeAlias = Pause | Wait | Reached | Cut | HangUp
"""What the connection itself does."""
Step: TypeAlias = Delivery | Cancel
Frame: TypeAlias = JSON | str


@dataclass(frozen=True)
class Stop:
    """Where a stream stops, whatever should have followed: after so many frames, in the way of `step`."""

    after: int
    step: Cut | HangUp

    def of(self, frames: Iterator[Frame | Step]) -> Iterator[Frame | Step]:
        """The frames and steps until there, and how it stops."""
        left = self.after
        for frame in frames:
            if isinstance(frame, dict | str):
                left -= 1
                if left < 0:
                    break
            yield frame
        yield self.step


def pause(seconds: float) -> Pause:
    """The stream is silent for `seconds`."""
    return Pause(seconds)


def wait(gate: asyncio.Event) -> Wait:
    """The stream is silent until somebody sets `gate`."""
    return Wait(gate)


def reached(signal: asyncio.Event) -> Reached:
    """The stream sets `signal` when it gets to this point."""
    return Reached(signal)


def cut(kind: Literal["read", "protocol", "timeout"] = "read") -> Cut:
    """The connection breaks here, with a read error, a protocol error (body cut short) or a read timeout."""
    return Cut(kind)


def hang_up() -> HangUp:
    """The body ends here as if all had been said: no terminal event, no error."""
    return HangUp()


def cancel(mode: CancelMode = "immediate", actor: str | None = None) -> Cancel:
    """Somebody asks the run that `run_script` plays to stop, when its stream gets to this point."""
    return Cancel(mode, actor)
