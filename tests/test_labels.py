"""The words around a status, as tables."""

from __future__ import annotations

import pytest

from agents_progress.headings import HEADINGS
from agents_progress.labels import LABELS, REFUSAL_LABELS, age, refusal
from agents_progress.messages import Language
from agents_progress.reasons import ANSWERS_NOT_USED
from agents_progress.server.refusals import FOR_NOW, REFUSALS

ERASED = "erased"
"""The code of a feed's last word, which is no answer."""


NO_ANSWERS = {"bad_cursor", "cursor_ahead", "bad_key", "busy", "key_reused", "start_failed"}
"""Refusals of a feed and of a start, which a page does not ask for like this."""
BRIDGES = {"not_resumed", "not_shown", "pruned"}
"""Refusals of a bridge, whose front ends are not ours."""


def test_every_refusal_of_the_server_that_an_answer_can_get_has_a_sentence_of_its_own() -> None:
    assert set(REFUSAL_LABELS) == (set(REFUSALS) - NO_ANSWERS - BRIDGES) | {ERASED}
    assert set(ANSWERS_NOT_USED) <= set(REFUSAL_LABELS)
    assert set(REFUSAL_LABELS.values()) <= set(LABELS) - {"refusal_other"}


def test_every_answer_that_is_not_used_is_refused_by_the_server_under_the_same_code() -> None:
    assert set(ANSWERS_NOT_USED) <= set(REFUSALS)


def test_what_may_be_asked_again_later_is_called_so() -> None:
    for_now = {code for code, name in REFUSAL_LABELS.items() if name == "refusal_for_now"}
    assert FOR_NOW - BRIDGES <= for_now
    assert for_now - FOR_NOW == {"internal", "slow_body"}


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_refusal_names_the_arguments_that_it_is_about(language: Language) -> None:
    assert refusal("arguments_missing", language, {"names": ["to", "x"]}).endswith("to, x")
    assert "boom" in refusal("boom", language, {})


def test_no_label_claims_that_a_run_is_done() -> None:
    words = ("done", "complete", "success", "finished", "完成", "成功")
    texts = [text.lower() for by_language in [*LABELS.values(), *HEADINGS.values()] for text in by_language.values()]
    assert [text for text in texts if any(word in text for word in words)] == []


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-4, "0 s"), (0.9, "0 s"), (59.9, "59 s"), (60, "1 min"), (3599, "59 min"), (7200, "2 h"), (86399, "23 h")],
)
def test_an_age_is_said_in_whole_units_of_the_longest_that_fits(seconds: float, said: str) -> None:
    assert age(seconds, "en") == said
    assert age(400 * 86400, "zh") == "400 天"


def test_a_report_gives_no_name_of_its_own_to_what_has_one() -> None:
    assert set(HEADINGS) & set(LABELS) == set()
