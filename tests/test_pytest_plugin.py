"""The pytest plugin in somebody's project: what its fixtures do, and that it does nothing where nobody asks for it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from agents_progress.recordings import load

pytestmark = pytest.mark.timeout(300)  # a fresh environment compiles the SDK first

INI = """\
[pytest]
addopts = -W error --strict-markers --strict-config -p no:cacheprovider
asyncio_default_fixture_loop_scope = function
"""

API = """\
import socket
import pytest
from agents import Agent, Runner
from agents_progress.testing import ScriptedAPI, assert_ending, frozen_clock, text, turn

@pytest.fixture
def server():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()

async def asked(api):
    return await Runner.run(Agent("A", model=api.model()), "hi")

@pytest.mark.asyncio
async def test_played(scripted_api):
    result = await asked(scripted_api(turn(text("hello"))))
    assert result.final_output == "hello"

def test_left(scripted_api):
    scripted_api(turn(text("a")), turn(text("b")))

@pytest.mark.asyncio
async def test_beyond(scripted_api):
    with pytest.raises(Exception):
        await asked(scripted_api())

def test_failed_and_left(scripted_api):
    scripted_api(turn(text("a")))
    raise ValueError("my own")

@pytest.mark.xfail(strict=True)
def test_expected_to_fail_and_left(scripted_api):
    scripted_api(turn(text("a")))
    raise ValueError("my own")

def test_network(scripted_api):
    socket.create_connection(("192.0.2.1", 80), timeout=1)

def test_swallowed(scripted_api):
    try:
        socket.create_connection(("192.0.2.1", 80), timeout=1)
    except Exception:
        pass

def test_this_machine(scripted_api, server):
    socket.create_connection(server, timeout=1).close()

@pytest.mark.loopback
def test_this_machine_marked(scripted_api, server):
    socket.create_connection(server, timeout=1).close()

@pytest.mark.loopback
def test_network_marked(scripted_api):
    socket.create_connection(("192.0.2.1", 80), timeout=1)

def test_without_the_fixture(server):
    socket.create_connection(server, timeout=1).close()

def test_clock(frozen_clock):
    assert [frozen_clock.new_id(), frozen_clock.new_id()] == ["run-1", "run-2"]
"""

RESULTS = {
    "test_played": "passed",
    "test_left": "passed error: 2 turns of the script not asked for; 0 played",
    "test_beyond": "passed error: The script has 0 turns, and this is request 1: there is no turn to answer it.",
    "test_failed_and_left": "failed: my own",
    "test_expected_to_fail_and_left": "skipped: my own",
    "test_network": "failed: this code may not use the network, but it tried to look up '192.0.2.1'",
    "test_swallowed": "passed error: this code may not use the network, but it tried to look up '192.0.2.1'",
    "test_this_machine": (
        "failed: this code may not use the network, but it tried to look up '127.0.0.1'; "
        "`@pytest.mark.loopback` or no_network(loopback=True) let it reach this machine"
    ),
    "test_this_machine_marked": "passed",
    "test_network_marked": "failed: this code may not use the network, but it tried to look up '192.0.2.1'",
    "test_without_the_fixture": "passed",
    "test_clock": "passed",
}

REPORTS = """\
import os

def pytest_runtest_logreport(report):
    if "PYTEST_XDIST_WORKER" in os.environ:
        return  # whoever started the workers is told too
    if report.when == "call" or report.failed:
        said = "" if report.passed else f": {report.longrepr.reprcrash.message}"
        said = said.replace("\\n", " ").replace("ValueError: ", "").split("Reached: ")[-1].split("Played: ")[-1]
        outcome = "error" if report.when == "teardown" else report.outcome
        with open("results.txt", "a") as file:
            file.write(f"{report.nodeid.split('::')[1]} {outcome}{said and ': ' + said.removeprefix(': ')}\\n")
"""


@dataclass
class Project:
    """A folder with tests of somebody's."""

    folder: Path
    settings: str = INI

    def run(self, *arguments: str, **files: str) -> subprocess.CompletedProcess[str]:
        for name, source in files.items():
            (self.folder / f"{name}.py").write_text(source, encoding="utf-8")
        (self.folder / "pytest.ini").write_text(self.settings, encoding="utf-8")
        command = [sys.executable, "-m", "pytest", "-q", *arguments]
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "OPENAI"))}
        return subprocess.run(
            command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=140, check=False
        )

    def results(self) -> Iterator[tuple[str, str]]:
        found: dict[str, str] = {}
        for line in (self.folder / "results.txt").read_text(encoding="utf-8").splitlines():
            name, _, result = line.partition(" ")
            found[name] = f"{found[name]} {result}" if name in found else result
        yield from found.items()


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


