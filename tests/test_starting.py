"""Starting a run with its claim first: redelivered jobs, reserved runs, exclusive keys, and what is refused."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from agents import Agent, Runner, RunResultStreaming, function_tool
from staging import log_of, on, reach, scripted, soon, started, stored

from agents_progress import current_run, follow, progress
from agents_progress.errors import (
    AlreadyEnded,
    AlreadyResumed,
    JournalUnavailable,
    LeaseHeld,
    NotAStreamedResult,
    RunErased,
    UsageError,
)
from agents_progress.journal import Journal, MemoryJournal, Origin
from agents_progress.journal.base import Request
from agents_progress.journal.sqlite import SQLiteJournal
from agents_progress.run import Run
from agents_progress.testing import Turn, call, text, turn, wait


class Leased(MemoryJournal):
    """A journal in memory as several nodes would share it: whoever is silent for long is lost."""

    lease_s = 1.0


class Short(SQLiteJournal):
    lease_s = 1.0


@pytest.fixture(params=["memory", "leased", "sqlite"])
async def shared(request: pytest.FixtureRequest, tmp_path: Any) -> AsyncIterator[Journal]:
    """A journal in which claims are tried."""
    kinds: dict[str, Callable[[], Journal]] = {
        "memory": MemoryJournal,
        "leased": Leased,
        "sqlite": lambda: Short(tmp_path / "runs.db"),
    }
    journal = kinds[request.param]()
    yield journal
    await journal.close()


class Work:
    """A decorated function, and how often anything of it was executed."""

    def __init__(self, journal: Journal, *turns: Turn, tools: Any = (), **options: Any) -> None:
        self.calls = 0
        self.bodies = 0

        @function_tool
        def tool() -> str:
            self.bodies += 1
            return "ok"

        agent = scripted(*turns, tools=[tool, *tools]) if turns else None

        @progress(journal=journal, **options)
        def job(question: str = "hi") -> RunResultStreaming:
            self.calls += 1
            if agent is None:
                raise ValueError("secret reason")
            return Runner.run_streamed(agent, question)

        self.job = job


def open_turn() -> Turn:
    return turn(text("hel", wait(asyncio.Event())))


async def crashed(journal: Journal, run_id: str, **origin: Any) -> None:
    """A run whose owner died: it began, and its lease has run out, which nobody has noticed."""
    lease = await journal.lease(run_id, 60)
    payload = {"agent": "A", "task_id": "t", "parent": None, "resumed_from": None}
    from agents_progress.events import Envelope

    begun = Envelope(f"{run_id}:1", run_id, 1, "run.started", "2026-10-07T08:00:01Z", payload)
    await journal.append([begun], lease=lease, origin=Origin(**origin))
    journal.renew([lease], -1.0)


# Unknown runs.


async def test_an_unknown_run_begins_at_its_first_envelope_with_the_lease_in_hand(shared: Journal) -> None:
    leased: list[float | None] = []

    @progress(journal=shared, run_id="r")
    async def job() -> RunResultStreaming:
        with pytest.raises(LeaseHeld):
            await shared.lease("r", 1.0)
        leased.append(1.0)
        return Runner.run_streamed(scripted(turn(text("hello"))), "hi")

    run = await job.start()
    assert (run.id, run.task_id) == ("r", "r") and (await run).kind == "succeeded" and leased
    await run.closed()
    log = await stored(shared, "r")
    assert log.shape == ["run.accepted", "run.started", "model.started", "model.completed", "run.ended"]
    assert log.view.issues == []
    assert "attempt" not in log.of("run.started")[0]
    row = await shared.run("r")
    assert row is not None and row.sealed and row.lease_left_s is None


async def test_without_a_run_id_a_new_one_is_claimed(journal: MemoryJournal) -> None:
    work = Work(journal, turn(text("a")), turn(text("b")))
    first, second = await work.job.start("one"), await work.job.start("two")
    assert first.id != second.id and {(await first).kind, (await second).kind} == {"succeeded"}


async def test_a_private_journal_serves_as_well() -> None:
    @progress(run_id="r")
    def job() -> RunResultStreaming:
        return Runner.run_streamed(scripted(turn(text("hello"))), "hi")

    assert (await (await job.start())).output == "hello"


async def test_switched_off_it_is_the_plain_call(monkeypatch: pytest.MonkeyPatch, journal: MemoryJournal) -> None:
    monkeypatch.setenv("AGENTS_PROGRESS", "off")

    @progress(journal=journal, exclusive="k")
    async def later() -> RunResultStreaming:
        return Runner.run_streamed(scripted(turn(text("hello"))), "hi")

    for result in (await later.start(), await Work(journal, turn(text("hello"))).job.start()):
        assert isinstance(result, RunResultStreaming)
        async for _ in result.stream_events():
            pass
    assert await journal.runs() == []


# Reserved runs.


async def test_a_reserved_run_goes_on_after_its_reservation(shared: Journal) -> None:
    await shared.reserve("r", 60, task_id="t", title="Ordered", origin=Origin(owner="ann", tenant="acme"))
    work = Work(shared, turn(call("tool")), turn(text("hello")), run_id="r")
    run = await work.job.start()
    assert (run.id, run.task_id) == ("r", "t")
    assert (await run).kind == "succeeded"
    local, log = await log_of(run), await stored(shared, "r")
    assert local == log and log.types[:2] == ["run.accepted", "run.started"]
    assert [envelope.seq for envelope in log.envelopes] == list(range(1, len(log.types) + 1))
    begun = log.of("run.started")[0]
    assert (begun["task_id"], begun["title"]) == ("t", "Ordered")
    assert run.view.snapshot()["plain"] == log.view.snapshot()["plain"] and run.view.issues == []
    row = await shared.run("r")
    assert row is not None and (row.title, row.origin.owner, row.status) == ("Ordered", "ann", "checking")


async def test_a_continuation_of_a_reserved_run_belongs_to_whom_it_was_reserved_for(journal: MemoryJournal) -> None:
    @function_tool(needs_approval=True)
    def danger() -> str:
        return "did"

    await journal.reserve("r", 60, task_id="t", origin=Origin(owner="ann", tenant="acme", labels={"c": "1"}))
    agent = scripted(turn(call("danger")), turn(text("done")), tools=[danger])

    @progress(journal=journal)
    def job() -> RunResultStreaming:
        return Runner.run_streamed(agent, "hi")

    run = await job.using(run_id="r").start()
    assert (await run).kind == "paused"
    again = run.resume(approve="all")
    assert (await again).kind == "succeeded" and again.task_id == "t"
    for row in await journal.runs(task_id="t"):
        assert (row.origin.owner, row.origin.tenant, row.labels) == ("ann", "acme", {"c": "1"})


@pytest.mark.parametrize("kind", ["sync", "async", "inside"])
async def test_the_plain_call_takes_a_reserved_run_up_too(shared: Journal, kind: str) -> None:
    await shared.reserve("r", 60, task_id="t")
    add = function_tool(name_override="add")(lambda: "1")
    agent = scripted(*2 * [turn(call("add")), turn(text("hello"))], tools=[add])
    ordinary = (await log_of(started(agent))).shape

    @progress(journal=shared, run_id="r")
    def plain() -> RunResultStreaming:
        return Runner.run_streamed(agent, "hi")

    @progress(journal=shared, run_id="r")
    async def later() -> RunResultStreaming:
        await asyncio.sleep(0)
        return Runner.run_streamed(agent, "hi")

    @progress.inside(journal=shared, run_id="r")
    async def body() -> None:
        async for _ in Runner.run_streamed(agent, "hi").stream_events():
            pass

    if kind == "inside":
        await body()
    else:
        run = (plain if kind == "sync" else later)()
        assert (await run).kind == "succeeded" and run.task_id == "t"
        await run.closed()
    log = await stored(shared, "r")
    assert log.shape == ["run.accepted", *ordinary] and log.view.issues == []
    assert log.of("run.started")[0]["task_id"] == "t" and log.ending["final_output"] == "hello"


async def test_a_reservation_that_nobody_took_up_in_time_is_begun_anew(shared: Journal) -> None:
    await shared.reserve("r", -1.0, task_id="t")
    run = await Work(shared, turn(text("hello")), run_id="r").job.start()
    assert (run.id, run.task_id) == ("r.2", "t") and (await run).kind == "succeeded"
    assert (await stored(shared, "r")).ending == {"reason": "never_started"}


# Live runs.


async def test_a_run_whose_owner_is_alive_is_refused_and_nothing_is_executed(shared: Journal) -> None:
    first = await Work(shared, open_turn(), run_id="r").job.start()
    await reach(first, "text.delta")
    again = Work(shared, turn(text("hello")), run_id="r")
    with pytest.raises(LeaseHeld, match="run r has an owner; follow it in the journal, or wait for its end"):
        await again.job.start()
    assert again.calls == 0
    first.cancel()
    assert (await first).kind == "cancelled"
    assert (await stored(shared, "r")).ending["outcome"] == "cancelled", "untouched"


async def test_a_run_that_was_started_by_the_plain_call_is_alive_too(shared: Journal) -> None:
    first = started(scripted(open_turn()), journal=shared)
    await reach(first, "text.delta")
    again = Work(shared, turn(text("hello")), run_id=first.id)
    with pytest.raises(LeaseHeld):
        await again.job.start()
    assert again.calls == 0
    first.cancel()
    assert (await first).kind == "cancelled"


async def test_a_run_that_was_claimed_and_has_said_nothing_yet_is_alive(shared: Journal) -> None:
    await shared.reserve("reserved", 60)
    for run_id in ("reserved", "unknown"):
        await shared.lease(run_id, 60)
        again = Work(shared, turn(text("hello")), run_id=run_id)
        with pytest.raises(LeaseHeld):
            await again.job.start()
        assert again.calls == 0


# Lost runs.


async def test_a_run_whose_owner_died_is_begun_anew_as_the_next_attempt_of_its_task(shared: Journal) -> None:
    await crashed(shared, "r", owner="ann", tenant="acme", labels={"c": "1"})
    run = await Work(shared, turn(text("hello")), run_id="r").job.start()
    assert (run.id, run.task_id) == ("r.2", "t") and (await run).kind == "succeeded"
    begun = (await stored(shared, "r.2")).of("run.started")[0]
    assert (begun["attempt"], begun["resumed_from"], begun["task_id"]) == (2, None, "t")
    assert (await stored(shared, "r")).ending == {"reason": "lease_expired"}
    row = await shared.run("r.2")
    assert row is not None and (row.origin.owner, row.origin.tenant, row.labels) == ("ann", "acme", {"c": "1"})


async def test_a_chain_of_lost_runs_is_followed_to_its_end(shared: Journal) -> None:
    for run_id in ("r", "r.2", "r.3"):
        await crashed(shared, run_id)
    run = await Work(shared, turn(text("hello")), run_id="r").job.start()
    assert run.id == "r.4" and (await run).kind == "succeeded"
    assert (await stored(shared, "r.4")).of("run.started")[0]["attempt"] == 4
    again = Work(shared, turn(text("hello")), run_id="r")
    with pytest.raises(AlreadyEnded, match=r"run r\.4 has ended \(succeeded\)"):
        await again.job.start()
    assert again.calls == 0


async def test_a_claim_that_never_became_a_run_is_lost_too(shared: Journal) -> None:
    lease = await shared.lease("r", 60)
    shared.renew([lease], -1.0)  # its owner died before it said anything
    run = await Work(shared, turn(text("hello")), run_id="r").job.start()
    assert run.id == "r.2" and (await run).kind == "succeeded"


async def test_the_plain_call_does_not_begin_a_lost_run_anew(journal: MemoryJournal) -> None:
    await crashed(journal, "r")
    run = started(scripted(turn(text("hello"))), journal=journal, run_id="r")
    assert (await run).kind == "unknown" and isinstance(run.error, AlreadyEnded)
    assert ".start(...)" in str(run.error) and await journal.run("r.2") is None


@pytest.mark.parametrize("state", ["unknown", "reserved", "lost"])
async def test_of_fifty_deliveries_of_one_job_exactly_one_runs(shared: Journal, state: str) -> None:
    if state == "reserved":
        await shared.reserve("r", 60, task_id="t")
    elif state == "lost":
        await crashed(shared, "r")
    work = Work(shared, turn(call("tool")), turn(text("hello")), run_id="r")
    answers = await asyncio.gather(*(work.job.start() for _ in range(50)), return_exceptions=True)
    runs = [answer for answer in answers if isinstance(answer, Run)]
    refused = {type(answer) for answer in answers if not isinstance(answer, Run)}
    assert len(runs) == 1 and refused <= {LeaseHeld, AlreadyEnded}
    assert (await runs[0]).kind == "succeeded"
    assert (work.calls, work.bodies) == (1, 1)
    assert runs[0].id == ("r.2" if state == "lost" else "r")
    log = await stored(shared, runs[0].id)
    assert len(log.of("run.started")) == 1 and log.view.issues == []


# Runs that ended otherwise.


async def ended_as(journal: Journal, kind: str) -> None:
    """A run ``r`` that ended in a certain way."""
    agents: dict[str, Callable[[], Agent[Any]]] = {
        "succeeded": lambda: scripted(turn(text("hello"))),
        "failed": lambda: scripted(turn(call("unheard_of"))),
        "cancelled": lambda: scripted(open_turn()),
        "paused": lambda: scripted(
            turn(call("danger")), tools=[function_tool(needs_approval=True, name_override="danger")(lambda: "did")]
        ),
        "incomplete": lambda: scripted(turn(call("add")), tools=[function_tool(name_override="add")(lambda: "1")]),
    }
    run = started(agents[kind](), journal=journal, run_id="r", max_turns=1 if kind == "incomplete" else 9)
    if kind == "cancelled":
        await reach(run, "text.delta")
        run.cancel()
    assert (await run).kind == kind
    await run.closed()


@pytest.mark.parametrize("kind", ["succeeded", "failed", "cancelled", "incomplete", "paused"])
async def test_a_run_that_ended_is_refused_and_nothing_is_executed(journal: MemoryJournal, kind: str) -> None:
    await ended_as(journal, kind)
    before = await stored(journal, "r")
    work = Work(journal, turn(text("hello")), run_id="r")
    with pytest.raises(AlreadyEnded, match=rf"run r has ended \({kind}\); read it in the journal"):
        await work.job.start()
    assert work.calls == 0 and await stored(journal, "r") == before and len(await journal.runs()) == 1


async def test_an_erased_run_is_refused(shared: Journal) -> None:
    await (await Work(shared, turn(text("hello")), run_id="r").job.start())
    await shared.erase(run_id="r")
    work = Work(shared, turn(text("hello")), run_id="r")
    with pytest.raises(RunErased):
        await work.job.start()
    assert work.calls == 0


# A journal that is away.


class Away(MemoryJournal):
    """Every call is refused from the one that is named on."""

    def __init__(self, from_: str) -> None:
        super().__init__()
        self._from = from_
        self.away = False

    def _gone(self, name: str) -> None:
        self.away = self.away or name == self._from
        if self.away:
            raise JournalUnavailable("the journal is away; try again")

    async def run(self, *args: Any, **kwargs: Any) -> Any:
        self._gone("run")
        return await super().run(*args, **kwargs)

    async def lease(self, *args: Any, **kwargs: Any) -> Any:
        self._gone("lease")
        return await super().lease(*args, **kwargs)

    async def read(self, *args: Any, **kwargs: Any) -> Any:
        self._gone("read")
        return await super().read(*args, **kwargs)


@pytest.mark.parametrize("from_", ["run", "lease", "read"])
async def test_a_journal_that_is_away_while_a_run_is_claimed_is_told_at_once(from_: str) -> None:
    journal = Away(from_)
    work = Work(journal, turn(text("hello")), run_id="r", exclusive="k", exclusive_wait=60.0)
    with pytest.raises(JournalUnavailable):
        await work.job.start()
    assert work.calls == 0


async def test_a_claim_that_was_not_finished_is_given_up_and_can_be_made_anew() -> None:
    journal = Away("read")
    work = Work(journal, turn(text("hello")), run_id="r")
    with pytest.raises(JournalUnavailable):
        await work.job.start()
    journal._from, journal.away = "never", False
    run = await work.job.start()
    assert (await run).kind == "succeeded" and run.id == "r.2", "whether the first had begun is not known"


class Slow(MemoryJournal):
    """Gives its leases when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.gives = asyncio.Event()

    async def lease(self, *args: Any, **kwargs: Any) -> Any:
        await self.gives.wait()
        return await super().lease(*args, **kwargs)


