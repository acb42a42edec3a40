"""``prune``: runs that were over long ago, made small or forgotten."""

from __future__ import annotations

import argparse
import re
from contextlib import suppress
from typing import Final

from agents_progress.cli.printing import FINE, say
from agents_progress.cli.stored import asked
from agents_progress.effects.places import kept_beside, reactions_kept_beside
from agents_progress.errors import CursorExpired, RunErased
from agents_progress.journal import Journal, RunRow
from agents_progress.plaintext import clean
from agents_progress.retention import erase, over

_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_age: Final = re.compile(r"([0-9]{1,6})([smhd])").fullmatch
_ALL: Final = 10**9


def age(text: str) -> int:
    """Seconds of an option like 30d, 12h, 90m or 5s."""
    found = _age(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"{text!r:.40} is no age; write one like 30d, 12h, 90m or 5s")
    return int(found[1]) * _SECONDS[found[2]]


def prune(chosen: argparse.Namespace) -> int:
    """Make small, or forget, what was silent for longer than the age asked for."""

    async def question(journal: Journal) -> tuple[int, int]:
        try:
            return await _prune(journal, chosen)
        finally:
            for kept in (kept_beside(journal), reactions_kept_beside(journal)):  # which erasing opened
                if kept is not None:
                    kept.close()

    runs, envelopes = asked(chosen.journal, question)
    what = "erased" if chosen.erase else "pruned"
    if chosen.dry_run:
        say(f"{runs} runs would be {what}, with up to {envelopes} envelopes")
    else:
        say(f"{runs} runs were {what}, with {envelopes} envelopes")
    return FINE


async def _prune(journal: Journal, chosen: argparse.Namespace) -> tuple[int, int]:
    """How many runs, and how many of their envelopes."""
    runs = envelopes = 0
    for row, silent_s in await over(journal, _ALL):
        if silent_s <= chosen.older_than:
            continue
        with suppress(RunErased):  # by somebody else, just now
            if not chosen.erase and not await _has_log(journal, row):
                continue
            if chosen.dry_run:
                say(clean(f"{row.run_id}  {row.status:<10}  {row.seq:>6}  {row.updated_at}"))
            envelopes += row.seq if chosen.dry_run else await _remove(journal, row, chosen.erase)
            runs += 1
    return runs, envelopes


async def _remove(journal: Journal, row: RunRow, wholly: bool) -> int:
    if wholly:
        return (await erase(journal, run_id=row.run_id)).envelopes
    return await journal.prune(row.run_id, row.seq)


async def _has_log(journal: Journal, row: RunRow) -> bool:
    """Whether anything is left to be pruned."""
    try:
        return bool(await journal.read(row.run_id, row.seq - 1, 1))
    except CursorExpired:
        return False
