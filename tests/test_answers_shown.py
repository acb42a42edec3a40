"""Who edited what was approved is a fact of the log, and every display says it."""

from __future__ import annotations

import asyncio
import html
from pathlib import Path

import pytest
from agents import Agent, Runner, RunResultStreaming, function_tool

from agents_progress import Disclosure, RunView, open_journal, progress
from agents_progress.labels import label
from agents_progress.messages import LANGUAGES, Language
from agents_progress.render import render
from agents_progress.report.words import word
from agents_progress.testing import ScriptedAPI, call, text, turn
from tests.commands import Command
from tests.logs import Log


@function_tool(needs_approval=True)
def pay(to: str) -> str:
    return f"paid {to}"


@pytest.fixture
def stored(tmp_path: Path) -> str:
    """The URL of a journal with the run `r`, whose answer edited the call."""
    url = f"sqlite:///{tmp_path}/runs.db"

    async def run() -> None:
        journal = open_journal(url)
        api = ScriptedAPI([turn(call("pay", {"to": "Ada"}, call_id="c1")), turn(text("done"))])

        @progress(journal=journal, run_id="r", disclosure=Disclosure(approval_details="all"))
        def work() -> RunResultStreaming:
            return Runner.run_streamed(Agent(name="A", model=api.model(), tools=[pay]), "go")

        first = work()
        await first
        second = first.resume(approve="all", actor="mei", arguments={"ask-1": {"to": "Bo"}})
        await second
        await second.closed()
        await journal.close()

    asyncio.run(run())
    return url


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_display_says_who_edited(stored: str, command: Command, language: Language) -> None:
    edited, by = label("edited", language), label("edited_by", language, name="mei")
    journal = ("--journal", stored)
    assert by in command("show", "r.2", *journal, "--language", language).out
    why = command("why", "r.2", *journal).out
    assert "edited    ask-1" in why and "arguments edited by mei; what was shown: " in why
    assert command("report", "r.2", *journal, "-o", "report.html", "--language", language).code == 0
    page = html.unescape(Path("report.html").read_text(encoding="utf-8"))
    said = f"{word('answered_by', language, name='mei')} · {edited}"
    assert page.count(said) == 2, "beside the question, and in the timeline"


def test_an_edit_by_nobody_who_is_named_is_said_too_and_none_before_the_answer() -> None:
    log = Log("r").start(resumed_from="q")
    log.say("approval.wait", interaction_id="ask-1", call_id=None, tool="pay", title="Pay", x={"edited_from": "a" * 64})
    view = RunView("r")
    for envelope in log.envelopes:
        view.feed(envelope)
    assert "edited" not in render(view)
    said = len(log.envelopes)
    log.say("approval.resolved", interaction_id="ask-1", decision="approved")
    for envelope in log.envelopes[said:]:
        view.feed(envelope)
    assert "Approved: Pay (pay) · arguments edited\n" in render(view)
