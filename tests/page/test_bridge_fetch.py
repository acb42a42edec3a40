"""The `fetch` for front ends of other protocols in a real browser, whose connections break after every few bytes."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio

pytest.importorskip("starlette", reason="the extra `server` is not installed")

from agents import Agent, Runner, RunResultStreaming
from starlette.applications import Starlette

from agents_progress import progress
from agents_progress.journal import MemoryJournal
from agents_progress.server import runs_app
from agents_progress.sse import Decoder
from agents_progress.testing import ScriptedAPI, pause, text, turn
from agents_progress.verify import matches
from tests.plainbridge import Plain
from tests.serving import ADA, listening

from .tab import Tabs

pytestmark = pytest.mark.asyncio(loop_scope="session")

READ = """
async ([body, bytes]) => {
  const { truthful } = await import("/page/bridge.js");
  let connections = 0;
  const chopped = async (input, init) => {
    const response = await fetch(input, init);
    if (response.body === null) return response;
    connections += 1;
    let left = bytes;
    const cut = new TransformStream({
      transform(chunk, controller) {
        controller.enqueue(chunk.slice(0, left));
        left -= chunk.length;
        if (left <= 0) controller.error(new TypeError("network error"));
      },
    });
    return new Response(response.body.pipeThrough(cut), { status: response.status, headers: response.headers });
  };
  const soon = { wait: () => new Promise((resolve) => setTimeout(resolve, 2)) };
  const headers = { "content-type": "application/json" };
  const response = await truthful(chopped, soon)("api/plain", { method: "POST", headers, body });
  return { text: await response.text(), connections };
}
"""
WORDS = [f"流{n} " for n in range(20)]


@progress(verify=matches("(?s).+"), coalesce=None)
def chat(message: str) -> RunResultStreaming:
    parts = [part for word in WORDS for part in (word, pause(0.01))]
    return Runner.run_streamed(Agent("A", model=ScriptedAPI([turn(text(*parts))]).model()), message)


@pytest_asyncio.fixture(loop_scope="session")
async def site() -> AsyncIterator[str]:
    app: Starlette = runs_app(MemoryJournal(), lambda *asked: ADA, bridges=[Plain(chat)])
    async with listening(app) as url:
        yield url


@pytest.mark.parametrize("bytes_of_a_connection", [200, 333, 10**6])
async def test_a_browser_gets_every_event_once_however_often_its_connection_breaks(
    site: str, tabs: Tabs, bytes_of_a_connection: int
) -> None:
    tab = await tabs.open(site)
    body = json.dumps({"chat": f"c{bytes_of_a_connection}", "id": "k1", "say": "hi"})
    answer: dict[str, Any] = await tab.page.evaluate(READ, [body, bytes_of_a_connection])
    frames = Decoder().feed(answer["text"].encode())
    events = [json.loads(frame.data) for frame in frames if frame.data != "[LAST]"]
    assert "".join(event.get("text", "") for event in events) == "".join(WORDS)
    assert [event["e"] for event in events if event["e"] != "text"] == ["begun", "done"]
    assert (answer["connections"] > 3) == (bytes_of_a_connection < 10**6)
    await tabs.close()
