"""The embedded journal beyond the contract: other writers, foreign files, forks, and a writer that is killed."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from agents_progress.errors import JournalClosed, JournalError, JournalUnavailable, JournalUnreadable, RunErased
from agents_progress.events import Envelope
from agents_progress.journal import rules, sqlite_read
from agents_progress.journal import sqlite_file as module
from agents_progress.journal.base import Erased, Origin, Request
from agents_progress.journal.sqlite import SQLiteJournal
from agents_progress.testing.contract.logs import started, ticks, whole
from agents_progress.view import RunView
from tests.logs import Log, envelope
from tests.older import SQLITE_TABLES, sqlite_append, sqlite_erase

ROOT = Path(__file__).parent.parent


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


@pytest.fixture
async def stored(path: Path) -> AsyncIterator[SQLiteJournal]:
    journal = SQLiteJournal(path)
    yield journal
    await journal.close()


class ForeignLock:
    """Another process's write lock, as another connection: held until it is let go."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
        self.connection.execute("BEGIN IMMEDIATE")

    def let_go(self) -> None:
        self.connection.rollback()
        self.connection.close()


# PERF-3.


def test_two_threads_write_while_a_third_reads(path: Path) -> None:  # noqa: C901 - three actors and their end
    journal = SQLiteJournal(path)
    over = threading.Event()
    faults: list[BaseException] = []
    reads = 0

    async def write(run_id: str) -> None:
        for seq in range(1, 501):
            await journal.append(ticks(run_id, seq, seq))

    async def read() -> None:
        nonlocal reads
        while not over.is_set() or not reads:
            for run_id in ("a", "b"):
                log = await whole(journal, run_id)
                assert [step.seq for step in log] == list(range(1, len(log) + 1))
            await journal.runs()
            reads += 1

    def run(main: object) -> None:
        try:
            asyncio.run(main)  # type: ignore[arg-type]
        except BaseException as fault:
            faults.append(fault)

    writers = [threading.Thread(target=run, args=(write(run_id),)) for run_id in ("a", "b")]
    reader = threading.Thread(target=run, args=(read(),))
    for thread in (*writers, reader):
        thread.start()
    for thread in writers:
        thread.join()
    over.set()
    reader.join()

    async def check() -> None:
        for run_id in ("a", "b"):
            assert await whole(journal, run_id) == ticks(run_id, 1, 500)
        await journal.close()

    assert faults == []
    asyncio.run(check())


async def test_a_foreign_write_lock_only_delays(path: Path, stored: SQLiteJournal) -> None:
    await stored.append(ticks("r", 1, 1))
    lock = ForeignLock(path)
    waiting = [asyncio.ensure_future(stored.append(ticks("r", seq, seq))) for seq in range(2, 12)]
    done, _ = await asyncio.wait(waiting, timeout=1.0)
    assert not done
    assert await whole(stored, "r") == ticks("r", 1, 1)
    lock.let_go()
    await asyncio.gather(*waiting)
    assert await whole(stored, "r") == ticks("r", 1, 11)


async def test_a_lock_held_too_long_is_an_error_that_leaves_no_hole(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BUSY_TIMEOUT_S", 0.1)
    journal = SQLiteJournal(path)
    await journal.append(ticks("r", 1, 1))
    lock = ForeignLock(path)
    with pytest.raises(JournalUnavailable, match=r"runs\.db"):
        await journal.append(ticks("r", 2, 3))
    with pytest.raises(JournalUnavailable):
        await journal.append(ticks("s", 1, 1), claim=True)
    lock.let_go()
    assert await whole(journal, "r") == ticks("r", 1, 1)
    await journal.append(ticks("r", 2, 4))
    await journal.append(ticks("s", 1, 1), claim=True)
    assert await whole(journal, "r") == ticks("r", 1, 4)
    await journal.close()


async def test_batches_that_gathered_behind_a_lock_fail_and_succeed_each_by_itself(
    path: Path, stored: SQLiteJournal
) -> None:
    await stored.append(ticks("r", 1, 2))
    lock = ForeignLock(path)
    batches = [
        ticks("first", 1, 1),
        ticks("r", 1, 2, other=True),
        ticks("r", 9, 9),
        [envelope(1, "note.bad", {"a": object()}, "bad")],
        ticks("good", 1, 3),
        ticks("r", 3, 3),
    ]
    waiting = [asyncio.ensure_future(stored.append(batch)) for batch in batches]
    await asyncio.sleep(0)
    lock.let_go()
    answers = await asyncio.gather(*waiting, return_exceptions=True)
    assert [answer is None for answer in answers] == [True, False, False, False, True, True]
    assert await whole(stored, "good") == ticks("good", 1, 3)
    assert await whole(stored, "r") == ticks("r", 1, 3)


# Files.


async def test_a_new_journal_is_readable_by_its_owner_only(path: Path, stored: SQLiteJournal) -> None:
    before = os.umask(0)
    try:
        await stored.append(ticks("r", 1, 1))
        files = sorted(path.parent.iterdir())
        assert path in files
        assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    finally:
        os.umask(before)


async def test_the_journal_is_durable_by_its_settings(path: Path, stored: SQLiteJournal) -> None:
    await stored.append(ticks("r", 1, 1))
    opened = stored._open
    assert opened is not None
    connection = opened.connections["writer"]
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)


