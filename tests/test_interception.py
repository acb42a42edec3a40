"""Interception: only calls inside a scope are seen, everybody else's runner stays, and the user's hooks keep their
place.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from agents import Agent, RunHooks, Runner, RunResultStreaming, UserError, function_tool
from agents.run import AgentRunner, get_default_agent_runner, set_default_agent_runner
from staging import log_of, scripted, started, stored

from agents_progress import follow, progress
from agents_progress.journal import MemoryJournal
from agents_progress.sdk.intercept import InterceptingRunner
from agents_progress.testing import call, text, turn


@function_tool
async def look() -> str:
    return "ok"


def tool_agent() -> Agent[Any]:
    return scripted(turn(call("look", call_id="c1")), turn(text("done")), tools=[look])


@pytest.fixture(autouse=True)
def the_sdks_own_runner() -> Iterator[AgentRunner]:
    """Each test begins with the runner of a fresh process."""
    before, fresh = get_default_agent_runner(), AgentRunner()
    set_default_agent_runner(fresh)
    yield fresh
    set_default_agent_runner(before)


class Theirs(AgentRunner):
    """Another library's runner: it notes what went through it and passes it on to the runner it found."""

    def __init__(self, name: str, inner: Any, calls: list[str]) -> None:
        self.name, self.inner, self.calls = name, inner, calls

    async def run(self, *args: Any, **kwargs: Any) -> Any:
        self.calls.append(f"{self.name} run")
        return await self.inner.run(*args, **kwargs)

    def run_sync(self, *args: Any, **kwargs: Any) -> Any:
        self.calls.append(f"{self.name} run_sync")
        return self.inner.run_sync(*args, **kwargs)

    def run_streamed(self, *args: Any, **kwargs: Any) -> Any:
        self.calls.append(f"{self.name} run_streamed")
        return self.inner.run_streamed(*args, **kwargs)


async def watched(agent: Agent[Any] | None = None) -> bool:
    """Whether a decorated run is seen with its tool start, and ends."""
    log = await log_of(started(agent or tool_agent()))
    assert log.ending["outcome"] == "succeeded" and log.view.issues == []
    return "tool.started" in log.types


# Inert outside.


