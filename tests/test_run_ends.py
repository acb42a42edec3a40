"""Runs that end badly from outside: loops that shut down, scripts that are interrupted, tools that do not stop."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, Runner, RunResultStreaming, function_tool
from staging import Prebuilt, log_of, reach, response_created, scripted, started, stored, text_delta

from agents_progress import progress
from agents_progress.errors import NoEventLoop
from agents_progress.journal import Journal, MemoryJournal, open_journal
from agents_progress.labels import LABELS
from agents_progress.testing import ScriptedAPI, call, text, turn, wait
from agents_progress.verify import equals


def never() -> Any:
    return wait(asyncio.Event())


# Loops that end.


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
@pytest.mark.parametrize("moment", ["run.started", "model.started", "tool.started", "text.delta"])
def test_a_loop_that_shuts_down_cancels_the_run_and_its_ending_is_written(
    moment: str, kind: str, tmp_path: Path
) -> None:
    journal: Journal = MemoryJournal() if kind == "memory" else open_journal(f"sqlite:///{tmp_path}/runs.db")
    ids: list[str] = []

    @function_tool
    async def work() -> str:
        await asyncio.Event().wait()
        return "never"

    async def main() -> None:
        first = turn(text("hel", never())) if moment == "text.delta" else turn(call("work"))
        run = started(scripted(first, tools=[work]), journal=journal)
        ids.append(run.id)
        await reach(run, moment)

    asyncio.run(main())
    log = asyncio.run(stored(journal, ids[0]))
    asyncio.run(journal.close())
    assert log.types[0] == "run.started" and log.types[-1] == "run.ended"
    assert (log.ending["outcome"], log.ending.get("requested_by", "absent")) == ("cancelled", None)
    assert "cancel.requested" not in log.types and log.view.issues == []


def test_a_loop_that_shuts_down_in_the_step_of_the_call_claims_nothing() -> None:
    journal = MemoryJournal()

    async def main() -> None:
        started(scripted(turn(text("hel", never()))), journal=journal)

    asyncio.run(asyncio.wait_for(main(), 5))
    assert [row.status for row in asyncio.run(journal.runs())] in ([], ["cancelled"])


def test_a_loop_that_shuts_down_while_a_body_still_prepares_records_nothing_and_does_not_hang() -> None:
    journal = MemoryJournal()

    @progress(journal=journal)
    async def work() -> RunResultStreaming:
        await asyncio.Event().wait()
        raise AssertionError

    async def main() -> None:
        work()
        await asyncio.sleep(0)

    asyncio.run(main())
    assert asyncio.run(journal.runs()) == []


def test_a_loop_that_shuts_down_during_the_verifier_leaves_the_ending_and_no_verdict() -> None:
    journal, ids, asked = MemoryJournal(), [], []

    async def main() -> None:
        asking = asyncio.Event()

        async def verifier(output: object) -> bool:
            asked.append(output)
            asking.set()
            await asyncio.Event().wait()
            return True

        run = started(scripted(turn(text("hello"))), journal=journal, verify=verifier, settle=0.5)
        ids.append(run.id)
        await asking.wait()

    asyncio.run(asyncio.wait_for(main(), 5))
    log = asyncio.run(stored(journal, ids[0]))
    assert log.types[-1] == "run.ended" and log.view.status == "checking"
    assert asked == ["hello"], "a verifier is asked once"


# Runs that do not settle, or never begin.


async def test_a_run_task_that_does_not_stop_within_the_bound_is_lost() -> None:
    release, swallowed = asyncio.Event(), asyncio.Event()

    class Stubborn(Prebuilt):
        async def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            yield response_created()
            yield text_delta("hel")
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                swallowed.set()
                await release.wait()
                raise

    run = started(Agent(name="A", model=Stubborn()), settle=0.05)
    await reach(run, "text.delta")
    assert run.cancel() == "accepted"
    try:
        async with asyncio.timeout(5):
            log = await log_of(run)
    finally:
        asyncio.get_running_loop().call_soon(release.set)
    assert swallowed.is_set() and log.types[-1] == "run.lost"
    assert log.ending == {"reason": "not_settled"}
    outcome = await run
    assert (outcome.kind, outcome.reason, outcome.output) == ("unknown", "not_settled", None)
    assert run.view.status == "unknown"
    await asyncio.wait({run.result.run_loop_task})


async def test_a_tool_that_swallows_its_cancellation_stays_visible_as_running() -> None:
    release, gone = asyncio.Event(), asyncio.Event()

    @function_tool
    async def stubborn() -> str:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            await release.wait()
        gone.set()
        return "late"

    run = started(scripted(turn(call("stubborn", call_id="s")), tools=[stubborn]), settle=0.05)
    await reach(run, "tool.started")
    run.cancel()
    log = await log_of(run)
    assert log.endings and log.view.tools == {"s": "running"}
    assert log.view.status in ("cancelled", "unknown")
    release.set()
    await asyncio.wait_for(gone.wait(), 5)
    assert await log_of(run) == log, "what comes late is dropped"


async def test_a_run_task_cancelled_before_its_first_step_does_not_hang() -> None:
    @progress
    def work() -> RunResultStreaming:
        result = Runner.run_streamed(scripted(turn(text("hello"))), "hi")
        assert result.run_loop_task is not None
        result.run_loop_task.cancel()
        return result

    outcome = await asyncio.wait_for(work(), 5)
    assert (outcome.kind, outcome.requested_by) == ("cancelled", None)
    assert outcome.evidence.task_cancelled


async def test_a_cancel_in_the_same_step_as_the_call_is_recorded_once() -> None:
    run = started(scripted(turn(text("hello"))))
    assert run.cancel(actor="ann") == "accepted"
    log = await log_of(run)
    assert log.shape[:2] == ["run.started", "cancel.requested"]
    assert (log.ending["outcome"], log.ending["requested_by"]) == ("cancelled", "ann")


# Scripts.


def test_run_sync_runs_to_the_end_and_gives_the_outcome() -> None:
    @progress(verify=equals("hello"))
    def work(name: str) -> RunResultStreaming:
        return Runner.run_streamed(scripted(turn(text("hello"))), name)

    @progress
    async def work_later(name: str) -> RunResultStreaming:
        return Runner.run_streamed(scripted(turn(text("hello"))), name)

    assert work.run_sync("ann").accepted
    assert work.using(run_id="r").run_sync(name="ann").output == "hello"
    assert work_later.run_sync("ann").kind == "succeeded"


def test_run_sync_lets_an_error_of_the_body_through() -> None:
    @progress
    def work() -> RunResultStreaming:
        raise KeyError("no such customer")

    with pytest.raises(KeyError, match="no such customer"):
        work.run_sync()


async def test_run_sync_inside_a_loop_says_to_await_instead() -> None:
    started_too = []

    @progress
    def work() -> Any:
        started_too.append(True)

    with pytest.raises(NoEventLoop, match=r"await work\(\.\.\.\)"):
        work.run_sync()
    assert started_too == []


def test_run_sync_waits_for_its_sinks() -> None:
    seen: list[str] = []

    async def slow(envelope: Any) -> None:
        await asyncio.sleep(0.001)
        seen.append(envelope.type)

    @progress(sinks=[slow])
    def work() -> RunResultStreaming:
        return Runner.run_streamed(scripted(turn(text("hello"))), "hi")

    work.run_sync()
    assert seen[-1] == "run.ended"


SCRIPT = """
import asyncio, sys
from agents import Agent, Runner, set_tracing_disabled
from agents_progress import progress
from agents_progress.testing import ScriptedAPI, reached, text, turn, wait

