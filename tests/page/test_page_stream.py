"""A long answer as it streams: the page stays quick, its rows stay where they are, and readers are not moved."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest

from agents_progress.labels import label
from agents_progress.testing.contract.logs import Log

from .forged import begun, worked, working
from .host import Host
from .tab import Tab, Tabs

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.asyncio(loop_scope="session")

DELTAS: Final = 5_000
DELTA: Final = "twenty characters, \n"
TOGETHER: Final = 25
"""Envelopes of one append, as a pump gathers them while the last one is written."""
LONGEST_MS: Final = 100
OBSERVE: Final = """
globalThis.shifts = [];
const keep = (list) => shifts.push(...list.getEntries().map(({ startTime, value }) => [startTime, value]));
new PerformanceObserver(keep).observe({ type: "layout-shift", buffered: true });
"""
"""A content security policy does not bind a script that the browser is given before the page."""


def tasks_ms(trace: bytes) -> list[float]:
    """How long each task held the main thread of the page, by the processor's time: what other processes took of a
    loaded machine is no fault of the page.
    """
    events = json.loads(trace)["traceEvents"]
    threads = [event for event in events if event["name"] == "thread_name"]
    main = {(event["pid"], event["tid"]) for event in threads if event["args"]["name"] == "CrRendererMain"}
    tasks = [event for event in events if event["name"].endswith("RunTask") and (event["pid"], event["tid"]) in main]
    return [event.get("tdur", 0) / 1000 for event in tasks]


async def stream(host: Host, log: Log, count: int) -> None:
    """Append so many more deltas of the answer, some at a time."""
    said = len(log.envelopes)
    before = sum(envelope.type == "text.delta" for envelope in log.envelopes)
    for index in range(before, before + count):
        log.say("text.delta", item_id="m1", index=index, text=DELTA)
    for first in range(said, len(log.envelopes), TOGETHER):
        await host.append(log.envelopes[first : first + TOGETHER])


async def test_100_000_characters_in_5_000_envelopes_make_no_long_task_and_shift_no_row(
    host: Host, tabs: Tabs, browser: Browser
) -> None:
    log = working(worked(begun("run-1")))
    run_id = await host.write(log, sealed=False)
    tab = await tabs.open(host.page(run_id), before=OBSERVE)
    await tab.shows(host, run_id, "running")
    begun_at = await tab.page.evaluate("performance.now()")
    await browser.start_tracing(page=tab.page, categories=["toplevel"])
    await stream(host, log, DELTAS)
    await host.append(log.say("agent.changed", agent="Closer").envelopes[-1:])
    await tab.part("title").get_by_text("Closer").wait_for()
    shifts = await tab.page.evaluate("shifts")
    said = len(log.envelopes)
    log.say("tool.finished", call_id="w1").say("tool.finished", call_id="w2").say("text.completed", item_id="m1")
    await host.append(log.end(final_output=DELTA * DELTAS).envelopes[said:])
    await tab.page.locator("agent-progress [part=run][data-status=checking]").wait_for()
    tasks = tasks_ms(await browser.stop_tracing())
    assert max(tasks) <= LONGEST_MS
    assert len(tasks) > 20, "the page drew as the text came"
    assert [shift for shift in shifts if shift[0] > begun_at] == []
    view = await tab.shows(host, run_id, "checking")
    assert len(view.text) == DELTAS * len(DELTA) == 100_000


# Where the reader is.

BOTTOM: Final = "() => innerHeight + scrollY >= document.documentElement.scrollHeight - 2"
WHERE: Final = "() => scrollY"


async def reading(host: Host, tabs: Tabs) -> tuple[Tab, Log]:
    """A run with an answer that is longer than the screen, and goes on."""
    log = begun("run-1")
    await host.write(log, sealed=False)
    tab = await tabs.open(host.page("run-1"))
    await tab.page.set_viewport_size({"width": 800, "height": 600})
    await tab.shows(host, "run-1", "running")
    await more(host, tab, log)
    return tab, log


async def more(host: Host, tab: Tab, log: Log) -> None:
    await stream(host, log, 100)
    await tab.shows(host, log.run_id, "running")


async def test_a_reader_at_the_bottom_is_taken_along(host: Host, tabs: Tabs) -> None:
    tab, log = await reading(host, tabs)
    await tab.page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    assert await tab.page.evaluate(BOTTOM)
    before = await tab.page.evaluate(WHERE)
    await more(host, tab, log)
    assert await tab.page.evaluate(BOTTOM) and await tab.page.evaluate(WHERE) > before
    assert not await tab.part("more").is_visible()


async def test_a_reader_elsewhere_stays_there_and_is_offered_what_is_new(host: Host, tabs: Tabs) -> None:
    tab, log = await reading(host, tabs)
    await tab.page.evaluate("scrollTo(0, 150)")
    before = await tab.page.evaluate(WHERE)
    assert before == 150
    await more(host, tab, log)
    assert await tab.page.evaluate(WHERE) == before
    await tab.part("more").wait_for(state="visible")
    assert await tab.part("more").inner_text() == label("new_content", "en")
    await tab.part("more").click()
    assert await tab.page.evaluate(BOTTOM)
    await tab.part("more").wait_for(state="hidden")
