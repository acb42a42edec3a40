"""Server-sent events: an incremental decoder and an encoder, with no I/O.

The decoder follows the event-stream rules of the HTML standard (section "Parsing an event stream"), and is stricter
in one thing: bytes that are not UTF-8 are refused instead of replaced, because a replaced byte is a changed fact.
Lines end at CR, LF or CRLF and nowhere else: readers built on a Unicode line splitter cut JSON at U+2028, U+2029 and
U+0085.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Callable, Mapping
from io import StringIO
from typing import Final, NamedTuple

from agents_progress.errors import BadFrame
from agents_progress.events import Envelope

MAX_FRAME_BYTES: Final = 16 * 1024 * 1024
"""A line, or the data of one frame, of more bytes than this is refused: an endless one would take all memory."""

_BOM: Final = "\ufeff"
_line_end: Final = re.compile(r"\r\n|\r|\n")
_MAX_RETRY_DIGITS: Final = 15


class Frame(NamedTuple):
    """One event of a stream. ``event`` is `message` when it has no name; ``id`` is the newest id so far, or empty."""

    event: str
    data: str
    id: str


class Decoder:
    """Turns the bytes of an event stream into frames, however they are cut into chunks.

    The same bytes give the same frames for every chunking, each in the chunk that holds its last byte: a blank line
    that ends in CR counts at once, and the LF that may follow it is swallowed later. A frame without its closing
    blank line is never given. ``limit`` is in bytes and bounds one line and the data of one frame.

    Every fault of the input is a :exc:`BadFrame`; after one the decoder refuses all further input. Frames that ended
    in the very chunk that is refused are not given either: resume after the newest id that was handled, and nothing
    is lost.
    """

    def __init__(self, *, limit: int = MAX_FRAME_BYTES) -> None:
        self.retry_ms: int | None = None
        """The newest valid reconnection time in milliseconds; None before the first."""
        self.last_event_id = ""
        """Where to resume: the newest id of a block that was closed, also of one without data."""
        self._limit = limit
        self._utf8 = codecs.getincrementaldecoder("utf-8")("strict")
        self._refusing: str | None = None
        self._at_start = True
        self._swallow_lf = False
        self._line = StringIO()  # a list of pieces would cost fifty bytes for every chunk of one byte
        self._line_bytes = 0
        self._data: list[str] = []
        self._data_bytes = 0
        self._event = ""
        self._id = ""
        self._fields: Mapping[str, Callable[[str], None]] = {
            "data": self._take_data,
            "event": self._take_event,
            "id": self._take_id,
            "retry": self._take_retry,
        }
        """The four fields of the standard, by their exact names; every other one is ignored."""

    def feed(self, chunk: bytes) -> list[Frame]:
        """Take in the next bytes; gives the frames that ended in them, oldest first.

        Raises :exc:`BadFrame` for bytes that are not UTF-8, for a line or a frame over the limit, and after
        :meth:`finish`.
        """
        if self._refusing is not None:
            raise BadFrame(self._refusing)
        try:
            return self._read(self._utf8.decode(chunk))
        except UnicodeDecodeError as error:
            self._refusing = f"the stream is not UTF-8 ({error.reason}); reconnect after the last event id"
            raise BadFrame(self._refusing) from None
        except BadFrame as error:
            self._refusing = str(error)
            raise

    def finish(self) -> None:
        """The input ended. An unfinished last frame is dropped; one that ends inside a character is a
        :exc:`BadFrame`.

        Asking again changes nothing.
        """
        closed = "the stream was finished; make a new Decoder for another connection"
        if self._refusing is not None:
            return
        self._refusing = closed
        self._line = StringIO()
        self._data.clear()
        try:
            self._utf8.decode(b"", final=True)
        except UnicodeDecodeError:
            raise BadFrame("the stream ended inside a character; reconnect after the last event id") from None

    def _read(self, text: str) -> list[Frame]:
        frames: list[Frame] = []
        if not text:
            return frames
        if self._at_start:
            self._at_start = False
            text = text.removeprefix(_BOM)
        if self._swallow_lf and text:
            self._swallow_lf = False
            text = text.removeprefix("\n")
        *ended, rest = _line_end.split(text)
        self._swallow_lf = self._swallow_lf or text.endswith("\r")
        for piece in ended:
            line = self._joined(piece) if self._line_bytes else piece
            if _byte_count(line) > self._limit:
                raise BadFrame(self._too_long())
            if line:
                self._take(line)
            else:
                self._close_block(frames)
        if rest:
            self._line.write(rest)
            self._line_bytes += _byte_count(rest)
            if self._line_bytes > self._limit:
                raise BadFrame(self._too_long())
        return frames

    def _joined(self, piece: str) -> str:
        line = self._line.getvalue() + piece
        self._line = StringIO()
        self._line_bytes = 0
        return line

    def _too_long(self) -> str:
        return f"a line of the stream is over the limit of {self._limit} bytes"

    def _take(self, line: str) -> None:
        """One line that is not blank. A comment is a line whose name is empty, and no field has that name."""
        name, _, value = line.partition(":")
        take = self._fields.get(name)
        if take is not None:
            take(value.removeprefix(" "))

    def _take_data(self, value: str) -> None:
        self._data_bytes += _byte_count(value) + 1
        if self._data_bytes > self._limit + 1:
            raise BadFrame(f"the data of one frame is over the limit of {self._limit} bytes")
        self._data.append(value)

    def _take_event(self, value: str) -> None:
        self._event = value

    def _take_id(self, value: str) -> None:
        if "\0" not in value:
            self._id = value

    def _take_retry(self, value: str) -> None:
        digits = value.lstrip("0") or value[-1:]
        if value.isascii() and value.isdigit() and len(digits) <= _MAX_RETRY_DIGITS:
            self.retry_ms = int(digits)

    def _close_block(self, frames: list[Frame]) -> None:
        self.last_event_id = self._id
        if self._data:
            frames.append(Frame(self._event or "message", "\n".join(self._data), self._id))
            self._data.clear()
            self._data_bytes = 0
        self._event = ""


def _byte_count(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def encode(data: str | bytes, *, event: str | None = None, id: str | None = None, retry_ms: int | None = None) -> bytes:
    """One frame, of which a reader that follows the standard sees exactly one event.

    ``data`` is text, or its UTF-8 bytes; each of its lines becomes one line of the frame, so CR and CRLF reach the
    reader as LF and nothing in it can forge a field. ``event`` None leaves the name out, ``id`` None the id,
    ``retry_ms`` None the reconnection time in milliseconds.

    Raises :exc:`BadFrame` when ``event`` or ``id`` holds CR, LF or NUL, when a text is not Unicode, or ``retry_ms``
    is negative.
    """
    if isinstance(data, bytes | bytearray):
        try:
            data = data.decode()
        except UnicodeDecodeError:
            raise BadFrame("the data is not UTF-8; encode text, or bytes as base64") from None
    lines: list[str] = []
    if retry_ms is not None:
        if not 0 <= retry_ms < 10**_MAX_RETRY_DIGITS:
            raise BadFrame(
                f"retry_ms is a whole number of milliseconds from 0 on, of at most {_MAX_RETRY_DIGITS} digits"
            )
        lines.append(f"retry: {retry_ms:d}")
    if id is not None:
        lines.append(f"id: {_one_line(id, 'id')}")
    if event is not None:
        lines.append(f"event: {_one_line(event, 'event')}")
    lines.extend(f"data: {line}" for line in _line_end.split(data))
    return _utf8("\n".join(lines)) + b"\n\n"


def encode_envelope(envelope: Envelope) -> bytes:
    """The frame of one envelope: its ``seq`` as id, its JSON as data, and no event name.

    Without a name a browser gives every envelope to one listener, the types nobody thought of too; the type stands in
    the data.
    """
    return b"id: %d\ndata: %b\n\n" % (envelope.seq, envelope.to_json())


def comment(text: str = "") -> bytes:
    """A heartbeat: bytes that keep a connection open and that no reader sees. It goes between frames."""
    return _utf8("".join(f": {line}\n" for line in _line_end.split(text))) + b"\n"


def _one_line(text: str, field: str) -> str:
    if any(character in text for character in "\r\n\0"):
        raise BadFrame(f"the {field} of a frame must not hold CR, LF or NUL")
    return text


def _utf8(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise BadFrame("the text holds a lone surrogate, which UTF-8 cannot carry; replace it with U+FFFD") from None
