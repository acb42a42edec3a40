"""Arguments that are made up for a function fit it, so that a command with them works as it is printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

import pytest
from pydantic import AfterValidator, BaseModel, Field

from agents_progress.arguments import Arguments


class Size(Enum):
    SMALL = "s"


class Order(BaseModel):
    item: str
    size: Size
    count: int = Field(ge=3)
    note: str | None = None


@dataclass
class Point:
    x: float
    y: float


def nothing() -> None: ...
def text(question: str, polite: bool = True) -> None: ...
def plain(n: int, f: float, b: bool, nothing: None, anything: Any) -> None: ...
def many(names: list[str], two: Annotated[list[int], Field(min_length=2)], pair: tuple[int, str]) -> None: ...
def chosen(mode: Literal["fast", "slow"], either: int | str, maybe: str | None) -> None: ...
def made(order: Order, point: Point, by_name: dict[str, Order]) -> None: ...
def formal(day: date, id: UUID, shown: Annotated[str, Field(examples=["A-1"], pattern="A-.")]) -> None: ...
def odd(word: Annotated[str, Field(pattern="^[0-9]{9}$")]) -> None: ...
def own(word: Annotated[str, AfterValidator(lambda word: 1 / 0)]) -> None: ...


MADE_UP: list[tuple[Callable[..., None], Any]] = [
    (nothing, {}),
    (text, {"question": "hello"}),
    (plain, {"n": 1, "f": 1, "b": True, "nothing": None, "anything": "hello"}),
    (many, {"names": [], "two": [1, 1], "pair": [1, "hello"]}),
    (chosen, {"mode": "fast", "either": 1, "maybe": "hello"}),
    (made, {"order": {"item": "hello", "size": "s", "count": 3}, "point": {"x": 1, "y": 1}, "by_name": {}}),
    (formal, {"day": "2026-01-31", "id": "12345678-1234-4234-8234-123456789abc", "shown": "A-1"}),
    (odd, None),
    (own, None),
]


@pytest.mark.parametrize(("function", "example"), MADE_UP, ids=[function.__name__ for function, _ in MADE_UP])
def test_what_is_made_up_is_all_that_a_call_needs_and_fits(function: Callable[..., None], example: Any) -> None:
    arguments = Arguments("it", function)
    assert arguments.example() == example
    if example is not None:
        function(*(bound := arguments.bind(example)).args, **bound.kwargs)
