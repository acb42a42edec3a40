"""A failure, a limit and a pause side by side: the SDK's `is_complete` is True for all three, and none is done."""

import asyncio
from itertools import repeat

from agents import Agent, Runner, RunResultStreaming, function_tool, set_tracing_disabled

from agents_progress import progress
from agents_progress.testing import ScriptedAPI, Turn, call, http_error, turn
from agents_progress.verify import has_output

SCRIPTS: dict[str, list[Turn]] = {
    "failure": [http_error(500, "secret-host is down")],
    "limit": list(repeat(turn(call("look", {})), 3)),
    "pause": [turn(call("delete_all", {}))],
}


@function_tool
async def look() -> str:
    return "nothing yet"


@function_tool(needs_approval=True)
async def delete_all() -> str:
    return "deleted"


@progress(verify=has_output())
def work(script: str) -> RunResultStreaming:
    agent = Agent("Worker", model=ScriptedAPI(SCRIPTS[script]).model(), tools=[look, delete_all])
    return Runner.run_streamed(agent, "Go.", max_turns=2)


async def main() -> None:
    for script in SCRIPTS:
        run = work(script)
        outcome = await run
        why = outcome.reason or (outcome.error and outcome.error["code"]) or "asks " + ", ".join(run.view.interactions)
        print(f"{script:<8} is_complete={run.result.is_complete}  {outcome.kind:<10}  {why:<13}  {run.view.message}")
        if outcome.error:
            print(f"{'':<8} public: {outcome.error['message']}  In this process only: {type(run.error).__name__}")


if __name__ == "__main__":
    set_tracing_disabled(True)
    asyncio.run(main())
