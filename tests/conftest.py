"""What every test stands on: no connection leaves the machine, the SDK traces nothing, and a journal in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from agents import set_tracing_disabled

from agents_progress.journal import MemoryJournal
from agents_progress.testing import no_network

set_tracing_disabled(True)


@pytest.fixture(autouse=True)
def nothing_leaves_this_machine() -> Iterator[None]:
    with no_network(loopback=True):
        yield


@pytest.fixture
def journal() -> MemoryJournal:
    return MemoryJournal()
