"""Nodes that stop in the middle of a transaction on PostgreSQL: what they have locked, others get within seconds."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, closing, contextmanager
from pathlib import Path

import pytest

from agents_progress.effects.entry import Begun
from agents_progress.errors import JournalUnavailable
from agents_progress.testing.contract.logs import started, whole
from agents_progress.testing.ledger_contract import effect
from tests.test_postgres_journal import Store, journal, server, store  # noqa: F401 - fixtures

psycopg = pytest.importorskip("psycopg", reason="the postgres extra is not installed")

from psycopg.conninfo import conninfo_to_dict, make_conninfo  # noqa: E402

from agents_progress.effects import postgres_link as effects_link  # noqa: E402
from agents_progress.effects.ledger.postgres import PostgresLedger  # noqa: E402
from agents_progress.journal import postgres_link  # noqa: E402
from agents_progress.journal.postgres import PostgresJournal  # noqa: E402
from agents_progress.journal.postgres_address import BEGIN  # noqa: E402

ROOT = Path(__file__).parent.parent
FAST = BEGIN.replace("'15s'", "'3s'").replace("'10s'", "'1s'")
"""As a transaction begins, ten times as fast."""

NODE = """
import asyncio, os, signal, sys, time
import psycopg
from agents_progress.errors import JournalError
from agents_progress.journal import postgres_link, postgres_write
from agents_progress.journal.postgres import PostgresJournal
from agents_progress.testing.contract.logs import started, ticks

url, where, postgres_link.BEGIN = sys.argv[1:4]
write, store = psycopg.AsyncCopy.write, postgres_write.store

def stop():
    psycopg.AsyncCopy.write, postgres_write.store = write, store
    os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(0.1)  # another thread of the process may be the first to stop

