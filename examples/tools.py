"""Tools: one counts its progress, one shows its output, one fails and apologises: it returned, no more is claimed."""

import asyncio

from agents import Agent, Runner, RunResultStreaming, function_tool, set_tracing_disabled

from agents_progress import Disclosure, current_run, progress
from agents_progress.testing import ScriptedAPI, call, text, turn
from agents_progress.verify import matches

api = ScriptedAPI(
    [
        turn(text("Let me look."), call("count_boxes"), call("weigh", {"kilos": 12}), call("ask_the_depot")),
        turn(text("3 boxes, 12 kg; the depot did not answer.")),
    ]
)


@function_tool
def count_boxes() -> str:
    for box in (1, 2, 3):
        current_run().report("counting", box, 3)
    return "3 boxes"


@function_tool
async def weigh(kilos: int) -> str:
    return f"{kilos} kg"


def apologise(context: object, error: Exception) -> str:
    return "no answer; go on without it"


@function_tool(failure_error_function=apologise)
async def ask_the_depot() -> str:
    raise TimeoutError("depot-7.internal did not answer")  # this text never leaves the process


agent = Agent("Packer", model=api.model(), tools=[count_boxes, weigh, ask_the_depot])


@progress(verify=matches(r"3 boxes, 12 kg.*"), disclosure=Disclosure(outputs=["weigh"]))
def pack(order: str) -> RunResultStreaming:
    return Runner.run_streamed(agent, order)


async def main() -> None:
    run = pack("order 4711")
    async for envelope in run:
        if envelope.type.startswith("tool."):
            print(envelope.seq, envelope.type, {name: value for name, value in envelope.payload.items() if value})
    print(run.view.status, run.view.tools)


if __name__ == "__main__":
    set_tracing_disabled(True)
    asyncio.run(main())
