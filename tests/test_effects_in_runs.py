"""Once-only tools inside runs: what their rows say, whose effects are whose, and what a run that is repeated does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, RunResultStreaming, RunState, function_tool
from staging import log_of, scripted, started

from agents_progress import RunView, current_run, progress
from agents_progress.effects.entry import Happened
from agents_progress.effects.ledger import Ledger
from agents_progress.effects.ledger.memory import MemoryLedger
from agents_progress.effects.ledger.sqlite import SQLiteLedger
from agents_progress.effects.once import effect_key, once, worded
from agents_progress.effects.places import ledger_beside, open_ledger
from agents_progress.effects.words import TOLD
from agents_progress.errors import EffectUncertain, UsageError
from agents_progress.journal import MemoryJournal
from agents_progress.journal.sqlite import SQLiteJournal
from agents_progress.render import activity_line
from agents_progress.run import Run
from agents_progress.testing import call, http_error, text, turn

KINDS = ["sync", "async"]


@pytest.fixture
def ledger() -> Iterator[MemoryLedger]:
    ledger = MemoryLedger()
    yield ledger
    ledger.close()


class Refunds:
    """A once-only tool of either kind, and the orders that it refunded."""

    def __init__(self, kind: str, ledger: Ledger | None, *, broken: bool = False, **fields: Any) -> None:
        self.orders: list[int] = []
        self.broken = broken
        terms = {name: fields.pop(name) for name in ("scope", "key", "reconcile") if name in fields}
        fields = {"failure_error_function": worded, **fields}

        @once(ledger=ledger, name="refund", **terms)
        def refund(order: int) -> str:
            return self.body(order)

        @once(ledger=ledger, name="refund", **terms)
        async def refund_later(order: int) -> str:
            await asyncio.sleep(0)
            return self.body(order)

        chosen = refund if kind == "sync" else refund_later
        self.tool = function_tool(chosen, name_override="refund", **fields)

    def body(self, order: int) -> str:
        self.orders.append(order)
        assert len(effect_key()) == 64
        if self.broken:
            raise ConnectionError("secret")
        return f"refunded secret-{order}"


def refund(order: int, call_id: str | None = None) -> Any:
    return call("refund", {"order": order}, call_id=call_id)


def rows(view: RunView) -> list[tuple[str, bool]]:
    return [(row.state, row.reused) for row in view.activities]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_call_that_the_model_makes_again_under_a_new_id_is_given_the_stored_result(  # TOOL-9
    kind: str, ledger: Ledger
) -> None:
    refunds = Refunds(kind, ledger)
    turns = [turn(refund(1, "c1")), turn(refund(1, "c2")), turn(refund(2, "c3")), turn(text("Done."))]
    run = started(scripted(*turns, tools=[refunds.tool]), owner="ada")
    log = await log_of(run)
    assert refunds.orders == [1, 2]
    assert rows(log.view) == [("returned", False), ("returned", True), ("returned", False)]
    assert [payload.get("reused") for payload in log.of("tool.finished")] == [None, True, None]
    outputs = [item.output for item in run.result.new_items if item.type == "tool_call_output_item"]
    assert outputs == ["refunded secret-1", "refunded secret-1", "refunded secret-2"]
    assert "secret" not in "".join(map(str, log.envelopes))


@pytest.mark.parametrize("kind", KINDS)
async def test_parallel_calls_of_one_turn_have_their_effect_once(kind: str, ledger: Ledger) -> None:
    refunds = Refunds(kind, ledger)
    agent = scripted(turn(*(refund(1) for _ in range(5)), refund(2)), turn(text("Done.")), tools=[refunds.tool])
    log = await log_of(started(agent, owner="ada"))
    assert sorted(refunds.orders) == [1, 2]
    assert sorted(rows(log.view)) == [("returned", False)] * 2 + [("returned", True)] * 4


@pytest.mark.parametrize("kind", KINDS)
async def test_a_run_that_is_repeated_after_its_model_failed_repeats_no_effect(kind: str, ledger: Ledger) -> None:
    refunds = Refunds(kind, ledger)
    first = started(scripted(turn(refund(1)), http_error(400), tools=[refunds.tool]), owner="ada")
    assert (await first).kind == "failed"
    second = started(scripted(turn(refund(1)), turn(text("Done.")), tools=[refunds.tool]), owner="ada")
    assert (await second).kind == "succeeded"
    assert refunds.orders == [1]
    assert rows(second.view) == [("returned", True)]


async def test_a_state_that_is_resumed_twice_has_its_effect_once(tmp_path: Path) -> None:  # APPR-2
    url = f"sqlite:///{tmp_path}/runs.db"
    refunds = Refunds("async", None, scope="shop", needs_approval=True)

    @progress(journal=url)
    def work(given: Any, agent: Agent[Any]) -> RunResultStreaming:
        return Runner.run_streamed(agent, given)

    asking = scripted(turn(refund(1, "d1")), tools=[refunds.tool])
    paused = work("hi", asking)
    assert (await paused).kind == "paused"
    saved = paused.result.to_state().to_json()
    for attempt, reused in ((1, False), (2, True)):
        agent = scripted(turn(text("Done.")), tools=[refunds.tool])
        state = await RunState.from_json(agent, saved)
        (item,) = state.get_interruptions()
        state.approve(item)
        run = work(state, agent)
        assert (await run).kind == "succeeded", attempt
        await run.closed()
        finished = [envelope.payload async for envelope in run if envelope.type == "tool.finished"]
        assert [payload.get("reused", False) for payload in finished] == [reused]
    assert refunds.orders == [1]
    open_ledger(url).close()
    await paused.closed()


async def test_two_tenants_and_two_owners_never_see_each_others_result(ledger: Ledger) -> None:
    refunds = Refunds("async", ledger, key="{order}")
    scoped = Refunds("async", ledger, key="{order}", scope="everybody's")
    people = [("t1", "ada"), ("t2", "ada"), ("t1", "bob"), (None, "ada"), ("t1", None)]
    for tenant, owner in people:
        agent = scripted(turn(refund(1)), turn(text("Done.")), tools=[refunds.tool])
        assert rows((await _ended(started(agent, owner=owner, tenant=tenant))).view) == [("returned", False)]
    assert refunds.orders == [1] * len(people)
    for tenant, owner in people:  # a scope that an application gives is within the tenant
        agent = scripted(turn(refund(1)), turn(text("Done.")), tools=[scoped.tool])
        await _ended(started(agent, owner=owner, tenant=tenant))
    assert len(scoped.orders) == 3  # of t1, of t2 and of none
    assert len({entry.effect.entry for entry in ledger.entries()}) == len(people) + 3


async def _ended(run: Run) -> Run:
    await run
    return run


@pytest.mark.parametrize("kind", KINDS)
async def test_the_row_of_an_effect_that_may_have_happened_says_so_in_both_languages(kind: str, ledger: Ledger) -> None:
    refunds = Refunds(kind, ledger, broken=True)
    agent = scripted(turn(refund(1)), turn(refund(1)), turn(text("Done.")), tools=[refunds.tool])
    run = started(agent, owner="ada", language="zh")
    log = await log_of(run)
    assert refunds.orders == [1]
    assert log.of("tool.failed") == [
        {"call_id": row.activity_id, "code": "effect_uncertain"} for row in log.view.activities
    ]
    for row in log.view.activities:
        assert "may have happened; being checked" in activity_line(row, "en", 80).text
        assert "可能已经发生，正在核对" in activity_line(row, "zh", 80).text
    outputs = [item.output for item in run.result.new_items if item.type == "tool_call_output_item"]
    assert outputs == [TOLD["effect_uncertain"]["zh"]] * 2


async def test_a_tool_that_took_too_long_may_have_had_its_effect(ledger: Ledger) -> None:
    @function_tool(timeout=0.05)
    @once(ledger=ledger)
    async def refund(order: int) -> str:
        await asyncio.Event().wait()
        return ""

    agent = scripted(turn(call("refund", {"order": 1})), turn(text("Sorry.")), tools=[refund])
    run = started(agent, owner="ada")
    assert (await run).kind == "succeeded"
    assert [(row.state, row.note) for row in run.view.activities] == [("failed", "effect_uncertain")]
    assert [entry.effect.name for entry in ledger.entries(state="uncertain")] == ["refund"]


async def test_nothing_that_is_used_after_it_hides_what_may_have_happened(ledger: Ledger) -> None:
    @once(ledger=ledger, key="{order}")
    async def pays(order: int) -> str:
        raise ConnectionError

    @once(ledger=ledger, key="{order}")
    async def tells(order: int) -> str:
        return "told"

    @function_tool
    async def settle(order: int) -> str:
        with suppress(Exception):
            await pays(order)
        return await tells(order)

    turns = [turn(call("settle", {"order": 1})), turn(call("settle", {"order": 1})), turn(text("Well."))]
    run = started(scripted(*turns, tools=[settle]), owner="ada")
    await run
    assert [(row.state, row.note) for row in run.view.activities] == [("failed", "effect_uncertain")] * 2


async def test_an_uncertain_effect_ends_a_run_whose_tool_lets_its_errors_out(ledger: Ledger) -> None:
    refunds = Refunds("async", ledger, broken=True, failure_error_function=None)
    for code in ("tool_error", "effect_uncertain"):
        run = started(scripted(turn(refund(1)), tools=[refunds.tool]), owner="ada")
        outcome = await run
        assert outcome.error is not None
        assert outcome.error["code"] == code
        assert [row.note for row in run.view.activities] == ["effect_uncertain"]
    assert refunds.orders == [1]


async def test_what_a_person_found_out_is_given_to_the_next_call(ledger: Ledger) -> None:
    refunds = Refunds("async", ledger, broken=True)
    await started(scripted(turn(refund(1)), turn(text("Sorry.")), tools=[refunds.tool]), owner="ada")
    (entry,) = ledger.entries(state="uncertain")
    assert ledger.resolve(entry.effect.entry, entry.generation, Happened("refunded by hand"), "ann")
    run = started(scripted(turn(refund(1)), turn(text("Done.")), tools=[refunds.tool]), owner="ada")
    assert (await run).kind == "succeeded"
    assert rows(run.view) == [("returned", True)]


async def test_other_failures_of_a_once_only_tool_are_failures_too(ledger: Ledger) -> None:
    refunds = Refunds("async", ledger)  # no scope, and a run of nobody
    run = started(scripted(turn(refund(1)), turn(text("Sorry.")), tools=[refunds.tool]))
    await run
    assert [(row.state, row.note) for row in run.view.activities] == [("failed", "tool_error")]
    assert refunds.orders == []


async def test_effects_inside_an_agents_tool_are_known_by_their_row(ledger: Ledger) -> None:
    refunds = Refunds("sync", ledger)
    inner = scripted(turn(refund(1, "c1")), turn(refund(1, "c2")), turn(text("Done.")), tools=[refunds.tool])
    outer = scripted(
        turn(call("ask", {"input": "x"}, call_id="c1")), turn(text("Done.")), tools=[inner.as_tool("ask", "Ask.")]
    )
    run = started(outer, owner="ada")
    await run
    assert [(row.activity_id, row.reused) for row in run.view.activities] == [
        ("c1", False),
        ("c1/c1", False),
        ("c1/c2", True),
    ]
    (entry,) = ledger.entries(task_id=run.task_id)
    assert (entry.effect.run_id, entry.effect.call_id) == (run.id, "c1/c1")


# Where effects are recorded.


async def test_effects_are_recorded_beside_the_runs_and_erased_apart(tmp_path: Path) -> None:
    journal = SQLiteJournal(tmp_path / "runs.db")
    refunds = Refunds("async", None)
    agent = scripted(turn(refund(1)), turn(text("Done.")), tools=[refunds.tool])
    run = started(agent, owner="ada", journal=journal)
    assert (await run).kind == "succeeded"
    await run.closed()
    ledger = ledger_beside(journal)
    assert ledger_beside(journal) is ledger is open_ledger(f"sqlite:///{tmp_path}/runs.db")
    assert [entry.output for entry in ledger.entries(task_id=run.task_id)] == ['{"is":"refunded secret-1"}']
    assert len(await journal.runs()) == 1
    assert ledger.erase(owner="ada") == 1
    await journal.close()
    ledger.close()
    assert not any(b"secret-1" in file.read_bytes() for file in tmp_path.iterdir())
    reopened = SQLiteLedger(tmp_path / "runs.db")
    assert reopened.entries() == []
    reopened.close()


async def test_a_journal_that_keeps_no_ledger_is_refused_before_anything_runs() -> None:
    refunds = Refunds("async", None, failure_error_function=None)
    run = started(scripted(turn(refund(1)), tools=[refunds.tool]), owner="ada", journal=MemoryJournal())
    assert (await run).kind == "failed"
    assert isinstance(run.error.__cause__ if run.error else None, UsageError)
    assert refunds.orders == []


async def test_a_run_without_a_journal_records_its_effects_in_the_default_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    refunds = Refunds("async", None)
    for reused in (False, True):
        run = started(scripted(turn(refund(1)), turn(text("Done.")), tools=[refunds.tool]), owner="ada")
        await run
        assert rows(run.view) == [("returned", reused)]
    ledger = open_ledger("sqlite:///agents-progress.db")
    assert refunds.orders == [1] and len(ledger.entries()) == 1
    ledger.close()


async def test_the_switch_that_turns_progress_off_leaves_effects_once(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AGENTS_PROGRESS", "off")
    refunds = Refunds("async", ledger, scope="shop")
    agent = scripted(turn(refund(1)), turn(refund(1)), turn(text("Done.")), tools=[refunds.tool])
    result = Runner.run_streamed(agent, "hi")
    async for _ in result.stream_events():
        pass
    assert refunds.orders == [1]
    assert EffectUncertain.code in TOLD


async def test_a_tool_that_starts_before_its_run_is_claimed_is_known_by_its_row(ledger: Ledger) -> None:
    entered = asyncio.Event()

    class Slow(MemoryJournal):
        async def lease(self, *arguments: Any, **options: Any) -> Any:
            await entered.wait()
            return await super().lease(*arguments, **options)

    @function_tool
    @once(ledger=ledger, scope="shop")
    async def report(order: int) -> str:
        current_run().report("counting", 1, 2)
        entered.set()
        return "ok"

    agent = scripted(turn(call("report", {"order": 1}, call_id="c1")), turn(text("Done.")), tools=[report])
    run = started(agent, journal=Slow(), run_id="r")
    log = await log_of(run)
    assert log.of("tool.progress") == [{"call_id": "c1", "message": "counting", "current": 1, "total": 2}]
    again = scripted(turn(call("report", {"order": 1}, call_id="c1")), turn(text("Done.")), tools=[report])
    entered.clear()
    asyncio.get_running_loop().call_soon(entered.set)
    assert rows((await _ended(started(again, journal=Slow(), run_id="s"))).view) == [("returned", True)]
