"""The command line: what each command prints, and that nothing foreign or broken gets more than one sentence."""

from __future__ import annotations

import asyncio
import io
import json
import os
import re
import subprocess
import sys
import types
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest

from agents_progress import cli
from agents_progress.errors import BadRecording
from agents_progress.events import json_schema
from agents_progress.journal import DEFAULT_URL, open_journal
from agents_progress.messages import LANGUAGES, MESSAGES, Language
from agents_progress.recordings import built_in, load
from agents_progress.view import RunView
from tests.commands import Command, Printed, child, journal_with, refused, wire
from tests.logs import Log

VECTORS = files("agents_progress").joinpath("vectors/progress_cases.json").read_text(encoding="utf-8")
CASES: list[dict[str, Any]] = json.loads(VECTORS)
by_case = pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])


STARTED = wire(1, "run.started", agent="Clerk", task_id="t", parent=None, resumed_from=None, title="Report")
ENDED = wire(2, "run.ended", outcome="failed", final_output=None)


# replay


def statuses(rows: list[str]) -> list[str]:
    """The status column of replayed rows, up to the row of the end."""
    last = next(place for place, row in enumerate(rows) if row.startswith("     end  of input"))
    return [row[36:46].strip() for row in rows[: last + 1]]


@by_case
def test_a_built_in_case_is_replayed_by_its_name(command: Command, case: dict[str, Any]) -> None:
    printed = command("replay", case["name"])
    assert printed.code == 0 and printed.err == ""
    assert statuses(printed.rows) == [*case["expected_steps"], case["expected_final"]]


def test_a_step_shows_number_type_status_and_sentence(command: Command) -> None:
    assert command("replay", "no_verdict").rows == [
        "       1  run.ended                 checking    Run ended; waiting for the application's check",
        "     end  of input                  checking    Run ended; waiting for the application's check",
    ]


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_replay_speaks_the_language_asked_for(command: Command, language: Language) -> None:
    assert MESSAGES["checking"][language] in command("replay", "no_verdict", "--language", language).out


def test_issues_and_ignored_envelopes_are_named_after_a_replay(command: Command) -> None:
    assert command("replay", "id_conflict").rows[-1].strip() == "id_conflict"
    assert command("replay", "duplicate_delta").rows[-1].strip() == "duplicates 1"
    assert command("replay", "foreign_run").rows[-1].strip() == "foreign 1"


def written(path: Path, text: str | bytes) -> str:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


FORMS = {
    "an array": json.dumps([STARTED, ENDED]),
    "a pretty array": json.dumps([STARTED, ENDED], indent=1),
    "lines": f"{json.dumps(STARTED)}\n\n{json.dumps(ENDED)}\n",
    "CRLF lines": f"{json.dumps(STARTED)}\r\n{json.dumps(ENDED)}",
    "a byte order mark": "\ufeff" + json.dumps([STARTED, ENDED]),
    "one case": json.dumps({"run_id": "run-1", "events": [STARTED, ENDED]}),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_every_form_of_a_file_gives_the_same_replay(command: Command, tmp_path: Path, form: str) -> None:
    printed = command("replay", written(tmp_path / "f", form))
    assert (printed.code, statuses(printed.rows)) == (0, ["running", "failed", "failed"])


def test_one_envelope_alone_is_a_recording(command: Command, tmp_path: Path) -> None:
    assert statuses(command("replay", written(tmp_path / "f", json.dumps(STARTED, indent=1))).rows) == [
        "running",
        "unknown",
    ]


def test_a_line_separator_inside_a_text_ends_no_json_line(command: Command, tmp_path: Path) -> None:
    line = json.dumps(wire(1, "note.x", text="a\u2028b\u0085c"), ensure_ascii=False)
    assert command("replay", written(tmp_path / "f", line)).code == 0


def test_the_cases_of_a_file_are_replayed_one_by_one_or_by_name(command: Command, tmp_path: Path) -> None:
    path = written(tmp_path / "v#1.json", VECTORS)
    whole = command("replay", path)
    assert [row[3:] for row in whole.rows if row.startswith("== ")] == [case["name"] for case in CASES]
    assert command("replay", f"{path}#normal").rows == command("replay", "normal").rows


def test_a_file_of_several_runs_is_sorted_by_run_and_loses_nothing(command: Command, tmp_path: Path) -> None:
    other = wire(1, "run.lost", "run-2", reason="owner_gone")
    printed = command("replay", written(tmp_path / "f", json.dumps([STARTED, other, "junk", ENDED])))
    assert [row for row in printed.rows if row.startswith("==")] == ["== run-1", "== run-2"]
    assert len(printed.rows) == 2 + 4 + 2 + 1
    assert "bad_envelope" in printed.out


def test_recordings_come_from_the_standard_input_too(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(json.dumps([STARTED, ENDED]).encode())))
    assert statuses(command("replay", "-").rows) == ["running", "failed", "failed"]


