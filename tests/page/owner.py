"""The owner that is killed: a process with a tool that never comes back. ``python -m tests.page.owner FILE ID``."""

from __future__ import annotations

import asyncio
import sys

from agents import set_tracing_disabled

from agents_progress.journal.sqlite import SQLiteJournal

from .scripts import Gates, Script

LEASE_S = 4.0


async def main(file: str, run_id: str) -> None:
    journal = SQLiteJournal(file)
    journal.lease_s = LEASE_S
    await Script(Gates()).functions()["cancelled"].using(journal=journal, run_id=run_id)()


if __name__ == "__main__":
    set_tracing_disabled(True)
    asyncio.run(main(*sys.argv[1:]))
