"""What a terminal shows of a run: the pure lines, and both displays that follow a run to its end."""

from __future__ import annotations

import asyncio
import hashlib
import io
import logging
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from typing import Any, Final, get_args, get_type_hints

import pytest
from bidi import get_display

import agents_progress.render
from agents_progress.errors import UsageError
from agents_progress.events import Envelope, check_payload
from agents_progress.labels import ANSWER_LABELS, LABELS, Label
from agents_progress.messages import LANGUAGES, MESSAGES, Language, Status
from agents_progress.outcome import Evidence, Outcome, owner_finished
from agents_progress.payloads import PAYLOADS
from agents_progress.plaintext import cell_count, clean
from agents_progress.render import activity_line
from agents_progress.terminal import REFRESH_SECONDS, displays, lines, render, show
from agents_progress.view import RunView
from tests import pictures

AT: Final = "2026-10-07T08:00:01Z"
Event = tuple[str, dict[str, Any]]

STARTED: Final[Event] = (
    "run.started",
    {"agent": "Clerk", "task_id": "t", "parent": None, "resumed_from": None, "title": "Monthly report 月报"},
)
ANSWER: Final = "Inspection ready: 2 items 巡检✓\nAll of it."


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def text(value: str, complete: bool = True) -> list[Event]:
    delta: Event = ("text.delta", {"item_id": "m", "index": 0, "text": value})
    return [delta, ("text.completed", {"item_id": "m"})] if complete else [delta]


def tool(call_id: str, title: str, *steps: Event) -> list[Event]:
    requested: Event = ("tool.requested", {"call_id": call_id, "name": "f", "kind": "function", "title": title})
    return [requested, *((type_, {"call_id": call_id, **more}) for type_, more in steps)]


def ended(outcome: str, output: str | None = None, **more: Any) -> Event:
    return ("run.ended", {"outcome": outcome, "final_output": output, **more})


MAIL = tool("mail", "Send mail", ("tool.started", {}), ("tool.finished", {"duration_ms": 320, "summary": "3 sent"}))
REFUND = tool(
    "refund",
    "Refund order 7",
    ("tool.started", {}),
    ("tool.progress", {"message": "sending", "current": 3, "total": 10}),
)
LOOKUP = tool("look", "Look up", ("tool.started", {}), ("tool.failed", {"code": "timeout", "message": "took too long"}))
ASK: Event = (
    "approval.wait",
    {"interaction_id": "ask-1", "call_id": None, "tool": "publish", "title": "Publish the report?"},
)
FAILURE = {"code": "model_error", "message": "The model could not answer.", "retryable": True, "phase": "model"}
LIMIT = text("Inspection rea", complete=False)

STORIES: Final[dict[Status, list[Event]]] = {
    "accepted": [("run.accepted", {"task_id": "t", "title": "Monthly report 月报"})],
    "running": [STARTED, *MAIL, *LOOKUP, *REFUND, *LIMIT],
    "waiting": [STARTED, *MAIL, ASK, ended("paused")],
    "cancelling": [STARTED, *REFUND, ("cancel.requested", {"actor": "terminal"})],
    "checking": [STARTED, *MAIL, *text(ANSWER), ended("succeeded", ANSWER)],
    "done": [STARTED, *MAIL, *text(ANSWER), ended("succeeded", ANSWER)],
    "rejected": [STARTED, *text(ANSWER), ended("succeeded", ANSWER)],
    "cancelled": [
        STARTED,
        *MAIL,
        *REFUND,
        *LIMIT,
        ("cancel.requested", {}),
        ended("cancelled", requested_by="terminal"),
    ],
    "failed": [STARTED, *LOOKUP, *REFUND, *LIMIT, ended("failed", error=FAILURE, partial=True)],
    "incomplete": [STARTED, *MAIL, *LIMIT, ended("incomplete", reason="max_turns")],
    "unknown": [STARTED, *tool("web", "Search"), ("run.lost", {"reason": "lease_expired"})],
}
STORIES["done"].append(("app.checked", {"digest": digest(ANSWER), "ok": True, "check": "matches"}))
STORIES["rejected"].append(
    ("app.checked", {"digest": digest(ANSWER), "ok": False, "check": "equals", "reason": "no total in it"})
)


