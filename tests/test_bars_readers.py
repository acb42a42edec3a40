"""The short versions of the bars `readers`, `stuck` and `million_http`: whoever reads, and however, the log and every
view of it are the same, and the server's memory is bounded.
"""

from __future__ import annotations

import pytest

pytest.importorskip("starlette", reason="the extra `server` is not installed")
pytest.importorskip("uvicorn", reason="the extra `server` is not installed")
pytest.importorskip("httpx", reason="the extra `client` is not installed")

from bars.figures import Figures
from bars.million_http import million
from bars.readers import restless
from bars.stuck import stuck


async def test_readers_that_leave_within_frames_and_return_all_have_the_view_of_the_log() -> None:
    figures = Figures("readers")
    await restless(10, 300, 150.0, figures, seed=4)
    assert figures.faults == []


async def test_sockets_that_never_read_are_cut_off_and_change_nothing_for_the_run_or_its_reader() -> None:
    figures = Figures("stuck")
    await stuck(10, 3, 3.0, 300.0, 0.5, figures)
    assert figures.faults == []


async def test_memory_of_a_server_does_not_grow_with_the_events_of_a_run() -> None:
    figures = Figures("million_http")
    await million(20_000, figures)
    assert figures.faults == []
