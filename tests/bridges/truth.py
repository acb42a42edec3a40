"""Whether what a user sees is true: the front end against our own view of the same log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from agents_progress.messages import Status
from agents_progress.view import RunView

from .clients import Screen

ENDED: Final[Mapping[Status, frozenset[str]]] = {
    "done": frozenset({"success"}),
    "waiting": frozenset({"asking", "error"}),
    "cancelled": frozenset({"stopped", "error"}),
    "rejected": frozenset({"error"}),
    "failed": frozenset({"error"}),
    "incomplete": frozenset({"error"}),
    "unknown": frozenset({"error"}),
    "checking": frozenset({"error"}),
}
"""What a front end may show of a run that has come to rest, by its status. An error is never wrong, but for `done`."""
SETTLED: Final = frozenset({"returned", "failed", "rejected"})
"""The states of a call that front ends have; one of ours that they lack is a failed call."""


def lies(screen: Screen, views: Sequence[RunView]) -> list[str]:
    """What is shown that is not so. The views are those of the runs of the conversation, read after the screen."""
    ours = [message.text for view in views for message in view.messages if message.channel == "answer"]
    status = views[-1].status if views else None
    found = []
    if "success" in screen.states and status != "done":
        found.append(f"it says success of a run that is {status}")
    if not "".join(ours).startswith("".join(screen.texts)):
        found.append(f"it shows {[*screen.texts]} of {ours}")
    calls = {call: state for view in views for call, state in view.tools.items()}
    for call, shown in screen.tools:
        state = calls.get(call)
        if shown == "returned" and state != "returned":
            found.append(f"it shows that the call {call} returned, which is {state}")
    return found


def shortfalls(screen: Screen, views: Sequence[RunView]) -> list[str]:
    """What a front end at rest does not show, though it is so."""
    view = views[-1]
    ours = [message.text for each in views for message in each.messages if message.channel == "answer"]
    found = []
    if screen.state not in ENDED.get(view.status, frozenset()):
        found.append(f"it says {screen.state} of a run that is {view.status}")
    if "".join(screen.texts) != "".join(ours):
        found.append(f"it shows {[*screen.texts]}, not {ours}")
    if screen.state != "error" and screen.sentence != view.message:
        found.append(f"it says {screen.sentence!r} of a run of which we say {view.message!r}")
    settled = {call: state for each in views for call, state in each.tools.items() if state in SETTLED}
    for call, state in settled.items():
        if dict(screen.tools).get(call) != state:
            found.append(f"it shows that the call {call} is {dict(screen.tools).get(call)}, which {state}")
    return found
