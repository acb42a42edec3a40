"""What bridges share: the table of what each protocol shows, the ids of questions, and what a function is given."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, RunResultStreaming
from hypothesis import given
from hypothesis import strategies as st

from agents_progress import progress
from agents_progress.bridges.base import CUTS, Question, json_of, message_parameter, question_id, question_of
from agents_progress.bridges.table import AG_UI, CANNOT, NOTES, TABLE, VERCEL, markdown
from agents_progress.bridges.vercel import Vercel
from agents_progress.errors import UsageError
from agents_progress.messages import LANGUAGES
from agents_progress.payloads import PAYLOADS
from agents_progress.rows import Interaction

DOCS = Path(__file__).parent.parent / "docs" / "bridges.md"


def test_the_table_has_one_row_for_every_type_of_ours_in_the_protocols_order() -> None:
    assert [row.type for row in TABLE] == [*PAYLOADS, NOTES]


@pytest.mark.parametrize("column", [AG_UI, VERCEL, CANNOT])
def test_every_column_speaks_of_every_type_and_of_nothing_else(column: dict[str, str]) -> None:
    assert set(column) == {row.type for row in TABLE}


def test_what_a_protocol_does_not_show_is_explained() -> None:
    assert [row.type for row in TABLE if not (row.ag_ui and row.vercel) and not row.cannot] == []


def test_the_docs_hold_the_table_as_it_is() -> None:
    assert markdown() in DOCS.read_text(encoding="utf-8")


def test_why_a_stream_is_cut_is_worded_in_every_language() -> None:
    assert {code: set(words) for code, words in CUTS.items()} == {code: set(LANGUAGES) for code in CUTS}


# The id of a question.

IDS = st.from_regex(r"[A-Za-z0-9._-]{1,64}", fullmatch=True)


@given(IDS, IDS, st.none() | st.from_regex(r"[0-9a-f]{64}", fullmatch=True))
def test_an_answer_repeats_what_its_question_was_about(run_id: str, name: str, digest: str | None) -> None:
    question = Interaction(name, "c1", "pay", "Pay?", digest=digest)
    assert question_of(question_id(run_id, question)) == Question(run_id, name, digest)


@pytest.mark.parametrize("text", ["", "/", "//", "r1", "r1/ask-1", "r1//", "r 1/ask-1/", "r1/ask\n1/", "/ask-1/"])
def test_an_id_that_was_not_made_here_is_about_nothing(text: str) -> None:
    assert question_of(text) is None


# Arguments.


@pytest.mark.parametrize("text", ['{"n": 1e999}', '{"n": [-1e999]}', '{"n": 9007199254740993}', f"[-{'9' * 5000}]"])
def test_arguments_with_a_number_that_a_front_end_would_show_otherwise_stay_the_text_that_they_are(text: str) -> None:
    assert json_of(text) is text
    assert json.loads(Vercel(sole, major=7).frame({"input": json_of(text)})[6:]) == {"input": text}


@pytest.mark.parametrize("text", ["NaN", "[Infinity]", "{", "free", '"\\ud800"', "[" * 999 + "]" * 999])
def test_arguments_that_are_no_json_stay_the_text_that_they_are(text: str) -> None:
    assert json_of(text) is text


@pytest.mark.parametrize("value", [None, {"n": 2**53 - 1}, [-(2**53) + 1, 0.1, 1e300], "a", {"a": {"b": [True]}}])
def test_arguments_are_the_values_that_they_say(value: Any) -> None:
    assert json_of(json.dumps(value)) == value


# What a function is given.


def _run(*_: Any) -> RunResultStreaming:
    return Runner.run_streamed(Agent("A"), "?")


@progress
def sole(question: str, fee: float = 0.0) -> RunResultStreaming:
    return _run(question, fee)


@progress
def called_message(message: str = "", fee: float = 0.0) -> RunResultStreaming:
    return _run(message, fee)


@progress
def needs_two(question: str, fee: float) -> RunResultStreaming:
    return _run(question, fee)


@progress
def needs_another(message: str, fee: float) -> RunResultStreaming:
    return _run(message, fee)


@progress
def needs_nothing(fee: float = 0.0) -> RunResultStreaming:
    return _run(fee)


@pytest.mark.parametrize(("function", "name"), [(sole, "question"), (called_message, "message")])
def test_the_message_of_a_user_goes_to_one_parameter(function: Any, name: str) -> None:
    assert message_parameter(function) == name


@pytest.mark.parametrize("function", [needs_two, needs_another, needs_nothing])
def test_a_function_that_one_message_does_not_serve_is_refused_with_what_to_do(function: Any) -> None:
    with pytest.raises(UsageError, match=f"{function.__name__} requires .*arguments="):
        message_parameter(function)