@pytest.mark.parametrize("arguments", [[], ["--list"]])
def test_the_built_in_cases_can_be_listed(command: Command, arguments: list[str]) -> None:
    assert command("replay", *arguments).rows == list(built_in()) == [case["name"] for case in CASES]


BAD_FILES = {
    "half a line": (f"{json.dumps(STARTED)}\n{json.dumps(ENDED)[:-9]}", "line 2 of .* cut off"),
    "half an array": (json.dumps([STARTED, ENDED])[:-9], "no whole JSON array.*line 1"),
    "plain text": ("hello\n", "line 1"),
    "nothing": ("", "neither envelopes nor cases"),
    "an empty array": ("[]", "neither envelopes nor cases"),
    "a number": ("5", "neither envelopes nor cases"),
    "another object": ('{"a": 1}', "neither envelopes nor cases"),
    "not UTF-8": (b"\xff\xfe", "not UTF-8"),
    "a case without a run": ('[{"name": "x", "events": []}]', "lacks a text as run_id"),
    "a case with a wrong name": ('[{"name": 5, "run_id": "r", "events": []}]', "lacks a text"),
    "too deep": ("[" * 100_000, "nested too deeply|no whole JSON"),
    "a deep line": ("x\n" + "[" * 100_000, "line 1"),
    "too many digits": ("[" + "9" * 5000 + "]", "digits|no whole JSON"),
}


@pytest.mark.parametrize(("content", "words"), BAD_FILES.values(), ids=BAD_FILES)
def test_a_bad_file_gets_one_sentence(command: Command, tmp_path: Path, content: str | bytes, words: str) -> None:
    refused(command("replay", written(tmp_path / "f", content)), words)


@pytest.mark.parametrize("name", ["nope", "nope.json#normal", "no\x1b[31mred", "a\nb", "#", "x" * 5000])
def test_an_unknown_name_gets_one_sentence_without_controls(command: Command, name: str) -> None:
    printed = command("replay", name)
    refused(printed, "no file|directory|too long")
    assert "\x1b" not in printed.err


def test_an_unknown_case_of_a_file_gets_one_sentence_that_names_its_cases(command: Command, tmp_path: Path) -> None:
    refused(command("replay", written(tmp_path / "v.json", VECTORS) + "#nope"), "has no case 'nope'; it has token_only")


def test_a_directory_and_a_file_that_may_not_be_read_get_one_sentence(command: Command, tmp_path: Path) -> None:
    refused(command("replay", str(tmp_path)), "directory")
    refused(command("replay", str(tmp_path / "f.json") + "/x"), "no file")


def test_foreign_text_of_a_replayed_file_reaches_the_screen_escaped(command: Command, tmp_path: Path) -> None:
    evil = "\x1b[31m\u202e\x9b2J\r\n"
    events = [
        {**STARTED, "type": f"note.{evil}"},
        {"seq": evil, "type": [evil]},
        {"seq": 10**4000, "type": "x" * 999},
    ]
    case = [{"name": f"n{evil}", "run_id": "run-1", "events": events}] * 2
    shown = command("replay", written(tmp_path / "f", json.dumps(case))).out
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e]", shown)
    assert r"\x1b[31m\u202e\x9b2J\r\n" in shown
    assert max(map(len, shown.splitlines())) < 200


def test_an_output_that_lacks_the_characters_gets_question_marks(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, "cp1252"))
    assert cli.main(["replay", "normal", "--language", "zh"]) == 0
    assert b"done        ????" in raw.getvalue()


