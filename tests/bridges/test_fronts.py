"""What the users of real front ends see, beside what our view says of the same runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

pytest.importorskip("playwright", reason="Playwright is not installed")
pytest.importorskip("uvicorn", reason="the extra `server` is not installed")
pytest.importorskip("ag_ui.core", reason="the extra `ag-ui` is not installed")

from .packages import FRONTS
from .playing import SHORT, Played, Seat, Theatre
from .situations import SITUATIONS, Situation

pytestmark = [pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(120)]

NAMED = {situation.name: situation for situation in SITUATIONS}
HELD = [(situation, seat) for situation in SITUATIONS for seat in SHORT if seat.truth or situation.bare]
ALONE = [seat for seat in SHORT if not seat.truth]
Plays = Callable[[Situation], Awaitable[dict[Seat, Played]]]


@pytest.mark.parametrize(("situation", "seat"), HELD, ids=lambda each: getattr(each, "name", None) or str(each))
async def test_what_the_user_sees_is_what_our_view_says(played: Plays, situation: Situation, seat: Seat) -> None:
    assert (await played(situation))[seat].faults == []


@pytest.mark.parametrize("front", FRONTS)
async def test_a_server_that_tells_a_cancelled_run_as_success_is_found(fronts: Theatre, front: str) -> None:
    seat = Seat(front, "node", True)
    lying = replace(NAMED["cancel"], way="/lies")
    found = (await fronts.play(lying, [seat]))[seat]
    assert found.screen.state == "success"
    assert "it says success of a run that is cancelled" in found.faults


@pytest.mark.parametrize("seat", ALONE, ids=str)
async def test_a_front_end_alone_takes_a_stream_that_breaks_off_for_success(played: Plays, seat: Seat) -> None:
    found = (await played(NAMED["failure, truncated before the end"]))[seat]
    assert "it says success of a run that is failed" in found.faults


@pytest.mark.parametrize("seat", [seat for seat in ALONE if seat.front != "ag-ui"], ids=str)
async def test_a_front_end_alone_shows_the_text_of_a_repeated_frame_twice(played: Plays, seat: Seat) -> None:
    found = (await played(NAMED["duplicate frames"]))[seat]
    assert "".join(found.screen.texts).count("look.") == 2
    assert any(fault.startswith("it shows") for fault in found.faults)
