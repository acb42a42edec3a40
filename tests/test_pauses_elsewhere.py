"""A run that paused in one process goes on in another one, from what its journal keeps of it: once, and as asked."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import sqlite3
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from agents import Agent, RunContextWrapper, Runner, RunResultStreaming, function_tool
from staging import log_of, stored

from agents_progress import Disclosure, pausing, progress
from agents_progress.decorate import Decorated
from agents_progress.errors import (
    AlreadyResumed,
    AnswerNotUsed,
    NotPaused,
    NotResumableHere,
    RunErased,
    RunNotFound,
    UnknownInteraction,
    UsageError,
)
from agents_progress.journal import Journal, Pause, open_journal
from agents_progress.journal.pauses import pause_text
from agents_progress.testing import ScriptedAPI, call, http_error, text, turn
from agents_progress.verify import digest


@dataclass
class Session:
    """The context of an application's tools."""

    token: str


class World:
    """What one deployment of the application has: an agent with tools, and what they did."""

    def __init__(self, url: str, did: list[str]) -> None:
        self.journal: Journal = open_journal(url)
        self.did = did
        self.tool_name = "pay"
        self.api = ScriptedAPI([])

    def function(self, *turns: Any, **options: Any) -> Decorated[...]:
        """The decorated function, as this deployment has it; the model says ``turns`` next."""
        did = self.did
        self.api = ScriptedAPI(turns)

        @function_tool(name_override=self.tool_name, needs_approval=True)
        def pay(to: str) -> str:
            did.append(to)
            return f"paid {to}"

        @function_tool(name_override="look")
        def look() -> str:
            did.append("looked")
            return "seen"

        options = {"keep_pauses": True, "disclosure": Disclosure(approval_details=["pay"]), **options}

        @progress(journal=self.journal, **options)
        def payments(who: str, *, note: str = "") -> RunResultStreaming:
            agent = Agent(name="Clerk", model=self.api.model(), tools=[pay, look])
            return Runner.run_streamed(agent, f"pay {who} {note}", context={"who": who}, max_turns=7)

        return payments


@pytest.fixture
async def worlds(tmp_path: Path) -> AsyncIterator[Callable[[], World]]:
    made: list[World] = []
    did: list[str] = []

    def make() -> World:
        made.append(World(f"sqlite:///{tmp_path}/runs.db", did))
        return made[-1]

    yield make
    for world in made:
        await world.journal.close()


def asks(*who: str) -> Any:
    return turn(*(call("pay", {"to": each}, call_id=f"c{number}") for number, each in enumerate(who, 1)))


async def paused(world: World, *turns: Any, **options: Any) -> str:
    """A run that paused, in a process that is gone: nothing holds it any more."""
    run = world.function(*turns, **options)("Ada", note="now")
    outcome = await run
    assert outcome.kind == "paused"
    await run.closed()
    run_id = run.id
    del run
    gc.collect()
    return run_id


async def test_another_process_goes_on_with_a_paused_run(worlds: Callable[[], World]) -> None:
    first, second = worlds(), worlds()
    run_id = await paused(first, asks("Ada"))
    assert await second.journal.pauses() == [run_id]
    payments = second.function(turn(text("done")))
    run = await payments.resume(run_id, approve="all", actor="mei")
    assert (await run).kind == "succeeded"
    assert (run.id, run.task_id, second.did) == (f"{run_id}.2", run_id, ["Ada"])
    log = await stored(first.journal, run.id)
    assert log.types[:4] == ["run.started", "tool.requested", "approval.wait", "approval.resolved"]
    assert log.of("run.started")[0]["resumed_from"] == run_id
    assert log.of("approval.resolved") == [{"interaction_id": "ask-1", "decision": "approved", "actor": "mei"}]
    assert log.view.tools == {"c1": "returned"} and log.view.issues == []
    await run.closed()
    assert await first.journal.pauses() == [], "what was used is erased"
    sent = second.api.requests[0]["input"]
    assert "pay Ada now" in json.dumps(sent) and "paid Ada" in json.dumps(sent), "the conversation goes on"


