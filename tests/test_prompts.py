"""A person at a pseudo-terminal: what they are asked, what they answer, and what their Ctrl-C does."""

from __future__ import annotations

import asyncio
import json
import signal
import sys
from pathlib import Path

import pytest

from agents_progress.asking import Answer, answer
from agents_progress.journal import open_journal
from agents_progress.labels import LABELS
from agents_progress.messages import MESSAGES
from agents_progress.render import laid_out
from tests.feed_server import Asked, honest, row, serving
from tests.logs import Log

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo-terminals here")
if sys.platform != "win32":
    from tests.terminals import Terminal, child

WAITS = LABELS["still_waits"]["en"]
FIRST, SECOND, LATE = (LABELS[name]["en"] for name in ("stop_after_turn", "stop_at_once", "stop_too_late"))
TERMS = ["xterm-256color", "dumb"]
ENTER = "[a]pprove, [e]dit, [r]eject, [s]kip:"
ENTER_AS_IT_IS = "[a]pprove, [r]eject, [s]kip:"
ENTER_HIDDEN = "[r]eject, [s]kip:"


def last(terminal: Terminal) -> str:
    return terminal.rows[-1].removeprefix("the program ended: ")


# What is asked.


@pytest.mark.parametrize("term", TERMS)
def test_a_question_is_put_with_exactly_what_it_asks_and_the_run_goes_on_with_the_answer(term: str) -> None:
    with Terminal(*child("asks"), TERM=term) as terminal:
        terminal.until(ENTER)
        asked = terminal.rows[-10:]
        assert asked[:8] == [
            "? Waiting for an answer: Refund (refund)",
            "  Exactly this is asked:",
            "    {",
            '      "order": 4711,',
            r'      "note": "שלום [/bold] \u202e工"',
            "    }",
            "  Tool: refund",
            "  Agent: Clerk",
        ]
        assert asked[8].startswith("  Run: ") and asked[9] == ENTER
        terminal.type("a\n")
        assert terminal.end() == 0
        assert last(terminal) == "succeeded"
        assert MESSAGES["done"]["en"] in terminal.text.split(ENTER)[1]
        assert "\x1b" not in terminal.text or term != "dumb"


def test_what_is_not_shown_cannot_be_approved_and_what_was_left_is_not_asked_again() -> None:
    with Terminal(*child("asks twice")) as terminal:
        terminal.until(ENTER)
        terminal.type("Reject\n")
        terminal.until(LABELS["prompt_reason"]["en"])
        terminal.type("\n")
        terminal.until(LABELS["not_shown"]["en"])
        terminal.until(ENTER_HIDDEN)
        for wrong in ("a", "approve", "y", ""):
            terminal.type(f"{wrong}\n")
            terminal.until(LABELS["prompt_again"]["en"])
            terminal.until(ENTER_HIDDEN)
        terminal.type("s\n")
        assert terminal.end() == 0
        after = terminal.text[terminal.text.rindex(ENTER_HIDDEN) :]
        assert "! refused: Refund" in after and "Tell" in after and WAITS in after
        assert last(terminal) == "paused"


def test_what_is_not_shown_is_approved_where_the_application_lets_it() -> None:
    with Terminal(*child("asks blind")) as terminal:
        terminal.until(ENTER)
        terminal.type("a\n")
        terminal.until("lets it be approved")
        terminal.until(ENTER_AS_IT_IS)
        terminal.type("a\n")
        assert terminal.end() == 0
        assert last(terminal) == "succeeded"


