"""What users of real front ends see in every situation, beside our view: with our module, and the front end alone."""

from __future__ import annotations

import asyncio
import logging
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from agents import set_tracing_disabled
from playwright.async_api import async_playwright

from tests.bridges.packages import FRONTS, missing
from tests.bridges.playing import PLACES, Played, Seat, theatre
from tests.bridges.situations import SITUATIONS, Situation

from .figures import Figures

WIDE = 34


def shown(played: Mapping[Seat, Played], front: str, truth: bool) -> str:
    """What a front end shows, once where Node and Chromium show the same."""
    screens = [played[Seat(front, place, truth)].screen for place in PLACES]
    words = [screen.state if screen.state == screen.says else f"{screen.state} ({screen.says})" for screen in screens]
    return " | ".join(dict.fromkeys(word if len(word) < 90 else f"{word[:87]}..." for word in words))


def told(figures: Figures, situation: Situation, played: Mapping[Seat, Played]) -> None:
    """One line for each front end, and the faults that count."""
    for front in FRONTS:
        ours = [played[Seat(front, place, True)] for place in PLACES]
        alone = [played[Seat(front, place, False)] for place in PLACES]
        held = [*ours, *(alone if situation.bare else ())]
        faults = [f"{each.seat}: {fault}" for each in held for fault in each.faults]
        about = f"{situation.name:{WIDE}} {front:6} {ours[0].status:10} {shown(played, front, True)}"
        bare = shown(played, front, False)
        wrong = [fault for each in alone for fault in each.faults]
        if bare != shown(played, front, True) or wrong:
            about += f"\n{'':{WIDE + 9}}alone: {bare}{f' -- {wrong[0]}' if wrong else ''}"
        figures.hold(not faults, "\n".join([about, *faults]))


async def main() -> int:
    logging.getLogger("agents_progress").setLevel(logging.CRITICAL)
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # what is sent to a front end that gave up
    figures = Figures("bridges")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if (lacking := missing() or (None if chromium else "Chromium is not installed")) is not None:
        figures.hold(False, lacking)
        return figures.end()
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        with tempfile.TemporaryDirectory() as folder:
            async with theatre(Path(folder), browser) as fronts:
                figures.say(f"{'situation':{WIDE}} {'client':6} {'our view':10} what the client shows")
                for situation in SITUATIONS:
                    told(figures, situation, await fronts.play(situation))
        await browser.close()
    return figures.end()


if __name__ == "__main__":
    set_tracing_disabled(True)
    sys.exit(asyncio.run(main()))
