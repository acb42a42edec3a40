"""The `fetch` for other front ends: against a server made of answers, and against a real one whose network breaks."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from plainbridge import Plain
from serving import by_token, caller, listening, runs_app
from test_bridge_routes import chat_of, post, says
from test_bridge_stream import events

from agents_progress.journal import MemoryJournal
from agents_progress.sse import Decoder
from agents_progress.testing import pause, text, turn
from tests.browser.node import HERE, NODE, needs_node, played, scenarios_of

pytestmark = needs_node

SCENARIOS = scenarios_of("bridge.mjs")


def test_every_scenario_is_played() -> None:
    assert list(played("bridge.mjs")) == SCENARIOS
    assert len(SCENARIOS) == 18


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_fetch_holds_that(scenario: str) -> None:
    assert played("bridge.mjs")[scenario] is None, played("bridge.mjs")[scenario]


async def read(url: str, body: dict[str, Any]) -> dict[str, Any]:
    process = await asyncio.create_subprocess_exec(
        *(str(NODE), str(HERE / "chopped.mjs"), f"{url}/api/plain", "ada", json.dumps(body)),
        stdout=asyncio.subprocess.PIPE,
        limit=2**20,
    )
    printed, _ = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0
    answer: dict[str, Any] = json.loads(printed)
    return answer


async def test_through_a_network_that_breaks_all_the_time_a_reader_gets_every_event_once(
    journal: MemoryJournal,
) -> None:
    words = [part for n in range(30) for part in (f"流{n} ", pause(0.005))]
    app = runs_app(journal, by_token, bridges=[Plain(chat_of(turn(text(*words)), coalesce=None))])
    async with listening(app) as url, caller(app) as ada:
        answer = await read(url, says())
        found = events(Decoder().feed(answer["text"].encode()))
        whole = await post(ada, says())
    assert answer["connections"] > 5
    assert "".join(event.get("text", "") for event in found) == "".join(f"流{n} " for n in range(30))
    assert [event["e"] for event in found][0 :: len(found) - 1] == ["begun", "done"]
    assert found[-1] == whole[-1] == {"e": "done"}