def test_a_person_answers_in_words_chooses_by_number_and_edits_what_is_approved() -> None:
    """A line after what it answers; what does not fit is told, and asked for again."""
    enter = {name: by_language["en"] for name, by_language in LABELS.items()}
    dialogue = [
        (ENTER, "a"),
        (enter["prompt_text"], ""),
        (enter["refusal_text_missing"], None),
        (enter["prompt_text"], "the blue one"),
        (ENTER, "a"),
        ("  2. tue", None),
        (enter["prompt_option"], "3"),
        (enter["refusal_no_option"], None),
        (enter["prompt_option"], "2"),
        (ENTER, "e"),
        (enter["prompt_arguments"], '{"order": 1, "note"'),
        (enter["refusal_no_object"], None),
        (enter["prompt_arguments"], '{"order": 1, "to": "x"}'),
        ("The tool has no such arguments: to", None),
        (enter["prompt_arguments"], '{"order": 2, "note": "half of it"}'),
    ]
    with Terminal(*child("asks for words")) as terminal:
        for shown, typed in dialogue:
            terminal.until(shown)
            if typed is not None:
                terminal.type(f"{typed}\n")
        assert terminal.end() == 0
        assert last(terminal) == "succeeded ['the blue one', 'tue', (2, 'half of it')]"
        assert "Approved: Refund (refund) · arguments edited by terminal" in terminal.text


@pytest.mark.parametrize("leave", ["s\n", "\x04"])
def test_who_answers_nothing_is_told_that_the_run_still_waits(leave: str) -> None:
    with Terminal(*child("asks")) as terminal:
        terminal.until(ENTER)
        terminal.type(leave)
        assert terminal.end() == 0
        assert terminal.rows[-2:] == [WAITS, "the program ended: paused"]


def test_ctrl_c_at_the_prompt_answers_nothing_and_leaves() -> None:
    with Terminal(*child("asks")) as terminal:
        terminal.until(ENTER)
        terminal.type("\x03")
        assert terminal.end() == 0
        assert terminal.rows[-2:] == [WAITS, "the program ended: interrupted"]
        assert terminal.text.count("\x1b[?25l") == terminal.text.count("\x1b[?25h")


def test_what_was_typed_before_the_question_was_there_answers_nothing() -> None:
    with Terminal(*child("works asks")) as terminal:
        terminal.until("running: Look")
        terminal.type("a\n")
        terminal.until("a")  # the terminal has it
        terminal.signal(signal.SIGUSR1)
        terminal.until(ENTER)
        terminal.type("r\n")
        terminal.until(LABELS["prompt_reason"]["en"])
        terminal.type("\n")
        assert terminal.end() == 0
        assert "! refused: Refund" in terminal.text and "returned: Refund" not in terminal.text


def test_who_is_overtaken_is_told_and_shown_the_run_that_goes_on() -> None:
    with Terminal(*child("asks elsewhere")) as terminal:
        terminal.until(ENTER)
        terminal.type("a")
        terminal.signal(signal.SIGUSR1)
        terminal.until(LABELS["refusal_answered"]["en"])
        assert terminal.end() == 0
        assert last(terminal) == "succeeded"


def test_a_program_that_did_not_ask_for_it_is_given_its_pause() -> None:
    with Terminal(*child("asks nobody")) as terminal:
        assert terminal.end() == 0
        assert ENTER not in terminal.text and last(terminal) == "paused"


def test_nobody_is_asked_who_cannot_see_or_type(tmp_path: Path) -> None:
    with Terminal("-c", PIPED, str(tmp_path / "out")) as terminal:
        assert terminal.end() == 0
        assert (tmp_path / "out").read_text().endswith("the program ended: paused\n")
        assert ENTER not in terminal.text


PIPED = """
import subprocess, sys
with open(sys.argv[1], "w") as out:
    raise SystemExit(subprocess.call([sys.executable, "-m", "tests.scenes", "asks"], stdout=out))
"""


def test_details_are_laid_out_without_changing_a_thing() -> None:
    assert laid_out('{"b": [], "a": {"x": [1.50, 2e400, "a,b:{}"]}, "a": "\\u5de5\\n\\u202e"}') == [
        "{",
        '  "b": [],',
        '  "a": {',
        '    "x": [',
        "      1.50,",
        "      2e400,",
        '      "a,b:{}"',
        "    ]",
        "  },",
        '  "a": "工\\n\u202e"',
        "}",
    ]
    assert laid_out("rm -rf {\nx") == ["rm -rf {", "x"]
    assert laid_out("") == [""]
    assert laid_out('{"שלום": 12}') == ["{", '  "שלום": ', "    12", "}"]


