"""The first run: one decorator on existing code, shown in the terminal, done only when the check accepts the answer."""

import asyncio

import httpx
import respx
from _responses import URL, answer, client
from agents import Agent, OpenAIResponsesModel, Runner, RunResultStreaming, set_tracing_disabled

from agents_progress import progress
from agents_progress.terminal import show
from agents_progress.verify import matches

agent = Agent(
    "Clerk",
    instructions="Answer with the total only.",
    model=OpenAIResponsesModel("mocked", client(httpx.AsyncClient())),
)


@progress(verify=matches(r"\d+ EUR"))
def total(question: str) -> RunResultStreaming:
    return Runner.run_streamed(agent, question)  # existing code, unchanged


async def main() -> None:
    outcome = await show(total("2 EUR plus 3 EUR?"))
    print(f"kind: {outcome.kind}, accepted: {outcome.accepted}, output: {outcome.output}")


if __name__ == "__main__":
    set_tracing_disabled(True)
    with respx.mock:
        respx.post(URL).mock(return_value=answer("5 EUR"))
        asyncio.run(main())
