"""Follow a result that somebody else started: the same log and ending, but no start of a tool can be seen."""

import asyncio

from agents import Agent, Runner, function_tool, set_tracing_disabled

from agents_progress import follow
from agents_progress.testing import ScriptedAPI, call, text, turn
from agents_progress.verify import matches

api = ScriptedAPI([turn(call("weigh", {})), turn(text("12 kg"))])


@function_tool
async def weigh() -> str:
    return "12 kg"


agent = Agent("Packer", model=api.model(), tools=[weigh])


async def main() -> None:
    result = Runner.run_streamed(agent, "How heavy is it?")  # started in code that cannot be decorated
    run = follow(result, verify=matches(r"\d+ kg"))  # read the run from here on, not the result
    async for envelope in run:
        if envelope.type.startswith(("tool.", "note.", "run.", "app.")):
            print(envelope.type)
    print(f"{run.view.status}: {run.view.text}")


if __name__ == "__main__":
    set_tracing_disabled(True)
    asyncio.run(main())