async def test_what_a_tool_reports_while_its_run_is_still_being_claimed_is_said_after_its_start() -> None:
    journal = Slow()

    @function_tool
    async def count() -> str:
        current_run().report("counted", 1, 2)
        journal.gives.set()
        return "counted"

    run = started(scripted(turn(call("count")), turn(text("done")), tools=[count]), journal=journal, run_id="r")
    assert (await run).kind == "succeeded" and run.error is None
    types = [envelope.type for envelope in await journal.read("r")]
    assert types[0] == "run.started" and types.index("tool.started") < types.index("tool.progress")


async def test_an_answer_is_used_though_the_journal_goes_away_between_its_lease_and_its_first_word() -> None:
    journal = Away("never")
    agent = scripted(
        turn(call("danger")),
        turn(text("done")),
        tools=[function_tool(lambda: "did", needs_approval=True, name_override="danger")],
    )
    run = started(agent, journal=journal)
    await run
    await run.closed()
    journal._from = "read"
    again = run.resume(approve="all")
    while not journal.away:
        await asyncio.sleep(0)
    journal._from, journal.away = "never", False
    async with asyncio.timeout(10):
        assert (await again).kind == "succeeded" and again.error is None


async def test_a_pause_is_answered_by_a_journal_that_comes_back() -> None:
    journal = Away("never")
    bodies: list[str] = []

    @function_tool(needs_approval=True)
    def danger() -> str:
        bodies.append("danger")
        return "did"

    run = started(scripted(turn(call("danger")), turn(text("done")), tools=[danger]), journal=journal)
    await run
    await run.closed()
    journal.away = True
    again = run.resume(approve="all")
    await asyncio.sleep(0.1)
    assert bodies == [] and not again._owner.finished.done()
    journal.away = False
    assert (await again).kind == "succeeded" and bodies == ["danger"]


