"""`@progress.inside`: functions that consume streams themselves keep their signature, events, order and exceptions."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from agents import Agent, GuardrailFunctionOutput, InputGuardrail, Runner, RunResultStreaming, function_tool
from staging import Log, Prebuilt, scripted, stored

from agents_progress import current_run, progress
from agents_progress.errors import NotDecoratable
from agents_progress.journal import MemoryJournal
from agents_progress.testing import Turn, call, cut, http_error, incomplete, refusal, text, turn, wait


@function_tool
async def look() -> str:
    return "ok"


def never() -> Any:
    return wait(asyncio.Event())


async def ended(journal: MemoryJournal, count: int = 1) -> list[Log]:
    """The logs of this many runs, oldest first, once each of them has its ending."""
    async with asyncio.timeout(5):
        while True:
            rows = await journal.runs()
            if len(rows) == count and all(row.standing.ended for row in rows):
                return [await stored(journal, row.run_id) for row in reversed(rows)]
            await asyncio.sleep(0)


def word(event: Any) -> str:
    """An SDK event in a form that two runs of one script have in common."""
    if event.type == "raw_response_event":
        return f"{event.data.type} {getattr(event.data, 'delta', '')!r}"
    if event.type == "run_item_stream_event":
        return f"{event.name} {type(event.item).__name__}"
    return f"{event.type} {event.new_agent.name}"


# What the function is.


async def test_the_function_keeps_its_name_docstring_and_signature() -> None:
    async def ask(question: str, *, patience: float = 1.0) -> str:
        """Ask it."""
        return question

    async def steps(question: str) -> AsyncIterator[str]:
        yield question

    def plain(question: str) -> str:
        return question

    for function in (ask, steps, plain):
        wrapped = progress.inside(function)
        assert (wrapped.__name__, wrapped.__doc__) == (function.__name__, function.__doc__)
        assert inspect.signature(wrapped) == inspect.signature(function)
    assert inspect.iscoroutinefunction(progress.inside(ask))


def drains(result: RunResultStreaming) -> Awaitable[str]:
    async def drain() -> str:
        async for _ in result.stream_events():
            pass
        return str(result.final_output)

    return drain()


async def as_coroutine(agent: Agent[Any]) -> str:
    return await drains(Runner.run_streamed(agent, "hi"))


def as_function_that_returns_a_coroutine(agent: Agent[Any]) -> Any:
    return as_coroutine(agent)


async def as_generator(agent: Agent[Any]) -> AsyncIterator[str]:
    result = Runner.run_streamed(agent, "hi")
    async for event in result.stream_events():
        yield word(event)
    yield str(result.final_output)


def as_function_that_returns_a_generator(agent: Agent[Any]) -> Any:
    return as_generator(agent)


def as_function_that_returns_the_result(agent: Agent[Any]) -> Any:
    return Runner.run_streamed(agent, "hi")


@pytest.mark.parametrize(
    "function",
    [
        as_coroutine,
        as_function_that_returns_a_coroutine,
        as_generator,
        as_function_that_returns_a_generator,
        as_function_that_returns_the_result,
    ],
)
async def test_every_form_of_function_is_watched(function: Callable[..., Any], journal: MemoryJournal) -> None:
    agent = scripted(turn(call("look")), turn(text("hello")), tools=[look])
    returned = progress.inside(journal=journal)(function)(agent)
    if inspect.isasyncgen(returned):
        answer = [step async for step in returned][-1]
    elif inspect.isawaitable(returned):
        answer = await returned
    else:
        answer = await drains(returned)
    assert answer == "hello"
    (log,) = await ended(journal)
    assert log.ending["final_output"] == "hello" and log.types.count("tool.started") == 1
    (row,) = await journal.runs()
    assert row.title == "As " + function.__name__[3:].replace("_", " ")


def test_a_synchronous_generator_is_refused_where_it_is_decorated() -> None:
    def steps() -> Any:
        yield 1

    with pytest.raises(NotDecoratable, match=r"steps is a synchronous generator.*async generator"):
        progress.inside(steps)
    with pytest.raises(NotDecoratable, match="not dict"):
        progress.inside({})  # type: ignore[type-var]


# The same events, the same exceptions.


def blocked() -> InputGuardrail[Any]:
    async def trip(*_: Any) -> GuardrailFunctionOutput:
        return GuardrailFunctionOutput(None, tripwire_triggered=True)

    return InputGuardrail(trip, run_in_parallel=False)


def script_b() -> Agent[Any]:
    return scripted(turn(text("from B")), name="B")


SCRIPTS: dict[str, Callable[[], Agent[Any]]] = {
    "text": lambda: scripted(turn(text("hello world", chunk=1))),
    "tools": lambda: scripted(turn(text("so"), call("look"), call("look")), turn(text("ok")), tools=[look]),
    "handoff": lambda: scripted(turn(call("transfer_to_b")), handoffs=[script_b()]),
    "chat": lambda: Agent(name="A", model=chat(turn(text("pre"), call("look")), turn(text("post"))), tools=[look]),
    "cut": lambda: scripted(turn(text("hel", cut()))),
    "refused": lambda: scripted(turn(refusal("no"))),
    "incomplete": lambda: scripted(turn(text("par"), incomplete())),
    "http": lambda: scripted(http_error(400)),
    "max_turns": lambda: scripted(*[turn(call("look")) for _ in range(12)], tools=[look]),
    "guardrail": lambda: scripted(turn(text("hello")), input_guardrails=[blocked()]),
}


def chat(*turns: Turn) -> Any:
    from agents_progress.testing import ScriptedAPI

    return ScriptedAPI(turns).chat_model()


async def lived(agent: Agent[Any]) -> tuple[list[str], str, str]:
    """What a consumer lives to see: every event, how it ended, and the output."""
    events: list[str] = []
    result = Runner.run_streamed(agent, "hi")
    how = "ended"
    try:
        async for event in result.stream_events():
            events.append(word(event))
    except Exception as error:
        how = f"{type(error).__name__}: {error}"
    return events, how, repr(result.final_output)


@pytest.mark.parametrize("name", SCRIPTS)
async def test_events_order_and_exceptions_are_those_of_the_bare_sdk(name: str, journal: MemoryJournal) -> None:
    bare_events, *bare = await lived(SCRIPTS[name]())
    events, *inside = await progress.inside(journal=journal)(lived)(SCRIPTS[name]())
    assert inside == bare
    if bare[0] == "ended":
        assert events == bare_events
    else:  # it may see more before a failure, since the owner is never slower than the application
        assert events[: len(bare_events)] == bare_events
    assert len((await ended(journal))[0].endings) == 1


async def test_an_exception_of_the_body_comes_out_as_it_is(journal: MemoryJournal) -> None:
    error = KeyError("mine")

    @progress.inside(journal=journal)
    async def body() -> None:
        result = Runner.run_streamed(scripted(turn(text("hello"))), "hi")
        async for _ in result.stream_events():
            raise error

    with pytest.raises(KeyError) as caught:
        await body()
    assert caught.value is error and error.__cause__ is None
    assert (await ended(journal))[0].ending["outcome"] == "succeeded", "a body that fails does not end the run"


async def test_the_loop_ends_after_the_ending_is_in_the_journal(journal: MemoryJournal) -> None:
    class Slow(MemoryJournal):
        async def append(self, envelopes: Any, **more: Any) -> None:
            for _ in range(20):
                await asyncio.sleep(0)
            await super().append(envelopes, **more)

    slow = Slow()

    @progress.inside(journal=slow)
    async def body(agent: Agent[Any]) -> Log:
        result = Runner.run_streamed(agent, "hi")
        with suppress(Exception):
            async for _ in result.stream_events():
                pass
        assert current_run().id is not None
        return await stored(slow, str(current_run().id))

    assert (await body(scripted(turn(text("hello"))))).ending["outcome"] == "succeeded"
    assert (await body(scripted(http_error(400)))).ending["outcome"] == "failed"


async def test_a_slow_body_does_not_slow_the_model(journal: MemoryJournal) -> None:
    agent = scripted(turn(call("look")), turn(call("look")), turn(text("done")), tools=[look])

    @progress.inside(journal=journal)
    async def body() -> int:
        result, seen = Runner.run_streamed(agent, "hi"), 0
        async for _ in result.stream_events():
            seen += 1
            if seen == 1:
                await ended(journal)  # on the bare SDK the second model call would wait for us
        return seen

    bare = [
        event
        async for event in Runner.run_streamed(
            scripted(turn(call("look")), turn(call("look")), turn(text("done")), tools=[look]), "hi"
        ).stream_events()
    ]
    assert await body() == len(bare)


# Nothing to see, or several runs.


async def test_a_body_that_starts_no_run_warns_once_and_names_the_function(caplog: pytest.LogCaptureFixture) -> None:
    @progress.inside
    async def forgets() -> str:
        return "nothing"

    @progress.inside
    async def forgets_in_steps() -> AsyncIterator[int]:
        yield 1
        yield 2

    @progress.inside
    def forgets_at_once() -> None: ...

    assert await forgets() == "nothing"
    assert [step async for step in forgets_in_steps()] == [1, 2]
    forgets_at_once()
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert [
        name
        for name in ("forgets started", "forgets_in_steps started", "forgets_at_once started")
        if sum(name in warning for warning in warnings) == 1
    ] == ["forgets started", "forgets_in_steps started", "forgets_at_once started"]
    assert len(warnings) == 3


async def test_each_run_of_a_body_is_an_attempt_at_one_task(journal: MemoryJournal) -> None:
    ids: list[str | None] = []

    @progress.inside(journal=journal)
    async def body() -> None:
        for answer in ("one", "two", "three"):
            result = Runner.run_streamed(scripted(turn(text(answer))), "hi")
            ids.append(current_run().id)
            await drains(result)

    await body()
    logs = await ended(journal, 3)
    begun = [log.of("run.started")[0] for log in logs]
    assert [start["attempt"] for start in begun] == [1, 2, 3]
    assert {start["task_id"] for start in begun} == {ids[0]}
    assert [log.envelopes[0].run_id for log in logs] == ids and len(set(ids)) == 3
    assert [log.ending["final_output"] for log in logs] == ["one", "two", "three"]
    assert all(start["resumed_from"] is None for start in begun)


async def test_runs_in_nested_tasks_belong_to_the_body(journal: MemoryJournal) -> None:
    async def one(answer: str) -> str:
        return await drains(Runner.run_streamed(scripted(turn(text(answer))), "hi"))

    @progress.inside(journal=journal)
    async def body() -> list[str]:
        task = asyncio.create_task(one("task"))
        gathered = await asyncio.gather(one("left"), one("right"))
        async with asyncio.TaskGroup() as group:
            grouped = group.create_task(one("group"))
        return [await task, *gathered, grouped.result()]

    assert await body() == ["task", "left", "right", "group"]
    logs = await ended(journal, 4)
    assert {log.ending["final_output"] for log in logs} == {"task", "left", "right", "group"}
    assert sorted(log.of("run.started")[0]["attempt"] for log in logs) == [1, 2, 3, 4]
    assert len({log.of("run.started")[0]["task_id"] for log in logs}) == 1


async def test_two_bodies_at_once_do_not_mix() -> None:
    journals = {name: MemoryJournal() for name in ("a", "b")}
    turns_taken = asyncio.Barrier(2)

    async def body(name: str) -> str:
        result = Runner.run_streamed(scripted(turn(call("mine")), turn(text(name)), tools=[tool(name)]), "hi")
        await turns_taken.wait()
        return await drains(result)

    def tool(name: str) -> Any:
        @function_tool(name_override="mine")
        async def mine() -> str:
            await turns_taken.wait()
            current_run().report(name)
            return name

        return mine

    wrapped = {name: progress.inside(journal=journal)(body) for name, journal in journals.items()}
    assert await asyncio.gather(*(wrapped[name](name) for name in wrapped)) == ["a", "b"]
    for name, journal in journals.items():
        (log,) = await ended(journal)
        assert log.ending["final_output"] == name
        assert [payload["message"] for payload in log.of("tool.progress")] == [name]


async def test_a_run_that_the_model_cannot_start_is_still_an_attempt(journal: MemoryJournal) -> None:
    @progress.inside(journal=journal)
    async def body() -> str:
        with suppress(RuntimeError):
            await drains(Runner.run_streamed(Agent(name="A", model=Prebuilt(RuntimeError("down"))), "hi"))
        return await drains(Runner.run_streamed(scripted(turn(text("second"))), "hi"))

    assert await body() == "second"
    first, second = await ended(journal, 2)
    assert (first.ending["outcome"], second.ending["outcome"]) == ("failed", "succeeded")
