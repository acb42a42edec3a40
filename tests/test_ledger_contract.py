"""Every ledger keeps the whole contract, and URLs and journals lead to the ledger that is meant."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agents_progress.effects.ledger import Ledger
from agents_progress.effects.ledger_memory import MemoryLedger
from agents_progress.effects.ledger_sqlite import SQLiteLedger
from agents_progress.testing.ledger_contract import LedgerContract
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
        from agents_progress.effects.ledger_postgres import PostgresLedger

        ledger = PostgresLedger(store.url)
        yield ledger
        ledger.close()

    @pytest.fixture
    def reopened(self, store: Store) -> Iterator[Ledger]:  # noqa: F811
        from agents_progress.effects.ledger_postgres import PostgresLedger

        ledger = PostgresLedger(store.url)
        yield ledger
        ledger.close()


def test_every_backend_runs_the_whole_contract() -> None:
    assert len([name for name in dir(LedgerContract) if name.startswith("test_")]) >= 24
    for backend in (TestMemoryLedger, TestSQLiteLedger, TestPostgresLedger):
        assert [name for name in vars(backend) if name.startswith("test_")] == []
        assert issubclass(backend, LedgerContract)
