"""For everybody: axe-core finds no violation in any state, by day and by night."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest

from agents_progress.labels import label

from .forged import OPEN, STATUSES
from .host import Host, hosting
from .tab import Tab, Tabs
from .wire import wired

pytestmark = pytest.mark.asyncio(loop_scope="session")

AUDIT: Final = """
async () => {
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const rules = { "target-size": { enabled: true } };
  const { violations, ...others } = await axe.run(document, { runOnly: tags, rules });
  const ran = new Set([violations, ...Object.values(others)].filter(Array.isArray).flat().map(({ id }) => id));
  const missing = ["color-contrast", "target-size"].filter((id) => !ran.has(id));
  const told = (id) => ({ target, failureSummary }) => `${id}: ${target.flat()} ${failureSummary}`;
  const found = violations.flatMap(({ id, nodes }) => nodes.map(told(id)));
  return [...found, ...missing.map((id) => `${id} was not looked at`)];
}
"""


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
