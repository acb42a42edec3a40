"""Runs mounted in an app of your own: your login says who asks, and a run outlives whoever reads it."""

import asyncio

import httpx
import uvicorn
from agents import Agent, Runner, RunResultStreaming, set_tracing_disabled
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from agents_progress import RunView, progress
from agents_progress.server import Principal, runs_app
from agents_progress.sse import Decoder
from agents_progress.testing import ScriptedAPI, text, turn
from agents_progress.verify import matches


@progress(verify=matches(r"\d+ EUR"))
def total(question: str) -> RunResultStreaming:
    agent = Agent("Clerk", model=ScriptedAPI([turn(text("5 ", "EUR"))]).model())
    return Runner.run_streamed(agent, question)


def authorize(request: Request, action: str, run: object) -> Principal | None:
    known = request.headers.get("authorization") == "Bearer s3cret"  # your own login says who this is
    return Principal("ada", owner="ada") if known else None  # everybody sees their own runs, and no others


runs = runs_app("memory://", authorize, functions=[total])


async def main() -> None:
    app = Starlette(routes=[Mount("/agent", runs)], lifespan=runs.router.lifespan_context)  # it drains on a signal
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    host, port = server.servers[0].sockets[0].getsockname()
    async with httpx.AsyncClient(base_url=f"http://{host}:{port}/agent") as http:
        print("without a login:", (await http.get("/runs")).status_code)
        http.headers["authorization"] = "Bearer s3cret"
        started = await http.post("/runs", json={"arguments": {"question": "2 EUR plus 3 EUR?"}})
        print("started:", started.status_code)
        view, decoder = RunView(started.json()["run_id"]), Decoder()
        async with http.stream("GET", f"/runs/{view.run_id}/events") as feed:
            async for chunk in feed.aiter_bytes():
                for frame in decoder.feed(chunk):
                    view.feed(frame.data)
        print(f"read to its end: {view.status}: {view.text}")
        print("and again:", (await http.get(f"/runs/{view.run_id}/events?after_seq={view.seq}")).status_code)
    server.should_exit = True
    await serving


if __name__ == "__main__":
    set_tracing_disabled(True)
    asyncio.run(main())
