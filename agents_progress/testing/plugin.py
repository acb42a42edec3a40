"""The pytest plugin: fixtures over `agents_progress.testing`, and the marker `loopback`.

pytest loads it in every project that has this package installed, so that it imports nothing but pytest and does nothing
until a test asks for it.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from agents_progress.clock import Clock

    from .golden import GoldenEnvelopes
    from .scripted import ScriptedAPI
    from .turns import Turn

_BROKEN_OFF = pytest.StashKey[bool]()


class MakeAPI(Protocol):
    """What the fixture `scripted_api` is."""

    def __call__(self, *turns: Turn) -> ScriptedAPI:
        """An API that answers with these turns."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that writes golden files."""
    parser.getgroup("agents_progress").addoption(
        "--update-golden-envelopes",
        action="store_true",
        help="write the files of the fixture golden_envelopes instead of comparing with them",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Name the marker, for projects whose markers are strict."""
    config.addinivalue_line("markers", "loopback: lets code under no_network() connect to this machine")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Let a marked test, its fixtures included, connect to this machine."""
    if item.get_closest_marker("loopback") is None:
        return (yield)
    from .network import loopback_allowed

    with loopback_allowed():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Remember which tests did not get to their end, for `scripted_api` to add nothing to that."""
    if call.excinfo is not None:
        item.stash[_BROKEN_OFF] = True
    return (yield)


@pytest.fixture
def scripted_api(request: pytest.FixtureRequest) -> Iterator[MakeAPI]:
    """Makes scripted APIs: `scripted_api(turn(text("Hi.")))`, whose `.model()` an agent takes.

    No connection is opened during the test, and nothing is traced. At its end every API must have been asked for all
    its turns and for none beyond, unless the test failed anyway.
    """
    from .network import NetworkReached, no_network, untraced
    from .scripted import ScriptedAPI, ScriptNotPlayed

    made: list[ScriptedAPI] = []

    def api(*turns: Turn) -> ScriptedAPI:
        made.append(ScriptedAPI(turns))
        return made[-1]

    try:
        with untraced(), no_network():
            yield api
        for each in made:
            each.assert_played()
    except (NetworkReached, ScriptNotPlayed):
        if _BROKEN_OFF not in request.node.stash:
            raise


@pytest.fixture
def golden_envelopes(request: pytest.FixtureRequest) -> GoldenEnvelopes:
    """Compares envelopes with a file beside the test: `golden_envelopes(run_script(...))`."""
    from .golden import GoldenEnvelopes

    name = ".".join(request.node.nodeid.split("::")[1:])
    return GoldenEnvelopes(request.path, name, update=request.config.getoption("--update-golden-envelopes"))


@pytest.fixture
def frozen_clock() -> Clock:
    """A clock that stands still and numbers the runs, for `@progress(clock=...)`; `run_script` has one by itself."""
    from .played import frozen_clock

    return frozen_clock()
