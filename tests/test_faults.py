"""Faults of our own, of journals, sinks and verifiers: the user's code lives the same life, and nothing false is
claimed.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from agents import Runner, function_tool
from staging import Log, log_of, reach, scripted, soon, started, stored

from agents_progress import RunView, Verdict, progress
from agents_progress.disclosure import Disclosure, Screen
from agents_progress.errors import JournalUnavailable, JournalUnreadable
from agents_progress.journal import MemoryJournal
from agents_progress.sdk.observe import Observer
from agents_progress.sdk.source import StreamedSource
from agents_progress.sdk.translate import Translator
from agents_progress.testing import call, text, turn, wait


class Planted(RuntimeError):
    """A fault that no stage of ours is prepared for."""


def planted(original: Any = None, at: int = 1) -> Callable[..., Any]:
    """Raises from the call with this number on, and works before."""
    calls: list[int] = []

    def function(*args: Any, **kwargs: Any) -> Any:
        calls.append(1)
        if len(calls) >= at:
            raise Planted("a secret detail")
        return original(*args, **kwargs)

    return function


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.ERROR and record.name == "agents_progress"
    ]


@function_tool
async def look() -> str:
    return "ok"


async def life(journal: Any, **options: Any) -> tuple[list[str], Any]:
    """What the user's own code lives to see."""

    @progress.inside(journal=journal, run_id="r", **options)
    async def body() -> tuple[list[str], Any]:
        result = Runner.run_streamed(scripted(turn(call("look")), turn(text("hello")), tools=[look]), "hi")
        events = [event.type async for event in result.stream_events()]
        return events, result.final_output

    return await asyncio.wait_for(body(), 5)


STAGES: dict[str, tuple[type, str, str, int]] = {
    "translating": (Translator, "_one", "translate", 1),
    "translating later": (Translator, "_one", "translate", 9),
    "observing a hook": (Observer, "_observe", "observe", 1),
    "observing a tool's start": (Observer, "_observe", "observe", 4),
    "disclosing": (Screen, "pass_on", "disclose", 4),
    "reducing": (RunView, "feed_all", "reduce", 3),
    "closing the rows": (StreamedSource, "_closing", "conclude", 1),
    "reading the evidence": (StreamedSource, "conclude", "conclude", 1),
}


