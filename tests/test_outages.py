"""The short version of the bar `outage`: a store away for less than a lease loses nothing; for longer, it says so."""

from __future__ import annotations

import pytest
from bars.figures import Figures
from bars.outage import cases
from bars.servers import Missing


@pytest.mark.parametrize(("store", "how"), [("redis", "crashed"), ("redis", "frozen"), ("postgres", "crashed")])
async def test_a_store_that_is_away_for_less_than_a_lease_loses_no_run(store: str, how: str) -> None:
    figures = Figures("outage")
    try:
        await cases(figures, [(store, how, 3.0)], away_s=1.9, runs=4)
    except Missing as missing:
        pytest.skip(str(missing))
    assert figures.faults == []


async def test_a_run_that_outlived_its_lease_because_of_an_outage_is_unknown_to_everybody() -> None:
    figures = Figures("outage")
    try:
        await cases(figures, [("redis", "crashed", 0.8)], away_s=1.9, runs=4)
    except Missing as missing:
        pytest.skip(str(missing))
    assert figures.faults == []
