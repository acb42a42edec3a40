"""Runs that a tool starts: their doings stand under the tool's call, and never become the outer run's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from agents import Agent, RunConfig, Runner, function_tool
from staging import Log, log_of, reach, scripted, started, stored

from agents_progress import Disclosure, current_run, progress
from agents_progress.journal import MemoryJournal
from agents_progress.run import Run
from agents_progress.testing import ScriptedAPI, call, http_error, text, turn, wait


def leaf(body: Callable[[], Any] | None = None, **fields: Any) -> Any:
    async def work() -> str:
        return str(body()) if body is not None else "leaf ok"

    return function_tool(work, name_override="leaf", **fields)


def inner(*turns: Any, **fields: Any) -> Agent[Any]:
    """An agent that calls its leaf, under the id that the outer call has too, and answers then."""
    turns = turns or (turn(call("leaf", call_id="c1")), turn(text("inner says")))
    return scripted(*turns, name="Inner", **{"tools": [leaf()], **fields})


def outer(tool: Any) -> Agent[Any]:
    return scripted(turn(call("ask", {"input": "x"}, call_id="c1")), turn(text("outer says")), tools=[tool])


def as_tool(agent: Agent[Any], **options: Any) -> Any:
    return agent.as_tool("ask", "Ask.", **options)


def streamed_tool(agent: Agent[Any]) -> Any:
    return as_tool(agent, on_stream=lambda event: None)


def runner_tool(agent: Agent[Any]) -> Any:
    async def ask(input: str) -> str:
        return str((await Runner.run(agent, input)).final_output)

    return function_tool(ask)


def streaming_runner_tool(agent: Agent[Any]) -> Any:
    async def ask(input: str) -> str:
        result = Runner.run_streamed(agent, input)
        async for _ in result.stream_events():
            pass
        return str(result.final_output)

    return function_tool(ask)


def thread_tool(agent: Agent[Any]) -> Any:
    def ask(input: str) -> str:
        return str(asyncio.run(Runner.run(agent, input)).final_output)

    return function_tool(ask)


def sync_runner_tool(agent: Agent[Any]) -> Any:
    def ask(input: str) -> str:
        try:
            return str(Runner.run_sync(agent, input).final_output)
        finally:
            asyncio.get_event_loop_policy().get_event_loop().close()  # the SDK leaves its loop to the thread

    return function_tool(ask)


WAYS = [as_tool, streamed_tool, runner_tool, streaming_runner_tool, thread_tool, sync_runner_tool]


@pytest.mark.parametrize("way", WAYS)
async def test_nest_1_an_inner_run_has_its_rows_under_the_call_that_started_it(way: Callable[..., Any]) -> None:
    log = await log_of(started(outer(way(inner()))))
    view = log.view
    assert view.tools == {"c1": "returned", "c1/c1": "returned"}
    assert [row.name for row in view.activities] == ["ask", "leaf"]
    assert log.texts == ["outer says"] and log.ending["final_output"] == "outer says"
    assert log.types.count("model.completed") == 2 and len(log.endings) == 1
    assert view.agent == "A" and view.usage is not None
    assert (view.usage["requests"], view.usage["status"], view.usage["input_tokens"]) == (4, "reported", 40)
    assert view.status == "checking" and view.issues == []
    (began,), (over,) = log.of("note.nested.started"), log.of("note.nested.ended")
    assert began == {"call_id": "c1", "agent": "Inner"}
    assert (over["call_id"], over["how"], over["usage"]["requests"]) == ("c1", "returned", 2)


@pytest.mark.parametrize("way", WAYS)
async def test_the_rows_of_an_inner_run_are_there_while_it_runs(way: Callable[..., Any]) -> None:
    log = await log_of(started(outer(way(inner()))))
    order = [f"{envelope.type} {envelope.payload['call_id']}" for envelope in log.envelopes if "tool." in envelope.type]
    assert order == [
        "tool.requested c1", "tool.started c1",
        "tool.requested c1/c1", "tool.started c1/c1", "tool.finished c1/c1",
        "tool.finished c1",
    ]  # fmt: skip


@pytest.mark.parametrize("way", [as_tool, streamed_tool])
async def test_an_inner_run_that_fails_ends_nothing_but_itself(way: Callable[..., Any]) -> None:
    failing = inner(turn(call("leaf", call_id="d1")), http_error(400))
    log = await log_of(started(outer(way(failing))))
    assert log.ending["outcome"] == "succeeded" and log.view.tools["c1/d1"] == "returned"
    assert [note["how"] for note in log.of("note.nested.ended")] == ["raised"]
    assert log.view.usage is not None and log.view.usage["status"] == "partial"


async def test_what_an_inner_run_did_not_execute_is_skipped_when_it_is_over() -> None:
    last = inner(turn(call("leaf", call_id="d1")), turn(call("leaf", call_id="d2")))
    log = await log_of(started(outer(as_tool(last, max_turns=1))))
    assert log.ending["outcome"] == "succeeded"
    assert log.view.tools["c1/d1"] == "returned" and set(log.view.tools.values()) <= {"returned", "failed"}


async def test_parallel_inner_runs_keep_their_rows_apart() -> None:
    api = ScriptedAPI([turn(call("leaf", call_id="same")), turn(call("leaf", call_id="same")), *[turn(text("x"))] * 2])
    ask = as_tool(Agent(name="Inner", model=api.model(), tools=[leaf()]))
    both = turn(call("ask", {"input": "x"}, call_id="c1"), call("ask", {"input": "y"}, call_id="c2"))
    log = await log_of(started(scripted(both, turn(text("outer says")), tools=[ask])))
    assert log.view.tools == dict.fromkeys(["c1", "c2", "c1/same", "c2/same"], "returned")
    assert log.view.usage is not None and log.view.usage["requests"] == 6 and log.view.issues == []


async def test_two_runs_in_one_body_do_not_share_a_row() -> None:
    @function_tool
    async def ask(input: str) -> str:
        for _ in range(2):
            await Runner.run(inner(), input)
        return "ok"

    log = await log_of(started(outer(ask)))
    assert log.view.tools == dict.fromkeys(["c1", "c1/c1", "c1/c1#2"], "returned") and log.view.issues == []


async def test_an_inner_run_in_an_inner_run_is_named_by_its_whole_path() -> None:
    middle = scripted(
        turn(call("deep", {"input": "y"}, call_id="d1")),
        turn(text("m")),
        name="Middle",
        tools=[inner().as_tool("deep", "")],
    )
    log = await log_of(started(outer(as_tool(middle))))
    assert log.view.tools == dict.fromkeys(["c1", "c1/d1", "c1/d1/c1"], "returned")
    assert log.view.usage is not None and log.view.usage["requests"] == 6


async def test_a_tool_of_an_inner_run_reports_on_its_own_row(journal: MemoryJournal) -> None:
    seen: list[str | None] = []

    def report() -> str:
        current_run().report("half way", 1, 2)
        seen.append(current_run().call_id)
        return "ok"

    run = started(outer(as_tool(inner(tools=[leaf(report)]))), journal=journal)
    log = await log_of(run)
    assert seen == ["c1/c1"] and log.of("tool.progress")[0]["call_id"] == "c1/c1"


async def test_disclosure_and_the_caps_hold_for_inner_calls_too() -> None:
    secret = leaf(lambda: "inner secret")
    closed = await log_of(started(outer(as_tool(inner(tools=[secret])))))
    opened = await log_of(started(outer(as_tool(inner(tools=[secret]))), disclosure=Disclosure(outputs=["leaf"])))
    assert b"inner secret" not in b"".join(envelope.to_json() for envelope in closed.envelopes)
    assert opened.view.rows["c1/c1"].output == "inner secret" and opened.view.rows["c1"].output is None


async def test_a_handoff_in_an_inner_run_is_a_note_and_changes_no_agent() -> None:
    other = scripted(turn(text("other says")), name="Other")
    first = scripted(turn(call("transfer_to_other")), name="Inner", handoffs=[other])
    for way in (as_tool, streamed_tool):
        log = await log_of(started(outer(way(first if way is as_tool else again_of(first, other)))))
        assert log.of("note.nested.handoff") == [{"call_id": "c1", "from_agent": "Inner", "to_agent": "Other"}]
        assert log.view.agent == "A" and log.view.handoffs == [] and log.view.tools == {"c1": "returned"}


def again_of(first: Agent[Any], other: Agent[Any]) -> Agent[Any]:
    return scripted(
        turn(call("transfer_to_other")), name="Inner", handoffs=[scripted(turn(text("other says")), name="Other")]
    )


async def test_a_cancel_leaves_the_inner_rows_as_they_are() -> None:
    busy = asyncio.Event()
    waiting = inner(turn(call("leaf", call_id="d1")), turn(text("in", wait(asyncio.Event()))))
    run = started(outer(as_tool(waiting)))
    await reach(run, "note.nested.started")
    while "c1/d1" not in run.view.tools or run.view.tools["c1/d1"] != "returned":
        await asyncio.sleep(0.001)
    run.cancel()
    log = await log_of(run)
    assert log.ending["outcome"] == "cancelled" and log.view.status == "cancelled"
    assert log.view.tools == {"c1": "running", "c1/d1": "returned"} and not busy.is_set()


async def test_a_guardrail_that_runs_an_agent_of_its_own_adds_no_row() -> None:
    from agents import GuardrailFunctionOutput, InputGuardrail

    async def check(*_: Any) -> GuardrailFunctionOutput:
        await Runner.run(scripted(turn(text("fine")), name="Checker"), "hi")
        return GuardrailFunctionOutput(None, False)

    agent = scripted(turn(text("hello")), input_guardrails=[InputGuardrail(check)])
    log = await log_of(started(agent))
    assert log.view.activities == [] and log.ending["outcome"] == "succeeded"


# Approvals inside.


def asking(**options: Any) -> tuple[Agent[Any], list[str]]:
    """An outer agent whose inner agent's leaf needs an approval, and what the leaf did."""
    done: list[str] = []
    tool = leaf(lambda: done.append("leaf") or "ok", needs_approval=True)
    return outer(as_tool(inner(tools=[tool]), **options)), done


