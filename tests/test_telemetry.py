"""What operators see: every instrument moves in a real run, no attribute names a run, and log records name theirs."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, function_tool
from opentelemetry import context, metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from staging import (
    Prebuilt,
    log_of,
    message_item,
    reach,
    response_completed,
    response_created,
    scripted,
    soon,
    started,
    text_delta,
)

from agents_progress import telemetry
from agents_progress.errors import JournalUnavailable, JournalUnreadable
from agents_progress.journal import MemoryJournal
from agents_progress.keeper import expire
from agents_progress.log import KEPT
from agents_progress.sdk.hooks import RecordingHooks
from agents_progress.server.feeds import Hub
from agents_progress.telemetry import INSTRUMENTS, Name
from agents_progress.testing import call, http_error, incomplete, raw_item, text, turn, wait
from agents_progress.testing.contract.logs import started as begun
from agents_progress.testing.contract.logs import ticks

ROOT = Path(__file__).parent.parent


class Meters:
    """What was measured since the test began."""

    def __init__(self, reader: InMemoryMetricReader) -> None:
        self._reader = reader

    def points(self, name: Name) -> dict[tuple[tuple[str, Any], ...], Any]:
        found = self._reader.get_metrics_data()
        return {
            tuple(sorted((key.removeprefix("agents_progress."), value) for key, value in point.attributes.items())): (
                point.value if hasattr(point, "value") else point
            )
            for resource in (found.resource_metrics if found else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == f"agents_progress.{name}"
            for point in metric.data.data_points
        }

    def total(self, name: Name) -> int:
        return sum(self.points(name).values())


@pytest.fixture
def meters(monkeypatch: pytest.MonkeyPatch) -> Iterator[Meters]:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    made = telemetry.tellers(provider.get_meter("test"))
    monkeypatch.setattr(telemetry, "_tellers", lambda: made)
    yield Meters(reader)
    provider.shutdown()


def attributes(**given: str) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(given.items()))


# Instruments.


async def test_runs_are_active_while_they_have_an_owner(meters: Meters) -> None:
    gate = asyncio.Event()
    runs = [started(scripted(turn(text("hel", wait(gate))))) for _ in range(3)]
    for run in runs:
        await reach(run, "text.delta")
    assert meters.total("run.active") == 3
    gate.set()
    for run in runs:
        await run.closed()
    assert meters.total("run.active") == 0


async def test_endings_are_counted_by_outcome_and_code(meters: Meters) -> None:
    @function_tool(needs_approval=True)
    def refund() -> str:
        return "ok"

    waiting = started(scripted(turn(text("hel", wait(asyncio.Event())))))
    await reach(waiting, "text.delta")
    waiting.cancel()
    runs = [
        waiting,
        started(scripted(turn(text("one")))),
        started(scripted(turn(text("two")))),
        started(scripted(http_error(400))),
        started(scripted(turn(text("so far"), incomplete("max_output_tokens")))),
        started(scripted(turn(call("refund")), tools=[refund])),
    ]
    for run in runs:
        await run.closed()
    assert meters.points("run.ended") == {
        attributes(outcome="succeeded"): 2,
        attributes(outcome="failed", code="bad_request"): 1,
        attributes(outcome="cancelled"): 1,
        attributes(outcome="incomplete", code="max_output_tokens"): 1,
        attributes(outcome="paused"): 1,
    }
    assert meters.points("run.lost") == {}


class Failing(MemoryJournal):
    """Takes so many appends."""

    def __init__(self, takes: int, error: Exception) -> None:
        super().__init__()
        self.takes, self.error = takes, error

    async def append(self, envelopes: Any, **more: Any) -> None:
        self.takes -= 1
        if self.takes < 0:
            raise self.error
        await super().append(envelopes, **more)


async def test_a_run_that_its_owner_lost_is_counted_with_the_reason(meters: Meters) -> None:
    run = started(scripted(turn(text("hello"))), journal=Failing(0, JournalUnreadable("broken")))
    await run.closed()
    assert (await run).kind == "unknown"
    assert meters.points("run.lost") == {attributes(reason="journal", seen_by="owner"): 1}
    assert meters.points("run.ended") == {} and meters.total("run.active") == 0


async def test_a_function_that_raised_before_there_was_a_run_is_no_run(meters: Meters) -> None:
    from agents_progress import progress

    @progress
    async def work() -> Any:
        raise KeyError("no such customer")

    run = work()
    with pytest.raises(KeyError):
        await run
    await run.closed()
    assert meters.points("run.lost") == meters.points("run.ended") == {} and meters.total("run.active") == 0


class Leased(MemoryJournal):
    """Leases run out soon; ``renewing`` says what becomes of a renewal."""

    lease_s = 0.3
    renewing: Callable[[], None] = staticmethod(lambda: None)

    def renew(self, leases: Any, ttl: float) -> Any:
        self.renewing()
        return super().renew(leases, ttl)


def refused() -> None:
    raise JournalUnavailable("no connection to db.internal:5432")


async def test_runs_that_are_found_without_an_owner_are_counted_by_whoever_finds_them(meters: Meters) -> None:
    journal = Leased()
    await journal.reserve("reserved", 0.0)
    run = started(scripted(turn(text("hel", wait(asyncio.Event())))), journal=journal)
    await reach(run, "text.delta")
    journal.renewing = refused  # type: ignore[method-assign]
    found: list[str] = []
    async with asyncio.timeout(10):
        while run.id not in found:
            found += await expire(journal)
            await asyncio.sleep(0.02)
    assert meters.points("run.lost") == {
        attributes(reason="never_started", seen_by="expiry"): 1,
        attributes(reason="lease_expired", seen_by="expiry"): 1,
    }
    run.cancel()
    await run.closed()
    assert meters.points("run.lost")[attributes(reason="journal", seen_by="owner")] == 1


async def test_renewals_that_were_missed_are_counted(meters: Meters) -> None:
    journal = Leased()
    run = started(scripted(turn(text("hel", wait(asyncio.Event())))), journal=journal)
    await reach(run, "text.delta")
    assert meters.points("lease.renewal.missed") == {}
    journal.renewing = refused  # type: ignore[method-assign]
    await soon(lambda: meters.total("lease.renewal.missed") >= 2)
    journal.renewing = lambda: None  # type: ignore[method-assign]
    run.cancel()
    await run.closed()


async def test_each_append_is_timed_with_the_journal_and_the_error(meters: Meters) -> None:
    await (await_closed := started(scripted(turn(text("hello"))), journal=MemoryJournal())).closed()
    assert (await await_closed).kind == "succeeded"
    (point,) = meters.points("journal.append.duration").values()
    assert point.count >= 1 and 0 < point.sum < 5 and point.explicit_bounds[0] == 0.0005
    await started(scripted(turn(text("hello"))), journal=Failing(0, JournalUnavailable("away"))).closed()
    failed = attributes(journal="Failing", **{"error.type": "JournalUnavailable"})
    assert set(meters.points("journal.append.duration")) == {attributes(journal="MemoryJournal"), failed}


async def test_what_waits_for_a_journal_is_observed_until_it_is_stored(meters: Meters) -> None:
    gate, said = asyncio.Event(), asyncio.Event()

    class Slow(MemoryJournal):
        async def append(self, envelopes: Any, **more: Any) -> None:
            if envelopes[0].seq > 1:
                await gate.wait()
            await super().append(envelopes, **more)

    run = started(scripted(turn(text("hel", wait(said), "x" * 10_000))), journal=Slow())
    await reach(run, "run.started")
    said.set()
    await soon(lambda: run.result.is_complete)
    assert 10_000 < meters.total("journal.pending") < 100_000
    gate.set()
    await run.closed()
    assert meters.total("journal.pending") == 0


async def test_a_reader_that_fell_behind_is_measured_when_it_is_moved_and_a_late_one_is_not(meters: Meters) -> None:
    many = 3 * KEPT
    gate = asyncio.Event()

    class Long(Prebuilt):
        async def stream_response(self, *args: Any, **kwargs: Any) -> Any:
            yield response_created()
            yield text_delta("0 ")
            await gate.wait()
            for number in range(1, many):
                yield text_delta(f"{number} ")
                if not number % 16:
                    await asyncio.sleep(0)
            yield response_completed(message_item("".join(f"{number} " for number in range(many))))

    run = started(Agent(name="A", model=Long()), coalesce=None)
    slow = aiter(run)
    while (await anext(slow)).type != "text.delta":
        pass
    gate.set()
    await run
    seen = [envelope async for envelope in slow]
    assert len((await log_of(run)).envelopes) > len(seen) > many - KEPT, "it has missed nothing"
    (point,) = meters.points("reader.lag").values()
    assert point.count == 1 and many - KEPT < point.sum <= run.view.seq


async def test_a_reader_of_a_server_is_measured_the_same_way(meters: Meters) -> None:
    journal = MemoryJournal()
    await journal.append([begun("r")])
    hub = Hub(journal, kept=16)
    with hub.reading("r", 1) as slow:
        (feed,) = hub._feeds.values()
        for upto in (1, 3, 100):  # it begins, it is near, it is far behind
            await journal.append(ticks("r", max(slow.seq + 1, 2), upto) if upto > 1 else [])
            await soon(lambda: feed.kept.head == upto)  # noqa: B023 - waited for at once
            while slow.seq < upto:
                await slow.take()
    (point,) = meters.points("reader.lag").values()
    assert (point.count, point.sum) == (1, 97)


@pytest.mark.parametrize("unknown_items", ["block", "note"])
async def test_what_the_sdk_said_and_nobody_knows_is_counted_by_name(meters: Meters, unknown_items: Any) -> None:
    new = raw_item({"type": "brand_new_call", "id": "n1", "status": "completed"})
    await started(scripted(turn(new, text("ok"))), unknown_items=unknown_items).closed()
    (point,) = meters.points("adapter.unsupported")
    assert dict(point)["name"] == "brand_new_call" and meters.total("adapter.unsupported") == 1


async def test_no_attribute_holds_an_id_or_a_foreign_text(meters: Meters) -> None:
    ids = {"run_id": "run-0815", "task_id": "task-0815", "owner": "ann", "labels": {"conversation": "c-0815"}}
    await started(scripted(turn(text("hello"))), **ids).closed()
    await started(scripted(turn(text("so far"), incomplete("because ann@example.org said so")))).closed()
    telemetry.tell("adapter.unsupported", 1, what="item", name="x" * 65)
    told = {value for name in INSTRUMENTS for point in meters.points(name) for _, value in point}
    assert told >= {"succeeded", "incomplete", "other", "MemoryJournal"}
    assert not [value for value in told if "0815" in value or "ann" in value or len(value) > 64]


def test_instruments_are_named_as_opentelemetry_wants_them() -> None:
    for name, instrument in INSTRUMENTS.items():
        assert name == name.lower() and not name.endswith(("_total", "s.count"))
        assert instrument.unit in ("s", "By") or instrument.unit.startswith("{")
        assert bool(instrument.buckets) is (instrument.kind == "histogram")
        assert list(instrument.buckets) == sorted(instrument.buckets) and instrument.about.endswith(".")


# Without OpenTelemetry.

ABSENT = """
import agents, asyncio, sys  # the SDK's own parts may need it

