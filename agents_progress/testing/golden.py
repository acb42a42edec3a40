"""Golden envelopes: the log of a run in a file beside its test, one JSON envelope a line, as `replay` reads it."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from agents_progress.events import Envelope
from agents_progress.plaintext import clean

from .played import Played

OPTION = "--update-golden-envelopes"


class GoldenEnvelopes:
    """Compares envelopes with those of a file, `golden/MODULE/TEST.jsonl` beside the test's own."""

    def __init__(self, test: Path, name: str, *, update: bool) -> None:
        self._folder = test.parent / "golden" / test.stem
        self._name = re.sub(r"[^\w.-]+", "_", name).strip("_")
        self._update = update

    def __call__(self, found: Played | Iterable[Envelope], name: str | None = None) -> None:
        """Raise `AssertionError` with the differences, envelope by envelope, or where there is no file yet.

        A second log of one test needs a `name`. With `--update-golden-envelopes` the file is written instead; look at
        what changed before it is committed.
        """
        __tracebackhide__ = True
        envelopes = [envelope.to_dict() for envelope in (found.envelopes if isinstance(found, Played) else found)]
        file = self._folder / f"{self._name}{'' if name is None else f'.{name}'}.jsonl"
        if self._update:
            self._folder.mkdir(parents=True, exist_ok=True)
            file.write_text("".join(f"{_line(envelope)}\n" for envelope in envelopes), encoding="utf-8", newline="\n")
            return
        if not file.exists():
            raise AssertionError(f"there is no {_place(file)} yet; write it with `pytest {OPTION}`, and look at it")
        golden = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]
        if golden != [json.loads(_line(envelope)) for envelope in envelopes]:
            rows = difflib.unified_diff(_rows(golden), _rows(envelopes), _place(file), "this run", n=1, lineterm="")
            told = "\n".join(clean(row) for row in rows)
            raise AssertionError(
                f"the envelopes are not the golden ones; if they are right, run `pytest {OPTION}`:\n{told}"
            )


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def _rows(envelopes: Iterable[dict[str, Any]]) -> list[str]:
    """A row for each envelope and one for each of its values, all of which say what they belong to."""
    rows = []
    for envelope in envelopes:
        name = f"{envelope['event_id']} {envelope['type']}"
        rows.append(f"{name} at {envelope['occurred_at']}")
        rows += [f"{name} {path} = {value}" for path, value in _leaves("", envelope["payload"])]
    return rows


def _leaves(path: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and value:
        for name in sorted(value):
            yield from _leaves(f"{path}.{name}" if path else name, value[name])
    else:
        yield path or "payload", _line(value)


def _place(file: Path) -> str:
    return "/".join(file.parts[-3:])
