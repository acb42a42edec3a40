"""How tools really ended: failures that the SDK hands to the model as text, refusals, and calls that never ran; traced
and untraced.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest
from agents import (
    Agent,
    ApplyPatchTool,
    ComputerTool,
    CustomTool,
    LocalShellTool,
    RunConfig,
    RunHooks,
    Runner,
    ShellTool,
    ToolGuardrailFunctionOutput,
    default_tool_error_function,
    function_tool,
    set_trace_processors,
    set_tracing_disabled,
    tool_input_guardrail,
    tool_output_guardrail,
)
from agents.mcp import MCPServer
from agents.tracing import TracingProcessor
from mcp import types
from staging import OPEN, Log, log_of, reach, scripted, started

from agents_progress import follow, progress
from agents_progress.sdk.failures import CODES
from agents_progress.testing import call, http_error, raw_item, text, turn
from compat.scenarios.hosted_local import Editor, Screen, computer_call, patch_call, shell_call


class Kept(TracingProcessor):
    """Takes every span and sends it nowhere."""

    def on_trace_start(self, trace: Any) -> None: ...

    def on_trace_end(self, trace: Any) -> None: ...

    def on_span_start(self, span: Any) -> None: ...

    def on_span_end(self, span: Any) -> None: ...

    def shutdown(self) -> None: ...

    def force_flush(self) -> None: ...


@pytest.fixture(params=[True, False], ids=["traced", "untraced"])
def traced(request: pytest.FixtureRequest) -> Iterator[bool]:
    set_trace_processors([Kept()])
    set_tracing_disabled(not request.param)
    yield request.param
    set_tracing_disabled(True)
    set_trace_processors([])


@pytest.fixture
def tracing() -> Iterator[None]:
    set_trace_processors([Kept()])
    set_tracing_disabled(False)
    yield
    set_tracing_disabled(True)
    set_trace_processors([])


def raises() -> str:
    raise ValueError("kaput at /secret/path")


def own_words(context: Any, error: Exception) -> str:
    return "Sorry, not today."


async def played(*tools: Any, calls: Any = (), **fields: Any) -> Log:
    made = calls or [call(tool.name, call_id=tool.name) for tool in tools]
    log = await log_of(started(scripted(turn(*made), turn(text("ok")), tools=[*tools], **fields), disclosure=OPEN))
    assert log.view.issues == []
    return log


def row(log: Log, call_id: str) -> tuple[str, str | None]:
    return log.view.rows[call_id].state, log.view.rows[call_id].note


# Errors that the SDK hands to the model.


async def test_a_tool_that_raised_under_the_default_error_function_has_failed(traced: bool) -> None:
    log = await played(function_tool(raises, name_override="t"))
    assert row(log, "t") == ("failed", "tool_error")
    assert log.ending["outcome"] == "succeeded"
    assert log.of("tool.failed")[0]["code"] in CODES and "secret" not in repr(log.envelopes)


async def test_the_default_error_function_named_by_the_application_is_known_too(traced: bool) -> None:
    tool = function_tool(name_override="t", failure_error_function=default_tool_error_function)(lambda: raises())
    assert row(await played(tool), "t") == ("failed", "tool_error")


async def test_arguments_that_are_no_json_are_a_failure(traced: bool) -> None:
    tool = function_tool(name_override="t")(lambda: "never")
    assert row(await played(tool, calls=[call("t", "{oops", call_id="t")]), "t") == ("failed", "tool_error")


async def test_a_tool_that_cancels_itself_has_failed(traced: bool) -> None:
    async def gives_up() -> str:
        raise asyncio.CancelledError

    assert row(await played(function_tool(gives_up)), "gives_up") == ("failed", "tool_error")


async def test_the_applications_own_error_function_hides_a_failure_only_from_untraced_runs(traced: bool) -> None:
    tool = function_tool(name_override="t", failure_error_function=own_words)(lambda: raises())
    assert row(await played(tool), "t") == (("failed", "tool_error") if traced else ("returned", None))


async def test_a_tool_that_returned_is_not_failed_whatever_it_says(traced: bool) -> None:
    words = "An error occurred, said the oracle. Error: none. timed out"
    tool = function_tool(name_override="t")(lambda: words)
    log = await played(tool)
    assert row(log, "t") == ("returned", None) and log.view.rows["t"].output == words


@pytest.mark.parametrize("given", [None, "", 0, False, [], {}, b""])
async def test_a_tool_that_returned_next_to_nothing_has_returned(traced: bool, given: Any) -> None:
    tool = function_tool(name_override="t", timeout=5)(async_of(given))
    assert row(await played(tool), "t") == ("returned", None)
    plain = function_tool(name_override="t")(async_of(given))
    assert row(await played(plain), "t") == ("returned", None)


def async_of(given: Any) -> Any:
    async def give() -> Any:
        return given

    return give


async def test_an_error_in_one_of_several_parallel_tools_is_its_own(traced: bool) -> None:
    bad = function_tool(name_override="bad")(lambda: raises())
    good = function_tool(name_override="good")(lambda: "fine")
    calls = [call(name, call_id=f"{name}{n}") for n in range(3) for name in ("bad", "good")]
    log = await played(bad, good, calls=calls)
    assert log.view.tools == {
        f"{name}{n}": "failed" if name == "bad" else "returned" for n in range(3) for name in ("bad", "good")
    }


@pytest.mark.parametrize("words", [None, own_words])
async def test_a_timeout_is_seen_when_the_sdk_words_it(traced: bool, words: Any) -> None:
    @function_tool(timeout=0.02, timeout_error_function=words)
    async def endless() -> str:
        await asyncio.Event().wait()
        return "never"

    assert row(await played(endless), "endless") == (("returned", None) if words else ("failed", "tool_timeout"))


@pytest.mark.parametrize("fails", [False, True])
async def test_an_agent_tool_is_an_agents_row_and_fails_when_its_run_did(traced: bool, fails: bool) -> None:
    inner = scripted(http_error(400) if fails else turn(text("inner")), name="inner")
    tool = inner.as_tool("ask", "Ask.")
    log = await played(tool, calls=[call("ask", {"input": "x"}, call_id="a")])
    assert log.view.rows["a"].kind == "agent"
    assert row(log, "a") == (("failed", "tool_error") if fails else ("returned", None))


class Wiki(MCPServer):
    """A server in this process, with one tool that answers and one that fails."""

    name = "wiki"

    async def connect(self) -> None: ...

    async def cleanup(self) -> None: ...

    async def list_prompts(self) -> Any: ...

    async def get_prompt(self, *args: Any) -> Any: ...

    async def list_tools(self, *args: Any) -> Any:
        return [types.Tool(name=name, inputSchema={"type": "object", "properties": {}}) for name in ("good", "bad")]

    async def call_tool(self, name: str, *args: Any, **kwargs: Any) -> Any:
        if name == "bad":
            raise RuntimeError("no wiki here")
        return types.CallToolResult(content=[types.TextContent(type="text", text="the page")])


async def test_a_tool_of_an_mcp_server_is_a_row_of_that_kind_and_fails_when_the_server_did(traced: bool) -> None:
    calls = [call(name, call_id=name) for name in ("good", "bad")]
    log = await log_of(started(scripted(turn(*calls), turn(text("ok")), mcp_servers=[Wiki()]), disclosure=OPEN))
    assert {row.kind for row in log.view.activities} == {"mcp"}
    assert log.view.tools == {"good": "returned", "bad": "failed"} and log.view.rows["good"].output == "the page"


# Errors that end the run.


async def test_a_tool_whose_error_ends_the_run_is_not_left_running(traced: bool) -> None:
    fatal = function_tool(name_override="fatal", failure_error_function=None)(lambda: raises())
    log = await played(fatal)
    assert log.ending["error"]["code"] == "tool_error"
    assert row(log, "fatal") == ("failed", "tool_error")


async def test_a_timeout_that_ends_the_run_is_its_tools(traced: bool) -> None:
    @function_tool(timeout=0.02, timeout_behavior="raise_exception")
    async def endless() -> str:
        await asyncio.Event().wait()
        return "never"

    assert row(await played(endless), "endless") == ("failed", "tool_timeout")


async def test_of_parallel_calls_the_one_that_ended_the_run_has_failed(traced: bool) -> None:
    begun = asyncio.Event()

    @function_tool(failure_error_function=None)
    async def fatal() -> str:
        await begun.wait()
        return raises()

    @function_tool
    async def sibling() -> str:
        begun.set()
        await asyncio.Event().wait()
        return "never"

    log = await played(fatal, sibling)
    assert log.view.tools == {"fatal": "failed", "sibling": "running"}, "it was cancelled, nobody knows how far it got"


async def test_twins_of_which_one_ended_the_run_are_told_apart_only_by_their_spans(traced: bool) -> None:
    both = asyncio.Barrier(2)

    @function_tool(failure_error_function=None)
    async def twin(bad: bool) -> str:
        await both.wait()
        if bad:
            raises()
        await asyncio.Event().wait()
        return "never"

    calls = [call("twin", {"bad": bad}, call_id=f"c{bad:d}") for bad in (False, True)]
    log = await played(twin, calls=calls)
    assert log.view.tools == {"c0": "running", "c1": "failed" if traced else "running"}


async def test_a_hook_that_fails_after_a_tool_is_not_the_tools_error(traced: bool) -> None:
    class Broken(RunHooks[Any]):
        async def on_tool_end(self, *args: Any) -> None:
            raise RuntimeError("hook")

    tool = function_tool(name_override="t")(lambda: "fine")
    run = started(scripted(turn(call("t", call_id="t")), tools=[tool]), hooks=Broken())
    # Since 0.24 the SDK passes on what the tool returned; before, all that is known is that the hook ended it.
    assert row(await log_of(run), "t") in [("returned", None), ("failed", "hook_error")]


# Refusals, and calls that never ran.


@tool_input_guardrail
def rejects(_: Any) -> ToolGuardrailFunctionOutput:
    return ToolGuardrailFunctionOutput.reject_content("not with these arguments")


@tool_output_guardrail
def blanks(_: Any) -> ToolGuardrailFunctionOutput:
    return ToolGuardrailFunctionOutput.reject_content("withheld")


async def test_a_call_that_an_input_guardrail_refused_was_not_executed(traced: bool) -> None:
    ran: list[int] = []
    tool = function_tool(name_override="t", tool_input_guardrails=[rejects])(lambda: ran.append(1) or "never")
    free = function_tool(name_override="free")(lambda: "fine")
    log = await played(tool, free)
    assert ran == []
    assert row(log, "t") == ("rejected", "tool_guardrail") and row(log, "free") == ("returned", None)
    assert [payload["call_id"] for payload in log.of("tool.started")] == ["free"]


async def test_a_tool_whose_output_a_guardrail_replaced_did_return(traced: bool) -> None:
    tool = function_tool(name_override="t", tool_output_guardrails=[blanks])(lambda: "secret")
    log = await played(tool)
    assert row(log, "t") == ("returned", None) and log.view.rows["t"].output == "withheld"


async def test_an_error_behind_a_replaced_output_is_seen_only_by_its_span(traced: bool) -> None:
    tool = function_tool(name_override="t", tool_output_guardrails=[blanks])(lambda: raises())
    assert row(await played(tool), "t") == (("failed", "tool_error") if traced else ("returned", None))


@pytest.mark.parametrize("kind", ["function", "shell", "patch", "custom"])
async def test_a_call_that_a_person_refused_is_rejected_whatever_its_kind(kind: str) -> None:
    agent = scripted(turn(LOCAL[kind][0]), turn(text("ok")), tools=[LOCAL[kind][1]({"needs_approval": True})])
    run = started(agent)
    await run
    (question,) = run.view.interactions.values() if isinstance(run.view.interactions, dict) else run.view.interactions
    log = await log_of(run.resume(reject=[question.interaction_id]))
    assert log.ending["outcome"] == "succeeded"
    assert [(row.state, row.note) for row in log.view.activities] == [("rejected", "approval_rejected")]


@pytest.mark.parametrize("kind", ["shell", "patch", "custom"])
async def test_a_call_that_the_application_refuses_at_once_is_rejected(kind: str) -> None:
    refuse = {"needs_approval": True, "on_approval": lambda *_: {"approve": False, "reason": "no"}}
    log = await log_of(started(scripted(turn(LOCAL[kind][0]), turn(text("ok")), tools=[LOCAL[kind][1](refuse)])))
    assert [(row.state, row.note) for row in log.view.activities] == [("rejected", "approval_rejected")]


async def test_a_standing_refusal_is_a_rejection_in_the_next_turn_too() -> None:
    tool = function_tool(name_override="t", needs_approval=True)(lambda: "never")
    agent = scripted(turn(call("t", call_id="t1")), turn(call("t", call_id="t2")), turn(text("ok")), tools=[tool])
    first = Runner.run_streamed(agent, "hi")
    await log_of(follow(first))
    state = first.to_state()
    state.reject(first.interruptions[0], always_reject=True)
    log = await log_of(follow(Runner.run_streamed(agent, state)))
    assert [(row.state, row.note) for row in log.view.activities][-1] == ("rejected", "approval_rejected")


async def test_of_two_handoffs_the_ignored_one_leaves_no_row_and_no_orphan() -> None:
    b, c = scripted(turn(text("b")), name="B"), scripted(turn(text("c")), name="C")
    agent = scripted(turn(call("transfer_to_b"), call("transfer_to_c")), handoffs=[b, c])
    log = await log_of(started(agent))
    assert log.view.tools == {} and log.view.issues == []
    assert [(row.name, row.state) for row in log.view.activities] == [("B", "returned")]
    assert log.of("note.handoff_ignored") == [{"from_agent": "A", "to_agent": "C"}]


# Tools that run here and have calls of their own shape.

CUSTOM_CALL = raw_item({"type": "custom_tool_call", "id": "ct", "call_id": "c_ct", "name": "shout", "input": "hello"})
LOCAL_SHELL_CALL = raw_item(
    {
        "type": "local_shell_call", "id": "ls", "call_id": "c_ls", "status": "completed",
        "action": {"type": "exec", "command": ["ls"], "env": {}},
    }
)  # fmt: skip


async def shout(_: Any, words: str) -> str:
    return words.upper()


LOCAL: dict[str, Any] = {
    "function": (call("t", call_id="t"), lambda more: function_tool(name_override="t", **more)(lambda: "done")),
    "shell": (shell_call(), lambda more: ShellTool(executor=lambda _: "a.txt", **more)),
    "patch": (patch_call(), lambda more: ApplyPatchTool(editor=Editor(), **more)),
    "custom": (CUSTOM_CALL, lambda more: CustomTool(name="shout", description="", on_invoke_tool=shout, **more)),
    "computer": (computer_call(), lambda more: ComputerTool(Screen(), **more)),
    "local shell": (LOCAL_SHELL_CALL, lambda more: LocalShellTool(executor=lambda _: "a.txt", **more)),
}
KIND = {"local shell": "shell"}


@pytest.mark.parametrize("kind", LOCAL)
async def test_a_tool_of_every_local_kind_starts_and_returns_with_its_time(traced: bool, kind: str) -> None:
    log = await log_of(started(scripted(turn(LOCAL[kind][0]), turn(text("ok")), tools=[LOCAL[kind][1]({})])))
    (activity,) = log.view.activities
    assert (activity.kind, activity.state) == (KIND.get(kind, kind), "returned")
    assert len(log.of("tool.started")) == 1 and activity.duration_ms is not None
    assert log.view.issues == []


@pytest.mark.parametrize("kind", ["shell", "patch", "custom", "computer", "local shell"])
async def test_an_error_of_every_local_kind_is_seen(traced: bool, kind: str) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("no such thing")

    screen, editor = Screen(), Editor()
    screen.click = editor.create_file = fail  # type: ignore[method-assign, assignment]
    tool = {
        "shell": lambda: ShellTool(executor=fail),
        "patch": lambda: ApplyPatchTool(editor=editor),
        "custom": lambda: CustomTool(name="shout", description="", on_invoke_tool=fail),
        "computer": lambda: ComputerTool(screen),
        "local shell": lambda: LocalShellTool(executor=fail),
    }[kind]()
    log = await log_of(started(scripted(turn(LOCAL[kind][0]), turn(text("ok")), tools=[tool])))
    (activity,) = log.view.activities
    unseen = "returned" if kind == "custom" and not traced else "failed"
    if kind in ("computer", "local shell"):
        assert log.ending["outcome"] == "failed"
        unseen = "failed" if kind == "computer" and traced else "running"
    assert activity.state == unseen


async def test_two_calls_whose_hooks_do_not_say_which_is_which_claim_no_start() -> None:
    second = {"type": "shell_call", "id": "sh2", "call_id": "c2", "status": "completed", "action": {"commands": ["x"]}}
    agent = scripted(turn(shell_call(), raw_item(second)), turn(text("ok")), tools=[ShellTool(executor=lambda _: "a")])
    log = await log_of(started(agent))
    assert log.view.tools == {"c_sh": "returned", "c2": "returned"} and log.view.issues == []
    assert log.of("tool.started") == []


# Time.


async def test_of_parallel_tools_the_fast_one_is_shown_finished_while_the_slow_one_works() -> None:
    @function_tool
    async def fast() -> str:
        await asyncio.sleep(0.05)
        return "f"

    @function_tool
    async def slow() -> str:
        await asyncio.sleep(0.5)
        return "s"

    agent = scripted(turn(call("slow", call_id="s"), call("fast", call_id="f")), turn(text("ok")), tools=[fast, slow])
    run = started(agent)
    await reach(run, "tool.started")
    begun = time.perf_counter()
    first = await reach(run, "tool.finished")
    assert time.perf_counter() - begun < 0.3
    assert first.payload["call_id"] == "f" and first.payload["duration_ms"] < 300
    log = await log_of(run)
    assert [payload["call_id"] for payload in log.of("tool.finished")] == ["f", "s"]


@pytest.mark.parametrize(("words", "state"), [(default_tool_error_function, "failed"), (own_words, "returned")])
async def test_a_run_config_that_disables_tracing_makes_an_untraced_run(tracing: None, words: Any, state: str) -> None:
    tool = function_tool(name_override="t", failure_error_function=words)(lambda: raises())
    agent: Agent[Any] = scripted(turn(call("t", call_id="t")), turn(text("ok")), tools=[tool])

    @progress
    def work() -> Any:
        return Runner.run_streamed(agent, "hi", run_config=RunConfig(tracing_disabled=True))

    assert (await log_of(work())).view.tools == {"t": state}


async def test_a_followed_run_knows_the_failures_that_its_outputs_tell(traced: bool) -> None:
    bad = function_tool(name_override="bad")(lambda: raises())
    good = function_tool(name_override="good")(lambda: "fine")
    agent = scripted(turn(call("bad", call_id="b"), call("good", call_id="g")), turn(text("ok")), tools=[bad, good])
    log = await log_of(follow(Runner.run_streamed(agent, "hi")))
    assert log.view.tools == {"b": "failed", "g": "returned"} and log.of("tool.started") == []
