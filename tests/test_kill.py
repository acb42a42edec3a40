"""The short version of the bar `kill`: owners that were killed leave whole logs, and no false ending."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bars.figures import Figures
from bars.kill import backend
from bars.nursery import Nursery
from bars.places import BACKENDS
from bars.servers import Missing


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery("owner") as warm:
        yield warm


@pytest.mark.parametrize("name", BACKENDS)
async def test_an_owner_killed_at_any_moment_leaves_a_whole_log_that_is_lost_once(name: str, nursery: Nursery) -> None:
    figures = Figures("kill")
    try:
        await backend(name, nursery, points=6, at_once=6, figures=figures)
    except Missing as missing:
        pytest.skip(str(missing))
    assert figures.faults == []
