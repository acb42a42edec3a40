"""The contract of :class:`Journal` as one class of tests, for the authors of backends.

```python
class TestMyJournal(JournalContract):
    @pytest.fixture
    async def journal(self):      # an empty store
        ...

    @pytest.fixture
    async def reopened(self):     # a second journal on that store, as another node has it
        ...
```

Needs pytest, and pytest-asyncio in its mode `auto`.
"""

from __future__ import annotations

import pytest

CHAPTERS = (
    *("appending", "listing", "glancing", "knowing", "owning"),
    *("losing", "tailing", "controlling", "pausing", "keeping", "erasing"),
)

pytest.register_assert_rewrite(*(f"agents_progress.testing.contract.{chapter}" for chapter in CHAPTERS))

from agents_progress.testing.contract.appending import Appending  # noqa: E402 - after the line that concerns it
from agents_progress.testing.contract.controlling import Controlling  # noqa: E402
from agents_progress.testing.contract.erasing import Erasing  # noqa: E402
from agents_progress.testing.contract.glancing import Glancing  # noqa: E402
from agents_progress.testing.contract.keeping import Keeping  # noqa: E402
from agents_progress.testing.contract.knowing import Knowing  # noqa: E402
from agents_progress.testing.contract.listing import Listing  # noqa: E402
from agents_progress.testing.contract.losing import Losing  # noqa: E402
from agents_progress.testing.contract.owning import Owning  # noqa: E402
from agents_progress.testing.contract.pausing import Pausing  # noqa: E402
from agents_progress.testing.contract.tailing import Tailing  # noqa: E402

__all__ = ["JournalContract"]


class _Alive(Appending, Listing, Glancing, Knowing, Owning, Losing, Tailing, Controlling):
    """What is promised of runs while they go on."""


class JournalContract(_Alive, Pausing, Keeping, Erasing):
    """Everything a journal promises. Subclasses give the fixtures ``journal`` and ``reopened``; none may leave a test
    out.

    ``tick`` is a time to live that tests wait for, in seconds: as short as the clock of the store allows.
    """

    tick = 0.2
