"""The server of the tests itself: its scripts end as their names say, and the way to it can be cut."""

from __future__ import annotations

import httpx
import pytest

from .host import Host
from .scripts import TOTAL
from .wire import wired

pytestmark = pytest.mark.asyncio(loop_scope="session")

ENDINGS = {
    "plain": "done",
    "parallel": "done",
    "nested": "done",
    "approval": "waiting",
    "approval_hidden": "waiting",
    "approval_blind": "waiting",
    "failing": "failed",
    "limited": "incomplete",
    "refused": "rejected",
    "unchecked": "done",
    "cited": "done",
}


@pytest.mark.parametrize("function", ENDINGS)
async def test_a_script_whose_gates_are_open_ends_as_it_should(host: Host, function: str) -> None:
    host.gates.open("text", "slow", "inner", "fail", "check")
    run_id = await host.start(function)
    await host.over(run_id)
    view = await host.view(run_id)
    assert (view.status, view.issues) == (ENDINGS[function], [])


async def test_a_script_stops_at_its_gate_until_it_is_opened(host: Host) -> None:
    run_id = await host.start("plain")
    await host.reaches(run_id, "text.delta")
    assert (await host.view(run_id)).status == "running"
    host.gates.open("text")
    await host.over(run_id)
    assert (await host.view(run_id)).text == TOTAL


async def test_details_are_shown_hidden_or_blindly_approved_as_the_name_says(host: Host) -> None:
    found = {}
    for function in ("approval", "approval_hidden", "approval_blind"):
        run_id = await host.start(function)
        await host.over(run_id)
        (question,) = (await host.view(run_id)).interactions.values()
        found[function] = (question.details is not None, question.approve_blind)
    assert found == {"approval": (True, False), "approval_hidden": (False, False), "approval_blind": (False, True)}


async def test_a_cut_wire_breaks_what_is_open_and_takes_nothing_until_it_is_healed(host: Host) -> None:
    run_id = await host.start("plain")
    async with wired(host.url) as wire, httpx.AsyncClient(base_url=wire.url) as client:
        with pytest.raises(httpx.TransportError):
            async with client.stream("GET", f"/runs/{run_id}/events") as response:
                async for _ in response.aiter_raw():
                    await wire.cut()
        with pytest.raises(httpx.ConnectError):
            await client.get("/livez")
        await wire.heal()
        assert (await client.get("/livez")).json() == {"live": True}
