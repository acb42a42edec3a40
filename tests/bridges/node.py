"""Another process that serves the same journal, and owns the runs that are started there: `python -m tests.bridges.node
FILE FOLDER`. It ends in the midst of them, and whoever was connected to it is led to the server of the test.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from agents import set_tracing_disabled

from tests.page.wire import Wire, wired

from .stage import Stage, staged


@dataclass
class Node:
    """The process, behind a way that leads to it as long as it lives."""

    url: str
    _wire: Wire
    _process: asyncio.subprocess.Process
    _stage: Stage
    _all: asyncio.Barrier
    _signal: signal.Signals

    async def ends(self) -> None:
        """End it, once everybody who plays is here."""
        async with asyncio.timeout(60):
            if await self._all.wait() == 0:
                self._process.send_signal(self._signal)
                await self._process.wait()
                await self._wire.cut()
                self._wire.lead(self._stage.url)
                await self._wire.heal()


@asynccontextmanager
async def other_node(stage: Stage, players: int, end: signal.Signals) -> AsyncIterator[Node]:
    """A process beside a stage, for so many players."""
    command = [sys.executable, "-m", "tests.bridges.node", str(stage.file), str(stage.file.parent)]
    pipes = {"stdin": asyncio.subprocess.PIPE, "stdout": asyncio.subprocess.PIPE}
    process = await asyncio.create_subprocess_exec(*command, cwd=Path(__file__).parents[2], **pipes)
    assert process.stdout is not None
    try:
        url = (await process.stdout.readline()).decode().strip()
        assert url, "the other node ended; what it wrote to stderr says why"
        async with wired(url) as wire:
            yield Node(wire.url, wire, process, stage, asyncio.Barrier(players), end)
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def serve(file: Path, folder: Path) -> None:
    scripts = {path.name.partition(".")[0]: path for path in folder.glob("*.browser.mjs")}
    leaves = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, leaves.set)
    async with staged(file, scripts) as stage:
        print(stage.url, flush=True)
        await leaves.wait()


if __name__ == "__main__":
    set_tracing_disabled(True)
    asyncio.run(serve(*map(Path, sys.argv[1:])))