async def test_outside_a_scope_a_run_is_the_sdks_own_in_every_attribute(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []
    original = AgentRunner.run_streamed

    def spy(self: Any, starting_agent: Any, input: Any, **kwargs: Any) -> Any:
        seen.append({"agent": starting_agent, "input": input, **kwargs})
        return original(self, starting_agent, input, **kwargs)

    monkeypatch.setattr(AgentRunner, "run_streamed", spy)
    before = Runner.run_streamed(tool_agent(), "hi")
    attributes = list(vars(before))
    assert [event async for event in before.stream_events()]
    await watched()
    assert isinstance(get_default_agent_runner(), InterceptingRunner)
    agent = tool_agent()
    after = Runner.run_streamed(agent, "hi")
    assert list(vars(after)) == attributes
    assert not {"stream_events", "cancel"} & vars(after).keys()
    assert inspect.ismethod(after.stream_events) and inspect.ismethod(after.cancel)
    first, _, last = seen
    assert last == {**first, "agent": agent} and last["hooks"] is None, "no argument was added or changed"
    assert [event async for event in after.stream_events()] and after.final_output == "done"


def test_importing_and_decorating_install_nothing(the_sdks_own_runner: AgentRunner) -> None:
    @progress
    def work() -> Any: ...

    @progress.inside
    async def body() -> None: ...

    assert get_default_agent_runner() is the_sdks_own_runner


async def test_runner_run_and_run_sync_go_through_unchanged() -> None:
    await watched()
    result = await Runner.run(scripted(turn(text("plain"))), "hi")
    assert result.final_output == "plain"

    def script() -> str:
        loop = asyncio.new_event_loop()  # the SDK makes one itself, but leaves it open
        asyncio.set_event_loop(loop)
        try:
            return str(Runner.run_sync(scripted(turn(text("sync"))), "hi").final_output)
        finally:
            loop.close()

    assert await asyncio.to_thread(script) == "sync"


async def test_what_a_tool_starts_is_its_own_and_not_the_bodys(journal: MemoryJournal) -> None:
    @function_tool
    async def delegate() -> str:
        result = Runner.run_streamed(scripted(turn(text("inner"))), "hi")
        assert "stream_events" not in vars(result)
        return str([event async for event in result.stream_events()][-1].type)

    @progress.inside(journal=journal)
    async def body() -> None:
        result = Runner.run_streamed(scripted(turn(call("delegate")), turn(text("ok")), tools=[delegate]), "hi")
        async for _ in result.stream_events():
            pass

    await body()
    assert len(await journal.runs()) == 1


async def test_only_the_returned_result_becomes_the_run(journal: MemoryJournal) -> None:
    others: list[RunResultStreaming] = []

    @progress(journal=journal)
    def work() -> RunResultStreaming:
        others.append(Runner.run_streamed(scripted(turn(text("draft"))), "hi"))
        return Runner.run_streamed(scripted(turn(text("final"))), "hi")

    assert (await work()).output == "final"
    (row,) = await journal.runs()
    assert (await stored(journal, row.run_id)).view.text == "final"
    assert "stream_events" not in vars(others[0])
    async with asyncio.timeout(5):
        assert [event async for event in others[0].stream_events()]
    assert others[0].final_output == "draft"


async def test_a_run_that_the_body_reads_itself_is_the_sdks_own(journal: MemoryJournal) -> None:
    @progress(journal=journal)
    async def work() -> RunResultStreaming:
        draft = Runner.run_streamed(scripted(turn(text("draft"))), "hi")
        async with asyncio.timeout(5):
            async for _ in draft.stream_events():
                pass
        return Runner.run_streamed(scripted(turn(text(f"after {draft.final_output}"))), "hi")

    assert (await work()).output == "after draft"
    assert len(await journal.runs()) == 1


async def test_a_result_that_was_started_elsewhere_is_followed_without_hooks() -> None:
    elsewhere = Runner.run_streamed(tool_agent(), "hi")

    @progress
    def work() -> RunResultStreaming:
        return elsewhere

    log = await log_of(work())
    assert log.types.count("note.unhooked") == 1 and "tool.started" not in log.types
    assert log.ending["outcome"] == "succeeded" and log.view.tools == {"c1": "returned"}


async def test_follow_sees_no_tool_start_and_says_so_once() -> None:
    log = await log_of(follow(Runner.run_streamed(tool_agent(), "hi")))
    assert log.types.count("note.unhooked") == 1 and log.types[1] == "note.unhooked"
    assert "tool.started" not in log.types
    assert log.view.tools == {"c1": "returned"} and "duration_ms" not in log.of("tool.finished")[0]
    assert log.ending["outcome"] == "succeeded" and log.view.issues == []


async def test_what_was_replaced_on_the_result_is_put_back_at_the_end() -> None:
    run = started(tool_agent())
    assert {"stream_events", "cancel"} <= vars(run.result).keys() if run.result else True
    await run
    assert not {"stream_events", "cancel"} & vars(run.result).keys()
    assert [event async for event in run.result.stream_events()] == [], "as the SDK's own ended stream"


# Other libraries.


async def test_a_runner_that_was_there_before_ours_is_called_and_stays() -> None:
    calls: list[str] = []
    theirs = Theirs("t", get_default_agent_runner(), calls)
    set_default_agent_runner(theirs)
    assert await watched() and calls == ["t run_streamed"]
    await Runner.run(scripted(turn(text("x"))), "hi")
    assert calls == ["t run_streamed", "t run"]


async def test_a_runner_that_wraps_ours_later_is_kept_and_ours_still_sees() -> None:
    calls: list[str] = []
    await watched()
    theirs = Theirs("t", get_default_agent_runner(), calls)
    set_default_agent_runner(theirs)
    assert await watched() and "t run_streamed" in calls
    runner: Any = get_default_agent_runner()
    assert runner is theirs or runner._inner is theirs, "theirs was neither removed nor replaced"


async def test_a_runner_that_wraps_ours_does_not_make_us_record_twice(journal: MemoryJournal) -> None:
    await watched()
    set_default_agent_runner(Theirs("t", get_default_agent_runner(), []))

    @progress.inside(journal=journal)
    async def body() -> None:
        result = Runner.run_streamed(tool_agent(), "hi")
        async for _ in result.stream_events():
            pass

    await body()
    (row,) = await journal.runs()
    log = await stored(journal, row.run_id)
    assert log.types.count("tool.started") == 1 and log.types.count("run.ended") == 1 and log.view.issues == []


async def test_a_runner_that_replaces_ours_is_wrapped_at_the_next_scope_and_never_removed() -> None:
    calls: list[str] = []
    await watched()
    theirs = Theirs("t", AgentRunner(), calls)
    set_default_agent_runner(theirs)  # ours is gone
    assert await watched() and calls == ["t run_streamed"]
    assert get_default_agent_runner()._inner is theirs  # type: ignore[attr-defined]


async def test_a_runner_that_is_swapped_inside_a_body_is_obeyed(journal: MemoryJournal) -> None:
    calls: list[str] = []

    @progress.inside(journal=journal)
    async def body(wrap: bool) -> str:
        inner = get_default_agent_runner() if wrap else AgentRunner()
        set_default_agent_runner(Theirs("wraps" if wrap else "replaces", inner, calls))
        result = Runner.run_streamed(tool_agent(), "hi")
        async for _ in result.stream_events():
            pass
        return str(result.final_output)

    assert await body(True) == "done" and len(await journal.runs()) == 1
    assert await body(False) == "done"
    assert calls == ["wraps run_streamed", "replaces run_streamed"]
    assert isinstance(get_default_agent_runner(), Theirs), "nobody's runner is put back over theirs"


async def test_a_library_that_puts_its_predecessor_back_leaves_us_working() -> None:
    before = get_default_agent_runner()
    set_default_agent_runner(Theirs("t", before, []))
    await watched()
    set_default_agent_runner(before)
    assert await watched()


async def test_many_scopes_put_one_layer_around_a_runner() -> None:
    for _ in range(3):
        await watched()
    await asyncio.gather(*(watched() for _ in range(5)))
    runner = get_default_agent_runner()
    assert isinstance(runner, InterceptingRunner) and not isinstance(runner._inner, InterceptingRunner)


# Hooks.


class Noting(RunHooks[Any]):
    """Notes every hook with its arguments, and can be told to raise at one of them."""

    def __init__(self, raises: str = "") -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.raises = raises

    @property
    def names(self) -> list[str]:
        return [name for name, _, _ in self.calls]


def noting(name: str) -> Callable[..., Any]:
    async def hook(self: Noting, *args: Any, **kwargs: Any) -> None:
        self.calls.append((name, args, kwargs))
        if name == self.raises:
            raise KeyError(f"{name} is mine")

    return hook


HOOKS = [name for name in dir(RunHooks) if name.startswith("on_")]
for each in HOOKS:
    setattr(Noting, each, noting(each))


def everything() -> Agent[Any]:
    b = scripted(turn(text("from B")), name="B")
    return scripted(turn(call("look")), turn(call("transfer_to_b")), tools=[look], handoffs=[b])


async def test_the_users_hooks_get_what_they_get_from_the_bare_sdk() -> None:
    bare, ours = Noting(), Noting()
    result = Runner.run_streamed(everything(), "hi", hooks=bare)
    assert [event async for event in result.stream_events()]
    await started(everything(), hooks=ours)
    assert ours.names == bare.names and set(ours.names) == set(HOOKS)
    assert [len(args) for _, args, _ in ours.calls] == [len(args) for _, args, _ in bare.calls]
    ((_, args, keywords),) = (one for one in ours.calls if one[0] == "on_handoff")
    assert (args, list(keywords)) == ((), ["context", "from_agent", "to_agent"])
    assert (keywords["from_agent"].name, keywords["to_agent"].name) == ("A", "B")


async def test_a_hook_with_the_sdks_own_signature_works() -> None:
    handed: list[str] = []

    class Mine(RunHooks[Any]):
        async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
            handed.append(f"{from_agent.name} to {to_agent.name}")

        async def on_an_event_of_mine(self) -> None:
            raise AssertionError("nobody calls this")

        def helper(self) -> None:
            raise AssertionError("nobody calls this")

    assert (await started(everything(), hooks=Mine())).kind == "succeeded"
    assert handed == ["A to B"]


async def test_the_users_hook_runs_before_our_report_of_it() -> None:
    order: list[str] = []

    class Mine(RunHooks[Any]):
        async def on_tool_start(self, *_: Any) -> None:
            order.append("mine")
            await asyncio.sleep(0.005)  # longer than a report needs to be delivered
            order.append("mine ends")

    def sink(envelope: Any) -> None:
        if envelope.type == "tool.started":
            order.append("reported")

    await started(tool_agent(), hooks=Mine(), sinks=[sink])
    assert order == ["mine", "mine ends", "reported"]


@pytest.mark.parametrize("name", [name for name in HOOKS if name != "on_handoff"])
async def test_an_exception_of_the_users_hook_fails_the_run_as_on_the_bare_sdk(name: str) -> None:
    result = Runner.run_streamed(everything(), "hi", hooks=Noting(name))
    with pytest.raises((KeyError, UserError)) as bare:
        assert [event async for event in result.stream_events()]
    run = started(everything(), hooks=Noting(name))
    outcome = await run
    assert outcome.kind == "failed" and outcome.error is not None and outcome.error["code"] == "hook_error"
    assert (type(run.error), str(run.error)) == (type(bare.value), str(bare.value))
    log = await log_of(run)
    assert b"is mine" not in b"".join(envelope.to_json() for envelope in log.envelopes)
    if name == "on_tool_start":
        assert "tool.started" not in log.types, "the tool was not entered"


@pytest.mark.parametrize("hooks", [object(), "hooks", RunHooks])
async def test_hooks_of_a_wrong_kind_are_refused_in_the_sdks_own_words(hooks: Any) -> None:
    with pytest.raises(TypeError) as bare:
        Runner.run_streamed(tool_agent(), "hi", hooks=hooks)
    with pytest.raises(TypeError) as ours:
        started(tool_agent(), hooks=hooks)
    assert str(ours.value) == str(bare.value)


async def test_a_bad_argument_is_refused_in_the_sdks_own_words() -> None:
    @progress
    def work() -> RunResultStreaming:
        return Runner.run_streamed(tool_agent(), "hi", no_such_option=1)  # type: ignore[call-arg]

    with pytest.raises(TypeError) as bare:
        Runner.run_streamed(tool_agent(), "hi", no_such_option=1)  # type: ignore[call-arg]
    with pytest.raises(TypeError) as ours:
        work()
    assert str(ours.value) == str(bare.value)
