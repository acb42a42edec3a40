"""PostgreSQL through PgBouncer in transaction mode: the whole contract, and what a pooler would break."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator

import pytest
from bars.places import Place, Places, command, stores
from bars.servers import Missing

from agents_progress.journal import Journal
from agents_progress.testing.contract.logs import followed, ticks
from agents_progress.testing.journal_contract import JournalContract


@pytest.fixture(scope="module")
def places() -> Iterator[Places]:
    try:
        with stores("pgbouncer") as places:
            yield places
    except Missing as missing:
        pytest.skip(str(missing))


@pytest.fixture
def place(places: Places) -> Place:
    return places()


@pytest.fixture
async def journal(place: Place) -> AsyncIterator[Journal]:
    journal = place.journal()
    yield journal
    await journal.close()


@pytest.fixture
async def reopened(place: Place) -> AsyncIterator[Journal]:
    journal = place.journal()
    yield journal
    await journal.close()


class TestThroughPgBouncer(JournalContract):
    pass


async def test_no_setting_of_ours_reaches_another_client_of_the_pooler(place: Place, journal: Journal) -> None:
    await journal.append(ticks("r", 1, 3))
    await journal.expire()
    names = "'synchronous_commit', 'lock_timeout', 'idle_in_transaction_session_timeout'"
    query = f"SELECT name FROM pg_settings WHERE setting <> reset_val AND name IN ({names})"
    assert command(place.url, query) == []
    assert command(place.url, f"SELECT count(*) FROM pg_settings WHERE name IN ({names})") == [(3,)]


async def test_many_tails_and_writers_share_fewer_server_connections_than_there_are_of_them(
    place: Place, journal: Journal, reopened: Journal
) -> None:
    run_ids = [f"r{number}" for number in range(20)]
    tails = [asyncio.create_task(followed(reopened.tail(run_id), 40)) for run_id in run_ids]

    async def write(run_id: str) -> None:
        for seq in range(1, 41):
            await journal.append(ticks(run_id, seq, seq))

    await asyncio.gather(*(write(run_id) for run_id in run_ids))
    assert [len(await tail) for tail in tails] == [40] * 20
