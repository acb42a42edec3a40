"""What tokens cost: exact, never too little, and absent where nothing is known."""

from __future__ import annotations

from decimal import Decimal, localcontext
from types import SimpleNamespace
from typing import Any

import pytest
from agents import Agent, Runner, function_tool
from staging import Log, log_of, scripted, started, stored

from agents_progress import progress
from agents_progress.errors import UsageError
from agents_progress.journal import MemoryJournal
from agents_progress.prices import Cost, Price, checked_prices, cost, cost_of, price_of
from agents_progress.sdk.usage import Usage as Counted
from agents_progress.testing import ScriptedAPI, call, http_error, text, turn
from agents_progress.testing.turns import Usage

PRICES = {"gpt-5": Price(input="1.25", output="10", cached="0.125"), "gpt-5-mini": Price(input="0.25", output="2")}


def paid(amount: str, *, at_least: bool = False) -> Cost:
    return {"amount": amount, "currency": "USD", "at_least": at_least}


# Prices.


@pytest.mark.parametrize(
    "given",
    [
        {"input": 1.25},
        {"input": 1},
        {"input": True},
        {"input": None},
        {"output": "1,25"},
        {"output": "free"},
        {"output": "-1"},
        {"output": "NaN"},
        {"output": Decimal("Infinity")},
        {"cached": 0.1},
        {"cached": "1e-13"},
        {"cached": "1e9"},
        {"currency": "dollars"},
        {"currency": "usd"},
        {"currency": None},
    ],
    ids=str,
)
def test_what_is_no_price_is_refused_where_it_is_written(given: Any) -> None:
    with pytest.raises(UsageError, match=next(iter(given))):
        Price(**{"input": "1", "output": "2", **given})


def test_prices_are_refused_where_the_function_is_decorated() -> None:
    for wrong in (
        {"gpt-5": "1.25"},
        {5: Price("1", "2")},
        {"a": Price("1", "2"), "b": Price("1", "2", currency="EUR")},
    ):
        with pytest.raises(UsageError, match="prices"):
            progress(prices=wrong)  # type: ignore[call-overload]
    checked_prices({})


@pytest.mark.parametrize(
    ("model", "found"),
    [
        ("gpt-5", "gpt-5"),
        ("gpt-5-2026-01-01", "gpt-5"),
        ("gpt-5-20260101", "gpt-5"),
        ("gpt-5-mini", "gpt-5-mini"),
        ("gpt-5-mini-2026-01-01", "gpt-5-mini"),
        ("gpt-5-nano", None),
        ("gpt-5-2026-01-01-preview", None),
        ("gpt-5-2026", None),
        ("gpt-55", None),
        ("gpt", None),
        ("ft:gpt-5-2026-01-01:me", None),
        ("2026-01-01", None),
        ("", None),
        (None, None),
    ],
)
def test_a_model_has_the_price_of_its_own_name_or_of_the_one_without_a_date(model: str | None, found: str) -> None:
    assert price_of(PRICES, model) is (PRICES[found] if found else None)


def test_a_dated_name_of_its_own_comes_before_the_one_without_a_date() -> None:
    dated = Price("9", "9")
    assert price_of({**PRICES, "gpt-5-2026-01-01": dated}, "gpt-5-2026-01-01") is dated
    assert price_of({"a-2026-01-01": dated, "a": PRICES["gpt-5"]}, "a-2026-01-01-2026-02-02") is dated


def test_a_cost_is_exact_whatever_the_context_of_the_application() -> None:
    with localcontext(prec=2):
        price = Price(input="0.1", output="0.2", cached="0.3")
        assert price.of(input_tokens=3, output_tokens=0, cached_tokens=0) == Decimal("0.0000003")
        amount = price.of(input_tokens=10**18, output_tokens=1, cached_tokens=1)
        assert f"{amount:f}" == "100000000000.0000004"
    assert cost(Decimal("0.0000003"), "USD", at_least=False) == paid("0.0000003")
    assert cost(Decimal("1E+3"), "USD", at_least=True) == paid("1000", at_least=True)
    assert cost(Decimal("2.500"), "USD", at_least=False) == paid("2.5")


def test_cached_tokens_cost_their_own_price_and_without_one_that_of_the_input() -> None:
    tokens = {"input_tokens": 1_000_000, "output_tokens": 0}
    assert PRICES["gpt-5"].of(**tokens, cached_tokens=1_000_000) == Decimal("0.125")
    assert PRICES["gpt-5-mini"].of(**tokens, cached_tokens=1_000_000) == Decimal("0.25")
    assert PRICES["gpt-5"].of(**tokens, cached_tokens=9_000_000) == Decimal("0.125")  # no more than there were


