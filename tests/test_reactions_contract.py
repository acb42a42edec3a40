"""Every store of reactions keeps the whole contract."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agents_progress.effects.places import reactions_beside
from agents_progress.effects.reactions.memory import MemoryReactionStore
from agents_progress.effects.reactions.sqlite import SQLiteReactionStore
from agents_progress.effects.reactions.store import ReactionStore
from agents_progress.errors import UsageError
from agents_progress.journal import MemoryJournal, open_journal
from agents_progress.testing.reactions_contract import ReactionStoreContract
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
        from agents_progress.effects.reactions.postgres import PostgresReactionStore

        store = PostgresReactionStore(place.url)
        yield store
        store.close()

    @pytest.fixture
    def reopened(self, place: Store) -> Iterator[ReactionStore]:  # noqa: F811
        from agents_progress.effects.reactions.postgres import PostgresReactionStore

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
