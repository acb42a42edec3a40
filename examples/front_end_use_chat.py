"""What `useChat` of ai 7 asks for and is streamed, an approval included. With its transport use `/page/bridge.js`:
`new DefaultChatTransport({ api: "/api/chat", fetch: truthful() })`.
"""

import asyncio
import json
from typing import Any

import httpx
from agents import Agent, Runner, RunResultStreaming, function_tool, set_tracing_disabled

from agents_progress import Disclosure, progress
from agents_progress.bridges.vercel import Vercel
from agents_progress.server import Principal, runs_app
from agents_progress.testing import ScriptedAPI, call, text, turn
from agents_progress.verify import matches


@function_tool(needs_approval=True)
def refund(eur: int) -> str:
    return f"{eur} EUR are on their way"


api = ScriptedAPI([turn(call("refund", {"eur": 12})), turn(text("Refunded."))])


@progress(verify=matches("Refunded."), disclosure=Disclosure(approval_details="all"))
def chat(message: str) -> RunResultStreaming:
    return Runner.run_streamed(Agent("Clerk", model=api.model(), tools=[refund]), message)


app = runs_app("memory://", lambda *asked: Principal("ada", owner="ada"), bridges=[Vercel(chat, major=7)])


async def ask(http: httpx.AsyncClient, message: dict[str, Any]) -> list[dict[str, Any]]:
    """Send what the transport sends, and print what comes; of our own parts only how the run stands."""
    answer = await http.post("/api/chat", json={"id": "c1", "trigger": "submit-message", "messages": [message]})
    parts = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
    for part in parts:
        if not part["type"].startswith("data-") or part["type"] == "data-run":
            stands = part["data"]["sentence"]["en"] if part["type"] == "data-run" else ""
            print(f"{part['type']:21}", stands or part.get("delta") or part.get("toolName") or "-")
    return parts


async def main() -> None:
    transport = httpx.ASGITransport(app)
    async with app.router.lifespan_context(app), httpx.AsyncClient(transport=transport, base_url="http://x") as http:
        parts = await ask(http, {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "Refund 12 EUR"}]})
        asked = next(part for part in parts if part["type"] == "tool-approval-request")
        part = {"type": "dynamic-tool", "toolName": "refund", "toolCallId": asked["toolCallId"], "input": {"eur": 12}}
        answered = {"state": "approval-responded", "approval": {"id": asked["approvalId"], "approved": True}}
        print("approved:")
        await ask(http, {"id": "m1", "role": "assistant", "parts": [{**part, **answered}]})


if __name__ == "__main__":
    set_tracing_disabled(True)
    asyncio.run(main())
