"""What an operator names on a command line as ``module:function``."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from agents_progress.errors import NotServable


def named(target: str) -> Any:
    """What ``module:name`` names, also in the working directory. Raises :exc:`NotServable` with what is amiss."""
    module, colon, name = target.partition(":")
    if not (colon and name and all(part.isidentifier() for part in module.split("."))):
        raise NotServable(f"{target!r:.80} names no function; write module:function")
    if (here := str(Path.cwd())) not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = import_module(module)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{module}.".startswith(f"{error.name}."):
            raise
        raise NotServable(f"there is no module {module}; run this where it can be imported") from None
    for part in name.split("."):
        try:
            found = getattr(found, part)
        except AttributeError:
            raise NotServable(f"module {module} has no {name}; check the name") from None
    return found
