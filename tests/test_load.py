"""The short versions of the bars `million` and `crowd`: memory follows the text, and no reader misses anything."""

from __future__ import annotations

import pytest
from bars.crowd import crowd
from bars.figures import Figures
from bars.million import million
from bars.servers import Missing


async def test_memory_does_not_grow_with_the_events_of_a_run_or_with_its_readers() -> None:
    figures = Figures("million")
    await million(20_000, figures)
    assert figures.faults == []


async def test_many_runs_at_once_in_one_process_drop_nothing() -> None:
    figures = Figures("crowd")
    try:
        await crowd(20, 1.0, figures)
    except Missing as missing:
        pytest.skip(str(missing))
    assert figures.faults == []
