"""For everybody: no violation that axe-core knows of, everything by keyboard, and nobody is moved or startled."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from agents_progress.labels import label

from .forged import OPEN, STATUSES, answered, asked, begun, hidden, worked, working
from .host import Host, hosting
from .tab import Tab, Tabs
from .wire import wired

pytestmark = pytest.mark.asyncio(loop_scope="session")

AUDIT: Final = """
async () => {
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const { violations } = await axe.run(document, { runOnly: tags, rules: { "target-size": { enabled: true } } });
  const told = (id) => ({ target, failureSummary }) => `${id}: ${target.flat()} ${failureSummary}`;
  return violations.flatMap(({ id, nodes }) => nodes.map(told(id)));
}
"""
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


@pytest.fixture(params=["light", "dark"])
def look(request: pytest.FixtureRequest) -> dict[str, Any]:
    return {"color_scheme": request.param, "viewport": {"width": 800, "height": 900}}


async def audited(tab: Tab) -> list[str]:
    found: list[str] = await tab.page.evaluate(AUDIT)
    return found


async def test_no_status_has_a_violation_folded_or_not(host: Host, tabs: Tabs, axe: str) -> None:
    for status, make in STATUSES.items():
        await host.write(make(f"run-{status}"), sealed=status not in OPEN)
    tab = await tabs.open(host.page(), before=axe)
    found = {}
    for status in STATUSES:
        run_id = f"run-{status}"
        await tab.page.goto(host.page(run_id))
        await tab.shows(host, run_id, status)
        found[status] = await audited(tab)
        if await tab.part("fold").is_visible():
            await tab.unfold()
            found[f"{status}, unfolded"] = await audited(tab)
    assert {name: problems for name, problems in found.items() if problems} == {}
    assert len(found) > len(STATUSES)


async def test_the_list_has_no_violation(host: Host, tabs: Tabs, axe: str) -> None:
    for status, make in STATUSES.items():
        await host.write(make(f"run-{status}"), sealed=status not in OPEN)
    tab = await tabs.open(host.page(), before=axe)
    await tab.page.locator("tr[data-run]").nth(len(STATUSES) - 1).wait_for()
    assert await audited(tab) == []


async def test_the_form_for_a_token_has_no_violation_and_lets_in(
    browser: object, tabs: Tabs, axe: str, tmp_path: Path
) -> None:
    async with hosting(tmp_path / "runs.db", token="secret") as host:
        run_id = await host.write(STATUSES["done"]("run-done"))
        tab = await tabs.open(host.page(run_id), before=axe)
        tab.excuse("401")
        field = tab.page.locator("input")
        await field.wait_for()
        assert await audited(tab) == []
        await field.fill("wrong")
        await field.press("Enter")
        await tab.page.get_by_text(label("refusal_token", "en")).wait_for()
        assert await audited(tab) == []
        await field.fill("secret")
        await field.press("Enter")
        await tab.shows(host, run_id, "done")
        assert "secret" not in tab.page.url and all("secret" not in path for _, path in host.counted.requests)
        await tabs.close()


async def test_a_lost_connection_has_no_violation(host: Host, tabs: Tabs, axe: str) -> None:
    run_id = await host.write(STATUSES["running"]("run-1"), sealed=False)
    async with wired(host.url) as wire:
        tab = await tabs.open(host.page(run_id, by=wire.url), before=axe)
        tab.excuse("net::ERR_")
        await tab.shows(host, run_id, "running")
        await wire.cut()
        await tab.part("link").wait_for(state="visible")
        found = await audited(tab)
        await tabs.close()
    assert found == []


# By keyboard alone.


async def reach(tab: Tab, part: str) -> None:
    """Press Tab until a part has the focus; whoever needs forty is lost."""
    for _ in range(40):
        await tab.page.keyboard.press("Tab")
        if await tab.page.evaluate(FOCUSED) == part:
            return
    raise AssertionError(f"no Tab leads to {part}")


@pytest.mark.parametrize("look", [{}], ids=["any"])
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


@pytest.mark.parametrize("look", [{}], ids=["any"])
async def test_a_run_is_stopped_by_keyboard(host: Host, tabs: Tabs) -> None:
    run_id = await host.start("cancelled")
    tab = await tabs.open(host.page(run_id))
    await host.reaches(run_id, "tool.progress")
    await tab.shows(host, run_id, "running")
    await reach(tab, "stop")
    await tab.page.keyboard.press("Space")
    await tab.shows(host, run_id, "cancelled")
    assert await tab.page.evaluate(FOCUSED) is not None


@pytest.mark.parametrize("look", [{}], ids=["any"])
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


@pytest.mark.parametrize("look", [{}], ids=["any"])
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


@pytest.mark.parametrize("look", [{}], ids=["any"])
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
