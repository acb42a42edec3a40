"""The logs of the tests themselves: each status is reached, and the hostile ones say every type of the protocol."""

from __future__ import annotations

import pytest

from agents_progress import RunView
from agents_progress.messages import MESSAGES, Status
from agents_progress.payloads import PAYLOADS
from agents_progress.testing.contract.logs import Log

from .forged import ENDINGS, HOSTILE, STATUSES, endings


def viewed(log: Log) -> RunView:
    view = RunView(log.run_id)
    for envelope in log.envelopes:
        view.feed(envelope.to_json())
    return view


def test_every_status_has_its_log() -> None:
    assert {status: viewed(make("r1")).status for status, make in STATUSES.items()} == {name: name for name in MESSAGES}


@pytest.mark.parametrize("status", STATUSES)
def test_no_log_of_a_status_has_an_issue(status: Status) -> None:
    assert viewed(STATUSES[status]("r1")).issues == []


def test_the_hostile_logs_say_every_type() -> None:
    said = {envelope.type for log in endings("r1", "x").values() for envelope in log.envelopes}
    assert set(PAYLOADS) - said == set()


@pytest.mark.parametrize("name", HOSTILE)
def test_no_hostile_log_is_refused_by_the_protocol(name: str) -> None:
    views = {ending: viewed(log) for ending, log in endings("r1", HOSTILE[name]).items()}
    assert {ending: view.issues for ending, view in views.items()} == {ending: [] for ending in ENDINGS}
    assert {ending: view.status for ending, view in views.items()} == ENDINGS