# Ctrl-C.


@pytest.mark.parametrize("term", TERMS)
def test_ctrl_c_once_lets_the_turn_end_and_says_what_a_second_one_does(term: str) -> None:
    with Terminal(*child("works"), TERM=term) as terminal:
        terminal.until("> running: Look")
        terminal.type("\x03")
        terminal.until(FIRST)
        terminal.signal(signal.SIGUSR1)
        assert terminal.end() == 0
        assert "- returned: Look" in terminal.text and MESSAGES["cancelled"]["en"] in terminal.text
        assert "never asked for" not in terminal.text and SECOND not in terminal.text
        assert last(terminal) == "interrupted"


@pytest.mark.parametrize("term", TERMS)
def test_ctrl_c_twice_stops_the_run_at_once(term: str) -> None:
    with Terminal(*child("works"), TERM=term) as terminal:
        terminal.until("> running: Look")
        terminal.type("\x03")
        terminal.until(FIRST)
        terminal.type("\x03")
        assert terminal.end() == 0
        assert "May have had an effect: Look (running)" in terminal.text
        assert term != "dumb" or SECOND in terminal.text
        assert last(terminal) == "interrupted"
        assert terminal.text.count("\x1b[?25l") == terminal.text.count("\x1b[?25h")


@pytest.mark.parametrize("term", TERMS)
def test_ctrl_c_thrice_leaves_a_run_that_does_not_stop(term: str) -> None:
    with Terminal(*child("is checked"), TERM=term) as terminal:
        terminal.until(MESSAGES["checking"]["en"])
        for _ in range(2):
            terminal.type("\x03")
            terminal.until(LATE)
        terminal.type("\x03")
        terminal.until(LABELS["left"]["en"])
        assert terminal.end() == 0
        assert last(terminal) == "interrupted"
        assert MESSAGES["done"]["en"] not in terminal.text


def test_run_sync_is_stopped_by_ctrl_c_in_the_same_two_steps() -> None:
    with Terminal(*child("sync", "works", "tell")) as terminal:
        terminal.until("looking")
        terminal.type("\x03")
        terminal.until(FIRST)
        terminal.type("\x03")
        terminal.until(SECOND)
        assert terminal.end() == 0
        assert last(terminal) == "interrupted"


# ``tail --answer``.


def kept(path: Path) -> str:
    return f"sqlite:///{path}/runs.db"


def test_tail_answers_a_question_of_a_run_that_another_process_owns(tmp_path: Path) -> None:
    with Terminal(*child("kept", kept(tmp_path))) as owner:
        owner.until("paused")
        tail = ("-m", "agents_progress", "tail", "r", "--journal", kept(tmp_path), "--answer")
        with Terminal(*tail) as terminal:
            terminal.until(ENTER)
            terminal.type("a\n")
            terminal.until(LABELS["prompt_reason"]["en"])
            terminal.type("a broken cup\n")
            terminal.until(LABELS["answer_taken"]["en"])
            assert terminal.end() == 0
            assert MESSAGES["done"]["en"] in terminal.text
        owner.signal(signal.SIGUSR1)
        assert owner.end() == 0

    async def asked() -> list[dict[str, object]]:
        journal = open_journal(kept(tmp_path), create=False)
        found = [dict(request.body) for request in await journal.requests(["r"])]
        await journal.close()
        return found

    (stored,) = asyncio.run(asked())
    assert stored.pop("digest")
    assert stored == {"decision": "approved", "actor": "terminal", "reason": "a broken cup"}


