"""``doctor --pending``: which paused runs these functions, as they are deployed here, can go on with."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

from agents_progress.cli.printing import DIFFERS, FINE, say
from agents_progress.cli.stored import asked
from agents_progress.decorate import Decorated
from agents_progress.errors import NotResumableHere, NotServable, ProgressError
from agents_progress.journal import Journal
from agents_progress.plaintext import clean
from agents_progress.resuming import kept_as
from agents_progress.targets import named


def pending(chosen: argparse.Namespace) -> int:
    """Say of every pause what becomes of it here. Loads each as an answer would, and uses nothing up."""
    functions = _functions(chosen.pending)

    async def question(journal: Journal) -> list[tuple[str, str | None]]:
        return [(run_id, await _amiss(journal, run_id, functions)) for run_id in await journal.pauses()]

    found = asked(chosen.journal, question)
    stranded = [(run_id, why) for run_id, why in found if why is not None]
    say(f"{len(found)} paused, {len(stranded)} would be stranded by these functions")
    for run_id, why in stranded:
        say(f"  {clean(run_id)}  {clean(why)}")
    return DIFFERS if stranded else FINE


def _functions(targets: Sequence[str]) -> dict[str, Decorated[...]]:
    found: dict[str, Decorated[...]] = {}
    for target in targets:
        function = named(target)
        if not isinstance(function, Decorated):
            raise NotServable(f"{target} is no function under @progress; name one that is")
        found[kept_as(function)] = function
    return found


async def _amiss(journal: Journal, run_id: str, functions: Mapping[str, Decorated[...]]) -> str | None:
    """Why a paused run cannot go on here, None when it can."""
    pause = await journal.pause(run_id)
    if pause is None:
        return None  # it was answered meanwhile
    function = functions.get(pause.function)
    if function is None:
        return f"started by {pause.function}, which is not among them"
    try:
        await function.using(journal=journal).resumable(run_id)
    except NotResumableHere as error:
        return str(error)
    except ProgressError:
        return None  # it is not paused any more
    return None
