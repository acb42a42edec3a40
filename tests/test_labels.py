"""The words around a status, as tables."""

from __future__ import annotations

import pytest

from agents_progress.headings import HEADINGS
from agents_progress.labels import LABELS, REFUSAL_LABELS, age
from agents_progress.server.refusals import FOR_NOW, REFUSALS

ERASED = "erased"
"""The code of a feed's last word, which is no answer."""


def test_every_refusal_that_has_a_label_is_one_of_the_server() -> None:
    assert set(REFUSAL_LABELS) <= set(REFUSALS) | {ERASED}
    assert set(REFUSAL_LABELS.values()) <= set(LABELS)


def test_what_may_be_asked_again_later_is_called_so() -> None:
    for_now = {code for code, name in REFUSAL_LABELS.items() if name == "refusal_for_now"}
    assert FOR_NOW & set(REFUSAL_LABELS) <= for_now
    assert for_now - FOR_NOW == {"internal"}


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
