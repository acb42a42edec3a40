"""What the docs say of the bridge to the AI SDK is what there is."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

pytest.importorskip("starlette", reason="the extra `server` is not installed")

from agents_progress.bridges.vercel_parts import PARTS, Part7

PAGE = (Path(__file__).parent.parent / "docs" / "bridges.md").read_text(encoding="utf-8")
ROWS = [re.findall(r"`([^`]+)`", cell) for line in PAGE.splitlines() if line.startswith("| `data-") for cell in [line]]


def fields() -> dict[str, set[str]]:
    """The fields of each data part, by the part's name."""
    found = {}
    for part in get_args(Part7):
        hints = get_type_hints(part)
        for name in get_args(hints["type"]):
            if name.startswith("data-"):
                found[name] = set(get_type_hints(hints["data"]))
    return found


def test_every_data_part_is_in_the_docs() -> None:
    named = {name for row in ROWS for name in row if name.startswith("data-")}
    assert named == {name for name in PARTS[7] if name.startswith("data-")} == set(fields())


@pytest.mark.parametrize("name", ["data-run", "data-agent", "data-tool", "data-question", "data-handoff", "data-check"])
def test_every_field_of_a_data_part_is_in_the_docs(name: str) -> None:
    (row,) = [row for row in ROWS if name in row]
    assert fields()[name] <= set(row)


def test_the_application_of_the_docs_can_be_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    section = PAGE[PAGE.index("## The AI SDK") :].partition("\n## ")[0]
    (code,) = re.findall(r"```python\n(.*?)```", section, flags=re.DOTALL)
    scope: dict[str, object] = {}
    exec(code, scope)
    assert callable(scope["app"])
