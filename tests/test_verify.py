"""Acceptance: digests, published texts, the ready-made verifiers, and what is never a verdict."""

from __future__ import annotations

import asyncio
import contextvars
import datetime as dt
import functools
import hashlib
import json
import threading
from dataclasses import dataclass
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agents_progress.errors import UsageError
from agents_progress.verify import (
    NotPublishable,
    NoVerdict,
    Verdict,
    all_of,
    check_name,
    digest,
    equals,
    has_output,
    judge,
    matches,
    publish,
    schema,
)


class Total(BaseModel):
    amount: float
    currency: str = "EUR"


@dataclass
class Point:
    y: int
    x: int


class Colour(Enum):
    RED = "red"


# Publishing.


def test_a_digest_is_the_sha256_of_the_utf8_bytes() -> None:
    for text in ("", "Inspection ready: 2 items 巡检✓", "\x00"):
        assert digest(text) == hashlib.sha256(text.encode("utf-8")).hexdigest()


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ("as it is {", "as it is {"),
        ("", ""),
        (None, "null"),
        (0, "0"),
        (False, "false"),
        (float("nan"), "null"),
        (float("-inf"), "null"),
        ({"b": 1, "a": [float("nan"), "巡"]}, '{"a":[null,"巡"],"b":1}'),
        ([1, {"z": {"y": 1, "x": 2}}], '[1,{"z":{"x":2,"y":1}}]'),
        ((1, 2), "[1,2]"),
        (Point(y=1, x=2), '{"x":2,"y":1}'),
        (Total(amount=2.5), '{"amount":2.5,"currency":"EUR"}'),
        ([Total(amount=1)], '[{"amount":1.0,"currency":"EUR"}]'),
        (Colour.RED, '"red"'),
        (dt.date(2026, 10, 7), '"2026-10-07"'),
        ("half \ud800.", "half \ufffd."),
        ({"\ud800": "\udfff"}, '{"\ufffd":"\ufffd"}'),
        (Point(y=1, x="\ud800"), '{"x":"\ufffd","y":1}'),  # type: ignore[arg-type]
        ({1: "a"}, '{"1":"a"}'),
    ],
)
def test_an_output_is_published_as_compact_sorted_json(output: object, text: str) -> None:
    assert publish(output) == text
    publish(output).encode()


class Opaque:
    pass


def nested(depth: int) -> Any:
    inner: Any = []
    for _ in range(depth):
        inner = [inner]
    return inner


@pytest.mark.parametrize(
    "output", [Opaque(), b"\xff\x00", {"a": Opaque()}, nested(100_000)], ids=["object", "bytes", "in a dict", "deep"]
)
def test_what_has_no_json_form_is_not_publishable(output: object) -> None:
    with pytest.raises(NotPublishable, match=type(output).__name__) as refused:
        publish(output)
    assert isinstance(refused.value, UsageError)


def test_something_that_contains_itself_is_not_publishable() -> None:
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(NotPublishable):
        publish(loop)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(),
        lambda i: st.lists(i) | st.dictionaries(st.text(), i),
    )
)
def test_every_json_value_is_published_and_read_back(value: Any) -> None:
    if not isinstance(value, str):
        assert json.loads(publish(value)) == value


# The ready-made verifiers.


@pytest.mark.parametrize(
    ("verifier", "accepted", "refused"),
    [
        (has_output(), ["x", "Sorry, I cannot", 0, False, [], {}], [None, "", "  \n"]),
        (equals("5 EUR"), ["5 EUR"], ["5 EUR ", "5 eur", None, 5]),
        (equals(1), [1], [True, 1.0, "1", 2]),
        (equals(Total(amount=1)), [Total(amount=1)], [Total(amount=2), {"amount": 1.0, "currency": "EUR"}]),
        (matches(r"\d+ EUR"), ["5 EUR"], ["about 5 EUR", "5 EUR.", "5 EUR\n", "", None, 5, b"5 EUR"]),
        (
            schema(Total),
            ['{"amount": 1}', Total(amount=1)],
            ['{"amount": "1"}', "{}", "no json", None, 3, {"amount": "1"}],
        ),
        (schema(list[int]), ["[1, 2]", [1, 2]], ['["1"]', [1.5], "1", None]),
        (schema(str), ["anything"], [1, None]),
    ],
    ids=[
        "has_output",
        "equals text",
        "equals number",
        "equals model",
        "matches",
        "schema model",
        "schema list",
        "schema text",
    ],
)
async def test_a_ready_made_verifier_accepts_and_refuses(
    verifier: Any, accepted: list[Any], refused: list[Any]
) -> None:
    for output in accepted:
        assert (await judge(verifier, output)).ok is True, output
    for output in refused:
        verdict = await judge(verifier, output)
        assert verdict.ok is False, output
        assert verdict.reason


async def test_a_verdict_carries_the_name_of_its_check() -> None:
    ready = {"has_output": has_output(), "equals": equals(1), "matches": matches("x"), "schema": schema(int)}
    for name, verifier in {**ready, "all_of": all_of(equals(1))}.items():
        assert check_name(verifier) == name
        assert (await judge(verifier, 1)).check in (name, "equals")
    assert (await judge(all_of(equals(1)), 1)).check == "all_of"


