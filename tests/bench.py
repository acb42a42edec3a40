"""What owning a run costs, measured beside a bare drain of the same run, in one process: `python tests/bench.py [ROW
...]`.

The model yields prebuilt events, so that everything measured is overhead. Each figure is the median of five, ours and
the bare drain in turn. A figure over its bar is marked, and the exit code is then 1; with `--slack 0.1` only when it is
over by more than a tenth. What else the machine does makes a figure worse and never better: one that is over its bar is
measured again, up to twice, and the best counts; code that became slow is over it each time. Figures in microseconds or
envelopes a second are told at the pace of the machine that their bars were set on, where this one is slower.
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

from agents import Agent, ModelResponse, RawResponsesStreamEvent, Runner, function_tool, set_tracing_disabled
from agents.models.interface import Model
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseCreatedEvent,
    ResponseFunctionToolCall,
    ResponseOutputItemAddedEvent,
    ResponseOutputItemDoneEvent,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseTextDeltaEvent,
    ResponseTextDoneEvent,
)
from pydantic_core import from_json

from agents_progress import progress
from agents_progress.bridges.ag_ui import AgUI
from agents_progress.bridges.base import Bridge
from agents_progress.bridges.vercel import Vercel
from agents_progress.caps import Caps
from agents_progress.clock import Clock
from agents_progress.disclosure import TEXTS, Disclosure, Screen
from agents_progress.events import Envelope
from agents_progress.journal import MemoryJournal, Origin
from agents_progress.journal.sqlite import SQLiteJournal
from agents_progress.log import RunLog
from agents_progress.sdk.pump import Pump
from agents_progress.sdk.tee import Tee
from agents_progress.telemetry import RunLogger
from agents_progress.view import RunView

TIMES = 5
WORD = "word "
MOMENT = "2026-10-07T08:00:00.123456Z"


def response(number: int, output: list[Any], status: str = "completed") -> Response:
    return Response(
        id=f"resp_{number}",
        created_at=0,
        model="prebuilt",
        object="response",
        output=output,
        parallel_tool_calls=True,
        tool_choice="auto",
        tools=[],
        status=status,  # type: ignore[arg-type]
    )


def text_turn(number: int, deltas: int, calls: int = 0) -> list[Any]:
    """All events of one model response: a message of so many deltas, then so many tool calls."""
    item_id, text = f"msg_{number}", WORD * deltas
    part = ResponseOutputText(annotations=[], text=text, type="output_text")
    message = ResponseOutputMessage(id=item_id, content=[part], role="assistant", status="completed", type="message")
    empty = message.model_copy(update={"content": [], "status": "in_progress"})
    tools = [
        ResponseFunctionToolCall(
            arguments="{}",
            call_id=f"call_{number}_{place}",
            name="nothing",
            type="function_call",
            id=f"fc_{number}_{place}",
        )
        for place in range(calls)
    ]
    place = {"item_id": item_id, "output_index": 0, "content_index": 0}
    events: list[Any] = [
        ResponseCreatedEvent(response=response(number, [], "in_progress"), sequence_number=0, type="response.created"),
        ResponseOutputItemAddedEvent(item=empty, output_index=0, sequence_number=1, type="response.output_item.added"),
    ]
    events += [
        ResponseTextDeltaEvent(
            delta=WORD, logprobs=[], sequence_number=index + 2, type="response.output_text.delta", **place
        )
        for index in range(deltas)
    ]
    events.append(
        ResponseTextDoneEvent(text=text, logprobs=[], sequence_number=0, type="response.output_text.done", **place)
    )
    events += [
        ResponseOutputItemDoneEvent(item=item, output_index=index, sequence_number=0, type="response.output_item.done")
        for index, item in enumerate([message, *tools])
    ]
    done = response(number, [message, *tools])
    return [*events, ResponseCompletedEvent(response=done, sequence_number=0, type="response.completed")]


class Prebuilt(Model):
    """Answers turn after turn with events that were made before the clock was started."""

    def __init__(self, turns: list[list[Any]]) -> None:
        self.turns = turns
        self.turn = 0

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        raise AssertionError("only streamed runs are measured")

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        turn, self.turn = self.turns[self.turn], self.turn + 1
        for event in turn:
            yield event


class Endless(Prebuilt):
    """One response of a great many deltas, made as they are asked for, so that they take no memory."""

    def __init__(self, deltas: int) -> None:
        super().__init__([])
        self.deltas = deltas

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        head, tail = text_turn(0, 1)[:2], text_turn(0, 1)[-1:]
        delta = text_turn(0, 1)[2]
        for event in head:
            yield event
        for index in range(self.deltas):
            yield delta
            if not index % 256:
                await asyncio.sleep(0)
        for event in tail:
            yield event


@function_tool
async def nothing() -> str:
    return "ok"


def agent_of(turns: list[list[Any]]) -> Agent[Any]:
    return Agent(name="Bench", model=Prebuilt(turns), tools=[nothing])


async def bare(turns: list[list[Any]]) -> None:
    async for _ in Runner.run_streamed(agent_of(turns), "go", max_turns=100).stream_events():
        pass


async def owned(turns: list[list[Any]], **options: Any) -> None:
    """Owner, view, journal and one reader; the run must have succeeded."""

    @progress(**options)
    def body() -> Any:
        return Runner.run_streamed(agent_of(turns), "go", max_turns=100)

    run = body()
    async for _ in run:
        pass
    assert (await run).kind == "succeeded", run.error
    assert run.view.status == "checking", run.view.issues


def timed(work: Callable[[], Awaitable[None]]) -> float:
    gc.collect()
    start = time.perf_counter()
    asyncio.run(work())  # type: ignore[arg-type]
    return time.perf_counter() - start


def ratio(name: str, bar: float, aim: float, turns: list[list[Any]], options: Callable[[], dict[str, Any]]) -> float:
    bares: list[float] = []
    ours: list[float] = []
    timed(lambda: bare(turns))
    for _ in range(TIMES):
        chosen = options()
        asyncio.run(owned([text_turn(0, 1)], **chosen))  # an application's journal is open long before most of its runs
        bares.append(timed(lambda: bare(turns)))
        ours.append(timed(partial(owned, turns, **chosen)))
    base, own = statistics.median(bares), statistics.median(ours)
    events = sum(len(turn) for turn in turns)
    figures = f"bare {base * 1e6 / events:6.2f} us/event, ours {own * 1e6 / events:6.2f} us/event"
    return said(name, own / base, bar, f"{figures}, ratio {own / base:.3f} (at most {bar}, aim {aim})")


def said(name: str, figure: float, bar: float, text: str, *, at_least: bool = False) -> float:
    """Print a figure, and by what share of its bar it is over it."""
    over = bar / figure - 1 if at_least else figure / bar - 1
    print(f"{name:34} {text}{'' if over <= 0 else '   <-- OVER THE BAR'}", flush=True)
    return over


UNITS, UNIT_US = 20_000, 1.0
"""How much of a yardstick is run beside a measurement, and what one unit takes where the bars were set."""

LINE = b'{"event_id":"r:1","run_id":"r","seq":1,"payload":{"item_id":"msg_1","index":1,"text":"word word word word "}}'

paces: list[float] = []


def pace() -> float:
    """How fast plain code runs at this moment, as a part of what it does there; at most 1."""
    texts = {}
    begun = time.perf_counter()
    for index in range(UNITS):
        found = from_json(LINE)
        texts[found["payload"]["item_id"], index % 64] = f"{found['event_id']}/{index}".partition("/")
    return min(1.0, UNITS * UNIT_US / (1e6 * (time.perf_counter() - begun)))


def at_pace(seconds: Callable[[], float]) -> float:
    """The seconds that something takes, as they would be there. A virtual machine with neighbours swings by half."""
    before = pace()
    took = seconds()
    paces.append((before + pace()) / 2)
    return took * paces[-1]


def row_text() -> float:
    with tempfile.TemporaryDirectory() as folder:
        journals = (SQLiteJournal(Path(folder, f"{number}.db")) for number in range(TIMES))
        return ratio("text, SQLite, coalesced", 1.25, 1.15, [text_turn(0, 20_000)], lambda: {"journal": next(journals)})


def row_single() -> float:
    options = {"coalesce": None}
    return ratio(
        "text, memory, not coalesced",
        1.45,
        1.3,
        [text_turn(0, 20_000)],
        lambda: {"journal": MemoryJournal(), **options},
    )


def row_mixed() -> float:
    turns = [*(text_turn(number, 1000, 10) for number in range(20)), text_turn(20, 10)]
    with tempfile.TemporaryDirectory() as folder:
        journals = (SQLiteJournal(Path(folder, f"{number}.db")) for number in range(TIMES))
        return ratio("mixed, SQLite, coalesced", 1.2, 1.1, turns, lambda: {"journal": next(journals)})


def row_reduce() -> float:
    envelopes: list[bytes] = []

    async def record() -> None:
        journal = MemoryJournal()
        turns = [*(text_turn(number, 1000, 10) for number in range(20)), text_turn(20, 10)]
        await owned(turns, journal=journal, coalesce=None)
        run_id = (await journal.runs())[0].run_id
        envelopes.extend(envelope.to_json() for envelope in await journal.read(run_id, limit=10**6))

    asyncio.run(record())
    run_id = json.loads(envelopes[0])["run_id"]

    def seconds() -> float:
        view = RunView(run_id)
        gc.collect()
        start = time.perf_counter()
        for envelope in envelopes:
            view.feed(envelope)
        took = time.perf_counter() - start
        assert view.status == "checking"
        return took

    rate = len(envelopes) / statistics.median(at_pace(seconds) for _ in range(TIMES))
    return said("reduce stored JSON", rate, 150_000, f"{rate:,.0f} envelopes/s (at least 150,000)", at_least=True)


class Encoded(Envelope):
    """One whose JSON was made before the clock was started, as the bar has it."""

    def __init__(self, *fields: Any) -> None:
        self.json = Envelope(*fields).to_json()

    def to_json(self) -> bytes:
        return self.json


def row_append() -> float:
    many, size = 400_000, 4096

    def deltas(kind: type[Envelope]) -> list[Envelope]:
        payloads = ({"item_id": "msg_1", "index": seq, "text": WORD * 4} for seq in range(1, many + 1))
        return [kind(f"r:{seq}", "r", seq, "text.delta", MOMENT, p) for seq, p in enumerate(payloads, 1)]

    async def seconds(path: Path, log: list[Envelope]) -> float:
        journal = SQLiteJournal(path)
        await journal.runs()
        gc.collect()
        start = time.perf_counter()
        for first in range(0, many, size):  # as an owner does: the next batch when the last one is stored
            await journal.append(log[first : first + size])
        took = time.perf_counter() - start
        assert [row.seq for row in await journal.runs()] == [many]
        await journal.close()
        return took

    rates = {}
    for kind in (Encoded, Envelope):
        log = deltas(kind)
        with tempfile.TemporaryDirectory() as folder:
            paths = [Path(folder, f"{number}.db") for number in range(TIMES)]
            found = [at_pace(lambda path=path, log=log: asyncio.run(seconds(path, log))) for path in paths]  # type: ignore[misc]
        rates[kind] = many / statistics.median(found)
    encoded, plain = rates[Encoded], rates[Envelope]
    figures = f"{encoded:,.0f} envelopes/s encoded before (at least 250,000), {plain:,.0f} with that"
    return said("append, SQLite", encoded, 250_000, figures, at_least=True)


def row_memory() -> float:
    peaks = {}
    for kind in ("bare", "owned"):
        script = [sys.executable, __file__, f"--memory-{kind}"]
        peaks[kind] = float(subprocess.run(script, check=True, capture_output=True, text=True).stdout)
    text_mb = MANY * len(WORD) / 2**20
    extra = peaks["owned"] - peaks["bare"]
    figures = f"bare {peaks['bare']:.0f} MB, ours {peaks['owned']:.0f} MB, text {text_mb:.1f} MB"
    return said("memory, 1,000,000 events", extra, text_mb + 30, f"{figures}, extra {extra:.1f} MB (at most text + 30)")


def row_recorder() -> float:
    """What it costs to take each event where the SDK makes it, against the SDK's own queue."""
    events = [RawResponsesStreamEvent(data=event) for event in text_turn(0, 20_000)]

    class Result:
        def __init__(self) -> None:
            self._event_queue: asyncio.Queue[Any] = asyncio.Queue()

        async def stream_events(self) -> AsyncIterator[Any]:
            yield

    async def seconds(recorded: bool) -> float:
        result = Result()
        if recorded:
            pump = Pump(result, Tee(retain=False, cancel_quietly=lambda: None))
            await pump.drain(lambda burst: None, lambda: None, 1.0)
        put = result._event_queue.put_nowait
        start = time.perf_counter()
        for event in events:
            put(event)
        return time.perf_counter() - start

    def paced(recorded: bool) -> float:
        return at_pace(lambda: asyncio.run(seconds(recorded)))

    spent = [(paced(False), paced(True)) for _ in range(TIMES)]
    plain, recorded = (statistics.median(times) * 1e6 / len(events) for times in zip(*spent, strict=True))
    figures = f"queue {plain:.2f} us/event, recorded {recorded:.2f} us/event"
    return said(
        "recording at the source", recorded - plain, 0.3, f"{figures}, extra {recorded - plain:.2f} (at most 0.3)"
    )


