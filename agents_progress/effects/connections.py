"""The connections to a store with tables of ours: opened at their first use, once a process, one for each role."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from threading import Lock
from typing import Any, Generic, TypeVar, get_args

from agents_progress.effects.tables import Role, Tables
from agents_progress.errors import JournalClosed

Database = TypeVar("Database", bound=Any)
Opened = TypeVar("Opened", bound="Connections[Any]")


class Connections(ABC, Generic[Database]):
    """Those of one process, each with the lock of whoever uses it."""

    def __init__(self, place: str, tables: Tables) -> None:
        self.pid = os.getpid()
        self.locks: dict[Role, Lock] = {role: Lock() for role in get_args(Role)}
        self._place = place
        self._tables = tables
        self._made: dict[Role, Database] = {}

    @abstractmethod
    def connect(self, *, create: bool) -> Database:
        """A connection to the store, which is made where that is ``create`` and possible."""

    @abstractmethod
    def has(self, db: Database, table: str) -> bool:
        """Whether there is a table of this name."""

    @abstractmethod
    def alone(self, db: Database, name: str) -> AbstractContextManager[object]:
        """A transaction in which nobody else makes the tables of this name."""

    def lost(self, db: Database) -> bool:
        """Whether a connection is of no use any more."""
        return False

    def connection(self, role: Role) -> Database:
        """The connection of a role, made anew when it was lost. The finder makes no tables."""
        if role not in self._made or self.lost(self._made[role]):
            db = self.connect(create=role != "finder")
            mark = self._tables.mark
            try:
                if role != "finder":
                    self._tables.prepare(db, lambda: self.has(db, mark), self.alone(db, mark), self._place)
            except BaseException:
                db.close()
                raise
            self._made[role] = db
        return self._made[role]

    def exist(self) -> bool:
        """Whether the tables are there."""
        return self.has(self.connection("finder"), self._tables.mark)

    def close(self) -> None:
        """Close each as soon as nobody uses it."""
        for role, lock in self.locks.items():
            with lock:
                if role in self._made:
                    self._made.pop(role).close()


class Link(Generic[Opened]):
    """A store by its name, its connections, and what puts an error of its driver into words."""

    def __init__(
        self,
        name: str,
        tables: Tables,
        connections: Callable[[], Opened],
        translated: Callable[[], AbstractContextManager[object]],
    ) -> None:
        self.name = name
        self.closed = False
        self._what = tables.what
        self._connections = connections
        self._translated = translated
        self._open: Opened | None = None
        self._lock = Lock()

    def close(self) -> None:
        """Close the connections of this process."""
        with self._lock:
            opened, self._open, self.closed = self._open, None, True
        if opened is not None and opened.pid == os.getpid():
            opened.close()

    @contextmanager
    def opened(self, role: Role) -> Iterator[Opened]:
        """The connections, of which that of the role is for one thread at a time."""
        with self._lock:
            if self.closed:
                raise JournalClosed(f"{self._what} in {self.name} was closed; open it again")
            if self._open is None or self._open.pid != os.getpid():
                self._open = self._connections()  # a parent's connections must not be touched after a fork
            opened = self._open
        with opened.locks[role], self._translated():
            yield opened

    def exists(self) -> bool:
        """Whether the tables are there; makes nothing."""
        with self.opened("finder") as opened:
            return opened.exist()