async def test_a_pause_is_not_answered_without_a_journal() -> None:
    journal = Away("never")
    danger = function_tool(needs_approval=True, name_override="danger")(lambda: "did")
    run = started(scripted(turn(call("danger")), tools=[danger]), journal=journal, patience=0.1)
    await run
    journal.away = True
    with pytest.raises(JournalUnavailable):
        await run.resume(approve="all")


# Functions that raise.


@pytest.mark.parametrize("kind", ["sync", "async", "no run"])
@pytest.mark.parametrize("state", ["unknown", "reserved"])
async def test_a_function_that_raises_gives_its_run_back_as_lost(shared: Journal, kind: str, state: str) -> None:
    if state == "reserved":
        await shared.reserve("r", 60, task_id="t", title="Ordered")
    seen: list[str] = []

    def fails() -> Any:
        if kind == "no run":
            return 3
        raise ValueError("secret reason")

    async def fails_later() -> Any:
        await asyncio.sleep(0)
        return fails()

    options: dict[str, Any] = {
        "run_id": "r",
        "task_id": "t",
        "exclusive": "k",
        "sinks": [lambda e: seen.append(e.type)],
    }
    job = progress(journal=shared, **options)(fails_later if kind == "async" else fails)
    with pytest.raises(NotAStreamedResult if kind == "no run" else ValueError):
        run = await job.start()
        await run
    if kind == "async":
        await run.closed()
        assert run.view.status == "unknown" and (await log_of(run)).types == ["run.accepted", "run.lost"]
    log = await stored(shared, "r")
    assert log.types == seen == ["run.accepted", "run.lost"] and log.ending == {"reason": "start_failed"}
    row = await shared.run("r")
    assert row is not None and row.sealed and (row.status, row.task_id) == ("unknown", "t")
    assert row.title == ("Ordered" if state == "reserved" else "Fails" if kind != "async" else "Fails later")
    assert "secret" not in json.dumps([envelope.payload for envelope in log.envelopes])
    again = await Work(shared, turn(text("hello")), run_id="r", exclusive="k").job.start()
    assert again.id == "r.2" and (await again).kind == "succeeded", "the key is free, and a redelivery is a new attempt"