def test_loading_is_refused_with_an_exception_of_the_tree() -> None:
    with pytest.raises(BadRecording):
        load("nope")


# schema


def test_the_schema_is_printed_as_json(command: Command) -> None:
    assert json.loads(command("schema").out) == json_schema()


def test_a_schema_file_is_compared(command: Command, tmp_path: Path) -> None:
    file = written(tmp_path / "schema.json", command("schema").out)
    assert command("schema", "--check", file)[:2] == (0, f"{file} is the schema of agents-progress/1\n")
    other = json_schema()
    other["$defs"].popitem()
    differing = command("schema", "--check", written(tmp_path / "old.json", json.dumps(other)))
    assert differing.code == 1 and "differs from the schema" in differing.out
    refused(command("schema", "--check", written(tmp_path / "bad.json", "{")), "is no JSON")
    refused(command("schema", "--check", "missing.json"), "No such file or directory: missing.json")


# runs, show


def test_runs_are_listed_newest_first_with_their_status(command: Command, tmp_path: Path) -> None:
    second = [{**STARTED, "event_id": "run-2:1", "run_id": "run-2"}]
    url = journal_with(tmp_path / "j.db", [STARTED, ENDED], second)
    heading, *rows = command("runs", "--journal", url).rows
    assert heading.split() == ["Run", "Status", "Age", "Title"]  # and no column of which nothing is known
    assert [row.split() for row in rows] == [
        ["run-2", "running", "0", "s", "Report"],
        ["run-1", "failed", "0", "s", "Report"],
    ]
    assert len(command("runs", "--journal", url, "--limit", "1").rows) == 2


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_paused_run_that_was_continued_says_so(command: Command, tmp_path: Path, language: Language) -> None:
    paused = [STARTED, wire(2, "run.ended", outcome="paused", final_output=None)]
    alone = journal_with(tmp_path / "alone.db", paused)
    assert "Continued" not in command("runs", "--journal", alone).out
    assert json.loads(command("show", "run-1", "--journal", alone, "--json").out)["continued_as"] is None
    again = {**STARTED, "event_id": "run-1.2:1", "run_id": "run-1.2"}
    more = {**ENDED, "event_id": "run-1.2:2", "run_id": "run-1.2"}
    other = wire(1, "run.accepted", "run-9", task_id="another")
    url = journal_with(tmp_path / "j.db", paused, [again, more], [other])
    rows = command("runs", "--journal", url).rows
    assert [row for row in rows if "Continued" in row] == [rows[3]]
    assert rows[3].startswith("run-1    waiting") and "Continued as run-1.2" in rows[3]
    listed = json.loads(command("runs", "--journal", url, "--json").out)
    assert [row["continued_as"] for row in listed] == [None, None, "run-1.2"]
    first = command("show", "run-1", "--journal", url, "--language", language).rows[0]
    assert "run-1.2" in first and first.endswith(MESSAGES["failed"][language])
    assert json.loads(command("show", "run-1", "--journal", url, "--json").out)["continued_as"] == "run-1.2"


def test_runs_as_json_name_run_status_and_sentence(command: Command, tmp_path: Path) -> None:
    url = journal_with(tmp_path / "j.db", [STARTED, ENDED])
    (row,) = json.loads(command("runs", "--journal", url, "--json", "--language", "zh").out)
    assert (row["run_id"], row["status"], row["message"]) == ("run-1", "failed", MESSAGES["failed"]["zh"])
    assert row["seq"] == 2 and row["labels"] == {} and row["title"] == "Report"


def test_the_journal_of_the_working_directory_is_the_default(command: Command, tmp_path: Path) -> None:
    refused(command("runs"), "there is no journal at agents-progress.db")
    journal_with(tmp_path / "agents-progress.db", [STARTED])
    assert command("runs").rows[1].startswith("run-1  running")
    assert command("show", "run-1").code == 0


def test_an_empty_journal_is_no_fault(command: Command, tmp_path: Path) -> None:
    url = journal_with(tmp_path / "j.db", [])
    assert command("runs", "--journal", url)[:2] == (0, f"no runs in {url}\n")
    assert json.loads(command("runs", "--journal", url, "--json").out) == []


