"""The short version of the bar `frozen`: a process that was stopped for longer than its lease acts no second time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from bars.figures import Figures
from bars.frozen import BACKENDS, backend
from bars.nursery import Nursery
from bars.servers import Missing


@pytest.fixture(scope="module")
def nurseries() -> Iterator[dict[str, Nursery]]:
    with ExitStack() as until_then:
        yield {name: until_then.enter_context(Nursery(name)) for name in ("payer", "asker", "reactor")}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", BACKENDS)
async def test_a_process_that_was_frozen_and_goes_on_acts_no_second_time(
    name: str, nurseries: dict[str, Nursery]
) -> None:
    figures = Figures("frozen")
    try:
        await backend(name, nurseries, every=False, figures=figures)
    except Missing as missing:
        pytest.skip(str(missing))
    assert figures.faults == []
