"""Structured output: the verifier gets the real object; two checks, one of form and one that this shop cares about."""

import asyncio

import httpx
import respx
from _responses import URL, answer, client
from agents import Agent, OpenAIResponsesModel, Runner, RunResultStreaming, set_tracing_disabled
from pydantic import BaseModel

from agents_progress import Verdict, progress
from agents_progress.verify import all_of, schema


class Invoice(BaseModel):
    """What the agent must return."""

    lines: list[int]
    total: int


def adds_up(invoice: Invoice) -> Verdict:
    return Verdict(invoice.total == sum(invoice.lines), check="adds_up")


agent = Agent("Clerk", model=OpenAIResponsesModel("mocked", client(httpx.AsyncClient())), output_type=Invoice)


@progress(verify=all_of(schema(Invoice), adds_up))
def invoice(order: str) -> RunResultStreaming:
    return Runner.run_streamed(agent, order)


async def main() -> None:
    for order in ("4711", "4712"):
        run = invoice(order)
        outcome = await run
        found = outcome.output_as(Invoice)
        print(f"order {order}: {outcome.kind}, lines {found.lines}, total {found.total} -> {run.view.message}")


if __name__ == "__main__":
    set_tracing_disabled(True)
    with respx.mock:
        bodies = [answer('{"lines": [2, 3], "total": 5}'), answer('{"lines": [2, 3], "total": 6}')]
        respx.post(URL).mock(side_effect=bodies)
        asyncio.run(main())
