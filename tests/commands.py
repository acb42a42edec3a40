"""The command line for tests: run a command here or in a process, and a journal for it to look at."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from agents_progress.events import Envelope
from agents_progress.journal import open_journal

AT = "2026-10-07T08:00:01Z"


class Printed(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[str]:
        return self.out.splitlines()


Command = Callable[..., Printed]


def refused(printed: Printed, words: str) -> None:
    """One sentence on the error stream, nothing else, and exit code 2."""
    assert re.search(words, printed.err), printed.err
    assert (printed.code, printed.out, printed.err.count("\n")) == (2, "", 1)
    assert printed.err.startswith("agents-progress: ") and "Traceback" not in printed.err


def wire(number: int, type_: str, run_id: str = "run-1", **payload: Any) -> dict[str, Any]:
    return Envelope(f"{run_id}:{number}", run_id, number, type_, AT, payload).to_dict()


def journal_with(path: Path, *batches: list[dict[str, Any]]) -> str:
    url = f"sqlite:///{path}"

    async def fill() -> None:
        journal = open_journal(url)
        await journal.runs()
        for batch in batches:
            await journal.append([Envelope(**{k: v for k, v in item.items() if k != "protocol"}) for item in batch])
        await journal.close()

    asyncio.run(fill())
    return url


def child(*arguments: str, **more: Any) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen([sys.executable, "-m", "agents_progress", *arguments], env=environment, **more)
