"""The short version of the bar `effects`: a process killed at a step of a once-only tool's call has paid once at most,
and it comes to once.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bars.effects import BACKENDS, backend
from bars.figures import Figures
from bars.nursery import Nursery
from bars.servers import Missing


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery("payer") as warm:
        yield warm


@pytest.mark.parametrize("name", BACKENDS)
async def test_a_tool_killed_at_a_step_of_its_call_pays_once_in_the_end(name: str, nursery: Nursery) -> None:
    figures = Figures("effects")
    try:
        await backend(name, nursery, every=False, figures=figures)
    except Missing as missing:
        pytest.skip(str(missing))
    assert figures.faults == []
