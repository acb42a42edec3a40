"""``why``: the evidence behind what a run shows, row by row."""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from typing import Any

from agents_progress.cli.printing import FINE, say, say_json
from agents_progress.cli.stored import asked, continuation, stored_view
from agents_progress.journal import Journal
from agents_progress.plaintext import clean
from agents_progress.why import Fact, explain


def why(chosen: argparse.Namespace) -> int:
    async def question(journal: Journal) -> list[Fact]:
        view = await stored_view(journal, chosen.run_id, chosen.language)
        return explain(view, await journal.run(chosen.run_id), await continuation(journal, view))

    facts = asked(chosen.journal, question)
    if chosen.json:
        say_json(_as_json(facts))
        return FINE
    width = max(len(clean(fact.name)) for fact in facts)
    about = ""
    for fact in facts:
        heading, about = "" if fact.about == about else fact.about, fact.about
        mark = "  <- decided" if fact.decided else ""
        say(f"{heading:<10}{clean(fact.name):<{width}}  {clean(_shown(fact.value))}{mark}")
    return FINE


def _as_json(facts: Sequence[Fact]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for fact in facts:
        found.setdefault(fact.about, {})[fact.name] = fact.value
    return {**found, "decided_by": [fact.name for fact in facts if fact.decided]}


def _shown(value: object) -> str:
    """A text as it is, anything else as JSON; what is not known is a dash."""
    if value is None or value == []:
        return "-"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
