"""A long answer as it streams: the page stays quick, its rows stay where they are, and readers are not moved."""

from __future__ import annotations

import json
from typing import Final

import pytest

from agents_progress.labels import label
from agents_progress.testing.contract.logs import Log

from .forged import begun, worked, working
from .host import Host
from .tab import Tab, Tabs

pytestmark = pytest.mark.asyncio(loop_scope="session")

DELTAS: Final = 5_000
DELTA: Final = "twenty characters, \n"
TOGETHER: Final = 25
"""Envelopes of one append, as a pump gathers them while the last one is written."""
LONGEST_MS: Final = 100
OBSERVE: Final = """
globalThis.seen = { longtask: [], "layout-shift": [] };
for (const type of Object.keys(seen)) {
  const kept = ({ startTime, duration, value }) => [startTime, duration, value];
  const keep = (list) => seen[type].push(...list.getEntries().map(kept));
  new PerformanceObserver(keep).observe({ type, buffered: true });
}
"""
"""A content security policy does not bind a script that the browser is given before the page."""


async def stream(host: Host, log: Log, count: int) -> None:
    """Append so many deltas of an answer that has none yet, some at a time."""
    said = len(log.envelopes)
    for index in range(count):
        log.say("text.delta", item_id="m1", index=index, text=DELTA)
    for first in range(said, len(log.envelopes), TOGETHER):
        await host.append(log.envelopes[first : first + TOGETHER])


async def test_100_000_characters_in_5_000_envelopes_make_no_long_task_and_shift_no_row(host: Host, tabs: Tabs) -> None:
    log = working(worked(begun("run-1")))
    run_id = await host.write(log, sealed=False)
    tab = await tabs.open(host.page(run_id), before=OBSERVE)
    await tab.shows(host, run_id, "running")
    begun_at = await tab.page.evaluate("performance.now()")
    await stream(host, log, DELTAS)
    said = len(log.envelopes)
    log.say("tool.finished", call_id="w1").say("tool.finished", call_id="w2")
    output = DELTA * DELTAS
    await host.append(log.say("text.completed", item_id="m1").end(final_output=output).envelopes[said:])
    await host.journal.seal(run_id)
    await tab.page.locator("agent-progress [part=run][data-status=checking]").wait_for()
    seen = await tab.page.evaluate("seen")
    print(json.dumps({name: [entry for entry in entries if entry[0] > begun_at] for name, entries in seen.items()}))
    assert [entry for entry in seen["longtask"] if entry[0] > begun_at and entry[1] > LONGEST_MS] == []
    assert [entry for entry in seen["layout-shift"] if entry[0] > begun_at] == []
    view = await tab.shows(host, run_id, "checking")
    assert len(view.text) == DELTAS * len(DELTA) == 100_000


# Where the reader is.

BOTTOM: Final = "() => innerHeight + scrollY >= document.documentElement.scrollHeight - 2"
WHERE: Final = "() => scrollY"


async def reading(host: Host, tabs: Tabs, count: int) -> tuple[Tab, Log]:
    """A run with an answer that is longer than the screen."""
    log = begun("run-1")
    await host.write(log, sealed=False)
    tab = await tabs.open(host.page("run-1"))
    await tab.page.set_viewport_size({"width": 800, "height": 600})
    await tab.shows(host, "run-1", "running")
    await stream(host, log, count)
    await tab.shows(host, "run-1", "running")
    return tab, log


async def more(host: Host, tab: Tab, log: Log) -> None:
    said = len(log.envelopes)
    log.say("text.delta", item_id="m1", index=said, text="and more\n" * 40)
    await host.append(log.envelopes[said:])
    await tab.shows(host, log.run_id, "running")


async def test_a_reader_at_the_bottom_is_taken_along(host: Host, tabs: Tabs) -> None:
    tab, log = await reading(host, tabs, 100)
    await tab.page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
    assert await tab.page.evaluate(BOTTOM)
    before = await tab.page.evaluate(WHERE)
    await more(host, tab, log)
    assert await tab.page.evaluate(BOTTOM) and await tab.page.evaluate(WHERE) > before
    assert not await tab.part("more").is_visible()


async def test_a_reader_elsewhere_stays_there_and_is_offered_what_is_new(host: Host, tabs: Tabs) -> None:
    tab, log = await reading(host, tabs, 100)
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
