"""Masks: texts and patterns that never leave, found in whole texts and in text that arrives in pieces."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any, Final

MASKED: Final = "[masked]"


class Masks:
    """Replaces every literal and every match of a pattern by ``[masked]``.

    Each compiled pattern keeps its own flags and groups, so it is applied by itself; literals are one pattern, longest
    first.
    ``hold`` is how many characters of a growing text are kept back, at least the length of the longest literal.
    """

    def __init__(self, masks: Collection[str | re.Pattern[str]], hold: int) -> None:
        literals = sorted({mask for mask in masks if isinstance(mask, str) and mask}, key=len, reverse=True)
        self._patterns = [mask for mask in masks if isinstance(mask, re.Pattern)]
        if literals:
            self._patterns.insert(0, re.compile("|".join(map(re.escape, literals))))
        self.hold = max(hold, len(literals[0]) if literals else 0)

    def __bool__(self) -> bool:
        return bool(self._patterns)

    def text(self, text: str) -> str:
        """A text with every masked part replaced."""
        for pattern in self._patterns:
            text = pattern.sub(MASKED, text)
        return text

    def free(self, value: Any) -> Any:
        """A free value, masked through and through, the names of its fields included."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.text(name): self.free(part) for name, part in value.items()}
        if isinstance(value, list):
            return [self.free(part) for part in value]
        return value

    def safe_cut(self, text: str) -> int:
        """How much of a growing text no later character can turn into a secret."""
        cut = max(len(text) - self.hold, 0)
        moved = True
        while moved:
            # A match across the cut must stay whole, and one at the very end may still grow.
            crossing = [start for start, end in self._spans(text) if start < cut and (end > cut or end == len(text))]
            moved = bool(crossing)
            cut = min(crossing, default=cut)
        return cut

    def _spans(self, text: str) -> Iterator[tuple[int, int]]:
        for pattern in self._patterns:
            for match in pattern.finditer(text):
                yield match.span()