def envelopes(events: list[Event], run_id: str = "run-1") -> list[Envelope]:
    made = [Envelope(f"{run_id}:{n}", run_id, n, type_, AT, payload) for n, (type_, payload) in enumerate(events, 1)]
    for envelope in made:
        check_payload(envelope)
    return made


def seen(events: list[Event], language: Language = "en") -> RunView:
    view = RunView("run-1", language)
    for envelope in envelopes(events):
        view.feed(envelope)
    return view


def screen(events: list[Event], width: int = 80) -> str:
    return render(seen(events), width)


# The lines.


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("width", pictures.WIDTHS)
def test_the_eleven_statuses_look_as_they_did(width: int, language: Language) -> None:
    shown = pictures.picture(language, width)
    assert shown == pictures.file_of(language, width).read_text(encoding="utf-8"), "run python -m tests.pictures"
    assert all(cell_count(row) <= width for row in shown.splitlines())


@pytest.mark.parametrize("language", LANGUAGES)
def test_twenty_columns_tell_what_eighty_do(language: Language) -> None:
    for status in get_args(Status):
        view = pictures.seen(pictures.story(status, language), language)
        assert view.status == status
        narrow, wide = ("".join(render(view, width).split()) for width in (20, 80))
        assert narrow == wide


def test_every_status_has_a_story_that_reaches_it() -> None:
    assert {name: seen(story).status for name, story in STORIES.items()} == {name: name for name in MESSAGES}


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("width", range(4, 90, 7))
def test_no_row_is_wider_than_asked_and_the_sentence_is_there_whole(width: int, language: Language) -> None:
    for story in STORIES.values():
        view = seen(story, language)
        shown = lines(view, width)
        assert max(cell_count(row.text) for row in shown) <= width
        sentence = "".join(row.text for row in shown if row.style.startswith("status."))
        assert sentence.replace(" ", "") == view.message.replace(" ", "")


@pytest.mark.parametrize("height", range(1, 30))
def test_a_low_screen_shows_the_status_and_is_never_overfull(height: int) -> None:
    for story in STORIES.values():
        view = seen([*story[:1], *text("line\n" * 100), *story[1:]])
        shown = lines(view, 80, height)
        assert len(shown) <= height
        assert height < 2 or view.message in [row.text for row in shown]
        assert height < terminal_rows_with_answer() or any(row.style == "text" for row in shown)


def terminal_rows_with_answer() -> int:
    return 6


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_an_answer_is_called_is_never_cut_on_a_narrow_screen(language: Language) -> None:
    for name in (*ANSWER_LABELS.values(), *get_args(Label)[-3:]):
        assert cell_count(LABELS[name][language]) <= 20


def test_the_state_of_a_row_is_there_however_long_its_title() -> None:
    rows = screen([STARTED, *tool("c", "流" * 40, ("tool.started", {}))], 20).splitlines()
    assert rows[4:] == ["> running:", "  " + "流" * 9, "  " + "流" * 9, "  " + "流" * 8 + "…"]


RIGHT_TO_LEFT: Final = ("שלום עולם", "مرحبا بالعالم", "קובץ.pdf", "١٢٣", "سلام ۴۵")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("foreign", RIGHT_TO_LEFT)
def test_a_text_from_right_to_left_turns_nothing_of_ours_around(foreign: str, width: int, language: Language) -> None:
    events = [
        ("run.started", {**STARTED[1], "title": foreign}),
        *tool("a", foreign, ("tool.started", {}), ("tool.progress", {"message": foreign, "current": 3, "total": 10})),
        *tool("b", foreign, ("tool.finished", {"duration_ms": 320, "summary": foreign, "reused": True})),
        *tool("c", foreign, ("tool.failed", {"code": "timeout", "message": foreign})),
        ("approval.wait", {**ASK[1], "title": foreign, "expires_at": "2026-10-08"}),
        ("artifact.created", {"artifact_id": "f", "name": foreign, "media_type": "a/b", "bytes": 4096}),
        ("source.cited", {"item_id": "m", "kind": "url", "title": foreign}),
    ]
    view = seen(events, language)
    for row in [*lines(view, width), *(activity_line(each, language, width) for each in view.activities)]:
        shown = get_display(row.text, base_dir="L")  # as a terminal with the Unicode rules shows it
        assert len(shown) == len(row.text)
        for ours in re.finditer(r"[^\W_]+", re.sub("[" + "".join(RIGHT_TO_LEFT) + "]", " ", row.text)):
            assert shown[ours.start() : ours.end()] == ours.group(), row.text


