"""Runs the drivers of this folder in Node, which stands in for a browser: same language, same fetch, same streams."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
PAGE = Path(str(files("agents_progress").joinpath("server/page")))
NODE = shutil.which("node")

OLDEST = (20, 19)
"""The first that reads a module of a browser without being told what it is."""


def _is_usable() -> bool:
    if NODE is None:
        return False
    version = subprocess.run([NODE, "--version"], capture_output=True, text=True, timeout=20, check=True).stdout
    major, minor, _ = version.removeprefix("v").split(".")
    return (int(major), int(minor)) >= OLDEST


needs_node = pytest.mark.skipif(
    not _is_usable(), reason="the browser's modules are tested in Node 20.19 or newer, which is missing"
)


def node(*arguments: str, timeout: float = 50) -> str:
    """What a call of Node prints."""
    assert NODE is not None
    ran = subprocess.run(
        [NODE, *arguments], capture_output=True, text=True, timeout=timeout, check=False, encoding="utf-8"
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def driven(driver: str, cases: Sequence[Any], folder: Path) -> list[Any]:
    """What a driver answers for each case; Node is started once for all of them."""
    asked = folder / f"{driver}.jsonl"
    asked.write_text("".join(f"{json.dumps(case)}\n" for case in cases), encoding="ascii")
    answers = [json.loads(line) for line in node(str(HERE / driver), str(asked)).split("\n") if line]
    assert len(answers) == len(cases)
    return answers


def scenarios_of(driver: str) -> list[str]:
    """What the scenarios of a driver are called, in their order."""
    return re.findall(r'^scenario\("(.+)",', (HERE / driver).read_text(encoding="utf-8"), flags=re.MULTILINE)


@cache
def played(driver: str) -> dict[str, str | None]:
    """What became of each scenario of a driver; all are played once."""
    results: dict[str, str | None] = json.loads(node(str(HERE / driver)))
    return results
