"""An agent as a tool of another: its calls stand under the tool's own, its text never joins the answer."""

import asyncio

from agents import Agent, Runner, RunResultStreaming, function_tool, set_tracing_disabled

from agents_progress import progress
from agents_progress.testing import ScriptedAPI, call, text, turn
from agents_progress.verify import matches

depot = ScriptedAPI([turn(call("count_boxes", call_id="c1")), turn(text("There are three, I counted."))])
office = ScriptedAPI([turn(call("ask_the_depot", {"input": "boxes?"}, call_id="c1")), turn(text("3 boxes."))])


@function_tool
def count_boxes() -> str:
    return "3 boxes"


storekeeper = Agent("Storekeeper", model=depot.model(), tools=[count_boxes])
clerk = Agent("Clerk", model=office.model(), tools=[storekeeper.as_tool("ask_the_depot", "Ask the depot.")])


@progress(verify=matches(r"\d+ boxes\."))
def count(question: str) -> RunResultStreaming:
    return Runner.run_streamed(clerk, question)


async def main() -> None:
    run = count("How many boxes?")
    await run
    for row in run.view.activities:
        print(f"{row.activity_id:8} {row.title:16} {row.state}")
    usage = run.view.usage or {}
    print(f"{run.view.status}: {run.view.text} ({usage['requests']} requests, of both agents)")


if __name__ == "__main__":
    set_tracing_disabled(True)
    asyncio.run(main())