def test_every_label_has_a_text_in_every_language() -> None:
    assert set(LABELS) == set(get_args(Label))
    for texts in LABELS.values():
        assert set(texts) == set(LANGUAGES)
        assert all(re.findall(r"{\w+}", texts[name]) == re.findall(r"{\w+}", texts["en"]) for name in LANGUAGES)
    assert set(ANSWER_LABELS) == set(MESSAGES)
    assert [name for name, label in ANSWER_LABELS.items() if label == "answer"] == ["done"]


def test_current_work_comes_first_and_finished_work_is_folded_but_failed_work_is_not() -> None:
    quick = [step for n in range(20) for step in tool(f"c{n}", f"Quick {n}", ("tool.finished", {}))]
    rows = screen([STARTED, *LOOKUP, *quick, *REFUND]).splitlines()
    assert rows[2:] == [
        "> running: Refund order 7 · 3/10 · sending",
        "! failed: Look up · timeout · took too long",
        "- returned: Quick 17",
        "- returned: Quick 18",
        "- returned: Quick 19",
        "- 17 earlier steps",
    ]


def test_much_open_work_is_folded_and_counted() -> None:
    rows = screen([STARTED, *(step for n in range(10) for step in tool(f"c{n}", f"Open {n}"))]).splitlines()
    assert len(rows) == 11
    assert rows[-1] == "> 2 more that have not ended"


@pytest.mark.parametrize(
    ("current", "total", "shown"),
    [
        (None, None, "> running: T · m"),
        (None, 10, "> running: T · m"),
        (3, None, "> running: T · 3 · m"),
        (3, 10, "> running: T · 3/10 · m"),
        (1.5, 2.0, "> running: T · 1.50/2 · m"),
        (10**5000, 1, "> running: T · …/1 · m"),
    ],
    ids=["neither", "total alone", "current alone", "both", "fractions", "more digits than Python prints"],
)
def test_counts_are_shown_only_when_the_tool_counted(current: float | None, total: float | None, shown: str) -> None:
    progress = {"message": "m", "current": current, "total": total}
    assert shown in screen([STARTED, *tool("c", "T", ("tool.started", {}), ("tool.progress", progress))]).splitlines()


def test_a_nested_call_stands_below_its_parent() -> None:
    events = [STARTED, *tool("a", "Ask"), *tool("a/b", "Leaf"), *tool("a/b/c", "Twig")]
    assert screen(events).splitlines()[2:] == ["> requested: Ask", "  > requested: Leaf", "    > requested: Twig"]


def test_a_stored_result_is_named_as_one() -> None:
    assert "- returned: T · stored result used" in screen(
        [STARTED, *tool("c", "T", ("tool.finished", {"reused": True}))]
    )


@pytest.mark.parametrize("status", ["cancelled", "failed", "incomplete"])
def test_what_tools_may_have_done_is_named_when_the_task_is_not_finished(status: str) -> None:
    not_run = tool("no", "Not run", ("tool.skipped", {"reason": "not_run"}))
    refused = tool("ref", "Refused", ("tool.rejected", {"reason": "approval"}))
    work = [*MAIL, *LOOKUP, *REFUND, *tool("u", "Unseen"), *not_run, *refused]
    shown = " ".join(screen([STARTED, *work, ended(status)]).split())
    assert (
        "May have had an effect: Send mail (returned), Look up (failed), Refund order 7 (running), "
        "Unseen (start not seen)" in shown
    )
    assert "May have" not in screen([STARTED, *work])
    assert "May have" not in screen(STORIES["done"])


def test_a_question_of_a_run_that_is_over_is_not_shown_as_open() -> None:
    assert "Waiting for an answer: Publish the report? (publish)" in screen(STORIES["waiting"])
    assert "Publish" not in screen([STARTED, ASK, ended("failed", error=FAILURE)])
    resolved: Event = ("approval.resolved", {"interaction_id": "ask-1", "decision": "approved"})
    assert "Publish" not in screen([STARTED, ASK, resolved])


