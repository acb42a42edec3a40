"""The README: what it shows runs, and what it says is what the code says."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, RunResultStreaming, function_tool, set_tracing_disabled

from agents_progress import cli, demo, options, progress
from agents_progress.journal import DEFAULT_URL
from agents_progress.messages import MESSAGES
from agents_progress.sdk import compat
from agents_progress.testing import ScriptedAPI, call, no_network, text, turn
from tests.feed_server import Asked, honest, row, serving, story

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
BLOCKS: list[str] = re.findall(r"^```python\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)


def section(title: str) -> str:
    return README.split(f"\n## {title}\n")[1].split("\n## ")[0]


def block(title: str) -> str:
    return next(found for found in BLOCKS if found in section(title))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A directory of its own, no network, and nothing left open."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    set_tracing_disabled(True)
    monkeypatch.setenv("OPENAI_API_KEY", "scripted")
    with no_network():
        yield tmp_path
    for url in [url for url, journal in options._OPENED.items() if not journal.closed]:
        asyncio.run(options._OPENED.pop(url).close())


def executed(code: str, **given: Any) -> dict[str, Any]:
    names: dict[str, Any] = {"__name__": "readme", **given}
    exec(compile(code, "README.md", "exec"), names)
    return names


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_every_python_block_compiles(number: int) -> None:
    compile(BLOCKS[number], f"README.md block {number + 1}", "exec")


def test_the_first_block_runs_as_it_stands(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ScriptedAPI([turn(text("5 EUR"))]).answering():
        executed(BLOCKS[0])
    said = capsys.readouterr().out
    assert MESSAGES["done"]["en"] in said
    assert said.endswith("succeeded 5 EUR\n")
    assert (folder / "runs.db").exists()


def test_the_first_block_without_its_check_stays_checking(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with ScriptedAPI([turn(text("5 EUR"))]).answering():
        executed(BLOCKS[0].replace(r'verify=matches(r"\d+ EUR"), ', ""))
    said = capsys.readouterr().out
    assert MESSAGES["checking"]["en"] in said
    assert MESSAGES["done"]["en"] not in said


def test_the_other_blocks_run_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    disclosure = executed(block("Private by default"))["open_some"]

    @function_tool(needs_approval=True)
    async def refund() -> str:
        return "refunded"

    @progress(disclosure=disclosure)
    def refund_agent(letter: str) -> RunResultStreaming:
        return Runner.run_streamed(Agent("Clerk", tools=[refund]), letter)

    api = ScriptedAPI([turn(call("refund", {})), turn(text("Refunded.")), turn(text("On Friday."))])
    names = executed("\n".join(BLOCKS[2:]), refund_agent=refund_agent, agent=Agent("Clerk"))

    async def play() -> tuple[str, str]:
        await names["settle"]("It arrived broken.")
        frames = [frame async for frame in names["chat"]("When does it come?")]
        run_id = capsys.readouterr().out.removeprefix("ask-1 Refund {}\nalready_ended\nrecorded as ").strip()
        return "".join(frames), await names["look"](run_id)

    with api.answering():
        frames, looked = asyncio.run(play())
    api.assert_played()
    assert frames == "On Friday."
    assert looked.startswith(("checking: ", "done: "))


async def test_the_block_about_another_process_follows_a_run_there(capsys: pytest.CaptureFixture[str]) -> None:
    async def handle(asked: Asked) -> None:
        await (asked.answer(201, row()) if asked.path == "/runs" else honest(story())(asked))

    async with serving(handle) as server:
        status = await executed(block("Runs in another process"))["ask_elsewhere"](server.url)
    assert status == "done"
    assert capsys.readouterr().out == f"done {MESSAGES['done']['en']}\n"


def test_the_table_of_statuses_is_that_of_the_messages() -> None:
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]+) \| ([^|]+) \|$", section("The eleven statuses"), re.MULTILINE)
    assert [(status, {"en": en, "zh": zh}) for status, en, zh in rows] == list(MESSAGES.items())


def test_the_transcript_is_what_the_demo_says(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = re.findall(r"^```text\n(.*?)^```$", README, re.MULTILINE | re.DOTALL)[0]
    asyncio.run(demo.main("memory://", True))
    said = capsys.readouterr().out
    assert without_times(shown) in without_times(said)


def without_times(transcript: str) -> str:
    return re.sub(r"· [\d.]+ m?s$", "· 0 ms", transcript, flags=re.MULTILINE)


def test_the_two_commands_are_there_and_are_the_only_ones() -> None:
    assert re.findall(r"^```sh\n(.*?)\n```$", README, re.MULTILINE | re.DOTALL) == [
        "python3 -m venv .venv && .venv/bin/pip install -q -e '.[terminal]' && .venv/bin/agents-progress demo",
        "python3 -m venv .venv && .venv/bin/pip install -q -e '.[dev]' && .venv/bin/pytest -q",
    ]


def test_every_command_is_named() -> None:
    named = re.findall(r"^\| `agents-progress (\w+)", section("Commands"), re.MULTILINE)
    assert sorted(named) == sorted(command.name for command in cli.COMMANDS)
    assert f"`{DEFAULT_URL}`" in README


def test_the_versions_are_those_of_the_code() -> None:
    versions = section("Versions")
    assert f"openai-agents {'.'.join(map(str, compat.FLOOR))} or newer" in versions
    assert f"Verified: {', '.join(compat.VERIFIED)}." in versions


def test_every_link_leads_to_a_file() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert [link for link in links if not (ROOT / link).exists()] == []
    examples = {f"examples/{file.name}" for file in (ROOT / "examples").glob("[!_]*.py")}
    assert examples == {link for link in links if link.startswith("examples/") and link.endswith(".py")}
