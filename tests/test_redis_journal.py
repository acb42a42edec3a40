"""The Redis journal: the contract on a real server, and what only a server can do to it."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import time
import traceback
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import redis
from bars.servers import Missing
from bars.servers import Redis as OwnRedis

from agents_progress.errors import (
    AppendConflict,
    Fenced,
    JournalClosed,
    JournalError,
    JournalExtraMissing,
    JournalUnavailable,
    JournalUnreadable,
    LeaseHeld,
    RunErased,
    UnknownJournalURL,
)
from agents_progress.events import Envelope
from agents_progress.journal import Origin, open_journal, redis_control
from agents_progress.journal import redis_connections as connections
from agents_progress.journal.base import Lease, Request, Scope
from agents_progress.journal.redis import RedisJournal
from agents_progress.journal.redis_scripts import Script
from agents_progress.journal.redis_writer import Batch

from agents_progress.testing.journal_contract import JournalContract  # isort: skip - it prepares the chapters it imports
from agents_progress.standing import Standing
from agents_progress.testing.contract.logs import envelope, followed, started, story, ticks, viewed, whole
from tests.older import redis_append, redis_erase

ROOT = Path(__file__).parent.parent
URL = os.environ.get("AGENTS_PROGRESS_TEST_REDIS", "redis://127.0.0.1:6379/9")


@pytest.fixture
def server() -> Iterator[redis.Redis]:
    client = redis.Redis.from_url(URL)
    try:
        client.ping()
    except redis.ConnectionError:
        pytest.skip(f"no Redis server answers at {URL.rpartition('@')[2]}")
    yield client
    client.close()


@pytest.fixture
def prefix(server: redis.Redis) -> Iterator[str]:
    name = f"test-{secrets.token_hex(6)}"
    yield name
    for key in server.scan_iter(f"{name}:*", count=1000):
        server.delete(key)


@pytest.fixture
async def journal(prefix: str) -> AsyncIterator[RedisJournal]:
    journal = RedisJournal(URL, prefix=prefix)
    yield journal
    await journal.close()


@pytest.fixture
async def reopened(prefix: str) -> AsyncIterator[RedisJournal]:
    journal = RedisJournal(URL, prefix=prefix)
    yield journal
    await journal.close()


class TestRedis(JournalContract):
    pass


# Closing.


async def test_a_question_that_is_never_answered_does_not_keep_a_journal_from_closing(
    prefix: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "CLOSE_S", 0.1)
    journal = RedisJournal(URL, prefix=prefix)
    await journal.runs()
    asked = journal._opened().connections.ask(lambda: asyncio.Event().wait())
    await journal.close()
    with pytest.raises(JournalUnavailable, match="closed before it answered"):
        await asyncio.wrap_future(asked)


# Opening.


async def refused(journal: RedisJournal, kind: type[JournalError], words: str) -> str:
    said = []
    for call in (journal.read("r"), journal.runs(), journal.append(ticks("r", 1, 1)), journal.lease("r", 1)):
        with pytest.raises(kind, match=words) as caught:
            await call
        said.append("".join(traceback.format_exception(caught.value)))
    await journal.close()
    return "".join(said)


async def test_urls_open_it(prefix: str) -> None:
    for url in ("redis://127.0.0.1:6379/9", "rediss://127.0.0.1:6379/9", "redis://127.0.0.1"):
        journal = open_journal(url)
        assert isinstance(journal, RedisJournal)
        await journal.close()


def test_the_extra_is_named_when_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("agents_progress.journal.redis")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.partition(".")[0] == "redis"]:
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(JournalExtraMissing, match=r"agents-progress\[redis\]"):
        open_journal(URL)


async def test_a_server_that_may_evict_is_refused(prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = connections.Redis.execute_command

    async def evicting(client: object, *command: object, **options: object) -> object:
        answer = await ask(client, *command, **options)
        return {**answer, "maxmemory_policy": policy} if command == ("INFO", "memory") else answer

    monkeypatch.setattr(connections.Redis, "execute_command", evicting)
    journal = RedisJournal(URL, prefix=prefix)
    for policy in ("allkeys-lru", "volatile-ttl"):
        with pytest.raises(JournalUnavailable, match=f"{policy}.*set maxmemory-policy to noeviction"):
            await journal.append(ticks("r", 1, 1))
    policy = "noeviction"
    await journal.append(ticks("r", 1, 1))
    await journal.close()


@pytest.mark.parametrize("version", ["agents-progress/1 99", "agents-progress/2 1", "what"])
async def test_another_version_is_refused_and_left_alone(server: redis.Redis, prefix: str, version: str) -> None:
    server.set(f"{prefix}:version", version)
    said = await refused(RedisJournal(URL, prefix=prefix), JournalUnreadable, "this release reads")
    assert version.split(maxsplit=1)[0] in said
    assert server.get(f"{prefix}:version") == version.encode()
    assert len(list(server.scan_iter(f"{prefix}:*"))) == 1


async def test_the_release_before_works_on_beside_this_one(
    server: redis.Redis, prefix: str, journal: RedisJournal
) -> None:
    server.set(f"{prefix}:version", "agents-progress/1 1")
    log = [started("r"), *ticks("r", 2, 6)]
    redis_append(server, prefix, log[:2])
    row = await journal.run("r")
    assert row is not None
    assert (row.seq, row.status, row.origin.owner) == (2, "running", "mei")
    assert (row.sealed, row.generation) == (False, 0)
    assert (row.silent_s, row.unread_s, row.lease_left_s) == (None, None, None)
    for n in (2, 4):
        await journal.append(log[n : n + 1])
        row = await journal.run("r")
        assert row is not None
        assert row.silent_s is not None
        redis_append(server, prefix, log[: n + 2])
        row = await journal.run("r")
        assert row is not None
        assert (row.seq, row.silent_s) == (n + 2, None)  # and not what was true of an earlier envelope
        assert row.glance is None
    assert await whole(journal, "r") == log
    assert server.get(f"{prefix}:version") == b"agents-progress/1 1"


async def test_the_release_before_erases_requests_that_it_does_not_know(
    server: redis.Redis, prefix: str, journal: RedisJournal
) -> None:
    await journal.append([started("r")])
    await journal.ask(Request("r", "cancel", {"reason": "secret"}))
    redis_erase(server, prefix, "r")
    with pytest.raises(RunErased):
        await journal.ask(Request("r", "cancel", {}))
    assert await journal.requests(["r"]) == []
    assert server.hgetall(f"{prefix}:{{r}}:run") == {b"erased": b"1"}


async def test_a_journal_that_may_not_be_made_must_be_there(server: redis.Redis, prefix: str) -> None:
    await refused(RedisJournal(URL, prefix=prefix, create=False), JournalUnreadable, "there is no journal")
    assert not list(server.scan_iter(f"{prefix}:*"))
    maker, reader = RedisJournal(URL, prefix=prefix), RedisJournal(URL, prefix=prefix, create=False)
    await maker.append(ticks("r", 1, 3))
    assert await whole(reader, "r") == ticks("r", 1, 3)
    await maker.close()
    await reader.close()


@pytest.mark.parametrize("url", ["redis://me:s3cret@127.0.0.1:1/0", "redis://127.0.0.1:1/0?password=s3cret", None])
async def test_a_password_is_never_said(
    prefix: str, url: str | None, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(connections, "RETRIES", 0)
    parts = urlsplit(URL)
    journal = RedisJournal(url or f"redis://nobody:s3cret@{parts.hostname}:{parts.port}{parts.path}", prefix=prefix)
    caplog.set_level(0)
    said = await refused(journal, JournalUnavailable, "cannot be used now")
    assert "s3cret" not in said + repr(journal) + repr(vars(journal)) + caplog.text


@pytest.mark.parametrize(
    "url",
    [
        "redis://me:s3cret/x@h",
        "redis://me:s3#cret@h",
        "redis://me:12/s3cret@h",
        "redis://me:12#s3cret@h:1/0",
        "redis://h/0?s3cret=1",
        "redis://h:s3cret",
        "redis://h/s3cret",
    ],
)
def test_a_url_that_cannot_be_read_is_not_repeated(url: str) -> None:
    with pytest.raises(UnknownJournalURL, match="percent-encoded") as caught:
        open_journal(url)
    assert "s3" not in "".join(traceback.format_exception_only(caught.value))


# Faults.


async def test_keys_of_another_kind_are_an_error_and_stay(
    server: redis.Redis, prefix: str, journal: RedisJournal
) -> None:
    server.set(f"{prefix}:{{r}}:run", "mine")
    for call in (journal.append(ticks("r", 1, 1)), journal.read("r"), journal.lease("r", 1)):
        with pytest.raises(JournalUnreadable, match="another prefix"):
            await call
    await journal.append(ticks("s", 1, 1))
    assert server.get(f"{prefix}:{{r}}:run") == b"mine"


async def test_envelopes_that_are_missing_or_damaged_are_never_passed_over(
    server: redis.Redis, prefix: str, journal: RedisJournal
) -> None:
    await journal.append(ticks("r", 1, 9))
    server.xdel(f"{prefix}:{{r}}:log", "9-0")
    with pytest.raises(JournalUnreadable, match="damaged"):
        await journal.prune("r", 9)
    server.xtrim(f"{prefix}:{{r}}:log", minid="4-0", approximate=False)
    for read in (whole(journal, "r"), followed(journal.tail("r", 2))):
        with pytest.raises(JournalUnreadable, match="are missing"):
            await read
    await journal.append(ticks("s", 1, 1))
    server.xadd(f"{prefix}:{{s}}:log", {"e": b"{}"}, "2-0")
    server.hset(f"{prefix}:{{s}}:run", "head", 2)
    with pytest.raises(JournalUnreadable, match="damaged"):
        await whole(journal, "s")


async def test_a_server_that_forgot_its_scripts_is_told_them_again(server: redis.Redis, journal: RedisJournal) -> None:
    await journal.append(ticks("r", 1, 1))
    for seq in range(2, 5):
        server.script_flush()
        await asyncio.gather(journal.append(ticks("r", seq, seq)), *(journal.append(ticks(f"s{seq}", 1, 1)),))
    assert await whole(journal, "r") == ticks("r", 1, 4)


def kill_all(server: redis.Redis) -> int:
    """Cut every connection to this database but the one that asks."""
    own = server.client_id()
    database = str(server.connection_pool.connection_kwargs.get("db", 0))
    ids = [line["id"] for line in server.client_list() if line["db"] == database and int(line["id"]) != own]
    return sum(server.execute_command("CLIENT KILL", "ID", one) for one in ids)


async def cutting(server: redis.Redis, over: asyncio.Event) -> int:
    cut = 0
    while not over.is_set():
        cut += await asyncio.to_thread(kill_all, server)
        await asyncio.sleep(0.05)
    return cut


async def written(journal: RedisJournal, log: list[Envelope]) -> None:
    done = 0
    while done < len(log):
        batch = log[done : done + 1 + done % 7]
        try:
            await journal.append(batch, claim=done == 0)
        except JournalUnavailable:
            continue
        done += len(batch)
    await journal.seal(log[0].run_id)


async def resumed(journal: RedisJournal, run_id: str, count: int) -> list[Envelope]:
    given: list[Envelope] = []
    while len(given) < count:
        try:
            async for step in journal.tail(run_id, len(given)):
                given.append(step)
        except JournalUnavailable:
            continue
    return given


async def test_connections_that_are_cut_tear_and_double_nothing(
    server: redis.Redis, journal: RedisJournal, reopened: RedisJournal
) -> None:
    logs = [ticks(f"r{n}", 1, 600) for n in range(4)]
    over = asyncio.Event()
    cutter = asyncio.ensure_future(cutting(server, over))
    tails = [asyncio.ensure_future(resumed(reopened, log[0].run_id, len(log))) for log in logs]
    async with asyncio.timeout(40):
        await asyncio.gather(*(written(journal, log) for log in logs))
        assert await asyncio.gather(*tails) == logs
    over.set()
    assert await cutter > 4
    for log in logs:
        assert await whole(journal, log[0].run_id) == log
    assert {row.run_id: row.seq for row in await reopened.runs()} == {log[0].run_id: 600 for log in logs}


async def test_a_tail_that_waits_survives_a_cut(
    server: redis.Redis, journal: RedisJournal, reopened: RedisJournal
) -> None:
    tail = asyncio.ensure_future(followed(reopened.tail("r")))
    await journal.append(ticks("r", 1, 1))
    for seq in range(2, 5):
        await asyncio.sleep(0.15)
        kill_all(server)
        await journal.append(ticks("r", seq, seq))
    await journal.seal("r")
    assert await tail == ticks("r", 1, 4)


async def test_a_claim_that_is_sent_again_knows_itself(journal: RedisJournal) -> None:
    opened = journal._opened()
    batch = Batch(ticks("r", 1, 2), Origin(), claim=True)
    await journal._write(opened, batch)
    again = Batch(ticks("r", 1, 2), Origin(), claim=True)
    again.token = batch.token
    await journal._write(opened, again)
    with pytest.raises(AppendConflict):
        await journal.append(ticks("r", 1, 2), claim=True)


@asynccontextmanager
async def owning(journal: RedisJournal, run_id: str) -> AsyncIterator[asyncio.Queue[Request]]:
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


async def test_an_owner_is_asked_again_after_an_outage(
    server: redis.Redis, journal: RedisJournal, reopened: RedisJournal
) -> None:
    await reopened.append([started("r")])
    async with owning(journal, "r") as given:
        for n in range(4):
            request = await reopened.ask(Request("r", f"k{n}", {}))
            assert await asyncio.wait_for(given.get(), 20) == request
            kill_all(server)


async def test_a_request_is_found_although_nobody_rang(
    server: redis.Redis, prefix: str, journal: RedisJournal, reopened: RedisJournal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(redis_control, "RING", Script("return 1", "0" * 40))
    await reopened.append([started("r")])
    async with owning(journal, "r") as given:
        for n in range(2):
            with pytest.raises(JournalUnavailable):
                await reopened.ask(Request("r", f"k{n}", {}))
            assert (await asyncio.wait_for(given.get(), 20)).key == f"k{n}"


async def test_requests_are_heard_of_at_once(journal: RedisJournal, reopened: RedisJournal) -> None:
    await reopened.append([started("r")])
    took = []
    async with owning(journal, "r") as given:
        for n in range(15):
            since = time.monotonic()
            request = await reopened.ask(Request("r", f"k{n}", {}))
            assert await asyncio.wait_for(given.get(), 20) == request
            took.append(time.monotonic() - since)
    assert sorted(took)[7] < 0.3


async def test_the_bell_of_requests_is_one_entry_for_all_time(
    server: redis.Redis, prefix: str, journal: RedisJournal
) -> None:
    await journal.append([started("r")])
    for n in range(5):
        await journal.ask(Request("r", f"k{n}", {}))
    assert server.xlen(f"{prefix}:asked") == 1


# Beyond the contract.


async def test_a_reader_that_is_cancelled_leaves_no_answer_to_the_next(journal: RedisJournal) -> None:
    logs = {f"r{n}": ticks(f"r{n}", 1, 5, of=n) for n in range(10)}
    for log in logs.values():
        await journal.append(log)
    for turn in range(60):
        reads = {name: asyncio.ensure_future(journal.read(name)) for name in logs}
        await asyncio.sleep(turn % 12 / 5000)
        for name in list(logs)[turn % 3 :: 3]:
            reads[name].cancel()
        for name, answer in zip(reads, await asyncio.gather(*reads.values(), return_exceptions=True), strict=True):
            assert isinstance(answer, asyncio.CancelledError) or answer == logs[name]


async def test_closing_answers_everybody_who_asked(prefix: str) -> None:
    for turn in range(20):
        journal = RedisJournal(URL, prefix=prefix)

        def elsewhere(run_id: str, journal: RedisJournal = journal) -> list[object]:
            async def main() -> list[object]:
                asked = [journal.append(ticks(f"{run_id}-{n}", 1, 2)) for n in range(20)]
                return await asyncio.gather(*asked, return_exceptions=True)

            return asyncio.run(main())

        asked = [asyncio.ensure_future(asyncio.to_thread(elsewhere, f"r{turn}-{n}")) for n in range(3)]
        await asyncio.sleep(turn / 2000)
        await journal.close()
        for answers in await asyncio.wait_for(asyncio.gather(*asked), 10):
            assert all(answer is None or isinstance(answer, JournalClosed) for answer in answers)


async def test_the_order_of_keys_is_no_other_content(journal: RedisJournal, reopened: RedisJournal) -> None:
    one, other = ({"a": 1, "b": 2}, {"b": 2, "a": 1})
    await journal.append([envelope(1, "note.n", one, "r"), *ticks("r", 2, 3)])
    await reopened.append([envelope(1, "note.n", other, "r"), *ticks("r", 2, 5)])
    await journal.append([envelope(1, "note.n", other, "r")])
    assert await whole(journal, "r") == [envelope(1, "note.n", one, "r"), *ticks("r", 2, 5)]


async def test_a_large_batch_is_stored_and_followed(journal: RedisJournal, reopened: RedisJournal) -> None:
    tail = asyncio.ensure_future(followed(reopened.tail("r"), 3 * 4096))
    for first in range(1, 3 * 4096, 4096):
        await journal.append(ticks("r", first, first + 4095))
    assert await whole(journal, "r") == ticks("r", 1, 3 * 4096)
    assert await tail == ticks("r", 1, 3 * 4096)


async def test_the_standing_follows_the_log_whoever_writes(journal: RedisJournal, reopened: RedisJournal) -> None:
    log = story("r")
    standing = Standing()
    for n, step in enumerate(log):
        await (journal, reopened)[n % 2].append([step])
        (row,) = await journal.runs()
        standing.observe_all([step])
        assert row.standing == standing


async def test_a_refused_beginning_takes_no_place_in_the_list(journal: RedisJournal) -> None:
    with pytest.raises(Fenced):
        await journal.append([started("late", "t9")], lease=Lease("late", 7), origin=Origin(owner="bo"))
    await journal.append([started("early")])
    assert [row.run_id for row in await journal.runs()] == ["early"]
    await journal.append([started("late")], origin=Origin(owner="mei"))
    assert [row.run_id for row in await journal.runs()] == ["late", "early"]
    assert await journal.runs(task_id="t9") == await journal.runs(scope=Scope(owner="bo")) == []
    assert (await journal.erase(owner="bo")).runs == 0
    assert len(await journal.runs(scope=Scope(owner="mei"))) == 1


async def test_a_long_list_is_walked_in_pages(journal: RedisJournal) -> None:
    runs = [f"r{n:04}" for n in range(1200)]
    await asyncio.gather(*(journal.append([started(name, f"t{name[-1]}")]) for name in runs))
    listed = [row.run_id for row in await journal.runs(limit=2000)]
    assert sorted(listed) == runs
    assert [row.run_id for row in await journal.runs(limit=3)] == listed[:3]
    fives = [row.run_id for row in await journal.runs(task_id="t5", limit=2000)]
    assert fives == [name for name in listed if name.endswith("5")]


async def test_a_lease_that_was_shortened_runs_out_sooner(journal: RedisJournal) -> None:
    lease = await journal.lease("r", 60.0)
    await journal.reserve("s", 60.0)
    await journal.lease("s", 0.1)
    assert journal.renew([lease], 0.1) == []
    assert await journal.expire() == []
    await asyncio.sleep(0.2)
    assert sorted(await journal.expire()) == ["r", "s"]


async def test_a_refusal_names_the_holder_of_the_key_and_not_the_one_who_asks(journal: RedisJournal) -> None:
    lease = await journal.lease("holder", 60.0, exclusive="thread/1")
    with pytest.raises(LeaseHeld, match="run holder is running under 'thread/1'"):
        await journal.lease("asker", 60.0, exclusive="thread/1")
    assert journal.renew([lease], 60.0) == []
    with pytest.raises(LeaseHeld, match="run holder"):
        await journal.lease("asker", 60.0, exclusive="thread/1")


async def test_an_erased_run_leaves_its_id_alone(server: redis.Redis, prefix: str, journal: RedisJournal) -> None:
    await journal.append(story("r"), origin=Origin(owner="mei", tenant="acme", labels={"k": "v"}))
    await journal.keep_snapshot("r", viewed("r", story("r")))
    await journal.prune("r", 3)
    await journal.erase(owner="mei")
    left = {key.decode().removeprefix(prefix) for key in server.scan_iter(f"{prefix}:*")}
    assert left == {":version", ":born", ":{r}:run", ":{r}:log"}
    assert server.hgetall(f"{prefix}:{{r}}:run") == {b"erased": b"1"}


# Other processes.


UNCLOSED = """
import asyncio, sys
from agents_progress.journal.redis import RedisJournal
from agents_progress.testing.contract.logs import ticks

