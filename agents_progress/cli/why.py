"""``why``: the evidence behind what a run shows, row by row."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from agents_progress.cli.printing import FINE, say, say_json
from agents_progress.cli.stored import asked, continuation, stored_view
from agents_progress.journal import Journal
from agents_progress.why import Fact, explain, table


def why(chosen: argparse.Namespace) -> int:
    async def question(journal: Journal) -> list[Fact]:
        view = await stored_view(journal, chosen.run_id, chosen.language)
        return explain(view, await journal.run(chosen.run_id), await continuation(journal, view))

    facts = asked(chosen.journal, question)
    if chosen.json:
        say_json(_as_json(facts))
        return FINE
    for row in table(facts):
        say(row)
    return FINE


def _as_json(facts: Sequence[Fact]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for fact in facts:
        found.setdefault(fact.about, {})[fact.name] = fact.value
    return {**found, "decided_by": [fact.name for fact in facts if fact.decided]}
