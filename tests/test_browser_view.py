"""The browser's reducer: the vectors, and thousands of valid and damaged logs that Python folds to the same."""

from __future__ import annotations

import json
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from agents_progress.errors import BadSnapshot
from agents_progress.messages import MESSAGES
from agents_progress.view import RunView
from tests.browser.feeds import PARTS, Feed, as_json, many
from tests.browser.node import driven, needs_node
from tests.logs import RUN, older
from tests.test_view_rows import mixed

pytestmark = needs_node

CASES: list[dict[str, Any]] = json.loads(
    files("agents_progress").joinpath("vectors/progress_cases.json").read_text(encoding="utf-8")
)


# The vectors.


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("form", ["text", "value"])
def test_every_vector_shows_every_step_and_its_end(language: str, form: str, tmp_path: Path) -> None:
    feeds = [[{form: json.dumps(step) if form == "text" else step} for step in case["events"]] for case in CASES]
    asked = [
        {"run_id": case["run_id"], "language": language, "feeds": steps, "cut": 0}
        for case, steps in zip(CASES, feeds, strict=True)
    ]
    answers = driven("view.mjs", asked, tmp_path)
    assert len(answers) == 30
    for case, answer in zip(CASES, answers, strict=True):
        sentences: Any = MESSAGES
        steps = [[status, sentences[status][language]] for status in case["expected_steps"]]
        assert answer["steps"] == steps, case["name"]
        final = case["expected_final"]
        assert answer["closed"] == [final, sentences[final][language]], case["name"]
        found = {**answer["end"]["plain"], **answer["shown"], "tools": dict(answer["shown"]["tools"])}
        assert {name: found[name] for name in case["expected"]} == case["expected"], case["name"]


# The same logs in Python and in the browser.


def fed(feeds: list[Feed], view: RunView) -> RunView:
    for feed in feeds:
        view.feed(feed)
    return view


def shown(view: RunView) -> dict[str, Any]:
    return {
        "status": view.status,
        "message": view.message,
        "text": view.text,
        "tools": [list(pair) for pair in view.tools.items()],
        "cost": view.cost,
        "issues": view.issues,
        "duplicates": view.duplicates,
        "foreign": view.foreign,
        "messages": [message.to_dict() for message in view.messages],
    }


def as_numbers(value: Any) -> Any:
    """What a browser can say of a value, where every number is a double: one beyond 2^53 is not counted on exactly.

    OverflowError: it is larger than any.
    """
    if isinstance(value, dict):
        return {name: as_numbers(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_numbers(part) for part in value]
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value
    if abs(value) >= 2**53:
        return f"{float(value):.13e}"
    return int(value) if float(value).is_integer() else float(value)


def same(value: Any) -> str:
    """A value as one text, in which true is not 1."""
    return json.dumps(as_numbers(value), sort_keys=True)


def stored(view: RunView) -> str | None:
    """The snapshot as JSON; None when not even Python restores it, because it is nested too deeply."""
    snapshot = view.snapshot()
    try:
        RunView.from_snapshot(snapshot)
    except BadSnapshot:
        return None
    return json.dumps(snapshot)


@pytest.mark.parametrize("part", range(PARTS))
def test_valid_and_damaged_logs_fold_to_the_same_in_python_and_in_the_browser(part: int, tmp_path: Path) -> None:
    logs = many(part)
    asked: list[dict[str, Any]] = []
    for number, feeds in enumerate(logs):
        cut = number % (len(feeds) + 1)
        case = {"run_id": RUN, "language": ("en", "zh")[number % 2], "feeds": [as_json(feed) for feed in feeds]}
        asked.append({**case, "cut": cut, "snapshot": stored(fed(feeds[:cut], RunView(RUN)))})
    answers = driven("view.mjs", asked, tmp_path)
    beyond = 0
    for case, feeds, answer in zip(asked, logs, answers, strict=True):
        view, steps = RunView(RUN, case["language"]), []
        for feed in feeds:
            view.feed(feed)
            steps.append([view.status, view.message])
        assert answer["steps"] == steps, feeds
        assert answer["shown"]["text"] == view.text, feeds
        try:
            whole = same(view.snapshot())
        except OverflowError:
            beyond += 1
            continue
        assert same(answer["shown"]) == same(shown(view)), feeds
        assert same(answer["end"]) == whole, feeds
        if case["snapshot"] is not None:
            assert same(answer["resumed"]) == whole, (case["cut"], feeds)
            other = RunView.from_snapshot(answer["middle"], case["language"])
            assert same(fed(feeds[case["cut"] :], other).snapshot()) == whole, (case["cut"], feeds)
        view.close_transport()
        assert answer["closed"] == [view.status, view.message], feeds
    assert len(logs) > 1000
    assert beyond + sum(case["snapshot"] is None for case in asked) < 20


def test_a_snapshot_from_before_it_was_kept_what_began_when_is_restored_alike(tmp_path: Path) -> None:
    log = [step.to_json() for step in mixed().envelopes]
    snapshot = older(fed(log[:9], RunView(RUN)).snapshot())
    case = {"run_id": RUN, "language": "en", "feeds": [as_json(each) for each in log], "cut": 9}
    (answer,) = driven("view.mjs", [{**case, "snapshot": json.dumps(snapshot)}], tmp_path)
    assert same(answer["resumed"]) == same(fed(log[9:], RunView.from_snapshot(snapshot)).snapshot())