async def test_a_function_that_raises_under_the_plain_call_records_nothing(journal: MemoryJournal) -> None:
    with pytest.raises(ValueError, match="secret reason"):
        Work(journal).job()
    assert await journal.runs() == []


async def test_a_start_that_is_shut_down_in_an_asynchronous_body_is_lost_as_stopped(journal: MemoryJournal) -> None:
    @progress(journal=journal, run_id="r")
    async def job() -> RunResultStreaming:
        await asyncio.Event().wait()
        raise AssertionError("never")

    run = await job.start()
    await asyncio.sleep(0)
    run._owner.task.cancel()
    assert (await run).reason == "owner_stopped"
    assert (await stored(journal, "r")).ending == {"reason": "owner_stopped"}


# Exclusive keys.


async def test_of_two_runs_under_one_key_the_second_is_refused(shared: Journal) -> None:
    first = await Work(shared, open_turn(), exclusive="c").job.start()
    await reach(first, "text.delta")
    second = Work(shared, turn(text("hello")), exclusive="c")
    with pytest.raises(LeaseHeld, match=rf"run {first.id} is running under 'c'; wait for its end"):
        await second.job.start()
    assert second.calls == 0 and len(await shared.runs()) == 1
    other = await Work(shared, turn(text("hello")), exclusive="d").job.start()
    assert (await other).kind == "succeeded"
    first.cancel()
    await first
    await first.closed()
    assert (await (await second.job.start())).kind == "succeeded", "freed by the cancel"
    await soon_closed(shared)
    assert (await (await Work(shared, turn(text("hello")), exclusive="c").job.start())).kind == "succeeded"