class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "opentelemetry":
            raise ImportError(f"{name} is not installed here")

for name in [name for name in sys.modules if name.split(".")[0] == "opentelemetry"]:
    del sys.modules[name]
sys.meta_path.insert(0, Refuse())

from agents import Agent, Runner, set_tracing_disabled
from agents_progress import progress, telemetry
from agents_progress.testing import ScriptedAPI, text, turn

set_tracing_disabled(True)

@progress(verify=lambda output: True, labels={"trace_id": "t"})
def work():
    return Runner.run_streamed(Agent(name="A", model=ScriptedAPI([turn(text("hello"))]).model()), "hi")

print(work.run_sync().accepted, telemetry.measured(), telemetry.current_trace_id())
assert not [name for name in sys.modules if name.split(".")[0] == "opentelemetry"]
"""


def python(code: str) -> str:
    command = [sys.executable, "-W", "error", "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_run_needs_no_opentelemetry() -> None:
    assert python(ABSENT) == "True False None"


def test_opentelemetry_is_not_loaded_before_there_is_a_run() -> None:
    code = "import agents_progress.run, sys; print([name for name in sys.modules if name.startswith('opentel')])"
    assert python(code) == "[]"


def test_an_opentelemetry_without_buckets_is_as_good_as_none(monkeypatch: pytest.MonkeyPatch) -> None:
    class Older(metrics.NoOpMeter):
        def create_histogram(self, name: str, unit: str = "", description: str = "") -> Any:  # type: ignore[override]
            return super().create_histogram(name, unit, description)

    telemetry._tellers.cache_clear()
    monkeypatch.setattr(metrics, "get_meter", Older)
    assert not telemetry.measured()
    telemetry.tell("run.active", 1)
    telemetry._tellers.cache_clear()


# Log records.


def records(caplog: pytest.LogCaptureFixture) -> list[Any]:
    return [record for record in caplog.records if record.name == "agents_progress"]


def fails(*given: Any) -> bool:
    raise RuntimeError


@contextmanager
def inside_span(trace_id: int) -> Iterator[None]:
    span = trace.NonRecordingSpan(trace.SpanContext(trace_id, 7, is_remote=False))
    token = context.attach(trace.set_span_in_context(span))
    yield
    context.detach(token)


async def test_log_records_of_a_run_carry_its_ids_and_the_trace_of_its_label(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    @function_tool
    def look() -> str:
        return "ok"

    monkeypatch.setattr(RecordingHooks, "attach", lambda self, report: setattr(self, "_report", fails))
    run = started(
        scripted(turn(call("look")), turn(text("hello")), tools=[look]),
        run_id="r-1",
        task_id="t-1",
        labels={"trace_id": "from the label"},
        sinks=[fails],
        verify=fails,
    )
    await run.closed()
    told = {record.getMessage() for record in records(caplog)}
    assert {
        "agents_progress: run r-1: a sink failed: RuntimeError",
        "agents_progress: run r-1: its verifier gave no verdict: RuntimeError; run.error holds it",
        "agents_progress: run r-1: the report of on_tool_start failed: RuntimeError",
    } <= told
    for record in records(caplog):
        assert (record.run_id, record.task_id, record.trace_id) == ("r-1", "t-1", "from the label")


async def test_the_current_span_goes_before_the_label(caplog: pytest.LogCaptureFixture) -> None:
    with inside_span(0xABC):
        run = started(scripted(turn(text("hello"))), labels={"trace_id": "from the label"}, sinks=[fails])
    await run.closed()
    (record,) = records(caplog)
    assert record.trace_id == f"{0xABC:032x}" and len(record.trace_id) == 32


async def test_without_a_span_and_a_label_the_trace_is_none(caplog: pytest.LogCaptureFixture) -> None:
    run = started(scripted(turn(text("hello"))), journal=Failing(0, JournalUnreadable("broken")))
    await run.closed()
    (record,) = records(caplog)
    assert (record.run_id, record.task_id, record.trace_id) == (run.id, run.id, None)
    assert logging.Formatter("%(run_id)s %(trace_id)s").format(record) == f"{run.id} None"
