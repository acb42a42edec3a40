"""Files and images that tools make: what may be said of them is their name, type, size and digest, never what they
hold.

Only content that is here can be measured. A file that an output names by an address or by an id is somewhere else, its
size is not known, and nothing is said of it.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import mimetypes
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from agents_progress.disclosure import Draft
from agents_progress.sdk.items import field as part_of
from agents_progress.sdk.text import Ids
from agents_progress.unicode import name_of, valid

_DATA_URL = re.compile(r"data:([\w.+/-]{1,127})?(?:;[\w.=+-]{1,127})*;base64,", re.ASCII)
_UNKNOWN: Final = "application/octet-stream"
_FORMATS: Final[Mapping[str, str]] = {"svg": "image/svg+xml", "jpg": "image/jpeg"}


class File(NamedTuple):
    """One file: a name without a path, and its content, which goes no further than here."""

    name: str
    media_type: str
    content: bytes


@dataclass(slots=True)
class Files:
    """Gives the files of one run their ids."""

    _ids: Ids = field(default_factory=lambda: Ids("artifact"))

    def made(self, files: Iterator[File], call_id: str) -> Iterator[Draft]:
        """What is said of the files that a call made."""
        for file in files:
            yield (
                "artifact.created",
                {
                    "artifact_id": self._ids.take(None),
                    "name": file.name,
                    "media_type": file.media_type,
                    "bytes": len(file.content),
                    "call_id": call_id,
                    "sha256": hashlib.sha256(file.content).hexdigest(),
                },
            )


def files_of(output: Any) -> Iterator[File]:
    """The files in what a tool returned: a part of type image or file, a list of parts, or a data URL, which is what a
    computer's screenshot is.
    """
    for part in output if isinstance(output, list | tuple) else (output,):
        if isinstance(part, str):
            yield from _from_url(part)
            continue
        kind = _type(part)
        if kind == "image":
            yield from _from_url(_text(part, "image_url"))
        elif kind == "file":
            yield from _from_file(_text(part, "file_data"), _text(part, "filename"))


def files_of_item(raw: Any) -> Iterator[File]:
    """The files in a finished item of a hosted tool."""
    kind = part_of(raw, "type")
    if kind == "image_generation_call":
        form = _text(raw, "output_format") or "png"
        media_type = _FORMATS.get(form, f"image/{form}")
        yield from _decoded(_text(raw, "result"), f"image.{form}", media_type)
    elif kind == "code_interpreter_call":
        for part in part_of(raw, "outputs") or ():
            if _type(part) == "image":
                yield from _from_url(_text(part, "url"))


def shown(output: Any) -> str:
    """A tool's output as text. What is no text becomes a short description: never its bytes, never its repr."""
    if isinstance(output, str):
        return valid(_described(output) if output.startswith("data:") else output)
    if isinstance(output, bool | int | float) or output is None:
        return str(output)
    if isinstance(output, bytes | bytearray):
        return f"({type(output).__name__}, {len(output)} bytes)"
    if isinstance(output, list | tuple) and output and all(_type(part) for part in output):
        return "\n".join(map(shown, output))
    if _type(output) == "text" and isinstance(text := part_of(output, "text"), str):
        return valid(text)
    try:
        size = f", {len(str(output))} characters"
    except Exception:  # noqa: BLE001 - an object of the application, which may do anything when asked
        size = ""
    return f"({type(output).__name__}{size})"


def _described(text: str) -> str:
    found = _DATA_URL.match(text)
    if found is None:
        return text
    return f"({found[1] or _UNKNOWN}, {len(text) - found.end()} characters of base64)"


def _from_url(url: str) -> Iterator[File]:
    found = _DATA_URL.match(url)
    if found is not None:
        media_type = found[1] or _UNKNOWN
        family, _, form = media_type.partition("/")
        name = f"{'image' if family == 'image' else 'file'}.{form.split('+')[0]}"
        yield from _decoded(url[found.end() :], name, media_type)


def _from_file(content: str, filename: str) -> Iterator[File]:
    name = filename.replace("\\", "/").rsplit("/", 1)[-1]  # a path says where it came from
    found = _DATA_URL.match(content)
    if found is not None:
        guessed, content = found[1], content[found.end() :]
    else:
        guessed = mimetypes.guess_type(name)[0]
    yield from _decoded(content, name or "file", guessed or _UNKNOWN)


def _decoded(content: str, name: str, media_type: str) -> Iterator[File]:
    try:
        decoded = base64.b64decode(content, validate=True)
    except (binascii.Error, ValueError):
        return  # its size cannot be told
    if decoded:
        yield File(name_of(name), name_of(media_type), decoded)


def _type(part: Any) -> str | None:
    try:
        kind = part_of(part, "type")
    except Exception:  # noqa: BLE001 - an object of the application, which may do anything when asked
        return None
    return kind if kind in ("text", "image", "file") else None


def _text(part: Any, name: str) -> str:
    value = part_of(part, name)
    return value if isinstance(value, str) else ""
