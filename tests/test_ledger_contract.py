"""Every ledger keeps the whole contract, and URLs and journals lead to the ledger that is meant."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents_progress.effects.entry import Busy, Stored
from agents_progress.effects.ledger import Ledger
from agents_progress.effects.ledger.memory import MemoryLedger
from agents_progress.effects.ledger.sqlite import SQLiteLedger
from agents_progress.effects.places import ledger_beside, open_ledger, reactions_beside
from agents_progress.errors import UnknownJournalURL, UsageError
from agents_progress.journal import MemoryJournal, open_journal, sqlite_file
from agents_progress.testing.ledger_contract import LedgerContract, begun, effect
from tests.test_postgres_journal import Store, server, store  # noqa: F401 - fixtures


class TestMemoryLedger(LedgerContract):
    @pytest.fixture
    def ledger(self) -> Iterator[Ledger]:
        ledger = MemoryLedger()
        yield ledger
        ledger.close()

    @pytest.fixture
    def reopened(self, ledger: Ledger) -> Ledger:
        return ledger


class TestSQLiteLedger(LedgerContract):
    @pytest.fixture
    def ledger(self, tmp_path: Path) -> Iterator[Ledger]:
        ledger = SQLiteLedger(tmp_path / "effects.db")
        yield ledger
        ledger.close()

    @pytest.fixture
    def reopened(self, tmp_path: Path) -> Iterator[Ledger]:
        ledger = SQLiteLedger(tmp_path / "effects.db")
        yield ledger
        ledger.close()


class TestPostgresLedger(LedgerContract):
    @pytest.fixture
    def ledger(self, store: Store) -> Iterator[Ledger]:  # noqa: F811
        from agents_progress.effects.ledger.postgres import PostgresLedger

        ledger = PostgresLedger(store.url)
        yield ledger
        ledger.close()

    @pytest.fixture
    def reopened(self, store: Store) -> Iterator[Ledger]:  # noqa: F811
        from agents_progress.effects.ledger.postgres import PostgresLedger

        ledger = PostgresLedger(store.url)
        yield ledger
        ledger.close()


def test_every_backend_runs_the_whole_contract() -> None:
    assert len([name for name in dir(LedgerContract) if name.startswith("test_")]) >= 24
    for backend in (TestMemoryLedger, TestSQLiteLedger, TestPostgresLedger):
        assert [name for name in vars(backend) if name.startswith("test_")] == []
        assert issubclass(backend, LedgerContract)


# Places.


def test_urls_and_journals_lead_to_one_ledger_a_place(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/a.db"
    ledger = open_ledger(url)
    assert isinstance(ledger, SQLiteLedger)
    assert list(tmp_path.iterdir()) == []  # nothing is opened before its first use
    assert open_ledger(url) is ledger is ledger_beside(open_journal(url))
    ledger.close()
    again = open_ledger(url)
    assert again is not ledger
    assert again.entries() == []
    again.close()
    assert isinstance(open_ledger("memory://"), MemoryLedger)
    assert open_ledger("memory://") is open_ledger("memory://")


def test_an_address_on_a_server_leads_to_one_ledger_and_one_store_of_reactions() -> None:
    pytest.importorskip("psycopg", reason="the postgres extra is not installed")
    url = "postgresql://ada@127.0.0.1:1/shop"
    ledger, reactions = open_ledger(url), reactions_beside(open_journal(url))
    assert open_ledger(url) is ledger is ledger_beside(open_journal(url))
    assert reactions_beside(open_journal(url)) is reactions
    assert open_ledger("postgresql://bob@127.0.0.1:1/shop") is not ledger


LEFT_OPEN = """
import sys
from agents_progress.effects.places import open_ledger
assert not open_ledger(sys.argv[1]).exists()
"""


def test_what_the_places_opened_is_closed_at_the_end_of_the_process(store: Store) -> None:  # noqa: F811
    left = subprocess.run(
        [sys.executable, "-W", "error", "-c", LEFT_OPEN, store.url], capture_output=True, text=True, check=True
    )
    assert left.stderr == ""


@pytest.mark.parametrize("url", ["", "effects.db", "mysql://x/y", "sqlite:///"])
def test_an_unknown_url_is_refused(url: str) -> None:
    with pytest.raises(UnknownJournalURL):
        open_ledger(url)


def test_journals_that_cannot_keep_a_ledger_say_which_can() -> None:
    for journal in (MemoryJournal(), open_journal("redis://127.0.0.1:1/0")):
        with pytest.raises(UsageError, match="sqlite:///FILE"):
            ledger_beside(journal)


# What only a file can do.


def test_a_file_is_its_owners_alone_and_a_journal_of_an_older_release_gets_its_tables(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    journal = sqlite_file.connect(str(path), create=True)
    assert path.stat().st_mode & 0o777 == 0o600
    ledger = SQLiteLedger(path)
    ledger.succeed(begun(ledger, effect()), "1")
    assert journal.execute("SELECT count(*) FROM runs").fetchone() == (0,)
    journal.close()
    ledger.close()


def test_a_forked_process_opens_its_own_connections(tmp_path: Path) -> None:
    ledger = SQLiteLedger(tmp_path / "e.db")
    hold = begun(ledger, effect())
    code = f"""
import os, warnings
warnings.simplefilter("ignore")
from agents_progress.effects.ledger.sqlite import SQLiteLedger
from agents_progress.testing.ledger_contract import begun, effect
ledger = SQLiteLedger({str(tmp_path / "f.db")!r})
begun(ledger, effect("before"))
pid = os.fork()
if not pid:
    begun(ledger, effect("child"))
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
print(len(ledger.entries()))
ledger.close()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=50, check=False)
    assert (done.stdout, done.stderr) == ("2\n", "")
    assert ledger.succeed(hold, "1")
    ledger.close()


def test_a_connection_that_was_lost_while_it_idled_is_made_anew(store: Store) -> None:  # noqa: F811
    from agents_progress.effects.ledger.postgres import PostgresLedger

    ledger = PostgresLedger(store.url)
    hold = begun(ledger, effect())
    assert ledger.renew([hold], 60.0) == []
    assert store.kill() >= 2
    assert ledger.renew([hold], 60.0) == []
    assert isinstance(ledger.begin(effect()), Busy)
    assert ledger.exists()
    assert store.kill() >= 3
    assert ledger.exists()
    assert ledger.succeed(hold, "1")
    assert ledger.begin(effect()) == Stored("1")
    ledger.close()
