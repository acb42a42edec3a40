"""Recorded envelopes in files: a JSON array, JSON lines, or named cases; and the cases that ship with the package."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from agents_progress.errors import BadRecording

STANDARD_INPUT: Final = "-"
_BUILT_IN: Final = "vectors/progress_cases.json"


@dataclass(frozen=True, slots=True)
class Recording:
    """Envelopes of one run in the order they came, good ones and bad ones, not parsed yet."""

    name: str
    run_id: str
    events: list[Any] = field(default_factory=list)


@cache
def built_in() -> dict[str, Recording]:
    """The cases that every reader of the protocol must get right, by name."""
    text = files("agents_progress").joinpath(_BUILT_IN).read_text(encoding="utf-8")
    return {case.name: case for case in parse(text, _BUILT_IN)}


def load(source: str) -> list[Recording]:
    """The recordings of a file, of one case of a file (``file#case``), of `-`, or the built-in case of that name.

    Raises :exc:`BadRecording` for what is none of these and for a file that is not whole; nothing of it is given then.
    """
    if source == STANDARD_INPUT:
        return parse(_decoded(sys.stdin.buffer.read(), "the standard input"), "the standard input")
    if Path(source).exists():
        return parse(_decoded(Path(source).read_bytes(), source), source)
    file, mark, name = source.rpartition("#")
    if mark and Path(file).exists():
        cases = {case.name: case for case in parse(_decoded(Path(file).read_bytes(), file), file)}
        if name not in cases:
            raise BadRecording(f"{file} has no case {name!r}; it has {', '.join(cases)}")
        return [cases[name]]
    if source not in built_in():
        raise BadRecording(
            f"no file and no built-in case is called {source!r}; `agents-progress replay` lists the cases"
        )
    return [built_in()[source]]


def parse(text: str, name: str) -> list[Recording]:
    """The recordings in a text; envelopes that stand outside a case are sorted by run. ``name`` is for the messages."""
    found = _values(text, name)
    if found and all(isinstance(value, dict) and "events" in value for value in found):
        return [_case(value, name) for value in found]
    if not any(isinstance(value, dict) and "protocol" in value for value in found):
        raise BadRecording(f"{name} holds neither envelopes nor cases; give it a JSON array or one envelope a line")
    return _by_run(found)


def _values(text: str, name: str) -> list[Any]:
    try:
        whole = json.loads(text)
    except RecursionError:
        raise BadRecording(f"{name} is nested too deeply to be read") from None
    except ValueError as error:
        if text.lstrip().startswith("["):
            raise BadRecording(f"{name} is no whole JSON array: {_place(error)}; was it cut off?") from None
        return _json_lines(text, name)
    return whole if isinstance(whole, list) else [whole]


def _json_lines(text: str, name: str) -> list[Any]:
    values: list[Any] = []
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        try:
            values.append(json.loads(line))
        except (ValueError, RecursionError):
            raise BadRecording(f"line {number} of {name} is no whole JSON value; was it cut off?") from None
    return values


def _place(error: ValueError) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"{error.msg} in line {error.lineno}, column {error.colno}"
    return "a number has too many digits"


def _case(value: dict[str, Any], name: str) -> Recording:
    case, run_id, events = value.get("name", name), value.get("run_id"), value["events"]
    if not (isinstance(case, str) and isinstance(run_id, str) and isinstance(events, list)):
        raise BadRecording(f"a case of {name} lacks a text as run_id or an array as events")
    return Recording(case, run_id, events)


def _by_run(values: list[Any]) -> list[Recording]:
    """One recording per run id. What has none belongs to the run before it: it must not vanish from the replay."""
    ids = [value.get("run_id") if isinstance(value, dict) else None for value in values]
    current = next((run_id for run_id in ids if isinstance(run_id, str)), "unknown")
    found: dict[str, Recording] = {}
    for value, run_id in zip(values, ids, strict=True):
        current = run_id if isinstance(run_id, str) else current
        found.setdefault(current, Recording(current, current)).events.append(value)
    return list(found.values())


def _decoded(raw: bytes, name: str) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise BadRecording(f"{name} is not UTF-8 text") from None
