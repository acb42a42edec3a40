"""Tools that run at OpenAI: they appear only as items of the response, with raw events while they work."""

from __future__ import annotations

from typing import Any

from agents import (
    CodeInterpreterTool,
    FileSearchTool,
    HostedMCPTool,
    ImageGenerationTool,
    MCPToolApprovalRequest,
    Runner,
    Tool,
    ToolSearchTool,
    WebSearchTool,
    function_tool,
)
from agents.tool import MCPToolApprovalFunctionResult

from agents_progress.testing import raw_item, text, turn

from ..registry import scenario
from ..stage import Stage
from .cast import drain


async def run(stage: Stage, *items: Any, tools: list[Tool]) -> None:
    """A run whose one response holds these items and then an answer."""
    agent = stage.agent(turn(*items, text("answer")), tools=tools)
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


def phases(kind: str, *names: str) -> list[str]:
    return [f"response.{kind}.{name}" for name in names]


def web_search(status: str) -> Any:
    action = {"type": "search", "query": "weather", "queries": ["weather"]}
    item = {"type": "web_search_call", "id": "ws_1", "status": status, "action": action}
    return raw_item(item, *phases("web_search_call", "in_progress", "searching", "completed"))


@scenario("succeeded")
async def hosted_web_search(stage: Stage) -> None:
    await run(stage, web_search("completed"), tools=[WebSearchTool()])


@scenario("succeeded")
async def hosted_web_search_failed_status(stage: Stage) -> None:
    await run(stage, web_search("failed"), tools=[WebSearchTool()])


@scenario("succeeded")
async def hosted_file_search(stage: Stage) -> None:
    item = {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["a"], "results": None}
    searched = raw_item(item, *phases("file_search_call", "in_progress", "searching", "completed"))
    await run(stage, searched, tools=[FileSearchTool(vector_store_ids=["vs_1"])])


@scenario("succeeded")
async def hosted_code_interpreter(stage: Stage) -> None:
    code = {"type": "code_interpreter_call", "id": "ci_1", "code": "print(1)", "container_id": "c_1", "outputs": []}
    computed = raw_item(
        {**code, "status": "completed"},
        "response.code_interpreter_call.in_progress",
        {"type": "response.code_interpreter_call_code.delta", "delta": "print(1)"},
        {"type": "response.code_interpreter_call_code.done", "code": "print(1)"},
        *phases("code_interpreter_call", "interpreting", "completed"),
    )
    config: Any = {"type": "code_interpreter", "container": {"type": "auto"}}
    await run(stage, computed, tools=[CodeInterpreterTool(config)])


@scenario("succeeded")
async def hosted_image_generation(stage: Stage) -> None:
    preview = {"type": "response.image_generation_call.partial_image", "partial_image_index": 0}
    drawn = raw_item(
        {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "aW1n"},
        *phases("image_generation_call", "in_progress", "generating"),
        {**preview, "partial_image_b64": "aQ=="},
        "response.image_generation_call.completed",
    )
    await run(stage, drawn, tools=[ImageGenerationTool({"type": "image_generation"})])


def mcp(**fields: Any) -> HostedMCPTool:
    """A hosted MCP server called `wiki`."""
    config: Any = {"type": "mcp", "server_label": "wiki", "server_url": "https://mcp.example.org"}
    config["require_approval"] = "always"
    return HostedMCPTool(config, **fields)


def mcp_listed() -> Any:
    tools = [{"name": "read", "input_schema": {"type": "object"}, "description": "Read a page.", "annotations": None}]
    item = {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "wiki", "tools": tools, "error": None}
    return raw_item(item, *phases("mcp_list_tools", "in_progress", "completed"), added={**item, "tools": []})


def mcp_called(ending: str, **fields: Any) -> Any:
    call = {"type": "mcp_call", "id": "mcp_1", "server_label": "wiki", "name": "read", "arguments": '{"page": 1}'}
    return raw_item(
        {**call, "approval_request_id": None, "output": None, "error": None, **fields},
        "response.mcp_call.in_progress",
        {"type": "response.mcp_call_arguments.delta", "delta": '{"page": 1}'},
        {"type": "response.mcp_call_arguments.done", "arguments": '{"page": 1}'},
        f"response.mcp_call.{ending}",
    )


def mcp_asked() -> Any:
    request = {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "wiki", "name": "read"}
    return raw_item({**request, "arguments": '{"page": 1}'})


@scenario("succeeded")
async def hosted_mcp_list_and_call(stage: Stage) -> None:
    await run(stage, mcp_listed(), mcp_called("completed", output="the page"), tools=[mcp()])


@scenario("succeeded")
async def hosted_mcp_call_failed(stage: Stage) -> None:
    error = {"type": "mcp_protocol_error", "code": 500, "message": "no such page"}
    await run(stage, mcp_called("failed", error=error), tools=[mcp()])


@scenario("paused")
async def hosted_mcp_approval_no_callback(stage: Stage) -> None:
    agent = stage.agent(turn(mcp_asked()), tools=[mcp()])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("paused")
async def hosted_mcp_approval_no_callback_with_text(stage: Stage) -> None:
    agent = stage.agent(turn(text("May I?"), mcp_asked()), tools=[mcp()])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def hosted_mcp_approval_callback(stage: Stage) -> None:
    def approve(_: MCPToolApprovalRequest) -> MCPToolApprovalFunctionResult:
        return {"approve": True}

    agent = stage.agent(turn(mcp_asked()), turn(text("done")), tools=[mcp(on_approval_request=approve)])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("failed")
async def hosted_mcp_no_tool_configured(stage: Stage) -> None:
    agent = stage.agent(turn(mcp_asked()))
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


@scenario("succeeded")
async def hosted_tool_search(stage: Stage) -> None:
    @function_tool(defer_loading=True)
    def rare() -> str:
        return "never called"

    shape = {"execution": "server", "call_id": None, "status": "completed"}
    found: Any = {"type": "tool_search_output", "id": "tso_1", "tools": [], **shape}
    searched = {"type": "tool_search_call", "id": "ts_1", "arguments": {"query": "rare"}, **shape}
    await run(stage, raw_item(searched), raw_item(found), tools=[ToolSearchTool(), rare])


@scenario("succeeded")
async def hosted_compaction_item(stage: Stage) -> None:
    await run(stage, raw_item({"type": "compaction", "id": "cmp_1", "encrypted_content": "x"}), tools=[])


@scenario("succeeded")
async def hosted_unknown_item_type(stage: Stage) -> None:
    await run(stage, raw_item({"type": "telepathy_call", "id": "tp_1", "status": "completed"}), tools=[])
