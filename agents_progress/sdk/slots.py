"""Where code inside an SDK run finds the run that owns it: set around the SDK's call, and inherited by the run's task,
its tools and their threads.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from agents_progress.sdk import compat
from agents_progress.sdk.part import Part
from agents_progress.telemetry import RunLogger


@dataclass(slots=True)
class Slot:
    """The owned run, and the part of it that is executing; both are filled as soon as there is one."""

    run: Any = None
    part: Part | None = None


_slot: ContextVar[Slot | None] = ContextVar("agents_progress_slot", default=None)


@contextmanager
def within(slot: Slot) -> Iterator[None]:
    """Make an SDK call whose code finds this slot.

    Set and put back by value: a generator's steps may run in different contexts, where a token would be refused.
    """
    before = _slot.get()
    _slot.set(slot)
    try:
        yield
    finally:
        _slot.set(before)


def slot_here() -> Slot | None:
    """The slot of the SDK run whose code asks."""
    return _slot.get()


def call_here() -> str | None:
    """The call, as events name it, of the tool whose body asks; None outside a function tool."""
    slot = _slot.get()
    return None if slot is None or slot.part is None else slot.part.call_of_span(compat.current_span())


def text_here() -> str | None:
    """What a person answered when they approved the call of the tool whose body asks; None where nothing was said."""
    slot, call_id = _slot.get(), call_here()
    return None if slot is None or slot.part is None or call_id is None else slot.part.root.texts.get(call_id)


def mark_effect(word: str) -> None:
    """Say of the tool whose body asks that it gave a stored result (`reused`), or why its effect was not had; so that
    its row says so. Outside a function tool of an owned run nothing is said.
    """
    slot = _slot.get()
    if slot is not None and slot.part is not None:
        slot.part.observer.mark_effect(compat.current_span(), word)


def logger_here() -> logging.Logger | RunLogger:
    """Where log records of the code that asks go: those of the owned run around it."""
    slot = _slot.get()
    run_logger: RunLogger | None = getattr(None if slot is None else slot.run, "logger", None)
    return run_logger or logging.getLogger("agents_progress")
