"""`Runner.run` and `Runner.run_sync` in `@progress.inside`: followed by hooks and facts; the caller notices nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from agents import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrail,
    MaxTurnsExceeded,
    OutputGuardrail,
    RunHooks,
    Runner,
    function_tool,
)
from staging import Log, scripted, stored

from agents_progress import current_run, progress
from agents_progress.journal import MemoryJournal
from agents_progress.testing import call, http_error, message, refusal, text, turn, wait


@function_tool
async def look() -> str:
    return "ok"


def looking(*more: Any, **fields: Any) -> Agent[Any]:
    return scripted(turn(call("look", call_id="c1")), *(more or (turn(text("hello")),)), tools=[look], **fields)


async def followed(agent: Agent[Any], journal: MemoryJournal, **options: Any) -> tuple[Any, Log]:
    """What the caller gets, the output or the exception, and the log."""
    kwargs = {name: options.pop(name) for name in ("max_turns", "hooks") if name in options}

    @progress.inside(journal=journal, run_id="r", **options)
    async def body() -> Any:
        return (await Runner.run(agent, "hi", **kwargs)).final_output

    try:
        output: Any = await asyncio.wait_for(body(), 5)
    except Exception as error:  # noqa: BLE001 - it is what is compared
        output = error
    return output, await stored(journal, "r")


async def test_a_run_that_is_awaited_is_recorded_from_start_to_end(journal: MemoryJournal) -> None:
    output, log = await followed(looking(), journal)
    assert output == log.ending["final_output"] == "hello"
    assert log.types == [
        "run.started",
        "model.started", "model.completed", "usage.updated",
        "tool.requested", "tool.started", "tool.finished",
        "model.started", "text.completed", "model.completed", "usage.updated",
        "run.ended",
    ]  # fmt: skip
    assert log.view.status == "checking" and log.view.tools == {"c1": "returned"} and log.view.text == "hello"
    assert log.view.usage is not None
    assert (log.view.usage["requests"], log.view.usage["input_tokens"], log.view.usage["status"]) == (2, 20, "reported")


def blocked(*_: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(None, True)


ENDINGS: dict[str, tuple[Callable[[], Agent[Any]], dict[str, Any], str, str | None]] = {
    "plain": (lambda: scripted(turn(text("hello"))), {}, "succeeded", None),
    "empty": (lambda: scripted(turn(text(""))), {}, "succeeded", None),
    "max turns": (looking, {"max_turns": 1}, "incomplete", None),
    "http error": (lambda: scripted(http_error(400)), {}, "failed", "bad_request"),
    "input guardrail": (
        lambda: scripted(turn(text("x")), input_guardrails=[InputGuardrail(blocked)]), {}, "failed", "input_guardrail",
    ),
    "output guardrail": (
        lambda: scripted(turn(text("x")), output_guardrails=[OutputGuardrail(blocked)]), {},
        "failed", "output_guardrail",
    ),
    "refusal": (lambda: scripted(turn(refusal("I will not."))), {}, "failed", "refusal"),
    "a cut message": (lambda: scripted(turn(message(text("half"), status="incomplete"))), {}, "incomplete", None),
    "unknown tool": (lambda: scripted(turn(call("nobody"))), {}, "failed", "model_behavior"),
}  # fmt: skip


@pytest.mark.parametrize("what", ENDINGS)
async def test_the_ending_is_decided_by_the_same_table(what: str, journal: MemoryJournal) -> None:
    make, options, kind, code = ENDINGS[what]
    try:
        expected: Any = (await Runner.run(make(), "hi", **options)).final_output
    except Exception as error:  # noqa: BLE001
        expected = error
    output, log = await followed(make(), journal, **options)
    assert type(output) is type(expected) and str(output) == str(expected), "the caller lives the same life"
    assert log.ending["outcome"] == kind and len(log.endings) == 1
    assert code is None or log.ending["error"]["code"] == code
    assert log.view.issues == [] and log.view.status == {"succeeded": "checking"}.get(kind, kind)


async def test_the_users_hooks_are_called_as_ever(journal: MemoryJournal) -> None:
    class Mine(RunHooks[Any]):
        def __init__(self) -> None:
            self.seen: list[str] = []

        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            self.seen.append(tool.name)

    hooks = Mine()
    await followed(looking(), journal, hooks=hooks)
    assert hooks.seen == ["look"]


async def test_a_handoff_is_seen_when_it_happens(journal: MemoryJournal) -> None:
    b = scripted(turn(text("from B")), name="B")
    output, log = await followed(scripted(turn(call("transfer_to_b", call_id="h1")), handoffs=[b]), journal)
    assert output == "from B" and log.view.tools == {} and log.view.agent == "B"
    assert log.of("handoff.requested") == log.of("handoff.completed") == [{"from_agent": "A", "to_agent": "B"}]
    assert log.types.index("handoff.completed") < log.types.index("text.completed")


async def test_a_pause_is_answered_by_the_users_own_code(journal: MemoryJournal) -> None:
    tool = function_tool(needs_approval=True, name_override="pay")(lambda: "paid")
    other = turn(call("look", call_id="c1"), call("pay", call_id="p1"), call("pay", call_id="p2"))
    agent = scripted(other, turn(text("done")), tools=[tool, look])

    @progress.inside(journal=journal, run_id="r")
    async def body() -> Any:
        result = await Runner.run(agent, "hi")
        state = result.to_state()
        state.approve(result.interruptions[0])
        state.reject(result.interruptions[1])
        return (await Runner.run(agent, state)).final_output

    assert await body() == "done"
    first, second = await stored(journal, "r"), await stored(journal, "r.2")
    assert first.ending["outcome"] == "paused" and first.view.status == "waiting"
    assert first.view.tools == {"c1": "returned", "p1": "requested", "p2": "requested"}
    assert [resolved["decision"] for resolved in second.of("approval.resolved")] == ["approved", "rejected"]
    assert second.view.tools == {"p1": "returned", "p2": "rejected"} and second.view.status == "checking"


async def test_a_paused_run_is_resumed_through_its_handle(journal: MemoryJournal) -> None:
    tool = function_tool(needs_approval=True, name_override="pay")(lambda: "paid")
    agent = scripted(turn(call("pay", call_id="p1")), turn(text("done")), tools=[tool])
    runs: list[Any] = []

    @progress.inside(journal=journal, run_id="r", sinks=[lambda envelope: None])
    async def body() -> None:
        await Runner.run(agent, "hi")
        runs.append(current_run()._run)

    await body()
    again = runs[0].resume(approve="all")
    assert (await again).kind == "succeeded" and again.result.final_output == "done"
    assert (await stored(journal, "r.2")).view.tools == {"p1": "returned"}


async def test_a_cancel_through_the_handle_stops_the_run(journal: MemoryJournal) -> None:
    agent = scripted(turn(text("x", wait(asyncio.Event()))))
    runs: list[Any] = []

    @progress.inside(journal=journal, run_id="r")
    async def body() -> str:
        waiting = asyncio.create_task(Runner.run(agent, "hi"))
        while not runs:
            await asyncio.sleep(0.001)
            if current_run().id is not None:
                runs.append(current_run()._run)
        assert runs[0].cancel(actor="mei") == "accepted"
        with pytest.raises(asyncio.CancelledError):
            await waiting
        return "went on"

    assert await asyncio.wait_for(body(), 5) == "went on"
    log = await stored(journal, "r")
    assert (log.ending["outcome"], log.ending["requested_by"]) == ("cancelled", "mei")
    assert log.view.status == "cancelled"


async def test_an_after_turn_cancel_lets_the_turn_end(journal: MemoryJournal) -> None:
    @function_tool(name_override="look")
    async def cancelling() -> str:
        current_run()._run.cancel("after_turn")  # type: ignore[union-attr]
        return "ok"

    agent = scripted(turn(call("look", call_id="c1")), turn(text("never")), tools=[cancelling])

    @progress.inside(journal=journal, run_id="r")
    async def body() -> None:
        with pytest.raises(asyncio.CancelledError):
            await Runner.run(agent, "hi")

    await asyncio.wait_for(body(), 5)
    log = await stored(journal, "r")
    assert log.ending["outcome"] == "cancelled" and log.view.tools == {"c1": "returned"}
    assert "never" not in log.view.text


async def test_a_caller_that_is_cancelled_cancels_the_run(journal: MemoryJournal) -> None:
    agent = scripted(turn(text("x", wait(asyncio.Event()))))

    @progress.inside(journal=journal, run_id="r")
    async def body() -> Any:
        return await asyncio.wait_for(Runner.run(agent, "hi"), 0.05)

    with pytest.raises(TimeoutError):
        await body()
    while not (await stored(journal, "r")).endings:
        await asyncio.sleep(0.001)
    log = await stored(journal, "r")
    assert (log.ending["outcome"], log.ending["requested_by"]) == ("cancelled", None)


async def test_a_run_that_a_decorated_body_awaits_for_itself_is_its_own_business(journal: MemoryJournal) -> None:
    @progress(journal=journal, run_id="r")
    async def work() -> Any:
        await Runner.run(scripted(turn(text("a plan")), name="Planner"), "hi")
        return Runner.run_streamed(scripted(turn(text("hello"))), "hi")

    assert (await work()).output == "hello"
    assert len(await journal.runs()) == 1 and (await stored(journal, "r")).view.usage["requests"] == 1  # type: ignore[index]


def test_run_sync_is_followed_and_its_verdict_is_recorded() -> None:
    journal = MemoryJournal()

    @progress.inside(journal=journal, run_id="r", verify=lambda output: output == "hello")
    def body() -> Any:
        return Runner.run_sync(looking(), "hi").final_output

    try:
        assert body() == "hello"
    finally:
        asyncio.get_event_loop_policy().get_event_loop().close()
        asyncio.set_event_loop(None)
    log = asyncio.run(stored(journal, "r"))
    assert log.view.status == "done" and log.view.tools == {"c1": "returned"}


async def test_awaited_and_streamed_runs_of_one_body_are_attempts_of_one_task(journal: MemoryJournal) -> None:
    @progress.inside(journal=journal, run_id="r")
    async def body() -> None:
        await Runner.run(scripted(turn(text("one"))), "hi")
        async for _ in Runner.run_streamed(scripted(turn(text("two"))), "hi").stream_events():
            pass
        with pytest.raises(MaxTurnsExceeded):
            await Runner.run(looking(), "hi", max_turns=1)

    await body()
    rows = list(reversed(await journal.runs()))
    assert {row.task_id for row in rows} == {"r"} and [row.status for row in rows] == [
        "checking",
        "checking",
        "incomplete",
    ]
    logs = [await stored(journal, row.run_id) for row in rows]
    assert [log.of("run.started")[0]["attempt"] for log in logs] == [1, 2, 3]