@pytest.mark.parametrize("what", STAGES)
async def test_a_fault_of_our_own_changes_nothing_for_the_users_code(
    what: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    owner, name, stage, at = STAGES[what]
    expected = await life(MemoryJournal())
    monkeypatch.setattr(owner, name, planted(getattr(owner, name), at))
    journal = MemoryJournal()
    assert await life(journal) == expected == (expected[0], "hello")
    log = await stored(journal, "r")
    assert not [ending for ending in log.endings if ending.type == "run.ended"], "what was not seen is not claimed"
    assert {ending.payload["reason"] for ending in log.endings} <= {f"fault_{stage}"}
    if stage not in ("disclose", "reduce"):
        assert log.endings and log.types[-1] == "run.lost"
    found = errors(caplog)
    assert len(found) == 1 and f"stage {stage}" in found[0] and "r:" in found[0], found
    assert "a secret detail" not in caplog.text


@pytest.mark.parametrize("what", STAGES)
async def test_a_fault_of_our_own_is_told_to_the_owner_and_ends_its_waiters(
    what: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner, name, _, at = STAGES[what]
    monkeypatch.setattr(owner, name, planted(getattr(owner, name), at))
    run = started(scripted(turn(call("look")), turn(text("hello")), tools=[look]), verify=lambda output: True)
    async with asyncio.timeout(5):
        log = await log_of(run)
        outcome = await run
    assert isinstance(run.error, Planted) and run.result.final_output == "hello"
    assert outcome.kind == "unknown" and outcome.verdict is None and not outcome.accepted
    assert run.view.status in ("unknown", "running") and "app.checked" not in log.types
    await run.closed()


async def test_a_fault_in_publishing_the_output_loses_the_ending(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("agents_progress.owner.publish", planted())
    run = started(scripted(turn(text("hello"))))
    log = await log_of(run)
    assert log.ending == {"reason": "fault_conclude"} and log.view.status == "unknown"
    assert isinstance(run.error, Planted) and len(errors(caplog)) == 1


async def test_an_output_that_has_no_json_form_blocks_success_and_is_no_fault(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Odd:
        pass

    @function_tool
    def odd() -> Any:
        return Odd()

    agent = scripted(turn(call("odd")), tools=[odd], tool_use_behavior="stop_on_first_tool", output_type=list[int])
    run = started(agent, verify=lambda output: True)
    outcome = await run
    log = await log_of(run)
    assert log.of("adapter.unsupported") == [{"what": "output", "name": "Odd"}]
    assert log.ending["outcome"] == "succeeded" and log.ending["final_output"] is None
    assert run.view.status == "unknown" and isinstance(outcome.output, Odd) and errors(caplog) == []


async def test_an_output_is_masked_once_so_that_the_verdict_binds_what_was_published() -> None:
    mask = Disclosure(mask=[re.compile(r"\w+")])
    run = started(scripted(turn(text("a secret"))), verify=lambda output: True, disclosure=mask)
    outcome = await run
    assert outcome.final_output == "[masked] [masked]" == (await log_of(run)).ending["final_output"]
    assert outcome.accepted and run.view.status == "done"


async def test_a_verdict_that_cannot_be_written_is_not_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = Screen.pass_on

    def refuses_verdicts(screen: Screen, type_: str, payload: dict[str, Any]) -> Any:
        if type_ == "app.checked":
            raise Planted("a secret detail")
        return passes(screen, type_, payload)

    monkeypatch.setattr(Screen, "pass_on", refuses_verdicts)
    run = started(scripted(turn(text("hello"))), verify=lambda output: True)
    outcome = await run
    assert outcome.kind == "succeeded" and not outcome.accepted and run.view.status == "checking"


# Journals.


class Failing(MemoryJournal):
    """Fails from one append on, or at one alone."""

    def __init__(self, at: int, only: bool = False) -> None:
        super().__init__()
        self.at, self.only, self.appends = at, only, 0

    async def append(self, envelopes: Any, **more: Any) -> None:
        self.appends += 1
        if self.appends == self.at or (self.appends > self.at and not self.only):
            raise JournalUnreadable("the disk is full: /var/secret/runs.db")
        await super().append(envelopes, **more)


async def appends_of_a_run() -> int:
    journal = Failing(10**9)
    await life(journal)
    return journal.appends


@pytest.mark.parametrize("only", [True, False], ids=["once", "from then on"])
@pytest.mark.parametrize("place", ["first", "middle", "last"])
async def test_a_journal_that_fails_never_fails_the_run(
    place: str, only: bool, caplog: pytest.LogCaptureFixture
) -> None:
    whole = await appends_of_a_run()
    expected = await life(MemoryJournal())
    journal = Failing({"first": 1, "middle": whole // 2, "last": whole}[place], only)
    assert await life(journal) == expected
    log = await stored(journal, "r")
    assert log.endings == [] and [envelope.seq for envelope in log.envelopes] == list(range(1, len(log.types) + 1))
    found = errors(caplog)
    assert len(found) == 1 and "stage journal" in found[0] and "secret" not in caplog.text


@pytest.mark.parametrize("at", [1, 3])
async def test_after_a_journal_failed_readers_see_unknown_and_the_owner_the_error(at: int) -> None:
    run = started(
        scripted(turn(call("look")), turn(text("hello")), tools=[look]),
        journal=Failing(at),
        verify=lambda output: True,
    )
    async with asyncio.timeout(5):
        log, outcome = await log_of(run), await run
    assert log.endings == [] and run.view.status == "unknown"
    assert isinstance(run.error, JournalUnreadable)
    assert (outcome.kind, outcome.reason, outcome.verdict) == ("unknown", "journal", None)
    assert run.result.final_output == "hello", "the SDK's own result is whole"


class Away(MemoryJournal):
    """Cannot be reached for so many appends after the first."""

    def __init__(self, times: float) -> None:
        super().__init__()
        self.appends, self.times = 0, times

    async def append(self, envelopes: Any, **more: Any) -> None:
        self.appends += 1
        if 1 < self.appends <= 1 + self.times:
            raise JournalUnavailable("no connection to db.internal:5432")
        await super().append(envelopes, **more)


async def test_a_journal_that_is_away_for_a_while_loses_nothing(caplog: pytest.LogCaptureFixture) -> None:
    journal = Away(3)
    assert await life(journal) == await life(MemoryJournal())
    log = await stored(journal, "r")
    assert log.ending["outcome"] == "succeeded" and log.view.status == "checking" and log.view.issues == []
    assert [record.getMessage() for record in caplog.records if "away" in record.message] == [
        "agents_progress: run r: the journal is away"
    ]
    assert errors(caplog) == [] and "internal" not in caplog.text


class Hung(MemoryJournal):
    """Takes so many appends, and never answers another one."""

    def __init__(self, takes: int) -> None:
        super().__init__()
        self.takes = takes

    async def append(self, envelopes: Any, **more: Any) -> None:
        if not self.takes:
            await asyncio.Event().wait()
        self.takes -= 1
        await super().append(envelopes, **more)


@pytest.mark.parametrize("journal", [Away(float("inf")), Hung(0), Hung(1)], ids=["away", "hung at once", "hung later"])
async def test_a_journal_that_does_not_come_back_holds_the_users_code_no_longer_than_the_patience(
    journal: MemoryJournal,
) -> None:
    begun = time.monotonic()
    assert await life(journal, patience=0.3) == await life(MemoryJournal())
    assert time.monotonic() - begun < 4


async def test_readers_of_a_journal_that_does_not_come_back_see_unknown_and_the_owner_why() -> None:
    run = started(scripted(turn(text("hello"))), journal=Hung(0), patience=0.1)
    outcome = await run
    assert (outcome.kind, run.view.status) == ("unknown", "unknown")
    assert isinstance(run.error, JournalUnavailable) and "took nothing for 0.1 s" in str(run.error)


async def test_a_journal_that_was_never_reached_is_not_waited_for() -> None:
    begun = time.monotonic()

    class Nowhere(MemoryJournal):
        async def append(self, envelopes: Any, **more: Any) -> None:
            raise JournalUnavailable("no such folder")

    outcome = await started(scripted(turn(text("hello"))), journal=Nowhere())
    assert outcome.kind == "unknown" and time.monotonic() - begun < 4


async def test_a_journal_that_was_reached_before_is_waited_for_at_the_first_append_too() -> None:
    class Flaky(MemoryJournal):
        away = 0

        async def append(self, envelopes: Any, **more: Any) -> None:
            await super().append(envelopes, **more)
            if self.away:  # it took them, and its answer was lost
                self.away -= 1
                raise JournalUnavailable("connection lost")

    journal = Flaky()
    await started(scripted(turn(text("first"))), journal=journal)
    journal.away = 2
    run = started(scripted(turn(text("second"))), journal=journal)
    assert (await run).kind == "succeeded" and run.error is None
    log = await stored(journal, run.id)
    assert log.ending["outcome"] == "succeeded" and log.view.issues == []


async def test_a_journal_that_hangs_holds_readers_but_not_the_model_nor_a_cancel() -> None:
    release = asyncio.Event()

    class Hanging(MemoryJournal):
        async def append(self, envelopes: Any, **more: Any) -> None:
            await release.wait()
            await super().append(envelopes, **more)

    said = asyncio.Event()
    journal = Hanging()
    run = started(
        scripted(turn(call("look")), turn(text("hel", wait(said))), tools=[look]), journal=journal, settle=0.3
    )
    await soon(lambda: run.result and run.result.current_turn == 2)
    reader = asyncio.create_task(log_of(run))
    await asyncio.sleep(0)
    assert run.cancel() == "accepted"
    await soon(lambda: run.result.run_loop_task.done())
    await soon(lambda: run.outcome)
    assert not reader.done() and run.outcome is not None and run.outcome.kind == "cancelled"
    release.set()
    log = await reader
    assert log.ending["outcome"] == "cancelled" and log == await stored(journal, run.id)


def test_a_journal_that_hangs_does_not_hold_a_loop_that_shuts_down() -> None:
    class Hanging(MemoryJournal):
        async def append(self, envelopes: Any, **more: Any) -> None:
            await asyncio.Event().wait()

    async def main(cancel: bool) -> None:
        run = started(scripted(turn(text("hel", wait(asyncio.Event())))), journal=Hanging(), settle=0.1)
        await soon(lambda: run.result and run.result.current_turn == 1)
        if cancel:
            run.cancel()
            await soon(lambda: run.result.run_loop_task.done())

    begun = time.monotonic()
    for cancel in (True, False):
        asyncio.run(main(cancel))
    assert time.monotonic() - begun < 5


# Sinks.


async def test_sinks_that_raise_are_slow_or_never_return_change_nothing(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[str] = []

    def raises(envelope: Any) -> None:
        raise ValueError("my secret sink")

    async def raises_later(envelope: Any) -> None:
        await asyncio.sleep(0)
        raise ValueError("my secret sink")

    async def slow(envelope: Any) -> None:
        await asyncio.sleep(0.01)
        seen.append(envelope.type)

    async def never_returns(envelope: Any) -> None:
        await asyncio.Event().wait()

    run = started(
        scripted(turn(call("look")), turn(text("hello")), tools=[look]),
        sinks=[raises, raises_later, slow, never_returns],
        settle=0.5,
        verify=lambda output: True,
    )
    begun = time.monotonic()
    outcome = await run
    assert time.monotonic() - begun < 0.4 and outcome.accepted
    log = await log_of(run)
    await run.closed()
    assert seen == log.types and run.view.status == "done"
    found = errors(caplog)
    assert len(found) == 2 and all("sink" in message for message in found), "one for each sink that failed"
    assert "secret" not in caplog.text


# Verifiers.


async def no_verdict(**options: Any) -> tuple[Log, Any]:
    run = started(scripted(turn(text("hello"))), **options)
    async with asyncio.timeout(5):
        log, outcome = await log_of(run), await run
    assert log.types[-1] == "run.ended" and run.view.status == "checking"
    assert outcome.verdict is None and not outcome.accepted and outcome.kind == "succeeded"
    return log, run.error


async def test_a_verifier_that_raises_gives_no_verdict(caplog: pytest.LogCaptureFixture) -> None:
    def raises(output: object) -> bool:
        raise Planted("a secret detail")

    async def raises_later(output: object) -> bool:
        await asyncio.sleep(0)
        raise Planted("a secret detail")

    for verify in (raises, raises_later):
        _, error = await no_verdict(verify=verify)
        assert isinstance(error, Planted)
    assert len(errors(caplog)) == 2 and "secret" not in caplog.text


async def test_a_verifier_that_takes_too_long_gives_no_verdict() -> None:
    release = threading.Event()

    def blocks(output: object) -> bool:
        release.wait(5)
        return True

    async def hangs(output: object) -> bool:
        await asyncio.Event().wait()
        return True

    for verify in (hangs, blocks):
        _, error = await no_verdict(verify=verify, verify_timeout=0.02)
        assert isinstance(error, TimeoutError)
    release.set()


@pytest.mark.parametrize("nonsense", [None, 1, "yes", "True", [True], {"ok": True}, object()])
async def test_a_verifier_that_returns_nonsense_gives_no_verdict(nonsense: object) -> None:
    _, error = await no_verdict(verify=lambda output: nonsense)
    assert "return True, False or a Verdict" in str(error)


@pytest.mark.parametrize("ok", [1, None, "yes"])
async def test_a_verdict_that_is_neither_true_nor_false_is_none(ok: Any) -> None:
    await no_verdict(verify=lambda output: Verdict(ok))


async def test_a_verifier_is_asked_once_with_the_real_output_after_the_ending_is_stored(
    journal: MemoryJournal,
) -> None:
    asked: list[Any] = []

    async def verify(output: object) -> bool:
        asked.append((output, (await stored(journal, "r")).types[-1]))
        return True

    run = started(scripted(turn(text("hello"))), journal=journal, run_id="r", verify=verify)
    assert (await run).accepted and asked == [("hello", "run.ended")]
    assert (await stored(journal, "r")).types[-2:] == ["run.ended", "app.checked"]


async def test_only_a_success_is_verified() -> None:
    asked: list[object] = []
    run = started(scripted(turn(text("hel", wait(asyncio.Event())))), verify=lambda output: asked.append(output))
    await reach(run, "model.started")
    run.cancel()
    await run
    assert asked == []


async def test_a_fault_costs_the_event_it_came_with_and_none_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    original, seen = Translator._one, []

    def once(self: Translator, event: Any) -> Any:
        seen.append(event)
        if len(seen) == 3:
            raise Planted("a secret detail")
        return original(self, event)

    monkeypatch.setattr(Translator, "_one", once)
    run = started(scripted(turn(text("hello"))))
    assert (await run).kind == "unknown"
    assert len(seen) > 4 and run.view.text == "hello" and (await log_of(run)).types[-1] == "run.lost"
