"""Every store of reactions keeps the whole contract."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents_progress.effects.places import reactions_beside
from agents_progress.effects.reactions_memory import MemoryReactionStore
from agents_progress.effects.reactions_sqlite import SQLiteReactionStore
from agents_progress.effects.reactions_store import ReactionStore
from agents_progress.errors import JournalUnreadable, UsageError
from agents_progress.journal import MemoryJournal, open_journal
from agents_progress.testing.reactions_contract import ReactionStoreContract, document, put
from tests.test_postgres_journal import Store, server  # noqa: F401 - a fixture
from tests.test_postgres_journal import store as place  # noqa: F401 - a fixture


class TestMemoryReactions(ReactionStoreContract):
    @pytest.fixture
    def store(self) -> Iterator[ReactionStore]:
        store = MemoryReactionStore()
        yield store
        store.close()

    @pytest.fixture
    def reopened(self, store: ReactionStore) -> ReactionStore:  # noqa: F811
        return store


class TestSQLiteReactions(ReactionStoreContract):
    @pytest.fixture
    def store(self, tmp_path: Path) -> Iterator[ReactionStore]:
        store = SQLiteReactionStore(tmp_path / "runs.db")
        yield store
        store.close()

    @pytest.fixture
    def reopened(self, tmp_path: Path) -> Iterator[ReactionStore]:
        store = SQLiteReactionStore(tmp_path / "runs.db")
        yield store
        store.close()


class TestPostgresReactions(ReactionStoreContract):
    @pytest.fixture
    def store(self, place: Store) -> Iterator[ReactionStore]:  # noqa: F811
        from agents_progress.effects.reactions_postgres import PostgresReactionStore

        store = PostgresReactionStore(place.url)
        yield store
        store.close()

    @pytest.fixture
    def reopened(self, place: Store) -> Iterator[ReactionStore]:  # noqa: F811
        from agents_progress.effects.reactions_postgres import PostgresReactionStore

        store = PostgresReactionStore(place.url)
        yield store
        store.close()


def test_every_backend_runs_the_whole_contract() -> None:
    assert len([name for name in dir(ReactionStoreContract) if name.startswith("test_")]) >= 8
    for backend in (TestMemoryReactions, TestSQLiteReactions, TestPostgresReactions):
        assert [name for name in vars(backend) if name.startswith("test_")] == []


def test_reactions_lie_beside_a_journal_and_a_ledger(tmp_path: Path) -> None:
    journal = open_journal(f"sqlite:///{tmp_path}/a.db")
    store = reactions_beside(journal)
    assert isinstance(store, SQLiteReactionStore)
    assert reactions_beside(open_journal(f"sqlite:///{tmp_path}/a.db")) is store
    assert list(tmp_path.iterdir()) == []  # nothing is opened before its first use
    store.close()
    assert reactions_beside(journal) is not store
    assert reactions_beside(MemoryJournal()) is not reactions_beside(MemoryJournal())
    with pytest.raises(UsageError, match="store="):
        reactions_beside(open_journal("redis://127.0.0.1:1/0"))


def test_a_store_of_another_version_is_refused(tmp_path: Path) -> None:
    store = SQLiteReactionStore(tmp_path / "r.db")
    put(store, document())
    store.close()
    later = sqlite3.connect(tmp_path / "r.db")
    later.execute("UPDATE progress_reactions_version SET version = 2")
    later.commit()
    later.close()
    store = SQLiteReactionStore(tmp_path / "r.db")
    with pytest.raises(JournalUnreadable, match="version 2"):
        store.look("x")
    store.close()
