"""What every verified release made of every scenario, read from files: nothing is installed here."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agents_progress import RunView
from agents_progress.errors import SDKTooOld
from agents_progress.payloads import ENDINGS
from agents_progress.sdk import compat
from compat import golden, matrix, report, streams
from compat.differences import DIFFERENCES, named
from compat.play import UNSTEADY, Line, Performance, played
from compat.registry import SCENARIOS
from compat.runner import Result, judged
from compat.seen import COLUMNS, EXPECTED, expected, logged

RELEASES = matrix.releases()
OVER = {"checking", "done", "rejected", "cancelled", "failed", "incomplete", "unknown"}


def performances(release: str) -> dict[str, Performance]:
    return dict(golden.performances(release, matrix.newest()))


# The envelopes.


@pytest.mark.parametrize("release", RELEASES)
def test_every_scenario_shows_the_truth_or_a_difference_that_is_named(release: str) -> None:
    kept = performances(release)
    assert sorted(kept) == sorted(SCENARIOS)
    assert [problem for each in kept.values() for problem in judged(each, release)] == []


@pytest.mark.parametrize("release", RELEASES)
def test_no_view_says_that_a_run_is_over_before_its_ending_came(release: str) -> None:
    for performance in performances(release).values():
        for run in performance.runs:
            view = RunView("run-1")
            for envelope in logged("run-1", run):
                assert view.status not in OVER, performance.scenario
                view.feed(envelope)
                assert view.issues == [], performance.scenario


@pytest.mark.parametrize("release", RELEASES)
def test_every_run_with_a_known_ending_has_exactly_one(release: str) -> None:
    for name, performance in performances(release).items():
        counts = [sum(type_ in ENDINGS for type_, _ in run) for run in performance.runs]
        last = 0 if SCENARIOS[name].outcome == "none" else 1
        assert counts == [*[1] * (len(counts) - 1), last], name


@pytest.fixture(scope="module")
def installed() -> str:
    release = compat.installed() or ""
    if release not in RELEASES:
        pytest.skip(f"no envelopes are kept for openai-agents {release}")
    return release


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_the_installed_release_makes_the_envelopes_that_are_kept(name: str, installed: str) -> None:
    now, then = played()[name], performances(installed)[name]
    if name not in UNSTEADY:
        assert now.runs == then.runs
    assert now.body == then.body
    assert now.same_as(then)


# What is wrong is seen.

STARTED = ("run.started", {"agent": "A", "task_id": "run-1", "parent": None, "resumed_from": None})
ASKED = ("tool.requested", {"call_id": "c1", "name": "look", "kind": "function"})
SUCCEEDED = ("run.ended", {"outcome": "succeeded", "final_output": "hello world"})


@pytest.mark.parametrize(
    ("body", "run", "fault"),
    [
        ("hung", [STARTED, SUCCEEDED], "its own code hangs"),
        ("returned", [STARTED, SUCCEEDED, SUCCEEDED], "run 1: event_after_terminal"),
        ("returned", [STARTED, SUCCEEDED, SUCCEEDED], "run 1 has more than one ending"),
        ("returned", [STARTED, ASKED, SUCCEEDED], "run 1 succeeded with c1 still open"),
        ("returned", [STARTED], "endings is none, not succeeded"),
        ("raised ValueError", [STARTED, SUCCEEDED], "body is raised ValueError, not returned"),
        ("returned", [STARTED, SUCCEEDED], 'text is "", not "hello world"'),
    ],
)
def test_what_is_not_as_it_must_be_is_said(body: str, run: list[Line], fault: str) -> None:
    assert f"plain: {fault}" in judged(Performance("plain", body, [run]), matrix.newest())


def test_a_difference_holds_for_its_own_releases_only() -> None:
    erased = golden.performances("0.22.3", matrix.newest())["chat_zero_chunks"]
    assert judged(erased, "0.22.3") == []
    assert "chat_zero_chunks: endings is succeeded, not failed" in judged(erased, "0.23.1")


def test_the_truth_passes_in_spite_of_a_difference() -> None:
    truth = golden.performances("0.24.0", matrix.newest())["chat_zero_chunks"]
    assert judged(truth, "0.22.3") == []


# The streams.


@pytest.mark.parametrize("release", RELEASES)
def test_a_recorded_stream_is_translated_as_the_real_one_was(release: str) -> None:
    recorded = streams.recordings(release, matrix.newest())
    assert sorted(recorded) == sorted(streams.RECORDED)
    for name, recording in recorded.items():
        assert streams.again(recording) == recording.drafts, name


def test_an_object_comes_back_with_attributes_and_a_dict_stays_one() -> None:
    back = streams.restored({"@": "Item", "raw_item": {"call_id": "c1"}, "parts": [{"@": "Part", "text": "a"}]})
    assert back.raw_item == {"call_id": "c1"}
    assert back.parts[0].text == "a"
    assert not hasattr(back, "output")


# The tables.


def test_the_truth_has_a_line_for_each_of_at_least_190_scenarios() -> None:
    assert list(expected()) == sorted(SCENARIOS)
    assert len(SCENARIOS) >= 190
    assert EXPECTED.read_text(encoding="utf-8").startswith("\t".join(COLUMNS))


@pytest.mark.parametrize("name", sorted(SCENARIOS))
def test_the_truth_ends_as_the_scenario_does_unless_the_sdk_erases_it(name: str) -> None:
    erased = [each for each in named(name, matrix.newest()) if each.kind == "erased"]
    ends = {each.shown["endings"] for each in erased} or {expected()[name].endings.split()[-1]}
    assert ends == {SCENARIOS[name].outcome}


def test_only_these_endings_are_wrong_and_all_of_them_are_erased_by_the_sdk() -> None:
    wrong = [each for each in DIFFERENCES if "endings" in each.shown]
    assert {each.kind for each in wrong} == {"erased"}
    on_the_newest = {name for each in wrong for name in each.scenarios if each.concerns(matrix.newest())}
    assert on_the_newest == {"chat_finish_length", "chat_finish_content_filter", "stop_on_first_tool_tool_raised"}
    since_0_23 = {name for each in wrong for name in each.scenarios if not each.concerns("0.23.1")}
    assert since_0_23 - on_the_newest == {
        "chat_stream_cut_no_finish_reason",
        "chat_zero_chunks",
        "chat_cut_in_tool_args",
        "leak_nested_approval_same_call_id",
    }


def test_every_difference_is_of_a_scenario_in_the_table_and_of_its_columns() -> None:
    for each in DIFFERENCES:
        assert set(each.scenarios) <= set(SCENARIOS)
        assert set(each.shown) <= set(COLUMNS)
        assert each.shown


def test_the_report_is_what_the_kept_envelopes_say(monkeypatch: pytest.MonkeyPatch) -> None:
    results = [Result(row, performances(row.agents)) for row in matrix.rows()]
    monkeypatch.setattr(compat, "installed", lambda: matrix.below_the_floor().agents)
    with pytest.raises(SDKTooOld) as refused:
        compat.require_supported.__wrapped__()
    assert report.FILE.read_text(encoding="utf-8") == report.text(results, str(refused.value))


def test_the_files_are_few_small_and_name_no_place() -> None:
    for folder in (golden.FOLDER, streams.FOLDER):
        assert sorted(file.stem for file in folder.iterdir()) == sorted(RELEASES)
    files = [file for folder in (golden.FOLDER, streams.FOLDER) for file in folder.iterdir()]
    assert sum(file.stat().st_size for file in files) < 3_000_000
    home = str(Path(__file__).parent.parent)
    for file in files:
        text = file.read_text(encoding="utf-8")
        assert home not in text
        assert all(json.loads(line) for line in text.splitlines())
