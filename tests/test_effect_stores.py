"""What a ledger and a store of reactions have in common: their tables in a file or on a server, for both of them."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from agents_progress.effects.ledger.sqlite import SQLiteLedger
from agents_progress.effects.once import once
from agents_progress.effects.reactions.sqlite import SQLiteReactionStore
from agents_progress.errors import JournalUnavailable, JournalUnreadable
from agents_progress.journal import sqlite_file
from agents_progress.testing.ledger_contract import effect
from agents_progress.testing.reactions_contract import document, put
from tests.test_postgres_journal import Store, server, store  # noqa: F401 - fixtures


class Kind(NamedTuple):
    """A store in a file, the name of the one on a server, the table of its version, and what writes into it."""

    in_file: Callable[[Path], Any]
    on_server: str
    mark: str
    write: Callable[[Any], object]


LEDGER = Kind(SQLiteLedger, "ledger.postgres.PostgresLedger", "progress_ledger", lambda kept: kept.begin(effect()))
REACTIONS = Kind(
    SQLiteReactionStore,
    "reactions.postgres.PostgresReactionStore",
    "progress_reactions_version",
    lambda kept: put(kept, document()),
)
EACH = pytest.mark.parametrize("kind", [LEDGER, REACTIONS], ids=["ledger", "reactions"])


def on_server(kind: Kind, url: str) -> Any:
    pytest.importorskip("psycopg", reason="the postgres extra is not installed")
    module, _, name = kind.on_server.rpartition(".")
    return getattr(import_module(f"agents_progress.effects.{module}"), name)(url)


@EACH
def test_somebody_elses_file_is_refused_and_left_alone(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "theirs.db"
    theirs = sqlite3.connect(path)
    theirs.execute("CREATE TABLE things (thing)")
    theirs.commit()
    theirs.close()
    before = path.read_bytes()
    kept = kind.in_file(path)
    with pytest.raises(JournalUnreadable):
        kind.write(kept)
    kept.close()
    assert path.read_bytes() == before


@EACH
def test_tables_of_another_version_are_refused(kind: Kind, tmp_path: Path) -> None:
    kept = kind.in_file(tmp_path / "e.db")
    kind.write(kept)
    kept.close()
    later = sqlite3.connect(tmp_path / "e.db")
    later.execute(f"UPDATE {kind.mark} SET version = 2")
    later.commit()
    later.close()
    kept = kind.in_file(tmp_path / "e.db")
    with pytest.raises(JournalUnreadable, match="version 2"):
        kind.write(kept)
    kept.close()


@pytest.mark.parametrize("changed", ["settled = 'later_word'", "key = 'bare'", "name = x'ff'"])
def test_an_effect_that_something_else_changed_is_named_and_never_had_again(changed: str, tmp_path: Path) -> None:
    path, did = tmp_path / "e.db", list[int]()

    @once(scope="s", ledger=SQLiteLedger(path))
    def pay(order: int) -> str:
        did.append(order)
        return "paid"

    pay(1)
    theirs = sqlite3.connect(path)
    theirs.execute(f"UPDATE progress_effects SET {changed}")
    theirs.commit()
    theirs.close()
    with pytest.raises(JournalUnreadable, match=r"effect [0-9a-f]{16} cannot be read"):
        pay(1)
    assert did == [1]


@EACH
def test_a_file_is_asked_whether_it_holds_something_without_being_made(kind: Kind, tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    kept = kind.in_file(path)
    assert not kept.exists()
    assert list(tmp_path.iterdir()) == []
    sqlite_file.connect(str(path), create=True).close()
    assert not kept.exists()
    journal = sqlite_file.connect(str(path), create=False)
    assert not {name for (name,) in journal.execute("SELECT name FROM sqlite_master") if name.startswith("progress")}
    journal.close()
    kind.write(kept)
    assert kept.exists()
    kept.close()


@EACH
def test_a_missing_folder_is_named(kind: Kind, tmp_path: Path) -> None:
    kept = kind.in_file(tmp_path / "none" / "e.db")
    with pytest.raises(JournalUnavailable, match="none"):
        kind.write(kept)
    kept.close()


@EACH
def test_a_server_that_is_away_is_named_without_its_password(kind: Kind) -> None:
    kept = on_server(kind, "postgresql://ada:secret@127.0.0.1:1/x")
    with pytest.raises(JournalUnavailable, match=r"127\.0\.0\.1:1/x") as raised:
        kind.write(kept)
    assert "secret" not in f"{raised.value} {kept!r}"
    kept.close()


@EACH
def test_many_nodes_that_begin_at_once_make_the_tables_once(kind: Kind, store: Store) -> None:  # noqa: F811
    nodes = [on_server(kind, store.url) for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        written = list(threads.map(kind.write, nodes))
    if kind is LEDGER:
        assert sorted(type(answer).__name__ for answer in written) == ["Begun"] + ["Busy"] * 7
    for node in nodes:
        node.close()
