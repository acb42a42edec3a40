"""What the server tells of tools that act once: to whoever may read the run, and to nobody else."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import by_token, caller, code, done, listening, write

from agents_progress.client import Client
from agents_progress.effects.ledger import Ledger
from agents_progress.effects.places import ledger_beside
from agents_progress.errors import JournalUnavailable, Refused, UsageError
from agents_progress.journal import Journal, MemoryJournal, open_journal
from agents_progress.server import runs_app
from agents_progress.testing.ledger_contract import begun, effect
from tests.test_postgres_journal import Store, server, store  # noqa: F401 - fixtures

MINE = effect("order-1", owner="ada", tenant="north", run_id="r1", task_id="r1", call_id="c1")
PATH = f"/tool-executions/{MINE.entry}"
UNKNOWN = f"/tool-executions/{'0' * 64}"


@pytest.fixture(params=["sqlite", "postgres"])
async def journal(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Journal]:
    postgres = request.param == "postgres"
    url = request.getfixturevalue("store").url if postgres else f"sqlite:///{tmp_path}/runs.db"
    journal = open_journal(url)
    yield journal
    ledger_beside(journal).close()
    await journal.close()


async def recorded(journal: Journal) -> Ledger:
    await write(journal, done("r1"))
    ledger = ledger_beside(journal)
    ledger.succeed(begun(ledger, MINE), '{"is":"secret"}')
    return ledger


async def asked(journal: Journal, name: str | None, path: str, authorize: Any = by_token) -> httpx.Response:
    async with caller(runs_app(journal, authorize), name) as client:
        return await client.get(path)


async def test_an_effect_is_told_without_what_the_tool_was_given_or_returned(journal: Journal) -> None:
    await recorded(journal)
    answer = await asked(journal, "ada", PATH)
    found = answer.json()
    assert found.pop("began_at") <= found.pop("settled_at")
    assert found == {
        "entry": MINE.entry,
        "state": "succeeded",
        "tool": "pay",
        "key": "order-1",
        "run_id": "r1",
        "task_id": "r1",
        "call_id": "c1",
        "generation": 1,
        "settled_by": "body",
    }
    assert "secret" not in answer.text
    assert MINE.arguments not in answer.text


async def test_an_uncertain_effect_is_told_as_such(journal: Journal) -> None:
    ledger = await recorded(journal)
    other = replace(MINE, entry="b" * 64)
    ledger.give_up(begun(ledger, other))
    found = (await asked(journal, "ada", f"/tool-executions/{'b' * 64}")).json()
    assert (found["state"], found["settled_at"], found["settled_by"]) == ("uncertain", None, None)


async def test_the_effect_of_another_is_an_unknown_one_byte_for_byte(journal: Journal) -> None:
    await recorded(journal)
    for name in ("bob", "eve"):
        foreign, unknown = await asked(journal, name, PATH), await asked(journal, name, UNKNOWN)
        assert (foreign.status_code, code(foreign)) == (404, "not_found")
        assert (foreign.content, foreign.headers) == (unknown.content, unknown.headers)
    assert (await asked(journal, "ops", PATH)).status_code == 200


async def test_whoever_may_not_read_the_run_may_not_read_its_effects(journal: Journal) -> None:
    await recorded(journal)

    def authorize(request: Any, action: str, run: Any) -> Any:
        assert action == "read"
        return None if run is not None else by_token(request, "read", run)

    hidden, unknown = await asked(journal, "ada", PATH, authorize), await asked(journal, "ada", UNKNOWN, authorize)
    assert (hidden.status_code, hidden.content) == (404, unknown.content)


async def test_an_effect_of_a_run_that_is_not_here_is_not_told(journal: Journal) -> None:
    ledger = ledger_beside(journal)
    begun(ledger, MINE)
    assert (await asked(journal, "ops", PATH)).status_code == 404


async def test_an_effect_without_a_run_is_told_to_an_operator_alone(journal: Journal) -> None:
    ledger = await recorded(journal)
    begun(ledger, replace(MINE, entry="c" * 64, owner=None, tenant=None, run_id=None))
    path = f"/tool-executions/{'c' * 64}"
    assert (await asked(journal, "ops", path)).json()["state"] == "running"
    assert (await asked(journal, "ada", path)).status_code == 404


async def test_an_erased_effect_is_an_unknown_one_for_an_operator_too(journal: Journal) -> None:
    (await recorded(journal)).erase(run_id="r1")
    assert (await asked(journal, "ops", PATH)).content == (await asked(journal, "ops", UNKNOWN)).content


async def test_asking_makes_no_ledger_where_there_is_none(journal: Journal) -> None:
    await write(journal, done("r1"))
    assert code(await asked(journal, "ops", UNKNOWN)) == "not_found"
    assert not ledger_beside(journal).exists()


async def test_a_journal_without_a_ledger_knows_no_effect() -> None:
    assert code(await asked(MemoryJournal(), "ada", PATH)) == "not_found"


@pytest.mark.parametrize("key", ["a", "A" * 64, "a" * 63, "a" * 65, "g" * 64, "%00" * 64, "٣" * 64])
async def test_what_is_no_key_of_an_effect_is_an_unknown_one(key: str, tmp_path: Path) -> None:
    journal = open_journal(f"sqlite:///{tmp_path}/runs.db")
    await recorded(journal)
    assert code(await asked(journal, "ops", f"/tool-executions/{key}")) == "not_found"
    ledger_beside(journal).close()
    await journal.close()


async def test_a_ledger_that_is_away_is_said_to_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(*arguments: Any, **more: Any) -> Any:
        raise JournalUnavailable("secret")

    journal = open_journal(f"sqlite:///{tmp_path}/runs.db")
    ledger = await recorded(journal)
    monkeypatch.setattr(ledger, "look", away)
    answer = await asked(journal, "ada", PATH)
    assert (answer.status_code, code(answer)) == (503, "unavailable")
    assert "secret" not in answer.text
    ledger.close()
    await journal.close()


async def test_nothing_can_be_done_to_an_effect_over_http(journal: Journal) -> None:
    async with caller(runs_app(journal, by_token)) as ada:
        answer = await ada.post(PATH, json={})
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET")
        assert code(await ada.get(f"{PATH}?output=1")) == "bad_query"


# The client.


async def test_the_client_asks_for_an_effect_by_its_entry(journal: Journal) -> None:
    await recorded(journal)
    async with listening(runs_app(journal, by_token)) as url:
        async with Client(url, token="ada") as ada:
            found = await ada.effect(MINE.entry)
            assert (found["entry"], found["state"], found["settled_by"]) == (MINE.entry, "succeeded", "body")
            with pytest.raises(UsageError, match="64 hex digits"):
                await ada.effect("../runs")
        async with Client(url, token="bob") as bob:
            with pytest.raises(Refused, match="404 not_found"):
                await bob.effect(MINE.entry)
