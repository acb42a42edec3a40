"""The scenarios on the bare SDK: each ends as it was measured, and none knows of this library."""

from __future__ import annotations

import ast
import asyncio
import csv
from functools import cache
from pathlib import Path

import pytest
from agents import set_tracing_disabled

from agents_progress.testing import no_network
from compat import scenarios
from compat.bare import COLUMNS, as_tsv, measure_all, measured_file
from compat.registry import SCENARIOS

MODULES = sorted(Path(scenarios.__file__).parent.glob("*.py"))


@cache
def kept() -> dict[str, dict[str, str]]:
    if not measured_file().exists():
        pytest.skip(f"no facts are kept for this SDK: {measured_file().name}")
    return by_name(measured_file().read_text(encoding="utf-8"))


@cache
def measured() -> dict[str, dict[str, str]]:
    """All scenarios are played once, several at a time; each test then looks at its own line."""
    set_tracing_disabled(True)
    with no_network():
        return by_name(as_tsv(asyncio.run(measure_all(sorted(SCENARIOS)))))


def by_name(table: str) -> dict[str, dict[str, str]]:
    return {row["scenario"]: row for row in csv.DictReader(table.splitlines(), delimiter="\t")}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_a_scenario_ends_on_the_bare_sdk_as_it_was_measured(name: str) -> None:
    assert measured()[name] == kept()[name]


def test_the_kept_facts_are_those_of_the_scenarios_in_the_table() -> None:
    assert list(kept()) == sorted(SCENARIOS)
    assert tuple(next(iter(kept().values()))) == COLUMNS


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.stem)
def test_a_scenario_knows_nothing_of_this_library_but_its_scripted_api(module: Path) -> None:
    imported = {node.module for node in ast.walk(ast.parse(module.read_text())) if isinstance(node, ast.ImportFrom)}
    assert {name for name in imported if name and name.startswith("agents_progress")} <= {"agents_progress.testing"}