async def refused(journal: SQLiteJournal, kind: type[JournalError], words: str) -> None:
    for call in (journal.read("r"), journal.runs(), journal.append(ticks("r", 1, 1))):
        with pytest.raises(kind, match=words):
            await call
    await journal.close()


async def test_a_file_that_is_no_database_is_refused_and_left_alone(path: Path) -> None:
    path.write_bytes(b"these are my notes, not a database\n" * 100)
    before = path.read_bytes()
    await refused(SQLiteJournal(path), JournalUnreadable, r"runs\.db")
    assert path.read_bytes() == before


@pytest.mark.parametrize("create", [True, False])
async def test_another_applications_database_is_refused_and_left_alone(path: Path, create: bool) -> None:
    for schema in ("CREATE TABLE other (a)", "CREATE TABLE runs (id)"):
        path.unlink(missing_ok=True)
        with sqlite3.connect(path) as connection:
            connection.execute(schema)
        connection.close()
        before = path.read_bytes()
        await refused(SQLiteJournal(path, create=create), JournalUnreadable, r"runs\.db")
        assert path.read_bytes() == before


async def test_a_version_of_another_release_is_refused_and_left_alone(path: Path, stored: SQLiteJournal) -> None:
    await stored.append(ticks("r", 1, 1))
    await stored.close()
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE journal SET version = 99")
        connection.execute("DROP INDEX runs_by_task")
    connection.close()
    before = path.read_bytes()
    await refused(SQLiteJournal(path), JournalUnreadable, "version 99")
    assert path.read_bytes() == before


# Older and newer releases beside this one.


@pytest.fixture
def older(path: Path) -> Iterator[sqlite3.Connection]:
    """A release that knows no revision of the file, which it made."""
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = WAL")
    connection.executescript(SQLITE_TABLES)
    yield connection
    connection.close()


async def test_a_file_of_the_release_before_is_opened_with_everything_in_it(
    path: Path, older: sqlite3.Connection, stored: SQLiteJournal
) -> None:
    log = Log("r").start().request().envelopes
    sqlite_append(older, log)
    for journal in (stored, SQLiteJournal(path, create=False)):
        assert await whole(journal, "r") == log
        row = await journal.run("r")
        assert row is not None
        assert (row.seq, row.status, row.origin.owner) == (2, "running", "mei")
        assert (row.sealed, row.generation) == (False, 0)
        assert (row.silent_s, row.unread_s, row.lease_left_s) == (None, None, None)
    await journal.close()
    request = await stored.ask(Request("r", "cancel", {}))
    await stored.append(ticks("r", 3, 3))
    await stored.touch(["r"])
    row = await stored.run("r")
    assert row is not None
    assert row.silent_s is not None
    assert row.unread_s is not None
    assert await stored.requests(["r"]) == [request]


async def test_the_release_before_works_on_beside_this_one(older: sqlite3.Connection, stored: SQLiteJournal) -> None:
    log = [started("r"), *ticks("r", 2, 4)]
    await stored.append(log[:2])
    row = await stored.run("r")
    assert row is not None
    assert row.silent_s is not None
    assert older.execute("SELECT protocol, version FROM journal").fetchall() == [("agents-progress/1", 2)]
    sqlite_append(older, log[:3])
    sqlite_append(older, [started("s"), *ticks("s", 2, 3)])
    for run_id in ("r", "s"):
        row = await stored.run(run_id)
        assert row is not None
        assert (row.seq, row.silent_s) == (3, None)  # and not what was true of an earlier envelope
    await stored.append(log[3:])
    row = await stored.run("r")
    assert row is not None
    assert row.silent_s is not None
    assert await whole(stored, "r") == log