async def soon_closed(journal: Journal) -> None:
    """Wait for every log to be sealed."""
    async with asyncio.timeout(5):
        while not all(row.sealed for row in await journal.runs()):
            await asyncio.sleep(0)


async def test_a_second_run_under_a_key_waits_for_the_first(shared: Journal) -> None:
    said = asyncio.Event()
    order: list[str] = []
    first = await Work(
        shared, turn(text("hel", wait(said))), exclusive="c", sinks=[on("run.ended", lambda: order.append("first"))]
    ).job.start()
    await reach(first, "text.delta")
    second = Work(shared, turn(text("hello")), exclusive="c", exclusive_wait=30.0)
    waiting = asyncio.ensure_future(second.job.start())
    await asyncio.sleep(0.15)
    assert not waiting.done() and second.calls == 0
    said.set()
    assert (await first).kind == "succeeded"
    run = await waiting
    order.append("second")
    assert (await run).kind == "succeeded" and order == ["first", "second"]


async def test_waiting_for_a_key_has_a_bound(shared: Journal) -> None:
    first = await Work(shared, open_turn(), exclusive="c").job.start()
    await reach(first, "text.delta")
    second = Work(shared, turn(text("hello")), exclusive="c", exclusive_wait=0.2)
    with pytest.raises(LeaseHeld):
        await second.job.start()
    assert second.calls == 0
    first.cancel()
    await first


