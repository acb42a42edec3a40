"""What a run that failed is called: real runs that fail at each place, and the code that their ending carries."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from agents import (
    Agent,
    AgentHooks,
    FunctionTool,
    Model,
    RunConfig,
    Runner,
    RunResultStreaming,
    Session,
    function_tool,
    handoff,
    input_guardrail,
    output_guardrail,
    tool_input_guardrail,
)
from agents.mcp import MCPServerStdio
from agents.memory import SessionABC
from staging import log_of, scripted, started

from agents_progress import progress
from agents_progress.run import Run
from agents_progress.sdk.origins import PLACES
from agents_progress.testing import (
    ScriptedAPI,
    Turn,
    assert_ending,
    call,
    connection_error,
    cut,
    error,
    failed,
    hang_up,
    http_error,
    raw_turn,
    run_script,
    text,
    turn,
)

SECRET = "host db-7 refused"


def refuse(*_: Any, **__: Any) -> Any:
    """What every piece of an application can meet: its own connection fails."""
    raise ConnectionRefusedError(SECRET)


async def refuse_later(*_: Any, **__: Any) -> Any:
    refuse()


class Store(SessionABC):
    """A session that remembers nothing."""

    session_id = "s"

    async def get_items(self, limit: int | None = None) -> list[Any]:
        return []

    async def add_items(self, items: list[Any]) -> None: ...
    async def pop_item(self) -> Any: ...
    async def clear_session(self) -> None: ...


class Unreadable(Store):
    async def get_items(self, limit: int | None = None) -> list[Any]:
        refuse()
        return []


class Unwritable(Store):
    async def add_items(self, items: list[Any]) -> None:
        refuse()


class StartHook(AgentHooks[Any]):
    async def on_start(self, *_: Any) -> None:
        refuse()


class ToolHook(AgentHooks[Any]):
    async def on_tool_start(self, *_: Any) -> None:
        refuse()


class OwnModel(Model):
    """A model of the application's own, which raises what its client raises."""

    async def get_response(self, *_: Any, **__: Any) -> Any:
        refuse()

    async def stream_response(self, *_: Any, **__: Any) -> Any:
        refuse()
        yield


@function_tool
def look() -> str:
    return "seen"


def guarded() -> FunctionTool:
    @function_tool
    def guarded_look() -> str:
        return "seen"

    guarded_look.tool_input_guardrails = [tool_input_guardrail(refuse)]
    return guarded_look


def nested(*turns: Any) -> FunctionTool:
    return scripted(*turns, name="B").as_tool("ask_b", "asks B", failure_error_function=None)


def of(agent: Agent[Any], **options: Any) -> Run:
    @progress
    def work() -> RunResultStreaming:
        return Runner.run_streamed(agent, "hi", **options)

    return work()


ONE = turn(text("hello"))
ASK_B = turn(call("ask_b", ['{"input": "x"}']))

SERVICE: dict[str, tuple[Turn, str]] = {
    "a connection that fails": (connection_error(), "connection"),
    "a connection that breaks": (turn(text("hel", cut())), "connection"),
    "a stream that stops": (turn(text("hel", hang_up())), "model_behavior"),
    "bytes that are no JSON": (raw_turn("{no json"), "bad_response"),
    "401": (http_error(401), "authentication"),
    "404": (http_error(404), "not_found"),
    "409": (http_error(409), "conflict"),
    "418": (http_error(418), "bad_request"),
    "429": (http_error(429), "rate_limit_exceeded"),
    "429 for ever": (http_error(429, code="insufficient_quota"), "insufficient_quota"),
    "too long": (http_error(400, code="context_length_exceeded"), "context_length_exceeded"),
    "500": (http_error(500), "server_error"),
    "a failed response": (turn(text("a"), failed("server_error")), "server_error"),
    "an image": (turn(text("a"), failed("image_too_large")), "invalid_image"),
    "a policy": (turn(text("a"), error("bio_policy")), "policy_violation"),
    "a new code": (turn(text("a"), failed("brand_new")), "model_failed"),
    "a new code of an error event": (turn(text("a"), error("brand_new")), "model_failed"),
    "a code that looks like ours": (turn(failed("hook_error")), "model_failed"),
}


@pytest.mark.parametrize("name", SERVICE)
def test_a_failure_of_the_model_service_has_its_code(name: str) -> None:
    answer, code = SERVICE[name]
    assert_ending(run_script(Agent("A"), [answer], "hi"), "failed", code=code)


