"""``effects`` and ``resolve``: what was recorded is listed without its content, and a person's word settles it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from agents_progress.effects.entry import Begun, Happened, Stored, Uncertain
from agents_progress.effects.ledger import Ledger
from agents_progress.effects.ledger.sqlite import SQLiteLedger
from agents_progress.plaintext import cell_count
from agents_progress.testing.ledger_contract import begun, effect
from tests.commands import Command, refused
from tests.test_postgres_journal import Store, server, store  # noqa: F401 - fixtures

PAID = replace(effect("order-1", task_id="t1", run_id="r1", call_id="c1"), entry="a" * 64, name="refund", scope="shop")
OPEN = replace(effect("order-2", task_id="t2", run_id="r2"), entry="ab" * 32, name="refund", scope="shop")
WORKING = replace(effect("order-3"), entry="c" * 64, name="send", scope="")


def fill(ledger: Ledger) -> None:
    ledger.succeed(begun(ledger, PAID), '{"is":"secret"}')
    ledger.give_up(begun(ledger, OPEN))
    begun(ledger, WORKING)


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SQLiteLedger]:
    ledger = SQLiteLedger(tmp_path / "e.db")
    fill(ledger)
    yield ledger
    ledger.close()


HERE = ("--journal", "sqlite:///e.db")


def listed(command: Command, *more: str) -> list[str]:
    return [row["key"] for row in json.loads(command("effects", *HERE, "--json", *more).out)]


# Listing.


def test_effects_are_listed_with_what_tells_them_apart_and_nothing_of_their_content(
    command: Command, ledger: Ledger
) -> None:
    printed = command("effects", *HERE)
    assert (printed.code, printed.err) == (0, "")
    heading, *rows = [re.split(r"  +", row) for row in printed.rows]
    assert heading == ["entry", "age", "state", "run_id", "tool", "key", "scope", "settled_by"]
    assert [row[:1] + row[2:] for row in rows] == [
        ["c" * 16, "running", "-", "send", "order-3", "-", "-"],
        ["ab" * 8, "uncertain", "r2", "refund", "order-2", "shop", "-"],
        ["a" * 16, "succeeded", "r1", "refund", "order-1", "shop", "body"],
    ]
    assert all(re.fullmatch(r"\d+ (s|min)", row[1]) for row in rows)
    assert "secret" not in printed.out


def test_effects_are_listed_as_json_with_times_and_whole_ids(command: Command, ledger: Ledger) -> None:
    *_, paid = json.loads(command("effects", *HERE, "--json").out)
    moments = [paid.pop(name) for name in ("began_at", "settled_at")]
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", moment) for moment in moments)
    assert moments == sorted(moments)
    assert paid == {
        "entry": "a" * 64,
        "state": "succeeded",
        "tool": "refund",
        "key": "order-1",
        "scope": "shop",
        "run_id": "r1",
        "task_id": "t1",
        "call_id": "c1",
        "generation": 1,
        "settled_by": "body",
    }


def test_effects_are_listed_by_state_task_and_number(command: Command, ledger: Ledger) -> None:
    assert listed(command) == ["order-3", "order-2", "order-1"]
    assert listed(command, "--state", "uncertain") == ["order-2"]
    assert listed(command, "--task", "t1") == ["order-1"]
    assert listed(command, "--limit", "1") == ["order-3"]
    assert command("effects", *HERE, "--task", "t9").out == "no such effects are recorded in sqlite:///e.db\n"
    assert command("effects", "--state", "gone").code == 2


def test_a_place_without_effects_is_left_as_it_is(command: Command, tmp_path: Path) -> None:
    assert command("effects", *HERE) == (0, "no effects are recorded in sqlite:///e.db\n", "")
    assert command("effects", *HERE, "--json").out == "[]\n"
    refused(command("resolve", "a" * 8, "--happened", "--by", "ada", *HERE), "no effect begins with aaaaaaaa")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_keeps_no_effects_says_so(command: Command) -> None:
    refused(command("effects", "--journal", "redis://127.0.0.1:1/0"), "cannot be recorded in a RedisJournal")


def test_what_others_wrote_is_shown_as_text_and_cut_to_its_column(command: Command, tmp_path: Path) -> None:
    ledger = SQLiteLedger(tmp_path / "e.db")
    begun(ledger, replace(OPEN, key="\x1b[2J\u202e" + "元" * 90, name="a\nb", scope="\ud800"))
    ledger.close()
    printed = command("effects", *HERE)
    assert len(printed.rows) == 2
    assert not set("\x1b\u202e\ud800") & set(printed.out)
    assert all(cell_count(row) < 160 for row in printed.rows)


def test_effects_of_a_database_are_listed_and_resolved(command: Command, store: Store) -> None:  # noqa: F811
    from agents_progress.effects.ledger.postgres import PostgresLedger

    assert command("effects", "--journal", store.url).out.startswith("no effects are recorded in postgresql://")
    ledger = PostgresLedger(store.url)
    assert not ledger.exists()
    fill(ledger)
    assert "uncertain" in command("effects", "--journal", store.url).rows[2]
    assert command("resolve", "abababab", "--happened", "--by", "ada", "--journal", store.url).code == 0
    assert ledger.begin(OPEN) == Stored('{"is":null}')
    ledger.close()


# Resolving.


def test_an_effect_that_happened_gives_the_output_that_was_said(command: Command, ledger: Ledger) -> None:
    printed = command("resolve", "abab" * 2, "--happened", "--output", '{"paid": 5}', "--by", "ada", *HERE)
    assert printed == (0, f"{'ab' * 8} refund order-2: happened; further calls get its output\n", "")
    assert ledger.begin(OPEN) == Stored('{"is":{"paid":5}}')
    entry, _ = ledger.look(OPEN.entry)
    assert entry is not None
    assert entry.settled_by == "ada"


def test_an_effect_that_did_not_happen_may_be_had_by_the_next_call(command: Command, ledger: Ledger) -> None:
    printed = command("resolve", OPEN.entry.upper(), "--did-not-happen", "--by", "ada", *HERE)
    assert printed.out == f"{'ab' * 8} refund order-2: did not happen; the next call runs it\n"
    answer = ledger.begin(OPEN)
    assert isinstance(answer, Begun)
    assert answer.hold.generation == 2


def test_an_erased_effect_is_resolved_by_all_of_its_digits(command: Command, ledger: Ledger) -> None:
    ledger.erase(task_id="t2")
    refused(command("resolve", "abab" * 2, "--happened", "--by", "ada", *HERE), "no effect begins with")
    printed = command("resolve", OPEN.entry, "--happened", "--by", "ada", *HERE)
    assert printed.out == f"{'ab' * 8}: happened; further calls get its output\n"
    assert ledger.begin(OPEN) == Stored(None)


REFUSED = {
    "nothing said": (["abababab", "--by", "ada"], "required"),
    "both said": (["abababab", "--by", "ada", "--happened", "--did-not-happen"], "not allowed with"),
    "by nobody": (["abababab", "--happened"], "required: --by"),
    "by a blank": (["abababab", "--happened", "--by", " "], "say who found it out"),
    "too few digits": (["abababa", "--happened", "--by", "ada"], "at least the first 8"),
    "no digits": (["ababab%_", "--happened", "--by", "ada"], "at least the first 8"),
    "another one": (["abababac", "--happened", "--by", "ada"], "no effect begins with abababac"),
    "settled": (["aaaaaaaa", "--did-not-happen", "--by", "ada"], "is succeeded; only an uncertain effect"),
    "alive": (["cccccccc", "--did-not-happen", "--by", "ada"], "is running; only an uncertain effect"),
    "an output of nothing": (["abababab", "--did-not-happen", "--output", "1", "--by", "ada"], "has no output"),
    "no JSON": (["abababab", "--happened", "--output", "paid", "--by", "ada"], "--output takes JSON"),
    "no number": (["abababab", "--happened", "--output", "NaN", "--by", "ada"], "--output takes JSON"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_does_not_fit_is_refused_and_changes_nothing(command: Command, ledger: Ledger, case: str) -> None:
    arguments, words = REFUSED[case]
    printed = command("resolve", *arguments, *HERE)
    assert (printed.code, printed.out) == (2, "")
    assert words in printed.err
    assert ledger.begin(OPEN) == Uncertain(1)
    assert ledger.begin(PAID) == Stored('{"is":"secret"}')


def test_digits_that_two_effects_share_name_neither(command: Command, ledger: Ledger) -> None:
    ledger.give_up(begun(ledger, replace(OPEN, entry="ab" * 31 + "cd")))
    refused(command("resolve", "abab" * 2, "--happened", "--by", "ada", *HERE), "more than one effect begins")
    assert command("resolve", OPEN.entry, "--happened", "--by", "ada", *HERE).code == 0


def test_an_effect_that_somebody_else_settled_meanwhile_stays_as_they_said(
    command: Command, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = SQLiteLedger.look

    def look(self: SQLiteLedger, entry: str, **more: object) -> object:
        found = real(self, entry)
        monkeypatch.undo()
        assert ledger.resolve(OPEN.entry, 1, Happened(), "bob")
        return found

    monkeypatch.setattr(SQLiteLedger, "look", look)
    printed = command("resolve", OPEN.entry, "--did-not-happen", "--by", "ada", *HERE)
    refused(printed, "was settled by somebody else just now")
    entry, _ = ledger.look(OPEN.entry)
    assert entry is not None
    assert (entry.settled, entry.settled_by) == ("happened", "bob")
