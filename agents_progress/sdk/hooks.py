"""Hooks of our own beside the user's: the user's run first and their exceptions propagate, ours never do.

Every ``on_*`` of the SDK is forwarded verbatim, whatever its arguments (`on_handoff` is called with keywords), so that
a hook the SDK adds later reaches the user's object too. Source: `agents.lifecycle.RunHooksBase`, 0.18 to 0.24.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agents import Agent
from agents.lifecycle import RunHooksBase

from agents_progress.sdk.slots import logger_here


class RecordingHooks(RunHooksBase[Any, Agent[Any]]):
    """Wraps the user's run hooks (or none) and reports each call that went through, with the values of its arguments.

    ``raised`` is the exception that the user's own hook raised last.
    """

    def __init__(self, users: RunHooksBase[Any, Any] | None) -> None:
        self._users = users
        self._report: Callable[[str, tuple[Any, ...]], None] | None = None
        self.raised: BaseException | None = None

    def attach(self, report: Callable[[str, tuple[Any, ...]], None]) -> None:
        """Report from now on; the run has not taken its first step yet."""
        self._report = report

    def detach(self) -> None:
        """Report nothing more."""
        self._report = None

    async def _forward(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        answer = None
        if self._users is not None:
            try:
                answer = await getattr(self._users, name)(*args, **kwargs)
            except Exception as error:
                self.raised = error
                if name == "on_tool_end":  # the tool has returned, whatever becomes of the hook
                    self._tell(name, args, kwargs)
                raise
        self._tell(name, args, kwargs)
        return answer

    def _tell(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        if self._report is not None:
            try:
                self._report(name, (*args, *kwargs.values()))
            except Exception as error:  # noqa: BLE001 - ours never reaches user code
                logger_here().error("the report of %s failed: %s", name, type(error).__name__)


def _forwarding(name: str) -> Any:
    async def hook(self: RecordingHooks, *args: Any, **kwargs: Any) -> Any:
        return await self._forward(name, args, kwargs)

    hook.__name__ = name
    return hook


for _name in [name for name in dir(RunHooksBase) if name.startswith("on_")]:
    setattr(RecordingHooks, _name, _forwarding(_name))