@pytest.mark.parametrize(
    ("events", "heading"),
    [
        (text("par", complete=False), "Answer so far:"),
        ([*text("par", complete=False), ended("failed")], "Partial answer:"),
        ([*text("par"), ended("failed", partial=True)], "Partial answer:"),
        ([*text("par"), ended("failed")], "Unconfirmed text:"),
        ([*text("par"), ended("cancelled", "par", completed_anyway=True)], "Unconfirmed text:"),
        ([*text("par", complete=False), ended("cancelled", "par", completed_anyway=True)], "Unconfirmed text:"),
        ([*text("par"), ended("succeeded", "par")], "Answer, unchecked:"),
    ],
)
def test_the_answer_is_called_what_it_is(events: list[Event], heading: str) -> None:
    assert screen([STARTED, *events]).splitlines()[-2:] == [heading, "  par"]


def test_the_published_output_takes_the_place_of_the_text() -> None:
    shown = screen([STARTED, *text("thinking aloud"), ended("succeeded", '{"total":5}')])
    assert '{"total":5}' in shown and "thinking aloud" not in shown


def test_an_empty_output_is_an_output() -> None:
    assert screen([STARTED, ended("succeeded", "")]).endswith("Answer, unchecked:\n  (empty)\n")
    assert "Answer" not in screen([STARTED, ended("failed")])


def test_a_text_whose_beginning_is_missing_says_so() -> None:
    view = RunView("run-1")
    view.feed(Envelope("run-1:4", "run-1", 4, "text.delta", AT, {"item_id": "m", "index": 3, "text": "tail"}))
    assert render(view).endswith("  (beginning missing)\n  tail\n")
    assert "What does not fit: sequence_gap_or_reorder" in render(view)


def test_the_check_is_named_beside_done_and_beside_rejected() -> None:
    assert "Check: matches\n" in screen(STORIES["done"])
    assert "Check: equals\nThe check says: no total in it\n" in screen(STORIES["rejected"])


@pytest.mark.parametrize("width", [20, 80])
async def test_no_answer_can_pass_for_a_status(width: int) -> None:
    forged = (
        f"no\ndone        {MESSAGES['done']['en']}\n{MESSAGES['done']['en']}\r" + "x" * 78 + "done  Done: all of it"
    )
    story = [STARTED, *text(forged), ended("failed", error={**FAILURE, "message": "x" * 60 + " " + "done  Done: y"})]
    for shown in (screen(story, width), await written(story, width=width)):
        assert [row for row in shown.splitlines() if row.lower().startswith("done")] == []


def test_no_status_but_done_is_green() -> None:
    assert [name for name, style in displays.STYLES.items() if "green" in style] == ["status.done"]


def test_a_redraw_of_a_long_answer_looks_at_its_end_only(monkeypatch: pytest.MonkeyPatch) -> None:
    looked_at: list[int] = []

    def counting(text: object) -> str:
        looked_at.append(len(str(text)))
        return clean(text)

    monkeypatch.setattr(agents_progress.render, "clean", counting)
    view = seen([STARTED, *text("流" * 3_000_000)])
    assert len(lines(view, 80, 24)) == 24
    assert sum(looked_at) <= 2 * 80 * 24


def test_a_delta_makes_the_plain_display_look_at_no_row() -> None:
    class Untouchable(dict[str, Any]):
        def values(self) -> Any:
            raise AssertionError("a row was looked at")

    view = seen([STARTED, *MAIL])
    view.rows = Untouchable(view.rows)
    file = io.StringIO()
    displays.PlainDisplay(file, 80).draw(view, "text.delta")
    assert MESSAGES["running"]["en"] in file.getvalue()


def test_the_tail_of_a_growing_line_is_broken_where_it_was_broken_before() -> None:
    words = " ".join(f"w{n}" for n in range(3000))
    one, two = (
        [row.text for row in lines(seen([STARTED, *text(words[:end])]), 80, 24)][:-1] for end in (10_000, 10_001)
    )
    assert one == two


# Foreign text.