@pytest.mark.parametrize("options", [{}, {"on_stream": lambda event: None}])
@pytest.mark.parametrize("decision", ["approve", "reject"])
async def test_an_approval_raised_inside_surfaces_outside_and_is_answered_there(
    journal: MemoryJournal, options: Any, decision: str
) -> None:
    agent, done = asking(**options)
    run = started(agent, journal=journal)
    assert (await run).kind == "paused"
    log = await stored(journal, run.id)
    (question,) = log.of("approval.wait")
    assert (question["call_id"], question["tool"]) == ("c1/c1", "leaf")
    assert log.view.tools == {"c1": "running", "c1/c1": "requested"} and log.view.status == "waiting"

    again = run.resume(**{decision: "all"})
    assert (await again).kind == "succeeded"
    log = await stored(journal, again.id)
    assert log.types[:4] == ["run.started", "tool.requested", "tool.requested", "approval.wait"]
    assert log.view.tools == {"c1": "returned", "c1/c1": "returned" if decision == "approve" else "rejected"}
    assert log.ending["final_output"] == "outer says" and log.view.issues == []
    assert done == (["leaf"] if decision == "approve" else [])
    assert log.view.status == "checking"


async def test_an_approval_raised_inside_is_answered_by_the_users_own_code_too(journal: MemoryJournal) -> None:
    agent, done = asking()

    @progress.inside(journal=journal, run_id="r")
    async def body() -> str:
        result = Runner.run_streamed(agent, "hi")
        async for _ in result.stream_events():
            pass
        state = result.to_state()
        for item in result.interruptions:
            state.approve(item)
        result = Runner.run_streamed(agent, state)
        async for _ in result.stream_events():
            pass
        return str(result.final_output)

    assert await body() == "outer says" and done == ["leaf"]
    first, second = await stored(journal, "r"), await stored(journal, "r.2")
    assert first.ending["outcome"] == "paused" and second.ending["outcome"] == "succeeded"
    assert second.view.tools == {"c1": "returned", "c1/c1": "returned"} and second.view.issues == []


async def test_nothing_of_an_inner_run_changes_for_the_tool() -> None:
    """With and without a watched outer run the tool sees the same result and the same exception."""
    found: list[Any] = []

    @function_tool
    async def ask(input: str) -> str:
        result = await Runner.run(inner(), input, run_config=RunConfig(workflow_name="w"))
        found.append((result.final_output, [type(item).__name__ for item in result.new_items]))
        with pytest.raises(Exception, match="refused"):
            await Runner.run(scripted(http_error(400)), input)
        return "ok"

    async for _ in Runner.run_streamed(outer(ask), "hi").stream_events():
        pass
    run: Run = started(outer(ask))
    assert (await run).kind == "succeeded"
    assert found[0] == found[1] and isinstance(await log_of(run), Log)
