"""Views of a run that lives elsewhere, in the terminal: shown as they come, and left as they were."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import AsyncIterator

import pytest

from agents_progress.errors import Unreachable
from agents_progress.events import Envelope
from agents_progress.messages import MESSAGES
from agents_progress.render import render
from agents_progress.terminal import watch
from agents_progress.view import RunView
from tests.feed_server import story, view_of
from tests.logs import Log
from tests.test_terminal import Failing, Screen


async def growing(*logs: list[Envelope]) -> AsyncIterator[RunView]:
    """The view of each log after each of its envelopes."""
    for log in logs:
        view = RunView(log[0].run_id)
        for envelope in log:
            view.feed(envelope)
            yield view


async def test_the_last_view_stays_on_the_screen_and_is_given() -> None:
    file = Screen()
    last = await watch(growing(story()), file=file)
    assert last is not None and last.snapshot() == view_of(story()).snapshot()
    left = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", file.getvalue()).replace("\r", "\n")
    assert left.endswith(render(last, 80))


@pytest.mark.parametrize("file_type", [io.StringIO, Screen])
async def test_a_view_of_another_run_is_shown_below_the_one_before_it(file_type: type[io.StringIO]) -> None:
    file = file_type()
    paused, later = story(outcome="paused"), Log("run-2").start(resumed_from="run-1").end().check().envelopes
    await watch(growing(paused, later), file=file)
    left = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", file.getvalue())
    assert left.rindex(MESSAGES["waiting"]["en"]) < left.index("run-2 · Clerk") < left.rindex(MESSAGES["done"]["en"])


async def test_a_view_that_replaces_another_one_is_drawn_in_its_place() -> None:
    async def healed() -> AsyncIterator[RunView]:
        yield view_of(story()[:2])
        yield view_of(story())

    file = io.StringIO()
    await watch(healed(), file=file)
    rows = file.getvalue().splitlines()
    assert rows.count("run-1 · Clerk") == 1 and any(row.startswith("done") for row in rows)


async def test_views_that_fail_are_shown_a_last_time_before_the_error_is_raised() -> None:
    async def given_up() -> AsyncIterator[RunView]:
        view = view_of(story()[:3])
        yield view
        view.close_transport()
        raise Unreachable("no answer")

    file = io.StringIO()
    with pytest.raises(Unreachable):
        await watch(given_up(), file=file)
    assert f"unknown     {MESSAGES['unknown']['en']}" in file.getvalue().splitlines()


async def test_a_display_that_fails_is_raised_and_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG), pytest.raises(BrokenPipeError):
        await watch(growing(story()), file=Failing())
    assert caplog.records == []


async def test_nothing_to_watch_is_nothing() -> None:
    assert await watch(growing(), file=io.StringIO()) is None
