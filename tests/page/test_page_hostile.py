"""Text of models, tools and people in every field of every event: it is text, and nothing else comes of it."""

from __future__ import annotations

import re
from typing import Any, Final

import pytest

from agents_progress.plaintext import clean

from .forged import ENDINGS, HOSTILE, endings
from .host import Host
from .tab import Tabs

pytestmark = pytest.mark.asyncio(loop_scope="session")

FOUND: Final = """
() => [...document.querySelectorAll("agent-progress")].map(({ shadowRoot: root }) => {
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
})
"""
"""What stands in the shadow of each element: its elements, and every text that is shown or read out."""

WIDER: Final = """
() => document.documentElement.scrollWidth <= innerWidth ? [] : [...document.querySelectorAll("agent-progress")]
  .flatMap(({ shadowRoot }) => [...shadowRoot.querySelectorAll("*")])
  .filter((node) => node.getBoundingClientRect().right > innerWidth || node.scrollWidth > node.clientWidth)
  .map((node) => `${node.getAttribute("part")} ${node.scrollWidth} ${node.clientWidth}`)
"""
"""What pushes something out of the page."""


@pytest.mark.parametrize("name", HOSTILE)
async def test_hostile_text_is_shown_as_text_and_makes_no_element(host: Host, tabs: Tabs, name: str) -> None:
    text = HOSTILE[name]
    logs = [*endings("harmless", re.sub(r"\S", "x", text)).values(), *endings("hostile", text).values()]
    for log in logs:
        await host.write(log, sealed=log.envelopes[-1].type in ("run.ended", "run.lost", "app.checked"))
    runs = dict(zip([log.run_id for log in logs], [*ENDINGS.values()] * 2, strict=True))
    tab = await tabs.open(host.embedding(*runs))
    await tab.show(host, runs)
    await tab.unfold()
    await tab.show(host, runs, unfolded=True)
    found: list[dict[str, Any]] = await tab.page.evaluate(FOUND)
    for harmless, hostile in zip(found[: len(ENDINGS)], found[len(ENDINGS) :], strict=True):
        assert hostile["elements"] == harmless["elements"]
        assert hostile["links"] == []
        for said in hostile["texts"]:
            assert clean(said) == said.replace("\n", r"\n").replace("\t", r"\t")
    assert await tab.page.evaluate(WIDER) == []