async def test_a_refusal_never_quotes_the_output() -> None:
    secret = "4111-1111"
    for verifier in (equals("x"), matches("x"), schema(Total), schema(int)):
        for output in (secret, json.dumps({"amount": secret})):
            verdict = await judge(verifier, output)
            assert secret not in repr(verdict)


def test_a_pattern_that_is_none_is_refused_where_it_is_written() -> None:
    with pytest.raises(Exception, match="unterminated"):
        matches("(")


# Judging.


async def test_sync_and_async_verifiers_give_the_same_verdict() -> None:
    def plain(output: str) -> bool:
        return output == "x"

    async def awaited(output: str) -> bool:
        await asyncio.sleep(0)
        return output == "x"

    class Checker:
        async def __call__(self, output: str) -> bool:
            return output == "x"

    def handed_on(output: str) -> Any:
        return awaited(output)

    for verifier in (plain, awaited, Checker(), handed_on, functools.partial(awaited)):
        assert (await judge(verifier, "x")).ok is True
        assert (await judge(verifier, "y")).ok is False


async def test_a_sync_verifier_runs_off_the_loop_in_the_callers_context() -> None:
    who = contextvars.ContextVar("who", default="nobody")
    who.set("mei")
    seen: list[object] = []

    def verifier(output: object) -> bool:
        seen.extend([threading.current_thread() is threading.main_thread(), who.get()])
        return True

    await judge(verifier, "x")
    assert seen == [False, "mei"]


async def test_the_verifier_gets_the_very_object() -> None:
    output = Total(amount=1)
    seen: list[object] = []

    async def verifier(given: object) -> bool:
        seen.append(given)
        return True

    await judge(verifier, output)
    assert seen[0] is output


async def test_a_verifier_that_takes_too_long_gives_no_verdict() -> None:
    async def hangs(output: object) -> bool:
        await asyncio.Event().wait()
        return True

    with pytest.raises(TimeoutError):
        await judge(hangs, "x", timeout=0.01)


async def test_a_sync_verifier_that_takes_too_long_gives_no_verdict() -> None:
    free = threading.Event()

    def hangs(output: object) -> bool:
        return free.wait(20)

    try:
        with pytest.raises(TimeoutError):
            await judge(hangs, "x", timeout=0.01)
    finally:
        free.set()


async def test_a_verifier_that_raises_gives_no_verdict() -> None:
    def raises(output: object) -> bool:
        raise KeyError("total")

    async def raises_later(output: object) -> bool:
        raise KeyError("total")

    for verifier in (raises, raises_later, all_of(has_output(), raises)):
        with pytest.raises(KeyError, match="total"):
            await judge(verifier, "x")


@pytest.mark.parametrize("answer", [None, 1, 0, "yes", "", [], 1.0, object(), Exception("x"), {"ok": True}])
async def test_only_a_bool_or_a_verdict_is_an_answer(answer: Any) -> None:
    async def awaited(output: object) -> Any:
        return answer

    for verifier in (lambda output: answer, awaited, all_of(lambda output: answer)):
        with pytest.raises(NoVerdict, match=type(answer).__name__):
            await judge(verifier, "x")


async def test_a_verdict_whose_ok_is_no_bool_is_no_verdict() -> None:
    for ok in (1, "yes", None):
        with pytest.raises(NoVerdict):
            await judge(lambda output, ok=ok: Verdict(ok), "x")


async def test_a_verdict_without_a_name_gets_the_verifiers() -> None:
    def total_is_plausible(output: object) -> Verdict:
        return Verdict(False, reason="too high")

    def named(output: object) -> Verdict:
        return Verdict(True, check="sum")

    class Auditor:
        def __call__(self, output: object) -> bool:
            return True

    assert await judge(total_is_plausible, 1) == Verdict(False, "total_is_plausible", "too high")
    assert await judge(named, 1) == Verdict(True, "sum")
    assert (await judge(Auditor(), 1)).check == "Auditor"

    def long(output: object) -> bool:
        return True

    long.__name__ = "n" * 300
    assert len((await judge(long, 1)).check or "") == 128


# All of them.


async def test_all_of_asks_in_order_and_stops_at_the_first_refusal() -> None:
    asked: list[str] = []

    def check(name: str, ok: bool) -> Any:
        async def verifier(output: object) -> Verdict:
            asked.append(name)
            return Verdict(ok, name, None if ok else f"{name} refused")

        return verifier

    verdict = await judge(all_of(check("a", True), check("b", False), check("c", True)), "x")
    assert (verdict, asked) == (Verdict(False, "b", "b refused"), ["a", "b"])
    assert await judge(all_of(check("d", True), check("e", True)), "x") == Verdict(True, "all_of")


def test_all_of_nothing_is_refused() -> None:
    with pytest.raises(UsageError):
        all_of()


async def test_nested_all_of_keeps_the_name_of_the_check_that_refused() -> None:
    verdict = await judge(all_of(has_output(), all_of(matches(".+"), equals("y"))), "x")
    assert (verdict.ok, verdict.check) == (False, "equals")