async def test_a_glance_that_the_release_before_left_behind_is_unknown_and_its_status_is_found_all_the_same(
    older: sqlite3.Connection, stored: SQLiteJournal
) -> None:
    log = Log("r").start().request("c1", title="Look up").say("note.tick").say("tool.started", call_id="c1").envelopes
    sqlite_append(older, Log("old").start().end("failed").envelopes)
    await stored.append(log[:2])
    row = await stored.run("r")
    assert row is not None and row.glance is not None and row.glance.activity == "Look up"
    sqlite_append(older, log[:3])
    sqlite_append(older, Log("s").start().end("failed").envelopes)
    for step in (None, log[3]):  # what it missed cannot be made good
        await stored.append([step] if step else [])
        assert [found.glance for found in await stored.runs()] == [None, None, None]
    assert [found.run_id for found in await stored.runs(status="failed")] == ["s", "old"]
    assert [found.run_id for found in await stored.runs(status="running")] == ["r"]
    assert [found.run_id for found in await stored.runs(status="failed", before="s")] == ["old"]
    sqlite_append(older, [*log, *Log("r").start().request().say("x").say("x").end("failed").envelopes[4:]])
    assert [found.run_id for found in await stored.runs(status="failed")] == ["s", "r", "old"]
    assert await stored.runs(status="running") == []


async def test_the_runs_of_one_status_are_found_by_an_index(path: Path, stored: SQLiteJournal) -> None:
    await stored.append([started("r")])
    db = sqlite3.connect(path)
    for given in ({"status"}, {"status", "before"}, {"task_id"}, set[str]()):
        query = sqlite_read._listing(given)
        asked = dict.fromkeys(("owner", "tenant", "task_id", "status", "before"))
        plan = [line[-1] for line in db.execute(f"EXPLAIN QUERY PLAN {query}", asked)]
        assert not any("TEMP B-TREE" in step for step in plan), plan
        assert ("status" in given) == any("runs_by_status" in step for step in plan), plan
        assert ("task_id" in given) == any("runs_by_task" in step for step in plan), plan
    db.close()


async def test_the_release_before_erases_requests_that_it_does_not_know(
    older: sqlite3.Connection, stored: SQLiteJournal
) -> None:
    for run_id in ("r", "kept"):
        await stored.append([started(run_id)])
        await stored.ask(Request(run_id, "cancel", {"reason": "secret"}))
    sqlite_erase(older, "r")
    assert older.execute("SELECT count(*) FROM requests").fetchone() == (1,)
    with pytest.raises(RunErased):
        await stored.ask(Request("r", "cancel", {}))
    assert [request.run_id for request in await stored.requests(["r", "kept"])] == ["kept"]


async def test_a_file_that_a_later_release_expanded_is_used_as_it_is(path: Path, stored: SQLiteJournal) -> None:
    await stored.append(ticks("r", 1, 1))
    await stored.close()
    later = sqlite3.connect(path, isolation_level=None)
    later.execute("ALTER TABLE runs ADD COLUMN more TEXT")
    later.execute("PRAGMA user_version = 7")
    again = SQLiteJournal(path)
    await again.append(ticks("r", 2, 2))
    assert await whole(again, "r") == ticks("r", 1, 2)
    await again.close()
    assert later.execute("PRAGMA user_version").fetchone() == (7,)
    later.close()


async def test_several_nodes_that_open_an_older_file_at_once_expand_it_once(
    path: Path, older: sqlite3.Connection
) -> None:
    sqlite_append(older, [started("r")])
    journals = [SQLiteJournal(path) for _ in range(8)]
    rows = await asyncio.gather(*(journal.run("r") for journal in journals))
    assert [row.seq for row in rows if row] == [1] * 8
    for journal in journals:
        await journal.close()


