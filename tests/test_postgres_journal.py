"""The journal of many nodes: the whole contract on a server, and what only a server can do to it."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from agents_progress.errors import (
    AppendConflict,
    JournalClosed,
    JournalError,
    JournalExtraMissing,
    JournalUnavailable,
    JournalUnreadable,
    LeaseHeld,
    RunErased,
    UnknownJournalURL,
    UsageError,
)
from agents_progress.events import Envelope
from agents_progress.journal import Journal, Origin, open_journal
from agents_progress.journal.base import Lease, Request, Scope
from agents_progress.testing.contract.logs import followed, started, story, ticks, viewed, whole
from agents_progress.testing.journal_contract import JournalContract
from tests.older import POSTGRES_TABLES, postgres_append, postgres_erase

psycopg = pytest.importorskip("psycopg", reason="the postgres extra is not installed")

from agents_progress.journal import postgres_link, postgres_listen, postgres_schema  # noqa: E402 - after what it needs
from agents_progress.journal.postgres import PostgresJournal  # noqa: E402
from agents_progress.journal.postgres_owning import RENEW  # noqa: E402

SERVER = os.environ.get("AGENTS_PROGRESS_TEST_POSTGRES", "postgresql://postgres@127.0.0.1:5432/test")
ROOT = Path(__file__).parent.parent


class Store:
    """A schema of its own on the server, and a connection beside the journals."""

    def __init__(self) -> None:
        self.schema = f"progress_{secrets.token_hex(6)}"
        self.admin = psycopg.connect(SERVER, autocommit=True)
        self.admin.execute(f"CREATE SCHEMA {self.schema}")
        self.admin.execute(f"SET search_path TO {self.schema}")
        joint = "&" if "?" in SERVER else "?"
        options = quote(f"-csearch_path={self.schema}")
        self.url = f"{SERVER}{joint}options={options}&application_name={self.schema}"

    def kill(self) -> int:
        """End the server's side of every connection of a journal."""
        query = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = %s"
        (count,) = self.admin.execute(query, (self.schema,)).fetchone()
        return count

    def drop(self) -> None:
        self.admin.execute("SET client_min_messages TO warning")
        self.admin.execute(f"DROP SCHEMA {self.schema} CASCADE")
        self.admin.close()


@pytest.fixture(scope="session")
def server() -> None:
    try:
        psycopg.connect(SERVER, connect_timeout=3).close()
    except psycopg.OperationalError as error:
        pytest.skip(f"no PostgreSQL server answers: {error}")


@pytest.fixture
def store(server: None) -> Iterator[Store]:
    store = Store()
    yield store
    store.drop()


@pytest.fixture
async def journal(store: Store) -> AsyncIterator[PostgresJournal]:
    journal = PostgresJournal(store.url)
    yield journal
    await journal.close()


@pytest.fixture
async def reopened(store: Store) -> AsyncIterator[PostgresJournal]:
    journal = PostgresJournal(store.url)
    yield journal
    await journal.close()


class TestPostgres(JournalContract):
    pass


# Addresses.


async def test_a_url_opens_the_backend_and_nothing_is_connected_before_its_first_use(store: Store) -> None:
    journal = open_journal(store.url)
    assert isinstance(journal, PostgresJournal)
    assert store.kill() == 0
    await journal.append([started("r")])
    assert store.kill() == 1
    await journal.close()
    nowhere = open_journal("postgres://u@127.0.0.1:1/x")
    assert isinstance(nowhere, PostgresJournal)
    await nowhere.close()


PASSWORD = "s3cret%2Fword"
ADDRESSES = [f"postgresql://u:{PASSWORD}@127.0.0.1:1/x", f"postgresql://127.0.0.1:1/x?user=u&password={PASSWORD}"]