async def test_the_log_of_the_run_that_goes_on_is_the_same_in_either_process(worlds: Callable[[], World]) -> None:
    world = worlds()
    run = world.function(asks("Ada", "Bo"), turn(text("done")))("Ada", note="now")
    await run
    here = run.resume(approve="ask-1", reject="ask-2", actor="mei")
    await here
    run_id = await paused(world, asks("Ada", "Bo"))
    there = await world.function(turn(text("done"))).resume(run_id, approve="ask-1", reject="ask-2", actor="mei")
    await there
    logs = [await log_of(each) for each in (here, there)]
    drafts = [
        [
            (
                each.type,
                {**each.payload, "task_id": 0, "resumed_from": 0, "duration_ms": 0, "item_id": 0, "response_id": 0},
            )
            for each in log.envelopes
        ]
        for log in logs
    ]
    assert drafts[0] == drafts[1]


async def test_what_is_kept_is_in_no_event_log_record_or_repr(
    worlds: Callable[[], World], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    world = worlds()
    run_id = await paused(world, turn(text("SECRET-TEXT"), call("pay", {"to": "x"}, call_id="c1")))
    pause = await world.journal.pause(run_id)
    assert pause is not None and "SECRET-TEXT" in pause.body and '"pay Ada now"' in pause.body
    assert "SECRET-TEXT" not in repr(pause) + str(pause)
    for envelope in await world.journal.read(run_id):
        assert b"original_input" not in envelope.to_json() and b"pay Ada now" not in envelope.to_json()
    assert "pay Ada now" not in caplog.text and "original_input" not in caplog.text


async def test_the_context_of_the_tools_is_not_stored_and_made_anew(worlds: Callable[[], World]) -> None:
    world, seen = worlds(), list[Any]()

    @function_tool(needs_approval=True)
    def danger(context: RunContextWrapper[Session]) -> str:
        seen.append(context.context.token)
        return "ok"

    def make(*turns: Any) -> Decorated[...]:
        api = ScriptedAPI(turns)

        @progress(journal=world.journal, keep_pauses=True)
        async def work() -> RunResultStreaming:
            agent = Agent[Session](name="A", model=api.model(), tools=[danger])
            return Runner.run_streamed(agent, "hi", context=Session("TOKEN"))

        return work

    run = make(turn(call("danger", {})))()
    await run
    pause = await world.journal.pause(run.id)
    assert pause is not None and "TOKEN" not in pause.body
    assert (await (await make(turn(text("done"))).resume(run.id, approve="all"))).kind == "succeeded"
    assert seen == ["TOKEN"]


async def test_two_approvals_of_which_one_is_answered_pause_again_for_the_other(worlds: Callable[[], World]) -> None:
    first, second, third = worlds(), worlds(), worlds()
    run_id = await paused(first, asks("Ada", "Bo"))
    run = await second.function().resume(run_id, approve="ask-1")
    assert (await run).kind == "paused" and second.did == ["Ada"]
    await run.closed()
    log = await stored(first.journal, f"{run_id}.2")
    assert [wait["interaction_id"] for wait in log.of("approval.wait")] == ["ask-1", "ask-2"]
    assert await first.journal.pauses() == [f"{run_id}.2"]
    last = await third.function(turn(text("done"))).resume(f"{run_id}.2", reject="ask-2")
    assert (last.id, (await last).kind, third.did) == (f"{run_id}.3", "succeeded", ["Ada"])
    assert (await log_of(last)).view.tools == {"c2": "rejected"}


async def test_an_approval_inside_a_nested_agent_is_answered_in_another_process(worlds: Callable[[], World]) -> None:
    world, did = worlds(), list[str]()

    @function_tool(needs_approval=True)
    def danger(what: str) -> str:
        did.append(what)
        return "ok"

    def make(outer: list[Any], inner: list[Any]) -> Decorated[...]:
        inner_api, outer_api = ScriptedAPI(inner), ScriptedAPI(outer)

        @progress(journal=world.journal, keep_pauses=True)
        def work() -> RunResultStreaming:
            expert = Agent(name="Expert", model=inner_api.model(), tools=[danger])
            boss = Agent(name="Boss", model=outer_api.model(), tools=[expert.as_tool("ask_expert", "Ask the expert.")])
            return Runner.run_streamed(boss, "hi")

        return work

    run = make([turn(call("ask_expert", {"input": "?"}, call_id="o1"))], [turn(call("danger", {"what": "deep"}))])()
    assert (await run).kind == "paused"
    await run.closed()
    assert [wait["tool"] for wait in (await log_of(run)).of("approval.wait")] == ["danger"]
    later = await make([turn(text("all done"))], [turn(text("inner done"))]).resume(run.id, approve="all", actor="mei")
    assert (await later).kind == "succeeded" and did == ["deep"]
    view = (await log_of(later)).view
    assert view.issues == [] and set(view.tools.values()) == {"returned"}


# The context of tools.


@dataclass
class Basket:
    """A context that the body cannot make anew: tools have changed it."""

    items: list[str]
    token: str


def basket_json(basket: Basket) -> dict[str, Any]:
    return {"items": basket.items}


def basket_from(kept: Any) -> Basket:
    return Basket(list(kept["items"]), token="fresh")


KEPT = basket_json, basket_from


def shopping(world: World, outer: list[Any], inner: list[Any], **options: Any) -> Decorated[...]:
    """A function whose tools, one of them a nested agent's, change their context."""

    @function_tool
    def put(context: RunContextWrapper[Basket], item: str) -> str:
        context.context.items.append(item)
        return "ok"

    @function_tool(needs_approval=True)
    def pay(context: RunContextWrapper[Basket]) -> str:
        world.did.append(f"{context.context.token} pays {', '.join(context.context.items)}")
        return "paid"

    inner_api, outer_api = ScriptedAPI(inner), ScriptedAPI(outer)

    @progress(journal=world.journal, keep_pauses=True, **{"keep_context": KEPT, **options})
    def shop() -> RunResultStreaming:
        cashier = Agent(name="Cashier", model=inner_api.model(), tools=[put, pay])
        till = cashier.as_tool("till", "Pays.")
        agent = Agent(name="Shop", model=outer_api.model(), tools=[put, pay, till])
        return Runner.run_streamed(agent, "hi", context=Basket(["bread"], token="first"))

    return shop


ASKS = [turn(call("put", {"item": "tea"}, call_id="p1")), turn(call("pay", {}, call_id="p2"))]


@pytest.mark.parametrize("nested", [False, True])
async def test_a_context_is_kept_as_the_application_says_and_made_again_elsewhere(
    worlds: Callable[[], World], nested: bool
) -> None:
    first, second = worlds(), worlds()
    outer, inner = ([turn(call("till", {"input": "?"}, call_id="o1"))], ASKS) if nested else (ASKS, [])
    run = shopping(first, outer, inner)()
    assert (await run).kind == "paused"
    await run.closed()
    pause = await first.journal.pause(run.id)
    assert pause is not None
    kept = json.loads(pause.body)["left"]
    assert kept["context"] == {"items": ["bread", "tea"]}
    assert "bread" not in json.dumps(kept["state"]), "it is kept once"
    later = await shopping(second, [turn(text("ok"))], [turn(text("ok"))]).resume(run.id, approve="all", actor="mei")
    assert (await later).kind == "succeeded"
    assert second.did == ["fresh pays bread, tea"]
    assert "fresh" not in json.dumps([envelope.payload for envelope in (await log_of(later)).envelopes])


async def test_a_run_that_pauses_again_keeps_its_context_as_it_is_then(worlds: Callable[[], World]) -> None:
    first, second, third = worlds(), worlds(), worlds()
    run = shopping(first, ASKS, [])()
    await run
    await run.closed()
    again = [turn(call("put", {"item": "jam"}, call_id="p3")), turn(call("pay", {}, call_id="p4"))]
    later = await shopping(second, again, []).resume(run.id, approve="all")
    assert (await later).kind == "paused"
    await later.closed()
    last = await shopping(third, [turn(text("ok"))], []).resume(later.id, approve="all")
    assert (await last).kind == "succeeded"
    assert third.did == ["fresh pays bread, tea", "fresh pays bread, tea, jam"]


@pytest.mark.parametrize("as_json", [lambda basket: 1 / 0, lambda basket: basket.items, lambda basket: {"items": {1}}])
async def test_a_context_that_cannot_be_kept_leaves_the_pause_to_the_process_that_holds_it(
    worlds: Callable[[], World], caplog: pytest.LogCaptureFixture, as_json: Any
) -> None:
    world = worlds()
    run = shopping(world, [*ASKS, turn(text("ok"))], [], keep_context=(as_json, basket_from))()
    assert (await run).kind == "paused" and await world.journal.pauses() == []
    assert [record.message for record in caplog.records if "only this process" in record.message] != []
    assert len(caplog.records) == 1
    assert (await run.resume(approve="all")).kind == "succeeded"
    assert world.did == ["first pays bread, tea"]


async def test_a_context_that_cannot_be_made_again_is_refused_and_the_run_still_waits(
    worlds: Callable[[], World],
) -> None:
    world = worlds()
    run = shopping(world, ASKS, [])()
    await run
    await run.closed()
    for pair in (None, (basket_json, lambda kept: kept["coupons"])):
        with pytest.raises(NotResumableHere, match="give `keep_context` the pair") as refused:
            await shopping(world, [], [], keep_context=pair).resume(run.id, approve="all")
        assert refused.value.code == "context"
    assert await world.journal.pauses() == [run.id] and world.did == []
    later = await shopping(world, [turn(text("ok"))], []).resume(run.id, approve="all")
    assert (await later).kind == "succeeded"


@pytest.mark.parametrize("wrong", [basket_json, (basket_json,), (basket_json, "x"), [basket_json, basket_from]])
def test_what_keeps_a_context_is_a_pair_of_functions(wrong: Any) -> None:
    with pytest.raises(UsageError, match="keep_context is a pair"):
        progress(keep_context=wrong)


# What is not used up.


async def still_waits(world: World, run_id: str) -> None:
    """The run waits as before, and was answered by nobody."""
    assert await world.journal.run(f"{run_id}.2") is None and world.did == []
    assert await world.journal.pauses() == [run_id]
    run = await world.function(turn(text("done"))).resume(run_id, approve="all")
    assert (await run).kind == "succeeded" and world.did == ["Ada"]


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda body: body["arguments"].update(who="Eve"), "tampered"),
        (lambda body: body["left"]["state"].update(original_input="pay Eve"), "tampered"),
        (lambda body: body["left"]["questions"][0].update(digest="0" * 64), "tampered"),
    ],
)
async def test_a_state_that_was_tampered_with_is_refused_and_still_waits(
    worlds: Callable[[], World], change: Callable[[Any], Any], code: str
) -> None:
    world = worlds()
    run_id = await paused(world, asks("Ada"))
    pause = await world.journal.pause(run_id)
    assert pause is not None
    body = json.loads(pause.body)
    change(body)
    await forge(world, replace(pause, body=json.dumps(body)))
    with pytest.raises(NotResumableHere, match="still waits.*changed since; nothing was approved") as refused:
        await world.function().resume(run_id, approve="all")
    assert refused.value.code == code
    await forge(world, pause)
    await still_waits(world, run_id)


