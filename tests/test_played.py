"""Playing a script: the application's code as it stands, to its end, with nothing left behind and nothing let out."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openai
import pytest
from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    OpenAIResponsesModel,
    Runner,
    RunResultStreaming,
    TracingProcessor,
    function_tool,
    trace,
)
from agents.tracing import get_trace_provider, set_trace_provider
from agents.tracing.provider import DefaultTraceProvider

from agents_progress import Envelope, progress
from agents_progress.testing import (
    NetworkReached,
    NotOver,
    ScriptedAPI,
    ScriptNotPlayed,
    approve,
    assert_ending,
    assert_view,
    call,
    cancel,
    connection_error,
    cut,
    frozen_clock,
    http_error,
    pause,
    played,
    reject,
    run_script,
    run_script_async,
    text,
    turn,
    wait,
)
from agents_progress.verify import has_output, matches

ANSWER = turn(text("5 EUR"))


@function_tool
def add(a: int, b: int) -> str:
    return f"{a + b} EUR"


@function_tool(needs_approval=True)
def refund(eur: int) -> str:
    return "refunded"


@function_tool(needs_approval=True)
def tell(who: str) -> str:
    return "told"


agent = Agent("Clerk", model="gpt-5-mini", tools=[add, refund, tell])


@progress(verify=matches(r"\d+ EUR"), journal="sqlite:///never-made.db")
def total(question: str, *, turns: int = 5) -> RunResultStreaming:
    return Runner.run_streamed(agent, question, max_turns=turns)


def with_model(model: Any) -> Agent[Any]:
    return Agent("Clerk", model=model)


# The code as it stands.


def test_a_function_is_played_with_its_own_model_names_and_arguments_and_leaves_its_journal_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    found = run_script(total, [turn(call("add", {"a": 2, "b": 3})), ANSWER], question="2 plus 3?")
    assert_ending(found, "succeeded", output="5 EUR", accepted=True)
    assert_view(found, status="done", text="5 EUR", tools={"add": "returned"}, agent="Clerk")
    assert [request["model"] for request in found.requests] == ["gpt-5-mini", "gpt-5-mini"]
    assert found.requests[0]["input"] == [{"content": "2 plus 3?", "role": "user"}]
    assert found.types[0] == "run.started" and found.types[-2:] == ["run.ended", "app.checked"]
    assert list(tmp_path.iterdir()) == [] and "OPENAI_API_KEY" not in os.environ
    assert_ending(
        run_script(total, [turn(call("add", {"a": 2, "b": 3}))], "?", turns=1), "incomplete", reason="max_turns"
    )


def other_library() -> Any:
    """A client of the HTTP library that the installed openai client does not use."""
    import httpx

    return httpx.AsyncClient()


CLIENTS: dict[str, Callable[[], Any]] = {
    "responses": lambda: OpenAIResponsesModel("m", openai.AsyncOpenAI(api_key="k")),
    "chat": lambda: OpenAIChatCompletionsModel("m", openai.AsyncOpenAI(api_key="k")),
    "another host": lambda: OpenAIChatCompletionsModel(
        "m", openai.AsyncOpenAI(api_key="k", base_url="https://models.example/openai/v1/")
    ),
    "azure": lambda: OpenAIResponsesModel(
        "m", openai.AsyncAzureOpenAI(api_key="k", azure_endpoint="https://a.example", api_version="v1")
    ),
    "legacy httpx": lambda: OpenAIResponsesModel("m", openai.AsyncOpenAI(api_key="k", http_client=other_library())),
}


@pytest.mark.parametrize("kind", CLIENTS)
def test_an_agent_is_played_whatever_client_it_has(kind: str) -> None:
    found = run_script(with_model(CLIENTS[kind]()), [ANSWER], "2 plus 3?", verify=has_output())
    assert_view(found, status="done", text="5 EUR", agent="Clerk")


@pytest.mark.parametrize("kind", CLIENTS)
def test_an_error_reaches_every_client_as_its_own_and_takes_one_turn_however_often_it_tries(kind: str) -> None:
    refused = run_script(with_model(CLIENTS[kind]()), [http_error(500)], "hi")
    assert_ending(refused, "failed", code="server_error")
    assert isinstance(refused.error, openai.InternalServerError)
    assert len(refused.requests) == 1
    broken = run_script(with_model(CLIENTS[kind]()), [turn(text("5 ", cut()))], "hi")
    assert_ending(broken, "failed", code="connection")


def test_an_api_that_cannot_be_reached_cannot_be_reached_again_by_the_same_request() -> None:
    found = run_script(with_model(None), [connection_error()], "hi")
    assert_ending(found, "failed", code="connection")
    assert isinstance(found.error, openai.APIConnectionError)


def test_the_sdk_s_own_retries_take_turns() -> None:
    from agents import ModelRetrySettings, retry_policies

    retry = ModelRetrySettings(max_retries=1, backoff={"initial_delay": 0.0}, policy=retry_policies.http_status([500]))
    patient = Agent("Clerk", model_settings=ModelSettings(retry=retry))
    assert_ending(run_script(patient, [http_error(500), ANSWER], "hi"), "succeeded", output="5 EUR")


def test_an_agent_with_a_scripted_model_of_its_own_keeps_that() -> None:
    own = ScriptedAPI([turn(text("mine"))])
    found = run_script(with_model(own.model()), [ANSWER], "hi")
    assert_view(found, text="mine")
    with pytest.raises(ScriptNotPlayed, match="1 turn of the script not asked for; 0 played"):
        assert_ending(found, "succeeded")


def test_an_api_may_be_the_script() -> None:
    api = ScriptedAPI([ANSWER])
    assert run_script(total, api, "?").outcome.accepted
    api.assert_played()


async def test_a_function_with_a_body_that_waits_and_one_with_an_exclusive_key_are_played_in_a_running_loop() -> None:
    @progress
    async def later(question: str) -> RunResultStreaming:
        await asyncio.sleep(0)
        return Runner.run_streamed(agent, question)

    for function in (later, total.using(exclusive="one")):
        assert_ending(await run_script_async(function, [ANSWER], "?"), "succeeded")
    with pytest.raises(RuntimeError, match="write `await run_script_async"):
        run_script(total, [ANSWER], "?")


def test_switching_the_decorators_off_does_not_switch_a_test_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTS_PROGRESS", "off")
    assert_ending(run_script(total, [ANSWER], "?"), "succeeded")


def test_a_script_gives_the_same_envelopes_again_and_sinks_get_them() -> None:
    seen: list[Envelope] = []
    script = [turn(text("a long text with many words in it"), call("add", {"a": 2, "b": 3})), ANSWER]
    first, second = (run_script(total.using(sinks=[seen.append]), script, "?") for _ in range(2))
    assert [e.to_json() for e in first.envelopes] == [e.to_json() for e in second.envelopes]
    assert seen == [*first.envelopes, *second.envelopes]
    assert {envelope.occurred_at for envelope in seen} == {"1970-01-01T00:00:00.000Z"}
    assert first.view.run_id == "run-1" and len([t for t in first.types if t == "text.delta"]) > 7


def test_a_run_that_is_cancelled_when_nobody_reads_it_is_not_in_a_test() -> None:
    found = run_script(total.using(unread=0.05), [turn(text("5 ", pause(0.3), "EUR"))], "?")
    assert_ending(found, "succeeded", accepted=True)


def test_what_the_function_raises_before_there_is_a_run_is_raised() -> None:
    @progress
    def broken(question: str) -> RunResultStreaming:
        raise TimeoutError("the application's own")

    with pytest.raises(TimeoutError, match="the application's own"):
        run_script(broken, [ANSWER], "?")


def handler() -> None: ...


@pytest.mark.parametrize("target", [handler, Runner, progress.inside(lambda: None)])
def test_anything_else_is_refused_with_what_to_do(target: Any) -> None:
    with pytest.raises(
        TypeError, match=r"under @progress or by an Agent, .* `with ScriptedAPI\(\[\.\.\.\]\)\.answering"
    ):
        run_script(target, [ANSWER])


def test_a_script_of_something_else_is_refused() -> None:
    with pytest.raises(TypeError, match=r"turns and answers, not Message; write turn\(\.\.\.\) around it"):
        run_script(total, [text("5 EUR")], "?")  # type: ignore[list-item]


# Nothing is let out, nothing is left behind.


def test_a_tool_that_reaches_the_network_fails_the_test_and_the_guard_is_lifted_afterwards() -> None:
    @function_tool
    def look() -> str:
        try:
            socket.create_connection(("192.0.2.1", 80), timeout=1)
        except RuntimeError as error:
            return str(error)
        return "connected"

    before = socket.socket.connect
    with pytest.raises(NetworkReached, match=r"tried to look up '192\.0\.2\.1'"):
        run_script(Agent("A", tools=[look]), [turn(call("look")), ANSWER], "hi")
    assert socket.socket.connect is before


def test_requests_that_ask_no_model_are_not_answered() -> None:
    @function_tool
    async def look() -> str:
        import httpx

        async with httpx.AsyncClient() as client:
            return (await client.get("https://api.openai.com/v1/responses")).text

    with pytest.raises(NetworkReached, match=r"api\.openai\.com"):
        run_script(Agent("A", tools=[look]), [turn(call("look")), ANSWER], "hi")


class Remembers(TracingProcessor):
    def __init__(self) -> None:
        self.seen: list[str] = []

    def on_trace_start(self, trace: Any) -> None:
        self.seen.append(trace.name)

    def on_trace_end(self, trace: Any) -> None: ...
    def on_span_start(self, span: Any) -> None: ...
    def on_span_end(self, span: Any) -> None: ...
    def shutdown(self) -> None: ...
    def force_flush(self) -> None: ...


def test_nothing_is_traced_meanwhile_and_everything_as_before_afterwards() -> None:
    before, processor, provider = get_trace_provider(), Remembers(), DefaultTraceProvider()
    provider.register_processor(processor)
    set_trace_provider(provider)
    try:
        run_script(total, [ANSWER], "?")
        assert processor.seen == []
        with trace("mine"):
            pass
        assert processor.seen == ["mine"]
    finally:
        set_trace_provider(before)


async def test_a_run_that_does_not_end_is_told_where_it_is_and_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(played, "LIMIT", 0.2)
    with pytest.raises(NotOver, match=r"did not end within 0 s: it is running after envelope 3; look for a wait\(\)"):
        await run_script_async(total, [turn(text("5 ", wait(asyncio.Event())))], "?")
    assert_ending(await run_script_async(total, [ANSWER], "?"), "succeeded")


async def test_two_scripts_at_once_are_refused_and_the_first_goes_on() -> None:
    gate = asyncio.Event()
    first = asyncio.create_task(run_script_async(total, [turn(wait(gate), text("5 EUR"))], "?"))
    await asyncio.sleep(0.05)
    with pytest.raises(RuntimeError, match="another script is being played in this process; await it first"):
        await run_script_async(total, [ANSWER], "?")
    gate.set()
    assert_ending(await first, "succeeded")


# What people do.


@pytest.mark.parametrize(("mode", "kinds"), [("immediate", {"cancelled"}), ("after_turn", {"cancelled", "succeeded"})])
def test_somebody_cancels_where_the_script_says(mode: Any, kinds: set[str]) -> None:
    found = run_script(total, [turn(text("5 ", cancel(mode, "ada"), "EUR"))], "?")
    assert found.outcome.kind in kinds and found.outcome.requested_by == "ada"
    asked = found.types.index("cancel.requested")
    assert found.envelopes[asked].payload == {"mode": mode, "actor": "ada"}
    assert "text.delta" in found.types[:asked]


async def test_a_cancel_in_a_script_that_plays_no_run_of_ours_is_refused() -> None:
    api = ScriptedAPI([turn(text("5 ", cancel(), "EUR"))])
    with pytest.raises(Exception) as caught:  # noqa: PT011 - releases of the client wrap it or not
        await Runner.run(with_model(api.model()), "hi")
    assert "a script with a cancel() in it is played by run_script" in f"{caught.value} {caught.value.__cause__}"


ASKS = turn(call("refund", {"eur": 5}, call_id="c1"), call("tell", {"who": "ann"}, call_id="c2"))


def test_a_pause_without_an_answer_is_the_end() -> None:
    found = run_script(total, [ASKS], "?")
    assert_ending(found, "paused")
    assert_view(found, status="waiting", asks=["refund", "tell"], tools={"refund": "requested", "tell": "requested"})


@pytest.mark.parametrize(
    ("answers", "tools"),
    [
        ([approve()], {"c1": "returned", "c2": "returned"}),
        ([reject(actor="ann")], {"c1": "rejected", "c2": "rejected"}),
        ([approve("refund"), reject("tell")], {"c1": "returned", "c2": "rejected"}),
        ([approve("ask-2"), approve("refund")], {"c1": "returned", "c2": "returned"}),
    ],
)
def test_answers_are_given_where_they_stand_by_tool_by_question_or_to_all(answers: Any, tools: dict[str, str]) -> None:
    found = run_script(total, [ASKS, *answers, ANSWER], "?")
    assert_ending(found, "succeeded", accepted=True)
    states = {
        envelope.payload["call_id"]: envelope.type.removeprefix("tool.").replace("finished", "returned")
        for envelope in found.envelopes
        if envelope.type in ("tool.finished", "tool.rejected")
    }
    assert states == tools
    assert {envelope.run_id for envelope in found.envelopes} == {
        "run-1",
        *(f"run-1.{n + 2}" for n in range(len(answers))),
    }


def test_an_answer_has_its_actor_and_pauses_may_be_kept() -> None:
    found = run_script(total.using(keep_pauses=True, answerers=["ada"]), [ASKS, approve(actor="ada"), ANSWER], "?")
    assert [e.payload["actor"] for e in found.envelopes if e.type == "approval.resolved"] == ["ada", "ada"]


@pytest.mark.parametrize(
    ("script", "said"),
    [
        ([ASKS, approve("pay"), ANSWER], r"answers pay, but the run asks ask-1 \(refund\), ask-2 \(tell\)"),
        ([ASKS, ANSWER, approve()], "the run paused after turn 1, the script answers after turn 2"),
    ],
)
def test_an_answer_that_nobody_asked_for_is_refused(script: Any, said: str) -> None:
    with pytest.raises(ScriptNotPlayed, match=said):
        run_script(total, script, "?")


def test_an_answer_to_a_run_that_did_not_pause_fails_the_assertion_about_its_ending() -> None:
    found = run_script(total, [ANSWER, approve()], "?")
    with pytest.raises(ScriptNotPlayed, match="the script answers after turn 1, and there the run did not pause"):
        assert_ending(found, "succeeded")


def test_the_frozen_clock_stands_still_and_numbers_the_runs() -> None:
    clock = frozen_clock()
    assert (clock.wall(), clock.monotonic(), clock.new_id(), clock.new_id()) == (0.0, 0.0, "run-1", "run-2")
    assert frozen_clock().new_id() == "run-1"
