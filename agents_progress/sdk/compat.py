"""Which SDK releases this package knows, and the one place for what is not plainly public there."""

from __future__ import annotations

import asyncio
import warnings
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Final

from agents_progress.errors import SDKTooOld

FLOOR: Final = (0, 18)
"""Older releases install broken today or hide endings (a pause that looks like success, a cancel that hangs)."""

VERIFIED: Final = ("0.18.3", "0.19.4", "0.20.0", "0.21.1", "0.22.3", "0.23.1", "0.24.0")
"""Releases on which the whole ending table was driven through the real client."""


class UnverifiedSDK(UserWarning):
    """The installed SDK release was never run against the ending table; it is used all the same."""


def installed() -> str | None:
    """The installed release of openai-agents, None when there is none."""
    try:
        return version("openai-agents")
    except PackageNotFoundError:
        return None


def release(text: str) -> tuple[int, ...]:
    """The leading numbers of a version, such as ``(0, 24, 0)``."""
    numbers: list[int] = []
    for part in text.split("."):
        if not part.isdigit():
            break
        numbers.append(int(part))
    return tuple(numbers)


@cache
def require_supported() -> None:
    """Refuse a release below the floor; warn once about one that was not verified."""
    found = installed() or "none"
    if release(found) < FLOOR:
        raise SDKTooOld(
            f"openai-agents {found} hides how a run ends; "
            f"install openai-agents>={FLOOR[0]}.{FLOOR[1]} to use agents_progress"
        )
    if found not in VERIFIED:
        warnings.warn(
            f"openai-agents {found} was not verified with agents_progress (verified: {', '.join(VERIFIED)}); "
            "run `agents-progress doctor` to see what differs",
            UnverifiedSDK,
            stacklevel=2,
        )


def run_task(result: Any) -> asyncio.Task[Any] | None:
    """The task that runs the agent loop: `RunResultStreaming.run_loop_task`, public from 0.8 to 0.24.

    Read afresh each time: the SDK replaces it when a sandbox must be cleaned up.
    """
    task: asyncio.Task[Any] | None = result.run_loop_task
    return task


def current_span() -> object:
    """The tracing span around the code that asks; the SDK gives each function tool one of its own, traced or not."""
    from agents.tracing import get_current_span  # versions can be told without loading the SDK

    return get_current_span()
