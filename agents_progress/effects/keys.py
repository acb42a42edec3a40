"""What makes two calls the same effect: digests of canonical JSON, in which nothing that differs becomes the same."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from agents_progress.errors import UsageError

LONGEST_SHOWN: Final = 200
"""Characters of a key that are kept to be read; the digest is of all of it."""


def canonical(value: Any) -> str:
    """A value as ASCII JSON with sorted keys and sets. Raises :exc:`UsageError` for what has no JSON form."""
    try:
        return json.dumps(_plain(value), sort_keys=True, separators=(",", ":"))
    except Exception as error:  # whatever an application's own containers raise
        raise UsageError("an argument has no JSON form to compare calls by; give the tool plain ones") from error


def _plain(value: Any) -> Any:
    """Containers one by one, so that the sets in them can be put in order; the rest as pydantic has it."""
    if isinstance(value, BaseModel):
        return {name: _plain(part) for name, part in BaseModel.__iter__(value)}  # a root model may have its own
    if is_dataclass(value) and not isinstance(value, type):
        return {part.name: _plain(getattr(value, part.name)) for part in fields(value)}
    if isinstance(value, Mapping):
        return {name if type(name) is str else canonical([name]): _plain(part) for name, part in value.items()}
    if isinstance(value, set | frozenset):
        return sorted((_plain(part) for part in value), key=canonical)
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if hasattr(value, "get_secret_value"):
        raise TypeError("a secret is masked: all of them would be the same")
    return value if isinstance(value, str) else to_jsonable_python(value)


def digest(*parts: Any) -> str:
    """The SHA-256 of some values, as 64 hex digits."""
    return hashlib.sha256(canonical(list(parts)).encode()).hexdigest()


def shown(text: str) -> str:
    """A key as people read it."""
    return text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…"
