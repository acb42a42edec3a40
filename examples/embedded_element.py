"""A run inside a page of your own: the element shows it, and your login says who may see it, stop it and answer it."""

import asyncio

import httpx
import uvicorn
from agents import Agent, Runner, RunResultStreaming, set_tracing_disabled
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.routing import Mount, Route

from agents_progress import RunView, progress
from agents_progress.server import Principal, runs_app
from agents_progress.testing import ScriptedAPI, text, turn
from agents_progress.verify import matches

PAGE = """<!doctype html><html lang="en"><title>4711</title><script type="module" src="/agent/page/element.js"></script>
<agent-progress src="/agent/runs/{run_id}"></agent-progress>
"""


@progress(verify=matches(r"\d+ EUR"), journal="memory://")
def total(question: str) -> RunResultStreaming:
    return Runner.run_streamed(Agent("Clerk", model=ScriptedAPI([turn(text("5 ", "EUR"))]).model()), question)


def authorize(request: Request, action: str, run: object) -> Principal | None:
    return Principal("ada", owner="ada") if request.cookies.get("login") == "s3cret" else None  # your own login


async def order(request: Request) -> HTMLResponse:
    run = total.using(owner="ada")("2 EUR plus 3 EUR?")  # it goes on, whoever reads
    return HTMLResponse(PAGE.format(run_id=run.id), headers={"content-security-policy": "default-src 'self'"})


async def main() -> None:
    runs = runs_app("memory://", authorize)
    app = Starlette(routes=[Route("/order", order), Mount("/agent", runs)], lifespan=runs.router.lifespan_context)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    serving = asyncio.create_task(server.serve())
    while not server.started:
        await asyncio.sleep(0.01)
    host, port = server.servers[0].sockets[0].getsockname()
    async with httpx.AsyncClient(base_url=f"http://{host}:{port}") as browser:  # does here what a browser would do
        src = (await browser.get("/order")).text.split('"')[-2]
        print("the element:", (await browser.get("/agent/page/element.js")).headers["content-type"])
        print("the run, without a login:", (await browser.get(src)).status_code)
        browser.cookies.set("login", "s3cret")
        await browser.get(f"{src}/events")  # until the run is over
        view = RunView.from_snapshot((await browser.get(f"{src}/snapshot")).json())
        print(f"the run, with one: {view.status}: {view.text}")
    server.should_exit = True
    await serving


if __name__ == "__main__":
    set_tracing_disabled(True)
    asyncio.run(main())
