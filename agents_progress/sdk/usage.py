"""Token counts of a run: what arrived is added up, what did not arrive is null, and never zero."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

_COUNTS: Final = ("input_tokens", "output_tokens", "total_tokens")
_DETAILS: Final = (
    ("cached_tokens", "input_tokens_details", "cached_tokens"),
    ("reasoning_tokens", "output_tokens_details", "reasoning_tokens"),
)


@dataclass(slots=True)
class Usage:
    """Model calls that were begun, and the counts of those that reported; ``nested`` are those of runs inside."""

    begun: int = 0
    ended: int = 0
    reported: int = 0
    counts: dict[str, int | None] = field(
        default_factory=lambda: dict.fromkeys([*_COUNTS, *(name for name, _, _ in _DETAILS)])
    )
    nested: list[Usage] = field(default_factory=list)

    def add(self, usage: Any) -> None:
        """Take in the `usage` of one ended response, which may be missing."""
        self.ended += 1
        self.begun = max(self.begun, self.ended)
        if usage is None:
            return
        self.reported += 1
        for name in _COUNTS:
            self._add(name, getattr(usage, name, None))
        for name, group, detail in _DETAILS:
            self._add(name, getattr(getattr(usage, group, None), detail, None))

    def _add(self, name: str, count: Any) -> None:
        if isinstance(count, int) and count >= 0:
            self.counts[name] = (self.counts[name] or 0) + count

    def payload(self) -> dict[str, Any]:
        """The payload of `usage.updated` as things stand, nested runs included."""
        every = list(self._every())
        begun, reported = sum(usage.begun for usage in every), sum(usage.reported for usage in every)
        counts: dict[str, int | None] = {}
        for name in self.counts:
            known = [count for usage in every if (count := usage.counts[name]) is not None]
            counts[name] = sum(known) if known else None
        status = "reported" if begun == reported else "partial" if reported else "unavailable"
        return {"requests": begun or None, **counts, "status": status}

    def _every(self) -> Iterator[Usage]:
        yield self
        for usage in self.nested:
            yield from usage._every()  # noqa: SLF001 - of its own kind
