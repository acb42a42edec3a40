"""A report in a browser that has no network: opened from disk, looked at on a screen and a phone, and printed."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from agents_progress import cli, demo, open_journal
from agents_progress.messages import LANGUAGES, MESSAGES, Language
from agents_progress.report import page
from agents_progress.report.drawing import Scale
from tests.test_report import EVIL, facts_of, story

from .conftest import SCREENSHOTS

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page

pytestmark = pytest.mark.asyncio(loop_scope="session")

SIZES: Final = ((1280, "light"), (360, "dark"))
AUDIT: Final = """
async () => {
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const { violations } = await axe.run(document, { runOnly: tags });
  return violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`);
}
"""
DRAWN: Final = """
() => [...document.querySelectorAll("svg")].flatMap((svg) => {
  const places = (what) => [...svg.querySelectorAll(what)].map((rect) => rect.getBoundingClientRect());
  const [tracks, bars] = [places("rect.track"), places("rect.bar")];
  return [...svg.querySelectorAll("text.name")].map(({ textContent: name }, at) => {
    const { left, width } = tracks[at];
    return { name, start: (bars[at].left - left) / width, width: bars[at].width / width };
  });
})
"""
"""What the timeline shows, as parts of its width."""
THINNEST: Final = 0.006
"""A bar that was over at once is still to be seen."""
TOO_WIDE: Final = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


async def demo_page(folder: Path, language: Language) -> Path:
    url, file = f"sqlite:///{folder}/runs.db", folder / "run.html"
    with contextlib.redirect_stdout(io.StringIO()):
        assert await demo.main(url, True, language) == 0
    journal = open_journal(url, create=False)
    (newest, _) = await journal.runs()
    await journal.close()
    arguments = ["report", newest.run_id, "--journal", url, "--language", language]
    for more in (["-o", str(file)], ["--json", "-o", str(file.with_suffix(".json"))]):
        assert await asyncio.to_thread(cli.main, [*arguments, *more]) == 0
    return file


async def opened(browser: Browser, file: Path, width: int, theme: Any, faults: list[str], **more: Any) -> Page:
    """A page of its own without a network, whose every complaint and request is a fault."""
    context = await browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=theme, offline=True, **more
    )
    tab = await context.new_page()
    tab.on("console", lambda message: faults.append(message.text))
    tab.on("pageerror", lambda error: faults.append(str(error)))
    tab.on("request", lambda request: faults.append(request.url) if request.url != file.as_uri() else None)
    await tab.goto(file.as_uri())
    return tab


@pytest.mark.parametrize("language", LANGUAGES)
async def test_the_report_of_the_demo_opens_from_disk_and_fits_every_screen(
    browser: Browser, tmp_path: Path, language: Language
) -> None:
    file, faults = await demo_page(tmp_path, language), list[str]()
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    for width, theme in SIZES:
        tab = await opened(browser, file, width, theme, faults)
        assert await tab.locator(".status.done strong").inner_text() == f"✓ {MESSAGES['done'][language]}"
        bars = await tab.locator("svg .bar").evaluate_all("bars => bars.map(bar => bar.getBoundingClientRect().width)")
        assert len(bars) == 11 and min(bars) > 0.5
        assert await tab.locator("svg .bar.tool").first.evaluate("bar => getComputedStyle(bar).fill") != "rgb(0, 0, 0)"
        assert await tab.evaluate(TOO_WIDE) == 0
        await tab.screenshot(path=SCREENSHOTS / f"report-{language}-{width}-{theme}.png", full_page=True)
        await tab.context.close()
    assert faults == []


async def test_the_timeline_shows_every_activity_once_where_and_as_long_as_it_was(
    browser: Browser, tmp_path: Path
) -> None:
    file, faults = await demo_page(tmp_path, "en"), list[str]()
    timeline = json.loads(file.with_suffix(".json").read_text(encoding="utf-8"))["timeline"]
    tab = await opened(browser, file, 1280, "light", faults)
    drawn = sorted(await tab.evaluate(DRAWN), key=lambda bar: bar["start"])
    await tab.context.close()
    scale = Scale(timeline["spans"], timeline["duration_ms"])  # on a busy machine the pause is long, and is shortened
    wanted = list[tuple[float, float]]()
    for span in timeline["spans"]:
        begun = scale.place(span["start_ms"] if span["begun_ms"] is None else span["begun_ms"]) / 100
        wanted.append((begun, scale.place(span["end_ms"]) / 100 - begun))
    assert [bar["start"] for bar in drawn] == pytest.approx([start for start, _ in sorted(wanted)], abs=THINNEST)
    widths = sorted(bar["width"] for bar in drawn)
    assert widths == pytest.approx(sorted(width for _, width in wanted), abs=THINNEST)
    for name in ("Look up order", "Check stock", "matches"):
        assert sum(bar["name"].endswith(name) for bar in drawn) == 1
    assert faults == []


async def test_hostile_texts_stay_texts_and_fit_every_screen(browser: Browser, tmp_path: Path) -> None:
    file, faults = tmp_path / "run.html", list[str]()
    file.write_text(page(facts_of(story(EVIL))), encoding="ascii")
    for width, theme in SIZES:
        tab = await opened(browser, file, width, theme, faults)
        assert await tab.locator("script, img, iframe").count() == 0
        assert "<script>alert(1)</script>" in await tab.locator("h1").inner_text()
        assert await tab.evaluate(TOO_WIDE) == 0
        await tab.context.close()
    assert faults == []


@pytest.mark.parametrize("language", LANGUAGES)
async def test_no_report_has_a_violation(browser: Browser, tmp_path: Path, axe: str, language: Language) -> None:
    file, found, faults = tmp_path / "run.html", [], list[str]()
    file.write_text(page(facts_of(story("word"), language=language)), encoding="ascii")
    for width, theme in SIZES:
        tab = await opened(browser, file, width, theme, faults, bypass_csp=True)  # for axe-core alone
        await tab.add_script_tag(content=axe)
        found += await tab.evaluate(AUDIT)
        await tab.context.close()
    assert found == faults == []


async def test_a_report_prints_on_sheets_of_a4_without_the_colours_of_the_night(
    browser: Browser, tmp_path: Path
) -> None:
    file, faults = await demo_page(tmp_path, "en"), list[str]()
    tab = await opened(browser, file, 1280, "dark", faults)
    printed = await tab.pdf(prefer_css_page_size=True)
    assert b"/MediaBox [0 0 594.95" in printed and 2 <= printed.count(b"/Type /Page\n") <= 4
    await tab.emulate_media(media="print")
    assert await tab.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    await tab.context.close()
    assert faults == []
