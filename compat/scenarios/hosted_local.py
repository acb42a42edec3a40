"""Tools whose calls have a shape of their own and whose work is done here: shell, patches, computer, free text."""

from __future__ import annotations

from typing import Any

from agents import (
    ApplyPatchTool,
    AsyncComputer,
    ComputerTool,
    CustomTool,
    LocalShellTool,
    Runner,
    ShellTool,
    Tool,
)

from agents_progress.testing import raw_item, text, turn

from ..registry import scenario
from ..stage import Stage
from .cast import drain


async def run(stage: Stage, call: Any, tool: Tool) -> None:
    """A run that makes one such call and then answers."""
    agent = stage.agent(turn(call), turn(text("done")), tools=[tool])
    await drain(stage.keep(Runner.run_streamed(agent, "hi")))


def shell_call() -> Any:
    action = {"commands": ["ls"], "timeout_ms": None, "max_output_length": None}
    return raw_item({"type": "shell_call", "id": "sh_1", "call_id": "c_sh", "status": "completed", "action": action})


@scenario("succeeded")
async def hosted_shell(stage: Stage) -> None:
    await run(stage, shell_call(), ShellTool(executor=lambda _: "a.txt"))


@scenario("paused")
async def hosted_shell_approval(stage: Stage) -> None:
    await run(stage, shell_call(), ShellTool(executor=lambda _: "a.txt", needs_approval=True))


@scenario("succeeded")
async def hosted_shell_raises(stage: Stage) -> None:
    def fail(_: Any) -> str:
        raise RuntimeError("no shell here")

    await run(stage, shell_call(), ShellTool(executor=fail))


@scenario("succeeded")
async def hosted_local_shell(stage: Stage) -> None:
    action = {"type": "exec", "command": ["ls"], "env": {}}
    call = {"type": "local_shell_call", "id": "ls_1", "call_id": "c_ls", "status": "completed", "action": action}
    await run(stage, raw_item(call), LocalShellTool(executor=lambda _: "a.txt"))


class Editor:
    """Accepts every patch and changes nothing."""

    def create_file(self, operation: Any) -> str:
        return "created"

    def update_file(self, operation: Any) -> str:
        return "updated"

    def delete_file(self, operation: Any) -> str:
        return "deleted"


def patch_call() -> Any:
    operation = {"type": "create_file", "path": "a.txt", "diff": "+a\n"}
    shape = {"type": "apply_patch_call", "id": "ap_1", "call_id": "c_ap", "status": "completed"}
    return raw_item({**shape, "operation": operation})


@scenario("succeeded")
async def hosted_apply_patch(stage: Stage) -> None:
    await run(stage, patch_call(), ApplyPatchTool(editor=Editor()))


@scenario("paused")
async def hosted_apply_patch_approval(stage: Stage) -> None:
    await run(stage, patch_call(), ApplyPatchTool(editor=Editor(), needs_approval=True))


@scenario("succeeded")
async def hosted_custom_tool(stage: Stage) -> None:
    async def shout(_: Any, words: str) -> str:
        return words.upper()

    call = {"type": "custom_tool_call", "id": "ct_1", "call_id": "c_ct", "name": "shout", "input": "hello"}
    written = raw_item(
        call,
        {"type": "response.custom_tool_call_input.delta", "delta": "hello"},
        {"type": "response.custom_tool_call_input.done", "input": "hello"},
        added={**call, "input": ""},
    )
    await run(stage, written, CustomTool(name="shout", description="Shout.", on_invoke_tool=shout))


class Screen(AsyncComputer):
    """A computer on which nothing happens."""

    environment = "browser"
    dimensions = (800, 600)

    async def screenshot(self) -> str:
        return "aW1n"

    async def click(self, x: int, y: int, button: Any) -> None: ...

    async def double_click(self, x: int, y: int) -> None: ...

    async def scroll(self, x: int, y: int, scroll_x: int, scroll_y: int) -> None: ...

    async def type(self, text: str) -> None: ...

    async def wait(self) -> None: ...

    async def move(self, x: int, y: int) -> None: ...

    async def keypress(self, keys: list[str]) -> None: ...

    async def drag(self, path: list[tuple[int, int]]) -> None: ...


def computer_call(*checks: Any) -> Any:
    action = {"type": "click", "x": 1, "y": 2, "button": "left"}
    shape = {"type": "computer_call", "id": "cc_1", "call_id": "c_cc", "status": "completed"}
    return raw_item({**shape, "action": action, "pending_safety_checks": list(checks)})


@scenario("succeeded")
async def hosted_computer(stage: Stage) -> None:
    await run(stage, computer_call(), ComputerTool(Screen()))


@scenario("succeeded")
async def hosted_computer_safety_check(stage: Stage) -> None:
    check = {"id": "sc_1", "code": "malicious_instructions", "message": "Is this what you want?"}
    await run(stage, computer_call(check), ComputerTool(Screen(), on_safety_check=lambda _: True))
