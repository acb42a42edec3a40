"""100,000 inputs to the decoder of event streams: mutated valid streams, and bytes that never were one.

Each is decoded whole, in random chunks and byte by byte, and compared with a plain reading of the standard that shares
no line with the decoder. No exception but BadFrame; what is given before one is a beginning of what the valid part
holds.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from agents_progress import sse
from agents_progress.errors import BadFrame

from .figures import Figures

ODD: Final = [
    "\r",
    "\n",
    "\r\n",
    "\0",
    "\u2028",
    "\u0085",
    "\x0c",
    "\ufeff",
    "é",
    "流",
    "🧭",
    ":",
    " ",
    "data: x",
    "id: 7",
]
TOKENS: Final = [b"data", b"data:", b"data: ", b"id: 1", b"id", b"event: e", b"retry: 1e3", b": c", b":"]
TOKENS += [b"retry: 999999999999999", b"retry: 1000000000000000", b"retry: 00000000000000000042"]
TOKENS += [
    b"\n",
    b"\r",
    b"\r\n",
    b"\n\n",
    b"\r\r",
    b"\xef\xbb\xbf",
    b"\0",
    b"\xc3\xa9",
    b"\xe2\x80\xa8",
    b"\xf0\x9f",
    b"\xff",
]
LIMITS: Final = range(4, 40)
"""How long a line and the data of a frame may be for the inputs that are about the limit, in bytes."""


class Reading(NamedTuple):
    """What a stream holds, and whether it is refused after that."""

    frames: list[tuple[str, str, str]]
    retry_ms: int | None
    last_event_id: str
    bad: bool


def unicode(stream: bytes) -> tuple[bytes, bool]:
    """The part of a stream that is UTF-8, and whether it is followed by what is not."""
    try:
        stream.decode()
    except UnicodeDecodeError as error:
        return stream[: error.start], True
    return stream, False


def reference(stream: bytes, limit: int) -> Reading:
    """The standard, line by line over the whole input."""
    stream, bad = unicode(stream)
    *lines, rest = re.split(rb"\r\n|\r|\n", stream.removeprefix(b"\xef\xbb\xbf"))
    frames: list[tuple[str, str, str]] = []
    event, identity, last, retry = "", "", "", None
    data: list[str] = []
    for line in lines:
        if len(line) > limit:
            return Reading(frames, retry, last, bad=True)
        if not line:
            last = identity
            if data:
                frames.append((event or "message", "\n".join(data), identity))
            event, data = "", []
            continue
        name, value = re.fullmatch("([^:]*)(?::? ?)(.*)", line.decode(), re.DOTALL).groups()  # type: ignore[union-attr]
        if name == "data":
            data.append(value)
            if len("\n".join(data).encode()) > limit:
                return Reading(frames, retry, last, bad=True)
        elif name == "event":
            event = value
        elif name == "id" and "\0" not in value:
            identity = value
        elif name == "retry" and re.fullmatch("[0-9]+", value) and int(value) < 10**15:
            retry = int(value)
    return Reading(frames, retry, last, bad or len(rest) > limit)


def decoded(chunks: Sequence[bytes], limit: int) -> Reading:
    decoder, frames, bad = sse.Decoder(limit=limit), [], False
    try:
        for chunk in chunks:
            frames += [tuple(frame) for frame in decoder.feed(chunk)]
        decoder.finish()
    except BadFrame:
        bad = True
    return Reading(frames, decoder.retry_ms, decoder.last_event_id, bad)


def words(chance: random.Random) -> str:
    return "".join(
        chance.choice(ODD) if chance.random() < 0.3 else chance.choice("abc xyz") for _ in range(chance.randrange(20))
    )


def stream(chance: random.Random) -> bytes:
    """Frames and comments as a server sends them, with any line ends."""
    parts = []
    for _ in range(chance.randrange(1, 6)):
        if chance.random() < 0.2:
            parts.append(sse.comment(words(chance)))
        else:
            name = re.sub("[\r\n\0]", "", words(chance)) if chance.random() < 0.5 else None
            number = str(chance.randrange(100)) if chance.random() < 0.7 else None
            retry = chance.randrange(10**6) if chance.random() < 0.1 else None
            parts.append(sse.encode(words(chance), event=name, id=number, retry_ms=retry))
    return b"".join(parts).replace(b"\n", chance.choice([b"\n", b"\n", b"\r", b"\r\n"]))


def mutated(chance: random.Random, valid: bytes) -> bytes:
    """The stream with a few bytes flipped, lost, put in, said twice or cut off."""
    torn = bytearray(valid)
    for _ in range(chance.randrange(1, 5)):
        at = chance.randrange(len(torn) + 1)
        match chance.randrange(5):
            case 0 if at < len(torn):
                torn[at] ^= 1 << chance.randrange(8)
            case 1:
                del torn[at : at + chance.randrange(1, 4)]
            case 2:
                torn[at:at] = chance.choice(TOKENS)
            case 3:
                torn[at:at] = torn[at : at + chance.randrange(1, 20)]
            case 4 if chance.random() < 0.3:
                del torn[at:]
    return bytes(torn)


KINDS: Final = {
    "valid": lambda chance: stream(chance),
    "mutated": lambda chance: mutated(chance, stream(chance)),
    "tokens": lambda chance: b"".join(chance.choices(TOKENS, k=chance.randrange(40))),
    "bytes": lambda chance: chance.randbytes(chance.randrange(80)),
}


def cuts(chance: random.Random, stream: bytes) -> Iterator[list[bytes]]:
    """The ways in which one input is given: whole, in random chunks with empty ones among them, and byte by byte."""
    yield [stream]
    for _ in range(2):
        at = sorted(chance.choices(range(len(stream) + 1), k=chance.randrange(1, 6)))
        yield [stream[start:end] for start, end in zip([0, *at], [*at, len(stream)], strict=True)]
    if chance.random() < 0.2:
        yield [stream[place : place + 1] for place in range(len(stream))]


def limit_for(chance: random.Random, stream: bytes) -> int:
    """Mostly out of reach, sometimes anything, sometimes just what the longest frame holds, or one byte less."""
    if chance.random() < 0.6:
        return sse.MAX_FRAME_BYTES
    longest = max((len(data.encode()) for _, data, _ in reference(stream, sse.MAX_FRAME_BYTES).frames), default=0)
    return max(longest - chance.randrange(2), 0) if chance.random() < 0.5 else chance.choice(LIMITS)


def wrong(chance: random.Random, stream: bytes, limit: int) -> list[str]:
    """What the decoder makes of an input that the standard does not, in words."""
    right, faults = reference(stream, limit), []
    for chunks in cuts(chance, stream):
        try:
            seen = decoded(chunks, limit)
        except Exception as error:
            faults.append(f"{error!r} for {chunks!r}")
            continue
        # In the chunk that is refused, frames that ended before its fault are not given.
        same = seen.frames == right.frames[: len(seen.frames)] and seen.bad if right.bad else seen == right
        if not same:
            faults.append(f"{seen} instead of {right} for {chunks!r}")
        if right.bad and all(len(chunk) <= 1 for chunk in chunks) and seen.frames != right.frames:
            faults.append(f"frames before the fault are missing: {seen} for {chunks!r}")
    return faults


def fuzz(inputs: int, seed: int, figures: Figures) -> None:
    chance, seen = random.Random(seed), Counter[str]()
    faults: list[str] = []
    for number in range(inputs):
        kind = list(KINDS)[number % len(KINDS)]
        given = KINDS[kind](chance)
        limit = limit_for(chance, given)
        faults += wrong(chance, given, limit)
        right = reference(given, limit)
        seen[f"{kind} {'refused' if right.bad else 'taken'}"] += 1
        seen["frames"] += len(right.frames)
    for fault in faults[:10]:
        figures.say(fault)
    figures.hold(
        not faults, f"seed {seed}: {inputs:,} inputs, {len(faults)} read otherwise; {dict(sorted(seen.items()))}"
    )


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bars.fuzz_sse", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    chosen = parser.parse_args(arguments)
    figures = Figures("fuzz_sse")
    fuzz(chosen.inputs, chosen.seed, figures)
    return figures.end()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
