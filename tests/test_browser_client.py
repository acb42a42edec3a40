"""The browser's client: against a server made of answers that cuts, repeats and refuses, and against the real one."""

from __future__ import annotations

import json
import re
from functools import cache

import pytest

from tests.browser.node import HERE, needs_node, node

pytestmark = needs_node

SCENARIOS = re.findall(r'^scenario\("(.+)",', (HERE / "client.mjs").read_text(encoding="utf-8"), flags=re.MULTILINE)


@cache
def played() -> dict[str, str | None]:
    """What became of each scenario; all are played once."""
    results: dict[str, str | None] = json.loads(node(str(HERE / "client.mjs")))
    return results


def test_every_scenario_is_played() -> None:
    assert list(played()) == SCENARIOS
    assert len(SCENARIOS) == 31


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_the_client_holds_that(scenario: str) -> None:
    assert played()[scenario] is None, played()[scenario]
