"""What the page says of a view: the same strings as Python's, whatever the log holds."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import Any

import pytest

from agents_progress import render
from agents_progress.answers import TEXTS, options_of
from agents_progress.labels import LABELS, REFUSAL_LABELS, age, label, refusal
from agents_progress.messages import LANGUAGES, Language
from agents_progress.plaintext import UNSAFE, clean
from agents_progress.rows import Activity, Interaction
from agents_progress.view import RunView
from tests.browser.feeds import PARTS, Feed, as_json, many
from tests.browser.node import PAGE, driven, needs_node, node
from tests.logs import RUN

pytestmark = needs_node

CASES: list[dict[str, Any]] = json.loads(
    files("agents_progress").joinpath("vectors/progress_cases.json").read_text(encoding="utf-8")
)
HOSTILE = (
    *("\x1b[2J\x1b[31mred", "\x9b2J", "\0\a\b\x7f", "a\r\nb\rc\n\td\n\n", "\r", "\n", "\t", " ", "\u202egpj.exe"),
    *("<img src=x onerror=alert(1)>", "&lt;script&gt;", "{title} {0} {} $& $1 $$", "\u2066a\u2069\u200b\ufeff\u00ad"),
    *(
        "\u2028\u2029\u0085",
        "\ud800",
        "a\udfffb",
        "👨\u200d👩 می\u200cخواهم",
        "\U000e0041\U0001d173",
        "\\x1b \\n",
        "__proto__",
    ),
)


def in_lines(text: str) -> str:
    """A text of several lines, made harmless."""
    parts = [part.split("\t") for part in re.split(r"\r\n|\r|\n", text)]
    return "\n".join("\t".join(map(clean, cells)) for cells in parts)


def said(view: RunView) -> dict[str, Any]:
    """What Python says of a view, before any width."""
    language, activities, questions = view.language, view.activities, list(view.interactions.values())
    ended = [row for row in activities if not row.open]
    work = (
        [row for row in activities if row.open],
        [row for row in ended if row.state in ("failed", "rejected")],
        [row for row in ended if row.state not in ("failed", "rejected")],
    )
    answer = render.answer_of(view)
    return {
        "title": clean(render.title_text(view)),
        "ending": [clean(text) for text in render.ending_texts(view)],
        "open_questions": [row.interaction_id for row in render.open_questions(view)],
        "questions": [clean(render.question_text(row, language)) for row in questions],
        "approvable": [row.approvable for row in questions],
        "activities": [clean(render.activity_text(row, language)) for row in activities],
        "depths": [min(row.activity_id.count("/"), 3) for row in activities],
        "work": [[row.activity_id for row in rows] for rows in work],
        "found": [clean(text) for text in render.found_texts(view)],
        "usage": [clean(text) for text in render.usage_texts(view)],
        "answer": answer
        and {
            "label": label(answer.name, language),
            "text": in_lines(answer.text),
            "missingStart": label("beginning_missing", language) if answer.missing_start else None,
            "partial": answer.name == "answer_partial",
        },
    }


def compared(logs: list[list[Feed]], folder: Path) -> list[dict[str, Any]]:
    """What was said of these logs, in Python and in the browser alike."""
    asked: list[dict[str, Any]] = []
    for number, feeds in enumerate(logs):
        how = {"language": LANGUAGES[number % 2], "closed": number % 3 == 0}
        asked.append({"what": "view", "run_id": RUN, "feeds": [as_json(feed) for feed in feeds], **how})
    found: list[dict[str, Any]] = []
    for case, feeds, answer in zip(asked, logs, driven("texts.mjs", asked, folder), strict=True):
        view = RunView(RUN, case["language"])
        for feed in feeds:
            view.feed(feed)
        if case["closed"]:
            view.close_transport()
        found.append(said(view))
        assert answer == found[-1], feeds
    return found


def test_every_step_of_every_vector_is_said_alike(tmp_path: Path) -> None:
    logs: list[list[Feed]] = []
    for case in CASES:
        steps = [
            json.dumps({**step, "run_id": RUN}) if isinstance(step, dict) else json.dumps(step)
            for step in case["events"]
        ]
        logs += [list(steps[:size]) for size in range(len(steps) + 1) for _ in range(2)]
    found = compared(logs, tmp_path)
    assert len(found) > 200 and any(one["answer"] for one in found) and any(one["ending"] for one in found)


@pytest.mark.parametrize("part", range(PARTS))
def test_valid_and_damaged_logs_are_said_alike_in_python_and_in_the_browser(part: int, tmp_path: Path) -> None:
    found = compared(many(part)[::3], tmp_path)
    for name in ("ending", "open_questions", "questions", "activities", "found", "answer"):
        assert sum(bool(one[name]) for one in found) > 2, name
    assert all(any(one["work"][place] for one in found) for place in range(3))


def rows() -> list[Activity]:
    """Rows with everything that a foreign text or number may be."""
    random = Random(5)
    numbers: list[Any] = [
        None,
        0,
        1,
        -1,
        0.125,
        0.375,
        2.625,
        -0.875,
        1e15,
        1e15 - 0.5,
        -(2**70),
        2**70,
        1e22,
        0.005,
        -0.001,
    ]
    numbers += [random.uniform(-9, 9) * 10 ** random.randint(-4, 16) for _ in range(400)]
    numbers += [random.randrange(-8000, 8000) / 8 for _ in range(400)]
    lasting = [None, 0, 1, 999, 1000, 1005, 1125, 2**53, 10**18, 10**30, *(random.randrange(10**7) for _ in range(400))]
    states: Any = ("requested", "running", "returned", "failed", "rejected", "skipped")
    found: list[Activity] = []
    for number in range(900):
        texts = [random.choice((None, "", *HOSTILE)) for _ in range(4)]
        row = Activity("a/b/c", "function", "n", texts[0] or "", state=states[number % 6], reused=number % 5 == 0)
        row.note, row.summary, row.message = texts[1:]
        row.current, row.total, row.duration_ms = random.choice(numbers), random.choice(numbers), random.choice(lasting)
        found.append(row)
    return found


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_row_with_any_text_and_any_number_is_said_alike(language: Language, tmp_path: Path) -> None:
    asked = [{"what": "row", "row": asdict(row), "language": language} for row in rows()]
    for row, answer in zip(rows(), driven("texts.mjs", asked, tmp_path), strict=True):
        assert answer == clean(render.activity_text(row, language)), row


PAIRED = re.compile("[\ud800-\udbff][\udc00-\udfff]")
"""Two characters in Python, but one in a browser."""


def texts() -> list[str]:
    """Hostile texts, every unsafe character and its neighbours, and what is made of pieces of them."""
    edges = {code for first, last in UNSAFE for code in (first - 1, first, last, last + 1) if code >= 0}
    pieces = [*HOSTILE, *map(chr, sorted(edges)), *"ab\r\n\t\r\n", "\r\n", "流", "🙂"]
    random = Random(3)
    made = [*pieces, *("".join(random.choices(pieces, k=12)) for _ in range(1500))]
    return [text for text in made if PAIRED.search(text) is None]


def test_a_text_is_made_harmless_alike_at_once_and_as_it_grows(tmp_path: Path) -> None:
    random = Random(4)
    asked = [{"what": "text", "text": text, "cuts": sorted(random.choices(range(20), k=5))} for text in texts()]
    answers = driven("texts.mjs", asked, tmp_path)
    for text, answer in zip(texts(), answers, strict=True):
        assert answer == {"clean": clean(text), "lines": in_lines(text), "grown": in_lines(text)}, text
    assert len(answers) > 1000


def test_every_character_is_made_harmless_alike(tmp_path: Path) -> None:
    blocks = ["".join(map(chr, range(first, first + 0x400))) for first in range(0, 0x110000, 0x400)]
    answers = driven("texts.mjs", [{"what": "text", "text": block, "cuts": []} for block in blocks], tmp_path)
    assert [answer["clean"] for answer in answers] == [clean(block) for block in blocks]


def test_a_text_that_does_not_go_on_from_what_is_shown_is_shown_anew() -> None:
    page = json.dumps((PAGE / "texts.js").as_uri())
    code = f"const {{ moreLines }} = await import({page}); console.log(moreLines('abc', 'abd'), moreLines('abc', 'ab'))"
    assert node("--input-type=module", "-e", code) == "null null\n"


# Labels.


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_label_takes_its_values_alike_and_shows_them_harmless(language: Language, tmp_path: Path) -> None:
    places = re.compile(r"{(\w+)}")
    asked = [
        {
            "what": "label",
            "name": name,
            "language": language,
            "values": dict.fromkeys(places.findall(by_language["en"]), text),
        }
        for name, by_language in LABELS.items()
        for text in HOSTILE
    ]
    for case, answer in zip(asked, driven("texts.mjs", asked, tmp_path), strict=True):
        assert answer == clean(label(case["name"], language, **case["values"])), case


@pytest.mark.parametrize("language", LANGUAGES)
def test_an_age_and_a_number_of_steps_are_said_alike(language: Language, tmp_path: Path) -> None:
    lasting = [-5, 0, 0.4, 59, 59.999, 60, 61, 3599, 3600, 86399, 86400, 1e7]
    asked = [{"what": "age", "seconds": seconds, "language": language} for seconds in lasting]
    assert driven("texts.mjs", asked, tmp_path) == [age(seconds, language) for seconds in lasting]
    steps = driven("texts.mjs", [{"what": "steps", "count": count, "language": language} for count in (1, 2)], tmp_path)
    assert steps == [label("step", language, count=1), label("steps", language, count=2)]


def test_what_was_refused_is_said_by_its_code_and_anything_else_is_not_known(tmp_path: Path) -> None:
    codes = [*REFUSAL_LABELS, "busy", "constructor", "__proto__", "\x1b[2J"]
    names = ["to", "\x1b[2J"]
    asked = [{"what": "refusal", "code": code, "names": names, "language": "en"} for code in codes]
    expected = [clean(refusal(code, "en", {"names": names})) for code in codes]
    assert driven("texts.mjs", asked, tmp_path) == expected
    others = [{"what": "refusal", "kind": kind, "language": "zh"} for kind in ("TypeError", "BadSnapshot")]
    assert driven("texts.mjs", others, tmp_path) == [label("not_reached", "zh"), label("page_outdated", "zh")]


# What an answer may carry.


def test_what_a_question_takes_is_known_alike(tmp_path: Path) -> None:
    listed = ('["a", 1, 1.0, true, null, {"x": 1}, 12345678901234567890]', '"mon"', "[]", "{}", "3")
    shown = [None, "", "cut {", "[]", "null", *(f'{{"slots": {each}, "note": ["b"]}}' for each in listed)]
    rows = [
        Interaction("ask-1", None, "pick", "Pick", kind, details=details, options_in=options_in, takes=takes)
        for kind in (*TEXTS, "constructor")
        for details in shown
        for options_in in ("slots", "none", None)
        for takes in (None, {}, {"slots": True})
    ]
    asked = [{"what": "question", "row": asdict(row)} for row in rows]
    for row, said in zip(rows, driven("texts.mjs", asked, tmp_path), strict=True):
        options = list(options_of(row.details, row.options_in))
        editable = row.details is not None and row.takes is not None
        assert said == {"text": TEXTS.get(row.kind, "refused"), "options": options, "editable": editable}, row


# Sources.

LINKS = {
    "https://example.org/a?b=c#d": "https://example.org/a?b=c#d",
    "HTTP://Example.org": "http://example.org/",
    "javascript:alert(1)": None,
    " java\nscript:alert(1)": None,
    "data:text/html,<script>": None,
    "file:///etc/passwd": None,
    "blob:https://example.org/x": None,
    "//example.org/a": None,
    "/runs/other": None,
    "https://good.example@evil.example/": None,
    "https://:secret@evil.example/": None,
    "https://": None,
    "": None,
}


def test_only_what_a_browser_opens_as_a_page_is_a_link(tmp_path: Path) -> None:
    answers = driven("texts.mjs", [{"what": "link", "url": url} for url in LINKS], tmp_path)
    assert dict(zip(LINKS, answers, strict=True)) == LINKS