set_tracing_disabled(True)
gate = asyncio.Event()

class Say:
    def set(self):
        print("ready", flush=True)

agent = Agent(name="A", model=ScriptedAPI([turn(text("hel", reached(Say()), wait(gate)))]).model())

@progress(journal=sys.argv[1])
def work():
    return Runner.run_streamed(agent, "hi")

try:
    work.using(run_id="r").run_sync()
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise SystemExit(130)
"""


def test_keyboard_interrupts_ask_for_a_cancel_wait_for_the_ending_and_are_raised_then(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/runs.db"
    script = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", SCRIPT, url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parent.parent)},
    )
    with script:
        assert script.stdout is not None and script.stderr is not None
        assert script.stdout.readline() == "ready\n"
        script.send_signal(signal.SIGINT)
        assert script.stderr.readline().endswith(LABELS["stop_after_turn"]["en"] + "\n")
        script.send_signal(signal.SIGINT)
        out, err = script.communicate(timeout=20)
    assert (script.returncode, out) == (130, "interrupted\n")
    assert err.endswith(LABELS["stop_at_once"]["en"] + "\n") and err.count("\n") == 1

    async def read() -> Any:
        journal = open_journal(url, create=False)
        log = await stored(journal, "r")
        await journal.close()
        return log

    log = asyncio.run(read())
    modes = ("after_turn", "immediate")
    assert log.of("cancel.requested") == [{"mode": mode, "actor": "keyboard"} for mode in modes]
    assert (log.ending["outcome"], log.ending["requested_by"]) == ("cancelled", "keyboard")


async def test_a_hundred_runs_at_once_do_not_mix() -> None:
    def one(number: int) -> Any:
        api = ScriptedAPI([turn(call("look", call_id=f"c{number}")), turn(text(f"answer {number}", chunk=1))])
        look = function_tool(name_override="look")(lambda: "ok")
        return started(Agent(name=f"agent {number}", model=api.model(), tools=[look]), coalesce=None)

    runs = [one(number) for number in range(100)]
    for number, run in enumerate(runs):
        log = await log_of(run)
        assert log.ending["final_output"] == log.view.text == f"answer {number}"
        assert list(log.view.tools) == [f"c{number}"] and log.view.agent == f"agent {number}"