CASES: dict[str, tuple[Callable[[], Run], str]] = {
    "a model of the application's own": (lambda: started(Agent(name="A", model=OwnModel())), "connection"),
    "a chat that fails": (
        lambda: started(Agent(name="A", model=ScriptedAPI([turn(failed("server_error"))]).chat_model())),
        "server_error",
    ),
    "a chat that fails in a new way": (
        lambda: started(Agent(name="A", model=ScriptedAPI([turn(failed("brand_new"))]).chat_model())),
        "model_failed",
    ),
    # The application. Its own connection failed, which is not the model service's.
    "a session that cannot be read": (lambda: started(scripted(ONE), session=Unreadable()), "session_error"),
    "a session that cannot be written": (lambda: started(scripted(ONE), session=Unwritable()), "session_error"),
    "an input guardrail that raises": (
        lambda: started(scripted(ONE, input_guardrails=[input_guardrail(refuse)])),
        "guardrail_error",
    ),
    "an output guardrail that raises": (
        lambda: started(scripted(ONE, output_guardrails=[output_guardrail(refuse)])),
        "guardrail_error",
    ),
    "a tool guardrail that raises": (
        lambda: started(scripted(turn(call("guarded_look")), tools=[guarded()])),
        "guardrail_error",
    ),
    "an agent's hook": (lambda: started(scripted(ONE, hooks=StartHook())), "hook_error"),
    "an agent's hook of a tool": (
        lambda: started(scripted(turn(call("look")), tools=[look], hooks=ToolHook())),
        "hook_error",
    ),
    "a tool that raises": (
        lambda: started(
            scripted(
                turn(call("raising")),
                tools=[function_tool(name_override="raising", failure_error_function=None)(lambda: refuse())],
            )
        ),
        "tool_error",
    ),
    "an agent in a tool that meets its limit of requests": (
        lambda: started(scripted(ASK_B, tools=[nested(http_error(429))])),
        "tool_error",
    ),
    "instructions that raise": (lambda: started(scripted(ONE, instructions=lambda c, a: refuse())), "unexpected"),
    "an input filter that raises": (
        lambda: of(scripted(ONE), run_config=RunConfig(call_model_input_filter=refuse)),
        "unexpected",
    ),
    "a handoff that raises": (
        lambda: started(
            scripted(turn(call("transfer_to_b")), handoffs=[handoff(scripted(name="B"), on_handoff=lambda c: refuse())])
        ),
        "unexpected",
    ),
    "a tool server that was not connected": (
        lambda: started(scripted(ONE, mcp_servers=[MCPServerStdio(params={"command": "none"})])),
        "usage_error",
    ),
    "a tool that nobody has": (lambda: started(scripted(turn(call("nobody")))), "model_behavior"),
}


@pytest.mark.parametrize("name", CASES)
async def test_a_failed_run_is_called_by_what_failed(name: str) -> None:
    begin, code = CASES[name]
    log = await log_of(begin())
    assert log.ending["outcome"] == "failed"
    assert log.ending["error"]["code"] == code
    assert SECRET.encode() not in b"".join(envelope.to_json() for envelope in log.envelopes)


@pytest.mark.parametrize("name", sorted({name for place in PLACES for name in place.called}))
@pytest.mark.parametrize("kind", ["sync", "async"])
async def test_a_tool_is_a_tool_whatever_its_functions_name(name: str, kind: str) -> None:
    def body() -> None:
        refuse()

    async def later() -> None:
        refuse()

    function: Any = body if kind == "sync" else later
    function.__code__ = function.__code__.replace(co_name=name)
    tool = function_tool(name_override="named", failure_error_function=None)(function)
    log = await log_of(started(scripted(turn(call("named")), tools=[tool])))
    assert log.ending["error"]["code"] == "tool_error"


async def test_a_client_without_a_key_is_not_set_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from agents.models import _openai_shared

    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_ADMIN_KEY", raising=False)
    monkeypatch.setattr(_openai_shared, "_default_openai_key", None)
    monkeypatch.setattr(_openai_shared, "_default_openai_client", None)
    log = await log_of(started(Agent(name="A", model="gpt-5")))
    assert log.ending["error"]["code"] == "client_setup"


async def test_a_session_that_is_no_class_of_the_sdks_counts_too() -> None:
    class Plain:
        session_id = "s"
        session_settings = None

        async def get_items(self, limit: int | None = None) -> list[Any]:
            refuse()
            return []

        add_items = pop_item = clear_session = refuse_later

    assert isinstance(Plain(), Session)
    log = await log_of(started(scripted(ONE), session=Plain()))
    assert log.ending["error"] == {
        "code": "session_error",
        "message": "The session could not be read or written",
        "retryable": True,
        "phase": "session",
    }
