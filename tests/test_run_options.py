"""What one call of a decorated function may be given, and where it stands among other runs."""

from __future__ import annotations

import asyncio
from dataclasses import fields
from typing import Any

import pytest
from agents import Runner, RunResultStreaming, function_tool
from staging import Log, log_of, on, scripted, started, stored

from agents_progress import Disclosure, Verdict, progress
from agents_progress.clock import Clock
from agents_progress.errors import UsageError
from agents_progress.journal import MemoryJournal
from agents_progress.options import Given, Options
from agents_progress.run import Run
from agents_progress.testing import call, text, turn


async def test_using_sets_what_belongs_to_one_request(journal: MemoryJournal) -> None:
    agent = scripted(turn(call("look")), turn(text("hello")), turn(call("look")), turn(text("hello")))
    agent.tools = [function_tool(name_override="look")(lambda: "secret output")]

    @progress(journal=journal, verify=lambda output: True)
    def work(question: str) -> RunResultStreaming:
        """Its docstring."""
        return Runner.run_streamed(agent, question)

    run = work.using(
        run_id="run-7",
        task_id="task-7",
        owner="ann",
        labels={"conversation": "c"},
        verify=lambda output: Verdict(False, "mine"),
        disclosure=Disclosure(outputs="all"),
        deadline=60,
    )("hi")
    assert (run.id, run.task_id) == ("run-7", "task-7")
    outcome = await run
    assert outcome.verdict == Verdict(False, "mine") and run.view.status == "rejected"
    (row,) = await journal.runs(labels={"conversation": "c"})
    assert (row.run_id, row.task_id, row.origin.owner, row.title) == ("run-7", "task-7", "ann", "Work")
    assert (await stored(journal, "run-7")).of("tool.finished")[0]["output"] == "secret output"
    assert (work.__name__, work.__doc__) == ("work", "Its docstring.")
    again = work("hi")
    assert (await again).accepted and again.id != "run-7"
    assert "output" not in (await stored(journal, again.id)).of("tool.finished")[0]


@pytest.mark.parametrize("run_id", ["job.7", "a.b.12", "x" * 59])
def test_a_run_id_that_its_continuation_could_not_carry_on_is_refused(run_id: str) -> None:
    with pytest.raises(UsageError, match="no number after a dot"):
        Options(run_id=run_id)
    Options(run_id="job.v7", task_id=run_id)


@pytest.mark.parametrize("bad", ["", "a b", "x" * 65, "run\n", "../etc", "é"])
def test_a_bad_id_is_refused_before_anything_starts(bad: str) -> None:
    @progress
    def work() -> Any:
        raise AssertionError("started")

    with pytest.raises(UsageError, match="is no id"):
        work.using(run_id=bad)
    with pytest.raises(UsageError, match="is no id"):
        work.using(task_id=bad)


async def test_a_run_id_that_exists_is_not_recorded_over(journal: MemoryJournal) -> None:
    clock = Clock(wall=lambda: 0.0, monotonic=lambda: 0.0)  # only the claim tells both apart
    await started(scripted(turn(text("first"))), journal=journal, run_id="r", clock=clock)
    before = await stored(journal, "r")
    run = started(scripted(turn(text("first"))), journal=journal, run_id="r", clock=clock)
    outcome = await run
    assert (outcome.kind, outcome.reason) == ("unknown", "journal")
    assert run.view.status == "unknown" and run.view.terminal is None
    assert (await stored(journal, "r")) == before and await log_of(run) == Log([])


async def test_a_run_started_inside_a_tool_names_its_parent(journal: MemoryJournal) -> None:
    inner: list[Run] = []

    @function_tool
    async def delegate() -> str:
        inner.append(started(scripted(turn(text("inner answer")), name="B"), journal=journal))
        return str((await inner[0]).output)

    outer = started(scripted(turn(call("delegate", call_id="d1")), turn(text("ok")), tools=[delegate]), journal=journal)
    assert (await outer).kind == "succeeded"
    assert (await stored(journal, outer.id)).of("run.started")[0]["parent"] is None
    (begun,) = (await stored(journal, inner[0].id)).of("run.started")
    assert begun["parent"] == {"run_id": outer.id, "call_id": "d1"} and begun["task_id"] == inner[0].id
    assert (await stored(journal, outer.id)).view.tools == {"d1": "returned"}


async def test_switched_off_the_decorator_is_a_plain_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTS_PROGRESS", "off")
    result: Any = started(scripted(turn(text("hello"))))
    assert isinstance(result, RunResultStreaming) and "stream_events" not in vars(result)
    assert [event async for event in result.stream_events()][-1].name == "message_output_created"
    assert result.final_output == "hello"


async def test_sinks_may_be_coroutines_and_get_every_envelope_in_order() -> None:
    seen: list[int] = []

    async def slow(envelope: Any) -> None:
        await asyncio.sleep(0)
        seen.append(envelope.seq)

    run = started(scripted(turn(text("one two three"))), sinks=[slow, on("run.ended", lambda: None)], coalesce=None)
    log = await log_of(run)
    await run.closed()
    assert seen == [envelope.seq for envelope in log.envelopes]


def test_a_misspelt_option_is_refused_with_the_right_name() -> None:
    with pytest.raises(UsageError, match="verfy is no option; did you mean verify?"):
        progress(verfy=None)  # type: ignore[call-overload]
    with pytest.raises(UsageError, match="x is no option; there are journal, verify"):
        progress.inside(x=1)  # type: ignore[call-overload]


def test_a_tool_that_is_approved_unseen_is_named_in_a_list() -> None:
    with pytest.raises(UsageError, match=r"approve_blind names tools; write \['refund'\]"):
        progress(approve_blind="refund")


def test_every_option_has_its_type_where_callers_write_it() -> None:
    written = {name: hint.__forward_arg__ for name, hint in Given.__annotations__.items()}
    assert written == {field.name: field.type for field in fields(Options)}
