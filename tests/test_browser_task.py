"""A task followed in a browser: in tabs that come and go over a server of the test, and against the real one."""

from __future__ import annotations

import json
import re
from functools import cache

import pytest

from tests.browser.node import HERE, needs_node, node

pytestmark = needs_node

SCENARIOS = re.findall(r'^scenario\("(.+)",', (HERE / "task.mjs").read_text(encoding="utf-8"), flags=re.MULTILINE)


@cache
def played() -> dict[str, str | None]:
    """What became of each scenario; all are played once."""
    results: dict[str, str | None] = json.loads(node(str(HERE / "task.mjs")))
    return results


def test_every_scenario_is_played() -> None:
    assert list(played()) == SCENARIOS
    assert len(SCENARIOS) == 36


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_task_is_followed_so_that(scenario: str) -> None:
    assert played()[scenario] is None, played()[scenario]
