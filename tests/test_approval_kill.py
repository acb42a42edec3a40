"""The short version of the bar `approvals`: whichever process of an approval is killed, it comes to one payment."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from bars.approvals import BACKENDS, backend
from bars.figures import Figures
from bars.nursery import Nursery
from bars.servers import Missing


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery("asker") as warm:
        yield warm


@pytest.mark.parametrize("name", BACKENDS)
async def test_an_approval_killed_at_a_step_comes_to_one_payment(name: str, nursery: Nursery) -> None:
    figures = Figures("approvals")
    try:
        await backend(name, nursery, every=False, figures=figures)
    except Missing as missing:
        pytest.skip(str(missing))
    assert figures.faults == []