async def test_a_job_that_is_delivered_twice_does_not_wait_for_its_own_key(shared: Journal) -> None:
    first = await Work(shared, open_turn(), exclusive="c", run_id="r").job.start()
    await reach(first, "text.delta")
    again = Work(shared, turn(text("hello")), exclusive="c", exclusive_wait=60.0, run_id="r")
    async with asyncio.timeout(5):
        with pytest.raises(LeaseHeld, match="run r has an owner"):
            await again.job.start()
    first.cancel()
    await first


async def test_the_key_of_an_owner_that_died_is_free_once_its_lease_ends(shared: Journal) -> None:
    lease = await shared.lease("dead", 0.3, exclusive="c")
    run = await Work(shared, turn(text("hello")), exclusive="c", exclusive_wait=30.0).job.start()
    assert (await run).kind == "succeeded" and lease.run_id != run.id


async def test_tenants_never_share_a_key(shared: Journal) -> None:
    first = await Work(shared, open_turn(), exclusive="c", tenant="acme").job.start()
    await reach(first, "text.delta")
    other = await Work(shared, turn(text("hello")), exclusive="c", tenant="umbrella").job.start()
    assert (await other).kind == "succeeded"
    with pytest.raises(LeaseHeld):
        await Work(shared, turn(text("hello")), exclusive="c", tenant="acme").job.start()
    row = await shared.run(first.id)
    assert row is not None and row.origin.tenant == "acme"
    first.cancel()
    await first


