"""The report of the demo's run, opened from disk with no network: it says by itself what happened, and for how long."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, Final

import pytest

from agents_progress import cli, demo, open_journal

from .tab import Tabs
from .test_page_axe import audited
from .test_page_pictures import pictures

pytestmark = pytest.mark.asyncio(loop_scope="session")

DRAWN: Final = """
() => [...document.querySelectorAll("svg")].flatMap((svg) => {
  const names = [...svg.querySelectorAll("text.name")].map((text) => text.textContent);
  const tracks = [...svg.querySelectorAll("rect.track")].map((rect) => rect.getBoundingClientRect());
  const bars = [...svg.querySelectorAll("rect.bar")].map((rect) => rect.getBoundingClientRect());
  return names.map((name, at) => {
    const [track, bar] = [tracks[at], bars[at]];
    return { name, start: (bar.left - track.left) / track.width, width: bar.width / track.width };
  });
})
"""
"""What the timeline shows, as fractions of its width."""
THINNEST: Final = 0.006
"""A bar that was over at once is still to be seen."""


async def reported(folder: Path) -> tuple[Path, dict[str, Any]]:
    """The page and the facts of a demo."""
    url, page, facts = f"sqlite:///{folder}/runs.db", folder / "run.html", folder / "run.json"
    await demo.main(url, fast=True)
    journal = open_journal(url)
    newest, _ = await journal.runs()
    await journal.close()
    about = ["report", newest.run_id, "--journal", url]
    assert await asyncio.to_thread(cli.main, [*about, "-o", str(page)]) == 0
    assert await asyncio.to_thread(cli.main, [*about, "--json", "-o", str(facts)]) == 0
    return page, json.loads(facts.read_text(encoding="utf-8"))


async def test_the_report_of_the_demo_opens_from_disk_without_a_network(tabs: Tabs, axe: str, tmp_path: Path) -> None:
    path, facts = await reported(tmp_path)
    await tabs.context.set_offline(True)
    tab = await tabs.open(path.as_uri(), before=axe)
    assert facts["message"] in await tab.page.locator(".status").inner_text()
    assert facts["answer"]["text"] in await tab.page.locator("main").inner_text()
    spans = [span for span in facts["timeline"]["spans"] if span["end_ms"] is not None]
    drawn = await tab.page.evaluate(DRAWN)
    assert len(drawn) == len(spans) == len(facts["timeline"]["spans"])
    for name in ("Look up order", "Check stock"):
        assert sum(row["name"].endswith(name) for row in drawn) == 1
    whole = facts["timeline"]["duration_ms"]
    begun = [span["start_ms"] if span["begun_ms"] is None else span["begun_ms"] for span in spans]
    places = sorted((at / whole, (span["end_ms"] - at) / whole) for at, span in zip(begun, spans, strict=True))
    for row, (start, width) in zip(sorted(drawn, key=lambda row: row["start"]), places, strict=True):
        assert row["width"] == pytest.approx(width, abs=THINNEST), row
        assert row["start"] == pytest.approx(start, abs=THINNEST), row
    await pictures(tab, "report")
    for theme in ("light", "dark"):
        await tab.page.emulate_media(color_scheme=theme)  # type: ignore[arg-type]
        assert await audited(tab) == []
    await tab.page.close()  # it stands for itself: its style is inline, and held by a hash
