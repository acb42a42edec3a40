"""The demo: a run with a pause, resumed and accepted, in both languages, without a network."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents_progress import RunView, cli, demo, open_journal
from agents_progress.labels import LABELS
from agents_progress.messages import LANGUAGES, Language, Status, sentence
from agents_progress.testing import no_network


@pytest.fixture(autouse=True)
def closed_network() -> Iterator[None]:
    with no_network():
        yield


def play(url: str, capsys: pytest.CaptureFixture[str], language: Language = "en") -> str:
    assert asyncio.run(demo.main(url, True, language)) == 0
    return capsys.readouterr().out


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_demo_pauses_is_answered_and_is_accepted(language: Language, capsys: pytest.CaptureFixture[str]) -> None:
    began = time.monotonic()
    said = play("memory://", capsys, language)
    assert time.monotonic() - began < 1.0
    told = [sentence(status, language) for status in ("running", "waiting", "running", "checking", "done")]
    places = [said.index(told[0])]
    for each in told[1:]:
        places.append(said.index(each, places[-1] + 1))
    assert '{"order": 4711, "eur": 12}' in said
    assert "agents-progress runs" in said
    assert "agents-progress show RUN_ID" in said


def test_the_demo_is_kept_in_the_journal_it_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    url = f"sqlite:///{tmp_path}/demo.db"
    said = play(url, capsys)
    run_id = said.split("agents-progress show ")[1].split()[0]
    assert f"agents-progress runs --journal {url}" in said
    assert f"agents-progress show {run_id} --journal {url}" in said

    async def kept() -> list[RunView]:
        journal, views = open_journal(url, create=False), []
        for name in (run_id.removesuffix(".2"), run_id):
            views.append(RunView(name))
            for envelope in await journal.read(name):
                views[-1].feed(envelope.to_dict())
        await journal.close()
        return views

    first, second = asyncio.run(kept())
    assert (first.status, second.status) == ("waiting", "done")
    assert first.tools == {"call_1_1": "returned", "call_1_2": "returned", "call_2_1": "requested"}
    assert [(row.current, row.total) for row in first.activities] == [(None, None), (3, 3), (None, None)]
    assert second.interactions["ask-1"].actor == "demo"


ASKED = "[a]pprove, [e]dit, [r]eject, [s]kip:"
DECISIONS = [
    (["a"], 0, "done", "12 EUR refunded"),
    (["e", '{"order": 4711, "eur": 7}'], 0, "done", "7 EUR refunded"),
    (["r", "No."], 1, "rejected", "nothing was refunded"),
]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals here")
@pytest.mark.parametrize(("typed", "code", "status", "answer"), DECISIONS)
def test_the_demo_says_what_became_of_the_refund_that_a_person_decided_about(
    typed: list[str], code: int, status: Status, answer: str
) -> None:
    from tests.terminals import Terminal

    asked = [ASKED, *(LABELS[name]["en"] for name in ("prompt_reason", "prompt_arguments"))]
    with Terminal("-m", "agents_progress", "demo", "--ask", "--fast", "--journal", "memory://") as terminal:
        terminal.until(ASKED)
        terminal.type(f"{typed[0]}\n")
        for line in typed[1:]:
            terminal.until(asked[2 if line.startswith("{") else 1])
            terminal.type(f"{line}\n")
        assert terminal.end() == code
        assert sentence(status, "en") in terminal.text and answer in " ".join(terminal.text.split())


def test_a_journal_that_cannot_be_used_is_refused_before_anything_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["demo", "--fast", "--journal", f"sqlite:///{tmp_path}/none/demo.db"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert "cannot be opened" in said.err


def test_the_demo_is_short() -> None:
    assert len(Path(demo.__file__).read_text().splitlines()) < 150