# What it does.


@pytest.mark.parametrize("workers", ["0", "2"])
def test_the_fixtures_do_what_they_say_in_one_process_and_in_workers(workers: str, project: Project) -> None:
    done = project.run("-n", workers, test_api=API, conftest=REPORTS)
    assert dict(project.results()) == RESULTS, done.stdout


GOLDEN = """\
import pytest
from agents import Agent
from agents_progress.testing import run_script, text, turn

ANSWER = "{answer}"

class TestClerk:
    def test_says(self, golden_envelopes):
        golden_envelopes(run_script(Agent("Clerk"), [turn(text(ANSWER))], "hi"))

@pytest.mark.parametrize("name", ["a/b", "c d"])
def test_two(name, golden_envelopes):
    for number in (1, 2):
        played = run_script(Agent(name), [turn(text(str(number)))], "hi")
        golden_envelopes(played.envelopes, name=f"run{{number}}")
"""


def test_golden_envelopes_are_written_when_asked_compared_otherwise_and_read_by_replay(project: Project) -> None:
    first = project.run(test_clerk=GOLDEN.format(answer="5 EUR"))
    assert "3 failed" in first.stdout
    place = "golden/test_clerk/TestClerk.test_says.jsonl"
    assert f"there is no {place} yet; write it with `pytest --update-golden-envelopes`, and look at it" in first.stdout
    assert "3 passed" in project.run("--update-golden-envelopes").stdout
    files = sorted(file.name for file in (project.folder / "golden" / "test_clerk").iterdir())
    pairs = [f"test_two_{name}.run{number}.jsonl" for name in ("a_b", "c_d") for number in (1, 2)]
    assert files == ["TestClerk.test_says.jsonl", *pairs]
    (recording,) = load(str(project.folder / place))
    assert recording.events[-1]["payload"]["final_output"] == "5 EUR"

    changed = project.run(test_clerk=GOLDEN.format(answer="6 EUR")).stdout
    assert "1 failed, 2 passed" in changed
    differences = [line[1:].strip() for line in changed.splitlines() if re.match(r"E\s+[-+]run", line)]
    assert differences == [
        '-run-1:3 text.delta text = "5 "',
        '+run-1:3 text.delta text = "6 "',
        '-run-1:8 run.ended final_output = "5 EUR"',
        '+run-1:8 run.ended final_output = "6 EUR"',
    ]


# What it does not do.


def test_loading_it_imports_nothing_but_pytest_and_is_quick() -> None:
    code = """
import json, sys, time
import pytest
before, start = set(sys.modules), time.perf_counter()
import agents_progress.testing.plugin
print(json.dumps([sorted(set(sys.modules) - before), time.perf_counter() - start]))
"""
    runs = [
        json.loads(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=50).stdout)
        for _ in range(3)
    ]
    assert {tuple(loaded) for loaded, _ in runs} == {
        ("agents_progress", "agents_progress.testing", "agents_progress.testing.plugin")
    }
    assert min(seconds for _, seconds in runs) < 0.05


def test_a_project_that_does_not_use_it_sees_none_of_it(project: Project) -> None:
    source = """
import sys

def test_nothing_is_loaded():
    assert "agents_progress.testing.plugin" in sys.modules
    assert not {"agents", "openai", "pydantic", "agents_progress.testing.turns"} & set(sys.modules)

def test_a_fixture_of_the_same_name_is_the_projects(scripted_api):
    assert scripted_api == 1
"""
    conftest = "import pytest\n\n@pytest.fixture\ndef scripted_api():\n    return 1\n"
    assert "2 passed" in project.run(test_mine=source, conftest=conftest).stdout


def test_it_can_be_left_out(project: Project) -> None:
    done = project.run("-p", "no:agents_progress", test_mine="def test_mine(scripted_api): ...\n")
    assert "fixture 'scripted_api' not found" in done.stdout


def test_its_option_and_its_marker_are_in_the_help_of_pytest(project: Project) -> None:
    assert "--update-golden-envelopes" in project.run("--help").stdout
    assert (
        "@pytest.mark.loopback: lets code under no_network() connect to this machine" in project.run("--markers").stdout
    )
