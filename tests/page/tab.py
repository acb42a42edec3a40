"""A tab of the browser under watch: whatever a page should not do is noted, and fails the test that opened it."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from agents_progress.messages import Language, Status
from agents_progress.view import RunView

from .expected import expected
from .host import TAB, Host

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, ConsoleMessage, Locator, Page, Request

WATCH: Final = """
addEventListener("securitypolicyviolation", ({ violatedDirective, blockedURI, sourceFile, lineNumber }) =>
  console.error("CSP", violatedDirective, blockedURI, sourceFile, lineNumber));
addEventListener("unhandledrejection", ({ reason }) => console.error("unhandled rejection", String(reason)));
"""
"""Before any script of the page; a content security policy does not bind it."""
WITHIN_S: Final = 15.0
"""How long a page may take to show what is stored, in seconds; a loaded machine needs some."""
SHOWN: Final = (Path(__file__).parent / "shown.js").read_text(encoding="utf-8")
"""Gives what each element of a page shows."""
INLINE: Final = """
() => {
  const found = [];
  const look = (root) => {
    for (const node of root.querySelectorAll("*")) {
      const names = node.getAttributeNames().filter((name) => name === "style" || name.startsWith("on"));
      if (names.length > 0 || node.matches("style, script:not([src])")) found.push(node.outerHTML.slice(0, 200));
      if (node.shadowRoot) look(node.shadowRoot);
    }
  };
  look(document);
  return found;
}
"""
"""Gives elements with code or style of their own, in every open shadow too."""
UNTIL: Final = f"""
async ([wanted, ms]) => {{
  const [shown, end] = [{SHOWN.strip()}, performance.now() + ms];
  for (;;) {{
    const found = shown();
    if (JSON.stringify(found) === JSON.stringify(wanted) || performance.now() > end) return found;
    await new Promise((next) => requestAnimationFrame(next));
  }}
}}
"""


@dataclass
class Tab:
    """A page, and what it did that it should not have."""

    page: Page
    name: str
    problems: list[str] = field(default_factory=list)
    excused: list[re.Pattern[str]] = field(default_factory=list)

    def part(self, name: str) -> Locator:
        """What is called so within the elements of the page, in their shadow."""
        return self.page.locator(f"agent-progress [part~={name}]")

    async def shown(self) -> list[dict[str, Any]]:
        """What each element of the page shows, in the form of :func:`expected`."""
        shown: list[dict[str, Any]] = await self.page.evaluate(f"({SHOWN})()")
        return shown

    async def shows(self, host: Host, run_id: str, status: Status, **how: Any) -> RunView:
        """Fail unless the element comes to show what is stored of a run, and nothing else, with this status; gives
        Python's view of it. ``language`` and what :func:`expected` takes say how.
        """
        (view,) = await self.show(host, {run_id: status}, **how)
        return view

    async def show(
        self, host: Host, runs: Mapping[str, Status], *, language: Language = "en", **how: bool
    ) -> list[RunView]:
        """The same for all elements of the page, in order."""
        async with asyncio.timeout(WITHIN_S) as patience:
            while True:
                views = [await host.view(run_id, language) for run_id in runs]
                wanted = [expected(view, **how) for view in views]
                found = await self.page.evaluate(UNTIL, [wanted, 500])
                there = [view.status for view in views] == [*runs.values()]
                if (there and found == wanted) or asyncio.get_running_loop().time() > patience.when() - 2:
                    break
        assert found == wanted
        assert {view.run_id: view.status for view in views} == runs
        return views

    async def unfold(self) -> None:
        """Show the steps that are folded away."""
        await self.part("fold").evaluate_all("folds => folds.forEach(fold => fold.click())")

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
        tab = Tab(page, f"tab-{len(self.all) + 1}")
        self.all.append(tab)
        allowed = {origin(each) for each in [*origins, *([] if url is None else [url])]}
        _watch(tab, allowed)
        await page.set_extra_http_headers({TAB: tab.name})
        await page.add_init_script(WATCH + before)
        if url is not None:
            await page.goto(url)
        return tab

    async def close(self) -> None:
        """Close every tab before what it is connected to goes away."""
        await self.inspect()
        for tab in self.all:
            await tab.page.close()

    async def inspect(self) -> None:
        """Note what every tab has of code or style that no content security policy would let in as text."""
        for tab in self.all:
            if not tab.page.is_closed():
                tab.problems += [f"inline: {found}" for found in await tab.page.evaluate(INLINE)]

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
