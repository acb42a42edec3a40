"""The browser's modules as they are shipped: no build step, one table, and the codec, numbers and digests of Python."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
import struct
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agents_progress.errors import BadFrame
from agents_progress.sse import Decoder, comment, encode
from tests.browser import table
from tests.browser.node import PAGE, driven, needs_node, node

MODULES = sorted(PAGE.glob("*.js"))
EVENT_STREAMS: list[dict[str, Any]] = json.loads(
    files("agents_progress").joinpath("vectors/sse_cases.json").read_text(encoding="utf-8")
)


# As they are shipped.


def test_the_modules_a_page_imports_are_here() -> None:
    assert {"client.js", "protocol.js", "sse.js", "view.js"} <= {file.name for file in MODULES}


@pytest.mark.parametrize("name", table.TABLES)
def test_a_table_of_the_browser_is_the_packages_own(name: str) -> None:
    assert (PAGE / name).read_text(encoding="utf-8") == table.TABLES[name]()


@pytest.mark.parametrize("file", MODULES, ids=lambda file: file.name)
def test_a_module_is_small_says_what_it_is_and_imports_its_neighbours_only(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 400
    assert max(map(len, text.splitlines())) <= 120
    assert text.startswith("/**")
    neighbours = {f"./{other.name}" for other in MODULES}
    assert set(re.findall(r'(?m)^(?:import|export) [^=]* from "(.+)";$', text)) <= neighbours
    assert not re.search(r"\b(?:eval|innerHTML|document\.write|EventSource|new Function)\b(?!`)", text)


@needs_node
def test_every_module_is_read_without_a_complaint() -> None:
    for file in MODULES:
        node("--check", str(file))
    imported = "; ".join(f"await import({json.dumps(file.as_uri())})" for file in MODULES)
    before = "const before = Object.keys(globalThis).join()"
    assert node(
        "--input-type=module", "-e", f"{before}; {imported}; console.log(Object.keys(globalThis).join() === before)"
    ) == ("true\n")


# Event streams.


def streams(*cases: list[bytes], limit: int | None = None) -> list[dict[str, Any]]:
    extra = {} if limit is None else {"limit": limit}
    return [{"chunks": [base64.b64encode(chunk).decode() for chunk in case], **extra} for case in cases]


def one_by_one(wire: bytes) -> list[bytes]:
    return [wire[place : place + 1] for place in range(len(wire))]


@needs_node
def test_the_sixteen_vectors_are_decoded_whole_byte_by_byte_and_at_every_split(tmp_path: Path) -> None:
    wires = [case["wire"].encode() for case in EVENT_STREAMS]
    ways = [
        [[wire], one_by_one(wire), *([wire[:place], wire[place:]] for place in range(len(wire) + 1))] for wire in wires
    ]
    answers = iter(driven("sse.mjs", streams(*(chunks for way in ways for chunks in way)), tmp_path))
    assert len(wires) == 16
    for case, way in zip(EVENT_STREAMS, ways, strict=True):
        for chunks in way:
            answer = next(answers)
            found = [frame for frames in answer["frames"] for frame in frames]
            expected = (case["expected"]["events"], case["expected"]["retry_ms"], None)
            assert (found, answer["retry_ms"], answer["refused"]) == expected, (case["name"], chunks)


PIECES = (
    *(
        b"data: a",
        b"data:b",
        b"data",
        b"data:  ",
        b"id: 1",
        b"id",
        b"id: a\0b",
        b"event: x",
        b"event",
        b": note",
        b"x: y",
    ),
    *(b"retry: 5", b"retry: 0007", b"retry: 999999999999999", b"retry: 9999999999999999", b"retry: -1", b"retry:"),
    *(b"\r", b"\n", b"\r\n", b"\n\n", b"\r\n\r\n", b"\r\r", b"\n\n", b"\xef\xbb\xbf", "流🙂\u2028\x85".encode(), b"\0"),
)
"""What a stream is made of; sometimes a byte that is none of UTF-8 comes in between."""


def heard(chunks: list[bytes], limit: int) -> tuple[list[list[dict[str, str]]], int | None, str, bool]:
    decoder, frames = Decoder(limit=limit), []
    try:
        for chunk in chunks:
            frames.append([frame._asdict() for frame in decoder.feed(chunk)])
        decoder.finish()
    except BadFrame:
        return frames, decoder.retry_ms, decoder.last_event_id, True
    return frames, decoder.retry_ms, decoder.last_event_id, False


@needs_node
def test_any_stream_in_any_chunks_gives_the_same_frames_in_the_same_chunks(tmp_path: Path) -> None:
    random, cases = Random(16), []
    for _ in range(4000):
        wire = b"".join(random.choice(PIECES) for _ in range(random.randrange(16)))
        if random.random() < 0.1:
            place = random.randrange(len(wire) + 1)
            wire = wire[:place] + random.choice((b"\xff", b"\xe4", b"\xed\xa0\x80", b"\xc0\xaf")) + wire[place:]
        cuts = sorted(random.randrange(len(wire) + 1) for _ in range(random.randrange(6)))
        cases.append([wire[start:end] for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True)])
    answers = driven("sse.mjs", streams(*cases, limit=48), tmp_path)
    refused = 0
    for chunks, answer in zip(cases, answers, strict=True):
        frames, retry_ms, last_event_id, bad = heard(chunks, 48)
        refused += bad
        assert (answer["refused"] is not None) == bad, chunks
        if answer["refused"] is None or "UTF-8" not in answer["refused"]:  # which each decoder notices at its own byte
            found = (answer["frames"], answer["retry_ms"], answer["last_event_id"])
            assert found == (frames, retry_ms, last_event_id), chunks
    assert 200 < refused < 2000


@needs_node
def test_what_python_writes_a_browser_reads(tmp_path: Path) -> None:
    data = "a\r\nb\u2028\u0085 流🙂"
    wire = encode(data, event="x", id="7", retry_ms=9) + comment("still here") + encode("", id="8")
    (answer,) = driven("sse.mjs", streams(one_by_one(wire)), tmp_path)
    assert [frame for frames in answer["frames"] for frame in frames] == [
        {"event": "x", "data": data.replace("\r\n", "\n"), "id": "7"},
        {"event": "message", "data": "", "id": "8"},
    ]
    assert (answer["retry_ms"], answer["last_event_id"]) == (9, "8")


# Numbers, texts and digests.


@needs_node
def test_json_is_written_as_python_writes_it(tmp_path: Path) -> None:
    random = Random(1)
    doubles = [struct.unpack("<d", random.randbytes(8))[0] for _ in range(3000)]
    doubles += [random.uniform(-1, 1) * 10.0 ** random.randint(-8, 20) for _ in range(3000)]
    doubles += [float(f"{sign}1e{power}") for power in range(-324, 309) for sign in ("", "-")]
    numbers: list[Any] = [number for number in doubles if math.isfinite(number)]
    numbers += [random.randint(-(10**size), 10**size) for size in range(400)]
    texts = [
        "".join(
            chr(random.choice((random.randrange(0x80), random.randrange(0xD800), 0x1F642, 0xFF5E))) for _ in range(9)
        )
    ]
    texts += [chr(code) for code in range(0x100)]
    values = [*numbers, *texts, {text: [text, None, True] for text in texts}, [], {}, {"__proto__": {"__proto__": 1.0}}]
    answers = driven("json.mjs", [json.dumps(value) for value in values], tmp_path)
    for value, answer in zip(values, answers, strict=True):
        written = json.dumps(value, sort_keys=True, separators=(",", ":"))
        assert answer == {"canonical": written, "sha256": hashlib.sha256(written.encode()).hexdigest()}


@needs_node
def test_the_digest_of_a_text_is_that_of_its_utf8_bytes(tmp_path: Path) -> None:
    texts = ["流" * size + "a" * more for size in (0, 1, 21, 400) for more in range(70)]
    answers = driven("sha256.mjs", texts, tmp_path)
    assert answers == [hashlib.sha256(text.encode()).hexdigest() for text in texts]


@needs_node
def test_no_input_makes_a_view_throw_and_damaged_snapshots_are_refused() -> None:
    assert node(str(Path(table.__file__).with_name("refusals.mjs"))) == "refused what should be\n"
