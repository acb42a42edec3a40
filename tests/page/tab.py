"""A tab of the browser under watch: whatever a page should not do is noted, and fails the test that opened it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from .host import TAB

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, ConsoleMessage, Page, Request

WATCH: Final = """
addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI, sourceFile, lineNumber }) =>
  console.error("CSP", violatedDirective, blockedURI, sourceFile, lineNumber));
addEventListener("unhandledrejection", ({ reason }) => console.error("unhandled rejection", String(reason)));
"""
"""Before any script of the page; a content security policy does not bind it."""
LOADING: Final = re.compile(r"Failed to load resource: .*")
"""What the browser itself prints about an answer that is an error, or that did not come."""


@dataclass
class Tab:
    """A page, and what it did that it should not have."""

    page: Page
    problems: list[str]
    excused: list[re.Pattern[str]] = field(default_factory=list)

    def excuse(self, pattern: str) -> None:
        """Let the browser print that a resource did not load, for the reason that the test made."""
        self.excused.append(re.compile(f"Failed to load resource: .*{pattern}"))

    @property
    def faults(self) -> list[str]:
        return [fault for fault in self.problems if not any(each.search(fault) for each in self.excused)]


class Tabs:
    """Tabs of one person's browser: they share cookies, storage and connections."""

    def __init__(self, context: BrowserContext) -> None:
        self.context = context
        self.all: list[Tab] = []

    async def open(self, url: str | None = None, *, origins: Iterable[str] = (), before: str = "") -> Tab:
        """A new tab at a URL, whose origin is the only one that it may ask, beside those that are named.

        ``before`` is a script that runs before those of the page.
        """
        page = await self.context.new_page()
        tab = Tab(page, [])
        self.all.append(tab)
        allowed = {origin(each) for each in [*origins, *([] if url is None else [url])]}
        _watch(tab, allowed)
        await page.set_extra_http_headers({TAB: f"tab-{len(self.all)}"})
        await page.add_init_script(WATCH + before)
        if url is not None:
            await page.goto(url)
        return tab

    @property
    def faults(self) -> list[str]:
        return [fault for tab in self.all for fault in tab.faults]


def origin(url: str) -> str:
    """Scheme and place of a URL."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def _watch(tab: Tab, allowed: set[str]) -> None:
    def printed(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            tab.problems.append(f"console {message.type}: {message.text} ({message.location.get('url', '')})")

    def raised(error: Any) -> None:
        tab.problems.append(f"uncaught: {error}")

    def asked(request: Request) -> None:
        if origin(request.url) not in allowed:
            tab.problems.append(f"foreign request: {request.url}")

    tab.page.on("console", printed)
    tab.page.on("pageerror", raised)
    tab.page.on("request", asked)
    tab.page.on("crash", lambda _: tab.problems.append("the page crashed"))
    tab.page.on("dialog", lambda dialog: tab.problems.append(f"dialog: {dialog.message}"))