PLANTED: Final = "A\x1b[31m\x1b]0;owned\x07\u202e\u2066\x9b2J\r\n\t\x00\u2028[/red][bold]B"
HARMLESS: Final = r"A\x1b[31m\x1b]0;owned\x07\u202e\u2066\x9b2J\r\n\t\x00\u2028[/red][bold]B"
BANNED: Final = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\u200e\u200f\u2028\u2029]")
FIXED: Final[dict[str, Any]] = {
    "call_id": "call-1",  # the one text whose letters the protocol restricts
    "parent": None,
    "resumed_from": None,
    "kind": "function",
    "channel": "answer",
    "index": 0,
    "current": 1,
    "total": 2,
    "bytes": 3,
    "attempt": 1,
    "duration_ms": 4,
    "retryable": True,
    "reused": True,
    "partial": True,
    "completed_anyway": True,
    "ok": True,
    "mode": "immediate",
    "decision": "approved",
    "outcome": "failed",
    "status": "reported",
    "evidence": {PLANTED: PLANTED},
    "x": {PLANTED: PLANTED},
    "error": {"code": PLANTED, "message": PLANTED, "retryable": True, "phase": PLANTED},
    "digest": digest(PLANTED),
    "sha256": digest(PLANTED),
    **dict.fromkeys(
        ["requests", "input_tokens", "output_tokens", "total_tokens", "cached_tokens", "reasoning_tokens"], 5
    ),
}


def planted(type_: str, **chosen: Any) -> Event:
    """A payload with every field there is, and every free text in it planted."""
    names = get_type_hints(PAYLOADS[type_])
    free = {"kind"} if type_ in ("approval.wait", "source.cited") else set()
    return type_, {
        **{name: FIXED[name] if name in FIXED and name not in free else PLANTED for name in names},
        **chosen,
    }


def calls(**per_type: str) -> list[Event]:
    return [planted(type_.replace("_", "."), call_id=call_id) for type_, call_id in per_type.items()]


def attacks() -> list[list[Event]]:
    """Runs that together hold every type, each field planted; a run has one ending and a call one end."""
    middle = [type_ for type_ in PAYLOADS if not type_.startswith(("run.", "app.", "tool.", "cancel"))]
    tools = [
        *(planted(f"tool.{step}") for step in ("requested", "started", "progress")),
        *(planted(f"tool.arguments.{step}") for step in ("delta", "completed")),
        *(
            event
            for end in ("finished", "failed", "rejected", "skipped")
            for event in (planted("tool.requested", call_id=end), planted(f"tool.{end}", call_id=end))
        ),
    ]
    start = [planted("run.accepted"), planted("run.started")]
    closed = [*calls(tool_requested="a", tool_finished="a")]
    return [
        [*start, *tools, *map(planted, middle)],
        [*start, *tools, *map(planted, middle), planted("run.ended")],
        [*start, planted("cancel.requested"), *tools, planted("run.ended", outcome="cancelled")],
        [*start, planted("approval.wait"), planted("run.ended", outcome="paused")],
        [*start, *closed, planted("run.ended", outcome="succeeded"), planted("app.checked")],
        [*start, *closed, planted("run.ended", outcome="succeeded"), planted("app.checked", ok=False)],
        [*start, *tools, planted("run.lost")],
    ]


def test_the_attacks_hold_every_type_and_contradict_nothing() -> None:
    assert {type_ for story in attacks() for type_, _ in story} == set(PAYLOADS)
    assert [seen(story).issues for story in attacks()] == [[]] * len(attacks())


@pytest.mark.parametrize("width", [20, 2000])
@pytest.mark.parametrize("story", range(len(attacks())))
async def test_no_control_of_a_screen_and_no_markup_in_any_field_is_obeyed(story: int, width: int) -> None:
    run = Playback(attacks()[story])
    file = io.StringIO()
    await show(run, file=file, width=width)
    for shown in (render(seen(attacks()[story]), width), file.getvalue()):
        assert BANNED.search(shown) is None
        assert width == 20 or HARMLESS.replace(r"\r\n\t", r"\r\n\t") in shown


