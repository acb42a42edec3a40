"""Pictures of the eleven statuses, to be looked at: on a phone and on a desk, by day and by night, in two languages."""

from __future__ import annotations

import pytest

from agents_progress.messages import Status

from .conftest import SCREENSHOTS
from .forged import OPEN, STATUSES
from .host import Host
from .tab import Tab, Tabs

pytestmark = pytest.mark.asyncio(loop_scope="session")

WIDTHS = (360, 1280)
FITS = "() => document.documentElement.scrollWidth <= innerWidth"


async def pictures(tab: Tab, name: str) -> None:
    """Take a picture on every screen and in both themes; what does not fit on a screen fails."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for theme in ("light", "dark"):
        await tab.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        for width in WIDTHS:
            await tab.page.set_viewport_size({"width": width, "height": 800})
            assert await tab.page.evaluate(FITS), f"{name} is wider than {width} pixels"
            # A hidden caret would be an inline style.
            path = SCREENSHOTS / f"{name}-{width}-{theme}.png"
            await tab.page.screenshot(path=path, full_page=True, caret="initial")


@pytest.mark.parametrize("status", STATUSES)
async def test_a_status_fits_on_every_screen_and_its_picture_is_taken(host: Host, tabs: Tabs, status: Status) -> None:
    run_id = await host.write(STATUSES[status](f"run-{status}"), sealed=status not in OPEN)
    tab = await tabs.open(host.page(run_id))
    await tab.shows(host, run_id, status)
    await pictures(tab, status)


async def test_the_list_fits_on_every_screen_and_its_picture_is_taken(host: Host, tabs: Tabs) -> None:
    for status, make in STATUSES.items():
        await host.write(make(f"run-{status}"), sealed=status not in OPEN)
    tab = await tabs.open(host.page())
    await tab.page.locator("tr[data-run]").nth(len(STATUSES) - 1).wait_for()
    await pictures(tab, "list")


@pytest.mark.parametrize("look", [{"locale": "zh-CN"}], ids=["zh"])
async def test_chinese_fits_on_every_screen_and_its_picture_is_taken(host: Host, tabs: Tabs) -> None:
    run_id = await host.write(STATUSES["waiting"]("run-waiting"))
    tab = await tabs.open(host.page(run_id))
    await tab.shows(host, run_id, "waiting", language="zh")
    await pictures(tab, "waiting-zh")