@pytest.mark.parametrize("arguments", [["runs"], ["runs", "--json"], ["show", "run-1"], ["show", "run-1", "--json"]])
def test_a_journal_that_does_not_exist_is_refused_and_not_made(
    command: Command, tmp_path: Path, arguments: list[str]
) -> None:
    refused(command(*arguments, "--journal", f"sqlite:///{tmp_path}/none.db"), "there is no journal at")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["", "nope", "mysql://x/y", "sqlite://host/x", "sqlite:///", "\x1b[31m://x"])
def test_a_journal_url_that_nobody_answers_to_gets_one_sentence(command: Command, url: str) -> None:
    refused(command("runs", "--journal", url), "no journal answers")


def test_a_file_that_is_no_journal_gets_one_sentence(command: Command, tmp_path: Path) -> None:
    path = written(tmp_path / "text.db", "this is no database, only some text" * 100)
    refused(command("runs", "--journal", f"sqlite:///{path}"), "text.db")
    refused(command("show", "run-1", "--journal", f"sqlite:///{path}"), "text.db")


def test_show_renders_the_view_of_a_run(command: Command, tmp_path: Path) -> None:
    url = journal_with(tmp_path / "j.db", [STARTED, ENDED])
    assert command("show", "run-1", "--journal", url).rows == ["Report · Clerk", MESSAGES["failed"]["en"]]
    assert MESSAGES["failed"]["zh"] in command("show", "run-1", "--journal", url, "--language", "zh").out


def test_show_reads_a_log_of_many_pages_to_its_end(
    command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cli.stored, "_PAGE", 3)
    deltas = [wire(n + 2, "text.delta", item_id="m", index=n, text=f"{n} ") for n in range(10)]
    url = journal_with(tmp_path / "j.db", [STARTED, *deltas])
    assert "0 1 2 3 4 5 6 7 8 9" in command("show", "run-1", "--journal", url).out


def test_a_run_that_has_not_ended_is_shown_as_open_and_not_as_lost(command: Command, tmp_path: Path) -> None:
    url = journal_with(tmp_path / "j.db", [STARTED])
    assert command("show", "run-1", "--journal", url).rows[1] == MESSAGES["running"]["en"]


def test_show_as_json_is_a_snapshot_that_restores_the_view(command: Command, tmp_path: Path) -> None:
    evil = wire(2, "text.delta", item_id="m", index=0, text="\x9b\u202e流")
    url = journal_with(tmp_path / "j.db", [STARTED, evil])
    printed = command("show", "run-1", "--journal", url, "--json")
    snapshot = json.loads(printed.out)
    assert (snapshot["status"], snapshot["message"]) == ("running", MESSAGES["running"]["en"])
    assert RunView.from_snapshot(snapshot).text == "\x9b\u202e流"
    assert printed.out.isascii()


@pytest.mark.parametrize("run_id", ["nope", "", "x" * 65, "\udcff", "a\x1b[31m"])
def test_an_unknown_run_gets_one_sentence(command: Command, tmp_path: Path, run_id: str) -> None:
    url = journal_with(tmp_path / "j.db", [STARTED])
    printed = command("show", run_id, "--journal", url)
    refused(printed, "holds no run")
    assert "\x1b" not in printed.err


def test_a_damaged_envelope_in_a_journal_is_an_issue_and_no_traceback(command: Command, tmp_path: Path) -> None:
    url = journal_with(tmp_path / "j.db", [STARTED, wire(2, "tool.progress", nonsense=1)])
    shown = command("show", "run-1", "--journal", url)
    assert shown.code == 0 and "bad_payload_or_transition" in shown.out


# doctor, demo