@pytest.mark.parametrize("story", range(len(attacks())))
async def test_the_live_display_obeys_no_foreign_control_either(story: int) -> None:
    file = Screen()
    await show(Playback(attacks()[story]), file=file, width=2000)
    assert HARMLESS in file.getvalue()
    foreign = re.sub(r"\x1b\[[0-9;?]*[mKAhlG]|[\r\n]", "", file.getvalue())
    assert BANNED.search(foreign) is None


# Following a run.


class Playback:
    """A run that plays envelopes; ``before`` is awaited ahead of each, by its number."""

    def __init__(self, events: list[Event], before: Callable[[int], Awaitable[None]] | None = None) -> None:
        self.id = "run-1"
        self.view = RunView(self.id)
        self.events = events
        self.before = before
        self.outcome = owner_finished(Evidence(has_output=True))
        self.cancelled_by: list[str | None] = []

    async def __aiter__(self) -> AsyncIterator[Envelope]:
        for number, envelope in enumerate(envelopes(self.events)):
            if self.before is not None:
                await self.before(number)
            yield envelope

    def __await__(self) -> Generator[Any, Any, Outcome]:
        async def outcome() -> Outcome:
            return self.outcome

        return outcome().__await__()

    def cancel(self, *, actor: str | None = None) -> str:
        self.cancelled_by.append(actor)
        return "accepted"