@pytest.mark.parametrize(
    "x",
    [
        None,
        {},
        {"cost": None},
        {"cost": "0.1"},
        {"cost": {"amount": "0.1", "currency": "USD"}},
        {"cost": {"amount": 0.1, "currency": "USD", "at_least": False}},
        {"cost": {"amount": "-1", "currency": "USD", "at_least": False}},
        {"cost": {"amount": "1e5", "currency": "USD", "at_least": False}},
        {"cost": {"amount": "1\n", "currency": "USD", "at_least": False}},
        {"cost": {"amount": "\u0661", "currency": "USD", "at_least": False}},
        {"cost": {"amount": "1", "currency": "<b>", "at_least": False}},
        {"cost": {"amount": "1", "currency": "USD", "at_least": 1}},
    ],
)
def test_a_cost_that_cannot_be_read_is_none(x: Any) -> None:
    assert cost_of({"requests": 1, "x": x}) is None
    assert cost_of({"requests": 1}) is None
    assert cost_of(None) is None


# Counting.


def used(input_tokens: Any = 1_000_000, output_tokens: Any = 0, cached: Any = None, written: Any = None) -> Any:
    details = SimpleNamespace(cached_tokens=cached, cache_write_tokens=written)
    return SimpleNamespace(input_tokens=input_tokens, output_tokens=output_tokens, input_tokens_details=details)


def spent(usage: Counted) -> Any:
    return usage.payload().get("x", {}).get("cost")


def test_the_cost_of_every_response_is_added_up() -> None:
    usage = Counted(PRICES)
    usage.add(used(1_000_000, 1_000_000, cached=400_000), "gpt-5-2026-01-01")
    assert spent(usage) == paid("10.8")
    usage.add(used(), "gpt-5-mini")
    assert spent(usage) == paid("11.05")


@pytest.mark.parametrize("model", [None, "other", 5, "gpt-5-turbo"])
def test_a_model_without_a_price_makes_the_cost_at_least(model: Any) -> None:
    usage = Counted(PRICES)
    usage.add(used(), model)
    assert "x" not in usage.payload()  # nothing is known, which is not 0
    usage.add(used(), "gpt-5")
    assert spent(usage) == paid("1.25", at_least=True)


@pytest.mark.parametrize("missing", [None, used(None), used(1, None), used("5"), used(-1), SimpleNamespace()])
def test_a_response_without_usage_makes_the_cost_at_least(missing: Any) -> None:
    usage = Counted(PRICES)
    usage.add(used(), "gpt-5")
    usage.add(missing, "gpt-5")
    assert spent(usage) == paid("1.25", at_least=True)


def test_a_response_that_has_not_ended_or_was_given_up_makes_the_cost_at_least() -> None:
    usage = Counted(PRICES)
    usage.add(used(), "gpt-5")
    usage.begun += 1
    assert spent(usage) == paid("1.25", at_least=True)
    usage.add(used(), "gpt-5")
    assert spent(usage) == paid("2.5")
    usage.doubts += 1
    assert spent(usage) == paid("2.5", at_least=True)


def test_writing_to_a_cache_may_cost_more_than_the_price_of_input() -> None:
    usage = Counted(PRICES)
    usage.add(used(written=0), "gpt-5")
    assert spent(usage) == paid("1.25")
    usage.add(used(written=5), "gpt-5")
    assert spent(usage) == paid("2.5", at_least=True)


def test_a_model_that_is_free_costs_a_zero_that_is_known() -> None:
    usage = Counted({"local": Price("0", "0")})
    usage.add(used(), "local")
    assert spent(usage) == paid("0")


def test_runs_inside_are_counted_in() -> None:
    usage, inner = Counted(PRICES), Counted(PRICES)
    usage.nested.append(inner)
    usage.add(used(), "gpt-5")
    inner.add(used(), "gpt-5-mini")
    assert spent(usage) == paid("1.5")
    inner.add(used(), "other")
    assert spent(usage) == paid("1.5", at_least=True)


# In runs.

WORTH = Usage(input_tokens=1000, output_tokens=100, cached_tokens=400)  # 0.0018 under gpt-5


