"""Handoff: the view follows the agent that works now; a handoff is a row of its own and never a tool."""

import asyncio

from agents import Agent, Runner, RunResultStreaming, set_tracing_disabled

from agents_progress import progress
from agents_progress.testing import ScriptedAPI, call, text, turn
from agents_progress.verify import matches

api = ScriptedAPI([turn(call("transfer_to_billing")), turn(text("Your invoice was sent again."))])
billing = Agent("Billing", model=api.model())
front_desk = Agent("Front desk", model=api.model(), handoffs=[billing])


@progress(verify=matches(r".* sent again\."))
def help_customer(question: str) -> RunResultStreaming:
    return Runner.run_streamed(front_desk, question)


async def main() -> None:
    run = help_customer("I never got my invoice.")
    async for envelope in run:
        match envelope.type:
            case "run.started" | "agent.changed":
                print(f"{envelope.type}: {envelope.payload['agent']}")
            case "handoff.requested" | "handoff.completed":
                print(f"{envelope.type}: {envelope.payload['from_agent']} -> {envelope.payload['to_agent']}")
    print(f"{run.view.status}: {run.view.agent} said: {run.view.text}")
    print(f"tool rows: {run.view.tools}")


if __name__ == "__main__":
    set_tracing_disabled(True)
    asyncio.run(main())
