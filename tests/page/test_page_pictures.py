"""Pictures of the eleven statuses, to be looked at: on a phone and on a desk, by day and by night, in two languages."""

from __future__ import annotations

import pytest

from agents_progress.messages import Status

from .conftest import SCREENSHOTS
from .forged import OPEN, STATUSES
from .host import Host
from .tab import Tabs

pytestmark = pytest.mark.asyncio(loop_scope="session")

WIDTHS = (360, 1280)
FITS = "() => document.documentElement.scrollWidth <= innerWidth"


@pytest.mark.parametrize("status", STATUSES)
async def test_a_status_fits_on_every_screen_and_its_picture_is_taken(host: Host, tabs: Tabs, status: Status) -> None:
    run_id = await host.write(STATUSES[status](f"run-{status}"), sealed=status not in OPEN)
    tab = await tabs.open(host.page(run_id))
    await tab.shows(host, run_id, status)
    SCREENSHOTS.mkdir(exist_ok=True)
    for theme in ("light", "dark"):
        await tab.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        for width in WIDTHS:
            await tab.page.set_viewport_size({"width": width, "height": 800})
            assert await tab.page.evaluate(FITS), f"{status} is wider than {width} pixels"
            await tab.page.screenshot(path=SCREENSHOTS / f"{status}-{width}-{theme}.png", full_page=True)


async def test_the_list_fits_on_every_screen_and_its_picture_is_taken(host: Host, tabs: Tabs) -> None:
    for status, make in STATUSES.items():
        await host.write(make(f"run-{status}"), sealed=status not in OPEN)
    tab = await tabs.open(host.page())
    await tab.page.locator("tr[data-run]").nth(len(STATUSES) - 1).wait_for()
    SCREENSHOTS.mkdir(exist_ok=True)
    for theme in ("light", "dark"):
        await tab.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        for width in WIDTHS:
            await tab.page.set_viewport_size({"width": width, "height": 800})
            assert await tab.page.evaluate(FITS), f"the list is wider than {width} pixels"
            await tab.page.screenshot(path=SCREENSHOTS / f"list-{width}-{theme}.png", full_page=True)
