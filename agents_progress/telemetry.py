"""What operators measure of runs, by OpenTelemetry, and the log records about one run.

OpenTelemetry is looked for at the first run, and only its API: which numbers go where is the application's own setup.
Where it is not installed (extra ``otel``), or older than 1.30, nothing is measured and nothing fails. No attribute
holds an id, nor a text that is not of a closed list or a name.
"""

from __future__ import annotations

import asyncio
import logging
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias
from weakref import WeakSet

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, Meter, Observation

Name: TypeAlias = Literal[
    "run.active",
    "run.ended",
    "run.lost",
    "journal.append.duration",
    "journal.pending",
    "reader.lag",
    "lease.renewal.missed",
    "adapter.unsupported",
]
Kind: TypeAlias = Literal["counter", "up_down_counter", "histogram", "observable_up_down_counter"]


@dataclass(frozen=True, slots=True)
class Instrument:
    """One row of the table: the kind, the unit as UCUM writes it, and what is counted."""

    kind: Kind
    unit: str
    about: str
    buckets: tuple[float, ...] = ()


INSTRUMENTS: Final[Mapping[Name, Instrument]] = {
    "run.active": Instrument("up_down_counter", "{run}", "Runs that have their owner in this process."),
    "run.ended": Instrument("counter", "{run}", "Runs that ended here, by outcome, and by code or reason."),
    "run.lost": Instrument(
        "counter", "{run}", "Runs without a known ending, by reason, and by who found that: their owner, or expiry."
    ),
    "journal.append.duration": Instrument(
        "histogram",
        "s",
        "Time that a journal took for an append, refusals included.",
        (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
    ),
    "journal.pending": Instrument("observable_up_down_counter", "By", "What was written and is not stored yet."),
    "reader.lag": Instrument(
        "histogram",
        "{envelope}",
        "How far a reader was behind when it was moved to the journal.",
        (512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072, 262144),
    ),
    "lease.renewal.missed": Instrument("counter", "{lease}", "Leases that could not be renewed in time, each time."),
    "adapter.unsupported": Instrument("counter", "{item}", "What the SDK said that this release does not know."),
}
"""Instruments are named ``agents_progress.`` and this."""

_PREFIX: Final = "agents_progress."
_WORD: Final = re.compile(r"[A-Za-z0-9_.:-]{1,64}")


class _Waiting(Protocol):
    @property
    def pending_bytes(self) -> int: ...


_waiting: Final[WeakSet[_Waiting]] = WeakSet()
_changing: Final = threading.Lock()


def tell(name: Name, amount: float, /, **attributes: str | None) -> None:
    """Count or record one thing. An attribute of None is left out, and a text that is no word is `other`."""
    teller = _tellers().get(name)
    if teller is not None:
        teller(amount, {_attribute(key): _word(value) for key, value in attributes.items() if value is not None})


def count_active(owning: asyncio.Task[None]) -> None:
    """Count a run as active for as long as the task that owns it goes on."""
    tell("run.active", 1)
    owning.add_done_callback(lambda task: tell("run.active", -1))


def tell_end(kind: str, code: str | None) -> None:
    """Count the end of a run, as its owner has it."""
    if kind == "unknown":
        tell("run.lost", 1, reason=code, seen_by="owner")
    else:
        tell("run.ended", 1, outcome=kind, code=code)


@contextmanager
def appending(journal: object) -> Iterator[None]:
    """Record how long an append takes, with the class of its error if it raises."""
    begun, failed = time.perf_counter(), None
    try:
        yield
    except BaseException as error:
        failed = type(error).__name__
        raise
    finally:
        took = time.perf_counter() - begun
        tell("journal.append.duration", took, journal=type(journal).__name__, error=failed)


def watch(log: _Waiting) -> None:
    """Count the bytes that wait in a log, as long as there is such a log."""
    if measured():
        with _changing:
            _waiting.add(log)


def measured() -> bool:
    """Whether anything told here is measured."""
    return bool(_tellers())


@cache
def _tellers() -> Mapping[Name, Callable[[float, Mapping[str, str]], None]]:
    try:
        from opentelemetry.metrics import get_meter

        return tellers(get_meter("agents_progress"))
    except (ImportError, TypeError):  # absent, or without buckets
        return {}


def tellers(meter: Meter) -> Mapping[Name, Callable[[float, Mapping[str, str]], None]]:
    """The instruments, made by a meter; what is observed needs no telling."""
    found: dict[Name, Callable[[float, Mapping[str, str]], None]] = {}
    for name, instrument in INSTRUMENTS.items():
        kind, said = instrument.kind, (_PREFIX + name, instrument.unit, instrument.about)
        if kind == "histogram":
            found[name] = meter.create_histogram(*said, explicit_bucket_boundaries_advisory=instrument.buckets).record
        elif kind == "counter":
            found[name] = meter.create_counter(*said).add
        elif kind == "up_down_counter":
            found[name] = meter.create_up_down_counter(*said).add
        else:
            meter.create_observable_up_down_counter(said[0], [_observe], *said[1:])
    return found


def _observe(options: CallbackOptions) -> Iterable[Observation]:
    from opentelemetry.metrics import Observation

    with _changing:
        logs = list(_waiting)
    return [Observation(sum(log.pending_bytes for log in logs))]


def _attribute(key: str) -> str:
    return "error.type" if key == "error" else _PREFIX + key  # OpenTelemetry has a name for this one


def _word(text: str) -> str:
    return text if _WORD.fullmatch(text) else "other"


# Log records.


def about(run_id: str, task_id: str | None = None, labels: Mapping[str, str] | None = None) -> dict[str, str | None]:
    """What a log record about a run carries beside its words, as its ``extra``; None for what is not known here.

    The trace id is that of the current OpenTelemetry span, else the run's label of this name.
    """
    return {
        "run_id": run_id,
        "task_id": task_id,
        "trace_id": current_trace_id() or (labels or {}).get("trace_id"),
    }


class RunLogger(logging.LoggerAdapter[logging.Logger]):
    """Log records about one run: each names it in its words, and carries what :func:`about` gives."""

    def __init__(self, run_id: str) -> None:
        super().__init__(logging.getLogger("agents_progress"))
        self.run_id = self.task_id = run_id
        self.labels: Mapping[str, str] = {}

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        kwargs["extra"] = about(self.run_id, self.task_id, self.labels)
        return f"agents_progress: run {self.run_id}: {msg}", kwargs


def current_trace_id() -> str | None:
    """The trace id of the current OpenTelemetry span, as 32 hex digits; None when there is none."""
    span_here = _span_here()
    context = None if span_here is None else span_here().get_span_context()
    return f"{context.trace_id:032x}" if context is not None and context.is_valid else None


@cache
def _span_here() -> Callable[[], Any] | None:
    try:
        from opentelemetry.trace import get_current_span
    except ImportError:
        return None
    return get_current_span
