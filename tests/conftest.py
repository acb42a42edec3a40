"""What every test stands on: no connection leaves the machine, the SDK traces nothing, and a journal in memory."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from agents import set_tracing_disabled

from agents_progress import cli
from agents_progress.journal import MemoryJournal
from agents_progress.testing import no_network
from tests.commands import Command, Printed

set_tracing_disabled(True)
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests were started in the background


@pytest.fixture(autouse=True)
def nothing_leaves_this_machine() -> Iterator[None]:
    with no_network(loopback=True):
        yield


@pytest.fixture
def journal() -> MemoryJournal:
    return MemoryJournal()


@pytest.fixture
def command(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs one command in an empty working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")

    def run(*arguments: str) -> Printed:
        try:
            code = cli.main(arguments)
        except SystemExit as left:
            code = int(str(left.code))
        return Printed(code, *capsys.readouterr())

    return run
