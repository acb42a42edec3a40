"""What an answer may carry: the table of kinds, and everything that is refused of it."""

from __future__ import annotations

import re
from typing import Any, get_args

import pytest

from agents_progress import Disclosure, progress
from agents_progress.answers import MOST_ARGUMENTS, MOST_TEXT, TEXTS, Kind, Reply, action_digest, options_of, refuse
from agents_progress.errors import AnswerNotUsed, UsageError
from agents_progress.reasons import ANSWERS_NOT_USED
from agents_progress.rows import Interaction

SHOWN = '{"slots": ["mon", "tue", 3], "note": "x"}'
TAKES = {"slots": True, "note": False}


def asked(kind: str = "approval", **fields: Any) -> Interaction:
    fields = {"details": SHOWN, "takes": TAKES, "options_in": "slots" if kind == "choice" else None} | fields
    return Interaction("ask-1", "c1", "pick", "Pick", kind, **fields)


YES, NO = {"approved": True}, {"approved": False}
FINE = {"slots": ["mon"]}

REFUSED: list[tuple[str, Interaction, dict[str, Any]]] = [
    # A text.
    ("answer_unexpected", asked("approval"), YES | {"text": "well"}),
    ("answer_unexpected", asked("a kind of tomorrow"), YES | {"text": "well"}),
    ("answer_missing", asked("clarification"), YES),
    ("answer_missing", asked("clarification"), YES | {"text": " \n"}),
    ("answer_missing", asked("choice"), YES),
    ("not_an_option", asked("choice"), YES | {"text": "wed"}),
    ("not_an_option", asked("choice"), YES | {"text": ""}),
    ("not_an_option", asked("choice", details=None), YES | {"text": "mon"}),
    ("not_an_option", asked("choice", details="mon"), YES | {"text": "mon"}),
    ("not_an_option", asked("choice", details='{"slots": "mon"}'), YES | {"text": "mon"}),
    ("not_an_option", asked("choice", details="[]"), YES | {"text": "mon"}),
    ("not_an_option", asked("choice"), YES | {"text": "tue", "arguments": FINE}),
    ("answer_too_long", asked("handoff"), YES | {"text": "x" * (MOST_TEXT + 1)}),
    ("answer_too_long", asked(), NO | {"reason": "x" * (MOST_TEXT + 1)}),
    ("answer_unexpected", asked("clarification"), NO | {"text": "well"}),
    # Arguments.
    ("answer_unexpected", asked(), NO | {"arguments": FINE}),
    ("not_editable", asked(takes=None), YES | {"arguments": FINE}),
    ("arguments_not_object", asked(), YES | {"arguments": ["mon"]}),
    ("arguments_not_object", asked(), YES | {"arguments": {"slots": float("nan")}}),
    ("arguments_not_object", asked(), YES | {"arguments": {"slots": object()}}),
    ("arguments_not_object", asked(), YES | {"arguments": {"slots": "\ud800"}}),
    ("answer_too_long", asked(), YES | {"arguments": {"slots": "x" * MOST_ARGUMENTS}}),
    ("arguments_unknown", asked(), YES | {"arguments": {**FINE, "more": 1}}),
    ("arguments_missing", asked(), YES | {"arguments": {"note": "y"}}),
]


@pytest.mark.parametrize(("code", "question", "reply"), REFUSED)
def test_an_answer_that_carries_what_it_may_not_is_refused(
    code: str, question: Interaction, reply: dict[str, Any]
) -> None:
    with pytest.raises(AnswerNotUsed, match=re.escape(f"({code}); {ANSWERS_NOT_USED[code]}")) as refused:
        refuse(question, Reply(**reply))
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("question", "reply"),
    [
        (asked(), YES),
        (asked(), NO | {"reason": "x" * MOST_TEXT}),
        (asked(takes=None), YES),
        (asked(), YES | {"arguments": FINE}),
        (asked(), YES | {"arguments": {**FINE, "note": None}}),
        (asked("clarification", details=None), YES | {"text": "x" * MOST_TEXT}),
        (asked("clarification"), NO),
        (asked("choice"), YES | {"text": "mon"}),
        (asked("choice"), YES | {"text": "3"}),
        (asked("choice"), YES | {"text": "wed", "arguments": {"slots": ["wed"]}}),
        (asked("choice"), NO | {"reason": "none of them"}),
        (asked("recovery"), YES),
        (asked("recovery"), YES | {"text": "retry"}),
        (asked("handoff"), YES | {"text": "ask Bo"}),
    ],
)
def test_an_answer_that_carries_what_it_may_is_taken(question: Interaction, reply: dict[str, Any]) -> None:
    refuse(question, Reply(**reply))


def test_every_kind_says_what_becomes_of_a_text_and_no_other_is_named() -> None:
    assert set(TEXTS) == set(get_args(Kind))
    assert {code for code, _, _ in REFUSED} < set(ANSWERS_NOT_USED)


def test_the_options_of_a_choice_are_read_from_what_was_shown() -> None:
    assert options_of(SHOWN, "slots") == ("mon", "tue", "3")
    assert options_of('{"slots": [{"day": "mon"}, true, 1.0, 4]}', "slots") == ("4",), "no other thing has one name"


def test_what_an_answer_carries_is_in_no_repr() -> None:
    assert "SECRET" not in repr(Reply(True, "mei", {"to": "SECRET"}, "SECRET", "SECRET"))


def test_a_choice_without_options_or_whose_options_nobody_sees_is_refused_where_it_is_written() -> None:
    with pytest.raises(UsageError, match="pick asks for a choice; name the argument that lists the options"):
        progress(approval_kinds={"pick": "choice"})
    with pytest.raises(UsageError, match="nobody is shown the options of pick"):
        progress(choices={"pick": "slots"})
    progress(choices={"pick": "slots"}, disclosure=Disclosure(approval_details=["pick"]))


@pytest.mark.parametrize(
    "arguments", ['{"a": "\\ud800"}', "[" * 100_000, '{"a": ' * 5000 + "1" + "}" * 5000, "1" * 5000, "{"]
)
def test_what_is_no_json_that_can_be_told_has_a_digest_of_its_own(arguments: str) -> None:
    digest = action_digest("pay", arguments)
    assert digest == action_digest("pay", arguments)
    assert digest not in (action_digest("pay", f"{arguments} "), action_digest("give", arguments))
