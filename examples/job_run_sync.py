"""A job that calls `Runner.run_sync`, as it stands: recorded and checked, though nothing of it is streamed."""

import asyncio
from contextlib import closing

from agents import Agent, Runner, function_tool, set_tracing_disabled

from agents_progress import RunView, progress
from agents_progress.journal import MemoryJournal
from agents_progress.testing import ScriptedAPI, call, text, turn
from agents_progress.verify import matches

api = ScriptedAPI([turn(call("look_up", {"order": 4711}, call_id="c1")), turn(text("Order 4711 is on its way."))])
journal = MemoryJournal()


@function_tool
def look_up(order: int) -> str:
    return f"{order}: shipped"


agent = Agent("Clerk", model=api.model(), tools=[look_up])


@progress.inside(journal=journal, run_id="job-1", verify=matches(r"Order \d+ .*"))
def job(question: str) -> str:
    return str(Runner.run_sync(agent, question).final_output)


async def recorded(run_id: str) -> RunView:
    view = RunView(run_id)
    for envelope in await journal.read(run_id):
        view.feed(envelope)
    return view


if __name__ == "__main__":
    set_tracing_disabled(True)
    print("the caller gets:", job("Where is 4711?"))
    with closing(asyncio.get_event_loop_policy().get_event_loop()) as loop:  # `run_sync` leaves its loop to the thread
        view = loop.run_until_complete(recorded("job-1"))
    print(f"recorded: {view.status}, tools {view.tools}, answer {view.text!r}")
