"""A FastAPI-style handler whose own loop over the SDK stream stays as it is, watched by `@progress.inside`."""

import asyncio
from collections.abc import AsyncIterator

import httpx
import respx
from _responses import URL, answer, client
from agents import Agent, OpenAIResponsesModel, Runner, set_tracing_disabled

from agents_progress import Envelope, RunView, progress
from agents_progress.verify import matches

views: dict[str, RunView] = {}
checked = asyncio.Event()
agent = Agent("Clerk", model=OpenAIResponsesModel("mocked", client(httpx.AsyncClient())))


def watch(envelope: Envelope) -> None:  # a sink: send it to your own clients, or name a journal and read that
    views.setdefault(envelope.run_id, RunView(envelope.run_id)).feed(envelope)
    if envelope.type == "app.checked":  # the verdict comes after the loop below has ended
        checked.set()


@progress.inside(sinks=[watch], verify=matches(r"Your parcel arrives on \w+\."))
async def chat(question: str) -> AsyncIterator[str]:  # @app.post("/chat") returns StreamingResponse(chat(question))
    result = Runner.run_streamed(agent, question)
    async for event in result.stream_events():
        if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
            yield f"data: {event.data.delta}\n\n"
    yield "data: [DONE]\n\n"


async def main() -> None:
    async for frame in chat("Where is my parcel?"):
        print(frame.strip())
    await checked.wait()
    for view in views.values():
        print(f"{view.title}: {view.message}")


if __name__ == "__main__":
    set_tracing_disabled(True)
    with respx.mock:
        respx.post(URL).mock(return_value=answer("Your parcel arrives on Friday."))
        asyncio.run(main())
