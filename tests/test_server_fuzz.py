"""The short version of `tests/bars/fuzz_routes.py`: no request makes a fault, or shows or changes what is another's."""

from __future__ import annotations

import pytest

pytest.importorskip("starlette", reason="the extra `server` is not installed")

from bars.fuzz_routes import fuzz


async def test_no_request_makes_a_fault_or_shows_what_is_anothers() -> None:
    faults, seen = await fuzz(5000, seed=4)
    assert faults == []
    assert {"200", "201", "202", "400", "401", "403", "404", "405", "408", "409", "413", "415", "421", "422"} <= set(
        seen
    )
