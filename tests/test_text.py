"""Texts and ids: which item a delta belongs to, and what the model finally said."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents_progress.disclosure import TEXTS, Draft
from agents_progress.sdk.text import Ids, Texts, message_texts
from agents_progress.unicode import valid


def answer(texts: Texts, text: str, place: int = 0, item_id: object = "m1") -> list[Draft]:
    """One delta by itself, as the log will say it."""
    ((type_, payload),) = texts.answer_deltas([delta(text, place, item_id)])
    assert type_ == TEXTS
    return [("text.delta", {"item_id": payload["item_id"], "text": piece}) for piece in payload["texts"]]


def delta(text: str, place: int = 0, item_id: object = "m1") -> Any:
    return SimpleNamespace(delta=text, output_index=place, item_id=item_id)


def message(*parts: tuple[str, str], item_id: object = "m1") -> Any:
    content = [
        SimpleNamespace(type=kind, **{"text" if kind == "output_text" else "refusal": text}) for kind, text in parts
    ]
    return SimpleNamespace(id=item_id, content=content)


def completed(item_id: str = "m1", **more: str) -> Draft:
    return "text.completed", {"item_id": item_id, **more}


# Ids.


def test_a_models_own_id_is_kept_when_it_is_plain_and_new() -> None:
    ids = Ids("msg")
    assert [ids.take("msg_1"), ids.take("A.b-9"), ids.take("x" * 64)] == ["msg_1", "A.b-9", "x" * 64]


def test_a_repeated_id_is_numbered() -> None:
    ids = Ids("call")
    assert [ids.take("c1") for _ in range(3)] == ["c1", "c1#2", "c1#3"]


@pytest.mark.parametrize("odd", ["", None, "a b", "é-1", "a/b", "x" * 65, "a\n", 7, b"c1", "c#2", "a\x00"])
def test_an_unusable_id_becomes_a_counted_one(odd: object) -> None:
    ids = Ids("call")
    assert [ids.take(odd), ids.take(odd)] == ["call-1", "call-2"]


@given(st.lists(st.sampled_from(["call-1", "call-2", "c", "", None, "call-1#2", "é"]), max_size=12))
def test_no_id_is_ever_given_twice(proposed: list[object]) -> None:
    ids = Ids("call")
    given_out = [ids.take(item) for item in proposed]
    assert len(set(given_out)) == len(given_out)


# Deltas and their ends.


def test_deltas_that_came_together_are_one_draft_for_each_item_in_a_row() -> None:
    texts = Texts()
    burst = [delta("a"), delta("b"), delta("c", 1, "m2"), delta("d"), delta("\ud800é")]
    assert list(texts.answer_deltas(burst)) == [
        (TEXTS, {"item_id": "m1", "texts": ["a", "b"]}),
        (TEXTS, {"item_id": "m2", "texts": ["c"]}),
        (TEXTS, {"item_id": "m1", "texts": ["d", "\ufffdé"]}),
    ]
    assert list(texts.part_done(0, "m1", 0, "abd\ufffdé", "answer")) == [completed()]


def test_deltas_that_said_everything_are_completed_without_a_text() -> None:
    texts = Texts()
    assert answer(texts, "Hel") + answer(texts, "lo") == [
        ("text.delta", {"item_id": "m1", "text": "Hel"}),
        ("text.delta", {"item_id": "m1", "text": "lo"}),
    ]
    assert list(texts.part_done(0, "m1", 0, "Hello", "answer")) == [completed()]
    assert list(texts.item_done(0, message(("output_text", "Hello")))) == []
    assert list(texts.message_created(message(("output_text", "Hello")))) == []


def test_the_final_text_replaces_deltas_that_differ() -> None:
    texts = Texts()
    answer(texts, "Helo")
    assert list(texts.part_done(0, "m1", 0, "Hello", "answer")) == [completed(text="Hello")]
    assert list(texts.item_done(0, message(("output_text", "Hello")))) == []
    assert list(texts.item_done(0, message(("output_text", "Hello!")))) == [completed(text="Hello!")]


def test_a_message_whose_deltas_never_came_is_told_whole() -> None:
    assert list(Texts().item_done(0, message(("output_text", "Hello")))) == [completed(text="Hello")]


def test_the_parts_of_a_message_are_one_text_in_their_order() -> None:
    texts = Texts()
    answer(texts, "one ")
    assert list(texts.part_done(0, "m1", 0, "one ", "answer")) == [completed()]
    answer(texts, "two")
    assert all("text" not in payload for _, payload in texts.part_done(0, "m1", 1, "two", "answer"))
    assert list(texts.item_done(0, message(("output_text", "one "), ("output_text", "two")))) == []


def test_parts_that_end_out_of_order_are_still_joined_in_order() -> None:
    texts = Texts()
    list(texts.part_done(0, "m1", 1, "two", "answer"))
    assert list(texts.part_done(0, "m1", 0, "one ", "answer")) == [completed(text="one two")]


def test_a_refusal_is_a_channel_of_its_own() -> None:
    texts = Texts()
    answer(texts, "Well. ")
    assert texts.delta(0, "m1", "I can", "refusal") == (
        "text.delta",
        {"item_id": "m1", "text": "I can", "channel": "refusal"},
    )
    assert list(texts.part_done(0, "m1", 0, "Well. ", "answer")) == [completed()]
    assert list(texts.part_done(0, "m1", 1, "I cannot", "refusal")) == [completed(channel="refusal", text="I cannot")]
    assert list(texts.item_done(0, message(("output_text", "Well. "), ("refusal", "I cannot")))) == []


def test_a_pure_refusal_claims_no_answer() -> None:
    left = list(Texts().item_done(0, message(("refusal", "No."))))
    assert left == [completed(channel="refusal", text="No.")]


def test_an_item_that_ends_empty_after_deltas_takes_them_back() -> None:  # the item's own end is the authority
    texts = Texts()
    answer(texts, "draft")
    assert list(texts.item_done(0, message(("output_text", "")))) == [completed(text="")]


# Ids that repeat (chat-completions).


def test_the_same_placeholder_id_never_joins_two_messages() -> None:  # PRJ-1
    texts = Texts()
    first = answer(texts, "pre", item_id="__fake_id__")
    list(texts.item_done(0, message(("output_text", "pre"), item_id="__fake_id__")))
    texts.begin_response()
    second = answer(texts, "post", item_id="__fake_id__")
    assert [first[0][1]["item_id"], second[0][1]["item_id"]] == ["__fake_id__", "__fake_id__#2"]
    assert list(texts.part_done(0, "__fake_id__", 0, "post", "answer")) == [completed("__fake_id__#2")]


def test_two_items_of_one_response_with_one_id_stay_apart() -> None:
    texts = Texts()
    ids = [answer(texts, "a", place)[0][1]["item_id"] for place in (0, 1, 0, 1)]
    assert ids == ["m1", "m1#2", "m1", "m1#2"]


@pytest.mark.parametrize("item_id", ["", None, 3])
def test_items_without_an_id_get_one(item_id: object) -> None:
    texts = Texts()
    assert answer(texts, "a", item_id=item_id)[0][1]["item_id"] == "msg-1"
    texts.begin_response()
    assert answer(texts, "b", item_id=item_id)[0][1]["item_id"] == "msg-2"


# Message items of the run.


def test_a_message_that_no_response_made_is_told() -> None:  # an error handler's own answer
    assert list(Texts().message_created(message(("output_text", "Sorry"), item_id="h1"))) == [
        completed("h1", text="Sorry")
    ]


def test_a_message_whose_deltas_came_is_not_told_again() -> None:
    texts = Texts()
    answer(texts, "par")
    assert list(texts.message_created(message(("output_text", "par")))) == []


def test_messages_are_matched_one_by_one() -> None:
    texts = Texts()
    for place, word in enumerate(("a", "b")):
        list(texts.item_done(place, message(("output_text", word), item_id=word)))
    assert [list(texts.message_created(message(("output_text", word)))) for word in "ab"] == [[], []]
    texts.begin_response()
    assert list(texts.message_created(message(("output_text", "c"), item_id="h"))) == [completed("h", text="c")]


@pytest.mark.parametrize("before", ["reasoning", "finished message"])
def test_an_answer_of_an_error_handler_is_told_after_any_response_that_ended(before: str) -> None:
    texts = Texts()
    if before == "reasoning":
        texts.delta(0, "r1", "hmm", "reasoning")
    else:
        answer(texts, "Let me look.")
        list(texts.item_done(0, message(("output_text", "Let me look."))))
        list(texts.message_created(message(("output_text", "Let me look."))))
    assert list(texts.message_created(message(("output_text", "Sorry"), item_id="h1"))) == [
        completed("h1", text="Sorry")
    ]


# Reasoning, transcripts, citations.


def test_each_summary_of_reasoning_is_a_paragraph() -> None:
    texts = Texts()
    left = [*texts.summary_begun(0, "r1", 0), texts.delta(0, "r1", "First.", "reasoning")]
    left += texts.part_done(0, "r1", texts.summary(0), "First.", "reasoning")
    left += [*texts.summary_begun(0, "r1", 1), texts.delta(0, "r1", "Second.", "reasoning")]
    left += texts.part_done(0, "r1", texts.summary(1), "Second.", "reasoning")
    assert "".join(payload["text"] for type_, payload in left if type_ == "text.delta") == "First.\n\nSecond."
    assert all("text" not in payload for type_, payload in left if type_ == "text.completed")


def test_summaries_stand_before_the_text_of_reasoning_and_do_not_replace_it() -> None:
    texts = Texts()
    list(texts.part_done(0, "r1", 0, "raw", "reasoning"))
    (said,) = texts.part_done(0, "r1", texts.summary(0), "short ", "reasoning")
    assert said == completed("r1", channel="reasoning", text="short raw")


def test_a_reasoning_item_whose_parts_never_came_is_told_whole() -> None:
    raw = SimpleNamespace(id="r1", summary=[{"text": "A"}, {"text": "B"}], content=None)
    assert list(Texts().reasoning_item_done(0, raw)) == [completed("r1", channel="reasoning", text="A\n\nB")]
    texts = Texts()
    texts.delta(0, "r1", "hidden thought", "reasoning")
    assert list(texts.reasoning_item_done(0, SimpleNamespace(id="r1", summary=[], content=None))) == []


def test_a_transcript_is_a_channel_of_its_own_and_ends_with_what_was_said() -> None:
    texts = Texts()
    left = [texts.delta(-1, None, piece, "transcript") for piece in ("Hel", "lo")]
    left += texts.said(-1, "transcript")
    assert {payload["channel"] for _, payload in left} == {"transcript"}
    assert left[-1] == completed("msg-1", channel="transcript")
    assert list(Texts().said(-1, "transcript")) == []


URL = {"type": "url_citation", "title": "Weather", "url": "https://example.org/w", "start_index": 0, "end_index": 1}
FILE = {"type": "file_citation", "filename": "terms.pdf", "file_id": "f", "index": 0}
IN_CONTAINER = {"type": "container_file_citation", "filename": "plot.png", "file_id": "f", "container_id": "c"}
PATH = {"type": "file_path", "file_id": "f", "index": 0}


@pytest.mark.parametrize(
    ("annotation", "said"),
    [
        (URL, {"kind": "url_citation", "title": "Weather", "url": "https://example.org/w"}),
        (FILE, {"kind": "file_citation", "title": "terms.pdf"}),
        (IN_CONTAINER, {"kind": "container_file_citation", "title": "plot.png"}),
        (PATH, {"kind": "file_path"}),
        ({**URL, "url": "javascript:alert(1)"}, {"kind": "url_citation", "title": "Weather"}),
        ({**URL, "title": "\ud800" * 600, "url": 7}, {"kind": "url_citation", "title": "\ufffd" * 512}),
        ({"type": "brand_new"}, {"kind": "brand_new"}),
    ],
)
def test_a_citation_of_every_kind_is_said_once(annotation: Any, said: dict[str, str]) -> None:
    texts = Texts()
    answer(texts, "It rains.")
    given = annotation if "title" in annotation else SimpleNamespace(**annotation)
    left = list(texts.cited(0, "m1", 0, 0, given))
    content = [SimpleNamespace(type="output_text", text="It rains.", annotations=[annotation])]
    left += texts.item_done(0, SimpleNamespace(id="m1", content=content))
    assert [draft for draft in left if draft[0] == "source.cited"] == [("source.cited", {"item_id": "m1", **said})]


def test_citations_that_only_the_finished_item_holds_are_said_by_it() -> None:
    content = [SimpleNamespace(type="output_text", text="a", annotations=[URL, FILE])]
    left = list(Texts().item_done(0, SimpleNamespace(id="m1", content=content)))
    assert [payload["kind"] for type_, payload in left if type_ == "source.cited"] == ["url_citation", "file_citation"]


@pytest.mark.parametrize("annotation", [None, {}, SimpleNamespace(), {"type": None}, "text"])
def test_an_annotation_of_any_form_is_taken(annotation: Any) -> None:
    assert list(Texts().cited(0, "m1", 0, 0, annotation)) == []


# Characters.


def test_lone_surrogates_become_the_replacement_character_once() -> None:
    texts = Texts()
    assert answer(texts, "a\ud800b")[0][1]["text"] == "a\ufffdb"
    assert texts.delta(1, "r", "\udfff", "refusal")[1]["text"] == "\ufffd"
    assert list(texts.part_done(0, "m1", 0, "a\ud800b", "answer")) == [completed()]


def test_a_character_split_over_two_deltas_is_mended_by_the_final_text() -> None:
    texts = Texts()
    left = answer(texts, "\ud83d") + answer(texts, "\ude00")
    assert all("\ud800" > draft[1]["text"] or draft[1]["text"] == "\ufffd" for draft in left)
    assert list(texts.part_done(0, "m1", 0, "\U0001f600", "answer")) == [completed(text="\U0001f600")]


@given(st.text(alphabet=st.characters()))
def test_valid_text_can_be_encoded_and_is_valid_already(text: str) -> None:
    once = valid(text)
    once.encode()
    assert valid(once) == once
    if not any("\ud800" <= letter <= "\udfff" for letter in text):
        assert once == text


def test_halves_that_meet_become_their_character() -> None:
    assert valid("\ud83d\ude00") == "\U0001f600"
    assert valid("\ude00\ud83d") == "\ufffd\ufffd"


@pytest.mark.parametrize(
    "raw", [None, SimpleNamespace(), SimpleNamespace(content=None), SimpleNamespace(content=[None, 3])]
)
def test_a_message_of_any_form_has_texts(raw: Any) -> None:
    assert message_texts(raw) == {"answer": "", "refusal": ""}
