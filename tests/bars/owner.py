"""The owner that is killed: its whole life, from opening the journal to the seal of its last run.

It writes to a file what its reader was given, each envelope before it asks for the next, so that the file tells what
had been delivered when it was killed.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Mapping
from typing import Any, Final

from agents import Agent, Runner, RunResultStreaming, function_tool, set_tracing_disabled

from agents_progress import Verdict, progress
from agents_progress.journal import Journal, MemoryJournal
from agents_progress.testing import ScriptedAPI, call, pause, text, turn
from agents_progress.testing.turns import Message

from .places import Place

RUNS: Final = 3
"""Runs in one life, one after the other."""
SAID: Final = "Let me look.", "The total is 5 EUR, in two parts."
"""What the model says before and after its tool."""
STEP_S: Final = 0.012
"""How long the model thinks between two words."""


@function_tool
async def look(order: int) -> str:
    await asyncio.sleep(STEP_S)
    return f"order {order}: 2 EUR and 3 EUR"


def slowly(words: str) -> Message:
    """A message that comes word by word."""
    steps = [step for word in re.findall(r"\S+\s*", words) for step in (word, pause(STEP_S))]
    return text(*steps)


async def check(output: Any) -> Verdict:
    await asyncio.sleep(STEP_S)
    return Verdict(output == SAID[1], check="total")


@progress(verify=check, coalesce=None)
def work() -> RunResultStreaming:
    turns = turn(slowly(SAID[0]), call("look", {"order": 7})), turn(slowly(SAID[1]))
    agent = Agent(name="Clerk", model=ScriptedAPI(turns).model(), tools=[look])
    return Runner.run_streamed(agent, "2 EUR and 3 EUR?")


async def life(journal: Journal, run_ids: list[str], delivered: int) -> None:
    for run_id in run_ids:
        run = work.using(journal=journal, run_id=run_id)()
        async for envelope in run:
            os.write(delivered, envelope.to_json() + b"\n")
        await run.closed()
    await journal.close()


def live(about: Mapping[str, Any]) -> None:
    """The life of one child."""
    journal = Place(about["url"], about["prefix"]).journal(about["lease_s"])
    delivered = os.open(about["delivered"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    asyncio.run(life(journal, about["run_ids"], delivered))


def warm() -> None:
    """What the first run of a process costs, every child has behind it."""
    set_tracing_disabled(True)
    import psycopg
    import redis

    import agents_progress.journal.postgres
    import agents_progress.journal.redis

    assert psycopg and redis and agents_progress
    delivered = os.open(os.devnull, os.O_WRONLY)
    asyncio.run(life(MemoryJournal(), ["warm"], delivered))
    os.close(delivered)