async def test_a_continuing_run_waits_for_the_key_of_its_conversation(shared: Journal) -> None:
    bodies: list[str] = []

    @function_tool(needs_approval=True)
    def danger() -> str:
        bodies.append("danger")
        return "did"

    agent = scripted(turn(call("danger")), turn(text("done")), tools=[danger])
    job = progress(journal=shared, exclusive="c")(lambda: Runner.run_streamed(agent, "hi"))
    first = await job.start()
    assert (await first).kind == "paused"
    await first.closed()
    said = asyncio.Event()
    between = await Work(shared, turn(text("hel", wait(said))), exclusive="c").job.start()
    await reach(between, "text.delta")
    again = first.resume(approve="all")
    await asyncio.sleep(0.15)
    assert bodies == [] and await shared.run(again.id) is None
    said.set()
    assert (await between).kind == (await again).kind == "succeeded" and bodies == ["danger"]


async def test_of_two_continuations_under_a_key_one_is_told_that_it_was_late(shared: Journal) -> None:
    danger = function_tool(needs_approval=True, name_override="danger")(lambda: "did")
    agent = scripted(turn(call("danger")), turn(text("done")), tools=[danger])
    job = progress(journal=shared, exclusive="c", run_id="r")(lambda: Runner.run_streamed(agent, "hi"))
    first = await job.start()
    await first
    await first.closed()
    await shared.lease("r.2", 60, exclusive="c")
    payload = {"agent": "A", "task_id": "r", "parent": None, "resumed_from": "r"}
    from agents_progress.events import Envelope
    from agents_progress.journal.base import Lease

    begun = Envelope("r.2:1", "r.2", 1, "run.started", "2026-10-07T08:00:01Z", payload)
    await shared.append([begun], lease=Lease("r.2", 1))
    with pytest.raises(AlreadyResumed, match=r"run r was continued by somebody else as r\.2"):
        await first.resume(approve="all")


async def test_an_exclusive_run_is_not_started_by_ways_that_execute_first(journal: MemoryJournal) -> None:
    work = Work(journal, turn(text("hello")), exclusive="c")
    with pytest.raises(UsageError, match=r"await job\.start\(\.\.\.\)"):
        work.job()
    assert work.calls == 0
    with pytest.raises(UsageError, match="under @progress"):
        progress.inside(exclusive="c")
    result = Runner.run_streamed(scripted(turn(text("hello"))), "hi")
    with pytest.raises(UsageError, match="under @progress"):
        follow(result, exclusive="c")
    async for _ in result.stream_events():
        pass
    assert await journal.runs() == []


# Scripts.


def test_run_sync_claims_first(tmp_path: Any) -> None:
    journal = Short(tmp_path / "runs.db")
    work = Work(journal, turn(text("hello")), run_id="r")
    assert work.job.run_sync().kind == "succeeded"
    with pytest.raises(AlreadyEnded):
        work.job.run_sync()
    assert work.calls == 1
    assert Work(journal, turn(text("hello")), exclusive="c").job.run_sync().kind == "succeeded"
    asyncio.run(journal.close())


# Asked before it began.


async def test_a_run_that_was_cancelled_while_it_was_reserved_is_cancelled(shared: Journal) -> None:
    await shared.reserve("r", 60)
    await shared.ask(Request("r", "cancel.immediate", {"mode": "immediate", "actor": "ann"}))
    work = Work(shared, turn(call("tool")), turn(text("hello")), run_id="r")
    run = await work.job.start()
    outcome = await run
    assert (outcome.kind, outcome.requested_by, work.bodies) == ("cancelled", "ann", 0)
    assert (await stored(shared, "r")).of("cancel.requested") == [{"mode": "immediate", "actor": "ann"}]


async def test_two_plain_calls_with_one_id_do_not_disturb_what_is_asked(journal: MemoryJournal) -> None:
    first, second = (started(scripted(open_turn()), journal=journal, run_id="r") for _ in range(2))
    await reach(first, "text.delta")
    second.cancel()
    assert (await second).kind == "unknown"
    await journal.ask(Request("r", "cancel.immediate", {"mode": "immediate", "actor": "ann"}))
    assert (await first).requested_by == "ann"


async def test_a_lost_runs_lease_is_renewed_while_the_function_blocks_the_loop() -> None:
    import time

    journal = Leased()

    @progress(journal=journal, run_id="r")
    def job() -> RunResultStreaming:
        time.sleep(4.5)  # longer than the lease was taken for
        return Runner.run_streamed(scripted(turn(text("hello"))), "hi")

    assert (await (await job.start())).kind == "succeeded"
    await soon(lambda: journal._logs["r"].sealed)
