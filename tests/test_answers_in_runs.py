"""Answers that carry something: other arguments, a text, a reason; in the process that asked and in another one."""

from __future__ import annotations

import gc
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from agents import Agent, Runner, RunResultStreaming, SQLiteSession, function_tool
from staging import Log, log_of, stored

from agents_progress import Disclosure, asking, current_run, progress
from agents_progress.answers import action_digest
from agents_progress.decorate import Decorated
from agents_progress.effects.once import once
from agents_progress.errors import AnswerNotUsed, ResumeError, UsageError
from agents_progress.journal import Journal, MemoryJournal, open_journal
from agents_progress.run import Run
from agents_progress.sdk.states import stored as stored_state
from agents_progress.sdk.states import taken
from agents_progress.testing import ScriptedAPI, call, http_error, text, turn

OPEN = Disclosure(arguments=["pay"], approval_details="all")
FIRST = {"to": "Ada", "amount": 1}
OTHER = {"to": "Bo", "amount": 99}


@dataclass
class Shop:
    """An application: its tools, what they did, and what its models were sent. ``again`` is it after a restart."""

    journal: Journal
    options: dict[str, Any] = field(default_factory=dict)
    did: list[Any] = field(default_factory=list)
    api: ScriptedAPI = field(default_factory=lambda: ScriptedAPI([]))
    inner: ScriptedAPI = field(default_factory=lambda: ScriptedAPI([]))
    call: dict[str, Any] = field(default_factory=dict)

    def work(self, *turns: Any, inside: Any = ()) -> Decorated[...]:
        did = self.did
        self.api, self.inner = ScriptedAPI(turns), ScriptedAPI(inside)

        @function_tool(needs_approval=True)
        def pay(to: str, amount: int = 0) -> str:
            did.append((to, amount, current_run().answer))
            return f"paid {amount} to {to}"

        @function_tool(needs_approval=True)
        async def ask(question: str) -> str:
            did.append((question, current_run().answer))
            return f"they say {current_run().answer}"

        @function_tool(needs_approval=True)
        def pick(slots: list[str]) -> str:
            did.append(current_run().answer)
            return f"picked {current_run().answer}"

        @function_tool
        def look() -> str:
            did.append(current_run().answer)
            return "seen"

        @progress(journal=self.journal, **{"keep_pauses": True, "disclosure": OPEN, **self.options})
        def shop() -> RunResultStreaming:
            inner = Agent(name="Inner", model=self.inner.model(), tools=[pay])
            helper = inner.as_tool("delegate", "Ask the other one.")
            agent = Agent(name="Clerk", model=self.api.model(), tools=[pay, ask, pick, look, helper])
            return Runner.run_streamed(agent, "go", **self.call)

        return shop

    async def paused(self, *turns: Any, inside: Any = ()) -> Run:
        run = self.work(*turns, inside=inside)()
        assert (await run).kind == "paused"
        await run.closed()
        return run


@pytest.fixture
async def shop(tmp_path: Path) -> AsyncIterator[Shop]:
    journal = open_journal(f"sqlite:///{tmp_path}/runs.db")
    yield Shop(journal)
    await journal.close()


def pays(call_id: str = "c1", **arguments: Any) -> Any:
    return call("pay", {**FIRST, **arguments}, call_id=call_id)


DONE = turn(text("done"))


async def continued(shop: Shop, run: Run, where: str, *, inside: Any = (), **answer: Any) -> tuple[Run, Log]:
    """The run that goes on with an answer: in the process that asked, or after it is gone."""
    answer = {"actor": "mei"} | answer
    if where == "here":
        second = run.resume(**answer)
    else:
        run_id = run.id
        del run
        gc.collect()
        second = await shop.work(DONE, inside=inside).resume(run_id, **answer)
    assert (await second).kind == "succeeded", second.error
    await second.closed()
    log = await stored(shop.journal, second.id)
    assert log.view.issues == []
    return second, log


