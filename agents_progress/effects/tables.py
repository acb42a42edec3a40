"""Tables of ours in a store: their version, how they are made once, and the thread that works on them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass
from threading import Lock
from typing import Any, Literal, TypeAlias, TypeVar

from agents_progress.errors import JournalUnreadable

T = TypeVar("T")
Role: TypeAlias = Literal["writer", "reader", "renewer", "finder"]
"""Who uses a connection; each has one of its own. The finder sees whether there are tables, and makes none."""


@dataclass(frozen=True, slots=True)
class Tables:
    """Some tables that belong together: ``what`` they are, the table ``mark`` that holds their ``version``, and the
    ``statements`` that make them. A release may add what an older one can leave alone, under the same version.
    """

    what: str
    mark: str
    version: int
    statements: Sequence[str]

    def prepare(self, db: Any, there: Callable[[], bool], alone: AbstractContextManager[object], place: str) -> None:
        """Make them unless they are ``there``, ``alone`` in a transaction. Raises :exc:`JournalUnreadable` for those of
        another version.
        """
        if not there():
            with alone:
                if not there():  # now nobody else makes them
                    db.execute(f"CREATE TABLE {self.mark} (version INTEGER NOT NULL)")
                    db.execute(f"INSERT INTO {self.mark} VALUES ({self.version})")
                    for statement in self.statements:
                        db.execute(statement)
        (version,) = db.execute(f"SELECT version FROM {self.mark}").fetchone()
        if version != self.version:
            raise JournalUnreadable(
                f"{place} holds {self.what} in version {version}; this release reads version {self.version}"
            )


class OwnThread:
    """Something with a thread of its own to work in, one a process."""

    def __init__(self) -> None:
        self._making = Lock()
        self._threads: tuple[int, ThreadPoolExecutor] | None = None

    def submit(self, work: Callable[..., T], *arguments: Any) -> Future[T]:
        """Do something in this thread: the event loop's own pool may be full of tools that wait."""
        with self._making:
            if self._threads is None or self._threads[0] != os.getpid():
                self._threads = os.getpid(), ThreadPoolExecutor(1, thread_name_prefix="agents-progress-effects")
            return self._threads[1].submit(work, *arguments)

    def end_thread(self) -> None:
        """Finish what was submitted."""
        with self._making:
            threads, self._threads = self._threads, None
        if threads is not None and threads[0] == os.getpid():
            threads[1].shutdown(wait=True)
