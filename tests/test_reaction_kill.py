"""The short version of the bar `reactions`: a process killed at a step of a reaction lets it arrive once at most, and
it comes to once; and many reactions through some processes arrive once each.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bars.figures import Figures
from bars.nursery import Nursery
from bars.reactions import BACKENDS, backend, crowd
from bars.servers import Missing


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery("reactor") as warm:
        yield warm


@pytest.mark.parametrize("name", BACKENDS)
async def test_a_reaction_killed_at_a_step_arrives_once_in_the_end(name: str, nursery: Nursery) -> None:
    figures = Figures("reactions")
    try:
        await backend(name, nursery, every=False, figures=figures)
    except Missing as missing:
        pytest.skip(str(missing))
    assert figures.faults == []


async def test_reactions_through_two_processes_arrive_once_each() -> None:
    figures = Figures("reactions")
    try:
        await crowd("postgres", figures, many=20, workers=2)
    except Missing as missing:
        pytest.skip(str(missing))
    assert figures.faults == []
