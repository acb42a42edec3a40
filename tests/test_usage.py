"""Token counts of a run: added up when they arrived, null when they did not, and never invented."""

from __future__ import annotations

from itertools import product
from types import SimpleNamespace
from typing import Any

import pytest

from agents_progress.events import parse
from agents_progress.sdk.usage import Usage
from tests.logs import envelope


def used(input_tokens: int | None = 10, cached: int | None = None) -> Any:
    details = None if cached is None else SimpleNamespace(cached_tokens=cached)
    return SimpleNamespace(input_tokens=input_tokens, output_tokens=5, total_tokens=15, input_tokens_details=details)


COUNTS = ("input_tokens", "output_tokens", "total_tokens", "cached_tokens", "reasoning_tokens")


def test_usage_that_never_arrived_is_null_and_never_zero() -> None:  # USE-1
    for begun, ended in product((1, 3), (False, True)):
        usage = Usage(begun=begun)
        if ended:
            usage.add(None)
        payload = usage.payload()
        assert payload == {"requests": begun, **dict.fromkeys(COUNTS), "status": "unavailable"}
        parse(envelope(1, "usage.updated", payload).to_json())


def test_a_run_that_made_no_model_call_counts_nothing() -> None:
    payload = Usage().payload()
    assert {payload[name] for name in ("requests", *COUNTS)} == {None}


def test_usage_of_some_responses_is_partial() -> None:  # USE-1
    usage = Usage(begun=2)
    usage.add(used())
    assert usage.payload() == {
        "requests": 2, "input_tokens": 10, "output_tokens": 5, "total_tokens": 15,
        "cached_tokens": None, "reasoning_tokens": None, "status": "partial",
    }  # fmt: skip


def test_usage_adds_up_what_arrived() -> None:
    usage = Usage()
    usage.add(used(cached=4))
    usage.add(used(cached=0))
    payload = usage.payload()
    assert (payload["requests"], payload["total_tokens"], payload["cached_tokens"]) == (2, 30, 4)
    assert (payload["status"], payload["reasoning_tokens"]) == ("reported", None)


def test_a_zero_that_was_reported_is_a_zero() -> None:
    usage = Usage()
    usage.add(used(input_tokens=0, cached=0))
    assert (usage.payload()["input_tokens"], usage.payload()["cached_tokens"]) == (0, 0)


@pytest.mark.parametrize("wrong", [-1, "10", 1.5, None, object()])
def test_a_count_that_is_none_is_not_counted(wrong: Any) -> None:
    usage = Usage()
    usage.add(used(input_tokens=wrong))
    assert usage.payload()["input_tokens"] is None
