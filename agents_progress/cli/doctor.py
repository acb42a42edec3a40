"""``doctor``: what is installed, whether it was verified, and what differs."""

from __future__ import annotations

import argparse
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from agents_progress.cli.printing import DIFFERS, FINE, say
from agents_progress.plaintext import clean

_PACKAGES: Final = ("agents-progress", "openai-agents", "openai", "pydantic", "rich")


def doctor(chosen: argparse.Namespace) -> int:
    from agents_progress.sdk import compat

    if chosen.pending:
        from agents_progress.cli.pending import pending

        return pending(chosen)

    say(f"{'python':<16} {platform.python_version()}")
    say(f"{'platform':<16} {clean(platform.platform())}")
    for package in _PACKAGES:
        say(f"{package:<16} {clean(_installed(package))}")
    found, floor = compat.installed(), ".".join(map(str, compat.FLOOR))
    if found is None:
        say(f"openai-agents is not installed; install openai-agents>={floor}")
        return DIFFERS
    if compat.release(found) < compat.FLOOR:
        say(f"openai-agents {clean(found)} is too old to be followed; install openai-agents>={floor}")
        return DIFFERS
    verified = "verified" if found in compat.VERIFIED else "not verified, and used all the same"
    say(f"openai-agents {clean(found)} is {verified}; verified releases are {', '.join(compat.VERIFIED)}")
    return _compared(found)


def _compared(release: str) -> int:
    """What differs from the verified surface. What an older release does not have yet is counted and not listed."""
    from agents_progress.sdk import compat
    from agents_progress.sdk.surface import differences, surface, verified_surface

    verified = verified_surface()
    older = compat.release(release) < compat.release(verified["of"]["openai-agents"])
    against = " and ".join(f"{package} {number}" for package, number in verified["of"].items())
    try:
        found = differences(verified["facts"], surface())
    except ImportError as error:
        say(f"openai-agents cannot be imported: {clean(error)}")
        return DIFFERS
    listed = [item for item in found if not (older and item.kind == "gone")]
    lost = sum(item.kind == "lost" for item in found)
    say(f"compared with {against}: {_told(len(listed), len(found) - len(listed))}")
    for item in listed:
        say(f"  {clean(item)}")
    if lost:
        say(f"this package needs {lost} of them to tell how a run ends; install a verified release")
    return DIFFERS if lost else FINE


def _told(listed: int, not_yet: int) -> str:
    what = "nothing differs" if not listed else f"{listed} {'thing differs' if listed == 1 else 'things differ'}"
    return what + (f"; {not_yet} came later" if not_yet else "")


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"
