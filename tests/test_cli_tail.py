"""``tail``: a run of a journal or a server is followed over restarts of either, and leaving it leaves the run."""

from __future__ import annotations

import asyncio
import signal
import subprocess
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from agents_progress import cli
from agents_progress.client import pace
from agents_progress.errors import JournalUnavailable
from agents_progress.events import Envelope
from agents_progress.journal import Journal, open_journal
from agents_progress.journal.sqlite import SQLiteJournal
from agents_progress.messages import MESSAGES
from agents_progress.view import RunView
from tests.commands import Command, Printed, child, refused
from tests.feed_server import FEED, Asked, frames, head, honest, in_turn, row, serving, snapshot_frame, story, view_of
from tests.logs import Log

LOG = story(words=2)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pace, "FIRST_WAIT_S", 0.001)
    monkeypatch.setattr(cli.followed, "LOOK_S", 0.01)


async def told(command: Command, *arguments: str) -> Printed:
    """What ``tail`` prints, in a thread beside a server or a writer in this loop; no failing test waits for it."""
    loop = asyncio.get_running_loop()
    printed: asyncio.Future[Printed] = loop.create_future()

    def run() -> None:
        found = command("tail", *arguments)
        with suppress(RuntimeError):  # the test is over
            loop.call_soon_threadsafe(printed.set_result, found)

    Thread(target=run, daemon=True).start()
    return await printed


# From a server.


async def test_a_run_of_a_server_is_shown_to_its_end(command: Command) -> None:
    async def live(asked: Asked) -> None:
        if asked.cursor == len(LOG):
            await asked.answer(204)
        else:
            await asked.send(head(200, FEED), snapshot_frame(view_of(LOG[:1])), frames(LOG[1:]))

    async with serving(live) as server:
        printed = await told(command, f"{server.url}/runs/run-1")
    assert printed.code == 0 and printed.err == ""
    assert printed.rows == [
        "run-1 · Clerk",
        f"running     {MESSAGES['running']['en']}",
        "> requested: look",
        "> running: look",
        "- returned: look",
        f"checking    {MESSAGES['checking']['en']}",
        f"done        {MESSAGES['done']['en']}",
        "Check: equals",
        "Answer:",
        "  Inspection ready: 2 items 巡检✓",
    ]


@pytest.mark.parametrize(
    ("log", "code"),
    [
        (story(), 0),
        (Log("run-1").start().end().envelopes, 1),  # succeeded, and nobody checked it
        (Log("run-1").start().end().check(ok=False).envelopes, 1),
        (story(outcome="failed"), 1),
        (story(outcome="cancelled"), 1),
        (story(outcome="paused"), 1),
        (Log("run-1").start().say("run.lost", reason="lease_expired").envelopes, 1),
    ],
    ids=["done", "checking", "rejected", "failed", "cancelled", "waiting", "unknown"],
)
async def test_only_done_is_fine_for_the_shell(command: Command, log: list[Envelope], code: int) -> None:
    async with serving(honest(log)) as server:
        printed = await told(command, f"{server.url}/runs/run-1")
    assert (printed.code, printed.err) == (code, "")
    assert MESSAGES[view_of(log).status]["en"] in printed.out


async def test_a_tail_survives_a_restart_of_the_server(command: Command) -> None:
    begun, held = asyncio.Event(), asyncio.Event()

    async def first(asked: Asked) -> None:
        await asked.send(head(200, FEED), snapshot_frame(view_of(LOG[:2])), frames(LOG[2:4]))
        begun.set()
        await held.wait()

    async with serving(first) as server:
        tailing = asyncio.create_task(told(command, f"{server.url}/runs/run-1"))
        await begun.wait()
    async with serving(honest(LOG), int(server.url.rpartition(":")[2])) as again:
        printed = await tailing
    assert printed.code == 0 and printed.rows[-1].endswith("巡检✓")
    assert again.cursors == [4, len(LOG)]


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://me:hunter2@127.0.0.1/runs/run-1", "header of its own"),
        ("http://127.0.0.1/runs/run-1?token=hunter2", "header of its own"),
        ("http://127.0.0.1/runs/run-1#hunter2", "header of its own"),
        ("http://127.0.0.1/", "no address of a run"),
        ("http://127.0.0.1/runs/", "no address of a run"),
        ("http://127.0.0.1/runs/a/b", "a run id is"),
        ("http://127.0.0.1/runs/..", "a run id is"),
        ("ftp://127.0.0.1/runs/run-1", "no address of a server"),
        ("http:///runs/run-1", "no address of a server"),
    ],
)
def test_an_address_that_is_none_or_holds_a_secret_gets_one_sentence(command: Command, url: str, words: str) -> None:
    printed = command("tail", url)
    refused(printed, words)
    assert "hunter2" not in printed.err


def test_nobody_is_asked_for_answers_without_a_terminal(command: Command) -> None:
    refused(command("tail", "run-1", "--answer"), "--answer asks a person")


