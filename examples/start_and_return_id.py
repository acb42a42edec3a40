"""A handler that starts a run and returns its id at once; another one reads the journal, here or on another machine."""

import asyncio
import tempfile

import httpx
import respx
from _responses import URL, answer, client
from agents import Agent, OpenAIResponsesModel, Runner, RunResultStreaming, set_tracing_disabled

from agents_progress import RunView, open_journal, progress
from agents_progress.verify import matches

folder = tempfile.TemporaryDirectory()
url = f"sqlite:///{folder.name}/runs.db"
agent = Agent("Clerk", model=OpenAIResponsesModel("mocked", client(httpx.AsyncClient())))


@progress(journal=url, verify=matches(r"Shipped on .*"))
def track(question: str) -> RunResultStreaming:
    return Runner.run_streamed(agent, question)


async def start(question: str) -> dict[str, str]:  # POST /runs
    return {"run_id": track(question).id}  # the call starts the run; nobody has to wait for it or read it


async def status(run_id: str) -> RunView:  # GET /runs/{run_id}
    view, journal = RunView(run_id), open_journal(url)
    for envelope in await journal.read(run_id):
        view.feed(envelope)
    await journal.close()
    return view


async def main() -> None:
    run_id = (await start("Where is my parcel?"))["run_id"]
    print("started; the id has", len(run_id), "characters")
    for _ in range(100):  # a page that polls, until the status says that nothing more will come
        view = await status(run_id)
        if view.status == "done":
            print(f"{view.status}: {view.text}")
            break
        await asyncio.sleep(0.05)


if __name__ == "__main__":
    set_tracing_disabled(True)
    with respx.mock, folder:
        respx.post(URL).mock(return_value=answer("Shipped on Friday."))
        asyncio.run(main())
