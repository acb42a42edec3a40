"""Writes the table that the browser's modules share with the Python package: ``python -m tests.browser.table``."""

from __future__ import annotations

import json
import re
from importlib.resources import files
from typing import Any

from pydantic import TypeAdapter

from agents_progress import messages, payloads, rows, sse, view
from agents_progress.events import MAX_ENVELOPE_BYTES, PROTOCOL, json_schema

TARGET = files("agents_progress").joinpath("server/page/protocol.js")
WIDTH = 118

HEAD = """/**
 * What the browser's modules share with the Python package: words, limits, and the shape of everything that comes from
 * outside, as the part of JSON Schema that shapes.js knows.
 *
 * Written by `python -m tests.browser.table`; a test compares it with the package. Do not edit.
 */
"""


def table() -> str:
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
    return HEAD + "".join(f"\nexport const {name} = {written(value)};\n" for name, value in constants.items())


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
    """A JavaScript literal: a line for what is short, otherwise an entry of an object begins a line."""
    text = json.dumps(value, ensure_ascii=False)
    if len(text) <= WIDTH - 30 or not isinstance(value, dict):
        return text
    entries = (f"{json.dumps(name)}: {json.dumps(part, ensure_ascii=False)}," for name, part in value.items())
    return "{\n" + "".join(wrapped(entry) for entry in entries) + "}"


def wrapped(entry: str) -> str:
    """An entry in lines that end between two values."""
    lines = [""]
    for part in re.split(r'(?<=,) (?=["{])', entry):
        if lines[-1] and len(lines[-1]) + len(part) > WIDTH - 4:
            lines.append("")
        lines[-1] += f" {part}" if lines[-1] else part
    return "".join(f"{'  ' if number == 0 else '    '}{line}\n" for number, line in enumerate(lines))


if __name__ == "__main__":
    TARGET.write_text(table(), encoding="utf-8")  # type: ignore[attr-defined]
