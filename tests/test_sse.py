"""The event-stream codec: the vectors at every split, the field cases, and round trips at random chunking."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_progress.errors import BadFrame
from agents_progress.events import Envelope, parse
from agents_progress.sse import Decoder, Frame, comment, encode, encode_envelope

CASES: list[dict[str, Any]] = json.loads(
    files("agents_progress").joinpath("vectors/sse_cases.json").read_text(encoding="utf-8")
)
by_case = pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])


def read(*chunks: bytes) -> tuple[list[Frame], int | None]:
    decoder = Decoder()
    frames = [frame for chunk in chunks for frame in decoder.feed(chunk)]
    decoder.finish()
    return frames, decoder.retry_ms


def one_by_one(wire: bytes) -> list[bytes]:
    return [wire[place : place + 1] for place in range(len(wire))]


def expected(case: dict[str, Any]) -> tuple[list[Frame], int | None]:
    frames = [Frame(**frame) for frame in case["expected"]["events"]]
    return frames, case["expected"]["retry_ms"]


def test_all_sixteen_vector_cases_are_here() -> None:
    assert len({case["name"] for case in CASES}) == 16


@by_case
def test_a_vector_gives_its_frames_whole(case: dict[str, Any]) -> None:
    assert read(case["wire"].encode()) == expected(case)


@by_case
def test_a_vector_gives_its_frames_byte_by_byte(case: dict[str, Any]) -> None:
    assert read(*one_by_one(case["wire"].encode())) == expected(case)


@by_case
def test_a_vector_gives_its_frames_at_every_split(case: dict[str, Any]) -> None:
    wire = case["wire"].encode()
    checked = 0
    for place in range(len(wire) + 1):
        assert read(wire[:place], wire[place:]) == expected(case), place
        checked += 1
    assert checked == len(wire) + 1 >= 7


# When a frame is given.


@pytest.mark.parametrize("end", [b"\r", b"\n", b"\r\n"])
def test_a_frame_is_given_in_the_chunk_that_holds_its_last_byte(end: bytes) -> None:
    decoder = Decoder()
    assert decoder.feed(b"data: a" + end) == []
    assert decoder.feed(end) == [Frame("message", "a", "")]


def test_a_final_cr_releases_its_frame_and_the_lf_after_it_is_no_second_line_end() -> None:
    decoder = Decoder()
    assert decoder.feed(b"data: a\r\n\r") == [Frame("message", "a", "")]
    assert decoder.feed(b"") == []
    assert decoder.feed(b"\ndata: b\r\n\r\n") == [Frame("message", "b", "")]


def test_only_one_lf_is_swallowed_after_a_final_cr() -> None:
    decoder = Decoder()
    assert decoder.feed(b"data: a\r") == []
    assert decoder.feed(b"\n") == []
    assert decoder.feed(b"\n") == [Frame("message", "a", "")]


def test_an_unfinished_last_frame_is_dropped_and_so_is_its_id() -> None:
    decoder = Decoder()
    assert decoder.feed(b"id: 1\ndata: a\n\nid: 2\ndata: b\n") == [Frame("message", "a", "1")]
    decoder.finish()
    assert decoder.last_event_id == "1"


def test_the_cursor_moves_with_a_block_that_has_no_data() -> None:
    decoder = Decoder()
    assert decoder.feed(b"id: 7\n\n") == []
    assert decoder.last_event_id == "7"


def test_the_event_name_of_a_block_without_data_is_forgotten() -> None:
    assert read(b"event: x\n\ndata: a\n\n") == ([Frame("message", "a", "")], None)


# The byte order mark.


@pytest.mark.parametrize("cut", range(4))
def test_one_leading_byte_order_mark_is_dropped_wherever_it_is_cut(cut: int) -> None:
    wire = "\ufeffdata: a\n\n".encode()
    assert read(wire[:cut], wire[cut:]) == ([Frame("message", "a", "")], None)


def test_a_second_byte_order_mark_and_a_later_one_are_text() -> None:
    assert read("\ufeff\ufeffdata: a\n\ndata: \ufeffb\n\n".encode()) == ([Frame("message", "\ufeffb", "")], None)


# What is refused.

BAD_BYTES = {
    "a lone continuation byte": b"\x80",
    "a start byte without its rest": b"\xe4x",
    "an overlong slash": b"\xc0\xaf",
    "a surrogate": b"\xed\xa0\x80",
    "beyond Unicode": b"\xf5\x80\x80\x80",
}


@pytest.mark.parametrize("bad", BAD_BYTES.values(), ids=BAD_BYTES)
def test_bytes_that_are_not_utf8_are_refused_at_every_split(bad: bytes) -> None:
    wire = b"data: a\n\ndata: " + bad + b"\n\n"
    for place in range(len(wire) + 1):
        with pytest.raises(BadFrame, match="not UTF-8"):
            read(wire[:place], wire[place:])


def test_a_stream_that_ends_inside_a_character_is_refused_at_finish() -> None:
    decoder = Decoder()
    assert decoder.feed(b"data: a\n\ndata: \xe4\xbe") == [Frame("message", "a", "")]
    with pytest.raises(BadFrame, match="inside a character"):
        decoder.finish()


def test_a_decoder_that_refused_its_input_refuses_all_further_input() -> None:
    decoder = Decoder()
    for chunk in (b"\xff", b"data: a\n\n", b""):
        with pytest.raises(BadFrame, match="not UTF-8"):
            decoder.feed(chunk)
    decoder.finish()
    with pytest.raises(BadFrame):
        decoder.feed(b"\n")


def test_input_after_finish_is_refused_and_finishing_twice_is_not() -> None:
    decoder = Decoder()
    decoder.finish()
    decoder.finish()
    with pytest.raises(BadFrame, match="finished"):
        decoder.feed(b"data: late\n\n")


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_line_over_the_limit_is_refused_while_it_grows(size: int) -> None:
    decoder = Decoder(limit=64)
    taken = 0
    with pytest.raises(BadFrame, match="over the limit of 64 bytes"):
        for _ in range(100):
            decoder.feed(b"x" * size)
            taken += size
    assert taken <= 64


def test_a_whole_line_over_the_limit_is_refused_and_one_at_the_limit_is_not() -> None:
    assert Decoder(limit=16).feed(b"data: " + b"x" * 10 + b"\n\n") == [Frame("message", "x" * 10, "")]
    with pytest.raises(BadFrame, match="line"):
        Decoder(limit=16).feed(b"data: " + b"x" * 11 + b"\n\n")


def test_the_limit_counts_bytes_and_not_characters() -> None:
    with pytest.raises(BadFrame, match="line"):
        Decoder(limit=16).feed("data: 流流流流\n\n".encode())


def test_endless_short_data_lines_of_one_frame_are_refused_and_endless_comments_are_not() -> None:
    decoder = Decoder(limit=64)
    for _ in range(100):
        assert decoder.feed(b": still here\n") == []
    with pytest.raises(BadFrame, match="data of one frame"):
        for _ in range(100):
            decoder.feed(b"data\n")


def test_the_limit_is_per_frame_and_not_per_stream() -> None:
    decoder = Decoder(limit=64)
    assert len(decoder.feed(b"data: 0123456789\n\n" * 100)) == 100


@pytest.mark.parametrize(
    ("value", "retry_ms"), [("0", 0), ("007", 7), ("9" * 15, 10**15 - 1), ("9" * 16, None), ("1" * 5000, None)]
)
def test_a_retry_is_a_number_that_can_be_waited_for(value: str, retry_ms: int | None) -> None:
    assert read(f"retry: {value}\n".encode())[1] == retry_ms


# Writing.


def test_an_envelope_is_one_frame_with_its_seq_as_id_and_its_json_as_data() -> None:
    envelope = Envelope("r:7", "r", 7, "note.x", "2026-10-07T08:00:01Z", {"text": "a\r\nb\u2028"})
    frames, _ = read(encode_envelope(envelope))
    assert [(frame.event, frame.id) for frame in frames] == [("message", "7")]
    assert parse(frames[0].data) == envelope


def test_the_encoder_writes_the_fields_it_was_given_and_no_others() -> None:
    assert encode("a\nb", event="e", id="1", retry_ms=5) == b"retry: 5\nid: 1\nevent: e\ndata: a\ndata: b\n\n"
    assert encode(b"") == b"data: \n\n"


def test_comments_reach_no_reader_whatever_they_hold() -> None:
    wire = comment("ping\ndata: forged\r\rdata: too") + comment() + encode("a")
    assert read(wire) == ([Frame("message", "a", "")], None)


@pytest.mark.parametrize("field", ["event", "id"])
@pytest.mark.parametrize("character", ["\r", "\n", "\0"])
def test_a_line_end_or_nul_in_a_name_or_id_is_refused(field: str, character: str) -> None:
    with pytest.raises(BadFrame, match=f"the {field} of a frame"):
        encode("a", **{field: f"x{character}y"})  # type: ignore[arg-type]


@pytest.mark.parametrize("text", [b"\xff", "\ud800"])
def test_what_utf8_cannot_carry_is_refused_by_the_encoder(text: str | bytes) -> None:
    with pytest.raises(BadFrame):
        encode(text)


@pytest.mark.parametrize("retry_ms", [-1, 10**15])
def test_a_retry_no_reader_would_take_is_refused_by_the_encoder(retry_ms: int) -> None:
    with pytest.raises(BadFrame):
        encode("a", retry_ms=retry_ms)


def reader_text(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


texts = st.text(st.characters(exclude_categories=["Cs"]))
awkward = st.text(st.sampled_from("\r\n\0 :a\u2028\u0085\ufeff流🙂"), max_size=30)
one_liners = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"))
frames_written = st.tuples(texts | awkward, one_liners, one_liners, st.integers(0, 10**15 - 1))


@settings(deadline=None)
@given(st.lists(frames_written, max_size=5), st.randoms(use_true_random=False))
def test_what_was_encoded_is_decoded_at_any_chunking(written: list[tuple[str, str, str, int]], random: Any) -> None:
    wire = b"".join(encode(text, event=event, id=id_, retry_ms=wait) for text, event, id_, wait in written)
    cuts = sorted(random.randrange(len(wire) + 1) for _ in range(random.randrange(12)))
    chunks = [wire[start:end] for start, end in zip([0, *cuts], [*cuts, len(wire)], strict=True)]
    frames, retry_ms = read(*chunks)
    assert frames == [Frame(event or "message", reader_text(text), id_) for text, event, id_, _ in written]
    assert retry_ms == (written[-1][3] if written else None)


# Field cases.


def test_sse_1_a_crlf_that_two_chunks_share_is_one_line_end() -> None:
    chunks = [b"data: k1\r", b"\ndata: k2\r\nda", b"ta: k3\r", b"\n\r", b"\n"]
    only = [Frame("message", "k1\nk2\nk3", "")]
    assert read(*chunks)[0] == only
    assert read(*one_by_one(b"".join(chunks)))[0] == only


def test_sse_2_line_ends_in_texts_forge_no_event() -> None:
    output, agent, run_id = "x\revent: done\rdata: {}\r\rid: 99", "a\nid: 99", "r\n\ndata: x"
    envelope = Envelope("e", "r", 3, "note.tool", "2026-10-07T08:00:01Z", {"o": output, "a": agent, "r": run_id})
    frames, _ = read(encode_envelope(envelope))
    assert [(frame.event, frame.id) for frame in frames] == [("message", "3")]
    assert json.loads(frames[0].data)["payload"] == {"o": output, "a": agent, "r": run_id}
    assert read(encode(output))[0] == [Frame("message", reader_text(output), "")]
    for forged in (agent, run_id):
        with pytest.raises(BadFrame):
            encode("{}", id=forged)
        with pytest.raises(BadFrame):
            encode("{}", event=forged)


def test_sse_4_unicode_line_separators_end_no_line() -> None:
    text = "a\u2028b\u0085c\x0cd"
    wire = encode(json.dumps(text, ensure_ascii=False).replace("\\f", "\x0c"))
    for chunks in ([wire], one_by_one(wire)):
        frames, _ = read(*chunks)
        assert len(frames) == 1
        assert json.loads(frames[0].data, strict=False) == text
