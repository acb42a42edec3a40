"""Every situation of the scenario table, driven through the real client and models inside `@progress.inside`: the very
same user code that runs bare in `test_scenarios.py` must end as the table says, with exactly one `run.ended` where an
ending is known.
"""

from __future__ import annotations

import pytest

from agents_progress.sdk import compat
from compat.differences import named
from compat.play import played
from compat.registry import SCENARIOS
from compat.seen import view_of

RELEASE = compat.installed() or ""


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", SCENARIOS)
def test_the_ending_is_the_one_in_the_table(name: str) -> None:
    performance = played()[name]
    assert performance.body != "hung"
    log = performance.runs[-1]
    endings = [payload["outcome"] for type_, payload in log if type_ == "run.ended"]
    outcome = SCENARIOS[name].outcome
    erased = [each.shown["endings"].split()[-1] for each in named(name, RELEASE) if "endings" in each.shown]
    assert endings == ([] if outcome == "none" else [erased[0] if erased else outcome])
    assert view_of(log).issues == []
