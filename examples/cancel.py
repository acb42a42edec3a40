"""Cancel: `cancel()` only asks. The run is cancelled when it has stopped, and a tool that had started stays visible."""

import asyncio

from agents import Agent, Runner, RunResultStreaming, function_tool, set_tracing_disabled

from agents_progress import progress
from agents_progress.testing import ScriptedAPI, call, text, turn

api = ScriptedAPI([turn(text("I send it now. "), call("send_parcel"))])
sending = asyncio.Event()


@function_tool
async def send_parcel() -> str:
    sending.set()
    await asyncio.sleep(60)  # the request is out; nobody knows yet what became of it
    return "sent"


agent = Agent("Packer", model=api.model(), tools=[send_parcel])


@progress
def ship(order: str) -> RunResultStreaming:
    return Runner.run_streamed(agent, order)


async def main() -> None:
    run = ship("order 4711")
    await sending.wait()
    print("asked:", run.cancel(actor="ada"))
    print("asked again:", run.cancel(actor="bob"))
    outcome = await run
    print(f"ended: {outcome.kind}, requested by {outcome.requested_by}")
    print(f"shown: {run.view.message}")
    print(f"tools: {[(row.title, row.state) for row in run.view.activities]}")
    print("asked after the end:", run.cancel())


if __name__ == "__main__":
    set_tracing_disabled(True)
    asyncio.run(main())
