"""By keyboard alone, and for those who listen: everything is reached, nobody is moved, and nothing startles."""

from __future__ import annotations

from typing import Final

import pytest

from .forged import OPEN, STATUSES, answered, asked, begun, hidden, worked, working
from .host import Host
from .tab import Tab, Tabs

pytestmark = pytest.mark.asyncio(loop_scope="session")

FOCUSED: Final = """
() => {
  let node = document.activeElement;
  while (node?.shadowRoot?.activeElement) node = node.shadowRoot.activeElement;
  return node === document.body ? null : node?.getAttribute("part") ?? node?.id ?? node?.localName;
}
"""
MOVING: Final = """
() => {
  const roots = [document, ...[...document.querySelectorAll("*")].flatMap(({ shadowRoot }) => shadowRoot ?? [])];
  const all = roots.flatMap((root) => root.getAnimations());
  const running = all.filter(({ playState }) => playState === "running");
  return running.map(({ animationName, transitionProperty }) => animationName ?? transitionProperty);
}
"""
LISTEN: Final = """
() => {
  const news = document.querySelector("agent-progress").shadowRoot.querySelector("[part=news]");
  globalThis.heard = [];
  globalThis.until = async (holds) => {
    while (!holds()) await new Promise((next) => requestAnimationFrame(next));
    return true;
  };
  new MutationObserver(() => heard.push(news.textContent)).observe(news, { childList: true, subtree: true });
}
"""
"""Keeps what is announced from then on."""


async def reach(tab: Tab, part: str) -> None:
    """Press Tab until a part has the focus; whoever needs forty is lost."""
    for _ in range(40):
        await tab.page.keyboard.press("Tab")
        if await tab.page.evaluate(FOCUSED) == part:
            return
    raise AssertionError(f"no Tab leads to {part}")


async def test_an_approval_is_reached_and_answered_by_keyboard(host: Host, tabs: Tabs) -> None:
    run_id = await host.start("approval")
    tab = await tabs.open(host.page(run_id))
    await tab.shows(host, run_id, "waiting")
    await reach(tab, "reason")
    await tab.page.keyboard.type("as agreed")
    await reach(tab, "approve")
    await tab.page.keyboard.press("Enter")
    host.gates.open("after")
    await tab.shows(host, f"{run_id}.2", "done")
    assert await tab.page.evaluate(FOCUSED) is not None, "the focus of who answered is not lost with the button"


async def test_a_run_is_stopped_by_keyboard(host: Host, tabs: Tabs) -> None:
    run_id = await host.start("cancelled")
    tab = await tabs.open(host.page(run_id))
    await host.reaches(run_id, "tool.progress")
    await tab.shows(host, run_id, "running")
    await reach(tab, "stop")
    await tab.page.keyboard.press("Space")
    await tab.shows(host, run_id, "cancelled")
    assert await tab.page.evaluate(FOCUSED) is not None


async def test_steps_are_unfolded_and_folded_by_keyboard(host: Host, tabs: Tabs) -> None:
    run_id = await host.write(STATUSES["done"]("run-1"))
    tab = await tabs.open(host.page(run_id))
    await tab.shows(host, run_id, "done")
    await reach(tab, "fold")
    for pressed, expanded in (("Enter", True), ("Space", False)):
        await tab.page.keyboard.press(pressed)
        await tab.shows(host, run_id, "done", unfolded=expanded)
        assert await tab.part("fold").get_attribute("aria-expanded") == str(expanded).lower()
        assert await tab.page.evaluate(FOCUSED) == "fold"


async def test_focus_and_what_was_typed_stay_while_events_arrive(host: Host, tabs: Tabs) -> None:
    log = hidden(asked(working(worked(begun("run-1")))))
    run_id = await host.write(log, sealed=False)
    tab = await tabs.open(host.page(run_id))
    await tab.shows(host, run_id, "waiting")
    reason = tab.part("reason").first
    await reason.focus()
    await reason.type("half a rea")
    for number in range(30):
        said = len(log.envelopes)
        log.request(f"n{number}", "more", title=f"More {number}")
        log.say("text.delta", item_id="m9", index=number, text=f"word {number} ")
        if number % 3 == 0:
            log.say("tool.finished", call_id=f"n{number}")
        if number == 20:
            log.say("approval.resolved", interaction_id="ask-2", decision="rejected")
        await host.append(log.envelopes[said:])
    await tab.shows(host, run_id, "waiting")
    assert await tab.page.evaluate(FOCUSED) == "reason"
    await tab.page.keyboard.type("son")
    assert await reason.input_value() == "half a reason"


# Without being startled.


@pytest.mark.parametrize("look", [{"reduced_motion": "reduce"}], ids=["reduced"])
async def test_nothing_moves_for_those_who_asked_for_no_motion(host: Host, tabs: Tabs) -> None:
    for status in OPEN:
        run_id = await host.write(STATUSES[status](f"run-{status}"), sealed=False)
        tab = await tabs.open(host.page(run_id))
        await tab.shows(host, run_id, status)
        assert await tab.page.evaluate(MOVING) == []


async def test_activities_are_announced_politely_and_the_streaming_text_is_not(host: Host, tabs: Tabs) -> None:
    log = working(begun("run-1"))
    run_id = await host.write(log, sealed=False)
    tab = await tabs.open(host.page(run_id))
    await tab.shows(host, run_id, "running")
    await tab.page.evaluate(LISTEN)
    said = len(log.envelopes)
    log.say("tool.failed", call_id="w1", code="timeout", message="took too long")
    await host.append(answered(log).envelopes[said:])
    await tab.shows(host, run_id, "running")
    assert await tab.page.evaluate("until(() => heard.some((text) => text.includes('Refund order 4711')))")
    assert await tab.part("news").get_attribute("aria-live") == "polite"
    assert not await tab.page.evaluate("heard.some((text) => text.includes('12 EUR refunded'))")
    live = "[aria-live], [role=status], [role=alert], [role=log]"
    assert await tab.part("answer-text").evaluate(f"node => node.closest('{live}')") is None
