"""Outputs of tools as they are stored, so that a second call returns what the first one did.

What comes back as it was is stored as JSON of the tool's declared return type, or of plain values where it has none.
Anything else is stored as its text: the SDK shows the model no more of it.
"""

from __future__ import annotations

import json
from typing import Any

from pydantic import TypeAdapter

from agents_progress.unicode import valid


def adapter_of(annotation: Any) -> TypeAdapter[Any]:
    """How values of an annotation are stored; plain ones where pydantic cannot."""
    try:
        return TypeAdapter(annotation)
    except Exception:  # noqa: BLE001 - whatever an annotation is, the effect of its tool is what counts
        return TypeAdapter(Any)


def stored(output: Any, adapter: TypeAdapter[Any]) -> str:
    """An output as JSON text. Never raises: the effect has happened, whatever it returned."""
    try:
        body = adapter.dump_json(output).decode()
        again = adapter.validate_json(body)
        if type(again) is type(output) and again == output:
            return f'{{"is":{body}}}'
    except Exception:  # noqa: BLE001, S110 - then its text is kept
        pass
    return json.dumps({"text": _text(output)})


def restored(text: str, adapter: TypeAdapter[Any]) -> Any:
    """What :func:`stored` was given. A type that was declared otherwise since then gives the plain values."""
    found = json.loads(text)
    if "text" in found:
        return found["text"]
    try:
        return adapter.validate_json(text[len('{"is":') : -1])
    except ValueError:
        return found["is"]


def _text(output: Any) -> str:
    try:
        return valid(str(output))
    except Exception:  # noqa: BLE001 - see above
        return type(output).__name__
