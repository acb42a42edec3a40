"""Show what an OpenAI Agents SDK run is doing, and know when it is really over.

The names here are the first ring; everything else is imported from its module. Nothing is loaded before it is used:
importing this package loads neither the SDK nor an extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents_progress.current import current_run as current_run
    from agents_progress.decorate import follow as follow
    from agents_progress.decorate import progress as progress
    from agents_progress.disclosure import Disclosure as Disclosure
    from agents_progress.errors import ProgressError as ProgressError
    from agents_progress.events import Envelope as Envelope
    from agents_progress.journal import open_journal as open_journal
    from agents_progress.outcome import Evidence as Evidence
    from agents_progress.outcome import Outcome as Outcome
    from agents_progress.run import Run as Run
    from agents_progress.verify import Verdict as Verdict
    from agents_progress.view import RunView as RunView

_HOMES = {
    # decorate
    "progress": "decorate",
    "follow": "decorate",
    # run
    "Run": "run",
    "current_run": "current",
    # view
    "RunView": "view",
    "Envelope": "events",
    # outcome
    "Evidence": "outcome",
    "Outcome": "outcome",
    "Verdict": "verify",
    # everything else
    "Disclosure": "disclosure",
    "open_journal": "journal",
    "ProgressError": "errors",
}

__all__ = [  # noqa: PLE0604 - computed from the one table
    *_HOMES
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
