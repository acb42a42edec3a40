"""``export``: the log of a run, one envelope a line, as ``replay`` reads it."""

from __future__ import annotations

import argparse
import json
from contextlib import aclosing
from typing import TextIO

from agents_progress.cli.printing import FINE, output
from agents_progress.cli.stored import asked, pages
from agents_progress.errors import CursorExpired, UsageError
from agents_progress.journal import Journal


def export(chosen: argparse.Namespace) -> int:
    """A log that was pruned is refused: without its beginning no replay shows what happened."""
    try:
        with output(chosen.output) as out:
            asked(chosen.journal, lambda journal: _write(journal, chosen.run_id, out))
    except CursorExpired:
        shown = f"agents-progress show {chosen.run_id} --json"
        raise UsageError(f"the beginning of this run was pruned; `{shown}` prints the snapshot of it") from None
    return FINE


async def _write(journal: Journal, run_id: str, out: TextIO) -> None:
    async with aclosing(pages(journal, run_id)) as found:
        async for page in found:
            lines = (json.dumps(envelope.to_dict(), separators=(",", ":"), ensure_ascii=True) for envelope in page)
            out.write("".join(f"{line}\n" for line in lines))