async def forge(world: World, pause: Pause) -> None:
    """Write over what is stored, as somebody with the file would."""
    with sqlite3.connect(world.journal.path) as file:  # type: ignore[attr-defined]
        file.execute("UPDATE pauses SET body = ?", (pause_text(pause),))
    file.close()


async def test_arguments_that_were_changed_behind_a_matching_digest_are_refused(
    worlds: Callable[[], World], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = worlds()
    run_id = await paused(world, asks("Ada"))
    pause = await world.journal.pause(run_id)
    assert pause is not None
    forged = replace(pause, body=pause.body.replace('{\\\\\\"to\\\\\\": \\\\\\"Ada', '{\\\\\\"to\\\\\\": \\\\\\"Eve'))
    if forged == pause:
        forged = replace(pause, body=pause.body.replace('\\"Ada\\"}', '\\"Eve\\"}'))
    assert forged.body != pause.body
    await forge(world, forged)
    with monkeypatch.context() as patch:
        patch.setattr(pausing, "digest", lambda body: digest(pause.body))
        with pytest.raises(NotResumableHere) as refused:
            await world.function().resume(run_id, approve="all")
    assert refused.value.code == "call_differs"
    await forge(world, pause)
    await still_waits(world, run_id)


async def test_a_tool_that_was_renamed_is_refused_and_still_waits(worlds: Callable[[], World]) -> None:
    world = worlds()
    run_id = await paused(world, asks("Ada"))
    world.tool_name = "pay_now"
    with pytest.raises(NotResumableHere, match="still waits") as refused:
        await world.function().resume(run_id, approve="all")
    assert refused.value.code == "tool"
    world.tool_name = "pay"
    await still_waits(world, run_id)


async def test_an_agent_of_another_name_is_refused_and_still_waits(worlds: Callable[[], World]) -> None:
    world = worlds()
    run_id = await paused(world, asks("Ada"))

    @progress(journal=world.journal)
    def payments(who: str, *, note: str = "") -> RunResultStreaming:
        return Runner.run_streamed(Agent(name="Other", model=ScriptedAPI([]).model()), "hi")

    payments._function.__qualname__ = world.function()._function.__qualname__
    with pytest.raises(NotResumableHere, match="cannot be loaded with the agents") as refused:
        await payments.resume(run_id, approve="all")
    assert refused.value.code == "state"
    await still_waits(world, run_id)


async def test_another_function_and_other_parameters_are_refused(worlds: Callable[[], World]) -> None:
    world = worlds()
    run_id = await paused(world, asks("Ada"))

    @progress(journal=world.journal)
    def another() -> RunResultStreaming:
        raise AssertionError

    @progress(journal=world.journal)
    def changed(whom: str) -> RunResultStreaming:
        raise AssertionError

    @progress(journal=world.journal)
    def idle(who: str, note: str) -> Any:
        return None

    for function in (changed, idle):
        function._function.__qualname__ = world.function()._function.__qualname__
    for function, code in ((another, "other_function"), (changed, "arguments"), (idle, "no_call")):
        with pytest.raises(NotResumableHere) as refused:
            await function.resume(run_id, approve="all")
        assert refused.value.code == code
    await still_waits(world, run_id)


async def test_an_answer_about_something_else_is_refused(worlds: Callable[[], World]) -> None:
    world = worlds()
    run_id = await paused(world, asks("Ada", "Bo"))
    payments, view = world.function(turn(text("done"))), (await stored(world.journal, run_id)).view
    first, second = (view.interactions[name].digest for name in ("ask-1", "ask-2"))
    with pytest.raises(AnswerNotUsed, match="digest_differs"):
        await payments.resume(run_id, approve="ask-1", digest=second)
    with pytest.raises(AnswerNotUsed, match="digest_differs"):
        await payments.resume(run_id, approve="all", digest={"ask-1": first})
    with pytest.raises(UsageError, match="one digest is of one question"):
        await payments.resume(run_id, approve="all", digest=first)
    with pytest.raises(UnknownInteraction):
        await payments.resume(run_id, approve="ask-3")
    with pytest.raises(UsageError, match="nothing was decided"):
        await payments.resume(run_id)
    run = await payments.resume(run_id, approve="all", digest={"ask-1": first, "ask-2": second})
    assert (await run).kind == "succeeded" and world.did == ["Ada", "Bo"]


async def test_what_is_not_paused_cannot_be_resumed(worlds: Callable[[], World]) -> None:
    world = worlds()
    run = world.function(turn(text("hello")))("Ada")
    await run
    with pytest.raises(NotPaused, match="is checking"):
        await world.function().resume(run.id, approve="all")
    with pytest.raises(RunNotFound):
        await world.function().resume("nobody", approve="all")

    @progress
    def alone() -> RunResultStreaming:
        raise AssertionError

    with pytest.raises(UsageError, match="journal="):
        await alone.resume(run.id, approve="all")


async def test_pauses_are_kept_only_where_they_are_wanted(
    worlds: Callable[[], World], caplog: pytest.LogCaptureFixture
) -> None:
    world = worlds()
    run_id = await paused(world, asks("Ada"), keep_pauses=False)  # as it is by default
    assert await world.journal.pauses() == []
    with pytest.raises(NotResumableHere, match="nothing was stored") as refused:
        await world.function().resume(run_id, approve="all")
    assert refused.value.code == "nothing_kept"

    @progress(journal=world.journal, keep_pauses=True)
    def unnamable(agent: Any, **more: Any) -> RunResultStreaming:
        return Runner.run_streamed(agent, "hi")

    @function_tool(needs_approval=True)
    def danger() -> str:
        return "ok"

    agent = Agent(name="A", model=ScriptedAPI([turn(call("danger", {})), turn(text("ok"))]).model(), tools=[danger])
    run = unnamable(agent)
    assert (await run).kind == "paused" and await world.journal.pauses() == []
    assert "only this process can go on with it" in caplog.text
    assert (await run.resume(approve="all")).kind == "succeeded"


# Once.


async def test_of_many_processes_that_resume_one_goes_on_and_the_tool_runs_once(worlds: Callable[[], World]) -> None:
    first = worlds()
    run_id = await paused(first, asks("Ada"))
    others = [worlds() for _ in range(5)]
    answers = await asyncio.gather(
        *(world.function(turn(text("done"))).resume(run_id, approve="all", actor="x") for world in others),
        return_exceptions=True,
    )
    outcomes = await asyncio.gather(
        *(answer for answer in answers if not isinstance(answer, BaseException)), return_exceptions=True
    )
    won = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
    assert [outcome.kind for outcome in won] == ["succeeded"] and first.did == ["Ada"]
    lost = [each for each in (*answers, *outcomes) if isinstance(each, BaseException)]
    assert len(lost) == 4 and all(isinstance(each, AlreadyResumed | NotResumableHere) for each in lost), lost
    with pytest.raises(AlreadyResumed, match=rf"continued as {run_id}\.2"):
        await first.function().resume(run_id, approve="all")


async def test_the_process_that_paused_and_another_one_never_both_go_on(worlds: Callable[[], World]) -> None:
    first, second = worlds(), worlds()
    run = first.function(asks("Ada"), turn(text("done")))("Ada")
    await run
    there = await second.function(turn(text("done"))).resume(run.id, approve="all")
    assert (await there).kind == "succeeded"
    with pytest.raises(AlreadyResumed):
        await run.resume(approve="all")
    assert first.did == ["Ada"]


async def test_what_a_killed_process_left_after_its_claim_is_not_used_again(worlds: Callable[[], World]) -> None:
    world = worlds()
    run_id = await paused(world, asks("Ada"))
    with sqlite3.connect(world.journal.path) as file:  # type: ignore[attr-defined]
        left = file.execute("SELECT * FROM pauses").fetchall()
        run = await world.function(turn(text("done"))).resume(run_id, approve="all")
        await run
        await run.closed()
        file.execute("INSERT INTO pauses VALUES (?, ?)", left[0])
    file.close()
    assert await world.journal.pauses() == [run_id] and world.did == ["Ada"]
    with pytest.raises(AlreadyResumed):
        await world.function().resume(run_id, approve="all")


async def test_appr_2_a_run_that_failed_after_its_tool_is_not_resumed_again(worlds: Callable[[], World]) -> None:
    world = worlds()
    run_id = await paused(world, asks("Ada", "Bo"))
    run = await world.function(http_error(400)).resume(run_id, approve="all")
    assert (await run).kind == "failed" and world.did == ["Ada", "Bo"]
    for again in (run_id, run.id):
        with pytest.raises((AlreadyResumed, NotPaused)):
            await world.function(turn(text("done"))).resume(again, approve="all")
    assert world.did == ["Ada", "Bo"], "once for each call"


async def test_an_erased_run_is_not_resumed(worlds: Callable[[], World]) -> None:
    world = worlds()
    run_id = await paused(world, asks("Ada"))
    await world.journal.erase(run_id=run_id)
    with pytest.raises(RunErased):
        await world.function().resume(run_id, approve="all")
    assert await world.journal.pauses() == []


async def test_a_process_that_was_killed_before_it_said_anything_used_nothing_up(worlds: Callable[[], World]) -> None:
    world = worlds()
    run_id = await paused(world, asks("Ada"))
    await world.journal.lease(f"{run_id}.2", 0.01)  # it had the lease, and no more
    while not await world.journal.expire():
        await asyncio.sleep(0.01)
    run = await world.function(turn(text("done"))).resume(run_id, approve="all")
    assert (run.id, (await run).kind, world.did) == (f"{run_id}.3", "succeeded", ["Ada"])
    assert (await log_of(run)).of("run.started")[0]["resumed_from"] == run_id
    with pytest.raises(AlreadyResumed, match=rf"continued as {run_id}\.3"):
        await world.function().resume(run_id, approve="all")
