"""What tokens cost, where the application says so, and how a cost is written and read.

Amounts are decimal from end to end: no float ever touches them. A cost never claims too little: what is not known of it
makes it "at least", and where nothing is known there is none. It is that of tokens alone: what a provider charges for
each call of a hosted tool is not in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal, InvalidOperation
from typing import Any, Final

from typing_extensions import TypedDict

from agents_progress.errors import UsageError

_EXACT: Final = Context(prec=80)
"""Digits enough for any price and count, whatever the application made of its own context."""

_DATED = re.compile(r"(?P<name>.+)-(?:\d{4}-\d{2}-\d{2}|\d{8})", re.ASCII | re.DOTALL)
_CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)
_AMOUNT = re.compile(r"[0-9]{1,40}(?:\.[0-9]{1,40})?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Price:
    """What one million tokens of a model cost, as a ``Decimal`` or a text such as ``"1.25"``. A float is refused.

    ``cached`` is the price of input tokens that were read from the provider's cache; None makes it that of ``input``.
    """

    input: Decimal | str
    output: Decimal | str
    cached: Decimal | str | None = None
    currency: str = "USD"

    def __post_init__(self) -> None:
        for name in ("input", "output", "cached"):
            value = getattr(self, name)
            if name != "cached" or value is not None:
                object.__setattr__(self, name, _checked(name, value))
        if not isinstance(self.currency, str) or not _CURRENCY.fullmatch(self.currency):
            raise UsageError(f"currency {self.currency!r:.20} is no code of three letters, such as 'USD'")

    def of(self, *, input_tokens: int, output_tokens: int, cached_tokens: int) -> Decimal:
        """The price of one response, to the last digit. Cached tokens are some of the input."""
        cached = min(cached_tokens, input_tokens)
        total = Decimal(0)
        for tokens, price in (
            (input_tokens - cached, self.input),
            (cached, self.input if self.cached is None else self.cached),
            (output_tokens, self.output),
        ):
            total = plus(total, _EXACT.multiply(tokens, Decimal(price)))
        return _EXACT.scaleb(total, -6)


def _checked(name: str, value: object) -> Decimal:
    if not isinstance(value, Decimal | str):
        raise UsageError(f"{name} {value!r:.40} is no price; give a Decimal or a text such as '1.25', never a float")
    try:
        price = Decimal(value)
    except InvalidOperation:
        price = Decimal("NaN")
    if not (price.is_finite() and 0 <= price < 10**9 and price == price.quantize(Decimal("1e-12"), context=_EXACT)):
        raise UsageError(f"{name} {str(value)!r:.40} is no price per million tokens; give one such as '1.25'")
    return price


def checked_prices(prices: Mapping[str, Price]) -> None:
    """Raise :exc:`UsageError` unless these are prices by the name of a model, all in one currency."""
    for name, price in prices.items():
        if not isinstance(name, str) or not isinstance(price, Price):
            raise UsageError(f"prices maps the name of a model to a Price, not {name!r:.80} to {price!r:.80}")
    if len({price.currency for price in prices.values()}) > 1:
        raise UsageError("prices are of several currencies, which cannot be added up; give them in one")


def price_of(prices: Mapping[str, Price], model: str | None) -> Price | None:
    """The price of a model: under its own name, else under that without the date of a snapshot; None when unknown.

    So `gpt-5-2026-01-01` costs what `gpt-5` does, and `gpt-5-mini` never does.
    """
    if model is None:
        return None
    dated = _DATED.fullmatch(model)
    return prices.get(model) or (prices.get(dated["name"]) if dated else None)


def plus(amount: Decimal, more: Decimal) -> Decimal:
    """The sum, to the last digit."""
    return _EXACT.add(amount, more)


class Cost(TypedDict):
    """What a run cost so far. ``amount`` is a decimal number. ``at_least``: some is not known, it may be more."""

    amount: str
    currency: str
    at_least: bool


def cost(amount: Decimal, currency: str, *, at_least: bool) -> Cost:
    """A cost as it is written: without an exponent or zeros at the end."""
    text = f"{amount:f}"
    return Cost(amount=text.rstrip("0").rstrip(".") if "." in text else text, currency=currency, at_least=at_least)


def cost_of(usage: Mapping[str, Any] | None) -> Cost | None:
    """The cost that the payload of a `usage.updated` carries; None where it carries none that can be read."""
    match usage:
        case {"x": {"cost": {"amount": str(amount), "currency": str(currency), "at_least": bool(at_least)}}}:
            readable = _AMOUNT.fullmatch(amount) and _CURRENCY.fullmatch(currency)
            return Cost(amount=amount, currency=currency, at_least=at_least) if readable else None
    return None


def amount_text(cost: Cost) -> str:
    """A cost in few cells: four decimals, rounded up, and a plus where it may be more."""
    shown = Decimal(cost["amount"]).quantize(Decimal("0.0001"), ROUND_CEILING, _EXACT)
    return f"{shown:f}{'+' if cost['at_least'] else ''} {cost['currency']}"
