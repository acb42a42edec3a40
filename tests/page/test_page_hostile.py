"""Text of models, tools and people in every field of every event: it is text, and nothing else comes of it."""

from __future__ import annotations

from typing import Any, Final

import pytest

from agents_progress.plaintext import clean

from .forged import ENDINGS, HARMLESS, HOSTILE, endings
from .host import Host
from .tab import Tabs

pytestmark = pytest.mark.asyncio(loop_scope="session")

FOUND: Final = """
(index) => {
  const root = document.querySelectorAll("agent-progress")[index].shadowRoot;
  const [elements, texts] = [[], []];
  for (const node of root.querySelectorAll("*")) {
    elements.push(node.localName);
    const said = node.getAttributeNames().filter((name) => /^(aria-label|title|alt|placeholder|value)$/.test(name));
    texts.push(...said.map((name) => node.getAttribute(name)));
    texts.push(...[...node.childNodes].filter(({ nodeType }) => nodeType === Node.TEXT_NODE).map(({ data }) => data));
    if (node.matches("a[href]")) texts.push(node.href);
  }
  const links = [...root.querySelectorAll("[href], [src]")].map(({ outerHTML }) => outerHTML);
  return { elements: elements.sort(), texts, links };
}
"""
"""What stands in the shadow of an element: its elements, and every text that is shown or read out."""


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_text_is_shown_as_text_and_makes_no_element(host: Host, tabs: Tabs, name: str) -> None:
    harmless, hostile = endings("harmless", HARMLESS), endings("hostile", HOSTILE[name])
    for log in (*harmless.values(), *hostile.values()):
        await host.write(log, sealed=log.envelopes[-1].type in ("run.ended", "run.lost", "app.checked"))
    runs = [log.run_id for logs in (harmless, hostile) for log in logs.values()]
    tab = await tabs.open(host.embedding(*runs))
    for index, run_id in enumerate(runs):
        await tab.shows(host, run_id, [*ENDINGS.values()][index % len(ENDINGS)], index=index)
    for fold in await tab.part("fold").all():
        await fold.click()
    found: list[dict[str, Any]] = []
    for index, run_id in enumerate(runs):
        await tab.shows(host, run_id, [*ENDINGS.values()][index % len(ENDINGS)], index=index, unfolded=True)
        found.append(await tab.page.evaluate(FOUND, index))
    for plain, foreign in zip(found[: len(ENDINGS)], found[len(ENDINGS) :], strict=True):
        assert foreign["elements"] == plain["elements"]
        assert [
            text for text in foreign["texts"] if clean(text) != text.replace("\n", r"\n").replace("\t", r"\t")
        ] == []
        assert foreign["links"] == []
    assert await tab.page.evaluate("document.documentElement.scrollWidth <= innerWidth"), "nothing is pushed out"
