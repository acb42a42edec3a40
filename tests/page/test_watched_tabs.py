"""The watch over a tab: each thing that a page must not do is noted, so that no bar can pass for want of looking."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from playwright.async_api import BrowserContext
from starlette.applications import Starlette
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from tests.serving import listening

from .tab import Tab, Tabs

pytestmark = pytest.mark.asyncio(loop_scope="session")

POLICY = "default-src 'none'; script-src 'self'; connect-src 'self'; img-src *"
FAULTS = {
    "a warning": ("console.warn('w')", "console warning: w"),
    "an error": ("console.error('e')", "console error: e"),
    "an exception": ("setTimeout(() => { throw new Error('thrown'); })", "uncaught: thrown"),
    "a rejection": ("Promise.reject(new Error('rejected'))", "rejected"),
    "a foreign picture": (
        "document.body.append(Object.assign(new Image(), { src: '//127.0.0.2:9/a.png' }))",
        "foreign",
    ),
    "a data URL": ("document.body.append(Object.assign(new Image(), { src: 'data:image/png,' }))", "CSP img-src"),
    "inline style": ("document.body.setAttribute('style', 'color: red')", "CSP style-src"),
    "inline code": ("document.body.setAttribute('onclick', 'x()')", "CSP script-src"),
    "what is not there": ("fetch('/missing')", "status of 404"),
}


@pytest_asyncio.fixture(loop_scope="session")
async def site() -> AsyncIterator[str]:
    """A page whose script is what its query names."""

    async def document(request: object) -> Response:
        name = request.query_params["fault"]  # type: ignore[attr-defined]
        page = (
            f"<!doctype html><title>t</title><link rel=icon href=/icon><body><script src='/s.js?fault={name}'></script>"
        )
        return HTMLResponse(page, headers={"content-security-policy": POLICY})

    async def script(request: object) -> Response:
        source, _ = FAULTS.get(request.query_params["fault"], ("", ""))  # type: ignore[attr-defined]
        return Response(source, media_type="text/javascript")

    async def icon(request: object) -> Response:
        return Response(b"", media_type="image/png")

    routes = [Route("/", document), Route("/s.js", script), Route("/icon", icon)]
    async with listening(Starlette(routes=routes)) as url:
        yield url


@pytest_asyncio.fixture(loop_scope="session")
async def context(browser: object) -> AsyncIterator[BrowserContext]:
    context = await browser.new_context()  # type: ignore[attr-defined]
    yield context
    await context.close()


@pytest.mark.parametrize("fault", FAULTS)
async def test_every_fault_of_a_page_is_noted(site: str, context: BrowserContext, fault: str) -> None:
    tabs = Tabs(context)
    tab = await tabs.open(f"{site}/?fault={fault}")
    async with asyncio.timeout(10):
        while not any(FAULTS[fault][1] in problem for problem in tabs.faults):
            await a_frame(tab)


async def a_frame(tab: Tab) -> None:
    await tab.page.evaluate("new Promise((done) => requestAnimationFrame(() => setTimeout(done)))")


async def test_a_page_without_a_fault_has_none(site: str, context: BrowserContext) -> None:
    tabs = Tabs(context)
    tab = await tabs.open(f"{site}/?fault=none")
    await a_frame(tab)
    assert tabs.faults == []


async def test_only_a_resource_that_did_not_load_can_be_excused(site: str, context: BrowserContext) -> None:
    tabs = Tabs(context)
    missing, loud = await tabs.open(f"{site}/?fault=what is not there"), await tabs.open(f"{site}/?fault=an error")
    missing.excuse("404")
    loud.excuse("")
    async with asyncio.timeout(10):
        while not missing.problems:
            await a_frame(missing)
    assert missing.problems != [] and missing.faults == []
    assert loud.faults == loud.problems != []