journal = RedisJournal(sys.argv[1], prefix=sys.argv[2])
asyncio.run(journal.append(ticks("r", 1, 3)))
print(journal.renew([], 1))
"""


async def test_a_process_may_end_without_closing(prefix: str) -> None:
    command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", UNCLOSED, URL, prefix]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    assert await asyncio.wait_for(process.communicate(), 20) == (b"[]\n", b"")


FORK = """
import asyncio, os, sys
from agents_progress.journal.redis import RedisJournal
from agents_progress.testing.contract.logs import ticks, followed

url, prefix, used_before = sys.argv[1], sys.argv[2], sys.argv[3] == "used"
journal = RedisJournal(url, prefix=prefix)

async def write(run_id, first, last):
    for seq in range(first, last + 1):
        await journal.append(ticks(run_id, seq, seq))

async def child(run_id):
    await write(run_id, 1, 20)
    await journal.seal(run_id)
    assert await followed(journal.tail(run_id)) == ticks(run_id, 1, 20)
    await journal.close()

if used_before:
    asyncio.run(write("parent", 1, 10))
children = []
for n in range(3):
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            asyncio.run(child(f"child-{n}"))
            code = 0
        finally:
            os._exit(code)
    children.append(pid)
asyncio.run(write("parent", 11 if used_before else 1, 30))
codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in children]
asyncio.run(write("parent", 31, 40))
print(codes)
if used_before:
    asyncio.run(journal.close())
