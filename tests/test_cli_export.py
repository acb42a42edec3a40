"""``export``: a log leaves the journal as what ``replay`` reads, whole or not at all."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path

import pytest

from agents_progress import cli
from agents_progress.journal import open_journal
from agents_progress.testing.contract.logs import Log
from tests.commands import Command, child, journal_with, refused
from tests.feed_server import story, view_of

LOG = story()
WIRES = [envelope.to_dict() for envelope in LOG]


@pytest.fixture
def url(tmp_path: Path) -> str:
    other = [envelope.to_dict() for envelope in Log("run-2").start().envelopes]
    return journal_with(tmp_path / "runs.db", WIRES, other)


def pruned(url: str, upto: int) -> None:
    async def prune() -> None:
        journal = open_journal(url)
        await journal.prune("run-1", upto)
        await journal.close()

    asyncio.run(prune())


def test_an_export_holds_one_envelope_a_line_in_ascii(command: Command, url: str) -> None:
    printed = command("export", "run-1", "--journal", url)
    assert (printed.code, printed.err, printed.out.isascii()) == (0, "", True)
    assert [json.loads(line) for line in printed.out.split("\n")[:-1]] == WIRES


def test_a_log_of_many_pages_is_exported_whole(command: Command, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli.stored, "_PAGE", 3)
    assert [json.loads(line) for line in command("export", "run-1", "--journal", url).rows] == WIRES


def test_a_replay_of_an_export_ends_as_the_run_did(command: Command, url: str) -> None:
    assert command("export", "run-1", "--journal", url, "-o", "run.jsonl") == (0, "", "")
    last = command("replay", "run.jsonl").rows[-1]
    assert last.split("  ")[-1] == view_of(LOG).message and "done" in last


def test_an_exported_file_is_private_and_replaces_none(command: Command, url: str, tmp_path: Path) -> None:
    command("export", "run-1", "--journal", url, "--output", "run.jsonl")
    written = (tmp_path / "run.jsonl").read_bytes()
    assert (tmp_path / "run.jsonl").stat().st_mode & 0o777 == 0o600
    refused(command("export", "run-2", "--journal", url, "-o", "run.jsonl"), "File exists: run.jsonl")
    assert (tmp_path / "run.jsonl").read_bytes() == written
    refused(command("export", "run-2", "--journal", url, "-o", "none/run.jsonl"), "No such file or directory")


@pytest.mark.parametrize("upto", [3, len(LOG)])
def test_a_pruned_run_is_refused(command: Command, url: str, upto: int, tmp_path: Path) -> None:
    pruned(url, upto)
    refused(command("export", "run-1", "--journal", url), "pruned; `agents-progress show run-1 --json`")
    refused(command("export", "run-1", "--journal", url, "-o", "run.jsonl"), "pruned")
    assert not (tmp_path / "run.jsonl").exists()


@pytest.mark.parametrize("run_id", ["nope", "", "x" * 65, "a\x1b[31m"])
def test_a_run_that_no_journal_holds_leaves_no_file(command: Command, url: str, run_id: str, tmp_path: Path) -> None:
    refused(command("export", run_id, "--journal", url, "-o", "run.jsonl"), "holds no run")
    assert not (tmp_path / "run.jsonl").exists()


def test_a_closed_pipe_gets_one_sentence(url: str) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with child("export", "run-1", "--journal", url, stdout=writer, stderr=-1) as process:
        os.close(writer)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 2
    assert err.decode().splitlines() == ["agents-progress: the output was closed before everything was written"]