async def test_an_expansion_that_fails_leaves_the_file_as_it_was(
    path: Path, stored: SQLiteJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stored.append(ticks("r", 1, 1))
    bad = ("ALTER TABLE runs ADD COLUMN half TEXT", "ALTER TABLE nowhere ADD COLUMN other TEXT")
    with monkeypatch.context() as patch:
        patch.setattr(module, "_EXPANSIONS", (*module._EXPANSIONS, bad))
        await refused(SQLiteJournal(path), JournalUnavailable, "nowhere")
    again = SQLiteJournal(path)
    await again.append(ticks("r", 2, 2))
    assert await whole(again, "r") == ticks("r", 1, 2)
    await again.close()


async def test_a_missing_file_is_refused_when_it_may_not_be_made(path: Path) -> None:
    await refused(SQLiteJournal(path, create=False), JournalUnreadable, "there is no journal")
    assert not path.exists()


async def test_an_existing_journal_is_read_when_none_may_be_made(path: Path, stored: SQLiteJournal) -> None:
    await stored.append(ticks("r", 1, 3))
    reader = SQLiteJournal(path, create=False)
    assert await whole(reader, "r") == ticks("r", 1, 3)
    await reader.close()


async def test_a_folder_that_is_missing_or_the_path_itself_is_a_clear_error(tmp_path: Path) -> None:
    await refused(SQLiteJournal(tmp_path / "no" / "runs.db"), JournalUnavailable, "cannot be opened")
    await refused(SQLiteJournal(tmp_path), JournalUnavailable, "cannot be opened")


async def test_a_damaged_envelope_is_named_and_nothing_is_made_up(path: Path, stored: SQLiteJournal) -> None:
    await stored.append(ticks("r", 1, 3))
    with sqlite3.connect(path) as connection:
        connection.execute("UPDATE envelopes SET body = X'7b7d' WHERE seq = 2")
    connection.close()
    with pytest.raises(JournalUnreadable, match="damaged"):
        await whole(stored, "r")


async def test_what_was_erased_is_in_no_file_any_more(path: Path, stored: SQLiteJournal) -> None:
    await stored.append(ticks("kept", 1, 50, text="kept-words"))
    await stored.append(ticks("gone", 1, 50, text="secret-words"), origin=Origin(owner="mei-secret"))
    view = RunView("gone")
    for step in ticks("gone", 1, 50, text="secret-words"):
        view.feed(step)
    view.title = "secret-title"
    await stored.keep_snapshot("gone", view.snapshot())
    await stored.prune("gone", 20)
    assert await whole(stored, "kept")
    assert await stored.erase(run_id="gone") == Erased(1, 30, 1)
    left = b"".join(file.read_bytes() for file in path.parent.iterdir())
    assert b"kept-words" in left
    assert b"secret" not in left


async def test_leases_hold_between_processes_and_renewal_is_free_of_the_writer(path: Path) -> None:
    journal, other = SQLiteJournal(path), SQLiteJournal(path)
    lease = await journal.lease("r", 60)
    waiting = [asyncio.ensure_future(journal.append(ticks("r", 1, 1), lease=lease))]
    assert await asyncio.to_thread(other.renew, [lease], 60) == []
    await asyncio.gather(*waiting)
    await journal.close()
    with pytest.raises(JournalClosed):
        journal.renew([lease], 60)
    assert other.renew([lease], 60) == []
    await other.close()


async def test_a_journal_is_opened_again_with_everything_in_it(path: Path, stored: SQLiteJournal) -> None:
    log = Log("r").start().end().check().envelopes
    await stored.append(log)
    request = await stored.ask(Request("r", "cancel", {"actor": "巡"}))
    await stored.close()
    again = SQLiteJournal(path)
    assert await whole(again, "r") == log
    assert await again.requests(["r"]) == [request]
    (row,) = await again.runs()
    assert row.status == "done"
    await again.append(ticks("s", 1, 1))
    await again.close()


async def test_several_journals_may_make_the_same_file_at_once(tmp_path: Path) -> None:
    for attempt in range(50):  # the race is lost now and then only
        journals = [SQLiteJournal(tmp_path / f"{attempt}.db") for _ in range(4)]
        await asyncio.gather(
            *(journal.append(ticks(f"r{n}", 1, 3)) for n, journal in enumerate(journals)),
            *(journal.runs() for journal in journals),
        )
        assert {row.run_id for row in await journals[0].runs()} == {f"r{n}" for n in range(4)}
        for journal in journals:
            await journal.close()


async def test_of_two_processes_journals_exactly_one_claim_wins(path: Path) -> None:
    journals = [SQLiteJournal(path) for _ in range(8)]
    answers = await asyncio.gather(
        *(journal.append(ticks("r", 1, 1), claim=True) for journal in journals), return_exceptions=True
    )
    assert answers.count(None) == 1
    for journal in journals:
        await journal.close()


async def test_folding_a_long_log_delays_no_reader_and_no_writer(
    stored: SQLiteJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    folding, go_on = threading.Event(), threading.Event()
    fold = rules.folded

    def slowly(*arguments: Any) -> dict[str, Any]:
        folding.set()
        go_on.wait(20)
        return fold(*arguments)

    monkeypatch.setattr(rules, "folded", slowly)
    await stored.append(ticks("r", 1, 40))
    pruning = asyncio.ensure_future(stored.prune("r", 30))
    assert await asyncio.to_thread(folding.wait, 20)
    assert await whole(stored, "r") == ticks("r", 1, 40)
    await stored.append(ticks("r", 41, 41))
    assert not pruning.done()
    go_on.set()
    assert await pruning == 30
    assert await stored.read("r", 30) == ticks("r", 31, 41)


# Other processes.


def python(code: str, *arguments: object, timeout: float = 40) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=timeout, check=False)


VISIT = """
import asyncio, sys
from agents_progress.journal.sqlite import SQLiteJournal
from agents_progress.testing.contract.logs import ticks, whole

async def main():
    journal = SQLiteJournal(sys.argv[1])
    await journal.append(ticks("visitor", int(sys.argv[2]), int(sys.argv[2])))
    print(len(await whole(journal, "r")))
    await journal.close()

asyncio.run(main())
"""


async def test_a_process_that_comes_and_goes_takes_nothing_from_one_that_stays(
    path: Path, stored: SQLiteJournal
) -> None:
    # Were the locks of the one that stays not in force, the visitor would take itself for the last to close, and remove
    # the write-ahead log under the hands of the other.
    await stored.append(ticks("r", 1, 1))
    assert await whole(stored, "r") == ticks("r", 1, 1)  # a second connection of this process
    lease = await stored.lease("leased", 60)
    assert stored.renew([lease], 60) == []  # and a third
    for n in range(1, 4):
        done = await asyncio.to_thread(python, VISIT, path, n)
        assert (done.stdout.strip(), done.stderr) == (str(n), "")
        assert await whole(stored, "visitor") == ticks("visitor", 1, n)
        await stored.append(ticks("r", n + 1, n + 1))
    await stored.close()
    again = SQLiteJournal(path)
    assert await whole(again, "r") == ticks("r", 1, 4)
    assert await whole(again, "visitor") == ticks("visitor", 1, 3)
    await again.close()


FORK = """
import asyncio, os, sys
from agents_progress.journal.sqlite import SQLiteJournal
from agents_progress.testing.contract.logs import ticks

path, used_before = sys.argv[1], sys.argv[2] == "used"
journal = SQLiteJournal(path)

async def write(run_id, first, last):
    for seq in range(first, last + 1):
        await journal.append(ticks(run_id, seq, seq))

if used_before:
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
asyncio.run(write("parent", 11 if used_before else 1, 30))
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
asyncio.run(write("parent", 31, 40))
asyncio.run(journal.close())
print(codes)
"""


@pytest.mark.parametrize("when", ["named", "used"])
async def test_a_journal_may_be_named_or_used_before_a_fork(path: Path, stored: SQLiteJournal, when: str) -> None:
    done = await asyncio.to_thread(python, FORK, path, when)
    assert (done.stdout.strip(), done.returncode) == ("[0, 0, 0]", 0), done.stderr
    assert await whole(stored, "parent") == ticks("parent", 1, 40)
    for n in range(3):
        assert await whole(stored, f"child-{n}") == ticks(f"child-{n}", 1, 20)


WRITER = """
import asyncio, sys
from agents_progress.journal.sqlite import SQLiteJournal
from agents_progress.testing.contract.logs import ticks

async def write(journal, run_id):
    seq = 1
    while True:
        await journal.append(ticks(run_id, seq, seq + seq % 5))
        seq += seq % 5 + 1
        print(run_id, seq - 1, flush=True)

async def main():
    journal = SQLiteJournal(sys.argv[1])
    await asyncio.gather(*(write(journal, f"{sys.argv[2]}-{n}") for n in range(3)))

asyncio.run(main())
"""


async def test_a_writer_that_is_killed_leaves_contiguous_logs_with_all_it_was_told_is_stored(
    path: Path, stored: SQLiteJournal
) -> None:
    for attempt, lines in enumerate((1, 4, 17, 58, 131)):
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", WRITER, str(path), f"k{attempt}", cwd=ROOT, stdout=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        told: dict[str, int] = {}
        for _ in range(lines):
            run_id, seq = (await process.stdout.readline()).split()
            told[run_id.decode()] = int(seq)
        process.send_signal(signal.SIGKILL)
        rest = await process.stdout.read()
        await process.wait()
        for line in rest.splitlines():
            if len(line.split()) == 2 and line in rest.split(b"\n")[:-1]:
                run_id, seq = line.split()
                told[run_id.decode()] = int(seq)
        for run_id, seq in told.items():
            log = await whole(stored, run_id)
            assert log == ticks(run_id, 1, len(log))
            assert len(log) >= seq
            assert _status(run_id, log) == "running"
            await stored.append(ticks(run_id, len(log) + 1, len(log) + 2))
    rows = {row.run_id: row.seq for row in await stored.runs()}
    for run_id, seq in rows.items():
        assert len(await whole(stored, run_id)) == seq


def _status(run_id: str, log: list[Envelope]) -> str:
    view = RunView(run_id)
    for step in log:
        view.feed(step)
    return view.status
