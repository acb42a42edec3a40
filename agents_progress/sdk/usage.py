"""Token counts of a run: what arrived is added up, what did not arrive is null, and never zero."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

_COUNTS: Final = ("input_tokens", "output_tokens", "total_tokens")
_DETAILS: Final = (
    ("cached_tokens", "input_tokens_details", "cached_tokens"),
    ("reasoning_tokens", "output_tokens_details", "reasoning_tokens"),
)


@dataclass(slots=True)
class Usage:
    """Model calls that were begun, and the counts of those that reported."""

    begun: int = 0
    ended: int = 0
    reported: int = 0
    counts: dict[str, int | None] = field(
        default_factory=lambda: dict.fromkeys([*_COUNTS, *(name for name, _, _ in _DETAILS)])
    )

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
        """The payload of `usage.updated` as things stand."""
        missing = self.begun - self.reported
        status = "reported" if not missing else "partial" if self.reported else "unavailable"
        return {"requests": self.begun or None, **self.counts, "status": status}
