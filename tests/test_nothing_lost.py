"""What a run said before it failed or was stopped is recorded, though the SDK drops what its queue still holds."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from agents import Agent, RawResponsesStreamEvent, Runner
from staging import Prebuilt, log_of, response_created, scripted, started, stored, text_delta

from agents_progress import progress
from agents_progress.journal import MemoryJournal
from agents_progress.sdk.source import StreamedSource
from agents_progress.testing import Turn, cut, error, failed, incomplete, text, turn

DELTAS = [f"{number:03d} " for number in range(195)]


def bursts(then: Exception) -> Iterator[Any]:
    """Deltas of which twenty arrive at each read of the connection, and then its failure."""
    yield response_created()
    for number, delta in enumerate(DELTAS, start=1):
        yield text_delta(delta)
        if not number % 20:
            yield None
    raise then


async def read_slowly(result: Any) -> list[str]:
    """What a reader with 3 ms of work an event gets to see before the failure."""
    seen: list[str] = []
    with pytest.raises(ConnectionError):
        async for event in result.stream_events():
            await asyncio.sleep(0.003)
            if event.type == "raw_response_event" and event.data.type == "response.output_text.delta":
                seen.append(event.data.delta)
    return seen


def failing() -> Agent[Any]:
    return Agent(name="A", model=Prebuilt(bursts(ConnectionError("gone"))))


async def test_every_delta_is_recorded_when_a_run_fails_while_its_reader_lags(journal: MemoryJournal) -> None:
    @progress.inside(journal=journal, run_id="r", coalesce=None)
    async def body() -> list[str]:
        return await read_slowly(Runner.run_streamed(failing(), "hi"))

    bare = await read_slowly(Runner.run_streamed(failing(), "hi"))
    watched = await body()
    log = await stored(journal, "r")
    recorded = [payload["text"] for payload in log.of("text.delta")]
    print(
        f"deltas: {len(bare)} on the SDK alone, {len(watched)} in the loop, {len(recorded)} of {len(DELTAS)} recorded"
    )
    assert len(bare) < len(DELTAS), "the SDK alone loses some; else this test proves nothing"
    assert recorded == DELTAS
    assert (log.ending["outcome"], log.ending["error"]["code"]) == ("failed", "connection")
    assert log.view.status == "failed" and log.view.text == "".join(DELTAS)


async def test_text_that_a_cancel_throws_out_of_the_queue_is_recorded() -> None:
    def play() -> Iterator[Any]:
        yield response_created()
        yield from map(text_delta, DELTAS)
        run.cancel()  # nobody has read any of it yet
        yield None

    run = started(Agent(name="A", model=Prebuilt(play())), coalesce=None)
    log = await log_of(run)
    assert log.ending["outcome"] == "cancelled"
    assert [payload["text"] for payload in log.of("text.delta")] == DELTAS


async def test_what_the_sdk_says_while_its_run_settles_stands_before_the_ending(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settle = StreamedSource.settle

    async def settle_talking(source: StreamedSource, timeout: float) -> bool:
        settled = await settle(source, timeout)
        source.result._event_queue.put_nowait(RawResponsesStreamEvent(data=text_delta("late")))
        return settled

    monkeypatch.setattr(StreamedSource, "settle", settle_talking)
    log = await log_of(started(scripted(turn(text("hello"))), coalesce=None))
    assert log.of("text.delta")[-1]["text"] == "late" and log.types[-1] == "run.ended"


ENDS: dict[str, tuple[Callable[[], Turn], str]] = {
    "incomplete": (lambda: turn(text("half"), incomplete()), "reported"),
    "failed": (lambda: turn(text("half"), failed()), "reported"),
    "an error event": (lambda: turn(text("half"), error()), "unavailable"),
    "cut": (lambda: turn(text("half", cut())), "unavailable"),
}


@pytest.mark.parametrize("how", ENDS)
async def test_usage_is_counted_where_it_arrived_and_unknown_where_it_did_not(how: str) -> None:
    make, status = ENDS[how]
    log = await log_of(started(scripted(make())))
    usage = log.of("usage.updated")[-1]
    assert usage["status"] == status and usage["requests"] == 1
    assert usage["input_tokens"] == (10 if status == "reported" else None)
    assert log.view.text == "half" and log.ending["outcome"] in ("failed", "incomplete")
