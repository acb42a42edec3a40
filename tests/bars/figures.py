"""What a bar prints: figures, and whether each is within its bar."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence


class Figures:
    """Collects what a bar found; :attr:`code` is its exit code."""

    def __init__(self, bar: str) -> None:
        self.bar = bar
        self.faults: list[str] = []
        self._began = time.monotonic()

    def say(self, text: str) -> None:
        """A figure that has no bar."""
        print(f"{self.bar}: {text}", flush=True)

    def hold(self, holds: bool, text: str) -> None:
        """A figure that has one."""
        if not holds:
            self.faults.append(text)
        print(f"{self.bar}: {text}{'' if holds else '   <-- OVER THE BAR'}", flush=True)

    def end(self) -> int:
        """The exit code, after the last line."""
        word = "holds" if not self.faults else f"FAILS ({len(self.faults)})"
        print(f"{self.bar}: {word}, {time.monotonic() - self._began:.0f} s", flush=True)
        return 1 if self.faults else 0


def share(values: Sequence[float], part: float) -> float:
    """The value below which this part of the values lies: 0.99 for the p99."""
    return sorted(values)[min(int(len(values) * part), len(values) - 1)] if values else 0.0


def spread(values: Sequence[float], unit: str = "ms", factor: float = 1000.0) -> str:
    """Median, p99 and the largest, in words."""
    if not values:
        return "none"
    figures = statistics.median(values), share(values, 0.99), max(values)
    median, p99, most = (f"{value * factor:.1f}" for value in figures)
    return f"median {median}, p99 {p99}, max {most} {unit}"
