"""Both embedded journals keep the whole contract, and URLs open the backend they name."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agents_progress.errors import UnknownJournalURL
from agents_progress.journal import Journal, MemoryJournal, open_journal
from agents_progress.journal.sqlite import SQLiteJournal
from agents_progress.testing.journal_contract import JournalContract
from tests.logs import OUTPUT, Log


class TestMemoryJournal(JournalContract):
    @pytest.fixture
    def journal(self) -> Journal:
        return MemoryJournal()

    @pytest.fixture
    def reopened(self, journal: Journal) -> Journal:
        return journal


class TestSQLiteJournal(JournalContract):
    @pytest.fixture
    async def journal(self, tmp_path: Path) -> AsyncIterator[Journal]:
        journal = SQLiteJournal(tmp_path / "runs.db")
        yield journal
        await journal.close()

    @pytest.fixture
    async def reopened(self, tmp_path: Path) -> AsyncIterator[Journal]:
        journal = SQLiteJournal(tmp_path / "runs.db")
        yield journal
        await journal.close()


def test_every_backend_runs_the_whole_contract() -> None:
    tests = [name for name in dir(JournalContract) if name.startswith("test_")]
    assert len(tests) >= 120
    for backend in (TestMemoryJournal, TestSQLiteJournal):
        assert [name for name in vars(backend) if name.startswith("test_")] == []
        assert issubclass(backend, JournalContract)


@pytest.mark.parametrize(
    "url", ["", "runs.db", "mysql://x/y", "sqlite://", "sqlite:///", "sqlite://host/x.db", "memory://x/y"]
)
def test_an_unknown_url_is_refused_and_says_which_are_known(url: str) -> None:
    with pytest.raises(UnknownJournalURL, match="sqlite:///FILE"):
        open_journal(url)


async def test_urls_open_the_backend_they_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert isinstance(open_journal("memory://"), MemoryJournal)
    for url, file in (("sqlite:///a.db", tmp_path / "a.db"), (f"sqlite:///{tmp_path}/b.db", tmp_path / "b.db")):
        journal = open_journal(url)
        assert not file.exists()
        await journal.append(Log("r").start().end(final_output=OUTPUT).envelopes)
        await journal.close()
        assert file.exists()