def test_doctor_names_what_is_installed_and_whether_it_was_verified(
    command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agents_progress.sdk import compat

    for found, code, words, compared in (
        (compat.VERIFIED[0], 0, "is verified", 1),
        ("999.0.0", 0, "is not verified", 1),
        ("0.1.0", 1, "is too old", 0),
        (None, 1, "is not installed", 0),
    ):
        monkeypatch.setattr(compat, "installed", lambda found=found: found)
        printed = command("doctor")
        rows = ["python", "platform", *cli.doctor._PACKAGES]
        assert [row.split()[0] for row in printed.rows[: len(rows)]] == rows
        assert printed.code == code and words in printed.rows[len(rows)]
        assert len(printed.rows) == len(rows) + 1 + compared


def test_the_version_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        cli.main(["--version"])
    assert (left.value.code, capsys.readouterr().out) == (0, f"agents-progress {version('agents-progress')}\n")


def test_demo_gets_its_options_and_gives_its_code(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, bool, str, bool]] = []
    demo = types.ModuleType("agents_progress.demo")

    async def main(journal_url: str, fast: bool, language: str, *, ask: bool) -> int:
        asked.append((journal_url, fast, language, ask))
        return 1

    demo.main = main  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "agents_progress.demo", demo)
    assert command("demo", "--fast", "--language", "zh", "--journal", "memory://").code == 1
    assert command("demo", "--ask").code == 1
    assert asked == [("memory://", True, "zh", False), (DEFAULT_URL, False, "en", True)]


def test_an_interrupted_command_leaves_with_130(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(source: str) -> object:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli.replay, "load", interrupted)
    assert command("replay", "x") == Printed(130, "", "")


# The command as a whole.


@pytest.mark.parametrize("name", ["", *(command.name for command in cli.COMMANDS)])
def test_the_exit_codes_stand_in_every_help(command: Command, name: str) -> None:
    printed = command(*filter(None, [name]), "--help")
    assert printed.code == 0 and cli.EXIT_CODES in printed.out


@pytest.mark.parametrize("arguments", [[], ["nope"], ["show"], ["runs", "--limit", "0"], ["runs", "--limit", "x"]])
def test_wrong_options_are_refused(command: Command, arguments: list[str]) -> None:
    printed = command(*arguments)
    assert (printed.code, printed.out) == (2, "") and "error:" in printed.err


def test_every_command_that_touches_a_journal_can_be_told_which(command: Command) -> None:
    told = [item.name for item in cli.COMMANDS if "--journal URL" in command(item.name, "--help").out]
    assert told == [
        "runs",
        "show",
        "why",
        "tail",
        "answer",
        "cancel",
        "export",
        "report",
        "prune",
        "effects",
        "resolve",
        "reactions",
        "serve",
        "doctor",
        "demo",
    ]


def test_the_package_runs_as_a_module() -> None:
    with child("replay", "normal", stdout=subprocess.PIPE) as process:
        out, _ = process.communicate(timeout=30)
    assert process.returncode == 0 and b"done" in out.splitlines()[-1]


@pytest.mark.parametrize("arguments", [["schema"], ["replay", "normal"]])
def test_a_closed_pipe_gets_one_sentence(arguments: list[str]) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with child(*arguments, stdout=writer, stderr=subprocess.PIPE) as process:
        os.close(writer)
        _, err = process.communicate(timeout=30)
    assert process.returncode == 2
    assert err.decode().splitlines() == ["agents-progress: the output was closed before everything was written"]


def test_a_pruned_run_is_shown_from_its_snapshot(command: Command, tmp_path: Path) -> None:
    log = Log("run-1").start().say("text.delta", item_id="m", index=0, text="hel")
    log = log.say("text.delta", item_id="m", index=1, text="lo")
    url = journal_with(tmp_path / "runs.db", [envelope.to_dict() for envelope in log.envelopes])

    async def prune() -> None:
        journal = open_journal(url)
        assert await journal.prune("run-1", 2) == 2
        await journal.close()

    asyncio.run(prune())
    said = command("show", "run-1", "--journal", url)
    assert said.code == 0 and "hello" in said.out


def test_a_run_whose_owner_is_gone_is_not_listed_as_running(command: Command, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"

    async def abandon() -> None:
        journal = open_journal(url)
        await journal.append(list(Log("run-1").start().envelopes), lease=await journal.lease("run-1", 0.05))
        await asyncio.sleep(0.2)
        await journal.close()

    asyncio.run(abandon())
    said = command("runs", "--json", "--journal", url)
    assert [row["status"] for row in json.loads(said.out)] == ["unknown"]
