"""The short versions of the bars `nodes` and `rolling`: two real servers on one store, of which one goes away."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette", reason="the extra `server` is not installed")
pytest.importorskip("uvicorn", reason="the extra `server` is not installed")

from bars.figures import Figures
from bars.nodes import nodes
from bars.rolling import Load, rolling


async def test_a_run_of_one_server_process_is_watched_controlled_and_declared_lost_by_another() -> None:
    figures = Figures("nodes")
    await nodes("sqlite", 1.5, figures)
    assert figures.faults == []


async def test_a_rolling_restart_ends_no_run_falsely_and_leaves_no_reader_behind() -> None:
    figures = Figures("rolling")
    await rolling("sqlite", Load(8, least_s=1.0, drain_s=1.0, spread_s=3.0), figures)
    assert figures.faults == []