class Screen(io.StringIO):
    """A terminal that remembers what was written to it."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    for name in ("NO_COLOR", "FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


async def written(events: list[Event], **more: Any) -> str:
    file = io.StringIO()
    await show(Playback(events), file=file, **more)
    return file.getvalue()


async def test_without_a_terminal_there_is_one_line_per_change_of_state() -> None:
    assert (await written(STORIES["done"])).splitlines() == [
        "Monthly report 月报 · Clerk",
        "running     Working; not finished yet",
        "> requested: Send mail",
        "> running: Send mail",
        "- returned: Send mail · 320 ms · 3 sent",
        "checking    Run ended; waiting for the application's check",
        "done        Done: the run ended and the check passed",
        "Check: matches",
        "Answer:",
        "  Inspection ready: 2 items 巡检✓",
        "  All of it.",
    ]


async def test_questions_and_their_answers_are_changes_of_state() -> None:
    resolved: Event = ("approval.resolved", {"interaction_id": "ask-1", "decision": "rejected", "actor": "ann"})
    shown = (await written([STARTED, ASK, resolved, ended("failed", error=FAILURE)])).splitlines()
    assert shown[2:] == [
        "waiting     Waiting for approval; not finished yet",
        "? Waiting for an answer: Publish the report? (publish)",
        "running     Working; not finished yet",
        "Refused: Publish the report? (publish)",
        "failed      Failed; the task is not finished",
        "Error model_error: The model could not answer.",
    ]


async def test_deltas_and_progress_write_no_lines() -> None:
    deltas: list[Event] = [("text.delta", {"item_id": "m", "index": n, "text": "x"}) for n in range(500)]
    steps: list[Event] = [("tool.progress", {"message": str(n), "current": n, "total": None}) for n in range(500)]
    shown = await written([STARTED, *deltas, *tool("c", "T", ("tool.started", {}), *steps)])
    assert len(shown.splitlines()) < 20


async def test_show_gives_the_outcome_of_the_run_and_reads_no_other_view() -> None:
    run = Playback(STORIES["done"])
    assert await show(run, file=io.StringIO()) is run.outcome
    assert run.view.seq == 0
    assert run.cancelled_by == []


async def test_the_language_is_that_of_the_runs_view_or_the_one_asked_for() -> None:
    run = Playback(STORIES["done"])
    run.view = RunView("run-1", "zh")
    chinese, english = io.StringIO(), io.StringIO()
    await show(run, file=chinese)
    await show(run, file=english, language="en")
    assert MESSAGES["done"]["zh"] in chinese.getvalue()
    assert MESSAGES["done"]["en"] in english.getvalue()


async def test_a_log_that_ends_without_an_ending_is_shown_as_unknown() -> None:
    assert MESSAGES["unknown"]["en"] in await written([STARTED, *REFUND])
    assert "May have had an effect: Refund order 7 (running)" in await written([STARTED, *REFUND])


async def test_end_9_a_second_ending_takes_success_away_and_changes_no_first_one() -> None:
    shown = await written([STARTED, ended("failed", error=FAILURE), ended("succeeded", "x")])
    assert "Error model_error" in shown
    assert "unknown     Not enough evidence of an ending" in shown
    assert MESSAGES["done"]["en"] not in shown and MESSAGES["checking"]["en"] not in shown


async def test_end_3b_a_feed_that_stops_after_text_is_unknown_and_its_text_partial() -> None:
    shown = await written([STARTED, *text("par", complete=False)])
    assert shown.splitlines()[-3:] == [
        "unknown     Not enough evidence of an ending; check the result",
        "Partial answer:",
        "  par",
    ]


REN_1: Final = ["[/typ]", "[a: /m?id=1]", "[1, 2]", "[/]"]


@pytest.mark.parametrize("file_type", [io.StringIO, Screen])
async def test_ren_1_square_brackets_are_shown_literally(file_type: type[io.StringIO]) -> None:
    finished = tool("c", REN_1[1], ("tool.finished", {"summary": REN_1[2]}))
    failure = {**FAILURE, "message": REN_1[3]}
    file = file_type()
    await show(Playback([STARTED, *text(REN_1[0]), *finished, ended("failed", error=failure)]), file=file)
    for shown in REN_1:
        assert shown in file.getvalue()


class Failing(io.StringIO):
    """A stream that fails from its third write on."""

    writes = 0

    def write(self, text: str) -> int:
        self.writes += 1
        if self.writes >= 3:
            raise BrokenPipeError("the secret of the pipe")
        return super().write(text)


async def test_ren_1_a_display_that_raises_is_logged_once_and_the_run_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = Playback(STORIES["done"])
    with caplog.at_level(logging.ERROR):
        assert await show(run, file=Failing()) is run.outcome
    assert [record.getMessage() for record in caplog.records] == [
        "the terminal display of run run-1 stopped (BrokenPipeError); the run goes on"
    ]
    assert run.cancelled_by == []


async def test_ren_4_a_narrow_cp1252_pipe_gets_short_plain_lines() -> None:
    label = "巡检" * 15 + "✓⠋"
    title: Event = ("run.started", {**STARTED[1], "title": label})
    finished = tool("c", label, ("tool.started", {}), ("tool.finished", {"summary": "✓"}))
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, "cp1252", newline="\n")
    for story in (*STORIES.values(), [title, *finished, *text("✓ café " * 9), ended("succeeded", label)]):
        await show(Playback(story), file=file, width=20)
    file.flush()
    shown = raw.getvalue()
    assert b"\x1b" not in shown and b"\r" not in shown
    rows = shown.decode("cp1252").splitlines()
    assert max(map(cell_count, rows)) <= 20
    assert "done        Done: t…" in rows
    assert "- returned: ???…" in rows


async def test_ren_4_wide_labels_are_cut_to_twenty_cells_before_they_are_replaced() -> None:
    shown = await written([STARTED, *tool("c", "流" * 30)], width=20)
    assert "> requested: 流流流…" in shown.splitlines()
    assert max(map(cell_count, shown.splitlines())) <= 20


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "gbk", "utf-8"])
@pytest.mark.parametrize("width", [4, 20, 80])
async def test_ren_4_a_pipe_of_any_encoding_gets_rows_of_text_and_nothing_else(encoding: str, width: int) -> None:
    for language in LANGUAGES:
        for status in get_args(Status):
            raw = io.BytesIO()
            file = io.TextIOWrapper(raw, encoding, newline="\n")
            await show(Playback(pictures.story(status, language)), file=file, width=width, language=language)
            file.flush()
            shown = raw.getvalue().decode(encoding)
            assert BANNED.search(shown) is None
            assert max(map(cell_count, shown.splitlines())) <= width


async def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    file = Screen()
    await show(Playback(STORIES["done"]), file=file)
    assert "\x1b" not in file.getvalue()


# The live display.


async def test_the_live_display_leaves_the_whole_view_on_the_screen() -> None:
    file = Screen()
    await show(Playback(STORIES["done"]), file=file)
    last = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", file.getvalue()).replace("\r", "\n")
    assert last.endswith(render(seen(STORIES["done"]), 80))
    assert file.getvalue().count("\x1b[?25l") == file.getvalue().count("\x1b[?25h") > 0


FLOOD: Final[list[Event]] = [
    STARTED,
    *(("text.delta", {"item_id": "m", "index": n, "text": "x"}) for n in range(2000)),
]


@pytest.mark.parametrize(("pace", "drawings"), [(3600.0, 1), (0.0, len(FLOOD))])
async def test_a_display_is_drawn_at_its_pace(pace: float, drawings: int) -> None:
    display = Drawn(pace)
    flood(display)
    assert len(display.seqs) == drawings
    assert REFRESH_SECONDS >= 0.1


async def test_what_came_between_two_drawings_is_drawn_without_another_envelope() -> None:
    display = Drawn(0.01)
    flood(display)
    await display.current.wait()
    assert display.seqs[-1] == len(FLOOD)
    assert len(display.seqs) < len(FLOOD) / 2


class Drawn:
    """A display that remembers which state it was drawn in."""

    def __init__(self, pace: float) -> None:
        self.pace = pace
        self.seqs: list[int] = []
        self.current = asyncio.Event()

    def draw(self, view: RunView, type_: str) -> None:
        self.seqs.append(view.seq)
        if view.seq == len(FLOOD):
            self.current.set()

    def close(self, view: RunView) -> None:
        """Nothing to leave."""


def flood(display: Drawn) -> None:
    view = RunView("run-1")
    steady = displays.Steady(display, view)
    for envelope in envelopes(FLOOD):
        view.feed(envelope)
        steady.changed(envelope.type)


async def test_a_live_display_on_a_cp1252_terminal_replaces_what_the_encoding_lacks() -> None:
    class Terminal(io.TextIOWrapper):
        def isatty(self) -> bool:
            return True

    raw = io.BytesIO()
    file = Terminal(raw, "cp1252")
    await show(Playback(STORIES["done"]), file=file)
    file.flush()
    assert "2 items ???".encode("cp1252") in raw.getvalue()


async def test_without_rich_a_live_display_is_refused_with_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "rich.live", None)
    with pytest.raises(UsageError, match=re.escape("pip install 'agents-progress[terminal]'")):
        await show(Playback(STORIES["done"]), file=Screen())
    assert "done" in await written(STORIES["done"])


# Interrupting it.


@pytest.mark.parametrize("file_type", [io.StringIO, Screen])
async def test_interrupting_asks_the_run_to_cancel_and_shows_it_to_its_end(file_type: type[io.StringIO]) -> None:
    reached = asyncio.Event()

    async def before(number: int) -> None:
        if number == len(STORIES["cancelled"]) - 2 and not run.cancelled_by:
            reached.set()
            await asyncio.Event().wait()

    run = Playback(STORIES["cancelled"], before)
    file = file_type()
    task = asyncio.create_task(show(run, file=file))
    await reached.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert run.cancelled_by == ["terminal"]
    assert "Cancel requested by: terminal" in file.getvalue()
    assert MESSAGES["cancelled"]["en"] in file.getvalue()
    assert MESSAGES["unknown"]["en"] not in file.getvalue()


async def test_a_keyboard_interrupt_inside_is_raised_again_after_the_end() -> None:
    async def before(number: int) -> None:
        if number == 2 and not run.cancelled_by:
            raise KeyboardInterrupt

    run = Playback(STORIES["cancelled"], before)
    file = io.StringIO()
    shown = show(run, file=file)
    with pytest.raises(KeyboardInterrupt):
        await shown
    assert run.cancelled_by == ["terminal"]
    assert MESSAGES["cancelled"]["en"] in file.getvalue()


async def test_a_second_interruption_leaves_at_once_and_claims_no_ending() -> None:
    waiting = asyncio.Event()

    async def before(number: int) -> None:
        if number == 2:
            waiting.set()
            await asyncio.Event().wait()

    run = Playback(STORIES["cancelled"], before)
    file = Screen()
    task = asyncio.create_task(show(run, file=file))
    for _ in range(2):
        await waiting.wait()
        waiting.clear()
        task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert MESSAGES["unknown"]["en"] in file.getvalue()
    assert file.getvalue().count("\x1b[?25l") == file.getvalue().count("\x1b[?25h")
