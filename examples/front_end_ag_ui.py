"""What a front end that speaks AG-UI asks for and is streamed, and how it goes on where its stream broke off. With its
agent use `/page/bridge.js`: `new HttpAgent({ url: "/ag-ui", threadId, fetch: truthful() })`.
"""

import asyncio
import json

import httpx
from agents import Agent, Runner, RunResultStreaming, function_tool, set_tracing_disabled

from agents_progress import progress
from agents_progress.bridges.ag_ui import AgUI
from agents_progress.server import Principal, runs_app
from agents_progress.testing import ScriptedAPI, call, text, turn
from agents_progress.verify import matches


@function_tool
def weigh(depot: str) -> str:
    return "12 kg"


api = ScriptedAPI([turn(call("weigh", {"depot": "north"})), turn(text("12 kg"))])
agent = Agent("Clerk", model=api.model(), tools=[weigh])


@progress(verify=matches(r"\d+ kg"))
def chat(message: str) -> RunResultStreaming:
    return Runner.run_streamed(agent, message)


app = runs_app("memory://", lambda *asked: Principal("ada", owner="ada"), bridges=[AgUI(chat)])
QUESTION = {"id": "u1", "role": "user", "content": "How heavy is it?"}
REQUEST = {"threadId": "t1", "runId": "q1", "messages": [QUESTION], "tools": [], "context": [], "state": {}}


def show(stream: str) -> None:
    """Print the events: what they say, or how the run stands."""
    for event in [json.loads(line[6:]) for line in stream.splitlines() if line.startswith("data: ")]:
        content = event.get("content") or {}
        stands = content.get("message") or content.get("state") if event["type"] == "ACTIVITY_SNAPSHOT" else None
        print(f"{event['type']:20}", stands or event.get("delta") or event.get("toolCallName") or "-")


async def main() -> None:
    transport = httpx.ASGITransport(app)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://x") as http:
        answer = await http.post("/ag-ui", json={**REQUEST, "forwardedProps": {}})
        show(answer.text)
        print("had it broken off before its last three events, the rest:")
        ids = [line[4:] for line in answer.text.splitlines() if line.startswith("id: ")]
        show((await http.get("/ag-ui/t1/stream", headers={"last-event-id": ids[-4]})).text)


if __name__ == "__main__":
    set_tracing_disabled(True)
    asyncio.run(main())
