"""What a scenario stands on: scripted agents, and a memory of the results it started."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agents import Agent, AgentHooks, RunResultStreaming

from agents_progress.testing import ScriptedAPI, Turn


class Stage:
    """Made for one performance of one scenario. `kept` is called with every result before it is read."""

    def __init__(self, kept: Callable[[RunResultStreaming], None] | None = None) -> None:
        self._kept = kept
        self.apis: list[ScriptedAPI] = []
        self.results: list[RunResultStreaming] = []
        self.ended: list[str] = []
        """The names of the agents for which the SDK said that the agent ended, in order."""

    def script(self, *turns: Turn) -> ScriptedAPI:
        """An API that answers with these turns."""
        api = ScriptedAPI(turns)
        self.apis.append(api)
        return api

    def agent(self, *turns: Turn, name: str = "A", **fields: Any) -> Agent[Any]:
        """An agent whose model answers with these turns."""
        fields.setdefault("model", self.script(*turns).model())
        return Agent(name=name, hooks=_Ends(self.ended), **fields)

    def keep(self, result: RunResultStreaming) -> RunResultStreaming:
        """Remember a result, so that whoever plays the scenario can look at it afterwards."""
        self.results.append(result)
        if self._kept is not None:
            self._kept(result)
        return result


class _Ends(AgentHooks[Any]):
    def __init__(self, ended: list[str]) -> None:
        self._ended = ended

    async def on_end(self, context: Any, agent: Any, output: Any) -> None:
        self._ended.append(agent.name)