def test_a_tail_that_is_overtaken_follows_the_run_that_goes_on(tmp_path: Path) -> None:
    async def reject() -> None:
        journal = open_journal(kept(tmp_path), create=False)
        row = await journal.run("r")
        assert row is not None
        (envelope,) = [each for each in await journal.read("r") if each.type == "approval.wait"]
        given = Answer("ask-1", "rejected", "ann", digest=envelope.payload["digest"])
        assert await answer(journal, row, given, within=30) == "r.2"
        await journal.close()

    with Terminal(*child("kept", kept(tmp_path))) as owner:
        owner.until("paused")
        with Terminal("-m", "agents_progress", "tail", "r", "--journal", kept(tmp_path), "--answer") as terminal:
            terminal.until(ENTER)
            asyncio.run(reject())
            terminal.until(LABELS["refusal_answered"]["en"])
            assert terminal.end() == 0
            assert "! refused: Refund" in terminal.text


def test_a_tail_that_is_left_at_its_prompt_leaves_the_run_waiting(tmp_path: Path) -> None:
    with Terminal(*child("kept", kept(tmp_path))) as owner:
        owner.until("paused")
        with Terminal("-m", "agents_progress", "tail", "r", "--journal", kept(tmp_path), "--answer") as terminal:
            terminal.until(ENTER)
            terminal.type("\x03")
            assert terminal.end() == 130
            assert terminal.rows[-1] == WAITS
        owner.signal(signal.SIGUSR1)
        assert owner.end() == 0
        assert last(owner) == "waiting"


def test_leaving_a_tail_says_that_the_run_is_left_as_it_is(tmp_path: Path) -> None:
    with Terminal(*child("kept", kept(tmp_path), "works")) as owner:
        owner.until("running")
        with Terminal("-m", "agents_progress", "tail", "r", "--journal", kept(tmp_path)) as terminal:
            terminal.until("> running: Look")
            terminal.type("\x03")
            assert terminal.end() == 130
            assert terminal.rows[-1] == LABELS["left_alone"]["en"]
            assert MESSAGES["unknown"]["en"] not in terminal.text


PAUSED = (
    Log("run-1")
    .start()
    .say(
        "approval.wait",
        interaction_id="ask-1",
        call_id=None,
        tool="refund",
        title="Refund",
        digest="d" * 64,
        details='{"eur": 12}',
    )
    .end("paused")
    .envelopes
)
LATER = Log("run-1.2").start(resumed_from="run-1").end().check().envelopes


@pytest.mark.parametrize("first", [True, False])
async def test_tail_answers_a_question_on_a_server_with_the_digest_of_what_was_shown(first: bool) -> None:
    given: list[dict[str, object]] = []

    async def question(asked: Asked) -> None:
        given.append(json.loads(asked.body))
        if first:
            await asked.answer(202, {"answer": "accepted", "continued_as": "run-1.2"})
        else:
            await asked.refuse(409, "already_answered", decision="rejected", actor="ann")

    answers = {
        "/runs/run-1/events": honest(PAUSED),
        "/runs/run-1": lambda asked: asked.answer(
            200, row(status="waiting", continued_as="run-1.2" if given else None)
        ),
        "/runs/run-1/interactions/ask-1": question,
        "/runs/run-1.2/events": honest(LATER),
    }

    def person(url: str) -> str:
        with Terminal("-m", "agents_progress", "tail", url, "--answer") as terminal:
            terminal.until('"eur": 12')
            terminal.until(ENTER_AS_IT_IS)
            terminal.type("r\n")
            terminal.until(LABELS["prompt_reason"]["en"])
            terminal.type("\n")
            terminal.until(LABELS["answer_taken" if first else "refusal_answered"]["en"])
            assert terminal.end() == 0
            return terminal.text

    async with serving(lambda asked: answers[asked.path](asked)) as server:
        text = await asyncio.to_thread(person, f"{server.url}/runs/run-1")
    assert given == [{"decision": "reject", "digest": "d" * 64}]
    assert MESSAGES["done"]["en"] in text