@pytest.mark.parametrize("url", ADDRESSES)
async def test_a_password_is_in_no_message_and_no_representation(url: str, caplog: pytest.LogCaptureFixture) -> None:
    journal = open_journal(url)
    said = [repr(journal), str(journal), repr(journal._address)]
    for call in (journal.read("r"), journal.append(ticks("r", 1, 1)), journal.expire(), journal.lease("r", 1)):
        with pytest.raises(JournalUnavailable, match=r"postgresql://127\.0\.0\.1:1/x") as caught:
            await call
        said += [str(caught.value), repr(caught.value), str(caught.value.__cause__)]
    with pytest.raises(JournalUnavailable) as caught:
        journal.renew([Lease("r", 1)], 1)
    await journal.close()
    said += [str(caught.value), caplog.text]
    assert not any("s3cret" in text for text in said)


@pytest.mark.parametrize("rest", ["@[::1/x", "@h:1/x?no_such_option=1", "@h/x?sslmode"])
def test_a_url_that_cannot_be_read_is_refused_without_quoting_it(rest: str) -> None:
    with pytest.raises(UnknownJournalURL) as caught:
        open_journal(f"postgresql://u:s3cret{rest}")
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_without_the_driver_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    for name in [name for name in sys.modules if name.startswith("agents_progress.journal.postgres")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(JournalExtraMissing, match=r"agents-progress\[postgres\]"):
        open_journal("postgresql://h/x")


def test_the_driver_is_loaded_for_postgresql_only() -> None:
    code = "import sys, agents_progress as a; a.open_journal('sqlite:///x.db'); assert 'psycopg' not in sys.modules"
    process = python(code)
    assert process.communicate(timeout=50) == ("", "")
    assert process.returncode == 0


# The tables.


async def refused(journal: Journal, kind: type[JournalError], words: str) -> None:
    for call in (journal.read("r"), journal.runs(), journal.append(ticks("r", 1, 1)), journal.lease("r", 1)):
        with pytest.raises(kind, match=words):
            await call
    await journal.close()


async def test_tables_of_another_version_are_refused_and_left_alone(store: Store, journal: PostgresJournal) -> None:
    await journal.append(ticks("r", 1, 2))
    store.admin.execute("UPDATE progress_journal SET version = 99")
    await refused(PostgresJournal(store.url), JournalUnreadable, r"in version 99; this release reads .* in version 1")
    assert store.admin.execute("SELECT count(*) FROM progress_envelopes").fetchone() == (2,)


async def test_a_database_without_tables_is_refused_when_none_may_be_made(store: Store) -> None:
    await refused(PostgresJournal(store.url, create=False), JournalUnreadable, "there is no journal")
    assert store.admin.execute("SELECT to_regclass('progress_runs')").fetchone() == (None,)


async def test_somebody_elses_tables_are_refused(store: Store) -> None:
    store.admin.execute("CREATE TABLE progress_journal (note TEXT)")
    await refused(PostgresJournal(store.url), JournalUnreadable, "holds no journal of ours")


async def test_a_database_of_the_release_before_is_opened_with_everything_in_it(
    store: Store, journal: PostgresJournal, reopened: PostgresJournal
) -> None:
    store.admin.execute(POSTGRES_TABLES)
    log = [started("r"), *ticks("r", 2, 3)]
    postgres_append(store.admin, log)
    rows = await asyncio.gather(*(node.run("r") for node in (journal, reopened) * 4))
    for row in rows:
        assert row is not None
        assert (row.seq, row.status, row.origin.owner) == (3, "running", "mei")
        assert (row.sealed, row.generation) == (False, 0)
        assert (row.silent_s, row.unread_s, row.lease_left_s) == (None, None, None)
    assert await whole(journal, "r") == log
    request = await journal.ask(Request("r", "cancel", {}))
    await journal.append(ticks("r", 4, 4))
    await reopened.touch(["r"])
    row = await reopened.run("r")
    assert row is not None
    assert row.silent_s is not None
    assert row.unread_s is not None
    assert await reopened.requests(["r"]) == [request]


async def test_the_release_before_works_on_beside_this_one(store: Store, journal: PostgresJournal) -> None:
    log = [started("r"), *ticks("r", 2, 4)]
    await journal.append(log[:2])
    row = await journal.run("r")
    assert row is not None
    assert row.silent_s is not None
    told = store.admin.execute("SELECT protocol, version FROM progress_journal").fetchall()
    assert told == [("agents-progress/1", 1)]
    tail = asyncio.ensure_future(followed(journal.tail("r"), 4))
    postgres_append(store.admin, log[:3])
    postgres_append(store.admin, [started("s"), *ticks("s", 2, 3)])
    for run_id in ("r", "s"):
        row = await journal.run(run_id)
        assert row is not None
        assert (row.seq, row.silent_s) == (3, None)  # and not what was true of an earlier envelope
        assert row.glance is None
    await journal.append(log[3:])
    row = await journal.run("r")
    assert row is not None
    assert row.silent_s is not None
    assert row.glance is None  # what it missed cannot be made good
    assert await tail == log


async def test_the_release_before_erases_requests_that_it_does_not_know(store: Store, journal: PostgresJournal) -> None:
    for run_id in ("r", "kept"):
        await journal.append([started(run_id)])
        await journal.ask(Request(run_id, "cancel", {"reason": "secret"}))
        await journal.touch([run_id])
    postgres_erase(store.admin, "r")
    for table in ("progress_requests", "progress_reads"):
        assert store.admin.execute(f"SELECT count(*) FROM {table}").fetchone() == (1,)
    with pytest.raises(RunErased):
        await journal.ask(Request("r", "cancel", {}))


async def test_tables_that_a_later_release_expanded_are_used_as_they_are(
    store: Store, journal: PostgresJournal
) -> None:
    await journal.append(ticks("r", 1, 1))
    store.admin.execute("ALTER TABLE progress_runs ADD COLUMN more TEXT")
    store.admin.execute("UPDATE progress_journal SET revision = 7")
    again = PostgresJournal(store.url)
    await again.append(ticks("r", 2, 2))
    assert await whole(again, "r") == ticks("r", 1, 2)
    await again.close()
    assert store.admin.execute("SELECT revision FROM progress_journal").fetchone() == (7,)


async def test_an_expansion_that_fails_leaves_the_tables_as_they_were(
    store: Store, journal: PostgresJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    await journal.append(ticks("r", 1, 1))
    bad = "ALTER TABLE progress_runs ADD COLUMN half TEXT; ALTER TABLE nowhere ADD COLUMN other TEXT"
    with monkeypatch.context() as patch:
        patch.setattr(postgres_schema, "_EXPANSIONS", (*postgres_schema._EXPANSIONS, bad))
        await refused(PostgresJournal(store.url), JournalUnreadable, "nowhere")
    await journal.append(ticks("r", 2, 2))
    query = "SELECT count(*) FROM information_schema.columns WHERE table_schema = %s AND column_name = 'half'"
    assert store.admin.execute(query, (store.schema,)).fetchone() == (0,)


async def test_an_expansion_does_not_keep_the_database_waiting(
    store: Store, journal: PostgresJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.admin.execute(POSTGRES_TABLES)
    postgres_append(store.admin, [started("r")])
    monkeypatch.setattr(postgres_schema, "_PATIENCE", "SET LOCAL lock_timeout = '100ms'")
    store.admin.execute("BEGIN")
    store.admin.execute("SELECT FROM progress_runs")
    with pytest.raises(JournalUnavailable, match="lock timeout"):
        await journal.run("r")
    store.admin.execute("COMMIT")
    assert await journal.run("r") is not None


def python(code: str, *arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


OPEN = """
import asyncio, sys
from agents_progress.journal.postgres import PostgresJournal
from agents_progress.testing.contract.logs import started

async def main(run_id):
    journal = PostgresJournal(sys.argv[1])
    await journal.append([started(run_id)])
    await journal.close()

asyncio.run(main(sys.argv[2]))
"""


async def test_eight_processes_make_the_tables_once(store: Store, journal: PostgresJournal) -> None:
    processes = [python(OPEN, store.url, f"r{n}") for n in range(8)]
    ends = await asyncio.gather(*(asyncio.to_thread(process.communicate, timeout=50) for process in processes))
    assert [process.returncode for process in processes] == [0] * 8, ends
    assert {row.run_id for row in await journal.runs()} == {f"r{n}" for n in range(8)}
    assert store.admin.execute("SELECT count(*) FROM progress_journal").fetchone() == (1,)


async def test_eight_threads_make_the_tables_once(store: Store, journal: PostgresJournal) -> None:
    def open_here(run_id: str) -> None:
        async def main() -> None:
            mine = PostgresJournal(store.url)
            await mine.append([started(run_id)])
            await mine.close()

        asyncio.run(main())

    await asyncio.gather(*(asyncio.to_thread(open_here, f"r{n}") for n in range(8)))
    assert len(await journal.runs()) == 8


FORK = """
import asyncio, os, sys
from agents_progress.journal.postgres import PostgresJournal
from agents_progress.testing.contract.logs import ticks

journal = PostgresJournal(sys.argv[1])

async def write(run_id, first, last):
    for seq in range(first, last + 1):
        await journal.append(ticks(run_id, seq, seq))
    assert journal.renew([], 1) == []

if sys.argv[2] == "used":
    asyncio.run(write("parent", 1, 10))
children = []
for n in range(3):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            asyncio.run(write(f"child-{n}", 1, 20))
            asyncio.run(journal.close())
            code = 0
        finally:
            os._exit(code)
    children.append(child)
asyncio.run(write("parent", 11 if sys.argv[2] == "used" else 1, 30))
print([os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children])
asyncio.run(write("parent", 31, 40))
asyncio.run(journal.close())
"""


@pytest.mark.parametrize("when", ["named", "used"])
async def test_a_journal_may_be_named_or_used_before_a_fork(store: Store, journal: PostgresJournal, when: str) -> None:
    process = python(FORK, store.url, when)
    out, err = await asyncio.to_thread(process.communicate, timeout=50)
    assert (out.strip(), process.returncode) == ("[0, 0, 0]", 0), err
    assert await whole(journal, "parent") == ticks("parent", 1, 40)
    for n in range(3):
        assert await whole(journal, f"child-{n}") == ticks(f"child-{n}", 1, 20)


# Nodes.


async def test_of_the_claims_of_eight_nodes_exactly_one_wins(store: Store) -> None:
    nodes = [PostgresJournal(store.url) for _ in range(8)]
    answers = await asyncio.gather(
        *(node.append(ticks("r", 1, 1), claim=True) for node in nodes), return_exceptions=True
    )
    assert answers.count(None) == 1
    assert sum(isinstance(answer, AppendConflict) for answer in answers) == 7
    for node in nodes:
        await node.close()


async def test_two_nodes_that_write_to_the_same_runs_in_opposite_orders_never_lock_each_other_out(
    journal: PostgresJournal, reopened: PostgresJournal
) -> None:
    names = [f"r{n}" for n in range(20)]
    for seq in range(1, 11):
        batches = [(journal, names), (reopened, names[::-1])]
        appends = [node.append(ticks(run_id, seq, seq)) for node, order in batches for run_id in order]
        await asyncio.gather(*appends)
    for run_id in names:
        assert await whole(journal, run_id) == ticks(run_id, 1, 10)


async def test_leases_are_renewed_in_the_order_in_which_appends_lock_so_that_neither_is_a_deadlock(
    store: Store, journal: PostgresJournal
) -> None:
    held = [await journal.lease(run_id, 60.0) for run_id in ("b", "a")]
    waits = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s AND wait_event_type = 'Lock'"
    locked = "SELECT FROM progress_runs WHERE run_id = %s FOR UPDATE"
    with store.admin.transaction():
        store.admin.execute(locked, ("a",))
        renewing = asyncio.create_task(asyncio.to_thread(journal.renew, held, 60.0))
        with psycopg.connect(SERVER, autocommit=True) as beside:
            while beside.execute(waits, (store.schema,)).fetchone() != (1,):
                await asyncio.sleep(0.01)
        store.admin.execute(locked + " NOWAIT", ("b",))
    assert await renewing == []


async def test_texts_that_a_text_column_cannot_hold_are_kept_found_and_told_apart(journal: PostgresJournal) -> None:
    odd = ["a", "a\x00", "a\\0", "a\ud800", "a\\ud800", ""]
    for n, text in enumerate(odd):
        origin = Origin(owner=text, tenant=text, labels={text or "k": text})
        await journal.append([started(f"r{n}", f"t{n}\x00", title=f"title {n}\x00")], origin=origin)
    for n, text in enumerate(odd):
        filters = ({"labels": {text or "k": text}}, {"scope": Scope(owner=text)}, {"scope": Scope(tenant=text)})
        for found in [await journal.runs(**filter_) for filter_ in (*filters, {"task_id": f"t{n}\x00"})]:
            (row,) = found
            assert (row.run_id, row.task_id, row.title) == (f"r{n}", f"t{n}\x00", f"title {n}\x00")
            assert (row.origin.owner, row.origin.labels) == (text, {text or "k": text})
    assert await journal.read("r0\x00") == []
    assert (await journal.erase(owner="a\x00")).runs == 1


async def test_a_run_id_that_no_reader_accepts_is_refused(journal: PostgresJournal) -> None:
    for call in (
        journal.append([started("no spaces")]),
        journal.lease("x" * 65, 1),
        journal.reserve("", 1),
    ):
        with pytest.raises(UsageError, match="run id"):
            await call
    assert await journal.runs() == []


# Faults.


async def test_a_connection_that_was_lost_while_it_idled_is_replaced_unnoticed(
    store: Store, journal: PostgresJournal
) -> None:
    lease = await journal.lease("r", 60)
    for seq in range(1, 6):
        await journal.append(ticks("r", seq, seq), lease=lease)
        assert await whole(journal, "r") == ticks("r", 1, seq)
        assert journal.renew([lease], 60) == []
        assert store.kill() == 3


async def test_connections_that_are_killed_under_appends_and_tails_tear_nothing(  # noqa: C901 - three actors and their end
    store: Store, journal: PostgresJournal
) -> None:
    names, last = [f"r{n}" for n in range(6)], 600
    faults = appends = 0

    async def follow(run_id: str) -> list[Envelope]:
        given: list[Envelope] = []
        while True:
            try:
                async for step in journal.tail(run_id, len(given)):
                    given.append(step)
                return given
            except JournalUnavailable:
                continue

    async def write(run_id: str) -> None:
        nonlocal faults, appends
        seq = 1
        while seq <= last:
            try:
                await journal.append(ticks(run_id, seq, seq + 2))
                seq += 3
                appends += 1
            except JournalUnavailable:
                faults += 1  # it may have been stored or not: the same again settles it

    tails = asyncio.gather(*map(follow, names))
    writers = asyncio.gather(*map(write, names))
    while not writers.done():
        enough = appends + 24  # on a busy machine too, something gets through
        await asyncio.sleep(0.04 + secrets.randbelow(100) / 10_000)  # at another place of a transaction each time
        while appends < enough and not writers.done():
            await asyncio.sleep(0.003)
        store.kill()
    await writers
    assert faults > 0
    for run_id in names:
        assert await journal.read(run_id) == ticks(run_id, 1, last)
        await journal.seal(run_id)
    assert await tails == [ticks(run_id, 1, last) for run_id in names]


async def test_callers_that_are_cancelled_anywhere_leave_connections_that_work(journal: PostgresJournal) -> None:
    await journal.append(ticks("r", 1, 200))
    for n in range(60):
        calls = [journal.read("r"), journal.lease(f"l{n}", 60), journal.prune("r", n), journal.append(ticks("s", 1, 1))]
        tasks = [asyncio.ensure_future(call) for call in calls]
        await asyncio.sleep(n / 10_000)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    await journal.append(ticks("r", 201, 202))
    assert await journal.read("r", 60) == ticks("r", 61, 202)
    assert len(await journal.runs()) == 2


async def test_a_lock_that_another_holds_only_delays(store: Store, journal: PostgresJournal) -> None:
    await journal.append(ticks("r", 1, 1))
    store.admin.execute("BEGIN")
    store.admin.execute("SELECT FROM progress_runs FOR UPDATE")
    waiting = [asyncio.ensure_future(journal.append(ticks("r", seq, seq))) for seq in range(2, 12)]
    done, _ = await asyncio.wait(waiting, timeout=0.5)
    assert not done
    assert await whole(journal, "r") == ticks("r", 1, 1)
    store.admin.execute("COMMIT")
    await asyncio.gather(*waiting)
    assert await whole(journal, "r") == ticks("r", 1, 11)


async def test_a_lock_that_is_held_too_long_is_an_error_that_leaves_no_hole(
    store: Store, journal: PostgresJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_link, "BEGIN", "BEGIN; SET LOCAL lock_timeout = '100ms'")
    await journal.append(ticks("r", 1, 1))
    store.admin.execute("BEGIN")
    store.admin.execute("SELECT FROM progress_runs FOR UPDATE")
    with pytest.raises(JournalUnavailable, match="lock timeout"):
        await journal.append(ticks("r", 2, 3))
    store.admin.execute("COMMIT")
    await journal.append(ticks("r", 2, 4))
    assert await whole(journal, "r") == ticks("r", 1, 4)


async def test_a_damaged_envelope_is_named_and_nothing_is_made_up(store: Store, journal: PostgresJournal) -> None:
    await journal.append(ticks("r", 1, 3))
    store.admin.execute("UPDATE progress_envelopes SET body = '{}' WHERE seq = 2")
    with pytest.raises(JournalUnreadable, match="damaged"):
        await whole(journal, "r")


async def test_what_is_appended_is_stored_and_unlocked_although_a_tool_blocks_the_loop(
    store: Store, journal: PostgresJournal
) -> None:
    lease = await journal.lease("r", 60)
    appending = asyncio.ensure_future(journal.append(ticks("r", 1, 3), lease=lease))
    await asyncio.sleep(0)
    time.sleep(0.5)  # the tool: the loop gets no turn from here on
    assert store.admin.execute("SELECT count(*) FROM progress_envelopes").fetchone() == (3,)
    assert store.admin.execute("SELECT seq FROM progress_runs FOR UPDATE NOWAIT").fetchall() == [(3,)]
    assert journal.renew([lease], 60) == []
    assert not appending.done()
    await appending


async def test_closing_goes_on_when_its_caller_is_cancelled(store: Store) -> None:
    journal = PostgresJournal(store.url)
    lease = await journal.lease("r", 60)
    await journal.append(ticks("r", 1, 1), lease=lease)
    assert journal.renew([lease], 60) == []
    store.admin.execute("BEGIN")
    store.admin.execute("SELECT FROM progress_runs FOR UPDATE")
    appending = asyncio.ensure_future(journal.append(ticks("r", 2, 3), lease=lease))
    await asyncio.sleep(0)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.2):
            await journal.close()
    store.admin.execute("COMMIT")
    await appending
    left = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
    async with asyncio.timeout(10):
        while store.admin.execute(left, (store.schema,)).fetchone() != (0,):
            await asyncio.sleep(0.02)


async def test_a_keeper_that_comes_late_opens_no_connection_of_a_closed_journal(store: Store) -> None:
    journal = PostgresJournal(store.url)
    lease = await journal.lease("r", 60)
    late = journal._process()
    await journal.close()
    with pytest.raises(JournalClosed):
        late.renew(RENEW, ([lease.run_id], [lease.generation], 60))
    assert store.kill() == 0


async def test_a_commit_waits_for_the_disk_whatever_the_default_of_the_server(store: Store) -> None:
    journal = PostgresJournal(store.url.replace("options=", "options=-csynchronous_commit%3Doff%20"))

    async def said(db: Any) -> Any:
        return await (await db.execute("SHOW synchronous_commit")).fetchone()

    assert await journal._transact(said) == ("on",)
    await journal.close()


# Tails.


async def listening(journal: PostgresJournal) -> None:
    async with asyncio.timeout(10):
        while not journal._process().link.listener.hears:
            await asyncio.sleep(0.01)


async def test_tails_that_wait_ask_the_server_nothing(
    store: Store, journal: PostgresJournal, reopened: PostgresJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_listen, "POLL_S", 0.05)
    tails = [asyncio.ensure_future(followed(journal.tail(f"r{n}"), 2)) for n in range(20)]
    await listening(journal)

    def asked() -> object:
        query = "SELECT pid, query_start FROM pg_stat_activity WHERE application_name = %s ORDER BY pid"
        return store.admin.execute(query, (store.schema,)).fetchall()

    async with asyncio.timeout(20):  # ten times as long as they would wait to ask again
        before: object = None
        while before != (before := asked()):
            await asyncio.sleep(0.5)
    for n in range(20):
        await reopened.append(ticks(f"r{n}", 1, 2))
    assert await asyncio.gather(*tails) == [ticks(f"r{n}", 1, 2) for n in range(20)]


async def test_tails_look_for_themselves_where_no_notification_arrives(
    journal: PostgresJournal, reopened: PostgresJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_listen, "POLL_S", 0.05)
    monkeypatch.setattr(postgres_listen, "LISTEN", "SELECT 1")  # what becomes of it behind a pooler in transaction mode
    tail = asyncio.ensure_future(followed(journal.tail("r")))
    for seq in range(1, 6):
        await reopened.append(ticks("r", seq, seq))
        await asyncio.sleep(0.06)
    await reopened.seal("r")
    assert await tail == ticks("r", 1, 5)
    assert not journal._process().link.listener.hears


async def test_a_tail_hears_again_after_its_listener_was_killed(
    store: Store, journal: PostgresJournal, reopened: PostgresJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_listen, "RECONNECT_S", 0.05)
    tail = asyncio.ensure_future(followed(journal.tail("r"), 3))
    await listening(journal)
    for seq in range(1, 4):
        store.kill()
        await reopened.append(ticks("r", seq, seq))
        await asyncio.sleep(0.1)
        if seq < 3:
            await listening(journal)
    assert await tail == ticks("r", 1, 3)


async def test_one_connection_listens_for_all_tails_of_a_loop(store: Store, journal: PostgresJournal) -> None:
    tails = [asyncio.ensure_future(followed(journal.tail(f"r{n}"), 1)) for n in range(30)]
    await listening(journal)
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name = %s"
    assert store.admin.execute(query, (store.schema,)).fetchone() == (2,)
    await journal.close()
    assert await asyncio.gather(*tails) == [[]] * 30


# Requests and readers.


@asynccontextmanager
async def owning(journal: PostgresJournal, run_id: str) -> AsyncIterator[asyncio.Queue[Request]]:
    """What is asked of the owner of a run while this goes on."""
    given: asyncio.Queue[Request] = asyncio.Queue()

    async def listen() -> None:
        async for request in journal.asks(lambda: [run_id]):
            given.put_nowait(request)

    owner = asyncio.ensure_future(listen())
    yield given
    assert not owner.done()
    owner.cancel()
    await asyncio.gather(owner, return_exceptions=True)


async def test_requests_are_found_where_no_notification_arrives(
    journal: PostgresJournal, reopened: PostgresJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(postgres_listen, "LISTEN", "SELECT 1")  # what becomes of it behind a pooler in transaction mode
    await reopened.append([started("r")])
    async with owning(journal, "r") as given:
        for n in range(3):
            request = await reopened.ask(Request("r", f"k{n}", {}))
            assert await asyncio.wait_for(given.get(), 20) == request
    assert not journal._process().link.listener.hears


async def test_requests_are_heard_of_at_once(journal: PostgresJournal, reopened: PostgresJournal) -> None:
    await reopened.append([started("r")])
    took = []
    async with owning(journal, "r") as given:
        await listening(journal)
        for n in range(15):
            since = time.monotonic()
            request = await reopened.ask(Request("r", f"k{n}", {}))
            assert await asyncio.wait_for(given.get(), 20) == request
            took.append(time.monotonic() - since)
    assert sorted(took)[7] < 0.3


async def test_an_owner_is_asked_again_after_an_outage(
    store: Store, journal: PostgresJournal, reopened: PostgresJournal
) -> None:
    await reopened.append([started("r")])
    async with owning(journal, "r") as given:
        for n in range(4):
            request = Request("r", f"k{n}", {})
            while True:
                try:
                    assert await reopened.ask(request) == request
                    break
                except JournalUnavailable:  # it may have been stored or not: the same again settles it
                    continue
            assert await asyncio.wait_for(given.get(), 20) == request
            store.kill()


async def test_a_touch_waits_for_no_append_and_no_append_for_a_touch(store: Store, journal: PostgresJournal) -> None:
    await journal.append(ticks("r", 1, 1))
    await journal.touch(["r"])
    store.admin.execute("BEGIN")
    store.admin.execute("SELECT FROM progress_runs FOR UPDATE")  # as an append that goes on
    await asyncio.wait_for(journal.touch(["r"]), 20)
    store.admin.execute("COMMIT")
    store.admin.execute("BEGIN")
    store.admin.execute("SELECT FROM progress_reads FOR UPDATE")  # as a touch that goes on
    await asyncio.wait_for(journal.append(ticks("r", 2, 2)), 20)
    store.admin.execute("COMMIT")


# Retention between nodes.


async def test_two_nodes_that_prune_at_once_leave_one_true_snapshot(
    journal: PostgresJournal, reopened: PostgresJournal
) -> None:
    log = story("r")
    await journal.append(log)
    removed = await asyncio.gather(*(node.prune("r", upto) for node in (journal, reopened) for upto in (3, 6, 9, 5)))
    assert sum(removed) == 9
    assert await journal.snapshot("r") == viewed("r", log[:9])
    assert await reopened.read("r", after_seq=9) == log[9:]


async def test_of_two_nodes_that_ask_for_one_key_one_waits_for_the_others_decision(
    journal: PostgresJournal, reopened: PostgresJournal
) -> None:
    asked = [node.lease(f"r{n}", 60, exclusive="k\x00") for n in range(8) for node in (journal, reopened)]
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(answer, LeaseHeld) for answer in answers) == 15


NESTED = "-cenable_hashjoin=off -cenable_mergejoin=off"


async def test_a_renewal_of_many_leases_and_another_writer_never_wait_for_each_other(store: Store) -> None:
    # By this plan, which the planner takes for some numbers of runs, rows come in the order in which they are named.
    journal = PostgresJournal(f"{store.url}&options={quote(f'-csearch_path={store.schema} {NESTED}')}")
    names = ["c", "b", "a"]  # as they lie in the table: not in the order in which everybody locks them
    leases = [await journal.lease(name, 60) for name in names]
    lock = "SELECT 1 FROM progress_runs WHERE run_id = %s FOR UPDATE"
    waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name = %s"
    with psycopg.connect(store.url) as other:
        other.execute(lock, ("a",))
        renewal = asyncio.create_task(asyncio.to_thread(journal.renew, leases, 60))
        while store.admin.execute(waiting, (store.schema,)).fetchone() != (1,):
            await asyncio.sleep(0.01)
        other.execute(lock, ("c",))
    assert await renewal == []
    await journal.close()
