"""Approvals that carry something: an answer in words, and a payment that is approved with another amount."""

import asyncio

from agents import Agent, Runner, RunResultStreaming, function_tool, set_tracing_disabled

from agents_progress import Disclosure, current_run, progress
from agents_progress.errors import AnswerNotUsed
from agents_progress.testing import ScriptedAPI, call, text, turn

api = ScriptedAPI(
    [
        turn(call("clarify", {"question": "Which cup is meant?"})),
        turn(call("pay", {"to": "Ada", "eur": 120})),
        turn(text("Paid 12 EUR for the blue one.")),
    ]
)


@function_tool(needs_approval=True)
def clarify(question: str) -> str:
    return f"The customer says: {current_run().answer}"


@function_tool(needs_approval=True)
def pay(to: str, eur: int) -> str:
    print(f"  (pays {eur} EUR to {to})")
    return f"paid {eur} EUR to {to}"


@progress(approval_kinds={"clarify": "clarification"}, disclosure=Disclosure(approval_details="all"))
def settle(letter: str) -> RunResultStreaming:
    agent = Agent("Clerk", model=api.model(), tools=[clarify, pay])
    return Runner.run_streamed(agent, letter)


async def main() -> None:
    run = settle("My cup arrived broken.")
    await run
    try:
        run.resume(approve="ask-1", actor="ada")
    except AnswerNotUsed as error:
        print(f"without a text: {error.code}, and still {run.view.status}")

    run = run.resume(approve="ask-1", text="the blue one", actor="ada")
    await run
    (question,) = [each for each in run.view.interactions.values() if each.decision is None]
    print(f"asked: {question.title} {question.details}")

    run = run.resume(approve="ask-2", arguments={"ask-2": {"to": "Ada", "eur": 12}}, actor="bo")
    outcome = await run
    paid = run.view.interactions["ask-2"]
    print(f"{outcome.kind}: {outcome.output}")
    print(f"approved with other arguments by {paid.actor}: {paid.edited}, {paid.details}")


if __name__ == "__main__":
    set_tracing_disabled(True)
    asyncio.run(main())