@pytest.fixture(params=["here", "elsewhere"])
def where(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# Other arguments.


async def test_a_tool_runs_with_exactly_the_arguments_that_were_put_in_the_place_of_its_own(
    shop: Shop, where: str
) -> None:
    run = await shop.paused(turn(pays(), pays("c2", to="Cy")), DONE)
    (shown, _) = run.view.interactions.values()
    second, log = await continued(shop, run, where, approve="all", arguments={"ask-1": OTHER})
    assert shop.did == [("Bo", 99, None), ("Cy", 1, None)]
    sent = [each for each in shop.api.requests[-1]["input"] if each.get("type") == "function_call"]
    assert [json.loads(each["arguments"]) for each in sent] == [OTHER, {**FIRST, "to": "Cy"}]
    assert "Ada" not in json.dumps(shop.api.requests[-1]["input"]), "the model never sees what was replaced"
    first, other = log.of("approval.wait")
    digest = action_digest("pay", json.dumps(OTHER))
    assert (first["digest"], json.loads(first["details"])) == (digest, OTHER)
    assert first["x"] == {"takes": {"to": True, "amount": True}, "edited_from": shown.digest}
    assert "edited_from" not in other["x"]
    assert log.of("approval.resolved") == [
        {"interaction_id": "ask-1", "decision": "approved", "actor": "mei", "x": {"edited_from": shown.digest}},
        {"interaction_id": "ask-2", "decision": "approved", "actor": "mei"},
    ]
    assert [json.loads(each["arguments"]) for each in log.of("tool.requested")] == [OTHER, {**FIRST, "to": "Cy"}]
    assert [row.edited_from for row in log.view.interactions.values()] == [shown.digest, None]


async def test_a_call_inside_an_agents_tool_can_be_edited(shop: Shop, where: str) -> None:
    both = f"call-{uuid4().hex[:8]}"  # up to 0.22 the SDK knows nested states by the outer id, over all runs
    inside = [turn(pays(both)), turn(text("inner done"))]
    run = await shop.paused(turn(call("delegate", {"input": "x"}, call_id=both)), DONE, inside=inside)
    await continued(shop, run, where, inside=inside[1:], approve="all", arguments={"ask-1": OTHER})
    assert shop.did == [("Bo", 99, None)], "with equal ids on both levels"
    assert "Ada" not in json.dumps(shop.inner.requests[-1]["input"])
    asked = next(each for each in shop.api.requests[-1]["input"] if each.get("type") == "function_call")
    assert json.loads(asked["arguments"]) == {"input": "x"}


async def test_what_came_before_a_pause_stays_and_a_second_pause_can_be_edited_too(shop: Shop, where: str) -> None:
    run = await shop.paused(turn(call("look", {}, call_id="l1")), turn(pays(), pays("c2")), DONE)
    if where == "here":
        second = run.resume(approve="ask-1", arguments={"ask-1": OTHER})
    else:
        second = await shop.work(DONE).resume(run.id, approve="ask-1", arguments={"ask-1": OTHER})
    assert (await second).kind == "paused"
    await second.closed()
    _, log = await continued(shop, second, where, approve="all", arguments={"ask-2": {**OTHER, "to": "Di"}})
    assert shop.did == [None, ("Bo", 99, None), ("Di", 99, None)]
    assert [row.interaction_id for row in log.view.interactions.values()] == ["ask-2"]


async def test_the_digest_that_an_edit_repeats_is_that_of_what_was_shown(shop: Shop) -> None:
    run = await shop.paused(turn(pays()))
    new = action_digest("pay", json.dumps(OTHER))
    with pytest.raises(AnswerNotUsed, match="digest_differs"):
        await shop.work().resume(run.id, approve="all", digest=new, arguments={"ask-1": OTHER})
    shown = run.view.interactions["ask-1"].digest
    second = await shop.work(DONE).resume(run.id, approve="all", digest=shown, arguments={"ask-1": OTHER})
    assert (await second).kind == "succeeded" and shop.did == [("Bo", 99, None)]


@pytest.mark.parametrize("how", [{"session": SQLiteSession("s")}, {"auto_previous_response_id": True}])
async def test_a_call_that_others_than_the_run_hold_cannot_be_edited(shop: Shop, where: str, how: Any) -> None:
    shop.call = how
    run = await shop.paused(turn(pays()))
    assert run.view.interactions["ask-1"].takes is None
    with pytest.raises(AnswerNotUsed, match="not_editable"):
        if where == "here":
            run.resume(approve="all", arguments={"ask-1": OTHER})
        else:
            await shop.work().resume(run.id, approve="all", arguments={"ask-1": OTHER})


async def test_a_call_whose_id_another_one_has_too_cannot_be_edited(shop: Shop) -> None:
    run = await shop.paused(turn(pays()))
    item, state = run.result.interruptions[0], stored_state(run.result.to_state())
    assert taken(item, state) == {"to": True, "amount": True}
    state["generated_items"] += state["generated_items"]
    assert taken(item, state) is None, "in two turns"
    state = stored_state(run.result.to_state())
    state["last_processed_response"]["functions"] *= 2
    assert taken(item, state) is None, "in one answer of the model"
    state["last_processed_response"]["functions"][:1] = [{"agent_run_state": stored_state(run.result.to_state())}]
    assert taken(item, state) is None, "in two runs"


async def test_arguments_that_do_not_fit_leave_the_run_waiting(shop: Shop, where: str) -> None:
    run = await shop.paused(turn(pays()), DONE)
    for wrong, code in (
        ({"to": "Bo"}, "arguments_missing"),
        ({**OTHER, "x": 1}, "arguments_unknown"),
        ("Bo", "arguments_not_object"),
    ):
        with pytest.raises(AnswerNotUsed, match=code):
            if where == "here":
                run.resume(approve="all", arguments={"ask-1": wrong})
            else:
                await shop.work().resume(run.id, approve="all", arguments={"ask-1": wrong})
    with pytest.raises(UsageError, match="arguments of amount, of which nothing was decided"):
        run.resume(approve="all", arguments=OTHER)
    with pytest.raises(UsageError, match="one text is of one question"):
        (await shop.paused(turn(pays(), pays("c2")))).resume(approve="all", text="well")
    assert shop.did == []
    await continued(shop, run, where, approve="all")
    assert shop.did == [("Ada", 1, None)]


async def test_appr_2_an_edited_answer_is_used_once_also_when_the_run_fails_after_the_tool(shop: Shop) -> None:
    run = await shop.paused(turn(pays()))
    digest = run.view.interactions["ask-1"].digest
    second = await shop.work(http_error(400)).resume(run.id, approve="all", arguments={"ask-1": OTHER}, digest=digest)
    assert (await second).kind == "failed" and shop.did == [("Bo", 99, None)]
    await second.closed()
    for late in (run, second):
        with pytest.raises(ResumeError):
            await shop.work(DONE).resume(late.id, approve="all", arguments={"ask-1": OTHER})
    view = (await stored(shop.journal, run.id)).view
    with pytest.raises(AnswerNotUsed, match="already_answered"):
        await asks_of(shop.journal, run, decision="approved", arguments=OTHER)
    assert view.status == "waiting" and shop.did == [("Bo", 99, None)], "what is replayed as waiting is not any more"


async def test_hidden_arguments_stay_hidden_when_they_are_edited(shop: Shop, where: str) -> None:
    shop.options = {"disclosure": Disclosure()}
    run = await shop.paused(turn(pays()), DONE)
    second, log = await continued(shop, run, where, approve="all", arguments={"ask-1": {"to": "BOBBY", "amount": 7}})
    assert shop.did == [("BOBBY", 7, None)]
    assert all(b"BOBBY" not in each.to_json() for each in log.envelopes)
    assert log.view.interactions["ask-1"].edited_from is not None, "that it was edited is a fact"


async def test_a_tool_that_acts_once_is_known_by_the_arguments_that_it_was_given(tmp_path: Path) -> None:
    did: list[str] = []
    journal = open_journal(f"sqlite:///{tmp_path}/runs.db")

    @function_tool(needs_approval=True)
    @once(scope="tests", key="transfer {to}")
    def transfer(to: str) -> str:
        did.append(to)
        return f"sent to {to}"

    def work_of(*turns: Any) -> Decorated[...]:
        @progress(journal=journal)
        def work() -> RunResultStreaming:
            return Runner.run_streamed(Agent(name="A", model=ScriptedAPI(turns).model(), tools=[transfer]), "go")

        return work

    for _ in range(2):
        run = work_of(turn(call("transfer", {"to": "Ada"}, call_id="c1")), DONE)()
        await run
        log = await log_of(run.resume(approve="all", arguments={"ask-1": {"to": "Bo"}}))
    assert did == ["Bo"] and log.of("tool.finished")[0]["reused"] is True
    await journal.close()


# Texts.


async def test_a_tool_reads_what_the_person_said_who_approved_it(shop: Shop, where: str) -> None:
    shop.options = {"approval_kinds": {"ask": "clarification"}}
    asks = turn(call("ask", {"question": "which?"}, call_id="c1"), call("look", {}, call_id="l1"))
    run = await shop.paused(asks, DONE)
    with pytest.raises(AnswerNotUsed, match="answer_missing"):
        run.resume(approve="all")
    _, log = await continued(shop, run, where, approve="all", text="the blue ONE")
    assert shop.did == [None, ("which?", "the blue ONE")], "and no other tool does"
    assert all(b"blue ONE" not in each.to_json() for each in log.envelopes), "it is in no event"
    assert "they say the blue ONE" in json.dumps(shop.api.requests[-1]["input"])


async def test_a_choice_is_one_of_the_options_that_were_shown(shop: Shop, where: str) -> None:
    shop.options = {"choices": {"pick": "slots"}}
    run = await shop.paused(turn(call("pick", {"slots": ["mon", "tue"]}, call_id="c1")), DONE)
    question = run.view.interactions["ask-1"]
    assert (question.kind, question.options_in) == ("choice", "slots")
    with pytest.raises(AnswerNotUsed, match="not_an_option"):
        run.resume(approve="all", text="wed")
    await continued(shop, run, where, approve="all", text="tue")
    assert shop.did == ["tue"]


async def test_each_of_several_questions_has_a_text_of_its_own(shop: Shop, where: str) -> None:
    shop.options = {"approval_kinds": {"ask": "handoff", "pay": "recovery"}}
    questions = [call("ask", {"question": each}, call_id=each) for each in ("a", "b")]
    run = await shop.paused(turn(*questions, pays()), DONE)
    await continued(shop, run, where, approve="all", text={"ask-1": "first", "ask-3": "third"}, reason="because")
    assert sorted(shop.did, key=str) == [("Ada", 1, "third"), ("a", "first"), ("b", None)]


async def test_a_text_that_nobody_asked_for_is_refused(shop: Shop) -> None:
    run = await shop.paused(turn(pays()))
    with pytest.raises(AnswerNotUsed, match="answer_unexpected"):
        run.resume(approve="all", text="well")
    assert run.view.status == "waiting" and run.continued is None


def test_outside_a_run_there_is_no_answer() -> None:
    assert current_run().answer is None


# Reasons.


async def test_the_model_is_told_why_a_call_was_refused_and_nobody_else(shop: Shop, where: str) -> None:
    run = await shop.paused(turn(pays(), pays("c2", to="Cy")), DONE)
    _, log = await continued(shop, run, where, reject="all", reason={"ask-1": "too MUCH"})
    outputs = [each["output"] for each in shop.api.requests[-1]["input"] if each.get("type") == "function_call_output"]
    assert outputs[0] == "too MUCH" and outputs[1] != "too MUCH"
    assert shop.did == [] and all(b"too MUCH" not in each.to_json() for each in log.envelopes)
    assert [each["reason"] for each in log.of("tool.rejected")] == ["approval_rejected"] * 2


# Through the journal.


async def asks_of(journal: Journal, run: Run, **given: Any) -> str | None:
    row = await journal.run(run.id)
    assert row is not None
    digest = run.view.interactions["ask-1"].digest
    return await asking.answer(journal, row, asking.Answer("ask-1", actor="mei", digest=digest, **given), within=5)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
async def test_what_an_answer_carries_reaches_the_owner_through_the_journal(shop: Shop, kind: str) -> None:
    if kind == "memory":
        shop.journal = MemoryJournal()
    shop.options = {"approval_kinds": {"pay": "recovery"}}
    run = await shop.paused(turn(pays()), DONE)
    with pytest.raises(AnswerNotUsed, match="arguments_missing"):
        await asks_of(shop.journal, run, decision="approved", arguments={"to": "Bo"})
    later = await asks_of(shop.journal, run, decision="approved", arguments=OTHER, text="once more")
    assert later == f"{run.id}.2" and run.continued is not None
    assert (await run.continued).kind == "succeeded" and shop.did == [("Bo", 99, "once more")]
    refused = await shop.paused(turn(pays()), DONE)
    await asks_of(shop.journal, refused, decision="rejected", reason="too much")
    assert refused.continued is not None and (await refused.continued).kind == "succeeded"
    assert "too much" in json.dumps(shop.api.requests[-1]["input"])
