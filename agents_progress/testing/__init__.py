"""What tests of an agent need: a scripted API under the real client, runs played to their end, and what to say of them.

```python
def test_the_total_is_said():
    played = run_script(total, [turn(text("5 EUR"))], "2 EUR plus 3 EUR?")
    assert_ending(played, "succeeded", output="5 EUR", accepted=True)
```

`total` is a function under `@progress`, or an `Agent`; its code stays as it is. The pytest plugin (extra `testing`)
adds the fixtures `scripted_api`, `golden_envelopes` and `frozen_clock`, and the marker `loopback`.

Nothing is loaded before it is used: importing this loads neither the SDK, nor the openai client, nor an HTTP library,
nor pytest.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .answers import Answer as Answer
    from .answers import approve as approve
    from .answers import reject as reject
    from .assertions import assert_ending as assert_ending
    from .assertions import assert_view as assert_view
    from .cuts import DoneTooEarly as DoneTooEarly
    from .cuts import never_done_early as never_done_early
    from .cuts import never_done_early_async as never_done_early_async
    from .golden import GoldenEnvelopes as GoldenEnvelopes
    from .network import NetworkReached as NetworkReached
    from .network import no_network as no_network
    from .played import NotOver as NotOver
    from .played import Played as Played
    from .played import frozen_clock as frozen_clock
    from .played import run_script as run_script
    from .played import run_script_async as run_script_async
    from .plugin import MakeAPI as MakeAPI
    from .scripted import ScriptedAPI as ScriptedAPI
    from .scripted import ScriptNotPlayed as ScriptNotPlayed
    from .steps import cancel as cancel
    from .steps import cut as cut
    from .steps import hang_up as hang_up
    from .steps import pause as pause
    from .steps import reached as reached
    from .steps import wait as wait
    from .turns import Turn as Turn
    from .turns import Usage as Usage
    from .turns import call as call
    from .turns import completed as completed
    from .turns import connection_error as connection_error
    from .turns import error as error
    from .turns import event as event
    from .turns import failed as failed
    from .turns import http_error as http_error
    from .turns import incomplete as incomplete
    from .turns import message as message
    from .turns import raw_item as raw_item
    from .turns import raw_turn as raw_turn
    from .turns import reasoning as reasoning
    from .turns import refusal as refusal
    from .turns import stopped as stopped
    from .turns import text as text
    from .turns import turn as turn

_NAMES = {
    "answers": ("Answer", "approve", "reject"),
    "assertions": ("assert_ending", "assert_view"),
    "cuts": ("DoneTooEarly", "never_done_early", "never_done_early_async"),
    "golden": ("GoldenEnvelopes",),
    "network": ("NetworkReached", "no_network"),
    "played": ("NotOver", "Played", "frozen_clock", "run_script", "run_script_async"),
    "plugin": ("MakeAPI",),
    "scripted": ("ScriptNotPlayed", "ScriptedAPI"),
    "steps": ("cancel", "cut", "hang_up", "pause", "reached", "wait"),
    "turns": (
        *("Turn", "Usage", "call", "completed", "connection_error", "error", "event", "failed", "http_error"),
        *("incomplete", "message", "raw_item", "raw_turn", "reasoning", "refusal", "stopped", "text", "turn"),
    ),
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [  # noqa: PLE0604 - computed from the one table
    *_HOMES
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
