"""A loop that is never idle leaves the threads of its journal their share of the interpreter."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from agents import Agent
from staging import Prebuilt, message_item, response_completed, response_created, started, text_delta

from agents_progress import log
from agents_progress.journal import MemoryJournal


async def test_a_late_journal_gets_its_time_although_little_of_this_run_waits_for_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    breaths: list[float] = []
    monkeypatch.setattr(log, "time", SimpleNamespace(monotonic=time.monotonic, sleep=breaths.append))
    said = asyncio.Event()

    class Late(MemoryJournal):
        async def append(self, *given: Any, **options: Any) -> None:
            while not breaths and not said.is_set():
                await asyncio.sleep(0.01)
            await super().append(*given, **options)

    def events() -> Iterator[Any]:
        yield response_created()
        until = time.monotonic() + 5 * log.LATE_S
        while time.monotonic() < until and not breaths:
            yield text_delta("")  # nothing gathers behind the append
            yield None
        said.set()
        yield response_completed(message_item("ok"))

    outcome = await started(Agent(name="A", model=Prebuilt(events())), journal=Late())
    assert outcome.kind == "succeeded" and breaths
