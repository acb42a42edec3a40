"""Writes the tables that the browser's modules share with the Python package: ``python -m tests.browser.table``."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

from pydantic import TypeAdapter

from agents_progress import answers, labels, messages, payloads, plaintext, render, rows, sse, view
from agents_progress.events import MAX_ENVELOPE_BYTES, PROTOCOL, json_schema

PAGE = files("agents_progress").joinpath("server/page")
WIDTH = 118

PROTOCOL_HEAD = """/**
 * What the browser's modules share with the Python package: words, limits, and the shape of everything that comes from
 * outside, as the part of JSON Schema that shapes.js knows.
 *
 * Written by `python -m tests.browser.table`; a test compares it with the package. Do not edit.
 */
"""
WORDS_HEAD = """/**
 * The words around a status and the tables that choose them, which texts.js shares with `agents_progress/labels.py`,
 * `render.py` and `plaintext.py`.
 *
 * Written by `python -m tests.browser.table`; a test compares it with the package. Do not edit.
 */
"""


def protocol() -> str:
    """The text of protocol.js."""
    schema = json_schema()
    shapes = {name: plain(shape, schema["$defs"]) for name, shape in schema["$defs"].items()}
    envelope = {name: schema[name] for name in ("type", "properties", "required", "additionalProperties")}
    stored = TypeAdapter(view._Snapshot).json_schema()
    constants: dict[str, Any] = {
        "PROTOCOL": PROTOCOL,
        "NOTE_PREFIX": payloads.NOTE_PREFIX,
        "MAX_ENVELOPE_BYTES": MAX_ENVELOPE_BYTES,
        "MAX_FRAME_BYTES": sse.MAX_FRAME_BYTES,
        "REMEMBERED": view.REMEMBERED,
        "JOIN_AT": rows.JOIN_AT,
        "OPEN_STATES": sorted(rows.OPEN_STATES),
        "SNAPSHOT_VERSION": view._SNAPSHOT_VERSION,
        "MESSAGES": messages.MESSAGES,
        "ENVELOPE": plain(envelope, schema["$defs"]),
        "PAYLOADS": {type_: shapes[shape.__name__] for type_, shape in payloads.PAYLOADS.items()},
        "SNAPSHOT": plain(stored, stored["$defs"]),
    }
    return module(PROTOCOL_HEAD, constants)


def words() -> str:
    """The text of words.js."""
    constants: dict[str, Any] = {
        "LANGUAGES": messages.LANGUAGES,
        "LABELS": labels.LABELS,
        "ANSWER_LABELS": labels.ANSWER_LABELS,
        "DECISION_LABELS": labels.DECISION_LABELS,
        "NOTE_LABELS": labels.NOTE_LABELS,
        "REFUSAL_LABELS": labels.REFUSAL_LABELS,
        "TEXTS": answers.TEXTS,
        "MOST_TEXT": answers.MOST_TEXT,
        "AGE_LABELS": labels.AGE_LABELS,
        "DID_SOMETHING": render.DID_SOMETHING,
        "TO_BE_CHECKED": sorted(render.TO_BE_CHECKED),
        "KEPT": sorted(render.KEPT),
        "DEEPEST": render.DEEPEST,
        "COUNTABLE": render.COUNTABLE,
        "UNSAFE": plaintext.UNSAFE,
        "ESCAPES": plaintext.ESCAPES,
    }
    return module(WORDS_HEAD, constants)


def module(head: str, constants: dict[str, Any]) -> str:
    """A module that exports these constants."""
    return head + "".join(f"\nexport const {name} = {written(value)};\n" for name, value in constants.items())


def plain(schema: Any, shapes: dict[str, Any]) -> Any:
    """A schema without its words, and with what it refers to put in its place."""
    if isinstance(schema, list):
        return [plain(part, shapes) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return plain(shapes[schema["$ref"].rpartition("/")[2]], shapes)
    kept = {key: part for key, part in schema.items() if key not in ("title", "description", "$defs", "properties")}
    if "properties" in schema:  # whose keys are names, and may be `title`
        kept["properties"] = {name: plain(part, shapes) for name, part in schema["properties"].items()}
    return {key: part if key in ("properties", "default") else plain(part, shapes) for key, part in kept.items()}


def written(value: Any) -> str:
    """A JavaScript literal: a line for what is short, otherwise lines, of which every entry of an object begins one."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= WIDTH - 30 or not isinstance(value, dict | tuple):
        return text
    if isinstance(value, tuple):
        return f"[\n{wrapped(text[1:-1])}]"
    entries = (f"{json.dumps(name)}: {json.dumps(part, ensure_ascii=False)}," for name, part in value.items())
    return "{\n" + "".join(wrapped(entry) for entry in entries) + "}"


def wrapped(entry: str) -> str:
    """An entry in lines that end between two values."""
    lines = [""]
    for part in re.split(r'(?<=,) (?=["{[])', entry):
        if lines[-1] and len(lines[-1]) + len(part) > WIDTH - 4:
            lines.append("")
        lines[-1] += f" {part}" if lines[-1] else part
    return "".join(f"{'  ' if number == 0 else '    '}{line}\n" for number, line in enumerate(lines))


TABLES = {"protocol.js": protocol, "words.js": words}

if __name__ == "__main__":
    for name, table in TABLES.items():
        PAGE.joinpath(name).write_text(table(), encoding="utf-8")  # type: ignore[attr-defined]
