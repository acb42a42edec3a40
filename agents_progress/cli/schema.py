"""``schema``: the JSON Schema of the protocol, printed or compared."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from agents_progress.cli.printing import DIFFERS, FINE, say, say_json
from agents_progress.errors import UsageError
from agents_progress.events import PROTOCOL, json_schema
from agents_progress.plaintext import clean


def schema(chosen: argparse.Namespace) -> int:
    if chosen.check is None:
        say_json(json_schema())
        return FINE
    try:
        same = json.loads(Path(chosen.check).read_bytes()) == json.loads(json.dumps(json_schema()))
    except (ValueError, RecursionError):
        raise UsageError(f"{chosen.check} is no JSON; write it with `agents-progress schema`") from None
    verdict = "is the schema of" if same else "differs from the schema of"
    say(f"{clean(chosen.check)} {verdict} {PROTOCOL}")
    return FINE if same else DIFFERS
