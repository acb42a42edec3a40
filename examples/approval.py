"""Approval: the run pauses for a person, and resuming continues it as a new run of the same task, once only."""

import asyncio

from agents import Agent, Runner, RunResultStreaming, function_tool, set_tracing_disabled

from agents_progress import Disclosure, progress
from agents_progress.errors import AlreadyResumed
from agents_progress.testing import ScriptedAPI, call, text, turn
from agents_progress.verify import matches

api = ScriptedAPI([turn(call("refund", {"order": 4711, "eur": 12})), turn(text("Refunded 12 EUR."))])


@function_tool(needs_approval=True)
async def refund(order: int, eur: int) -> str:
    return f"refunded {eur} EUR for order {order}"


agent = Agent("Clerk", model=api.model(), tools=[refund])


@progress(verify=matches(r"Refunded \d+ EUR\."), disclosure=Disclosure(approval_details=["refund"]))
def settle(letter: str) -> RunResultStreaming:
    return Runner.run_streamed(agent, letter)


async def main() -> None:
    run = settle("The cup in order 4711 arrived broken.")
    outcome = await run
    print(f"{outcome.kind}: {run.view.message}")
    for question in run.view.interactions.values():
        print(f"  {question.interaction_id}: {question.title} {question.details}")

    again = run.resume(approve=["ask-1"], actor="ada")  # or reject=["ask-1"]
    print(f"{(await again).kind}: {again.view.message}")
    print(f"  same task: {again.task_id == run.task_id}, id of the new run: the first one's with {again.id[-2:]}")
    try:
        run.resume(approve="all")
    except AlreadyResumed:
        print("a second answer is refused")


if __name__ == "__main__":
    set_tracing_disabled(True)
    asyncio.run(main())
