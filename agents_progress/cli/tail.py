"""``tail``: one run, live, from a journal or from a server, until its log is closed."""

from __future__ import annotations

import argparse
import asyncio
import os
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing, suppress
from pathlib import Path
from typing import Final

from agents_progress.cli.printing import DIFFERS, FINE
from agents_progress.cli.stored import asked, continuation, stored_view
from agents_progress.errors import CursorExpired, JournalUnavailable, UsageError
from agents_progress.journal import Journal
from agents_progress.terminal import watch
from agents_progress.view import RunView

TOKEN: Final = "AGENTS_PROGRESS_TOKEN"  # noqa: S105 - the name of a variable
_LOOK_S: Final = 1.0
"""How often what tells nobody is looked for: a lost owner, the run that continues, a journal that is back."""
_PATIENCE_S: Final = 300.0
"""How long a journal may be away."""


def tail(chosen: argparse.Namespace) -> int:
    """Leaving it leaves the run alone. No ending but `done` is fine: what follows in a script relies on it."""
    if "://" in chosen.run_id:
        view = asyncio.run(_from_server(chosen))
    else:
        view = asked(chosen.journal, lambda journal: _from_journal(journal, chosen))
    return FINE if view is not None and view.status == "done" else DIFFERS


async def _from_server(chosen: argparse.Namespace) -> RunView | None:
    from agents_progress.client import Client
    from agents_progress.client.address import checked

    url, mark, run_id = checked(chosen.run_id).rpartition("/runs/")
    if not mark:
        raise UsageError("this is no address of a run; give one like https://host/prefix/runs/RUN_ID")
    async with (
        Client(url, token=_token(chosen.token_file)) as client,
        aclosing(client.follow(run_id, language=chosen.language, continued=chosen.continued)) as views,
    ):
        return await watch(views)


def _token(file: str | None) -> str | None:
    return Path(file).read_text(encoding="ascii", errors="replace").strip() if file else os.environ.get(TOKEN)


async def _from_journal(journal: Journal, chosen: argparse.Namespace) -> RunView | None:
    reading = [chosen.run_id]
    attending = asyncio.create_task(_attend(journal, reading))
    try:
        async with aclosing(_views(journal, reading, chosen)) as views:
            return await watch(views)
    finally:
        attending.cancel()
        await asyncio.gather(attending, return_exceptions=True)


async def _attend(journal: Journal, reading: Sequence[str]) -> None:
    """Say that somebody reads these runs, and notice when an owner is gone."""
    while True:
        with suppress(JournalUnavailable):  # it may be away, or readable only
            await journal.expire()
            await journal.touch(reading)
        await asyncio.sleep(_LOOK_S)


async def _views(journal: Journal, reading: list[str], chosen: argparse.Namespace) -> AsyncGenerator[RunView, None]:
    while True:
        view = await stored_view(journal, reading[-1], chosen.language)
        async with aclosing(_live(journal, view)) as views:
            async for view in views:
                yield view
        if not chosen.continued or view.standing.outcome != "paused":
            return
        reading.append(await _continuation(journal, view))


async def _continuation(journal: Journal, view: RunView) -> str:
    while True:
        later = await continuation(journal, view)
        if later is not None:
            return later.run_id
        await asyncio.sleep(_LOOK_S)


async def _live(journal: Journal, view: RunView) -> AsyncGenerator[RunView, None]:
    """What is stored, then what comes, over outages of the journal."""
    away_since: float | None = None
    yield view
    while True:
        try:
            async for envelope in journal.tail(view.run_id, view.seq):
                away_since = None
                view.feed(envelope.to_dict())
                yield view
            return
        except CursorExpired as pruned:
            view = RunView.from_snapshot(pruned.snapshot, view.language)
            yield view
        except JournalUnavailable:
            away_since = away_since or time.monotonic()
            if time.monotonic() - away_since > _PATIENCE_S:
                view.close_transport()
                raise
            await asyncio.sleep(_LOOK_S)