async def test_a_run_that_the_server_refuses_gets_its_sentence(command: Command) -> None:
    async with serving(lambda asked: asked.refuse(404, "not_found", "There is no such run\x1b[2J")) as server:
        printed = await told(command, f"{server.url}/runs/run-1")
    refused(printed, r"There is no such run\\x1b\[2J \(404 not_found\)")


async def test_a_run_that_can_no_longer_be_read_is_left_as_unknown(command: Command) -> None:
    begun = in_turn(honest(LOG[:4]), lambda asked: asked.refuse(401, "unauthenticated", "Say who you are"))
    async with serving(begun) as server:
        printed = await told(command, f"{server.url}/runs/run-1")
    assert printed.code == 2 and "Say who you are" in printed.err
    assert f"unknown     {MESSAGES['unknown']['en']}" in printed.rows


async def test_the_token_comes_from_a_file_or_the_environment_and_is_printed_nowhere(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("tok-file\n")
    async with serving(honest(LOG)) as server:
        url = f"{server.url}/runs/run-1"
        printed = [await told(command, url)]
        monkeypatch.setenv("AGENTS_PROGRESS_TOKEN", "tok-variable")
        printed += [await told(command, url), await told(command, url, "--token-file", "token")]
    assert [asked.headers.get("authorization") for asked in server.asked] == [
        *[None] * 2,
        *["Bearer tok-variable"] * 2,
        *["Bearer tok-file"] * 2,
    ]
    assert all(told.code == 0 and "tok-" not in told.out + told.err for told in printed)


@pytest.mark.parametrize("content", ["", " \n", "two words", "é"])
def test_a_token_file_without_a_token_gets_one_sentence(command: Command, tmp_path: Path, content: str) -> None:
    (tmp_path / "token").write_text(content, encoding="utf-8")
    refused(command("tail", "http://127.0.0.1:1/runs/run-1", "--token-file", "token"), "a token or key is")
    refused(command("tail", "http://127.0.0.1:1/runs/run-1", "--token-file", "none"), "No such file")


async def test_the_run_that_goes_on_after_a_pause_is_followed_when_that_is_asked_for(command: Command) -> None:
    paused, later = story(outcome="paused"), Log("run-1.2").start(resumed_from="run-1").end().check().envelopes
    answers = {
        "/runs/run-1/events": honest(paused),
        "/runs/run-1": lambda asked: asked.answer(200, row(status="waiting", continued_as="run-1.2")),
        "/runs/run-1.2/events": honest(later),
    }
    async with serving(lambda asked: answers[asked.path](asked)) as server:
        alone = await told(command, f"{server.url}/runs/run-1")
        both = await told(command, f"{server.url}/runs/run-1", "--continued")
    assert (alone.code, both.code) == (1, 0)
    assert both.rows[: len(alone.rows)] == alone.rows
    assert both.rows[len(alone.rows)].startswith("run-1.2")


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    with child(*arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


async def test_an_interrupted_tail_leaves_and_says_nothing_of_an_end() -> None:
    async def quiet(asked: Asked) -> None:
        await asked.send(head(200, FEED), snapshot_frame(view_of(LOG[:3])))
        await asyncio.Event().wait()

    async with serving(quiet) as server:
        with running("tail", f"{server.url}/runs/run-1") as process:
            assert process.stdout is not None
            first = await asyncio.to_thread(process.stdout.readline)
            second = await asyncio.to_thread(process.stdout.readline)
            process.send_signal(signal.SIGINT)
            out, err = await asyncio.to_thread(process.communicate, timeout=30)
    assert (process.returncode, err) == (130, b"")
    assert first == b"run-1 \xc2\xb7 Clerk\n" and second.startswith(b"running")
    assert b"unknown" not in out


async def test_a_tail_whose_output_was_closed_ends_with_one_sentence() -> None:
    async def endless(asked: Asked) -> None:
        log = Log("run-1").start()
        await asked.send(head(200, FEED), snapshot_frame(view_of(log.envelopes)))
        while True:
            number = len(log.envelopes)
            log.request(f"c{number}")
            await asked.send(frames(log.envelopes[-1:]))
            await asyncio.sleep(0.001)

    async with serving(endless) as server:
        with running("tail", f"{server.url}/runs/run-1") as process:
            assert process.stdout is not None and process.stderr is not None
            await asyncio.to_thread(process.stdout.readline)
            process.stdout.close()
            err = await asyncio.to_thread(process.stderr.read)
            await asyncio.to_thread(process.wait, 30)
    assert process.returncode == 2
    assert err.decode().splitlines() == ["agents-progress: the output was closed before everything was written"]


# From a journal.


@asynccontextmanager
async def written(path: Path) -> Any:
    journal = open_journal(f"sqlite:///{path}/runs.db")
    await journal.runs()
    try:
        yield journal, ("--journal", f"sqlite:///{path}/runs.db")
    finally:
        await journal.close()


async def until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(30):
        while not await holds():
            await asyncio.sleep(0.01)


async def test_a_run_of_a_journal_is_followed_while_it_is_written(command: Command, tmp_path: Path) -> None:
    async with written(tmp_path) as (journal, option):
        await journal.append(LOG[:2])
        tailing = asyncio.create_task(told(command, "run-1", *option))

        async def read() -> bool:
            row = await journal.run("run-1")
            return row is not None and row.unread_s is not None

        await until(read)  # tail says that somebody reads the run
        for envelope in LOG[2:]:
            await journal.append([envelope])
        await journal.seal("run-1")
        printed = await tailing
    assert (printed.code, printed.err) == (0, "")
    assert printed.rows[-1].endswith("巡检✓")


async def test_a_run_that_is_over_is_shown_and_left(command: Command, tmp_path: Path) -> None:
    async with written(tmp_path) as (journal, option):
        await journal.append(story(outcome="failed"))
        await journal.seal("run-1")
        printed = await told(command, "run-1", *option, "--language", "zh")
    assert printed.code == 1 and f"failed      {MESSAGES['failed']['zh']}" in printed.rows


async def test_a_run_whose_owner_is_gone_is_not_waited_for(command: Command, tmp_path: Path) -> None:
    async with written(tmp_path) as (journal, option):
        await journal.append(LOG[:2], lease=await journal.lease("run-1", 0.5))
        printed = await told(command, "run-1", *option)
    assert printed.code == 1
    assert printed.rows[1].startswith("running") and f"unknown     {MESSAGES['unknown']['en']}" in printed.rows


async def test_a_pruned_run_is_tailed_from_its_snapshot(command: Command, tmp_path: Path) -> None:
    async with written(tmp_path) as (journal, option):
        await journal.append(LOG)
        await journal.seal("run-1")
        await journal.prune("run-1", len(LOG))
        printed = await told(command, "run-1", *option)
    assert printed.code == 0 and printed.rows[-1].endswith("巡检✓")


async def test_a_tail_of_a_journal_goes_on_with_the_run_that_continues_a_paused_one(
    command: Command, tmp_path: Path
) -> None:
    async with written(tmp_path) as (journal, option):
        await journal.append(story(outcome="paused"))
        await journal.seal("run-1")
        tailing = asyncio.create_task(told(command, "run-1", *option, "--continued"))
        later = Log("run-1.2").start(resumed_from="run-1").end().check().envelopes
        await journal.append(later)
        await journal.seal("run-1.2")
        printed = await tailing
    assert printed.code == 0
    assert [line for line in printed.rows if line.startswith("run-1")] == ["run-1 · Clerk", "run-1.2 · Clerk"]


async def test_a_journal_that_goes_away_while_an_answer_is_waited_for_ends_no_tail(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, faults = cli.followed.continuation, 2

    async def shaky(journal: Journal, view: RunView) -> Any:
        nonlocal faults
        if faults:
            faults -= 1
            raise JournalUnavailable("away")
        return await real(journal, view)

    monkeypatch.setattr(cli.followed, "continuation", shaky)
    async with written(tmp_path) as (journal, option):
        await journal.append(story(outcome="paused"))
        await journal.seal("run-1")
        await journal.append(Log("run-1.2").start(resumed_from="run-1").end().check().envelopes)
        await journal.seal("run-1.2")
        printed = await told(command, "run-1", *option, "--continued")
    assert (printed.code, faults) == (0, 0)


@pytest.mark.parametrize("run_id", ["nope", "", "x" * 65, "a\x1b[31m"])
async def test_a_run_that_no_journal_holds_gets_one_sentence(command: Command, tmp_path: Path, run_id: str) -> None:
    async with written(tmp_path) as (_, option):
        refused(await told(command, run_id, *option), "holds no run")


async def test_a_journal_that_goes_away_for_a_while_loses_no_tail(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, faults = SQLiteJournal.tail, 3

    async def shaky(self: SQLiteJournal, run_id: str, after_seq: int = 0, **more: Any) -> Any:
        nonlocal faults
        async for envelope in real(self, run_id, after_seq, **more):
            yield envelope
            if faults:
                faults -= 1
                raise JournalUnavailable("away")

    monkeypatch.setattr(SQLiteJournal, "tail", shaky)
    monkeypatch.setattr(cli.followed, "stored_view", begun)
    async with written(tmp_path) as (journal, option):
        await journal.append(LOG)
        await journal.seal("run-1")
        printed = await told(command, "run-1", *option)
        assert printed.code == 0 and faults == 0
        monkeypatch.setattr(cli.followed, "PATIENCE_S", -1.0)
        faults = 1
        given_up = await told(command, "run-1", *option)
    assert given_up.code == 2 and "away" in given_up.err
    assert f"unknown     {MESSAGES['unknown']['en']}" in given_up.rows


async def begun(journal: Journal, run_id: str, language: Any) -> Any:
    return view_of(LOG[:1])
