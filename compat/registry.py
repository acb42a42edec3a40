"""The table of scenarios: each one's name, its code, and how the run that it starts ends in truth."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal

from .stage import Stage

Outcome = Literal["succeeded", "paused", "cancelled", "failed", "incomplete", "none"]
Play = Callable[[Stage], Awaitable[None]]


@dataclass(frozen=True)
class Scenario:
    """One situation. `outcome` is that of the last run it starts; "none" means that this run never ends."""

    name: str
    outcome: Outcome
    play: Play
    note: str = ""


SCENARIOS: dict[str, Scenario] = {}


def scenario(outcome: Outcome, note: str = "") -> Callable[[Play], Play]:
    """Enter a function into the table under its own name."""

    def enter(play: Play) -> Play:
        name = getattr(play, "__name__", "")
        if name in SCENARIOS:
            raise ValueError(f"two scenarios are called {name}")
        SCENARIOS[name] = Scenario(name, outcome, play, note)
        return play

    return enter