def row_snapshots() -> float:
    """What it costs to keep snapshots for readers on other nodes, on the way and at the end of a long log."""

    class Watched(MemoryJournal):
        lease_s = 60.0

    async def seconds(journal: MemoryJournal) -> float:
        log = RunLog(
            "r",
            journal,
            RunView("r"),
            Screen(Disclosure()),
            clock=Clock(),
            coalesce=None,
            caps=Caps(),
            origin=Origin(),
            logger=RunLogger("r"),
            patience=60.0,
            on_fault=print,
        )
        log.write("run.started", {"agent": "A", "task_id": "r", "parent": None, "resumed_from": None})
        start = time.process_time()
        for number in range(LONG // 500):
            log.write(TEXTS, {"item_id": f"m{number // 10}", "texts": [WORD] * 500})
            await log.flush()
        await log.close()
        await log.seal()
        return time.process_time() - start

    def paced(journal: MemoryJournal) -> float:
        return at_pace(lambda: asyncio.run(seconds(journal)))

    spent = [(paced(MemoryJournal()), paced(Watched())) for _ in range(TIMES)]
    without, kept = (statistics.median(times) * 1e6 / LONG for times in zip(*spent, strict=True))
    figures = f"without {without:.2f} us/envelope, with {kept:.2f} us/envelope"
    return said("keeping snapshots", kept - without, 2.0, f"{figures}, extra {kept - without:.2f} (at most 2)")


LONG = 200_000
MANY = 1_000_000


def memory_of(kind: str) -> None:
    async def drain() -> None:
        agent = Agent(name="Bench", model=Endless(MANY))
        async for _ in Runner.run_streamed(agent, "go").stream_events():
            pass

    async def own() -> None:
        with tempfile.TemporaryDirectory() as folder:

            @progress(journal=SQLiteJournal(Path(folder, "bench.db")))
            def body() -> Any:
                return Runner.run_streamed(Agent(name="Bench", model=Endless(MANY)), "go")

            run = body()
            assert (await run).kind == "succeeded", run.error
            assert len(run.view.text) == MANY * len(WORD)

    asyncio.run(drain() if kind == "bare" else own())
    status = Path("/proc/self/status").read_text()  # getrusage would count what the parent held before the exec
    print(int(re.search(r"VmHWM:\s+(\d+)", status)[1]) / 1024)  # type: ignore[index]


def row_bridge(name: str, bridge: Bridge) -> float:
    """What a bridge takes for one reader of a text: events of the other protocol, and their frames."""
    start = {"agent": "A", "task_id": "r", "parent": None, "resumed_from": None}
    log = [Envelope("r:1", "r", 1, "run.started", MOMENT, start)]
    for index in range(50_000):
        text = {
            "item_id": "m",
            "index": index,
            "text": "so many letters as are told together, at most: sixty-four of them",
        }
        log.append(Envelope(f"r:{index + 2}", "r", index + 2, "text.delta", MOMENT, text))

    def seconds() -> float:
        stream, frame = bridge.projection("c", ""), bridge.frame
        stream.join(RunView("r"))
        begun = time.process_time()
        for envelope in log:
            for event in stream.feed(envelope):
                frame(event)
        return time.process_time() - begun

    figure = statistics.median(at_pace(seconds) for _ in range(TIMES)) * 1e6 / len(log)
    return said(f"told through {name}", figure, 3.0, f"{figure:.2f} us/envelope (at most 3)")


@progress
def chatted(message: str) -> Any:
    return Runner.run_streamed(agent_of([]), message)


def row_import() -> float:
    code = "import time; t = time.perf_counter(); import agents_progress; print(time.perf_counter() - t)"
    loaded = "; import sys; assert 'agents' not in sys.modules"
    command = [sys.executable, "-c", code + loaded]
    took = [float(subprocess.run(command, check=True, capture_output=True, text=True).stdout) for _ in range(TIMES)]
    figure = statistics.median(took) * 1000
    return said("import agents_progress", figure, 150, f"{figure:.1f} ms (at most 150), SDK not loaded")


ROWS = {
    "text": row_text,
    "single": row_single,
    "mixed": row_mixed,
    "reduce": row_reduce,
    "append": row_append,
    "recorder": row_recorder,
    "snapshots": row_snapshots,
    "ag-ui": partial(row_bridge, "AG-UI", AgUI(chatted)),
    "vercel": partial(row_bridge, "the AI SDK", Vercel(chatted, major=7)),
    "memory": row_memory,
    "import": row_import,
}


AGAIN, PAUSE_S = 2, 20.0
"""How often a figure that is over its bar is measured again, and how long after."""


def measured(name: str, slack: float) -> float:
    """By how much a figure is over its bar. One that is over is measured again, some seconds later."""
    over = ROWS[name]()
    for _ in range(AGAIN):
        if over <= slack:
            break
        time.sleep(PAUSE_S)
        over = min(over, ROWS[name]())
    return over


def main(names: list[str]) -> int:
    set_tracing_disabled(True)
    if names and names[0].startswith("--memory-"):
        memory_of(names[0].removeprefix("--memory-"))
        return 0
    slack = float(names.pop(names.index("--slack") + 1)) if "--slack" in names else 0.0
    results = [measured(name, slack) for name in [name for name in names if name != "--slack"] or ROWS]
    if paces:
        print(f"the machine ran at {min(paces):.2f} to {max(paces):.2f} of the pace that the bars were set at")
    print(f"{sum(over <= 0 for over in results)} of {len(results)} figures within their bars")
    return 0 if all(over <= slack for over in results) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
