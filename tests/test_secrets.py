"""Six planted secrets appear nowhere by default, and a mask finds one however the model splits it."""

from __future__ import annotations

import asyncio
import io
import logging
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from agents import (
    GuardrailFunctionOutput,
    RunHooks,
    Runner,
    RunResultStreaming,
    function_tool,
    input_guardrail,
)
from pydantic import BaseModel
from staging import Log, log_of, reach, scripted, started, stored

from agents_progress import Disclosure, RunView, Verdict, cli, current_run, follow, progress
from agents_progress.journal import MemoryJournal, open_journal
from agents_progress.terminal import lines, render, show
from agents_progress.testing import (
    Turn,
    call,
    cut,
    failed,
    http_error,
    incomplete,
    reasoning,
    refusal,
    text,
    turn,
    wait,
)
from agents_progress.verify import publish

ARGUMENTS = "s3cr3t-arguments"
OUTPUT = "s3cr3t-output"
EXCEPTION = "s3cr3t-exception"
PROMPT = "s3cr3t-prompt"
PATH = "/home/s3cr3t-path/key.pem"
REASONING = "s3cr3t-reasoning"
ANY = "s3cr3t"


class Boom(RuntimeError):
    def __init__(self) -> None:
        super().__init__(f"{EXCEPTION}: cannot read {PATH}")


@function_tool
def works(x: str) -> str:
    return f"{OUTPUT} of {PATH}"


@function_tool
def breaks(x: str) -> str:
    raise Boom


@function_tool(failure_error_function=None)
def kills(x: str) -> str:
    raise Boom


@function_tool(needs_approval=True)
def asks(x: str) -> str:
    return OUTPUT


@function_tool
async def hangs(x: str) -> str:
    await asyncio.Event().wait()
    return OUTPUT


class Raising(RunHooks[Any]):
    async def on_tool_start(self, *_: Any) -> None:
        raise Boom


