"""A Chat Completions model. The SDK erases a `length` stop there, so that only a check of the output finds it."""

import asyncio
from typing import Any

import httpx
import respx
from _responses import client, stream
from agents import Agent, OpenAIChatCompletionsModel, Runner, RunResultStreaming, set_tracing_disabled

from agents_progress import progress
from agents_progress.verify import matches

agent = Agent("Clerk", model=OpenAIChatCompletionsModel("mocked", client(httpx.AsyncClient())))


@progress(verify=matches(r"The parcel .*\."))  # a whole sentence: an answer that was cut short does not pass
def ask(question: str) -> RunResultStreaming:
    return Runner.run_streamed(agent, question)


async def main() -> None:
    for question in ("Where is my parcel?", "And the other one?"):
        run = ask(question)
        outcome = await run
        print(f"{outcome.output!r}: {outcome.kind}; {run.view.message}")


def chunks(*words: str, finish: str) -> list[dict[str, Any]]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": "mocked"}
    said = [{"index": 0, "delta": {"role": "assistant", "content": word}, "finish_reason": None} for word in words]
    ended = {"index": 0, "delta": {}, "finish_reason": finish}
    return [{**head, "choices": [choice]} for choice in (*said, ended)]


if __name__ == "__main__":
    set_tracing_disabled(True)
    with respx.mock:
        whole = chunks("The parcel ", "arrives ", "on Friday.", finish="stop")
        cut_short = chunks("The parcel ", "arrives ", finish="length")
        bodies = [stream(*whole), stream(*cut_short)]
        respx.post("https://api.openai.com/v1/chat/completions").mock(side_effect=bodies)
        asyncio.run(main())
