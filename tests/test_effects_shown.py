"""What becomes of tools that act once is said in words, and alike, in the terminal, on the page and in a report."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agents_progress.events import Envelope
from agents_progress.labels import LABELS, NOTE_LABELS, label
from agents_progress.messages import LANGUAGES, Language
from agents_progress.plaintext import clean
from agents_progress.render import activity_text, ending_texts, render
from agents_progress.report import page
from agents_progress.view import RunView
from tests.browser.feeds import as_json
from tests.browser.node import driven, needs_node
from tests.logs import Log
from tests.test_report import facts_of, parsed, section

every_code = pytest.mark.parametrize("code", NOTE_LABELS)
both_languages = pytest.mark.parametrize("language", LANGUAGES)


def log(code: str) -> list[Envelope]:
    """A run that failed after a tool did, and after another one gave a stored result."""
    found = Log("r").start().request("c1", title="Refund").say("tool.failed", call_id="c1", code=code)
    found.request("c2", title="Send").say("tool.finished", call_id="c2", reused=True)
    return found.end("failed").envelopes


def view_of(code: str, language: Language) -> RunView:
    view = RunView("r", language)
    for envelope in log(code):
        view.feed(envelope)
    return view


@every_code
@both_languages
def test_the_terminal_says_it_in_the_row_and_among_what_may_have_had_an_effect(code: str, language: Language) -> None:
    words = label(NOTE_LABELS[code], language)
    shown = render(view_of(code, language), 200)
    assert shown.count(words) == 2
    returned = label("returned", language)
    assert label("effects", language, names=f"Refund ({words}), Send ({returned})") in shown
    assert code not in shown


@every_code
@both_languages
@needs_node
def test_the_page_says_what_the_terminal_says(code: str, language: Language, tmp_path: Path) -> None:
    view = view_of(code, language)
    feeds = [as_json(json.dumps(envelope.to_dict())) for envelope in log(code)]
    asked = [{"what": "view", "run_id": "r", "language": language, "feeds": feeds, "closed": False}]
    (page_says,) = driven("texts.mjs", asked, tmp_path)
    assert page_says["activities"] == [clean(activity_text(row, language)) for row in view.activities]
    assert page_says["ending"] == [clean(text) for text in ending_texts(view)]
    assert label(NOTE_LABELS[code], language) in page_says["activities"][0]
    assert page_says["work"][1] == ["c1"]  # it is never folded away


@every_code
@both_languages
def test_a_report_says_it_in_its_table_and_among_what_may_have_had_an_effect(code: str, language: Language) -> None:
    facts = facts_of(log(code), language=language)
    assert [(effect["title"], effect["note"]) for effect in facts["effects"]] == [("Refund", code), ("Send", None)]
    spans = {span["name"]: span for span in facts["timeline"]["spans"] if span["kind"] == "tool"}
    assert [(span["note"], span["reused"]) for span in spans.values()] == [(code, False), (None, True)]
    root, words = parsed(page(facts)), label(NOTE_LABELS[code], language)
    listed = section(root, label("effects", language, names="").rstrip(" :：")).all("li")
    assert [item.text for item in listed] == [f"Refund ({words})", f"Send ({label('returned', language)})"]
    table = " ".join(row.text for row in root.all("tr"))
    assert words in table
    assert LABELS["reused"][language] in table
