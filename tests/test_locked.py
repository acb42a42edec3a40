"""The short version of the bar `locked`: a run under a foreign write lock is delayed, or says that it is lost."""

from __future__ import annotations

import pytest
from bars.figures import Figures
from bars.locked import locked

from agents_progress.journal import sqlite_file


async def test_a_run_is_only_delayed_by_a_foreign_write_lock_shorter_than_its_lease() -> None:
    figures = Figures("locked")
    await locked(0.7, 3.0, figures)
    assert figures.faults == []


async def test_a_run_under_a_lock_longer_than_every_timeout_is_unknown_and_its_log_has_no_hole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sqlite_file, "BUSY_TIMEOUT_S", 0.2)
    figures = Figures("locked")
    await locked(1.5, 0.5, figures, patience=1.0)
    assert figures.faults == []
