"""One browser for all tests of the page, and for each test tabs under watch and a server of its own."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

if TYPE_CHECKING:
    from playwright.async_api import Browser

    from .host import Host
    from .tab import Tabs

pytest.register_assert_rewrite(f"{__package__}.tab")

AXE = Path(os.environ.get("AXE_CORE", Path(sys.prefix, "axe-core/node_modules/axe-core"))) / "axe.min.js"
"""Where .ci/browser puts axe-core: a folder of the virtual environment, or the one that AXE_CORE names."""
SCREENSHOTS = Path(os.environ.get("SCREENSHOTS", Path(__file__).parents[2] / ".screenshots"))
"""Where the tests write what they saw."""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    playwright = pytest.importorskip("playwright.async_api", reason="Playwright is not installed")
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("Chromium is not installed; .ci/browser installs it")
    async with playwright.async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield browser
        await browser.close()


@pytest.fixture
def look() -> dict[str, Any]:
    """What a test's browser looks like, as options of a Playwright context; a test overrides it."""
    return {}


@pytest_asyncio.fixture(loop_scope="session")
async def tabs(browser: Browser, look: dict[str, Any]) -> AsyncIterator[Tabs]:
    """Tabs that fail the test for an error or a warning on the console, an uncaught exception or rejection, what a
    content security policy stopped, any request to another origin, and inline code or style.
    """
    from .tab import Tabs

    context = await browser.new_context(**look)
    context.set_default_timeout(10_000)
    tabs = Tabs(context)
    yield tabs
    await tabs.inspect()
    await context.close()
    assert tabs.faults == []


@pytest_asyncio.fixture(loop_scope="session")
async def host(tmp_path: Path, browser: Browser) -> AsyncIterator[Host]:
    """A server with scripted functions, over an empty journal; ask for it before ``tabs``, which leave first then."""
    pytest.importorskip("uvicorn", reason="the extra `server` is not installed")
    from .host import hosting

    async with hosting(tmp_path / "runs.db") as host:
        yield host


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed; .ci/browser installs it")
    return AXE.read_text(encoding="utf-8")
