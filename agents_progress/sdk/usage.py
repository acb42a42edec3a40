"""Token counts of a run, and their cost: what arrived is added up, what did not arrive is null, and never zero."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Final, TypeGuard

from agents_progress.prices import Cost, Price, cost, plus, price_of

_COUNTS: Final = ("input_tokens", "output_tokens", "total_tokens")
_DETAILS: Final = (
    ("cached_tokens", "input_tokens_details", "cached_tokens"),
    ("reasoning_tokens", "output_tokens_details", "reasoning_tokens"),
)


@dataclass(slots=True)
class Usage:
    """Model calls that were begun, and the counts of those that reported; ``nested`` are those of runs inside.

    ``amount`` is what the ``priced`` of them cost. ``doubts`` counts what may have cost something more: a response that
    was given up and tried again, and one that wrote to a cache, for which there is no price.
    """

    prices: Mapping[str, Price] = field(default_factory=dict)
    begun: int = 0
    ended: int = 0
    reported: int = 0
    doubts: int = 0
    priced: int = 0
    amount: Decimal = Decimal(0)
    counts: dict[str, int | None] = field(
        default_factory=lambda: dict.fromkeys([*_COUNTS, *(name for name, _, _ in _DETAILS)])
    )
    nested: list[Usage] = field(default_factory=list)

    def add(self, usage: Any, model: Any = None) -> None:
        """Take in the `usage` of one ended response, which may be missing, and the name of its model."""
        self.ended += 1
        self.begun = max(self.begun, self.ended)
        if usage is None:
            return
        self.reported += 1
        for name in _COUNTS:
            self._add(name, getattr(usage, name, None))
        for name, group, detail in _DETAILS:
            self._add(name, getattr(getattr(usage, group, None), detail, None))
        self._price(usage, price_of(self.prices, model if isinstance(model, str) else None))

    def _add(self, name: str, count: Any) -> None:
        if _is_count(count):
            self.counts[name] = (self.counts[name] or 0) + count

    def _price(self, usage: Any, price: Price | None) -> None:
        details = getattr(usage, "input_tokens_details", None)
        into, out = getattr(usage, "input_tokens", None), getattr(usage, "output_tokens", None)
        cached, written = (getattr(details, name, None) for name in ("cached_tokens", "cache_write_tokens"))
        if price is None or not (_is_count(into) and _is_count(out)):
            return
        known = cached if _is_count(cached) else 0
        self.amount = plus(self.amount, price.of(input_tokens=into, output_tokens=out, cached_tokens=known))
        self.priced += 1
        self.doubts += bool(written)

    def payload(self) -> dict[str, Any]:
        """The payload of `usage.updated` as things stand, nested runs included."""
        every = list(self._every())
        begun, reported = sum(usage.begun for usage in every), sum(usage.reported for usage in every)
        counts: dict[str, int | None] = {}
        for name in self.counts:
            known = [count for usage in every if (count := usage.counts[name]) is not None]
            counts[name] = sum(known) if known else None
        status = "reported" if begun == reported else "partial" if reported else "unavailable"
        payload = {"requests": begun or None, **counts, "status": status}
        spent = self._cost(every, begun)
        return payload if spent is None else {**payload, "x": {"cost": spent}}

    def _cost(self, every: Sequence[Usage], begun: int) -> Cost | None:
        priced = sum(usage.priced for usage in every)
        if not priced:
            return None
        amount = Decimal(0)
        for usage in every:
            amount = plus(amount, usage.amount)
        currency = next(iter(self.prices.values())).currency
        return cost(amount, currency, at_least=priced < begun + sum(usage.doubts for usage in every))

    def _every(self) -> Iterator[Usage]:
        yield self
        for usage in self.nested:
            yield from usage._every()  # noqa: SLF001 - of its own kind


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and value >= 0