async def halfway(copy, rows):
    await write(copy, rows[: len(rows) // 2])
    stop()
    await write(copy, rows[len(rows) // 2 :])

async def before(*given):
    stop()
    await store(*given)

async def main():
    journal = PostgresJournal(url)
    lease, first = None, 1
    if "owner" in sys.argv:
        lease, first = await journal.lease("r", 1.0), 2
        await journal.append([started("r")], lease=lease)
    if where == "in its COPY":
        psycopg.AsyncCopy.write = halfway
    else:
        postgres_write.store = before
    for _ in range(2):
        try:
            await journal.append(ticks("r", first, 2000), lease=lease, claim=first == 1)
            print("stored")
        except JournalError as error:
            print(type(error).__name__)
    await journal.close()

asyncio.run(main())
"""
PLACES = pytest.mark.parametrize("where", ["in its COPY", "between two statements"])


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_link, "FROZEN_S", 1)
    monkeypatch.setattr(postgres_link, "BEGIN", FAST)
    monkeypatch.setattr(effects_link, "BEGIN", FAST)


@contextmanager
def frozen(url: str, where: str, *more: str) -> Iterator[Callable[[], list[str]]]:
    """A node that stopped while it wrote to the run `r`. Called, it goes on, and gives what it says of two attempts."""
    node = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", NODE, url, where, FAST, *more],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )

    def goes_on() -> list[str]:
        node.send_signal(signal.SIGCONT)
        said, _ = node.communicate(timeout=30)
        return said.split()

    try:
        assert os.WIFSTOPPED(os.waitpid(node.pid, os.WUNTRACED)[1])
        yield goes_on
    finally:
        node.kill()
        node.communicate()


@PLACES
async def test_the_run_of_an_owner_that_froze_with_its_lock_is_declared_lost(
    where: str,
    store: Store,  # noqa: F811
    journal: PostgresJournal,  # noqa: F811
) -> None:
    with frozen(store.url, where, "owner") as goes_on:
        async with asyncio.timeout(20):
            while "r" not in await journal.expire():
                await asyncio.sleep(0.1)
        lost = await whole(journal, "r")
        assert [envelope.type for envelope in lost] == ["run.started", "run.lost"]
        assert goes_on() == ["JournalUnavailable", "Fenced"]
    assert await whole(journal, "r") == lost


@PLACES
async def test_whoever_waits_for_the_lock_of_a_frozen_node_takes_it_from_it(
    where: str,
    store: Store,  # noqa: F811
    journal: PostgresJournal,  # noqa: F811
) -> None:
    with frozen(store.url, where) as goes_on:
        async with asyncio.timeout(20):
            await journal.append([started("r")], claim=True)
        assert goes_on() == ["JournalUnavailable", "AppendConflict"]
    assert await whole(journal, "r") == [started("r")]


async def test_nothing_is_taken_from_a_node_that_reads_slowly_or_works(
    store: Store,  # noqa: F811
    journal: PostgresJournal,  # noqa: F811
) -> None:
    await journal.append([started("r")])
    with closing(psycopg.connect(store.url)) as works, closing(psycopg.connect(store.url)) as reads:
        works.execute("SELECT FROM progress_runs FOR UPDATE")
        works.pgconn.send_query(b"SELECT pg_sleep(60)")
        reads.pgconn.send_query(b"SELECT repeat('.', 100000) FROM progress_runs, generate_series(1, 1000)")
        query = "SELECT wait_event FROM pg_stat_activity WHERE pid = ANY(%s) AND state = 'active' ORDER BY 1"
        pids = [works.info.backend_pid, reads.info.backend_pid]
        async with asyncio.timeout(20):
            while store.admin.execute(query, (pids,)).fetchall() != [("ClientWrite",), ("PgSleep",)]:
                await asyncio.sleep(0.05)
        await asyncio.sleep(1.2)
        await journal.expire()
        with pytest.raises(JournalUnavailable, match="lock timeout"):
            await journal.seal("r")
        assert store.admin.execute(query, (pids,)).fetchall() == [("ClientWrite",), ("PgSleep",)]
        works.cancel()


@asynccontextmanager
async def torn(url: str, mark: bytes) -> AsyncIterator[tuple[str, asyncio.Event]]:
    """The address of a server to which nothing comes through after the first piece with the mark; whether it has come.

    On leaving, every connection is closed.
    """
    given, cut = conninfo_to_dict(url), asyncio.Event()
    passing: list[asyncio.Task[None]] = []

    async def pass_on(source: asyncio.StreamReader, to: asyncio.StreamWriter, until: bytes | None = None) -> None:
        with closing(to):
            while part := await source.read(4096):
                to.write(part)
                if until is not None and until in part:
                    cut.set()
                    await asyncio.Event().wait()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up, down = await asyncio.open_connection(str(given["host"]), int(given["port"] or 5432))
        passing.extend(map(asyncio.create_task, (pass_on(reader, down, mark), pass_on(up, writer))))

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as relay:
        yield make_conninfo(**{**given, "host": "127.0.0.1", "port": relay.sockets[0].getsockname()[1]}), cut
        for task in passing:
            task.cancel()
        await asyncio.gather(*passing, return_exceptions=True)


async def test_an_effect_is_locked_no_longer_because_half_a_statement_arrived(store: Store) -> None:  # noqa: F811
    pays, other = effect(), PostgresLedger(store.url)
    async with torn(store.url, b"o" * 100) as (url, cut):
        ledger = PostgresLedger(url)
        begun = await asyncio.to_thread(ledger.begin, pays)
        assert isinstance(begun, Begun)
        telling = asyncio.create_task(asyncio.to_thread(ledger.succeed, begun.hold, "o" * 2**20))
        async with asyncio.timeout(20):
            await cut.wait()
            found, _ = await asyncio.to_thread(other.change, pays.entry, lambda found, now: ((found, now), None))
        assert found is not None and found.settled is None
    with pytest.raises(JournalUnavailable):
        await telling
    ledger.close()
    other.close()
