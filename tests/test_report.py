"""The report of a task: the demo's, hostile ones, long ones, pruned ones, and ones of runs that go on."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agents_progress import Envelope, RunView, demo, open_journal
from agents_progress.journal.base import Origin, RunRow
from agents_progress.messages import LANGUAGES, MESSAGES, ROWS, Language
from agents_progress.outcome import RULES
from agents_progress.report import gather, page
from agents_progress.report.drawing import Scale
from agents_progress.report.page import MOST_DRAWN, MOST_LISTED
from agents_progress.report.words import duration, word
from agents_progress.standing import Standing
from agents_progress.timeline import Timeline
from tests.commands import AT, Command, journal_with, refused, wire
from tests.logs import USAGE, Log, logs

WRITTEN = "2026-10-07T09:00:00.000Z"
VOID = {"br", "meta"}


@dataclass
class Node:
    name: str
    attributes: dict[str, str | None]
    inside: list[Node | str] = field(default_factory=list)

    def all(self, *names: str) -> list[Node]:
        found = [] if self.name not in names else [self]
        for each in self.inside:
            found += each.all(*names) if isinstance(each, Node) else []
        return found

    @property
    def text(self) -> str:
        return "".join(each if isinstance(each, str) else each.text for each in self.inside)

    @property
    def classes(self) -> set[str]:
        return set((self.attributes.get("class") or "").split())


class Parser(HTMLParser):
    """A tree of a page; elements that are not closed where they belong are a failure."""

    def __init__(self) -> None:
        super().__init__()
        self.open = [Node("", {})]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert len({name for name, _ in attrs}) == len(attrs)
        node = Node(tag, dict(attrs))
        self.open[-1].inside.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop().name == tag

    def handle_data(self, data: str) -> None:
        self.open[-1].inside.append(data)


def parsed(html: str) -> Node:
    parser = Parser()
    parser.feed(html)
    parser.close()
    (root,) = parser.open
    return root


def section(root: Node, heading: str) -> Node:
    (found,) = (each for each in root.all("section") if each.all("h2")[0].text == heading)
    return found


def stored(versions: dict[str, str], run_id: str = "run-A") -> RunRow:
    origin = Origin("owner-x", "tenant-x", {"label-x": "label-y"}, "host-x", 424242, versions)
    return RunRow(
        run_id=run_id,
        task_id="task-1",
        title=None,
        seq=1,
        standing=Standing(),
        glance=None,
        started_at=AT,
        updated_at=AT,
        origin=origin,
        sealed=False,
        silent_s=0.0,
        unread_s=None,
        generation=1,
        lease_left_s=5.0,
    )


def facts_of(*runs: list[Envelope], language: Language = "en", sealed: bool = True, **more: Any) -> dict[str, Any]:
    timeline, rows = Timeline(language), []
    for envelopes in runs:
        timeline.begin(envelopes[0].run_id, sealed=sealed)
        rows.append(stored({"agents-progress": "1.2.3"}, envelopes[0].run_id))
        for envelope in envelopes:
            timeline.feed(envelope.to_json())
    return gather(timeline, rows, written_at=WRITTEN, **more)


def timed(facts: dict[str, Any]) -> list[dict[str, Any]]:
    return [span for span in facts["timeline"]["spans"] if span["start_ms"] is not None]


# The demo.


@pytest.fixture(scope="module", params=LANGUAGES)
def played(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, list[list[Envelope]], Language]:
    """The demo in a file, with the logs of its two runs."""
    url = f"sqlite:///{tmp_path_factory.mktemp('demo')}/runs.db"

    async def play() -> list[list[Envelope]]:
        with contextlib.redirect_stdout(io.StringIO()):
            assert await demo.main(url, True, request.param) == 0
        journal = open_journal(url, create=False)
        found = [await journal.read(row.run_id) for row in reversed(await journal.runs())]
        await journal.close()
        return found

    return url, asyncio.run(play()), request.param


Played = tuple[str, list[list[Envelope]], Language]


def reported(command: Command, played: Played, run: int = 1, *more: str) -> str:
    url, runs, language = played
    done = command("report", runs[run][0].run_id, "--journal", url, "--language", language, *more)
    assert (done.code, done.err) == (0, "")
    return done.out


def milliseconds(envelope: Envelope) -> int:
    return round(datetime.fromisoformat(envelope.occurred_at).timestamp() * 1000)


def at(runs: list[list[Envelope]], type_: str, number: int = 0) -> int:
    """When the demo said something, in milliseconds since its first event, as its log has it."""
    found = [envelope for run in runs for envelope in run if envelope.type == type_]
    return milliseconds(found[number]) - milliseconds(runs[0][0])


def test_the_demo_shows_every_activity_once_in_order_and_with_the_durations_of_its_log(
    command: Command, played: Played
) -> None:
    _, runs, language = played
    stated = [e.payload["duration_ms"] for run in runs for e in run if e.type == "tool.finished"]
    titles = [e.payload["title"] for e in runs[0] if e.type == "tool.requested"]
    finished = [e.payload["call_id"] for run in runs for e in run if e.type == "tool.finished"]
    took = dict(zip(finished, stated, strict=True))

    def between(one: str, other: str, number: int = 0, other_number: int | None = None) -> int:
        return at(runs, other, number if other_number is None else other_number) - at(runs, one, number)

    expected = [
        ("agent", "Clerk", 0, between("run.started", "run.ended")),
        ("response", "Clerk", at(runs, "model.started", 0), between("model.started", "model.completed", 0)),
        ("tool", titles[0], at(runs, "tool.requested", 0), took["call_1_1"]),
        ("tool", titles[1], at(runs, "tool.requested", 1), took["call_1_2"]),
        ("response", "Clerk", at(runs, "model.started", 1), between("model.started", "model.completed", 1)),
        ("tool", titles[2], at(runs, "tool.requested", 2), took["call_2_1"]),
        ("wait", titles[2], at(runs, "approval.wait", 0), between("approval.wait", "approval.resolved", 0)),
        ("gap", "", at(runs, "run.ended", 0), between("run.ended", "run.started", 0, 1)),
        ("agent", "Clerk", at(runs, "run.started", 1), between("run.started", "run.ended", 1)),
        ("response", "Clerk", at(runs, "model.started", 2), between("model.started", "model.completed", 2)),
        ("check", "matches", at(runs, "run.ended", 1), between("run.ended", "app.checked", 1, 0)),
    ]
    facts = json.loads(reported(command, played, 1, "--json"))
    spans = facts["timeline"]["spans"]
    assert [(span["kind"], span["name"], span["start_ms"], span["duration_ms"]) for span in spans] == expected
    assert [span["kind"] for span in spans if span["approximate"]] == ["wait", "gap"]
    assert [span["open"] for span in spans] == [False] * len(spans)

    rows = section(parsed(reported(command, played)), word("timeline", language)).all("tbody")[0].all("tr")
    names = [row.all("bdi")[0].text for row in rows]
    assert names == [name for _, name, _, _ in expected]
    assert [[int(cell.attributes["value"] or "") for cell in row.all("data")] for row in rows] == [
        [span["start_ms"], span["end_ms"], span["duration_ms"]] for span in spans
    ]


def test_the_verdict_comes_first_and_says_what_it_rests_on(command: Command, played: Played) -> None:
    _, _, language = played
    root = parsed(reported(command, played))
    (main,) = root.all("main")
    first = main.inside[0]
    assert isinstance(first, Node) and first.name == "header"
    assert MESSAGES["done"][language] in first.text and ROWS[10][language] in first.text
    assert word("report_open", language) not in first.text
    headings = [node.text for node in root.all("h2")]
    assert headings[0] == word("answer", language).rstrip(":：") and len(headings) == len(set(headings))
    assert "R-0815" in section(root, headings[0]).text
    decided = [row.all("code")[0].text for row in root.all("tr") if "decided" in row.classes]
    assert decided == ["has_output"]


def test_either_run_of_a_task_gives_the_whole_of_it(command: Command, played: Played) -> None:
    found = [json.loads(reported(command, played, run, "--json")) for run in (0, 1)]
    for facts in found:
        del facts["written_at"]
    assert found[0] == found[1]
    assert [run["continued_as"] for run in found[0]["runs"]] == [found[0]["run_id"], None]
    assert [run["events"] for run in found[0]["runs"]] == [len(run) for run in played[1]]


def test_the_page_and_the_json_have_the_same_numbers(command: Command, played: Played) -> None:
    facts = json.loads(reported(command, played, 1, "--json"))
    tokens = section(parsed(reported(command, played)), word("tokens_name", played[2]))
    counted = [[int(cell.attributes["value"] or "") for cell in row.all("data")] for row in tokens.all("tr")[1:]]
    names = ("input_tokens", "output_tokens", "total_tokens", "cached_tokens", "reasoning_tokens")
    spans = [span["tokens"] for span in facts["timeline"]["spans"] if span["kind"] == "response"]
    assert counted == [[usage[name] for name in names] for usage in [*spans, facts["usage"]]]
    assert [sum(column) for column in zip(*counted[:-1], strict=True)] == counted[-1]


def test_the_page_fetches_nothing_runs_nothing_and_allows_its_style_alone(command: Command, played: Played) -> None:
    html = reported(command, played)
    assert html.isascii()
    root = parsed(html)
    fetching = {"script", "link", "img", "iframe", "object", "embed", "video", "audio", "source", "use", "base", "form"}
    assert root.all(*fetching) == []
    assert [node for node in each(root) if set(node.attributes) & {"src", "style", "srcset", "xlink:href"}] == []
    assert [name for node in each(root) for name in node.attributes if name.startswith("on")] == []
    (style,) = root.all("style")
    assert "url(" not in style.text and "@import" not in style.text
    digest = base64.b64encode(hashlib.sha256(style.text.encode()).digest()).decode()
    (policy,) = (node.attributes["content"] for node in root.all("meta") if "http-equiv" in node.attributes)
    assert policy == f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def each(node: Node) -> Iterator[Node]:
    yield node
    for inner in node.inside:
        if isinstance(inner, Node):
            yield from each(inner)


def test_the_drawing_has_a_name_a_description_and_a_bar_for_each_span(command: Command, played: Played) -> None:
    pictures = parsed(reported(command, played)).all("svg")
    facts = json.loads(reported(command, played, 1, "--json"))
    for picture in pictures:
        ids = {node.attributes["id"]: node.text for node in picture.all("title", "desc")}
        assert picture.attributes["role"] == "img"
        assert ids[picture.attributes["aria-labelledby"]] and ids[picture.attributes["aria-describedby"]]
    bars = [node for picture in pictures for node in picture.all("rect") if "bar" in node.classes]
    assert len(bars) == len(timed(facts))
    assert [span["kind"] for span in timed(facts)] == [(bar.attributes["class"] or "").split()[1] for bar in bars]
    assert all(0 <= place(bar, "x") and place(bar, "x") + place(bar, "width") <= 100.01 for bar in bars)
    starts = [place(bar, "x") for bar, span in zip(bars, timed(facts), strict=True) if span["begun_ms"] is None]
    assert starts == sorted(starts)


def place(node: Node, name: str) -> float:
    return float((node.attributes[name] or "").removesuffix("%"))


# What leaves.


EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&amp;<!--]]>\x1b[31m\u202e\u2066\x00\x85\u2028مرحبا"


def story(evil: str) -> list[Envelope]:
    log = Log()
    log.say("run.accepted", task_id="task-1", title=evil)
    log.say("run.started", agent=evil, task_id="task-1", parent=None, resumed_from=None, title=evil)
    log.say("model.started", response_id="r1").say("model.incomplete", response_id="r1", reason=evil)
    log.say("usage.updated", **{**USAGE, "x": {"evil": evil}})
    log.request("c1", evil, title=evil, arguments="private arguments").say("tool.started", call_id="c1")
    log.request("c1/x", evil, "agent", title=evil)
    log.say("tool.progress", call_id="c1", message=evil, current=1, total=2)
    log.say("tool.failed", call_id="c1/x", code=evil, message=evil)
    log.request("c2").say("tool.finished", call_id="c2", summary=evil, output="private output")
    log.request("c3").say("tool.skipped", call_id="c3", reason=evil)
    log.say("approval.wait", interaction_id="ask-1", call_id="c1", tool=evil, title=evil, details=evil, expires_at=evil)
    log.say("approval.wait", interaction_id="ask-2", call_id=None, tool=evil, title=evil)
    log.say("approval.resolved", interaction_id="ask-2", decision="rejected", actor=evil)
    log.say("handoff.requested", from_agent=evil, to_agent=evil).say("agent.changed", agent=evil + "2")
    log.say("stage.started", stage_id="s", title=evil).say("guardrail.tripped", stage=evil, name=evil)
    log.say("source.cited", item_id="m", kind=evil, title=evil, url=f"https://example.org/{evil}")
    log.say("artifact.created", artifact_id="a", name=evil, media_type=evil, bytes=7, sha256="a" * 64)
    log.say("text.delta", item_id="m", index=0, text=f"{evil}\n\t{evil}\r\nend")
    log.say("note.evil", evil=evil).say("cancel.requested", actor=evil)
    error = {"code": evil, "message": evil, "retryable": False, "phase": evil}
    evidence = {"raised": evil, evil: evil}
    return log.end(
        "failed", None, error=error, reason=evil, partial=True, requested_by=evil, evidence=evidence
    ).envelopes


def skeleton(root: Node) -> list[tuple[str, list[str]]]:
    """The elements and the names of their attributes."""
    return [(node.name, sorted(node.attributes)) for node in each(root)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_hostile_text_makes_the_same_elements_as_a_harmless_one(language: Language) -> None:
    evil, harmless = (parsed(page(facts_of(story(text), language=language))) for text in (EVIL, "harmless"))
    assert skeleton(evil) == skeleton(harmless)
    for root in (evil, harmless):
        for node in each(root):
            node.inside = [part for part in node.inside if isinstance(part, str) or part.name != "svg"]  # names are cut
    assert evil.text.count("<script>alert(1)</script>") == harmless.text.count("harmless") > 30
    unsafe = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]")
    for node in each(evil):
        assert not unsafe.search("".join(value or "" for value in node.attributes.values()))
    assert not unsafe.search(evil.text.replace("\n", ""))


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_private_leaves(language: Language) -> None:
    facts = facts_of(story("word"), language=language)
    for shown in (json.dumps(facts), page(facts)):
        for private in ("owner-x", "tenant-x", "label-x", "label-y", "host-x", "424242", "private"):
            assert private not in shown
        assert "1.2.3" in shown


@pytest.mark.parametrize(
    ("url", "linked"),
    [
        ("https://example.org/a?b=1&c=2", True),
        ("HTTP://example.org", True),
        ("javascript:alert(1)", False),
        (" https://example.org", False),
        ("data:text/html,x", False),
        ("file:///etc/passwd", False),
        ("//example.org", False),
        ("", False),
    ],
)
def test_only_addresses_of_the_web_are_links(url: str, linked: bool) -> None:
    log = Log().start().say("source.cited", item_id="m", kind="page", title="A page", url=url)
    root = parsed(page(facts_of(log.envelopes)))
    assert [node.attributes["href"] for node in root.all("a")] == ([url] if linked else [])
    assert "A page" in section(root, "Sources").text and url.strip() in section(root, "Sources").text


def test_what_may_have_had_an_effect_counts_over_all_runs_of_the_task() -> None:
    first = Log("r").start().request().say("tool.finished", call_id="c1").request("c2").ask("ask-1", "c2").end("paused")
    last = Log("r.2").start(resumed_from="r").request("c2").ask("ask-1", "c2")
    last.say("approval.resolved", interaction_id="ask-1", decision="cancelled")
    last.say("tool.rejected", call_id="c2", reason="cancelled").end("cancelled", requested_by=None)
    facts = facts_of(first.envelopes, last.envelopes)
    assert facts["effects"] == [{"run_id": "r", "call_id": "c1", "title": "look", "state": "returned", "note": None}]
    root = parsed(page(facts))
    assert [item.text for item in section(root, "May have had an effect").all("li")] == ["look (returned)"]
    assert root.all("h2")[0].text == "May have had an effect"
    assert facts_of(first.envelopes)["effects"] == []


def test_issues_are_named_with_their_run() -> None:
    log = Log("r").start().say("made.up").end()
    facts = facts_of(log.envelopes)
    assert facts["issues"] == [{"run_id": "r", "code": "unknown_event"}] and facts["status"] == "unknown"
    assert "unknown_event · r" in section(parsed(page(facts)), "What does not fit").text


@settings(max_examples=60, deadline=None)
@given(logs())
def test_no_log_breaks_a_report_and_only_done_looks_done(envelopes: list[Envelope]) -> None:
    facts = facts_of(envelopes, sealed=False)
    assert json.loads(json.dumps(facts)) == facts
    root = parsed(page(facts))
    (box,) = (node for node in each(root) if "status" in node.classes)
    assert facts["message"] in box.text
    (mark,) = (node for node in box.all("span") if "mark" in node.classes)
    assert ("done" in box.classes) is (mark.text == "✓") is (facts["status"] == "done")


# Runs that go on, were pruned, or are long.


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_run_that_goes_on_says_so_and_when_that_was(language: Language) -> None:
    log = Log().start().request().say("tool.started", call_id="c1").say("note.later")
    facts = facts_of(log.envelopes, language=language, sealed=False)
    root = parsed(page(facts))
    header = root.all("header")[0]
    assert word("report_open", language) in header.text and facts["over"] is False
    assert [node.attributes["datetime"] for node in header.all("time")] == [WRITTEN]
    (tool,) = (span for span in facts["timeline"]["spans"] if span["kind"] == "tool")
    assert (tool["open"], tool["end_ms"], tool["duration_ms"]) == (True, None, 1000)
    (row,) = (row for row in root.all("tr") if "look" in row.text)
    assert word("until_last", language, duration=duration(1000)) in row.text
    bars = [node for node in root.all("rect") if {"bar", "tool"} <= node.classes]
    assert [("open" in bar.classes, place(bar, "x") + place(bar, "width")) for bar in bars] == [(True, 100.0)]


@pytest.mark.parametrize(("outcome", "over"), [("paused", False), ("cancelled", True), ("succeeded", True)])
def test_a_pause_is_not_over(outcome: str, over: bool) -> None:
    assert facts_of(Log().start().end(outcome).envelopes)["over"] is over


def test_a_pruned_run_says_that_its_times_are_gone() -> None:
    log = Log().start().request().say("tool.finished", call_id="c1", duration_ms=250).end().check()
    view = RunView(log.run_id)
    view.feed_all(log.envelopes)
    timeline = Timeline()
    timeline.begin(log.run_id, snapshot=view.snapshot(), sealed=True)
    facts = gather(timeline, [stored({})], written_at=WRITTEN)
    root = parsed(page(facts))
    assert facts["status"] == "done" and root.all("svg") == []
    timeline_section = section(root, "Timeline")
    assert word("times_gone", "en") in timeline_section.text
    (row,) = timeline_section.all("tbody")[0].all("tr")
    assert [cell.attributes["value"] for cell in row.all("data")] == ["250"]


def test_thousands_of_spans_are_capped_and_the_page_says_how_many_are_left_out() -> None:
    log, count = Log().start(), 3000
    for number in range(1, count):
        log.request(f"c{number}", f"look {number}")
    facts = facts_of(log.envelopes)
    assert len(facts["timeline"]["spans"]) == count
    root = parsed(page(facts))
    drawn, listed = root.all("figure")[0], section(root, "Timeline").all("tbody")[0]
    assert len([bar for bar in drawn.all("rect") if "bar" in bar.classes]) == MOST_DRAWN
    assert [node.text for node in drawn.all("p")] == [word("left_out", "en", count=count - MOST_DRAWN)]
    rows = listed.all("tr")
    assert len(rows) == MOST_LISTED + 1
    assert rows[MOST_LISTED // 2].text == word("left_out", "en", count=count - MOST_LISTED)
    assert ("look 1", "look 2999") == (rows[1].all("bdi")[0].text, rows[-1].all("bdi")[0].text)


def test_a_task_with_more_runs_says_that_the_older_ones_are_left_out() -> None:
    words = word("runs_left_out", "en")
    shown = [page(facts_of(Log().start().envelopes, older_runs=older)) for older in (True, False)]
    assert [words in html for html in shown] == [True, False]


def test_usage_that_is_not_known_is_a_dash_and_a_part_of_it_at_least_so_much() -> None:
    log = Log().start().say("model.started", response_id="x").say("model.completed", response_id="x")
    log.say("usage.updated", **{**USAGE, "cached_tokens": None})
    tokens = section(parsed(page(facts_of(log.envelopes))), "Tokens")
    assert [[cell.text for cell in row.all("th", "td")] for row in tokens.all("tr")[1:]] == [
        ["1 Clerk", "10", "5", "15", "–", "–"],
        ["Total (at least)", "10", "5", "15", "–", "–"],
    ]


def priced(run_id: str, amount: str | None, *, at_least: bool = False, currency: str = "EUR") -> list[Envelope]:
    cost = {"amount": amount, "currency": currency, "at_least": at_least}
    return Log(run_id).start().say("usage.updated", **USAGE, x={} if amount is None else {"cost": cost}).envelopes


@pytest.mark.parametrize(
    ("runs", "cost", "words"),
    [
        (
            [priced("r", "0.1"), priced("r.2", "0.2")],
            {"amount": "0.3", "currency": "EUR", "at_least": False},
            "0.3 EUR",
        ),
        ([priced("r", "0.10")], {"amount": "0.1", "currency": "EUR", "at_least": False}, "0.1 EUR"),
        (
            [priced("r", "1"), priced("r.2", None)],
            {"amount": "1", "currency": "EUR", "at_least": True},
            "at least 1 EUR",
        ),
        (
            [priced("r", "1"), priced("r.2", "2", at_least=True)],
            {"amount": "3", "currency": "EUR", "at_least": True},
            "at least 3 EUR",
        ),
        ([priced("r", "1"), priced("r.2", "2", currency="USD")], None, None),
        ([priced("r", None)], None, None),
    ],
)
def test_the_cost_is_that_of_all_runs_and_never_too_little(
    runs: list[list[Envelope]], cost: dict[str, Any] | None, words: str | None
) -> None:
    facts = facts_of(*runs)
    shown = [node.text for node in section(parsed(page(facts)), "Tokens").all("p")]
    assert facts["cost"] == cost
    assert shown == ([] if words is None else [f"Cost: {words}"])


# Words and places.


@pytest.mark.parametrize(
    ("milliseconds", "words"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1000, "1.00 s"),
        (59_999, "60.00 s"),
        (60_000, "1 min 00 s"),
        (3_599_999, "59 min 59 s"),
        (3_600_000, "1 h 00 min"),
        (172_799_999, "47 h 59 min"),
        (172_800_000, "2 d 0 h"),
    ],
)
def test_a_length_of_time_in_words(milliseconds: int, words: str) -> None:
    assert duration(milliseconds).replace("\N{NO-BREAK SPACE}", " ") == words


def gap(start: int, end: int) -> dict[str, Any]:
    return {"kind": "gap", "start_ms": start, "end_ms": end}


def test_time_between_runs_is_shortened_where_it_would_crush_the_rest() -> None:
    scale = Scale([gap(1000, 86_401_000)], 86_402_000)
    assert scale.shortened
    places = [scale.place(ms) for ms in (0, 1000, 43_201_000, 86_401_000, 86_402_000)]
    assert [round(found, 1) for found in places] == [0, 44.6, 50.0, 55.4, 100]
    assert all(not 1000 < tick < 86_401_000 for tick in scale.ticks())
    short = Scale([gap(1000, 1010)], 2010)
    assert not short.shortened and round(short.place(1005), 3) == 50.0


@settings(deadline=None)
@given(st.lists(st.integers(0, 10**9), max_size=8), st.integers(0, 10**9))
def test_places_never_go_back_and_stay_within_the_picture(edges: list[int], total: int) -> None:
    edges = sorted(min(edge, total) for edge in edges)
    scale = Scale([gap(*pair) for pair in zip(edges[::2], edges[1::2], strict=False)], total)
    places = [scale.place(ms) for ms in sorted([*edges, 0, total])]
    assert all(0 <= one <= other + 1e-9 <= 100.0001 for one, other in pairwise(places))
    ticks = [scale.place(tick) for tick in scale.ticks()]  # the word of the last one has its room, too
    assert all(other - one >= 18 for one, other in pairwise([*ticks, 100.0]))


def test_each_row_of_the_ending_table_has_its_sentence_in_every_language() -> None:
    assert set(ROWS) == {rule.number for rule in RULES}
    assert all(set(sentences) == set(LANGUAGES) for sentences in ROWS.values())


# The command.


@pytest.fixture
def url(tmp_path: Path) -> str:
    return journal_with(tmp_path / "runs.db", [envelope.to_dict() for envelope in Log("run-1").start().end().envelopes])


def test_a_page_goes_to_a_new_private_file_and_replaces_none(command: Command, url: str, tmp_path: Path) -> None:
    assert command("report", "run-1", "--journal", url, "-o", "run.html") == (0, "", "")
    file = tmp_path / "run.html"
    assert file.stat().st_mode & 0o777 == 0o600
    assert parsed(file.read_text(encoding="ascii")).all("h1")[0].text == "run-1"
    refused(command("report", "run-1", "--journal", url, "-o", "run.html"), "File exists: run.html")


def test_json_goes_to_a_file_too(command: Command, url: str, tmp_path: Path) -> None:
    assert command("report", "run-1", "--json", "--journal", url, "-o", "run.json") == (0, "", "")
    assert json.loads((tmp_path / "run.json").read_text())["run_id"] == "run-1"


def test_a_page_is_not_poured_into_a_terminal(command: Command, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    refused(command("report", "run-1", "--journal", url), "-o run.html")
    assert json.loads(command("report", "run-1", "--json", "--journal", url).out)["run_id"] == "run-1"


@pytest.mark.parametrize("run_id", ["nope", "", "x" * 65, "a\x1b[31m"])
def test_a_run_that_no_journal_holds_leaves_no_file(command: Command, url: str, run_id: str, tmp_path: Path) -> None:
    refused(command("report", run_id, "--journal", url, "-o", "run.html"), "holds no run")
    assert not (tmp_path / "run.html").exists()


def test_a_run_whose_envelopes_do_not_fit_is_reported_as_unknown(command: Command, tmp_path: Path) -> None:
    started = wire(1, "run.started", agent="A", task_id="t", parent=None, resumed_from=None)
    url = journal_with(tmp_path / "bad.db", [started, wire(2, "tool.started", call_id=7)])
    facts = json.loads(command("report", "run-1", "--json", "--journal", url).out)
    assert (facts["status"], facts["issues"]) == (
        "unknown",
        [{"run_id": "run-1", "code": "bad_payload_or_transition"}],
    )


def test_pruned_and_whole_runs_of_a_task_are_reported_together(command: Command, tmp_path: Path) -> None:
    first = Log("r").start().request().ask().end("paused")
    last = Log("r.2").start(resumed_from="r").request().ask()
    last.say("approval.resolved", interaction_id="ask-1", decision="approved").say("tool.finished", call_id="c1")
    last.end("failed")
    batches = [[envelope.to_dict() for envelope in log.envelopes] for log in (first, last)]
    url = journal_with(tmp_path / "runs.db", *batches)

    async def prune() -> None:
        journal = open_journal(url)
        await journal.prune("r", 4)
        await journal.close()

    asyncio.run(prune())
    facts = json.loads(command("report", "r", "--json", "--journal", url).out)
    assert [run["pruned"] for run in facts["runs"]] == [True, False]
    shown = [(span["kind"], span["start_ms"] is None, span["state"]) for span in facts["timeline"]["spans"]]
    assert shown == [("tool", True, "returned"), ("wait", True, "approved"), ("agent", False, "returned")]