def agent(*turns: Any, model: str = "gpt-5-2026-01-01", chat: bool = False, **fields: Any) -> Agent[Any]:
    api = ScriptedAPI(turns)
    return scripted(name="A", model=api.chat_model(model) if chat else api.model(model), **fields)


def costs(log: Log) -> list[Any]:
    return [cost_of(payload) for payload in log.of("usage.updated")]


@pytest.mark.parametrize("chat", [False, True], ids=["responses", "chat"])
async def test_a_run_says_what_its_responses_cost(chat: bool) -> None:
    log = await log_of(started(agent(turn(text("hello"), usage=WORTH), chat=chat), prices=PRICES))
    assert costs(log) == [paid("0.0018")]
    assert log.view.cost == paid("0.0018")
    assert log.view.usage is not None
    assert log.view.usage["x"] == {"cost": paid("0.0018")}


async def test_a_run_without_prices_says_nothing_of_a_cost() -> None:
    log = await log_of(started(agent(turn(text("hello"), usage=WORTH))))
    assert [payload.keys() & {"x"} for payload in log.of("usage.updated")] == [set()]
    assert log.view.cost is None


@pytest.mark.parametrize("chat", [False, True], ids=["responses", "chat"])
async def test_each_turn_adds_its_cost_and_one_without_usage_a_doubt(chat: bool) -> None:
    look = function_tool(lambda: "seen", name_override="look")
    turns = turn(call("look"), usage=WORTH), turn(call("look"), usage=WORTH), turn(text("hello"), usage=None)
    log = await log_of(started(agent(*turns, chat=chat, tools=[look]), prices=PRICES))
    assert costs(log) == [paid("0.0018"), paid("0.0036"), paid("0.0036", at_least=True)]


async def test_a_run_that_fails_after_a_response_costs_at_least_that() -> None:
    look = function_tool(lambda: "seen", name_override="look")
    log = await log_of(started(agent(turn(call("look"), usage=WORTH), http_error(500), tools=[look]), prices=PRICES))
    assert log.ending["outcome"] == "failed"
    assert log.view.cost == paid("0.0018", at_least=True)


async def test_a_streamed_run_inside_a_tool_is_counted_in_and_one_without_a_stream_is_a_doubt() -> None:
    for streamed, expected in ((True, paid("0.0054")), (False, paid("0.0036", at_least=True))):
        inner = agent(turn(text("inner"), usage=WORTH))
        tool = inner.as_tool("ask", "Ask.", **({"on_stream": lambda event: None} if streamed else {}))
        outer = agent(turn(call("ask", {"input": "x"}), usage=WORTH), turn(text("outer"), usage=WORTH), tools=[tool])
        log = await log_of(started(outer, prices=PRICES))
        assert log.view.cost == expected  # the SDK says no model of a response that was not streamed


async def test_a_run_that_continues_a_paused_one_counts_its_own_cost_as_it_counts_its_own_tokens() -> None:
    danger = function_tool(lambda: "did it", name_override="danger", needs_approval=True)
    turns = turn(call("danger"), usage=WORTH), turn(text("done"), usage=WORTH)
    run = started(agent(*turns, tools=[danger]), prices=PRICES)
    assert (await run).kind == "paused"
    assert run.view.cost == paid("0.0018")
    second = run.resume(approve="ask-1")
    assert (await second).kind == "succeeded"
    assert second.view.cost == paid("0.0018")
    assert second.view.usage is not None
    assert second.view.usage["requests"] == 1


async def test_a_run_that_is_awaited_tells_no_model_and_so_no_cost(journal: MemoryJournal) -> None:
    @progress.inside(journal=journal, run_id="r", prices=PRICES)
    async def body() -> Any:
        return (await Runner.run(agent(turn(text("hello"), usage=WORTH)), "hi")).final_output

    assert await body() == "hello"
    log = await stored(journal, "r")
    assert log.view.usage is not None
    assert (log.view.usage["total_tokens"], log.view.cost) == (1100, None)


async def test_a_row_of_the_journal_shows_the_cost(journal: MemoryJournal) -> None:
    await started(agent(turn(text("hello"), usage=WORTH)), prices=PRICES, journal=journal, run_id="r")
    row = await journal.run("r")
    assert row is not None
    assert row.glance is not None
    assert row.glance.cost == paid("0.0018")
    assert row.glance.usage is not None
    assert (row.glance.usage["total_tokens"], "x" in row.glance.usage) == (1100, False)
