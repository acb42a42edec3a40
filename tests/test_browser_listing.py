"""What the list of runs says of a row, and where a hash of the page leads: in a browser, from what the server gives."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agents_progress.glance import cost_text
from agents_progress.labels import age, label
from agents_progress.messages import MESSAGES, Language
from agents_progress.prices import Cost
from tests.browser.node import driven, needs_node

pytestmark = needs_node

LANGUAGES: tuple[Language, ...] = ("en", "zh")
ROW: dict[str, Any] = {
    "run_id": "r1",
    "task_id": "r1",
    "title": "Refund",
    "status": "running",
    "message": "Working; not finished yet",
    "seq": 4,
    "started_at": "2026-10-07T08:00:00Z",
    "updated_at": "2026-10-07T08:02:00Z",
    "labels": {},
    "sealed": False,
    "last_event_age": 30.5,
    "continued_as": None,
    "activity": "Look up",
    "usage": {"total_tokens": 12345, "status": "reported"},
    "cost": {"amount": "0.0123", "currency": "USD", "at_least": False},
}


def texts(tmp_path: Path, *rows: dict[str, Any], language: str = "en", since_s: float = 0) -> list[dict[str, str]]:
    given = [{**ROW, **row} for row in rows]
    (found,) = driven("listing.mjs", [{"rows": given, "language": language, "since_s": since_s}], tmp_path)
    shown: list[dict[str, str]] = found
    return shown


PLACES: list[tuple[str, dict[str, Any]]] = [
    ("", {"query": {}}),
    ("#", {"query": {}}),
    ("#?", {"query": {}}),
    ("#?status=failed", {"query": {"status": "failed"}}),
    ("#?status=failed&before=r1&limit=200", {"query": {"status": "failed", "before": "r1", "limit": "200"}}),
    ("#?status=&before=", {"query": {}}),
    ("#?token=secret&status=done", {"query": {"status": "done"}}),
    ("#anything", {"query": {}}),
    ("#/run-1.2_A", {"run_id": "run-1.2_A"}),
    ("#/...", {"run_id": "..."}),
    *(
        (f"#/{text}", {"run_id": None})
        for text in ("", ".", "..", "a/b", "a?b", "%2e%2e", "a b", "流", "x" * 65, "r1/../r2", "r1\n")
    ),
]


def test_a_hash_leads_to_one_run_or_to_a_part_of_the_list_and_to_nothing_else(tmp_path: Path) -> None:
    found = driven("listing.mjs", [{"hash": hash_} for hash_, _ in PLACES], tmp_path)
    assert dict(zip((hash_ for hash_, _ in PLACES), found, strict=True)) == dict(PLACES)


@pytest.mark.parametrize(
    ("query", "changes", "hash_"),
    [
        ("", {}, "#"),
        ("status=done", {}, "#?status=done"),
        ("status=done&before=r1", {"before": None}, "#?status=done"),
        ("before=r1", {"before": None}, "#"),
        ("status=done", {"status": "", "before": "r2"}, "#?before=r2"),
    ],
)
def test_a_part_of_the_list_has_a_hash(tmp_path: Path, query: str, changes: dict[str, Any], hash_: str) -> None:
    assert driven("listing.mjs", [{"query": query, "changes": changes}], tmp_path) == [hash_]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("status", MESSAGES)
def test_a_row_says_its_status_as_python_does(tmp_path: Path, status: Any, language: Language) -> None:
    (row,) = texts(tmp_path, {"status": status, "message": "not this"}, language=language)
    assert (row["status"], row["sentence"]) == (status, MESSAGES[status][language])


def test_a_status_of_a_newer_server_is_none_that_is_known_and_stands_as_it_was_said(tmp_path: Path) -> None:
    for status in ("resting", "constructor", "__proto__"):
        (row,) = texts(tmp_path, {"status": status, "message": "Resting\x1b[2J"})
        assert (row["status"], row["sentence"]) == ("unknown", "Resting\\x1b[2J")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_row_says_how_old_the_run_is_and_since_when_it_is_silent(tmp_path: Path, language: Language) -> None:
    (row,) = texts(tmp_path, {}, language=language, since_s=40)
    assert row["age"] == label("ago", language, age=age(120 + 30.5 + 40, language))
    assert row["silent"] == label("silent", language, age=age(30.5 + 40, language))


def test_silence_of_a_run_that_is_over_says_nothing(tmp_path: Path) -> None:
    going_on = {"accepted", "running", "waiting", "cancelling", "checking"}
    shown = texts(tmp_path, *({"run_id": status, "status": status} for status in MESSAGES))
    assert {row["status"] for row in shown if row["silent"]} == going_on


@pytest.mark.parametrize(
    "row", [{"last_event_age": None}, {"started_at": "yesterday"}, {"updated_at": ""}], ids=lambda row: next(iter(row))
)
def test_an_age_that_nobody_knows_is_not_made_up(tmp_path: Path, row: dict[str, Any]) -> None:
    assert texts(tmp_path, row)[0]["age"] == "–"


def test_a_run_that_starts_after_its_last_event_by_a_wrong_clock_is_not_younger_than_its_silence(
    tmp_path: Path,
) -> None:
    assert texts(tmp_path, {"updated_at": "2026-10-07T07:00:00Z"})[0]["age"] == "30 s ago"


USAGE: list[tuple[Any, str, str]] = [
    ({"total_tokens": 12345, "status": "reported"}, "12,345", "12,345"),
    ({"total_tokens": 0, "status": "reported"}, "0", "0"),
    ({"total_tokens": 12345, "status": "partial"}, "at least 12,345", "至少 12,345"),
    ({"total_tokens": None, "status": "unavailable"}, "–", "–"),
    (None, "–", "–"),
]


@pytest.mark.parametrize(("usage", "en", "zh"), USAGE)
def test_tokens_are_exact_at_least_or_not_known(tmp_path: Path, usage: Any, en: str, zh: str) -> None:
    assert [texts(tmp_path, {"usage": usage}, language=language)[0]["tokens"] for language in LANGUAGES] == [en, zh]


AMOUNTS = ("0", "0.0123", "0.00001234", "0.99999", "1.5", "12345.67891", "123456789012345678901234567890.00001")


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_cost_is_said_as_python_says_it(tmp_path: Path, language: Language) -> None:
    costs = [Cost(amount=amount, currency="USD", at_least=least) for amount in AMOUNTS for least in (True, False)]
    rows = [{"run_id": f"r{number}", "cost": cost} for number, cost in enumerate(costs)]
    shown = [row["cost"] for row in texts(tmp_path, *rows, language=language)]
    assert shown == [cost_text(cost, language) for cost in costs]


def test_a_cost_that_is_not_known_or_makes_no_sense_is_not_made_up(tmp_path: Path) -> None:
    strange = {"amount": "much", "currency": "USD", "at_least": False}
    assert [row["cost"] for row in texts(tmp_path, {"cost": None}, {"run_id": "r2", "cost": strange})] == ["–", "–"]
    (odd,) = texts(tmp_path, {"cost": {**strange, "amount": "1", "currency": "<b>\u202e"}})
    assert odd["cost"] == "1.0000 <b>\\u202e"


def test_rows_of_a_server_that_knows_less_have_no_activity_tokens_or_cost(tmp_path: Path) -> None:
    less = {key: value for key, value in ROW.items() if key not in ("activity", "usage", "cost")}
    (found,) = driven("listing.mjs", [{"rows": [less], "language": "en", "since_s": 0}], tmp_path)
    assert [(row["activity"], row["tokens"], row["cost"]) for row in found] == [("–", "–", "–")]


def test_a_continued_run_leads_to_the_newest_and_is_left_out_where_that_is_listed(tmp_path: Path) -> None:
    first = {"run_id": "r1", "status": "waiting", "continued_as": "r1.3"}
    second = {"run_id": "r1.2", "status": "waiting", "continued_as": "r1.3"}
    (row,) = texts(tmp_path, {"run_id": "r1.3"}, second, first)
    assert (row["name"], row["run_id"]) == ("r1.3", "r1.3")
    (row,) = texts(tmp_path, first)
    assert (row["name"], row["run_id"], row["status"]) == ("r1", "r1.3", "continued")
    assert (row["sentence"], row["silent"]) == ("Continued as r1.3", "")


def test_foreign_texts_of_a_row_are_harmless(tmp_path: Path) -> None:
    (row,) = texts(tmp_path, {"title": "a\u202eb\nc", "activity": "d\x00e"})
    assert (row["title"], row["activity"]) == ("a\\u202eb\\nc", "d\\x00e")


def test_a_run_without_a_title_is_called_by_its_id(tmp_path: Path) -> None:
    assert [row["title"] for row in texts(tmp_path, {"title": None}, {"run_id": "r2", "title": ""})] == ["r1", "r2"]