@input_guardrail
async def blocks(context: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
    return GuardrailFunctionOutput(f"{PROMPT} {given}", tripwire_triggered=True)


def raises(*_: Any) -> Any:
    raise Boom


class Code(BaseModel):
    code: str


def use(tool: str) -> Turn:
    return turn(reasoning(REASONING), call(tool, {"x": ARGUMENTS}))


DONE = turn(reasoning(REASONING), text("The public answer."))
AGENT = {"instructions": PROMPT, "tools": [works, breaks, kills, asks, hangs]}

RUNS: dict[str, Callable[[], tuple[list[Turn], dict[str, Any], dict[str, Any]]]] = {
    "succeeds": lambda: ([use("works"), DONE], {}, {"verify": lambda output: True}),
    "a tool breaks": lambda: ([use("breaks"), DONE], {}, {}),
    "a tool kills the run": lambda: ([use("kills"), DONE], {}, {}),
    "asks": lambda: ([use("asks")], {}, {}),
    "a hook raises": lambda: ([use("works"), DONE], {}, {"hooks": Raising()}),
    "the api refuses": lambda: ([http_error(400, f"{EXCEPTION} {PROMPT}", code=ANY)], {}, {}),
    "the model fails": lambda: ([turn(text("The"), failed(ANY, EXCEPTION))], {}, {}),
    "the connection breaks": lambda: ([turn(reasoning(REASONING), text("The", cut()))], {}, {}),
    "a limit cuts the answer": lambda: ([turn(text("The public"), incomplete(ANY))], {}, {}),
    "the model calls an unknown tool": lambda: ([turn(call("nothing", {"x": ARGUMENTS}))], {}, {}),
    "the arguments are broken": lambda: ([turn(call("works", f'{{"x": {ARGUMENTS}')), DONE], {}, {}),
    "too many turns": lambda: ([use("works")] * 2, {}, {"max_turns": 1}),
    "a guardrail blocks": lambda: ([DONE], {"input_guardrails": [blocks]}, {}),
    "the verifier refuses": lambda: ([DONE], {}, {"verify": lambda output: Verdict(False, "mine", EXCEPTION)}),
    "the verifier raises": lambda: ([DONE], {}, {"verify": raises}),
    "a sink raises": lambda: ([DONE], {}, {"sinks": [raises]}),
}
CODES = {"the model fails", "a limit cuts the answer"}
"""The model's own code or reason of an ended response is passed on: the API's words, from a closed list in practice."""


@pytest.fixture
def captured(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG, "agents_progress")
    return caplog


def our_logs(caplog: pytest.LogCaptureFixture) -> str:
    """Records of our logger as a plain handler writes them, tracebacks included."""
    written = logging.Formatter("%(name)s %(message)s")
    return "\n".join(written.format(each) for each in caplog.records if each.name.startswith("agents_progress"))


async def lived(name: str, journal: Any, out: io.StringIO) -> None:
    """One of the runs, shown in a terminal, to its end."""
    turns, agent, options = RUNS[name]()
    hooks, max_turns = options.pop("hooks", None), options.pop("max_turns", 10)

    @progress(journal=journal, run_id="r", **options)
    def look_it_up(question: str) -> RunResultStreaming:
        return Runner.run_streamed(scripted(*turns, **AGENT, **agent), question, hooks=hooks, max_turns=max_turns)

    run = look_it_up(f"{PROMPT} {PATH}")
    await show(run, file=out, width=120)
    await run.closed()
    out.write(repr(run) + repr(run.outcome) + render(run.view, 120))
    out.write("".join(line.text for line in lines(run.view, 120)))


def command(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert cli.main(arguments) == 0, arguments
    return "".join(capsys.readouterr())


@pytest.mark.parametrize("name", [name for name in RUNS if name not in CODES])
def test_a_secret_appears_nowhere_by_default(
    name: str, tmp_path: Path, captured: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    url, out = f"sqlite:///{tmp_path}/runs.db", io.StringIO()

    async def main() -> list[str]:
        journal = open_journal(url)
        await lived(name, journal, out)
        rows = [envelope.to_json().decode() for envelope in await journal.read("r")]
        raw = b"".join(file.read_bytes() for file in tmp_path.iterdir())  # the write-ahead log is still there
        await journal.close()
        assert ANY.encode() not in raw
        return rows

    rows = asyncio.run(main())
    assert len(rows) > 2 and '"type":"run.ended"' in "".join(rows)
    assert ANY not in "".join(rows)
    assert ANY.encode() not in b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert ANY not in our_logs(captured)
    assert ANY not in out.getvalue() and "Look it up" in out.getvalue()
    (tmp_path / "rows.jsonl").write_text("\n".join(rows), encoding="utf-8")
    printed = [
        command(capsys, "show", "r", "--journal", url),
        command(capsys, "show", "r", "--journal", url, "--json"),
        command(capsys, "runs", "--journal", url),
        command(capsys, "runs", "--journal", url, "--json"),
        command(capsys, "replay", str(tmp_path / "rows.jsonl")),
    ]
    assert all(printed) and ANY not in "".join(printed)


@pytest.mark.parametrize("name", sorted(CODES))
async def test_of_a_failed_response_only_its_code_is_passed_on(name: str, journal: MemoryJournal) -> None:
    await lived(name, journal, io.StringIO())
    log = await stored(journal, "r")
    (model,) = log.of("model.failed") + log.of("model.incomplete")
    assert ANY in (model.get("code"), model.get("reason"))
    assert EXCEPTION.encode() not in b"".join(envelope.to_json() for envelope in log.envelopes)
    assert log.ending.get("error", {}).get("code") in (None, "model_failed")


async def test_secrets_of_followed_and_watched_runs_appear_nowhere_either(
    captured: pytest.LogCaptureFixture, journal: MemoryJournal
) -> None:
    def agent() -> Any:
        return scripted(use("breaks"), use("works"), DONE, **AGENT)

    @progress.inside(journal=journal)
    async def body(question: str) -> None:
        async for _ in Runner.run_streamed(agent(), question).stream_events():
            pass
        raise Boom

    await follow(Runner.run_streamed(agent(), PROMPT), journal=journal)
    with pytest.raises(Boom):
        await body(PROMPT)
    rows = await journal.runs()
    bodies = [envelope.to_json() for row in rows for envelope in await journal.read(row.run_id)]
    assert len(rows) == 2 and ANY.encode() not in b"".join(bodies) and ANY not in our_logs(captured)


async def test_a_cancelled_and_a_resumed_run_keep_their_secrets(
    captured: pytest.LogCaptureFixture, journal: MemoryJournal
) -> None:
    run = started(scripted(use("hangs"), **AGENT), journal=journal)
    await reach(run, "tool.started")
    run.cancel()
    await run
    run = started(scripted(use("asks"), DONE, **AGENT), journal=journal)
    await run
    await run.resume(approve="all")
    bodies = [envelope.to_json() for row in await journal.runs() for envelope in await journal.read(row.run_id)]
    assert len(await journal.runs()) == 3
    assert ANY.encode() not in b"".join(bodies) and ANY not in our_logs(captured)


async def test_the_owner_keeps_the_real_objects_in_the_process() -> None:
    run = started(scripted(use("kills"), **AGENT))
    await run
    assert run.error is not None and EXCEPTION in str(run.error) and isinstance(run.error.__cause__, Boom)
    run = started(scripted(use("works"), DONE, **AGENT))
    await run
    assert any(OUTPUT in str(getattr(item, "output", "")) for item in run.result.new_items)


async def test_each_thing_is_opened_by_name_and_nothing_else_with_it() -> None:
    async def opened(**what: Any) -> str:
        log = await log_of(started(scripted(use("works"), DONE, **AGENT), disclosure=Disclosure(**what)))
        return b"".join(envelope.to_json() for envelope in log.envelopes).decode()

    secrets = {ARGUMENTS, OUTPUT, REASONING, PROMPT, EXCEPTION}
    for what, shown in (
        ({"arguments": ["works"]}, {ARGUMENTS}),
        ({"outputs": ["works"]}, {OUTPUT}),
        ({"reasoning": True}, {REASONING}),
        ({"arguments": ["other"], "outputs": ["other"]}, set()),
        ({"arguments": "all", "outputs": "all"}, {ARGUMENTS, OUTPUT}),
    ):
        text_of_log = await opened(**what)
        assert {secret for secret in secrets if secret in text_of_log} == shown, what


# Masks.

SECRET = "ZQXJ-4417-KVWP"


async def masked(
    disclosure: Disclosure, *turns: Turn, verify: Any = None, journal: MemoryJournal | None = None, **agent: Any
) -> Log:
    run = started(
        scripted(*turns, **agent),
        disclosure=disclosure,
        coalesce=None,
        verify=verify,
        journal=journal or MemoryJournal(),
    )
    log = await log_of(run)
    view, body = RunView(run.id), b""
    for envelope in log.envelopes:
        body += envelope.to_json()
        view.feed(envelope)
        assert not any(letter in view.text for letter in "ZQXJKVWP4"), "not a letter of it is seen at any moment"
    assert SECRET.encode() not in body and view.issues == []
    return log


@pytest.mark.parametrize("chunk", [*range(1, len(SECRET) + 2), 200])
@pytest.mark.parametrize(
    "mask", [SECRET, re.compile(r"[A-Z]{4}-\d{4}-[A-Z]{4}"), re.compile(SECRET.lower(), re.IGNORECASE)]
)
async def test_a_mask_finds_a_secret_in_the_answer_however_it_is_split(mask: Any, chunk: int) -> None:
    answer = f"the code is {SECRET} and again {SECRET}{SECRET}."
    log = await masked(Disclosure(mask=[mask]), turn(text(answer, chunk=chunk)), verify=lambda output: output == answer)
    hidden = "the code is [masked] and again [masked][masked]."
    assert log.view.text == log.ending["final_output"] == hidden
    assert log.view.status == "done", "the verifier saw the real output, and its verdict is bound to the published one"


@pytest.mark.parametrize("at", range(1, len(SECRET)))
async def test_a_mask_finds_a_secret_that_is_cut_in_two_by_a_silence(at: int) -> None:
    gate = asyncio.Event()
    asyncio.get_running_loop().call_later(0.002, gate.set)
    log = await masked(
        Disclosure(mask=[SECRET]), turn(text(f"it is {SECRET[:at]}", wait(gate), f"{SECRET[at:]} ok", chunk=100))
    )
    assert log.view.text == "it is [masked] ok"


async def test_a_mask_covers_every_free_text() -> None:
    @function_tool
    def talks(x: str) -> str:
        current_run().report(f"working on {SECRET}")
        with current_run().stage(f"stage {SECRET}"):
            return f"found {SECRET}"

    disclosure = Disclosure(arguments="all", outputs="all", reasoning=True, verdict_reasons=True, mask=[SECRET])
    log = await masked(
        disclosure,
        turn(reasoning(f"think {SECRET}"), call("talks", {"x": SECRET})),
        turn(text("well ", SECRET)),
        verify=lambda output: Verdict(False, "mine", f"no {SECRET}"),
        tools=[talks],
        name=f"Agent {SECRET}",
    )
    assert log.of("tool.progress")[0]["message"] == "working on [masked]"
    assert log.of("stage.started")[0]["title"] == "stage [masked]"
    assert log.of("tool.finished")[0]["output"] == "found [masked]"
    assert log.of("tool.requested")[0]["arguments"] == '{"x": "[masked]"}'
    assert log.of("run.started")[0]["agent"] == "Agent [masked]"
    assert log.of("app.checked")[0]["reason"] == "no [masked]"
    assert "think [masked]" in log.texts and log.view.text == "well [masked]"


async def test_a_mask_covers_a_refusal_and_a_structured_output() -> None:
    log = await masked(Disclosure(mask=[SECRET]), turn(refusal(f"never {SECRET}", chunk=2)))
    assert log.ending["outcome"] == "failed" and log.texts == ["never [masked]"]
    log = await masked(Disclosure(mask=[SECRET]), turn(text(f'{{"code": "{SECRET}"}}', chunk=3)), output_type=Code)
    assert log.ending["final_output"] == publish({"code": "[masked]"})
