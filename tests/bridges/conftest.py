"""One server, one browser and one process of each front end for all situations, each of which is played once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from tests.browser.node import needs_node
from tests.page.conftest import browser

from .packages import missing

if TYPE_CHECKING:
    from playwright.async_api import Browser

    from .playing import Played, Seat, Theatre
    from .situations import Situation

__all__ = ["browser", "fronts", "played"]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def fronts(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Theatre]:
    if (reason := missing()) is not None:
        pytest.skip(reason)
    if needs_node.args[0]:
        pytest.skip(needs_node.kwargs["reason"])
    from .playing import theatre

    async with theatre(tmp_path_factory.mktemp("bridges"), browser) as playing:
        yield playing


@pytest.fixture(scope="session")
def played(fronts: Theatre) -> Callable[[Situation], Awaitable[dict[Seat, Played]]]:
    """What came of a situation, for every front end."""
    from .playing import SHORT

    found: dict[str, dict[Seat, Played]] = {}

    async def play(situation: Situation) -> dict[Seat, Played]:
        if situation.name not in found:
            found[situation.name] = await fronts.play(situation, SHORT)
        return found[situation.name]

    return play