"""


@pytest.mark.parametrize("when", ["named", "used"])
async def test_it_may_be_named_or_used_before_a_fork(journal: RedisJournal, prefix: str, when: str) -> None:
    command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", FORK, URL, prefix, when]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await asyncio.wait_for(process.communicate(), 40)
    assert (out.strip(), err, process.returncode) == (b"[0, 0, 0]", b"", 0)
    assert await whole(journal, "parent") == ticks("parent", 1, 40)
    for n in range(3):
        assert await whole(journal, f"child-{n}") == ticks(f"child-{n}", 1, 20)


def test_a_real_server_with_an_evicting_policy_is_refused_until_it_is_set_right() -> None:
    async def refused_then_taken(url: str, admin: redis.Redis) -> None:
        journal = open_journal(url)
        for call in (journal.append(ticks("r", 1, 1)), journal.read("r"), journal.lease("r", 1.0)):
            with pytest.raises(JournalUnavailable, match=r"allkeys-lru.*set maxmemory-policy to noeviction"):
                await call
        assert admin.dbsize() == 0
        admin.config_set("maxmemory-policy", "noeviction")
        await journal.append(ticks("r", 1, 1))
        assert await whole(journal, "r") == ticks("r", 1, 1)
        await journal.close()

    try:
        with OwnRedis(policy="allkeys-lru") as server, redis.Redis.from_url(server.url) as admin:
            asyncio.run(refused_then_taken(server.url, admin))
    except Missing as missing:
        pytest.skip(str(missing))
